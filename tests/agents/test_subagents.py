import asyncio
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from engine_stage import Doing, Recorder, contents, external, noon
from explorer.agents.budget import Budget
from explorer.agents.call_agent import OF_ORCHESTRATOR, subagent_result
from explorer.agents.context_block import RunFacts
from explorer.agents.roles import Role
from explorer.agents.run_rules import Model, TeamContext
from explorer.agents.subagents import Team
from explorer.agents.tool_calls import StoreFor
from explorer.journal.agent_state import AgentState
from explorer.journal.control import ControlKind, Inbox
from explorer.journal.journal import Journal
from explorer.journal.run_state import RunState
from explorer.run.finish import ReportContext, draft_problem
from explorer.schema.errors import ConfigError, ModelError, ModelFault
from explorer.schema.events import (
    AgentContinued,
    AgentFinished,
    AgentStarted,
    AnyEvent,
    Append,
    RoleLoaded,
    Source,
    Status,
    Steered,
    ToolFinished,
    ToolStarted,
)
from explorer.schema.messages import JsonObject, LLMClient, Request, Results, StopKind, TaskData, Turn, UserText
from explorer.schema.reasons import EndCause, EndReason, NoteReason, limit_reached
from explorer.schema.settings import Limits
from explorer.schema.tool import Arguments, SourceDraft, Tool, ToolContext, ToolResult
from explorer.testing import Script, ScriptedClient, says
from explorer.text.rendering import without_marks
from explorer.tools.files import file_tools
from explorer.tools.finish import FinishTool
from explorer.workspace.source_store import SourceStore
from explorer.workspace.workspace import Workspace, describe
from thoroughness import some

Scripts = dict[str, Sequence[Turn] | Script]
REPORT = (
    "# A good May\n\nSolar output rose by twelve percent in May [S1], says the plant's own log, and nothing "
    "else was found about it.\n"
)


def role(name: str, *tools: str, max_steps: int = 20) -> Role:
    """A role as a file would give it."""
    return Role.model_validate(
        {
            "name": name,
            "description": f"Works as {name}.",
            "tools": tools,
            "limits": {"max_steps": max_steps},
            "leads": name == "orchestrator",
            "writes_report": name == "writer",
            "prompt": f"You are the {name}.",
            "path": Path(f"roles/{name}.md"),
        }
    )


def roles_of(*known: Role) -> dict[str, Role]:
    """By name."""
    return {one.name: one for one in known}


ROLES = roles_of(
    role("orchestrator", "call_agent", "read_file", "search", "write_file", "finish_exploration"),
    role("searcher", "search", "write_file", "read_file"),
    role("writer", "read_file", "write_file"),
)


def help_from(agent_type: str, task: str, **more: Any) -> tuple[str, JsonObject]:
    """A `call_agent` call."""
    return "call_agent", {"agent_type": agent_type, "task_description": task, **more}


class Searching(Doing):
    """Always finds the same page."""

    async def execute(self, arguments: Arguments, context: ToolContext) -> ToolResult:
        """Store it."""
        words = vars(arguments)["words"]
        page = SourceDraft(url="https://example.com/log", title="Log", kind="page", via="direct", text="12 %")
        (source,) = await context.store([page])
        return ToolResult(success=True, content=f"{words}: [{source.id}] 12 %")


