"""The tokens, money and time that a run, its roles and its agents used; also as JSON for programs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from explorer.journal.run_state import JUDGE, Unanswered, reserved
from explorer.llm.prices import cost_usd
from explorer.llm.vendors import OPENAI_TURNS, is_official
from explorer.observe.command_result import token_counts
from explorer.observe.timeline import (
    Interval,
    PathSegment,
    SessionInterval,
    Timeline,
    WorkKind,
    covered,
    critical_path,
    length,
    timeline_of,
)
from explorer.schema.events import CitationsJudged, JournalRecord, RunForked, RunStarted, TurnTaken
from explorer.schema.messages import Turn, Usage, known_sum


@dataclass
class UsageTotals:
    """The tokens and money of some turns."""

    turns: int = 0
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = 0.0
    """USD; None when the price of a turn is not known."""
    saved_usd: float | None = 0.0
    """The USD that the provider's cache saved by today's prices, less the price of writing it, so it can be negative.

    None when a turn used the cache and its price is not known.
    """

    def add(self, other: "UsageTotals") -> None:
        """Add the totals of other turns."""
        self.turns += other.turns
        self.usage += other.usage
        self.cost_usd = known_sum(self.cost_usd, other.cost_usd)
        self.saved_usd = known_sum(self.saved_usd, other.saved_usd)

    @property
    def cache_share(self) -> float | None:
        """The share of all input that came from the provider's cache; None without input."""
        return self.usage.cache_read_tokens / self.usage.input_tokens if self.usage.input_tokens else None


@dataclass
class RoleShare:
    """The usage of all agents of a role."""

    role: str
    agents: int = 0
    totals: UsageTotals = field(default_factory=UsageTotals)
    seconds: float = 0.0
    """The sum of the seconds that its agents were at work."""


@dataclass(frozen=True)
class AgentShare:
    """The usage of one agent. The four kinds of time add up to `seconds`."""

    id: str
    role: str
    totals: UsageTotals
    seconds: float
    """The seconds from start to end of each of its tasks, added up."""
    model_s: float
    tools_s: float
    helpers_s: float
    """The seconds that it waited only for helpers."""
    waited_s: float
    """The seconds that it waited for a place, for the limits, or for the engine."""

    @property
    def busy_s(self) -> float:
        """The seconds that it was at work itself."""
        return self.model_s + self.tools_s


@dataclass(frozen=True)
class Inherited:
    """The part of a forked run that was paid by the run it was forked from."""

    run: str
    records: int
    totals: UsageTotals


@dataclass(frozen=True)
class Spending:
    """The usage of a run."""

    total: UsageTotals
    roles: tuple[RoleShare, ...]
    agents: tuple[AgentShare, ...]
    sessions: tuple[SessionInterval, ...]
    """The times in which a process worked on the run, as far as they can be distinguished."""
    seconds: float
    """The seconds of all sessions together."""
    path: tuple[PathSegment, ...]
    inherited: Inherited | None

    @property
    def parallelism(self) -> float | None:
        """The mean number of agents at work at once; None for a run of no time."""
        return sum(agent.busy_s for agent in self.agents) / self.seconds if self.seconds else None

    @property
    def slowest(self) -> AgentShare | None:
        """The helper that was at work longest; the orchestrator if it was alone."""
        helpers = [agent for agent in self.agents[1:] if agent.seconds] or self.agents
        return max(helpers, key=lambda agent: agent.seconds - agent.waited_s, default=None)


def spending_of(records: Sequence[JournalRecord]) -> Spending:
    """Return a run's usage from its records, finished or not."""
    work, by_agent = timeline_of(records), _usage_by_agent(records)
    agents = tuple(
        _share(agent, role, work, by_agent.get(agent) or UsageTotals()) for agent, role in work.roles.items()
    )
    roles: dict[str, RoleShare] = {}
    for agent in agents:
        share = roles.setdefault(agent.role, RoleShare(agent.role))
        share.agents += 1
        share.seconds += agent.seconds
        share.totals.add(agent.totals)
    if JUDGE in by_agent and JUDGE not in work.roles:
        roles[JUDGE] = RoleShare(JUDGE, totals=by_agent[JUDGE])
    return Spending(
        total=_together(role.totals for role in roles.values()),
        roles=tuple(roles.values()),
        agents=agents,
        sessions=work.clock.sessions,
        seconds=work.seconds,
        path=critical_path(work),
        inherited=_inherited(records),
    )


def _share(agent: str, role: str, work: Timeline, totals: UsageTotals) -> AgentShare:
    intervals = work.intervals.get(agent, [])
    seconds = sum(task.end - task.start for task in work.tasks[agent])
    model, own = _of(intervals, WorkKind.MODEL), _of(intervals, WorkKind.MODEL, WorkKind.TOOL)
    everything = length(covered(intervals))
    return AgentShare(
        id=agent,
        role=role,
        totals=totals,
        seconds=seconds,
        model_s=model,
        tools_s=own - model,
        helpers_s=everything - own,
        waited_s=max(0.0, seconds - everything),
    )


