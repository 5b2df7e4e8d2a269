"""What the core's tests stand on: a fixed clock, one event of every kind, rooms for agents without a disk journal."""

import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from explorer.agents.budget import Budget
from explorer.agents.decisions import ending
from explorer.agents.loop import AgentContext, PromptPrefix
from explorer.agents.policies import refuse_repetition
from explorer.agents.tool_calls import Authorize, CallServices
from explorer.journal.agent_state import AgentState
from explorer.journal.run_state import RunState
from explorer.schema.events import (
    AgentContinued,
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalAnswer,
    ApprovalDecided,
    CitationsJudged,
    Compacted,
    FileChange,
    LimitInUse,
    McpTool,
    McpToolsListed,
    ModelInUse,
    NoteAdded,
    PathMoved,
    PlanDecided,
    PlanProposed,
    ReasoningDropped,
    Repaired,
    RequestSent,
    RoleLoaded,
    RoundAssessed,
    RunFinished,
    RunForked,
    RunStarted,
    SandboxChosen,
    SessionConfigured,
    Source,
    SourceRecorded,
    Status,
    Steered,
    StopAsked,
    Summarised,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnTaken,
    WrittenFile,
)
from explorer.schema.messages import LLMClient, ToolSchema, Usage
from explorer.schema.plan import AnswerState, Plan, PlanVerdict, QuestionAssessment, SubQuestion
from explorer.schema.settings import Limits
from explorer.schema.tool import Arguments, Effect, Tool, ToolContext, ToolResult
from explorer.schema.toolbox import Toolbox
from explorer.testing import says
from explorer.text.rendering import ModelText, without_marks
from explorer.tools.files import file_tools
from explorer.workspace.workspace import Workspace

NOON = datetime(2026, 8, 10, 12, 0, tzinfo=UTC)
GOLDEN = Path(__file__).parent / "golden"


def noon() -> datetime:
    """A clock that stands still."""
    return NOON


def source(identifier: str, **fields: Any) -> Source:
    """A stored source."""
    known: dict[str, Any] = {
        "id": identifier,
        "url": f"https://www.example.com/{identifier}",
        "title": f"Title of {identifier}",
        "kind": "page",
        "via": "direct",
        "published": "2026-08-09T10:00:00Z",
        "retrieved": NOON,
        "sha256": "0" * 64,
        "chars": 10,
    }
    return Source.model_validate(known | fields)


PLAN = Plan(
    understanding="x", questions=(SubQuestion(id="q1", question="What boots?", sources=("a list",), helper="searcher"),)
)