@dataclass
class Stage:
    """A team over a real folder; what it records goes to a journal on disk, or to a recorder."""

    folder: Path
    scripts: Scripts
    limits: Limits = field(default_factory=Limits)
    roles: Mapping[str, Role] = field(default_factory=lambda: ROLES)
    tools: Sequence[Tool] = ()
    client: LLMClient | None = None
    facts: RunFacts | None = None
    now: float = 0.0
    run_state: RunState = field(default_factory=RunState)
    budget: Budget = field(init=False)

    def __post_init__(self) -> None:
        """Set up the folder and what stands around it."""
        (self.folder / ".explorer").mkdir(parents=True, exist_ok=True)
        self.workspace = Workspace(self.folder)
        self.scripted = ScriptedClient(self.scripts)
        self.inbox = Inbox(self.folder / ".explorer")
        self.budget = Budget(self.limits, lambda: self.now)

    def team(self, record: Append) -> Team:
        """The team of one life of the run."""
        found = external("send")
        search = Searching("search")
        known = [
            *file_tools(self.workspace),
            search,
            found,
            FinishTool(lambda _is_empty: draft_problem(ReportContext(self.run_state, self.workspace))),
        ]
        model = Model("scripted:m", "m", self.client or self.scripted, lambda _input, _output: 0.0)
        parts = TeamContext(
            absent={},
            notifications=lambda _state: None,
            roles=self.roles,
            tools={tool.name: tool for tool in [*known, *self.tools]},
            model_of=lambda _role: model,
            workspace=self.workspace,
            run_state=self.run_state,
            record=record,
            budget=self.budget,
            inbox=self.inbox,
            clock=lambda: self.now,
            max_output_tokens=4_096,
            store=self._store(record),
            now=noon,
            facts=self.facts,
        )
        return Team(parts)

    def _store(self, record: Append) -> StoreFor:
        async def write(path: str, text: str) -> None:
            self.workspace.write_own(path, text)

        source_store = SourceStore(record, write, noon, self.run_state.sources.values())

        async def store(_tool: Tool, drafts: Sequence[SourceDraft]) -> list[Source]:
            return await source_store.store(drafts)

        return store

    async def lead(self, task: str = "Question: how was May?") -> AgentFinished:
        """One life of the run: open the journal, lead, close."""
        journal = Journal.open(self.folder / ".explorer", noon)
        try:
            self.run_state = RunState.of_records(journal.records)

            async def record(event: AnyEvent) -> None:
                await journal.append(event)
                self.run_state.apply(event)

            return await self.team(record).run_orchestrator(task)
        finally:
            journal.close()

    @property
    def lead_state(self) -> AgentState:
        """The orchestrator."""
        return self.run_state.agents["orchestrator"]

    def told(self, turn: int = 1) -> list[str]:
        """What the orchestrator read as the results of one of its turns."""
        results = [message for message in self.lead_state.messages if isinstance(message, Results)]
        return [without_marks(result.content) for result in results[turn - 1].results]

    def asked_of(self, agent: str) -> list[Request]:
        """All requests one agent made."""
        return [request for request in self.scripted.requests if request.agent == agent]


SEARCH: Sequence[Turn] = (
    says("", ("search", {"words": "May"})),
    says("", ("write_file", {"filepath": "may.md", "content": "# May\n\nOutput rose by 12 % [S1].\n"})),
    says("It rose by 12 % [S1]. I also wrote june.md and july.md.\n\n**Not known:** the cause."),
)
WRITE: Sequence[Turn] = (
    says("", ("write_file", {"filepath": "report.md", "content": REPORT, "mode": "overwrite"})),
    says("The report stands."),
)


async def test_a_helper_hands_back_what_the_journal_knows(tmp_path: Path) -> None:
    """Summary, status, open questions, and an index of the files that were written, not of those it boasts of."""
    stage = Stage(
        tmp_path, {"orchestrator": [says("", help_from("searcher", "May?")), says("It rose.")], "searcher": SEARCH}
    )
    ended = await stage.lead()
    assert (ended.status, ended.summary) == (Status.COMPLETE, "It rose.")
    assert [json.loads(content) for content in stage.told()] == [
        {
            "agent_id": "searcher-1",
            "status": "complete",
            "summary": "It rose by 12 % [S1]. I also wrote june.md and july.md.",
            "files": [{"path": "may.md", "title": "May", "lines": 3, "bytes": 33}],
            "open_questions": "the cause.",
        }
    ]
    assert list(stage.run_state.sources) == ["S1"]
    assert contents(tmp_path) == {"may.md": "# May\n\nOutput rose by 12 % [S1].\n"}


async def test_what_each_agent_is_told(tmp_path: Path) -> None:
    """The task, where to write, small files whole, a line for a long or binary one, and which are not there."""
    Workspace(tmp_path).write_text("notes/a.md", "\n# Notes on May\n\nlong text\n")
    Workspace(tmp_path).write_text("notes/long.md", "# All of May\n" + "x" * 7_000)
    files = ["notes/a.md", "notes/long.md", "notes/none.md", "../out.md"]
    call = help_from("searcher", " Look at May. ", output_dir="may/", context_files=files)
    stage = Stage(tmp_path, {"orchestrator": [says("", call), says("Done.")], "searcher": [says("Seen.")]})
    await stage.lead("Question: how was May?")
    assert stage.asked_of("orchestrator")[0].history == (UserText(text="Question: how was May?"),)
    (request,) = stage.asked_of("searcher-1")
    (task,) = request.history
    assert isinstance(task, UserText)
    assert task.text.startswith("<<task ")
    assert without_marks(task.text) == (
        f"Look at May.\n\nWrite your files under `may/`.\n\n{OF_ORCHESTRATOR}\n\n"
        "Files for you, whole:\n\nnotes/a.md:\n# Notes on May\n\nlong text\n\n"
        "Files for you (read them with read_file):\n- notes/long.md (2 lines, 7013 bytes): # All of May\n\n"
        "Files that you cannot be given:\n- notes/none.md: there is no file notes/none.md; list_files shows all files\n"
        "- ../out.md: '../out.md' leaves this run's folder; use a relative path without .."
    )
    assert task.task == TaskData(words="Look at May.", files=tuple((path, "") for path in files), folder="may")
    assert (request.system, request.role) == ("You are the searcher.", "searcher")
    assert [tool.name for tool in request.tools] == ["search", "write_file", "read_file"]
    described = next(tool for tool in stage.asked_of("orchestrator")[0].tools if tool.name == "call_agent").description
    assert described.endswith("Helpers:\n- searcher: Works as searcher.\n- writer: Works as writer.")


