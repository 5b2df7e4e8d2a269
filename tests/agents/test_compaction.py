import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from agents.test_subagents import Stage, help_from, role, roles_of
from engine_stage import Doing, Recorder, agent_room, started, tools_over
from explorer.agents.compaction import (
    DEFAULT_WINDOW_TOKENS,
    KEPT_MESSAGES,
    LOCAL_WINDOW_TOKENS,
    ContextPolicy,
    UsageCost,
)
from explorer.agents.decisions import WORDS
from explorer.agents.loop import AgentContext, run_agent
from explorer.agents.on_record import compaction_note
from explorer.journal.agent_state import AgentState
from explorer.journal.context_size import bytes_of, is_plan
from explorer.llm.models import ModelRef
from explorer.run.model_facts import window_of
from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.events import (
    AgentContinued,
    AgentFinished,
    AgentStarted,
    AnyEvent,
    Clearing,
    Compacted,
    NoteAdded,
    Status,
    Steered,
    Summarised,
    ToolFinished,
    TurnTaken,
)
from explorer.schema.messages import Message, Request, Results, StopKind, Turn, Usage, UserText
from explorer.schema.reasons import NoteReason
from explorer.schema.settings import Limits, Services, Settings
from explorer.schema.tool import Arguments, Tool, ToolContext, ToolResult
from explorer.testing import Script, ScriptedClient, says
from explorer.text.rendering import own, without_marks
from explorer.workspace.workspace import Workspace, describe
from thoroughness import some

ASK = UserText(text=WORDS[NoteReason.SUMMARISE], reason=NoteReason.SUMMARISE)

NOTES = "The log says 12 % [S1]; B was tried in vain; C is still to be read."
HELPERS = 200


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def taken(request: Request) -> int:
    """Which reading is next: one more than the latest that is still in the history, cleared or not."""
    numbers = [
        int((call.arguments or {})["words"])
        for message in request.history
        if isinstance(message, Turn)
        for call in message.calls
        if call.name == "read"
    ]
    return max(numbers, default=0) + 1


def reading(last: int, words: str = "") -> Script:
    """A model that reads number after number, with these words each time, and writes notes down when asked to."""

    def reply(request: Request) -> Turn:
        if request.history[-1] == ASK:
            return says(NOTES, ("read", {"words": "999"}))
        number = taken(request)
        return says("Answer.") if number > last else says(words, ("read", {"words": str(number)}))

    return reply


def reader(chars: int) -> Doing:
    """A tool that brings a page: a heading, and so many characters."""

    async def read(words: str) -> ToolResult:
        text = f"Page {words}\n" + "x" * chars
        return ToolResult(success=True, content=text, metadata={"sources": [f"S{words}"]})

    return Doing("read", read)


def no_helpers(_state: AgentState) -> str:
    """What the run knows, for an agent that leads nobody."""
    return "Helpers: none."


class Scene:
    """One agent with a small or a large window, and what came of it."""

    def __init__(
        self,
        workspace: Workspace,
        script: Script,
        tools: Sequence[Tool],
        window: int | None,
        events: Sequence[AnyEvent] = (),
    ) -> None:
        self.recorder = Recorder(events or [started(max_steps=400)])
        self.client = ScriptedClient({"searcher": script})
        context = agent_room(self.client, self.recorder, tools_over(workspace, *tools), workspace)
        policy = ContextPolicy(window)
        self.context: AgentContext = replace(context, context_policy=policy, compaction_note=no_helpers)

    async def run(self) -> AgentFinished:
        """Take the agent to its end."""
        return await run_agent(self.state, self.context)

    @property
    def state(self) -> AgentState:
        """As its events left it."""
        return self.recorder.state()

    @property
    def reasons(self) -> list[str]:
        """The kinds of notes given."""
        return [event.reason for event in self.recorder.of_type(NoteAdded)]


def sizes(history: Sequence[Message]) -> list[int]:
    """Of all results, in characters."""
    return [len(result.content) for message in history if isinstance(message, Results) for result in message.results]