def one_of_each() -> list[AnyEvent]:
    """A small run with every type of event in it, in an order that makes sense."""
    file = WrittenFile(path="notes/a.md", title="Notes", lines=3, bytes=30, sha256="1" * 64)
    search = says("I search.", ("search", {"query": '熱い "話題"\n\u2028 \0 end'}))
    hand_over = says("", ("call_agent", {"agent_type": "searcher", "task_description": "look"}))
    schema = ToolSchema(name="search", description="Search.", parameters={"type": "object", "properties": {}})
    return [
        RunStarted(run_id="20260810-120000-q-0001", question="What is notable?", engine="0.1.0", settings={"a": [1]}),
        RoleLoaded(role="orchestrator", model="scripted:m", system="Lead.", tools=(schema,), max_steps=60),
        AgentStarted(agent="orchestrator", role="orchestrator", task="Question: x", max_steps=60),
        TurnFailed(agent="orchestrator", fault="overloaded", message="529", attempt=1, waits_s=0.5),
        TurnTaken(agent="orchestrator", turn=hand_over, seconds=1.25),
        ToolStarted(agent="orchestrator", call="orchestrator.t1.1", name="call_agent", effect="child"),
        RoleLoaded(role="searcher", model="scripted:m", system="Search.", tools=(schema,), max_steps=25),
        AgentStarted(
            agent="searcher-1",
            role="searcher",
            parent="orchestrator",
            parent_call="orchestrator.t1.1",
            task="look",
            max_steps=25,
        ),
        TurnTaken(agent="searcher-1", turn=search, seconds=0.5),
        ToolStarted(
            agent="searcher-1",
            call="searcher-1.t1.1",
            name="search",
            effect="checked",
            change=FileChange(path="notes/a.md", before="", after="1" * 64),
        ),
        SourceRecorded(source=source("S1", flags=("paywall",))),
        ToolFinished(
            agent="searcher-1",
            call="searcher-1.t1.1",
            name="search",
            success=True,
            content="found [S1]",
            files=(file,),
            sources=("S1",),
        ),
        NoteAdded(agent="searcher-1", text="Two turns left.", reason="wrap_up"),
        Compacted(agent="searcher-1", before=2),
        Summarised(agent="searcher-1", before=1, text="The exchanges before this were left out."),
        ReasoningDropped(agent="searcher-1", before=1),
        TurnTaken(agent="searcher-1", turn=says("One story [S1].", cost_usd=0.25), seconds=0.5),
        AgentFinished(agent="searcher-1", status=Status.COMPLETE, reason="answered", summary="One story [S1]."),
        ToolFinished(
            agent="orchestrator", call="orchestrator.t1.1", name="call_agent", success=True, content='{"files": []}'
        ),
        Steered(agent="orchestrator", text="Be brief."),
        TurnTaken(agent="orchestrator", turn=says("Done."), seconds=0.5),
        AgentFinished(agent="orchestrator", status=Status.COMPLETE, reason="answered", summary="Done."),
        RunFinished(status=Status.PARTIAL, reason="no report was written"),
        Repaired(cut_bytes=7),
        RunForked(run_id="20260811-120000-q-0002", of="20260810-120000-q-0001", shared=21),
        StopAsked(order="00000000001786363200-abcdef", reason="stopped by you"),
        CitationsJudged(
            model="m",
            asked=3,
            carried=1,
            not_carried=1,
            unclear=1,
            usage=Usage(input_tokens=7, output_tokens=1),
            cost_usd=0.0,
        ),
        ApprovalDecided(
            agent="searcher-1", call="searcher-1.t1.1", name="search", rule="ask search", answer=ApprovalAnswer.ONCE
        ),
        PathMoved(path="report.md", to="report.md.moved-1"),
        SandboxChosen(tier="landlock", why="landlock: stopped all of 11 attacks"),
        RequestSent(agent="orchestrator", model="m", input_tokens=9, output_tokens=5, cost_usd=0.5),
        SessionConfigured(
            models={"orchestrator": ModelInUse(model="scripted:m", why="set by flag --model", before="offline")},
            search=("brave", "tavily-keyless"),
            search_why="BRAVE_API_KEY is set",
            shell="landlock",
            shell_why="landlock: stopped all of 11 attacks",
            limits={
                "max_steps": LimitInUse(value=300, origin="default"),
                "max_cost_usd": LimitInUse(value=0.5, origin="flag --max-cost"),
                "max_time_s": LimitInUse(value=None, origin="environment EXPLORER_MAX_TIME"),
            },
        ),
        AgentContinued(agent="orchestrator", task="Go on.", max_steps=60),
        McpToolsListed(
            server="forum",
            tools=(
                McpTool(
                    name="mcp__forum__look",
                    remote="look",
                    description="Tool look of the MCP server forum, which says: <<Looks.>>",
                    parameters={"type": "object", "properties": {}},
                    effect="pure",
                    sha256="2" * 64,
                ),
            ),
        ),
        PlanProposed(agent="orchestrator", call="orchestrator.t3.1", plan=PLAN, spent_usd=0.25, waits=True),
        PlanDecided(verdict=PlanVerdict.EDITED, words="", plan=PLAN),
        RoundAssessed(
            agent="orchestrator",
            call="orchestrator.t4.1",
            number=1,
            is_interesting=True,
            questions=(QuestionAssessment(question="q1", state=AnswerState.OPEN, would_settle="a photo"),),
            further=(SubQuestion(id="q2", question="Who owns it?", helper="searcher", lookups=3),),
            new_sources=("S1",),
        ),
    ]


class SayArguments(Arguments):
    """Of `say`."""

    words: str = Field(default="", description="Words")