def by_task(request: Request) -> Turn:
    """A helper that writes one file named in its task, and says so."""
    task = request.history[0]
    assert isinstance(task, UserText)
    name = without_marks(task.text).split("\n")[0].split()[-1]
    if any(isinstance(message, Results) for message in request.history):
        return says(f"Wrote {name}.")
    return says("", ("write_file", {"filepath": name, "content": f"# {name}\n"}))


async def test_parallel_helpers_are_told_apart(tmp_path: Path) -> None:
    """Ids in call order, results in call order, each with its own file, and the role's head on record once."""
    calls = [help_from("searcher", f"Write {name}") for name in ("c.md", "a.md", "b.md")]
    stage = Stage(tmp_path, {"orchestrator": [says("", *calls), says("Done.")], "searcher": by_task})
    await stage.lead()
    told = [json.loads(content) for content in stage.told()]
    assert [answer["agent_id"] for answer in told] == ["searcher-1", "searcher-2", "searcher-3"]
    assert [answer["files"][0]["path"] for answer in told] == ["c.md", "a.md", "b.md"]
    events = [record.event for record in records_of(tmp_path)]
    assert sum(isinstance(event, RoleLoaded) and event.role == "searcher" for event in events) == 1
    parents = [event.parent_call for event in events if isinstance(event, AgentStarted) and event.parent]
    assert sorted(parents) == ["orchestrator.t1.1", "orchestrator.t1.2", "orchestrator.t1.3"]


async def test_no_more_helpers_at_once_than_allowed(tmp_path: Path) -> None:
    """Nine are asked for, three work at a time, all of them get to work."""
    at_work: list[int] = []
    working = 0
    three = asyncio.Barrier(3)

    async def work(_words: str) -> str:
        nonlocal working
        working += 1
        at_work.append(working)
        await asyncio.wait_for(three.wait(), 5)
        working -= 1
        return "done"

    roles = {**ROLES, "searcher": role("searcher", "work")}
    calls = [help_from("searcher", str(number)) for number in range(9)]
    scripts: Scripts = {
        "orchestrator": [says("", *calls), says("Done.")],
        "searcher": [says("", ("work", {})), says("ok")],
    }
    limits = Limits(max_parallel_agents=3)
    stage = Stage(tmp_path, scripts, limits, roles, [Doing("work", work)])
    await stage.lead()
    assert (len(at_work), max(at_work)) == (9, 3)


async def test_helpers_started_together_count_each_other(tmp_path: Path) -> None:
    """With room for three, the third searcher of one turn is refused, and a later one: one place is the writer's."""
    # While the first call's start is being written, those of the helpers wait for one common sync.
    calls = [("read_file", {"filepath": "x"}), *[help_from("searcher", f"Write {number}.md") for number in range(3)]]
    follow = help_from("searcher", "Write 9.md")
    again = help_from("searcher", "Write 8.md", agent_id="searcher-1")
    writer = help_from("writer", "Write 7.md")
    scripts: Scripts = {"orchestrator": [says("", *calls), says("", follow, again, writer), says("Done.")]}
    scripts |= {"searcher": by_task, "writer": by_task}
    stage = Stage(tmp_path, scripts, Limits(max_agents=3))
    await stage.lead()
    assert sorted(stage.run_state.agents) == ["orchestrator", "searcher-1", "searcher-2", "writer-1"]
    refused = [content for turn in (1, 2) for content in stage.told(turn) if content.startswith("this run may start 3")]
    assert len(refused) == 2
    assert "give an earlier helper a further task by its agent_id" in refused[0]
    assert json.loads(stage.told(2)[1])["agent_id"] == "searcher-1"


