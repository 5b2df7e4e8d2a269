"""After any shortening of a conversation, the agent can name each file and each source that it had."""

import random
from collections.abc import Iterator

import pytest

from engine_stage import source
from explorer.agents.compaction import ContextPolicy, plan_compaction, summary
from explorer.agents.on_record import compaction_note, id_ranges
from explorer.journal.agent_state import AgentState
from explorer.journal.run_state import RunState
from explorer.schema.events import (
    AgentFinished,
    AgentStarted,
    Clearing,
    Compacted,
    NoteAdded,
    SourceRecorded,
    Status,
    Steered,
    Summarised,
    ToolFinished,
    ToolStarted,
    TurnTaken,
    WrittenFile,
)
from explorer.schema.messages import JsonObject, Message, Results, Turn, Usage, UserText
from explorer.schema.reasons import NoteReason
from explorer.testing import says
from explorer.text.rendering import block
from thoroughness import some

LEAD = "orchestrator"
ANSWER = "The helper's answer: output rose by 12 %."


def written(path: str) -> WrittenFile:
    """A file that a call wrote."""
    return WrittenFile(path=path, title=f"Title of {path}", lines=3, bytes=300, sha256="1" * 64)


class History:
    """A conversation of random calls, with what its agent had so far."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - histories, no secrets
        self.state = RunState()
        self.state.apply(AgentStarted(agent=LEAD, role=LEAD, task="Question: what rose?", max_steps=500))
        self.sources: set[str] = set()
        self.files: set[str] = set()
        self.said: list[str] = ["Question: what rose?"]
        self.helpers = 0

    @property
    def agent(self) -> AgentState:
        """The agent."""
        return self.state.agents[LEAD]

    def step(self) -> None:
        """Take a turn with one to three calls, and now and then hear the user."""
        if self.random.random() < 0.05:
            self.said.append(f"Also look at {len(self.said)}.")
            self.state.apply(Steered(agent=LEAD, text=self.said[-1]))
        names = self.random.choices(
            ["web_search", "read_webpage", "read_file", "write_file", "execute_shell", "call_agent", "list_files"],
            k=self.random.randint(1, 3),
        )
        calls = [(name, self._arguments(name)) for name in names]
        words = "w" * self.random.choice([0, 100, 3_000])
        turn = says(words, *calls).model_copy(update={"usage": Usage()})
        self.state.apply(TurnTaken(agent=LEAD, turn=turn, seconds=0.1))
        for index, (name, arguments) in enumerate(calls, 1):
            self._finish(f"{LEAD}.t{self.agent.steps}.{index}", name, arguments)

    def _arguments(self, name: str) -> dict[str, str]:
        number = str(self.random.randrange(10_000))
        if name in {"read_file", "write_file"}:
            path = f"notes/{number}.md"
            self.files.add(path)
            return {"filepath": path}
        return {"query": number}

    def _finish(self, key: str, name: str, arguments: dict[str, str]) -> None:
        effect = {"execute_shell": "job", "write_file": "checked", "call_agent": "child"}.get(name, "pure")
        self.state.apply(ToolStarted(agent=LEAD, call=key, name=name, effect=effect))
        files: list[str] = [arguments["filepath"]] if name == "write_file" else []
        found: list[str] = []
        content = "A page.\n" + "x" * self.random.choice([20, 900, 4_000, 30_000])
        if name == "execute_shell":
            files = [f"scratch/{self.random.randrange(10_000)}.csv" for _ in range(self.random.randint(0, 3))]
        if name in {"web_search", "read_webpage"}:
            count = 8 if name == "web_search" else 1
            first = len(self.state.sources) + 1
            found = [f"S{number}" for number in range(first, first + count)]
            for one in found:
                self.state.apply(SourceRecorded(source=source(one)))
        if name == "call_agent":
            self.helpers += 1
            files, content = [], f"{ANSWER} See parts/{self.helpers}.md. " + "y" * 3_000
            self._help(key)
        # Tools say what they bring; here at the end, which clearing cuts.
        content = str(block(f"{content}\n{' '.join([*found, *files])}"))
        self.sources |= set(found)
        self.files |= set(files)
        self.state.apply(
            ToolFinished(
                agent=LEAD,
                call=key,
                name=name,
                success=True,
                content=content,
                sources=tuple(found),
                files=tuple(map(written, files)),
            )
        )

    def _help(self, key: str) -> None:
        agent, path = f"searcher-{self.helpers}", f"parts/{self.helpers}.md"
        self.state.apply(
            AgentStarted(agent=agent, role="searcher", parent=LEAD, parent_call=key, task="look", max_steps=9)
        )
        turn = says("", ("write_file", {"filepath": path}))
        self.state.apply(TurnTaken(agent=agent, turn=turn, seconds=0.1))
        done = ToolFinished(
            agent=agent, call=f"{agent}.t1.1", name="write_file", success=True, content="", files=(written(path),)
        )
        self.state.apply(done)
        self.state.apply(AgentFinished(agent=agent, status=Status.COMPLETE, reason="answered", summary=ANSWER))
        self.files.add(path)

    def shorten(self, policy: ContextPolicy) -> Iterator[Compacted | Summarised]:
        """Do what is due before the next request, and yield what shortened the conversation."""
        while decision := plan_compaction(self.agent, 3_000, policy):
            if isinstance(decision, AgentFinished):
                return
            self.state.apply(decision)
            if isinstance(decision, NoteAdded) and decision.reason == NoteReason.SUMMARISE:
                self.state.apply(TurnTaken(agent=LEAD, turn=says("I found much."), seconds=0.1))
                note = compaction_note(self.agent, self.state, lambda _path: "", lambda _agent: [], 30_000)
                decision = summary(self.agent, note)
                self.state.apply(decision)
            if isinstance(decision, Compacted | Summarised):
                yield decision


def dear(usage: Usage) -> float:
    """A model that costs twenty times what a large one does."""
    return usage.input_tokens * 1e-4 - usage.cache_read_tokens * 9e-5


def text_of(messages: list[Message]) -> str:
    """All that a model reads of a history, with its own calls."""
    parts: list[str] = []
    for message in messages:
        if isinstance(message, Results):
            parts += [result.content for result in message.results]
        else:
            parts.append(message.text)
        if isinstance(message, Turn):
            parts += [str(call.arguments) for call in message.calls]
    return "\n".join(parts)


def named_sources(text: str) -> set[str]:
    """All ids in a text, those in ranges too."""
    ids: set[str] = set()
    for word in text.replace(",", " ").replace(".", " ").split():
        first, _, last = word.partition("-")
        if first[:1] == "S" and first[1:].isdecimal():
            until = int(last[1:]) if last[:1] == "S" and last[1:].isdecimal() else int(first[1:])
            ids |= {f"S{number}" for number in range(int(first[1:]), until + 1)}
    return ids


@pytest.mark.slow
@pytest.mark.parametrize("window", [16_000, 64_000, 128_000])
@pytest.mark.parametrize("is_dear", [False, True])
def test_after_any_shortening_each_file_and_source_can_be_named(window: int, is_dear: bool) -> None:  # noqa: FBT001
    """Over random histories: sources, files, the user's words; and, after clearing, what each helper answered."""
    seen: set[type] = set()
    for seed in some(range(30)):
        history = History(seed)
        for _ in range(120):
            history.step()
            for done in history.shorten(ContextPolicy(window, cost=dear if is_dear else None)):
                seen.add(type(done))
                text = text_of(history.agent.messages)
                assert history.sources <= named_sources(text), f"seed {seed}"
                assert not [path for path in history.files if path not in text], f"seed {seed}"
                assert all(words in text for words in history.said), f"seed {seed}"
                assert text.count(ANSWER) >= history.helpers, f"seed {seed}"
    assert Compacted in seen