class Doing(Tool):
    """A tool that counts how often it was run and does what it is told to."""

    name = "doing"
    description = "Does."
    arguments = SayArguments

    def __init__(
        self, name: str = "doing", action: Callable[[str], Awaitable[Any]] | None = None, **traits: Any
    ) -> None:
        # Instance values over class variables: each test says what its tool is like.
        for trait, value in {"name": name, **traits}.items():
            setattr(self, trait, value)
        self._action = action
        self.runs: list[str] = []

    async def execute(self, arguments: Arguments, context: ToolContext) -> ToolResult:  # noqa: ARG002
        """Count, then do it."""
        words = str(vars(arguments)["words"])
        self.runs.append(words)
        answer: Any = await self._action(words) if self._action is not None else f"did {words}"
        # As a tool of ours, whose words are not fenced as a whole.
        return ToolResult(success=True, content=ModelText(answer)) if isinstance(answer, str) else answer


def external(name: str, action: Callable[[str], Awaitable[Any]] | None = None) -> Doing:
    """A tool whose effects nobody can look up."""
    return Doing(name, action, effect=Effect.EXTERNAL)


class Recorder:
    """A journal in memory: what is recorded is folded in, and can be cut off at any point."""

    def __init__(self, events: Iterable[AnyEvent] = (), look: Callable[[], None] = lambda: None) -> None:
        """Take what is on record, and who looks on right before and right after each further event."""
        self.events = list(events)
        self.run_state = RunState.of(self.events)
        self.look = look

    async def record(self, event: AnyEvent) -> None:
        """Keep an event and fold it in."""
        self.look()
        self.events.append(event)
        self.run_state.apply(event)
        self.look()

    def state(self, agent: str = "searcher-1") -> AgentState:
        """An agent, as its events left it."""
        return self.run_state.agents[agent]

    def of_type(self, kind: type[Any]) -> list[Any]:
        """All events of a type."""
        return [event for event in self.events if isinstance(event, kind)]

    def results(self) -> list[str]:
        """What the calls brought, in the order of the events, without the fences."""
        return [without_marks(event.content) for event in self.of_type(ToolFinished)]


def started(task: str = "look", max_steps: int = 25) -> AgentStarted:
    """The start of the one agent of small tests."""
    return AgentStarted(agent="searcher-1", role="searcher", task=task, max_steps=max_steps)


def call_room(
    recorder: Recorder, tools: Sequence[Tool], workspace: Workspace, gate: Authorize | None = None
) -> CallServices:
    """What calls need, over a real folder; the gate refuses repetition, as a team's does."""
    return CallServices(
        toolbox=Toolbox(tools),
        record=recorder.record,
        workspace=workspace,
        authorize=gate or (lambda agent, call: refuse_repetition(recorder.state(agent), call)),
    )


def agent_room(
    client: LLMClient, recorder: Recorder, tools: Sequence[Tool], workspace: Workspace, limits: Limits | None = None
) -> AgentContext:
    """A room for one agent that pays for itself."""
    budget = Budget(limits or Limits(), lambda: 0.0)

    async def advise(_state: AgentState) -> None:
        return None

    return AgentContext(
        prefix=PromptPrefix(model="m", system="Search.", tools=tuple(tool.schema() for tool in tools)),
        client=client,
        calls=call_room(recorder, tools, workspace),
        account=lambda: budget.exploration,
        on_exhausted=lambda state, limit: ending(state, Status.PARTIAL, f"{limit} limit", ""),
        worst_cost=lambda _input, _output: 0.0,
        max_output_tokens=4_096,
        clock=lambda: 0.0,
        before_request=advise,
    )


def tools_over(workspace: Workspace, *more: Tool) -> list[Tool]:
    """The file tools of a folder, and more."""
    return [*file_tools(workspace), *more]


def contents(folder: Path) -> dict[str, str]:
    """All files of a folder by path, the engine's own left out."""
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".explorer" not in path.parts
    }


def compare_with_golden(request: pytest.FixtureRequest, name: str, text: str) -> None:
    """Compare with a golden file, or write it when `--update-golden` is given."""
    path = GOLDEN / name
    if request.config.getoption("--update-golden"):
        path.write_text(text)
    assert text == path.read_text(), f"{path.name} has changed; look at the difference, then --update-golden"


def as_json(value: object) -> str:
    """Readable JSON for golden files."""
    return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