def as_of_a_large_model(usage: Usage) -> float:
    """Ten times what a large model costs, so that a short conversation shows it."""
    plain = usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens
    return (plain * 50 + usage.cache_read_tokens * 5 + usage.cache_write_tokens * 62.5) / 1e6


def announced(scene: Scene) -> list[int]:
    """How many turns were taken between each announcement of a clearing and the clearing."""
    turns, since = list[int](), 0
    for event in scene.recorder.events:
        if isinstance(event, NoteAdded) and event.reason == NoteReason.CLEARING:
            since = 0
        elif isinstance(event, Compacted):
            turns.append(since)
        since += isinstance(event, TurnTaken)
    return turns


@pytest.mark.parametrize(
    ("window", "cost", "why"), [(32_000, None, Clearing.FULL), (1_000_000, as_of_a_large_model, Clearing.CARRIED)]
)
async def test_old_results_are_cleared_rarely_in_batches_and_one_turn_after_it_was_said(
    workspace: Workspace, window: int, cost: UsageCost | None, why: Clearing
) -> None:
    """At a share of the window, or when it saves money: then all but the latest exchanges are a short text each.

    Every other request is the one before and more.
    """
    scene = Scene(workspace, reading(60 if cost is None else 100), [reader(4_000)], window)
    scene.context = replace(scene.context, context_policy=ContextPolicy(window, cost=cost))
    assert (await scene.run()).status is Status.COMPLETE
    cleared = scene.recorder.of_type(Compacted)
    assert 1 <= len(cleared) <= 10
    assert {event.why for event in cleared} == {why}
    assert announced(scene) == [1] * len(cleared)
    histories = [request.history for request in scene.client.requests]
    changed = [later for earlier, later in pairwise(histories) if later[: len(earlier)] != earlier]
    assert len(changed) == len(cleared)
    for event, history in zip(cleared, changed, strict=True):
        assert max(sizes(history[: event.before])) < 800
        assert min(sizes(history[event.before :])) > 4_000
        assert len(history) - event.before >= KEPT_MESSAGES
    first = histories[-1][2]
    assert isinstance(first, Results)
    start, end = first.results[0].content.split("\n[", 1)
    assert start.startswith("<<untrusted ")
    assert "\nPage 1\nxxx" in start
    assert end == (
        "cleared to save space: 4063 characters; to read it again: "
        'read_source, or read_file(".explorer/sources/S1.md")]\nIts sources: S1'
    )
    assert {request.system for request in scene.client.requests} == {"Search."}


async def test_a_conversation_that_fits_and_costs_little_is_left_alone(workspace: Workspace) -> None:
    """Far below the window nothing is cleared for a cheap model, or for one whose price is not known."""

    def cheap(usage: Usage) -> float:
        return as_of_a_large_model(usage) / 500

    for cost in (None, cheap):
        scene = Scene(workspace, reading(60), [reader(4_000)], 200_000)
        scene.context = replace(scene.context, context_policy=ContextPolicy(200_000, cost=cost))
        await scene.run()
        assert scene.recorder.of_type(Compacted) == []
        assert NoteReason.CLEARING not in scene.reasons


async def test_a_model_that_needs_all_it_was_told_is_left_alone(workspace: Workspace) -> None:
    """Without a window nothing is ever cleared, and errors and short results never are."""
    whole = Scene(workspace, reading(40), [reader(8_000)], None)
    await whole.run()
    assert whole.recorder.of_type(Compacted) == []

    async def fail(words: str) -> ToolResult:
        text = f"no {words}: " + "y" * 5_000
        return (
            ToolResult(success=True, content="few words") if int(words) % 2 else ToolResult(success=False, error=text)
        )

    failing = Scene(workspace, reading(40), [Doing("read", fail)], 40_000)
    await failing.run()
    assert failing.recorder.of_type(Compacted) == []


