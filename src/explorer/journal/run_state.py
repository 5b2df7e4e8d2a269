"""The state of a run, computed from its records: agents, sources, files, usage and cost."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from explorer.journal import plan_state
from explorer.journal.agent_state import RESULT, AgentState, call_key
from explorer.journal.plan_state import PlanState
from explorer.schema.events import (
    ORCHESTRATOR,
    AgentContinued,
    AgentStarted,
    AnyEvent,
    ApprovalAnswer,
    ApprovalDecided,
    CitationsJudged,
    JournalRecord,
    Lookup,
    McpToolsListed,
    PathMoved,
    RequestSent,
    RoleLoaded,
    RunFinished,
    RunStarted,
    SandboxChosen,
    SessionConfigured,
    Source,
    ToolFinished,
    TurnTaken,
    WrittenFile,
)
from explorer.schema.messages import Estimate, JsonObject, TaskData, Turn, Usage, list_in
from explorer.text.rendering import without_marks

JUDGE = "judge"
"""The model that judges citations: its role where models are named by role, and the `agent` of its questions.

It is asked several at once, and one record has all of its answers.
"""


@dataclass
class Unanswered:
    """Requests without a turn: those under way, and what the others are booked with. Only `apply` changes it."""

    usage: Usage = field(default_factory=Usage)
    cost_usd: float = 0.0
    under_way: dict[str, list[RequestSent]] = field(default_factory=dict[str, list[RequestSent]])
    """The open requests of each agent; an agent's next request shows that the one before failed."""

    def apply(self, event: AnyEvent) -> tuple[RequestSent, ...]:
        """Apply one event of any agent; return the requests that it shows to have failed."""
        match event.type:
            case "request_sent":
                return self._send(event)
            case "turn" | "citations_judged":
                self.under_way.pop(JUDGE if event.type == "citations_judged" else event.agent, None)
            case "turn_failed" if event.agent != JUDGE:
                sent = self.under_way.pop(event.agent, [])
                return self._book(sent if event.is_billed else [])
            case "session_configured" | "run_finished":
                return self._book(self._all())
            case _:
                pass
        return ()

    def _send(self, event: RequestSent) -> tuple[RequestSent, ...]:
        before = [] if event.agent == JUDGE else self.under_way.pop(event.agent, [])
        self.under_way.setdefault(event.agent, []).append(event)
        return self._book(before)

    def _all(self) -> list[RequestSent]:
        """Return all open requests, and close them."""
        sent = [one for requests in self.under_way.values() for one in requests]
        self.under_way.clear()
        return sent

    def _book(self, sent: Iterable[RequestSent]) -> tuple[RequestSent, ...]:
        booked = tuple(sent)
        for one in booked:
            self.usage += reserved(one)
            self.cost_usd += one.cost_usd
        return booked

    @property
    def usage_at_most(self) -> Usage:
        """The booked usage, with the worst case of open requests."""
        return sum((reserved(one) for requests in self.under_way.values() for one in requests), self.usage)

    @property
    def cost_at_most(self) -> float:
        """The booked cost in USD, with the worst case of open requests."""
        return self.cost_usd + sum(one.cost_usd for requests in self.under_way.values() for one in requests)

    @property
    def estimate(self) -> Estimate:
        """The sum of both, which is an estimate."""
        return Estimate(tokens=self.usage_at_most.total_tokens, cost_usd=self.cost_at_most)


def reserved(sent: RequestSent) -> Usage:
    """Return the most tokens that a request can use."""
    return Usage(input_tokens=sent.input_tokens, output_tokens=sent.output_tokens)


OF_THE_RUN = frozenset(
    {
        "run_started",
        "session_configured",
        "approval_decided",
        "run_finished",
        "role_loaded",
        "mcp_tools_listed",
        "source_recorded",
        "citations_judged",
        "sandbox_chosen",
        "path_moved",
        "run_forked",
    }
)
"""Types of events that change no agent's state."""


