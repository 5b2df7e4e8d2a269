"""What the pages show of a run, as plain values: the tree of agents, meters, and what can be done with it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from explorer.journal.listing import DAMAGED, RUNNING, UNFINISHED, WAITING
from explorer.observe.formatting import MAX_SHOWN_CHARS, cost, counted, duration, exact, one_line, tokens
from explorer.observe.run_view import WORKING, AgentView, RunView, outage_words
from explorer.schema.approvals import ApprovalRequest
from explorer.server.feeds import AgentTally, RunFeed, SeenRun

TASK_CHARS = 160
MAX_DEPTH = 6
NO_TALLY = AgentTally()
ENDED = frozenset({"complete", "partial", "nothing_found", "sources_unavailable", "failed"})
RESUMABLE = ENDED | {UNFINISHED}
AT_WORK = frozenset({"", RUNNING})
"""Statuses of runs on which a process works, or begins to."""
HEADING_CHARS = 300
IS_CUT_OFF = (
    "No process works on it: it was stopped, or its process ended. All that is on record is kept; resume it, and it"
    " continues where it was."
)
STATUS_WORDS: Mapping[str, str] = {
    "": "starting",
    RUNNING: "running",
    UNFINISHED: "unfinished",
    WAITING: "waiting for you: its plan",
    DAMAGED: "damaged",
    "nothing_found": "nothing found",
    "sources_unavailable": "sources unavailable",
}


@dataclass(frozen=True)
class AgentRow:
    """A line of the tree of agents."""

    id: str
    key: str
    """Its id for an element of the page."""
    role: str
    level: int
    """1 for the orchestrator, 2 for its helpers."""
    task: str
    status: str
    doing: str
    turns: str
    """`3 of 25`."""
    calls: int
    files: int
    sources: int
    tokens: str
    cost: str
    seconds: str
    reason: str

    @property
    def is_working(self) -> bool:
        """Whether it has not ended."""
        return self.status == WORKING


@dataclass(frozen=True)
class UsageMeter:
    """How much of a limit is used."""

    name: str
    shown: str
    """`$0.12 of $5.00`."""
    share: int | None
    """In per cent; None: without a limit."""


@dataclass(frozen=True)
class RunHead:
    """The head of a run's page."""

    run_id: str
    question: str
    status: str
    words: str
    """The status for people."""
    reason: str
    advice: str
    """What the status means, and what to do; empty where the status says it."""
    whole_question: str
    """The question as it was asked; empty where the heading shows all of it."""
    answer: str
    meters: tuple[UsageMeter, ...]
    outages: tuple[str, ...]
    facts: tuple[str, ...]
    since: str
    """When the latest session began, for a clock that runs in the browser; empty when nothing runs."""
    orders: tuple[str, ...]
    """Messages that the run took, with their records."""
    waiting: tuple[str, ...]
    """Messages that it has not taken yet."""
    seq: int
    holder: int | None
    """The process that works on it."""
    origin: str
    """What is to be said of a run that nothing proves to be this user's own, as an imported one; empty for the own."""

    @property
    def is_running(self) -> bool:
        """Whether a process works on it."""
        return self.status == RUNNING

    @property
    def can_resume(self) -> bool:
        """Whether it can be resumed, or asked further."""
        return self.status in RESUMABLE


def head_of(feed: RunFeed) -> RunHead:
    """Return the head of a run's page as it is now."""
    began = feed.run.view.session_began
    waiting = tuple(map(one_line, feed.waiting))
    since = began.isoformat() if began is not None and feed.status == RUNNING else ""
    return replace(_head(feed.run, feed.status, feed.origin), since=since, waiting=waiting, holder=feed.holder)


def head_then(run: SeenRun, status: str, origin: str) -> RunHead:
    """Return the head of a run's page as it was then."""
    return _head(run, status, origin)


def _head(run: SeenRun, status: str, origin: str) -> RunHead:
    view = run.view
    return RunHead(
        run_id=view.run_id,
        question=one_line(view.question),
        status=status,
        words=STATUS_WORDS.get(status, status),
        reason=one_line(view.reason),
        advice=IS_CUT_OFF if status == UNFINISHED else "",
        whole_question=view.question if len(one_line(view.question)) > HEADING_CHARS else "",
        answer=view.answer,
        meters=tuple(_meters(view)),
        outages=tuple(outage_words(one) for one in view.outages.values()),
        facts=tuple(_facts(view, is_at_work=status in AT_WORK)),
        since="",
        orders=tuple(f"{order.kind} applied at record {order.seq}: {one_line(order.text)}" for order in view.orders),
        waiting=(),
        seq=view.seq,
        holder=None,
        origin=origin,
    )