async def test_a_helper_asked_again_remembers(tmp_path: Path) -> None:
    """Given its id it goes on with all it saw; its index holds the files of both tasks, its turns are renewed."""

    def search(request: Request) -> Turn:
        words = [message.task.words for message in request.history if isinstance(message, UserText) and message.task]
        done = sum(isinstance(message, Turn) for message in request.history)
        script = [
            says("", ("write_file", {"filepath": "one.md", "content": "1"})),
            says("First."),
            says("", ("write_file", {"filepath": "two.md", "content": "2"})),
            says(f"Second, after {words[0]!r}."),
        ]
        return script[done]

    scripts: Scripts = {
        "orchestrator": [
            says("", help_from("searcher", "one")),
            says("", help_from("searcher", "two", agent_id="searcher-1", max_steps=2)),
            says("Done."),
        ],
        "searcher": search,
    }
    stage = Stage(tmp_path, scripts)
    await stage.lead()
    first, second = json.loads(stage.told(1)[0]), json.loads(stage.told(2)[0])
    assert [file["path"] for file in second["files"]] == ["one.md", "two.md"]
    assert (first["summary"], second["summary"]) == ("First.", "Second, after 'one'.")
    assert list(stage.run_state.agents) == ["orchestrator", "searcher-1"]
    requests = stage.asked_of("searcher-1")
    assert requests[2].history[: len(requests[1].history)] == requests[1].history
    assert stage.run_state.agents["searcher-1"].step_limit == 4


async def test_calls_for_help_that_cannot_be_met_are_told(tmp_path: Path) -> None:
    """Unknown helpers, unknown or busy ids, itself, folders that are not its own."""
    bad: list[tuple[tuple[str, JsonObject], str]] = [
        (help_from("reader", "x"), "there is no helper called 'reader'; your helpers: searcher, writer"),
        (help_from("orchestrator", "x"), "there is no helper called 'orchestrator'; your helpers: searcher, writer"),
        (
            help_from("searcher", "x", agent_id="searcher-9"),
            "there is no helper 'searcher-9' in this run; there are: none yet",
        ),
        (help_from("searcher", "x", agent_id="orchestrator"), "there is no helper 'orchestrator' in this run"),
        (help_from("searcher", "x", output_dir=".explorer/sources"), "the folder .explorer/ is the engine's own"),
        (help_from("searcher", "x", output_dir="../up"), "'../up' leaves this run's folder"),
        (help_from("searcher", ""), "`task_description`: String should have at least 1 character"),
        (("call_agent", {"agent": "searcher", "task_description": "x"}), "no argument `agent` (did you mean `agent_"),
    ]
    stage = Stage(tmp_path, {"orchestrator": [says("", *[call for call, _ in bad]), says("Done.")]})
    await stage.lead()
    for content, (_, words) in zip(stage.told(), bad, strict=True):
        assert words in content
    assert list(stage.run_state.agents) == ["orchestrator"]


async def test_a_helper_at_work_is_not_given_a_second_task(tmp_path: Path) -> None:
    """Two further tasks for one helper in one turn: one is done, the other told to wait."""
    twice = [help_from("searcher", f"Write {name}.md", agent_id="searcher-1") for name in "xy"]
    scripts: Scripts = {
        "orchestrator": [says("", help_from("searcher", "Write a.md")), says("", *twice), says("Done.")],
        "searcher": by_task,
    }
    stage = Stage(tmp_path, scripts)
    await stage.lead()
    answers = stage.told(2)
    assert "searcher-1 is still at work; ask it again when it has answered" in answers
    assert sum(json.loads(answer)["agent_id"] == "searcher-1" for answer in answers if answer.startswith("{")) == 1
    assert sum(isinstance(record.event, AgentContinued) for record in records_of(tmp_path)) == 1


def records_of(folder: Path) -> Sequence[Any]:
    """What is on disk."""
    journal = Journal.open(folder / ".explorer", noon)
    journal.close()
    return journal.records


def test_roles_are_checked_before_anything_starts(tmp_path: Path) -> None:
    """A tool that does not exist, and help for a helper, are told with the role's file."""
    for faulty, words in (
        (role("searcher", "serch"), "roles/searcher.md: there is no tool 'serch'"),
        (role("searcher", "call_agent"), "roles/searcher.md: only the role that leads may call helpers"),
    ):
        with pytest.raises(ConfigError) as caught:
            Stage(tmp_path, {}, roles={**ROLES, "searcher": faulty}).team(Recorder().record)
        assert caught.value.message == words
        assert caught.value.hint


async def test_a_helper_that_fails_is_told_whole(tmp_path: Path) -> None:
    """The failure is an error for the orchestrator, with what was written all the same, as JSON; the run goes on."""
    long = "x" * 20_000
    scripts: Scripts = {
        "orchestrator": [says("", help_from("searcher", "x")), says("Then without it.")],
        "searcher": [
            says("", *[("write_file", {"filepath": f"{n}{'y' * 60}.md", "content": f"# {long}"}) for n in range(40)]),
            *[says(long, stop=StopKind.REFUSAL).model_copy(update={"stop_detail": long})] * 2,
        ],
    }
    stage = Stage(tmp_path, scripts)
    assert (await stage.lead()).status is Status.COMPLETE
    (content,) = stage.told()
    answer = json.loads(content)
    assert answer["status"] == "failed"
    assert answer["summary"].startswith("Ended early: the model declined: xxx")
    assert answer["files"][0]["path"].startswith("0yyy")
    results = stage.lead_state.messages[2]
    assert isinstance(results, Results)
    assert results.results[0].is_error