def test_a_clearing_that_a_journal_announces_in_a_strange_way_is_none() -> None:
    """A journal of another version or hand cannot make an agent's state fail."""
    state = RunState()
    state.apply(AgentStarted(agent=LEAD, role=LEAD, task="Question: x", max_steps=5))
    strange: list[JsonObject] = [
        {},
        {"before": "2", "why": "full"},
        {"before": 2, "why": "?"},
        {"before": 2, "why": []},
    ]
    for data in strange:
        state.apply(NoteAdded(agent=LEAD, text="", reason=NoteReason.CLEARING, data=data))
        assert state.agents[LEAD].announced is None
    state.apply(NoteAdded(agent=LEAD, text="", reason=NoteReason.CLEARING, data={"before": 2, "why": "full"}))
    told = state.agents[LEAD].announced
    assert told is not None
    assert (told.before, told.why, told.steps) == (2, Clearing.FULL, 0)


def test_ids_in_a_row_are_joined() -> None:
    """In order of their numbers; names of other forms come last."""
    assert id_ranges({"S10", "S2", "S1", "S3", "x y"}) == ["S1-S3", "S10", "x y"]


def loaded(state: RunState, skill: str, text: str) -> None:
    """The agent loads a skill."""
    turn = says("", ("load_skill", {"name": skill})).model_copy(update={"usage": Usage()})
    state.apply(TurnTaken(agent=LEAD, turn=turn, seconds=0.1))
    key = f"{LEAD}.t{state.agents[LEAD].steps}.1"
    state.apply(ToolStarted(agent=LEAD, call=key, name="load_skill", effect="pure"))
    data: JsonObject = {"skill": skill}
    state.apply(ToolFinished(agent=LEAD, call=key, name="load_skill", success=True, content=text, data=data))


def test_a_loaded_skill_is_never_lost() -> None:
    """Clearing leaves its text as it is, and each summary carries it, also the summary of a summary."""
    history, text = History(7), "# Skill tides: work by it.\n\n" + "Look at the moon. " * 200
    loaded(history.state, "tides", text)
    before = len(history.agent.messages)
    history.state.apply(Compacted(agent=LEAD, before=before, why=Clearing.FULL, tokens=1_000))
    shortened: list[Compacted | Summarised] = []
    while sum(isinstance(one, Summarised) for one in shortened) < 2:
        history.step()
        shortened += history.shorten(ContextPolicy(24_000))
        assert text in "".join(map(str, _texts(history.agent)))


def _texts(agent: AgentState) -> Iterator[str]:
    for message in agent.messages:
        if isinstance(message, Results):
            yield from (result.content for result in message.results)
        elif isinstance(message, UserText):
            yield message.text


def test_skills_that_would_fill_a_window_are_named() -> None:
    """A summary that is longer than what it replaces would help nobody: the agent can load them again."""
    state = RunState()
    state.apply(AgentStarted(agent=LEAD, role=LEAD, task="Question", max_steps=9))
    loaded(state, "tides", "x" * 20_000)
    loaded(state, "waves", "y" * 20_000)
    note = compaction_note(state.agents[LEAD], state, lambda _path: "", lambda _agent: [], 30_000)
    assert "load again what you need of them: <<tides>>, <<waves>>" in note
    assert "xxx" not in note