async def test_a_conversation_of_its_own_words_is_summarised(workspace: Workspace) -> None:
    """Where clearing frees too little, the model is asked on the same prefix, with its tools; what it calls is ignored.

    From then on there are the task, its notes, what is on record, and the latest exchanges. It counts as a turn.
    """
    reads = reader(50)
    script = reading(40, "w" * 900)

    def writing(request: Request) -> Turn:
        if len(request.history) == 1:
            return says("", ("write_file", {"filepath": "plan.md", "content": "# My plan\n"}))
        return script(request)

    scene = Scene(workspace, writing, [reads], 10_000)
    assert (await scene.run()).status is Status.COMPLETE
    assert reads.runs == [str(number) for number in range(1, 41)]
    (first, *_) = scene.recorder.of_type(Summarised)
    at = next(n for n, one in enumerate(scene.client.requests) if one.history[-1] == ASK)
    before, asking, after = scene.client.requests[at - 1 : at + 2]
    assert asking.history[: len(before.history)] == before.history
    assert (asking.tools, asking.system) == (before.tools, before.system)
    assert after.history[:2] == (UserText(text="look"), UserText(text=first.text))
    assert after.history[2:] == asking.history[first.before : -1]
    assert len(after.history) >= KEPT_MESSAGES
    for words in (NOTES, "plan.md (1 lines, 10 bytes): My plan", "Helpers: none."):
        assert words in first.text
    assert scene.state.steps == len(scene.recorder.of_type(TurnTaken)) == len(scene.client.requests)
    assert scene.state.usage == Usage(input_tokens=100 * scene.state.steps, output_tokens=20 * scene.state.steps)
    assert scene.context.account().parent is not None
    assert scene.context.account().used.steps == scene.state.steps


async def test_tasks_and_the_users_words_outlive_a_summary(workspace: Workspace) -> None:
    """They stand before the summary as they were said, in order; what is said while it is written is heard after it."""
    scene = Scene(workspace, reading(12, "w" * 900), [reader(50)], 1_000_000)
    await scene.recorder.record(Steered(agent="searcher-1", text="Also look at B."))
    await scene.run()
    await scene.recorder.record(AgentContinued(agent="searcher-1", task="now deeper", max_steps=90))
    script = reading(40, "w" * 900)

    async def interrupt(request: Request) -> Turn:
        if request.history[-1] == ASK:
            await scene.recorder.record(Steered(agent="searcher-1", text="And C."))
        return script(request)

    class Client:
        generate = staticmethod(interrupt)

    scene.context = replace(scene.context, client=Client(), context_policy=ContextPolicy(8_000))
    assert (await scene.run()).summary == "Answer."
    summaries = scene.recorder.of_type(Summarised)
    assert len(summaries) >= 2
    output = [one.text for one in scene.state.messages if isinstance(one, UserText)]
    assert output[:3] == ["look", "Also look at B.", "now deeper"]
    assert set(output[3:]) == {"And C.", summaries[-1].text}
    assert scene.state.messages[scene.state.began_at] == UserText(text="now deeper")


def part_of_a_file() -> Doing:
    """A tool that brings a part of one long file, and no source."""

    async def read(words: str) -> ToolResult:
        return ToolResult(success=True, content=f"Part {words}\n" + "x" * 9_000)

    return Doing("read", read)


async def test_reading_on_in_a_long_file_is_progress(workspace: Workspace) -> None:
    """An agent that reads part after part of one file is not ended for finding nothing new."""
    scene = Scene(workspace, reading(40), [part_of_a_file()], 10_000)
    ended = await scene.run()
    assert (ended.status, ended.summary) == (Status.COMPLETE, "Answer.")
    assert len(scene.recorder.of_type(Compacted)) > 2
    assert not {"squeezed", "nothing_new"} & set(scene.reasons)


