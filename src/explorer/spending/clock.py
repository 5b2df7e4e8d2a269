"""A run's own clock: it stands still while no process works on the run.

The journal does not say where one process ended and the next began. Some records are certain signs of it: an end of
the run before them, a repair, a fork, a second choice of sandbox, words that came with a resume. Beside these, time
is taken for dead in which no model was being asked, although an agent had nothing else to wait for. One thing cannot
be seen: a process that ended while every agent was in a tool. Such a pause counts as the tools' time, unless it is
longer than they are let run.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate, pairwise

from explorer.events import (
    AgentContinued,
    AgentFinished,
    AgentStarted,
    Record,
    Repaired,
    RunFinished,
    RunForked,
    SandboxChosen,
    SessionConfigured,
    Steered,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnTaken,
)

IDLE_S = 5.0
"""A shorter pause is the engine's own work, or a machine that is busy with something else."""
FAILED_ATTEMPT_S = 120.0
"""So much before a first failed attempt counts as asking; when it was begun is not on record."""
TOOL_S = 150.0
"""Most tools are stopped after 120 s."""
LONG_TOOL_S = 3_600.0
"""For tools that are let run longer: commands, tools of other programs, the first look through a large folder."""
LONG_EFFECTS = frozenset({"job", "external"})
LONG_TOOLS = frozenset({"search_corpus", "read_document"})
CALL_AGENT = "call_agent"
Span = tuple[datetime, datetime]


@dataclass(frozen=True)
class Life:
    """One stretch in which a process worked on the run."""

    start: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        """How long it was."""
        return (self.end - self.start).total_seconds()


class RunClock:
    """Tells how long a run had been worked on at a given moment."""

    def __init__(self, lives: Sequence[Life]) -> None:
        self.lives = tuple(lives)
        self._starts = [life.start for life in self.lives]
        self._before = list(accumulate((life.seconds for life in self.lives), initial=0.0))

    def at(self, moment: datetime) -> float:
        """Seconds of work up to a moment; in a pause, those up to its beginning."""
        place = bisect_right(self._starts, moment) - 1
        if place < 0:
            return 0.0
        life = self.lives[place]
        return self._before[place] + (min(moment, life.end) - life.start).total_seconds()

    @property
    def seconds(self) -> float:
        """Of all lives together."""
        return self._before[-1]


def clock_of(records: Sequence[Record]) -> RunClock:
    """Read a run's lives off its records."""
    if not records:
        return RunClock(())
    starts, ends = [records[0].at], list[datetime]()
    for start, end in _pauses(records):
        if starts[-1] == start and len(starts) > 1:
            # Nothing but a mark stands between two pauses: they are one.
            starts[-1] = end
        else:
            ends.append(max(start, starts[-1]))
            starts.append(end)
    # Never backwards, though the machine's clock may have been set between two records.
    ends.append(max(starts[-1], records[-1].at))
    return RunClock([Life(start, end) for start, end in zip(starts, ends, strict=True)])


def request_starts(records: Sequence[Record]) -> dict[int, datetime]:
    """When the request of each turn went out, by the turn's record; never before the agent's record before it."""
    latest: dict[str, datetime] = {}
    starts: dict[int, datetime] = {}
    for record in records:
        event = record.event
        if isinstance(event, TurnTaken):
            asked = record.at - timedelta(seconds=max(0.0, event.seconds))
            starts[record.seq] = min(record.at, max(asked, latest.get(event.agent, asked)))
        latest[event.agent] = record.at
    return starts


def _pauses(records: Sequence[Record]) -> list[Span]:
    """The times between lives, in order."""
    asked_since = _asked_since(records)
    watch, found = _Watch(), list[Span]()
    for (before, record), asked in zip(pairwise(records), asked_since[1:], strict=True):
        watch.see(before)
        # What was answered later than this record and asked before it was asked by a living process.
        end = min(record.at, asked)
        if watch.is_certain(before, record) or watch.is_dead((end - before.at).total_seconds()):
            found.append((before.at, max(before.at, end)))
    return found


def _asked_since(records: Sequence[Record]) -> list[datetime]:
    """For each record, the earliest moment at which a model was asked for something that came with it or later."""
    asked = request_starts(records)
    latest, failed = dict[str, datetime](), dict[str, datetime]()
    for record in records:
        event = record.event
        if isinstance(event, TurnFailed):
            since = record.at - timedelta(seconds=FAILED_ATTEMPT_S)
            # Attempts are counted by the process that makes them: a second one had its first in the same life.
            before = failed.get(event.agent) if event.attempt > 1 else None
            asked[record.seq] = before or max(since, latest.get(event.agent, since))
            failed[event.agent] = record.at
        latest[event.agent] = record.at
    starts = [asked.get(record.seq, record.at) for record in reversed(records)]
    return list(reversed(list(accumulate(starts, min))))


@dataclass
class _Agent:
    """What an agent waits for."""

    has_asked: bool = False
    """Its task has had a turn: it waits for no place any more."""
    calls: int = 0
    """Calls of its last turn that are not answered."""


@dataclass
class _Watch:
    """What is known of a run up to some record: who works, and what for."""

    agents: dict[str, _Agent] = field(default_factory=dict[str, _Agent])
    """Those at work."""
    tools: dict[str, float] = field(default_factory=dict[str, float])
    """By key of each call that is not answered, how long it may take."""
    leader: str = ""
    has_sandbox: bool = False
    has_session: bool = False

    def see(self, record: Record) -> None:
        """Take one record in."""
        event = record.event
        match event:
            case AgentStarted() | AgentContinued():
                self.leader = self.leader or event.agent
                self.agents[event.agent] = _Agent()
            case TurnTaken() if event.agent in self.agents:
                self.agents[event.agent] = _Agent(has_asked=True, calls=len(event.turn.calls))
            case ToolStarted() if event.name != CALL_AGENT:
                self.tools[event.call] = _limit_s(event)
            case ToolFinished() if event.agent in self.agents:
                self.agents[event.agent].calls -= 1
                self.tools.pop(event.call, None)
            case AgentFinished():
                self.agents.pop(event.agent, None)
            case SandboxChosen():
                self.has_sandbox = True
            case SessionConfigured():
                self.has_session = True
            case _:
                pass

    def is_certain(self, before: Record, record: Record) -> bool:
        """Whether another process wrote the later of two records."""
        event = record.event
        if isinstance(before.event, RunFinished | RunForked) or isinstance(event, Repaired | RunForked):
            return True
        if isinstance(event, SandboxChosen):
            return self.has_sandbox
        if isinstance(event, SessionConfigured):
            return self.has_session
        return isinstance(event, Steered) and not event.order

    def is_dead(self, seconds: float) -> bool:
        """Whether a time in which no model was asked is one in which nobody worked."""
        # Before the first agent begins and after the last is done, the engine reads files and checks the report.
        if self.leader not in self.agents or seconds <= IDLE_S:
            return False
        is_due = any(agent.has_asked and agent.calls <= 0 for agent in self.agents.values())
        return is_due or seconds > max(self.tools.values(), default=TOOL_S)


def _limit_s(event: ToolStarted) -> float:
    return LONG_TOOL_S if event.effect in LONG_EFFECTS or event.name in LONG_TOOLS else TOOL_S