@pytest.mark.parametrize("letter", ["a", "五", "\n", '"', "\\", "🧪"])
def test_a_result_is_small_however_much_was_found(letter: str) -> None:
    """500 files and endless words in any script stay under 6 kB; how many files are left out is said."""
    state = AgentState("searcher-1", role="searcher")
    for number in range(500):
        written = describe(f"topics/{number:03}.md", f"# {letter.strip() * 500}")
        state.files[written.path] = written
    words = letter * 20_000
    summary = f"{words}\nNot known: {words}"
    finished = AgentFinished(agent="searcher-1", status=Status.PARTIAL, reason=words, summary=summary)
    result = subagent_result(state, finished, full=False)
    assert len(result.content.encode()) <= 6_144
    answer = json.loads(without_marks(result.content))
    listed = answer["files"]
    assert listed[-1] == {"path": "...", "title": f"{500 - len(listed) + 1} more files; see list_files"}
    assert listed[0]["path"] == "topics/000.md"
    assert "[...]" in answer["summary"]
    assert len(result.metadata["output_files"]) == 500
    full = subagent_result(state, finished, full=True)
    assert summary.strip() in json.loads(without_marks(full.content))["summary"] or not summary.strip()


async def test_a_provider_that_is_down_leaves_the_team_resumable(tmp_path: Path) -> None:
    """A helper's provider error ends this life; the next one finishes the same helper and pays nothing twice."""
    faults = [ModelError(ModelFault.OVERLOADED, "529 overloaded")]
    scripted = ScriptedClient(
        {
            "orchestrator": [says("", *[help_from("searcher", f"Write {n}.md") for n in "ab"]), says("Done.")],
            "searcher": by_task,
        }
    )

    class Flaky:
        """Fails once, in the middle of the second helper."""

        async def generate(self, request: Request) -> Turn:
            """Ask the script."""
            if request.agent == "searcher-2" and len(request.history) > 1 and faults:
                raise faults.pop()
            return await scripted.generate(request)

    with pytest.raises(ModelError, match="529 overloaded"):
        await Stage(tmp_path, {}, client=Flaky()).lead()
    stage = Stage(tmp_path, {}, client=Flaky())
    assert (await stage.lead()).status is Status.COMPLETE
    assert [json.loads(content)["agent_id"] for content in stage.told()] == ["searcher-1", "searcher-2"]
    assert contents(tmp_path) == {"a.md": "# a.md\n", "b.md": "# b.md\n"}
    assert sum(request.agent == "orchestrator" for request in scripted.requests) == 2


async def test_winding_down_leaves_only_writing(tmp_path: Path) -> None:
    """At the limit helpers end with what they have, exploring is refused, a writer may still be asked, and finishes."""
    endless: Script = lambda _request: says("", ("search", {"words": str(len(_request.history))}))  # noqa: E731
    scripts: Scripts = {
        "orchestrator": [
            says("", help_from("searcher", "all")),
            says("", ("search", {"words": "more"}), help_from("searcher", "more"), help_from("writer", "Write.")),
            says("", ("finish_exploration", {"summary": "As far as it went."})),
        ],
        "searcher": endless,
        "writer": WRITE,
    }
    stage = Stage(
        tmp_path, scripts, Limits(max_steps=100), {**ROLES, "searcher": role("searcher", "search", max_steps=1000)}
    )
    stage.budget = Budget(Limits(max_steps=14), lambda: 0.0)
    ended = await stage.lead()
    helped = json.loads(stage.told(1)[0])
    assert helped["summary"].startswith("Ended early: step limit")
    notes = [message.text for message in stage.lead_state.messages if isinstance(message, UserText)]
    assert any("Only writing is left" in note for note in notes)
    searched, more, written = stage.told(2)
    refusal = "refused: the run is winding down (step limit); only the report may be worked on"
    assert (searched, more) == (refusal, refusal)
    assert (json.loads(written)["agent_id"], json.loads(written)["status"]) == ("writer-1", "complete")
    assert contents(tmp_path)["report.md"] == REPORT
    assert (ended.status, ended.reason) == (Status.PARTIAL, "step limit")
    assert stage.run_state.steps <= 14