async def test_reading_the_same_parts_again_is_no_progress(workspace: Workspace) -> None:
    """Parts that were read before bring nothing new, however long they are."""

    async def read(words: str) -> ToolResult:
        return ToolResult(success=True, content=f"Part {int(words) % 2}\n" + "x" * 9_000)

    scene = Scene(workspace, reading(40), [Doing("read", read)], 10_000)
    ended = await scene.run()
    assert (ended.status, ended.reason) == (Status.PARTIAL, "its conversation kept filling up without anything new")


async def test_making_room_without_progress_ends(workspace: Workspace) -> None:
    """An agent whose conversation fills up again and again while it finds nothing is told, then ended."""

    def rambling(request: Request) -> Turn:
        if request.history[-1] == ASK:
            return says("I thought much.")
        return says("w" * 9_000, ("read", {"words": str(len(request.history))}))

    scene = Scene(workspace, rambling, [Doing("read")], 10_000)
    ended = await scene.run()
    assert (ended.status, ended.reason) == (
        Status.PARTIAL,
        "its conversation kept filling up without anything new",
    )
    assert scene.reasons.count("squeezed") == 1
    assert len(scene.recorder.of_type(Summarised)) == 2
    assert len(scene.client.requests) < 20


class Narrow:
    """A model with a window that only its refusals tell of."""

    def __init__(self, script: Script, chars: int) -> None:
        self._script = script
        self._chars = chars
        self.refused = 0

    async def generate(self, request: Request) -> Turn:
        """Refuse what is too long."""
        if sum(map(bytes_of, request.history)) > self._chars:
            self.refused += 1
            raise ModelError(ModelFault.CONTEXT_EXCEEDED, "too long")
        return self._script(request)


async def test_a_window_is_learnt_from_a_refusal(workspace: Workspace) -> None:
    """What was refused once is not sent again: from then on room is made before."""
    scene = Scene(workspace, reading(60), [reader(2_000)], 1_000_000)
    narrow = Narrow(reading(60), 30_000)
    scene.context = replace(scene.context, client=narrow)
    assert (await scene.run()).status is Status.COMPLETE
    cleared = scene.recorder.of_type(Compacted)
    assert [event.why for event in cleared][:2] == [Clearing.REFUSED, Clearing.FULL]
    assert narrow.refused == 1


async def test_what_clearing_leaves_is_summarised_where_it_is_refused_again(workspace: Workspace) -> None:
    """The latest results fill most of the window, and stay; the agent's own words before them are left out."""

    async def read(words: str) -> ToolResult:
        return ToolResult(success=True, content=words + "x" * (1_300 if int(words) < 4 else 9_000))

    def script(request: Request) -> Turn:
        number = taken(request)
        calls = [("read", {"words": str(one)}) for one in (range(4, 10) if number == 4 else [number])]
        return says("Answer.") if number == 10 else says("w" * 3_000, *calls)

    narrow = Narrow(script, 63_000)
    scene = Scene(workspace, script, [Doing("read", read)], 1_000_000)
    scene.context = replace(scene.context, client=narrow)
    ended = await scene.run()
    assert (ended.status, ended.reason) == (Status.COMPLETE, "answered")
    shortened = [type(event) for event in scene.recorder.events if isinstance(event, Compacted | Summarised)]
    assert shortened == [Compacted, Summarised]


class Dense(Narrow):
    """A model with such a window that counts a token for each byte."""

    async def generate(self, request: Request) -> Turn:
        """Refuse what is too long, and count the rest."""
        turn = await super().generate(request)
        usage = Usage(input_tokens=sum(map(bytes_of, request.history)), output_tokens=len(turn.text) + 1)
        return turn.model_copy(update={"usage": usage})


async def test_text_with_many_tokens_fits_the_window_as_the_model_counts_it(workspace: Workspace) -> None:
    """What a provider counted says how dense the next texts are, and how much clearing them frees: none is refused."""
    dense = Dense(reading(60), 40_000)
    scene = Scene(workspace, reading(1), [reader(2_000)], 40_000)
    scene.context = replace(scene.context, client=dense)
    assert (await scene.run()).status is Status.COMPLETE
    assert dense.refused == 0
    assert scene.recorder.of_type(Compacted)