@dataclass(frozen=True)
class Spent:
    """The usage up to some point of the run."""

    steps: int
    tokens: int
    cost_usd: float
    calls: int = 0


@dataclass(frozen=True)
class LookupRecord:
    """One lookup of a run, with its latest outcome."""

    tool: str
    asked: JsonObject
    """The arguments of the call."""
    outcome: Lookup
    answer: str
    """The first line of what the model read."""
    stories: tuple[JsonObject, ...] = ()
    """The facts of the stories that a list or a search of a site showed, in order."""


@dataclass
class RunState:
    """The state of a run, computed from its records."""

    agents: dict[str, AgentState] = field(default_factory=dict[str, AgentState])
    prefixes: dict[str, RoleLoaded] = field(default_factory=dict[str, RoleLoaded])
    """The prompt, tools and model of each role."""
    mcp: dict[str, McpToolsListed] = field(default_factory=dict[str, McpToolsListed])
    """The frozen tools of each MCP server."""
    foreign_roles: set[str] = field(default_factory=set[str])
    """Roles whose recorded prompt and tools are somebody else's, and are not used."""
    sources: dict[str, Source] = field(default_factory=dict[str, Source])
    files: dict[str, WrittenFile] = field(default_factory=dict[str, WrittenFile])
    """All files that agents wrote, by path, with their state after the last write."""
    lookups: dict[str, LookupRecord] = field(default_factory=dict[str, LookupRecord])
    """The lookups by tool and arguments; one that was made again has its latest outcome."""
    revised: set[str] = field(default_factory=set[str])
    """Paths of the files that agents wrote since the question, or the latest follow-up."""
    report_end: RunFinished | None = None
    """The latest end of the run with a report, not with an answer to a follow-up."""
    is_follow_up: bool = False
    """Whether the user asked a follow-up after a report."""
    started: RunStarted | None = None
    finished: RunFinished | None = None
    """The latest end; None when something was asked after it."""
    calls: int = 0
    """The number of calls that all agents together began."""
    paid_before: Spent = field(default_factory=lambda: Spent(0, 0, 0.0))
    """The usage before the latest question or follow-up; limits count from there."""
    unanswered: Unanswered = field(default_factory=Unanswered)
    """Requests that were sent and brought no turn."""
    estimated_turns: Estimate = field(default_factory=Estimate)
    """The usage of turns whose provider reported no plausible usage."""
    judged: list[CitationsJudged] = field(default_factory=list["CitationsJudged"])
    """The records of a model's answers about the citations."""
    sandbox: str | None = None
    """The sandbox of the latest session; empty without a shell, None before the first session."""
    moved: list[str] = field(default_factory=list[str])
    """New paths of what was at the report's path."""
    session: SessionConfigured | None = None
    """The configuration of the latest session; None in journals of versions that did not record it."""
    answered_by: set[str] = field(default_factory=set[str])
    """The models that took turns, with their providers' prefixes."""
    structured_results: JsonObject = field(default_factory=dict[str, Any])
    """The data that the orchestrator returned at its latest end, next to the report."""
    plan: PlanState = field(default_factory=PlanState)
    """The plan, what was decided about it, and how far its sub-questions are."""
    results: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """The latest result of each helper whose role declares one, by agent."""
    orders: set[str] = field(default_factory=set[str])
    """Ids of the orders of other processes that were applied."""
    approvals: list[ApprovalDecided] = field(default_factory=list[ApprovalDecided])
    """The answers about calls in this run; those of a run that was carried here, or forked, are another's."""
    _asked_by: dict[str, str] = field(default_factory=dict[str, str])
    """The agent that works for each `call_agent` call, by call id."""

    @property
    def models(self) -> set[str]:
        """The names of the models that have answered."""
        histories = (agent.messages for agent in self.agents.values())
        answered = {turn.model for history in histories for turn in history if isinstance(turn, Turn)}
        return answered | {agent.open_turn.model for agent in self.agents.values() if agent.open_turn is not None}

    @classmethod
    def of(cls, events: Iterable[AnyEvent]) -> "RunState":
        """Return the state after these events."""
        run_state = cls()
        for event in events:
            run_state.apply(event)
        return run_state

    @classmethod
    def of_records(cls, records: Iterable[JournalRecord]) -> "RunState":
        """Return the state after the events of these records."""
        return cls.of(record.event for record in records)

    def apply(self, event: AnyEvent) -> None:
        """Apply one event of any agent."""
        self.unanswered.apply(event)
        if event.type in plan_state.EVENTS:
            self.plan.apply(event)
        # By their names: asking a model's class whether an event is of it costs many times a comparison.
        if event.type in OF_THE_RUN:
            self._apply_to_run(event)
        else:
            self._apply_to_agent(event)

    def _apply_to_run(self, event: AnyEvent) -> None:
        match event.type:
            case "run_started":
                self.started = event
            case "run_finished":
                self.finished = event
                self.report_end = self.report_end if event.answer else event
            case "role_loaded":
                self.prefixes[event.role] = event
                self.foreign_roles.discard(event.role)
            case "source_recorded":
                self.sources[event.source.id] = event.source
            case "citations_judged":
                self.judged.append(event)
            case "session_configured" | "sandbox_chosen" | "path_moved" | "approval_decided" | "mcp_tools_listed":
                self._note_session(event)
            case "run_forked" if self.started is not None:
                self.started = self.started.model_copy(update={"run_id": event.run_id})
                self.approvals.clear()
            case _:
                pass

    def _note_session(
        self, event: SessionConfigured | SandboxChosen | PathMoved | ApprovalDecided | McpToolsListed
    ) -> None:
        match event:
            case SessionConfigured():
                self.session = event
                if event.carried is not None:
                    self.foreign_roles = set(self.prefixes)
                    self.approvals.clear()
                    self.mcp.clear()
            case SandboxChosen():
                self.sandbox = event.tier
            case ApprovalDecided():
                self.approvals.append(event)
            case PathMoved():
                self.moved.append(event.to)
            case McpToolsListed():
                self.mcp[event.server] = event

    def _apply_to_agent(self, event: AnyEvent) -> None:
        match event.type:
            case "turn":
                self.finished = None
                self._take(event)
            case "tool_started":
                self.calls += 1
            case "tool_finished":
                self._finish_call(event)
            case "agent_started":
                self.agents[event.agent] = AgentState(event.agent)
                self._asked_by[event.parent_call] = event.agent
            case "agent_continued":
                self._continue(event)
            case "steered" | "stop_asked":
                self.orders.add(event.order)
            case _:
                pass
        if event.agent in self.agents:
            self.agents[event.agent].apply(event, self._task_of(event))

    def _task_of(self, event: AnyEvent) -> TaskData | None:
        """Return the task that an event gives an agent, from the record of the question or call; None without one."""
        match event:
            case AgentStarted(parent_call="") if self.started is not None:
                files = tuple(event.inputs.items())
                return TaskData(words=self.started.question, files=files, settings=self.started.settings)
            case AgentStarted() | AgentContinued() if event.parent_call:
                caller = self.agents.get(caller_of(event.parent_call))
                call = caller.call_at(event.parent_call) if caller is not None else None
                return None if call is None else _task_in(call.arguments or {})
            case _:
                return None

    def _finish_call(self, event: ToolFinished) -> None:
        self.files |= {written.path: written for written in event.files}
        for path in event.removed:
            self.files.pop(path, None)
        self.revised.update(written.path for written in event.files)
        if event.ends_agent and event.agent == ORCHESTRATOR:
            self.structured_results = event.data
        elif "agent_id" in event.data and isinstance(event.data.get(RESULT), dict):
            self.results[str(event.data["agent_id"])] = event.data[RESULT]
        agent = self.agents.get(event.agent)
        if event.lookup is Lookup.NONE or agent is None:
            return
        call = agent.call_at(event.call)
        if call is not None:
            first_line = without_marks(event.content.partition("\n")[0])
            self.lookups[call_key(call)] = LookupRecord(
                call.name, call.arguments or {}, event.lookup, first_line, tuple(list_in(event.data, "stories"))
            )

    def _continue(self, event: AgentContinued) -> None:
        self._asked_by[event.parent_call] = event.agent
        self.finished = None
        if event.renews_limits:
            self.revised.clear()
            self.is_follow_up = self.report_end is not None
            self.paid_before = Spent(self.steps, self.usage.total_tokens, self.known_cost_usd, self.calls)

    def _take(self, event: TurnTaken) -> None:
        turn = event.turn
        if turn.is_estimated:
            self.estimated_turns += Estimate(tokens=turn.usage.total_tokens, cost_usd=turn.cost_usd or 0.0)
        state = self.agents.get(event.agent)
        if state is not None and state.role in self.prefixes:
            self.answered_by.add(self.model_of(state.role))

    def model_of(self, role: str) -> str:
        """Return the model of a loaded role in the latest session."""
        in_use = self.session.models.get(role) if self.session is not None else None
        return in_use.model if in_use is not None else self.prefixes[role].model

    @property
    def run_id(self) -> str:
        """The id of the run; empty before its first record."""
        return self.started.run_id if self.started is not None else ""

    @property
    def question(self) -> str:
        """The user's question; empty before it is on record."""
        return self.started.question if self.started is not None else ""

    @property
    def lead(self) -> AgentState | None:
        """The orchestrator; None before it is started."""
        return self.agents.get(ORCHESTRATOR)

    @property
    def asked(self) -> str:
        """The texts of the user: the question, follow-ups and messages in between."""
        return "\n".join([self.question, *sorted(self.lead.asked if self.lead is not None else ())])

    def approval_of(self, call: str, tool: str, rule: str) -> ApprovalDecided | None:
        """Return the answer that holds for a call which a rule asks about; None: it was not given yet."""
        for one in self.approvals:
            is_for_run = one.answer is ApprovalAnswer.RUN and (one.name, one.rule) == (tool, rule)
            if one.call == call or is_for_run:
                return one
        return None

    def child_of(self, parent_call: str) -> AgentState | None:
        """Return the agent that a `call_agent` call started or continued."""
        return self.agents.get(self._asked_by.get(parent_call, ""))

    @property
    def usage(self) -> Usage:
        """The tokens of all agents, of the judge, and of requests that brought no turn."""
        used = [*(state.usage for state in self.agents.values()), *(one.usage for one in self.judged)]
        return sum(used, self.unanswered.usage_at_most)

    @property
    def estimated(self) -> Estimate:
        """The estimated part of `usage` and of the cost."""
        judged = (one.estimated for one in self.judged if one.estimated is not None)
        return sum(judged, self.estimated_turns + self.unanswered.estimate)

    @property
    def cost_usd(self) -> float | None:
        """The cost of all turns in USD; None when a turn's price is not known."""
        if any(state.unpriced_turns for state in self.agents.values()):
            return None
        if any(one.cost_usd is None for one in self.judged):
            return None
        return self.known_cost_usd

    @property
    def known_cost_usd(self) -> float:
        """The cost in USD of all turns whose price is known, and of requests that brought no turn."""
        judged = sum(one.cost_usd or 0.0 for one in self.judged)
        return sum(state.cost_usd for state in self.agents.values()) + judged + self.unanswered.cost_at_most

    @property
    def steps(self) -> int:
        """The number of turns of all agents together."""
        return sum(state.steps for state in self.agents.values())


def caller_of(call: str) -> str:
    """Return the agent that made a call, by the engine's key of the call."""
    return call.partition(".")[0]


def _task_in(arguments: JsonObject) -> TaskData:
    """Return the task in the arguments of a `call_agent` call."""
    given = arguments.get("context_files")
    paths = cast("list[object]", given) if isinstance(given, list) else []
    return TaskData(
        words=str(arguments.get("task_description") or "").strip(),
        files=tuple((str(path), "") for path in paths),
        folder=str(arguments.get("output_dir") or "").strip("/"),
    )