@pytest.mark.parametrize(("explored", "is_over"), [(30_000, False), (3_300, True), (100, True)])
async def test_a_writer_with_little_room_uses_what_is_held_back(
    tmp_path: Path, explored: int, *, is_over: bool
) -> None:
    """A report is not written in short replies while there is room for whole ones: exploring is over instead."""

    def lead(request: Request) -> Turn:
        stage.budget.exploration.max_tokens = explored
        return says("Done.") if len(request.history) > 2 else says("", help_from("writer", "Write."))

    stage = Stage(tmp_path, {"orchestrator": lead, "writer": WRITE}, Limits(max_tokens=60_000))
    await stage.lead()
    asked = [request for request in stage.scripted.requests if request.agent == "writer-1"]
    assert [request.max_output_tokens for request in asked] == [4_096, 4_096]
    assert stage.budget.winding_down == ("token limit" if is_over else "")
    told = [message.text for message in asked[-1].history if isinstance(message, UserText)]
    assert ("Exploring is over (<<token limit>>): write report.md now, from the findings so far." in told) == (
        explored == 3_300
    )


async def test_a_role_of_another_name_writes_the_report(tmp_path: Path) -> None:
    """What is held back is for the role whose file says that it writes the report, and for no other called writer."""
    chronicler = role("chronicler", "write_file").model_copy(update={"writes_report": True})
    writer = role("writer", "write_file").model_copy(update={"writes_report": False})
    both = says("", help_from("writer", "Write."), help_from("chronicler", "Write."))
    scripts: Scripts = {"orchestrator": [both, says("Done.")], "chronicler": WRITE}
    stage = Stage(tmp_path, scripts, Limits(max_agents=0), {**ROLES, "writer": writer, "chronicler": chronicler})
    stage.budget.wind_down(limit_reached(EndCause.COST_LIMIT))
    stage.budget.exploration.max_steps = 0
    await stage.lead()
    refused, written = stage.told()
    assert refused == "refused: the run is winding down (cost limit); only the report may be worked on"
    assert json.loads(written)["status"] == "complete"
    assert contents(tmp_path)["report.md"] == REPORT


async def test_a_writer_is_allowed_beyond_the_number_of_helpers(tmp_path: Path) -> None:
    """Once the run winds down, the report is worth one helper more than the limit."""
    scripts: Scripts = {"orchestrator": [says("", help_from("writer", "Write.")), says("Done.")], "writer": WRITE}
    stage = Stage(tmp_path, scripts, Limits(max_agents=0))
    stage.budget.wind_down(EndReason("stopped by you"))
    await stage.lead()
    assert json.loads(stage.told()[0])["agent_id"] == "writer-1"


@pytest.mark.slow
@pytest.mark.parametrize("most", [5, 8, 13, 30])
async def test_steps_of_all_agents_stay_within_the_limit(tmp_path: Path, most: int) -> None:
    """Ten helpers at once that never end by themselves take no step too many."""
    endless: Script = lambda request: says("", ("search", {"words": str(len(request.history))}))  # noqa: E731
    calls = [help_from("searcher", str(number)) for number in range(10)]

    def lead(request: Request) -> Turn:
        taken = sum(isinstance(message, Turn) for message in request.history)
        return [says("", *calls), *[says("", ("read_file", {"filepath": f"{n}"})) for n in range(50)]][taken]

    stage = Stage(tmp_path, {"orchestrator": lead, "searcher": endless}, Limits(max_steps=most))
    ended = await stage.lead()
    assert ended.status is Status.PARTIAL
    assert stage.run_state.steps <= most
    assert all(state.finished is not None for state in stage.run_state.agents.values())


async def test_orders_from_outside_are_taken_once(tmp_path: Path) -> None:
    """Words reach the orchestrator at its next turn, a stop winds down; both are on record and gone from the inbox."""
    stage = Stage(tmp_path, {})
    ticks = iter(range(10))
    stage.inbox.leave(ControlKind.STEER, "Look at June too.", lambda: next(ticks))
    stage.scripted = ScriptedClient({"orchestrator": [says("June it is.")]})
    assert (await stage.lead()).summary == "June it is."
    (request,) = stage.asked_of("orchestrator")
    assert request.history[-1] == UserText(text="Look at June too.")
    assert stage.inbox.waiting() == []
    assert sum(isinstance(record.event, Steered) for record in records_of(tmp_path)) == 1
    stage.inbox.leave(ControlKind.STOP, "stopped by you", lambda: next(ticks))
    assert not await stage.team(Recorder().record).rules.has_unanswered_message()
    assert stage.budget.winding_down == "stopped by you"


