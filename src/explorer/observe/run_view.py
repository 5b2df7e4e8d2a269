"""The state of a run as people see it, computed from its records: agents, what each does now, spending, outages."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, cast

from explorer.journal import plan_state
from explorer.journal.agent_state import RESULT
from explorer.journal.plan_state import PlanState
from explorer.journal.run_state import Unanswered, reserved
from explorer.observe.formatting import as_given, counted, one_line
from explorer.schema.events import (
    ORCHESTRATOR,
    AgentContinued,
    AgentFinished,
    AgentStarted,
    AnyEvent,
    CitationsJudged,
    JournalRecord,
    RequestSent,
    RoleLoaded,
    RunFinished,
    RunForked,
    RunStarted,
    SessionConfigured,
    Source,
    SourceRecorded,
    Steered,
    StopAsked,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnTaken,
    WrittenFile,
)
from explorer.schema.messages import Estimate, JsonObject, ToolCall, Usage, known_sum
from explorer.schema.reasons import EndCause
from explorer.schema.tool import Effect
from explorer.text.rendering import FENCE_START, without_marks

DOING_CHARS = 60


def doing(call: ToolCall, started: ToolStarted | None) -> str:
    """Return what a call does: `reading lantern-db.example`; its name, where its tool says no more."""
    return as_given(one_line((started.activity if started else "") or call.name, DOING_CHARS))


def asked(call: ToolCall) -> str:
    """Return a call as it was asked: its name and its first argument, `get_hn_comments 123`."""
    first = next(iter(call.arguments.values()), "") if call.arguments else ""
    return one_line(f"{call.name} {first if isinstance(first, str | int | float) else ''}", DOING_CHARS)


def outcome(event: ToolFinished) -> str:
    """Return what a call brought: `50 comments`, `12 lines`, or why it failed."""
    if not event.success:
        return one_line(f"failed: {without_marks(event.content)}", DOING_CHARS * 2)
    if event.files:
        return ", ".join(counted(file.lines, "line") for file in event.files)
    first = event.content.partition("\n")[0]
    return _counted(event) or one_line("" if FENCE_START.fullmatch(first) else without_marks(first), DOING_CHARS)


def _counted(event: ToolFinished) -> str:
    """Return how much a call showed, by its data; empty where that does not say."""
    shown, unit = event.data.get("shown"), event.data.get("unit", "")
    if isinstance(shown, int):
        return f"{shown:,} {unit}".rstrip()
    if "last" in event.data:
        return f"{unit} {event.data.get('first')}-{event.data['last']} of {event.data.get('total')}"
    return ""


@dataclass(frozen=True)
class Outage:
    """A model that brought turns before and brings none now."""

    model: str
    """Name of the model with the provider's prefix."""
    since: datetime
    waits_s: float | None
    """From the latest failed attempt to the next; None: it is not waited for any more."""
    next_try: datetime | None
    """Time of the next attempt; None: there is none."""


def outage_words(outage: Outage, now: datetime | None = None) -> str:
    """Write an outage in one line: `waiting for openai:model-a since 12:03, next try in 20 s`.

    Args:
        outage: What is waited for.
        now: To count down from; None: the moment of the latest failed attempt.
    """
    since = f"{outage.since.astimezone():%H:%M}"
    if outage.waits_s is None:
        return f"{outage.model} has not answered since {since}; no further attempt"
    seconds = outage.waits_s
    if now is not None and outage.next_try is not None:
        seconds = (outage.next_try - now).total_seconds()
    next_try = f"next try in {seconds:.0f} s" if seconds > 0 else "trying again now"
    return f"waiting for {outage.model} since {since}, {next_try}"


def _task(event: AgentStarted | AgentContinued) -> str:
    """Return a task as people read it."""
    return without_marks(event.task).strip()


WORKING = "working"
RUNNING = "running"