async def test_a_summary_that_is_refused_or_empty_rests_on_the_record(workspace: Workspace) -> None:
    """The agent's last words and what is on record stand in for what the model did not write down."""

    def silent(request: Request) -> Turn:
        last = request.history[-1] == ASK
        return says("", stop=StopKind.REFUSAL) if last else reading(30, "Words of mine. " * 60)(request)

    scene = Scene(workspace, silent, [reader(50)], 10_000)
    assert (await scene.run()).status is Status.COMPLETE
    assert "Words of mine." in scene.recorder.of_type(Summarised)[0].text
    narrow = Narrow(reading(30, "Words of mine. " * 60), 20_000)
    again = Scene(workspace, reading(1), [reader(50)], 10_000)
    again.context = replace(again.context, client=narrow)
    assert (await again.run()).status is Status.COMPLETE
    assert "Words of mine." in again.recorder.of_type(Summarised)[0].text
    assert narrow.refused >= 1


async def test_a_shortened_run_cut_off_anywhere_goes_on_with_the_same_requests(workspace: Workspace) -> None:
    """Between any two records: the same requests, to the letter, and the same end."""

    def scene(*events: AnyEvent) -> Scene:
        return Scene(workspace, reading(30, "w" * 700), [reader(2_500)], 10_000, events)

    uncut = scene()
    ended = await uncut.run()
    kinds = {type(event) for event in uncut.recorder.events}
    assert {Compacted, Summarised} <= kinds
    for number in some(range(1, len(uncut.recorder.events))):
        events = uncut.recorder.events[:number]
        known = sum(isinstance(event, TurnTaken) for event in events)
        resumed = scene(*events)
        assert await resumed.run() == ended
        assert resumed.client.requests == uncut.client.requests[known:], f"cut after {events[-1]!r}"


class Finding(Doing):
    """Writes a megabyte, as the journal tells it."""

    async def execute(self, arguments: Arguments, context: ToolContext) -> ToolResult:  # noqa: ARG002
        """Tell of forty files."""
        words = str(vars(arguments)["words"])
        known = describe("x.md", "# A finding\n")
        paths = [f"{words}/part-{part}.md" for part in range(40)]
        files = [known.model_copy(update={"path": path, "bytes": 25_000}) for path in paths]
        return ToolResult(success=True, content="written", metadata={"files": files})


def tokens_of(request: Request) -> int:
    """About how many tokens a request has."""
    tools = sum(len(tool.model_dump_json()) for tool in request.tools)
    unseen = {"results": {"__all__": {"data", "sources"}}}
    blocks = sum(
        len(json.dumps(one.blocks)) if isinstance(one, Turn) else len(one.model_dump_json(exclude=unseen))
        for one in request.history
    )
    return (len(request.system) + tools + blocks) // 4


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [1, 20, pytest.param(HELPERS, marks=pytest.mark.slow)])
async def test_two_hundred_helpers_leave_their_orchestrator_a_small_conversation(at_once: int, tmp_path: Path) -> None:
    """One after the other or all at once, a megabyte of findings each: no request of the orchestrator's is large."""
    asked = 0

    def lead(request: Request) -> Turn:
        nonlocal asked
        if request.history[-1] == ASK:
            return says("All of them found that output rose. " * 40)
        if asked >= HELPERS:
            return says("Done.")
        first, asked = asked, asked + at_once
        tasks = [f"Look at part {number}. {'Look closely. ' * 20}" for number in range(first, asked)]
        return says("More.", *[help_from("searcher", task) for task in tasks])

    def search(request: Request) -> Turn:
        if len(request.history) == 1:
            return says("", ("find", {"words": request.agent}))
        return says("Output rose by 12 % [S1]. " * 400)

    stage = Stage(
        tmp_path,
        {"orchestrator": lead, "searcher": search},
        limits=Limits(max_steps=None, max_agents=HELPERS, max_parallel_agents=HELPERS),
        roles=roles_of(role("orchestrator", "call_agent", max_steps=HELPERS + 20), role("searcher", "find")),
        tools=[Finding("find")],
    )
    recorder = Recorder()
    stage.run_state = recorder.run_state
    ended = await stage.team(recorder.record).run_orchestrator("Question: what rose?")
    assert (ended.status, len(recorder.run_state.agents)) == (Status.COMPLETE, HELPERS + 1)
    largest = max(tokens_of(one) for one in stage.scripted.requests if one.role == "orchestrator")
    assert largest < DEFAULT_WINDOW_TOKENS
    if at_once == 20:
        assert "- searcher-90: complete; wrote searcher-90/part-0.md, " in recorder.of_type(Summarised)[-1].text
    assert largest > DEFAULT_WINDOW_TOKENS // 4, "the test would show nothing"


