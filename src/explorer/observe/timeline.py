"""A run's records as intervals of work on the run's own clock, which stops between processes; and the critical path.

Each process that works on a run records a `session_configured` first: between the record before it and this one the run
paused. Journals of the first version do not have it; there, a pause is known by an end of the run, a repair, a fork,
a second choice of sandbox, or a message with a resume, and any other pause counts as work.

The critical path is the chain of waiting that made a run last as long as it did, from its end back to its start.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import accumulate, pairwise

from explorer.schema.event import ENGINE
from explorer.schema.events import (
    AgentContinued,
    AgentFinished,
    AgentStarted,
    JournalRecord,
    Repaired,
    RunFinished,
    RunForked,
    SandboxChosen,
    SessionConfigured,
    Steered,
    ToolFinished,
    ToolStarted,
    TurnTaken,
)
from explorer.schema.tool import Effect

Span = tuple[datetime, datetime]


@dataclass(frozen=True)
class SessionInterval:
    """The time in which one process worked on the run."""

    start: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        """The length in seconds."""
        return (self.end - self.start).total_seconds()


class RunClock:
    """The clock of a run, which stops in pauses."""

    def __init__(self, sessions: Sequence[SessionInterval]) -> None:
        self.sessions = tuple(sessions)
        self._starts = [interval.start for interval in self.sessions]
        self._before = list(accumulate((interval.seconds for interval in self.sessions), initial=0.0))

    def at(self, moment: datetime) -> float:
        """Return the seconds of work up to a moment; in a pause, up to its beginning."""
        place = bisect_right(self._starts, moment) - 1
        if place < 0:
            return 0.0
        interval = self.sessions[place]
        return self._before[place] + (min(moment, interval.end) - interval.start).total_seconds()

    @property
    def seconds(self) -> float:
        """The seconds of all sessions together."""
        return self._before[-1]


def clock_of(records: Sequence[JournalRecord]) -> RunClock:
    """Return the clock of a run from its records."""
    if not records:
        return RunClock(())
    starts, ends = [records[0].at], list[datetime]()
    for start, end in _pauses(records):
        if starts[-1] == start and len(starts) > 1:
            # Only a mark is between two pauses: they are one.
            starts[-1] = end
        else:
            ends.append(max(start, starts[-1]))
            starts.append(end)
    # Never backwards, though the machine's clock may have been set between two records.
    ends.append(max(starts[-1], records[-1].at))
    return RunClock([SessionInterval(start, end) for start, end in zip(starts, ends, strict=True)])


def request_starts(records: Sequence[JournalRecord]) -> dict[int, datetime]:
    """Return when the request of each turn was sent, by the number of the turn's record.

    It is never earlier than the agent's record before it.
    """
    latest: dict[str, datetime] = {}
    starts: dict[int, datetime] = {}
    for record in records:
        event = record.event
        if isinstance(event, TurnTaken):
            asked = record.at - timedelta(seconds=max(0.0, event.seconds))
            starts[record.seq] = min(record.at, max(asked, latest.get(event.agent, asked)))
        latest[event.agent] = record.at
    return starts


def _pauses(records: Sequence[JournalRecord]) -> list[Span]:
    """Return the times between sessions, in order."""
    seen, found = set[str](), list[Span]()
    for before, record in pairwise(records):
        seen.add(before.event.type)
        if _is_of_another_process(before, record, seen):
            found.append((before.at, max(before.at, record.at)))
    return found


def _is_of_another_process(before: JournalRecord, record: JournalRecord, seen: set[str]) -> bool:
    """Return whether another process wrote the later of two records; `seen` has the types of all before it."""
    event = record.event
    if isinstance(before.event, RunFinished | RunForked) or isinstance(event, Repaired | RunForked):
        return True
    if isinstance(event, SandboxChosen | SessionConfigured):
        return event.type in seen
    return isinstance(event, Steered) and not event.order


class WorkKind(StrEnum):
    """What an agent waits for during an interval of its work."""

    MODEL = "model"
    TOOL = "tool"
    HELPER = "helper"
    """A helper that it called."""


@dataclass(frozen=True)
class Interval:
    """The time in which an agent waited for one thing."""

    agent: str
    kind: WorkKind
    start: float
    """Its start in seconds on the run's clock."""
    end: float
    after: int
    """The record after which it began."""
    seq: int
    """The record with which it ended; one past the last if it is not over."""
    call: str = ""
    """The engine's key of the call; empty for a turn."""


@dataclass(frozen=True)
class Task:
    """One task of an agent: its first one, or a further one."""

    agent: str
    parent: str
    call: str
    """The `call_agent` call that waits for it; empty for the orchestrator."""
    start: float
    seq: int
    """The record with which it began."""
    end: float
    last: int
    """The record with which it ended; one past the last if it is not over."""