@dataclass
class AgentView:
    """One agent."""

    id: str
    role: str
    parent: str
    task: str
    max_steps: int
    status: str = WORKING
    """`working`, or how it ended."""
    reason: str = ""
    activity: str = ""
    """What it does while no call says it, such as waiting for its model; empty: its calls say it."""
    is_queued: bool = True
    """Whether it waits for its turn to begin: for a place among the agents at work, or for its model's rate limit."""
    since: datetime | None = None
    """The beginning of its latest time at work; None while it is not at work."""
    earlier_s: float = 0.0
    """Seconds at work before that."""
    steps: int = 0
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = 0.0
    """None when a turn's price is not known."""
    open_calls: dict[str, ToolCall] = field(default_factory=dict[str, ToolCall])
    """The calls of its last turn that are not answered, by the engine's key."""
    started: dict[str, ToolStarted] = field(default_factory=dict[str, ToolStarted])
    """Open calls that were begun, by the engine's key."""

    result: JsonObject = field(default_factory=dict[str, Any])
    """Its result in the form that its role declares."""

    @property
    def doing(self) -> str:
        """What it does now, in a few words; empty once it has ended. Made when it is asked for: most is never shown."""
        return (self.activity or _doing(self)) if self.status == WORKING else ""

    def seconds(self, now: datetime) -> float:
        """Return how long it has been at work."""
        return self.earlier_s + ((now - self.since).total_seconds() if self.since is not None else 0.0)

    def begin(self, at: datetime) -> None:
        """Leave the queue."""
        self.is_queued, self.since = False, self.since or at

    def pause(self, at: datetime) -> None:
        """Stop the clock."""
        self.earlier_s, self.since = self.seconds(at), None


@dataclass(frozen=True)
class Used:
    """What a run had used when its limits began to count."""

    steps: int = 0
    tokens: int = 0
    cost_usd: float | None = 0.0


@dataclass(frozen=True)
class AppliedOrder:
    """What another process asked of the run, and where in the journal it took effect."""

    seq: int
    kind: str
    """`steer` or `stop`."""
    text: str