def test_what_is_put_back_is_what_the_journal_knows() -> None:
    """The plan as it stands, helpers with how they ended, and jobs; a helper is not told of other helpers."""
    plan = describe("plan.md", "x").model_copy(update={"path": "plan.md"})
    recorder = Recorder(
        [
            AgentStarted(agent="orchestrator", role="orchestrator", task="Question: x", max_steps=60),
            started(),
            ToolFinished(agent="searcher-1", call="c", name="write_file", success=True, content="", files=(plan,)),
            AgentFinished(agent="searcher-1", status=Status.PARTIAL, reason="step limit", summary=""),
        ]
    )
    shown = without_marks(
        compaction_note(
            recorder.state("orchestrator"), recorder.run_state, str.upper, lambda _agent: [own("- bash_1: running")]
        )
    )
    assert "- searcher-1: partial (step limit); wrote plan.md" in shown
    assert shown.endswith("Your background jobs:\n- bash_1: running")
    helper = without_marks(
        compaction_note(recorder.state(), recorder.run_state, lambda path: path * 3_000, lambda _agent: [])
    )
    assert helper.startswith("Current content of plan.md:\nplan.md")
    assert (helper.endswith("[...]"), "helpers" in helper) == (True, False)


def test_every_model_has_its_own_window() -> None:
    """As the price list knows it, else a careful guess; the stand-in, which plans by all it was told, has none."""
    plain = Settings()
    elsewhere = Settings(services=Services(openai_url="http://127.0.0.1:1/v1"))
    hosted = Settings(services=Services(openai_url="https://models.example/v1"))
    assert window_of(ModelRef("openai", "gpt-4o"), plain) == 128_000
    assert window_of(ModelRef("anthropic", "claude-opus-5-5"), plain) == 1_000_000
    assert window_of(ModelRef("openai", "gpt-3.5-turbo"), plain) == 16_385
    assert window_of(ModelRef("openai", "gpt-3.5-turbo"), elsewhere) == LOCAL_WINDOW_TOKENS
    assert window_of(ModelRef("openai", "gpt-3.5-turbo"), hosted) == DEFAULT_WINDOW_TOKENS
    told = elsewhere.model_copy(update={"context_window": 8_192})
    assert window_of(ModelRef("openai", "gpt-3.5-turbo"), told) == 8_192
    assert window_of(ModelRef("openai", "gpt-4o"), plain.model_copy(update={"context_window": 8_192})) == 8_192
    assert window_of(ModelRef("openai", "gpt-4o"), plain.model_copy(update={"context_window": 900_000})) == 128_000
    assert window_of(ModelRef("offline", "offline"), plain) is None


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        ("plan.md", True),
        ("work/Plan-2.md", True),
        ("todo.txt", True),
        ("plants.md", False),
        ("inputs/plant-log.md", False),
    ],
)
def test_a_plan_is_known_by_its_first_word(path: str, is_one: bool) -> None:  # noqa: FBT001 - of the table
    """A plan is never cleared; a file on plants is."""
    assert is_plan(path) is is_one