@dataclass
class Timeline:
    """The work of all agents of a run."""

    clock: RunClock
    over: int
    """The number after the last record's."""
    roles: dict[str, str] = field(default_factory=dict[str, str])
    """The role of each agent, in the order of their starts."""
    intervals: dict[str, list[Interval]] = field(default_factory=dict[str, list[Interval]])
    """The intervals of each agent, in the order of their ends."""
    tasks: dict[str, list[Task]] = field(default_factory=dict[str, list[Task]])
    """The tasks of each agent, in order."""

    @property
    def seconds(self) -> float:
        """The seconds of work from the first record to the last."""
        return self.clock.seconds


def timeline_of(records: Sequence[JournalRecord]) -> Timeline:
    """Return the work of a run from its records."""
    reading = _Reading(records)
    for record in records:
        reading.see(record)
    return reading.finished()


class _Reading:
    """Makes intervals of work from records."""

    def __init__(self, records: Sequence[JournalRecord]) -> None:
        self._asked = request_starts(records)
        over = records[-1].seq + 1 if records else 1
        self._work = Timeline(clock_of(records), over)
        self._latest: dict[str, int] = {}
        """The latest record of each agent."""
        self._open: dict[str, Interval] = {}
        """The intervals of calls without a result, by key."""

    def see(self, record: JournalRecord) -> None:
        """Add one record."""
        event, work, now = record.event, self._work, self._work.clock.at(record.at)
        match event:
            case AgentStarted() | AgentContinued():
                self._begin(event, record.seq, now)
            case TurnTaken():
                start = work.clock.at(self._asked[record.seq])
                after = self._latest.get(event.agent, 0)
                self._add(Interval(event.agent, WorkKind.MODEL, start, now, after, record.seq))
            case ToolStarted():
                kind = WorkKind.HELPER if event.effect == Effect.CHILD else WorkKind.TOOL
                self._open[event.call] = Interval(event.agent, kind, now, now, record.seq, work.over, event.call)
            case ToolFinished() if event.call in self._open:
                self._add(replace(self._open.pop(event.call), end=now, seq=record.seq))
            case AgentFinished():
                tasks = work.tasks.get(event.agent)
                if tasks:
                    tasks[-1] = replace(tasks[-1], end=now, last=record.seq)
            case _:
                pass
        self._latest[event.agent] = record.seq

    def finished(self) -> Timeline:
        """Return the timeline; open intervals last to the latest record."""
        work = self._work
        for interval in sorted(self._open.values(), key=lambda interval: -interval.start):
            self._add(replace(interval, end=work.seconds))
        for tasks in work.tasks.values():
            tasks[:] = [replace(task, end=work.seconds) if task.last == work.over else task for task in tasks]
        return work

    def _begin(self, event: AgentStarted | AgentContinued, seq: int, now: float) -> None:
        tasks = self._work.tasks.setdefault(event.agent, [])
        parent = event.parent if isinstance(event, AgentStarted) else (tasks[0].parent if tasks else "")
        if isinstance(event, AgentStarted):
            self._work.roles[event.agent] = event.role
        tasks.append(Task(event.agent, parent, event.parent_call, now, seq, now, self._work.over))

    def _add(self, interval: Interval) -> None:
        self._work.intervals.setdefault(interval.agent, []).append(interval)


def covered(intervals: Iterable[Interval]) -> list[tuple[float, float]]:
    """Return the union of intervals as spans that do not overlap, in order."""
    spans: list[tuple[float, float]] = []
    for start, end in sorted((interval.start, interval.end) for interval in intervals):
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def length(spans: Iterable[tuple[float, float]]) -> float:
    """Return the seconds of spans that do not overlap."""
    return sum(end - start for start, end in spans)


PLACE_WAIT_S = 0.05
"""Seconds before its first turn after which a helper is taken to wait for another one's place."""
ROUNDING_S = 0.01
"""The rounding error of a turn's seconds, and of the time of its record."""


@dataclass
class PathSegment:
    """One part of the critical path: the work of one agent."""

    agent: str
    """The agent; `engine` before the first agent begins and after the last one has ended."""
    start_s: float
    """Its start in seconds on the run's clock."""
    seconds: float = 0.0
    model_s: float = 0.0
    tools_s: float = 0.0
    other_s: float = 0.0
    """The engine's own work, and waiting for a place or for the limits."""