@dataclass
class RunView:
    """The state of a run after the records seen so far. Only `apply` changes it."""

    run_id: str = ""
    question: str = ""
    started: datetime | None = None
    last: datetime | None = None
    """When the latest record was made."""
    seq: int = 0
    status: str = RUNNING
    """`running`, or how the run ended."""
    reason: str = ""
    cause: EndCause = EndCause.OTHER
    answer: str = ""
    """The words that answered its latest follow-up, where it ended with such."""
    summary: str = ""
    """The orchestrator's latest summary."""
    session_began: datetime | None = None
    used_before: Used = field(default_factory=Used)
    """What was used before the latest question or follow-up, whose limits count from there."""
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = 0.0
    estimated: Estimate = field(default_factory=Estimate)
    """What of usage and cost is estimated."""
    unanswered: Unanswered = field(default_factory=Unanswered)
    """Which requests are under way; they count once they are known to have brought nothing."""
    agents: dict[str, AgentView] = field(default_factory=dict[str, AgentView])
    files: dict[str, WrittenFile] = field(default_factory=dict[str, WrittenFile])
    """Files by path, the latest written last."""
    sources: dict[str, Source] = field(default_factory=dict[str, Source])
    models: dict[str, str] = field(default_factory=dict[str, str])
    """Models by role."""
    session: SessionConfigured | None = None
    """What the latest session works with; None before the first, and in journals of older versions."""
    failed_attempts: int = 0
    """Requests to a model that brought no turn."""
    plan: PlanState = field(default_factory=PlanState)
    """The plan, and how far its sub-questions are."""
    orders: list[AppliedOrder] = field(default_factory=list[AppliedOrder])
    outages: dict[str, Outage] = field(default_factory=dict[str, Outage])
    """Outages that the run waits for now, by model."""
    cut: set[str] = field(default_factory=set[str])
    """Models whose server was seen to read only part of what it was sent."""

    def apply(self, record: JournalRecord) -> None:
        """Apply one record; one that was seen before changes nothing."""
        if record.seq <= self.seq:
            return
        before, self.seq, self.last = self.last, record.seq, record.at
        event = record.event
        if event.type in plan_state.EVENTS:
            self.plan.apply(event)
        self._keep_time(event, before or record.at)
        for sent in self.unanswered.apply(event):
            self._lose(sent)
        match event:
            case RunStarted():
                self.run_id, self.question, self.started = event.run_id, event.question, record.at
            case RunFinished():
                self.status, self.reason, self.answer = event.status.value, event.reason, event.answer
                self.cause = event.cause
            case RunForked():
                self.run_id = event.run_id
            case AgentStarted():
                self._start(event)
            case _:
                self._keep(event, record.seq)
                self._apply_to_agent(event)

    def _keep_time(self, event: AnyEvent, before: datetime) -> None:
        """Keep the clocks of agents: they stand still in a queue, between sessions, and after the end."""
        assert self.last is not None
        agent = self.agents.get(event.agent)
        match event:
            case SessionConfigured():
                self.session_began = self.last
                for other in self.agents.values():
                    if other.since is not None:
                        other.pause(before)
                        other.is_queued = True
            case RequestSent() | TurnTaken() | ToolStarted() if agent is not None:
                agent.begin(self.last)
            case AgentContinued() if agent is not None:
                agent.is_queued = True
                if event.renews_limits:
                    self.used_before = Used(self.steps, self.usage.total_tokens, self.cost_usd)
            case AgentFinished() if agent is not None:
                agent.pause(self.last)
            case _:
                pass

    def _keep(self, event: AnyEvent, seq: int) -> None:
        match event:
            case RoleLoaded():
                self.models[event.role] = event.model
            case SessionConfigured():
                self.session = event
                self.outages.clear()
                self.models |= {role: event.models[role].model for role in self.models if role in event.models}
            case SourceRecorded():
                self.sources[event.source.id] = event.source
            case CitationsJudged():
                self.usage += event.usage
                self.cost_usd = known_sum(self.cost_usd, event.cost_usd)
                self.estimated += event.estimated or Estimate()
            case AgentFinished() if event.agent == ORCHESTRATOR:
                self.summary = event.summary
            case StopAsked():
                self.orders.append(AppliedOrder(seq, "stop", event.reason))
            case Steered() if event.order:
                self.orders.append(AppliedOrder(seq, "steer", event.text))
            case _:
                pass

    def outage_met(self, event: TurnFailed) -> Outage | None:
        """Return the outage that a failed attempt met; None for a failure of that attempt alone."""
        if event.waiting_since is None:
            return None
        agent = self.agents.get(event.agent)
        model = self.models.get(agent.role, "") if agent is not None else ""
        next_try = None
        if event.waits_s is not None and self.last is not None:
            next_try = self.last + timedelta(seconds=event.waits_s)
        return Outage(model or "the model", event.waiting_since, event.waits_s, next_try)

    def call(self, key: str) -> ToolCall | None:
        """Return an unanswered call, by the engine's key."""
        for agent in self.agents.values():
            if key in agent.open_calls:
                return agent.open_calls[key]
        return None

    def is_helper(self, key: str) -> bool:
        """Return whether an unanswered call runs a helper."""
        begun = (agent.started[key] for agent in self.agents.values() if key in agent.started)
        return any(started.effect == Effect.CHILD for started in begun)

    def children(self, parent: str) -> list[AgentView]:
        """Return the agents that one started, in order; those without a parent for an empty name."""
        return [agent for agent in self.agents.values() if agent.parent == parent]

    @property
    def steps(self) -> int:
        """Turns of all agents."""
        return sum(agent.steps for agent in self.agents.values())

    def _start(self, event: AgentStarted) -> None:
        self._reopen()
        self.agents[event.agent] = AgentView(
            id=event.agent, role=event.role, parent=event.parent, task=_task(event), max_steps=event.max_steps
        )

    def _reopen(self) -> None:
        self.status, self.reason, self.answer, self.cause = RUNNING, "", "", EndCause.OTHER

    def _apply_to_agent(self, event: AnyEvent) -> None:
        agent = self.agents.get(event.agent)
        if agent is None:
            return
        match event:
            case AgentContinued():
                self._reopen()
                agent.status, agent.reason, agent.activity = WORKING, "", "thinking"
                agent.max_steps = agent.steps + event.max_steps
                agent.task = _task(event)
            case TurnTaken():
                self._take(agent, event)
            case TurnFailed():
                self._fail(agent, event)
            case ToolStarted():
                agent.started[event.call], agent.activity = event, ""
            case ToolFinished():
                self._finish_call(agent, event)
            case AgentFinished():
                agent.status, agent.reason, agent.activity = event.status.value, event.reason, ""
                agent.open_calls = {}
            case _:
                pass

    def _fail(self, agent: AgentView, event: TurnFailed) -> None:
        self.failed_attempts += 1
        outage = self.outage_met(event)
        if outage is not None:
            self.outages[outage.model] = outage
            agent.activity = outage_words(outage)
            return
        wait = f", again in {event.waits_s:.0f} s" if event.waits_s is not None else ""
        doing = "failed" if event.waits_s is None else "waiting"
        agent.activity = f"{doing}: {event.fault.replace('_', ' ')}{wait}"

    def _take(self, agent: AgentView, event: TurnTaken) -> None:
        turn = event.turn
        if turn.cut_from_tokens:
            self.cut.add(turn.model)
        if turn.is_estimated:
            self.estimated += Estimate(tokens=turn.usage.total_tokens, cost_usd=turn.cost_usd or 0.0)
        self.outages.pop(self.models.get(agent.role, ""), None)
        agent.steps += 1
        agent.usage += turn.usage
        self.usage += turn.usage
        agent.cost_usd = known_sum(agent.cost_usd, turn.cost_usd)
        self.cost_usd = known_sum(self.cost_usd, turn.cost_usd)
        # The engine's keys: `<agent>.t<turn>.<index>`, both counted from 1.
        agent.started = {}
        agent.open_calls = {f"{agent.id}.t{agent.steps}.{i}": call for i, call in enumerate(turn.calls, 1)}
        agent.activity = ""

    def _lose(self, sent: RequestSent) -> None:
        """Count a request that brought nothing."""
        usage = reserved(sent)
        self.usage += usage
        self.cost_usd = known_sum(self.cost_usd, sent.cost_usd)
        self.estimated += Estimate(tokens=usage.total_tokens, cost_usd=sent.cost_usd)
        if sent.agent in self.agents:
            agent = self.agents[sent.agent]
            agent.usage += usage
            agent.cost_usd = known_sum(agent.cost_usd, sent.cost_usd)

    def _finish_call(self, agent: AgentView, event: ToolFinished) -> None:
        helper, result = self.agents.get(str(event.data.get("agent_id", ""))), event.data.get(RESULT)
        if helper is not None and isinstance(result, dict):
            helper.result = cast("JsonObject", result)
        agent.open_calls.pop(event.call, None)
        agent.started.pop(event.call, None)
        agent.activity = ""
        for file in event.files:
            # Out and in again, so that the latest is the last one.
            self.files.pop(file.path, None)
            self.files[file.path] = file
        for path in event.removed:
            self.files.pop(path, None)


def session_facts(view: RunView) -> dict[str, object] | None:
    """Return what the latest session works with, for programs."""
    return view.session.model_dump(mode="json", exclude={"type", "agent"}) if view.session is not None else None


def _doing(agent: AgentView) -> str:
    if not agent.open_calls:
        return "thinking"
    helpers = [started for started in agent.started.values() if started.effect == Effect.CHILD]
    if len(helpers) > 1:
        return f"waiting for {len(helpers)} helpers"
    more = f" (+{len(agent.open_calls) - 1} more)" if len(agent.open_calls) > 1 else ""
    key, call = next(iter(agent.open_calls.items()))
    return doing(call, agent.started.get(key)) + more