@pytest.mark.parametrize("steered", [False, True])
async def test_late_words_are_only_what_the_user_said(tmp_path: Path, *, steered: bool) -> None:
    """An orchestrator that ended without an answer is asked again for words of the user, once, never for a note."""
    recorder = Recorder()
    stage = Stage(tmp_path, {}, run_state=recorder.run_state)
    rejecting = ModelError(ModelFault.REJECTED, "400")
    asked: list[Request] = []

    class Rejecting:
        """A model that takes nothing."""

        async def generate(self, request: Request) -> Turn:
            """Refuse."""
            asked.append(request)
            raise rejecting

    stage.client = Rejecting()
    team = stage.team(recorder.record)
    assert (await team.run_orchestrator("task")).status is Status.FAILED
    if steered:
        await recorder.record(Steered(agent="orchestrator", text="And June?"))
    rounds = 0
    while await team.rules.has_unanswered_message():
        rounds += 1
        assert rounds < 5
        await team.run_again(NoteReason.LATE_WORDS)
    assert (rounds, len(asked)) == ((1, 2) if steered else (0, 1))


class Down:
    """A provider that is down for one role, and otherwise says what a script says."""

    def __init__(self, scripts: Scripts, role: str) -> None:
        self._scripted = ScriptedClient(scripts)
        self._role = role

    async def generate(self, request: Request) -> Turn:
        """Fail, or speak."""
        if request.role == self._role:
            raise ModelError(ModelFault.TRANSPORT, "the provider is down")
        return await self._scripted.generate(request)


async def test_what_a_role_was_stays_for_the_whole_run(tmp_path: Path) -> None:
    """A resumed run shows its models the same head, though the role's file has changed or its tool is gone."""
    lead = [says("", help_from("searcher", "x")), says("Done.")]
    with pytest.raises(ModelError):
        await Stage(tmp_path, {}, client=Down({"orchestrator": lead}, "searcher")).lead()
    changed = {**ROLES, "searcher": role("searcher", "read_file").model_copy(update={"prompt": "Changed."})}
    scripts: Scripts = {"orchestrator": lead, "searcher": [says("", ("search", {"words": "x"})), says("Seen.")]}
    again = Stage(tmp_path, scripts, roles=changed)
    await again.lead()
    request, _ = again.asked_of("searcher-1")
    assert request.system == "You are the searcher."
    assert [tool.name for tool in request.tools] == ["search", "write_file", "read_file"]
    assert json.loads(again.told()[0])["summary"] == "Seen."


async def test_a_role_that_is_gone_is_asked_for(tmp_path: Path) -> None:
    """A run cannot go on as an orchestrator that is not there; the user is told what to give."""
    with pytest.raises(ModelError):
        await Stage(tmp_path, {}, client=Down({}, "orchestrator")).lead()
    chief = role("chief").model_copy(update={"leads": True})
    without = {"chief": chief, **{name: known for name, known in ROLES.items() if name != "orchestrator"}}
    with pytest.raises(ConfigError, match="used the role 'orchestrator', which is not there now") as caught:
        await Stage(tmp_path, {}, roles=without).lead()
    assert "--roles" in caught.value.hint


# From here on: a whole team, cut off anywhere.


def whole_team() -> Scripts:
    """Two helpers at once, a look into a file, one of them again, a writer, the end."""
    return {
        "orchestrator": [
            says("Two looks.", help_from("searcher", "Write a.md"), help_from("searcher", "Write b.md")),
            says("", ("read_file", {"filepath": "a.md"}), help_from("searcher", "Write c.md", agent_id="searcher-2")),
            says("", help_from("writer", "Write it up.", context_files=["a.md", "b.md", "c.md"])),
            says("", ("finish_exploration", {"summary": "May was good [S1]."})),
        ],
        "searcher": _searching,
        "writer": WRITE,
    }


def _searching(request: Request) -> Turn:
    tasks = [one.task.words for one in request.history if isinstance(one, UserText) and one.task is not None]
    name = tasks[-1].split()[-1]
    last = request.history[-1]
    if isinstance(last, UserText):
        return says("", ("search", {"words": name}), ("send", {"words": name}))
    if isinstance(last, Results) and "Wrote" in last.results[-1].content:
        return says(f"{name} holds it [S1].")
    return says("", ("write_file", {"filepath": name, "content": f"# {name}\n\n12 % [S1]\n"}))


SENDING = {**ROLES, "searcher": role("searcher", "search", "send", "write_file")}