def critical_path(work: Timeline) -> tuple[PathSegment, ...]:
    """Return the parts of the critical path from start to end; their seconds add up to the run's."""
    leader = next((agent for agent, tasks in work.tasks.items() if not tasks[0].parent), "")
    walk = _Walk(work, leader)
    if leader:
        while walk.step():
            pass
    walk.add(ENGINE, None, 0.0)
    return tuple(reversed(walk.links))


class _Walk:
    """Goes back through a run, from each moment to what the agent had waited for."""

    def __init__(self, work: Timeline, leader: str) -> None:
        self._work = work
        self._agent = leader
        self._bound = work.over + 1
        """The next interval ended with an earlier record than this."""
        self._now = work.seconds
        self._seqs = {agent: [interval.seq for interval in intervals] for agent, intervals in work.intervals.items()}
        self._callers = {
            interval.call: interval for intervals in work.intervals.values() for interval in intervals if interval.call
        }
        everyone = [task for tasks in work.tasks.values() for task in tasks]
        self._called = {task.call: task for task in everyone if task.call}
        self._ended = sorted((task for task in everyone if task.last < work.over), key=lambda task: task.end)
        self._ends = [task.end for task in self._ended]
        self._steps_left = 4 * work.over
        self.links: list[PathSegment] = []
        """The parts of the path, from the latest to the earliest."""
        last = work.tasks[leader][-1] if leader else None
        if last is not None and last.last < work.over:
            self.add(ENGINE, None, last.end)

    def step(self) -> bool:
        """Step back over an interval, or from a task's beginning to what it waited for; False at the run's start."""
        # A machine's clock that jumps could make an endless loop.
        self._steps_left -= 1
        task = self._task()
        if task is None or self._steps_left < 0:
            return False
        interval = self._interval()
        if interval is None or interval.seq < task.seq:
            return self._leave(task)
        helper = self._called.get(interval.call) if interval.kind is WorkKind.HELPER else None
        self.add(self._agent, None, interval.end)
        if helper is not None and helper.seq > interval.after:
            self.add(self._agent, None, helper.end)
            self._agent, self._bound = helper.agent, min(helper.last + 1, self._bound)
        else:
            self.add(self._agent, WorkKind.MODEL if interval.kind is WorkKind.MODEL else WorkKind.TOOL, interval.start)
            self._bound = interval.after + (interval.kind is WorkKind.MODEL)
        return True

    def _leave(self, task: Task) -> bool:
        """Go from a task's beginning to the agent that had its place, else to the agent that called it."""
        before = self._had_place(task) if task.call and self._now - task.start > PLACE_WAIT_S else None
        if before is not None:
            self.add(self._agent, None, before.end)
            self._agent, self._bound = before.agent, before.last + 1
            return True
        self.add(self._agent, None, task.start)
        self._bound = task.seq
        caller = self._callers.get(task.call)
        if caller is not None:
            self.add(caller.agent, None, caller.start)
            self._agent, self._bound = caller.agent, caller.after
        elif task.parent:
            self._agent = task.parent
        else:
            earlier = self._task()
            self.add(ENGINE, None, earlier.end if earlier else 0.0)
        return True

    def _had_place(self, task: Task) -> Task | None:
        """Return the task of the helper whose end let another one begin."""
        place = bisect_right(self._ends, self._now + ROUNDING_S) - 1
        while place >= 0 and self._ends[place] > task.start:
            found = self._ended[place]
            if found.agent != task.agent and found.call:
                return found
            place -= 1
        return None

    def _task(self) -> Task | None:
        """Return the agent's task at this point."""
        tasks = self._work.tasks.get(self._agent, ())
        return next((task for task in reversed(tasks) if task.seq < self._bound), None)

    def _interval(self) -> Interval | None:
        """Return the agent's latest interval before this point."""
        place = bisect_left(self._seqs.get(self._agent, ()), self._bound) - 1
        return self._work.intervals[self._agent][place] if place >= 0 else None

    def add(self, agent: str, kind: WorkKind | None, since: float) -> None:
        """Add the time between a moment and the one reached so far."""
        seconds = self._now - since
        if seconds <= 0:
            return
        if not self.links or self.links[-1].agent != agent:
            self.links.append(PathSegment(agent, since))
        link = self.links[-1]
        self._now = link.start_s = since
        link.seconds += seconds
        if kind is WorkKind.MODEL:
            link.model_s += seconds
        elif kind is WorkKind.TOOL:
            link.tools_s += seconds
        else:
            link.other_s += seconds


def longest(links: Sequence[PathSegment], most: int) -> list[PathSegment]:
    """Return the longest parts of the path, in order."""
    kept = {id(link) for link in sorted(links, key=lambda link: -link.seconds)[:most]}
    return [link for link in links if id(link) in kept]