def _facts(view: RunView, *, is_at_work: bool) -> Iterator[str]:
    working = is_at_work and sum(agent.status == WORKING and not agent.is_queued for agent in view.agents.values())
    yield counted(len(view.agents), "agent") + (f", {working} at work" if working else "")
    yield counted(len(view.sources), "source")
    yield counted(len(view.files), "file")
    yield counted(view.seq, "record")
    if len(view.models) > 1 and len(set(view.models.values())) == 1:
        yield f"all roles: {one_line(next(iter(view.models.values())))}"
    else:
        yield from (f"{role}: {one_line(model)}" for role, model in view.models.items())
    if view.session is not None:
        yield f"search: {', '.join(view.session.search) or 'none'}"


def _meters(view: RunView) -> Iterator[UsageMeter]:
    limits = {name: limit.value for name, limit in view.session.limits.items()} if view.session is not None else {}
    before = view.used_before
    used_cost = None if view.cost_usd is None else view.cost_usd - (before.cost_usd or 0.0)
    yield _meter("cost", used_cost, limits.get("max_cost_usd"), cost)
    yield _meter("tokens", view.usage.total_tokens - before.tokens, limits.get("max_tokens"), lambda n: tokens(int(n)))
    yield _meter("turns", view.steps - before.steps, limits.get("max_steps"), lambda n: f"{n:,.0f}")
    seconds = (view.last - view.session_began).total_seconds() if view.last and view.session_began else 0.0
    yield _meter("time", seconds, limits.get("max_time_s"), duration)


def _meter(name: str, used: float | None, limit: float | None, words: Callable[[float], str]) -> UsageMeter:
    shown = "unknown" if used is None else words(used)
    if not limit or used is None:
        return UsageMeter(name, shown, None)
    return UsageMeter(name, f"{shown} of {words(limit)}", min(100, round(100 * used / limit)))


def tree_of(run: SeenRun, now: datetime | None = None) -> list[AgentRow]:
    """Return the tree of agents, each before its helpers."""
    children: dict[str, list[AgentView]] = {}
    for agent in run.view.agents.values():
        children.setdefault(agent.parent if agent.parent in run.view.agents else "", []).append(agent)
    moment = now or run.view.last or datetime.now(UTC)

    def below(parent: str, level: int) -> Iterator[AgentRow]:
        for agent in children.get(parent, ()):
            yield row_of(run, agent, moment, level)
            if level < MAX_DEPTH and agent.id != parent:
                yield from below(agent.id, level + 1)

    return list(below("", 1))


def idle_row(row: AgentRow, status: str) -> AgentRow:
    """Return the line of an agent of a run with this status: where no process works on the run, it does not work."""
    if status in AT_WORK or not row.is_working:
        return row
    return replace(row, status="waiting" if status == WAITING else "cut off", doing="")


def level_of(run: SeenRun, agent: AgentView) -> int:
    """Return how deep in the tree an agent is."""
    level, parent = 1, agent.parent
    while parent in run.view.agents and level < MAX_DEPTH:
        level, parent = level + 1, run.view.agents[parent].parent
    return level


def row_of(run: SeenRun, agent: AgentView, now: datetime, level: int) -> AgentRow:
    """Return the line of an agent."""
    tally = run.tallies.get(agent.id, NO_TALLY)
    doing = "waiting for its turn" if agent.is_queued and agent.status == WORKING else one_line(agent.doing)
    return AgentRow(
        id=agent.id,
        key=element_of(agent.id),
        role=agent.role,
        level=level,
        task=one_line(agent.task, TASK_CHARS),
        status=agent.status,
        doing=doing,
        turns=f"{agent.steps} of {agent.max_steps}",
        calls=tally.calls,
        files=len(tally.files),
        sources=len(tally.sources),
        tokens=tokens(agent.usage.total_tokens),
        cost=cost(agent.cost_usd),
        seconds=duration(agent.seconds(now)),
        reason=one_line(agent.reason),
    )


def element_of(agent: str) -> str:
    """Return an agent's id as the id of an element: ids of a journal may have any characters."""
    return "agent-" + "".join(one if one.isascii() and one.isalnum() else f"_{ord(one):x}_" for one in agent)


@dataclass(frozen=True)
class AskedCall:
    """What somebody decides about."""

    call: str
    """The call's key."""
    agent: str
    tool: str
    rule: str
    """The rule that asks."""
    arguments: tuple[tuple[str, str], ...]
    """Each argument by its name; characters that cannot be seen are escapes."""


def asked_of(request: ApprovalRequest | None) -> AskedCall | None:
    """Return what is shown of a request."""
    if request is None:
        return None
    arguments = tuple(
        (name, _cut(exact(value if isinstance(value, str) else repr(value))))
        for name, value in request.arguments.items()
    )
    return AskedCall(request.call, request.agent, request.tool, exact(request.rule), arguments)


def _cut(text: str) -> str:
    if len(text) <= MAX_SHOWN_CHARS:
        return text
    return f"{text[:MAX_SHOWN_CHARS]}\n... {len(text) - MAX_SHOWN_CHARS:,} more characters, which are not shown"
