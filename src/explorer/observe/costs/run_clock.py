"""A run's own clock: it stands still while no process works on the run.

Each process that works on a run records a `session_configured` first: between the record before it and this one the run
lay still. Journals of the first version do not have it; there, a pause is known by an end of the run, a repair, a fork,
a second choice of sandbox, or words that came with a resume, and any other pause counts as work.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate, pairwise

from explorer.schema.events import (
    JournalRecord,
    Repaired,
    RunFinished,
    RunForked,
    SandboxChosen,
    SessionConfigured,
    Steered,
    TurnTaken,
)

CALL_AGENT = "call_agent"
Span = tuple[datetime, datetime]


@dataclass(frozen=True)
class SessionInterval:
    """One stretch in which a process worked on the run."""

    start: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        """How long it was."""
        return (self.end - self.start).total_seconds()


class RunClock:
    """Tells how long a run had been worked on at a given moment."""

    def __init__(self, sessions: Sequence[SessionInterval]) -> None:
        self.sessions = tuple(sessions)
        self._starts = [interval.start for interval in self.sessions]
        self._before = list(accumulate((interval.seconds for interval in self.sessions), initial=0.0))

    def at(self, moment: datetime) -> float:
        """Seconds of work up to a moment; in a pause, those up to its beginning."""
        place = bisect_right(self._starts, moment) - 1
        if place < 0:
            return 0.0
        interval = self.sessions[place]
        return self._before[place] + (min(moment, interval.end) - interval.start).total_seconds()

    @property
    def seconds(self) -> float:
        """Of all lives together."""
        return self._before[-1]


def clock_of(records: Sequence[JournalRecord]) -> RunClock:
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
    return RunClock([SessionInterval(start, end) for start, end in zip(starts, ends, strict=True)])


def request_starts(records: Sequence[JournalRecord]) -> dict[int, datetime]:
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


def _pauses(records: Sequence[JournalRecord]) -> list[Span]:
    """The times between lives, in order."""
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