def _of(intervals: Iterable[Interval], *kinds: WorkKind) -> float:
    return length(covered(interval for interval in intervals if interval.kind in kinds))


def _usage_by_agent(records: Iterable[JournalRecord]) -> dict[str, UsageTotals]:
    by_agent: dict[str, UsageTotals] = {}
    openai, unanswered = True, Unanswered()
    for record in records:
        event = record.event
        for sent in unanswered.apply(event):
            by_agent.setdefault(sent.agent, UsageTotals()).add(UsageTotals(0, reserved(sent), sent.cost_usd, 0.0))
        if isinstance(event, RunStarted):
            openai = _is_openai(event)
        elif isinstance(event, TurnTaken):
            turn = event.turn
            paid = UsageTotals(1, turn.usage, turn.cost_usd, _saved_usd(turn, is_openai=openai))
            by_agent.setdefault(event.agent, UsageTotals()).add(paid)
        elif isinstance(event, CitationsJudged):
            saved = None if event.usage.cache_read_tokens else 0.0
            judged = UsageTotals(event.asked, event.usage, event.cost_usd, saved)
            by_agent.setdefault(JUDGE, UsageTotals(0)).add(judged)
    return by_agent


def _together(parts: Iterable[UsageTotals]) -> UsageTotals:
    total = UsageTotals()
    for part in parts:
        total.add(part)
    return total


def _saved_usd(turn: Turn, *, is_openai: bool) -> float | None:
    """Return what a turn would have cost without the cache, less what it cost with it."""
    usage = turn.usage
    if not usage.cache_read_tokens and not usage.cache_write_tokens:
        return 0.0
    is_of_openai = turn.provider in OPENAI_TURNS
    if turn.cost_usd is None or (is_of_openai and not is_openai):
        return None
    vendor = "openai" if is_of_openai else turn.provider
    uncached = usage.model_copy(update={"cache_read_tokens": 0, "cache_write_tokens": 0})
    plain, cached = (cost_usd(turn.model, vendor, one, None) for one in (uncached, usage))
    return None if plain is None or cached is None else plain - cached


def _is_openai(started: RunStarted) -> bool:
    """Return whether the run's OpenAI models were OpenAI's own, whose prices are known."""
    services: object = started.settings.get("services")
    url = services.get("openai_url") if isinstance(services, dict) else ""  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return not url or is_official(str(url))  # pyright: ignore[reportUnknownArgumentType]


def _inherited(records: Sequence[JournalRecord]) -> Inherited | None:
    """Return the usage before the latest fork, which is another run's, or that of the run it was forked from."""
    for place in range(len(records) - 1, -1, -1):
        event = records[place].event
        if isinstance(event, RunForked):
            return Inherited(event.of, event.shared, _together(_usage_by_agent(records[:place]).values()))
    return None


DECIMALS = 3
"""Decimals of seconds."""


def spending_facts(spending: Spending) -> dict[str, object]:
    """Return the spending as JSON for programs. Seconds are those in which a process worked on the run."""
    inherited, slowest = spending.inherited, spending.slowest
    return {
        **_usage_facts(spending.total),
        **_rounded(seconds=spending.seconds, parallelism=spending.parallelism),
        "by_role": [
            {"role": one.role, "agents": one.agents, **_usage_facts(one.totals), **_rounded(seconds=one.seconds)}
            for one in spending.roles
        ],
        "by_agent": [
            {"id": agent.id, "role": agent.role, **_usage_facts(agent.totals), **_times(agent)}
            for agent in spending.agents
        ],
        "slowest_agent": {"id": slowest.id, **_times(slowest)} if slowest else None,
        "critical_path": [_link_facts(link) for link in spending.path],
        "lives": [
            {"start": one.start.isoformat(), "end": one.end.isoformat(), **_rounded(seconds=one.seconds)}
            for one in spending.sessions
        ],
        "inherited": {"run_id": inherited.run, "records": inherited.records, **_usage_facts(inherited.totals)}
        if inherited
        else None,
    }


def _usage_facts(totals: UsageTotals) -> dict[str, object]:
    share = totals.cache_share
    return {
        "turns": totals.turns,
        "tokens": token_counts(totals.usage),
        "cache_share": None if share is None else round(share, 4),
        "cost_usd": totals.cost_usd,
        "saved_usd": totals.saved_usd,
    }


def _times(agent: AgentShare) -> dict[str, float | None]:
    own = _rounded(seconds=agent.seconds, model_s=agent.model_s, tools_s=agent.tools_s)
    return own | _rounded(helpers_s=agent.helpers_s, waited_s=agent.waited_s)


def _link_facts(link: PathSegment) -> dict[str, object]:
    times = _rounded(start_s=link.start_s, seconds=link.seconds, model_s=link.model_s, tools_s=link.tools_s)
    return {"agent": link.agent, **times, **_rounded(other_s=link.other_s)}


def _rounded(**figures: float | None) -> dict[str, float | None]:
    return {name: None if figure is None else round(figure, DECIMALS) for name, figure in figures.items()}