@pytest.mark.slow
async def test_a_team_cut_off_anywhere_ends_the_same(tmp_path: Path) -> None:
    """From every prefix of its journal the run ends alike: the same helpers, files, report and sources.

    Helpers keep their ids, none is started twice, and none of what was sent out is sent again.
    """
    recorder = Recorder()
    sent: list[str] = []
    moments: list[tuple[tuple[AnyEvent, ...], Path, tuple[str, ...]]] = []

    def take() -> None:
        copy = tmp_path / "copies" / str(len(moments))
        shutil.copytree(tmp_path / "run", copy, ignore=shutil.ignore_patterns("*.tmp"))
        moments.append((tuple(recorder.events), copy, tuple(sent)))

    def stage_at(folder: Path, recorder: Recorder, sent: list[str]) -> Stage:
        async def send(words: str) -> str:
            sent.append(words)
            return "sent"

        return Stage(folder, whole_team(), roles=SENDING, tools=[external("send", send)], run_state=recorder.run_state)

    stage = stage_at(tmp_path / "run", recorder, sent)
    recorder.look = take
    ended = await stage.team(recorder.record).run_orchestrator("Question: how was May?")
    assert (ended.status, ended.reason, ended.summary) == (Status.COMPLETE, "finished", "May was good [S1].")
    assert sorted(sent) == ["a.md", "b.md", "c.md"]
    files = contents(tmp_path / "run")
    assert sorted(files) == ["a.md", "b.md", "c.md", "report.md"]
    assert len(moments) > 80
    for number, (events, copy, sent_before) in some(enumerate(moments)):
        again, sent_again = Recorder(events), list(sent_before)
        folder = tmp_path / "again" / str(number)
        shutil.copytree(copy, folder)
        where = f"cut at moment {number}, after {len(events)} events"
        resumed = (
            await stage_at(folder, again, sent_again).team(again.record).run_orchestrator("Question: how was May?")
        )
        assert resumed == ended, where
        assert contents(folder) == files, where
        assert sorted(again.run_state.agents) == sorted(recorder.run_state.agents), where
        assert list(again.run_state.sources) == ["S1"], where
        begun = sum(isinstance(event, ToolStarted) and event.name == "send" for event in events)
        assert len(set(sent_again)) == len(sent_again) == len(sent_before) + 3 - begun, where
        starts = [event.parent_call for event in again.events if isinstance(event, AgentStarted | AgentContinued)]
        assert len(starts) == len(set(starts)) == 5, where
        keys = [event.call for event in again.events if isinstance(event, ToolFinished)]
        assert len(keys) == len(set(keys)), where


async def test_a_limit_of_tool_calls_is_never_passed(tmp_path: Path) -> None:
    """Calls made at once count each other; at the limit the run winds down and the report is still written."""
    many: Script = lambda request: says(  # noqa: E731
        "", *[("search", {"words": f"{len(request.history)}-{number}"}) for number in range(10)]
    )
    scripts: Scripts = {
        "orchestrator": [
            says("", help_from("searcher", "all")),
            says("", help_from("writer", "Write.")),
            says("", ("finish_exploration", {"summary": "As far as it went."})),
        ],
        "searcher": many,
        "writer": WRITE,
    }
    stage = Stage(
        tmp_path, scripts, Limits(max_tool_calls=20), {**ROLES, "searcher": role("searcher", "search", max_steps=1000)}
    )
    await stage.lead()
    assert json.loads(stage.told(1)[0])["summary"].startswith("Ended early: tool call limit")
    assert contents(tmp_path)["report.md"] == REPORT
    assert stage.run_state.calls <= 20


@pytest.mark.parametrize("place", ["request", "call"])
async def test_a_stop_that_is_withdrawn_ends_no_helper(tmp_path: Path, place: str) -> None:
    """Ctrl-C pressed twice at once, in a helper's request and between two: the helper continues when it is resumed."""
    stage = Stage(tmp_path, {})

    def press_twice() -> None:
        stage.budget.stop("interrupted by the user")
        stage.budget.withdraw("interrupted by the user")

    class Pressing(Searching):
        """Searches, and meets the user's signals."""

        async def execute(self, arguments: Arguments, context: ToolContext) -> ToolResult:
            """Find the page."""
            if place == "call":
                press_twice()
            return await super().execute(arguments, context)

    class Asked:
        """Asks for a helper, whose second request never ends."""

        async def generate(self, request: Request) -> Turn:
            """Answer."""
            if replies:
                return replies.pop(0)
            second.set()
            if place == "request":
                press_twice()
            await asyncio.Event().wait()
            raise AssertionError(request)

    replies = [says("", help_from("searcher", "Search.")), says("", ("search", {"words": "may"}))]
    second = asyncio.Event()
    stage.client, stage.tools = Asked(), [Pressing("search")]
    task = asyncio.create_task(stage.lead())
    waiting = asyncio.create_task(second.wait())
    await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
    for _ in range(20):
        await asyncio.sleep(0)
    task.cancel()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert second.is_set()
    assert not any(isinstance(record.event, AgentFinished) for record in records_of(tmp_path))
