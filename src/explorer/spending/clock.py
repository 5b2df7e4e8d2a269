"""A run's own clock: it stands still while no process works on the run.

The journal does not say where a process ended and the next began. What can be read off it is taken for certain: an
end of the run, a repair, a fork, a second choice of sandbox, words that came with a resume. Beside these, time is taken
for dead when no request to a model was under way in it, no tool was running, and the orchestrator was not done. The
one thing that cannot be seen is a process that ended while tools ran and nothing else; up to `LONGEST_TOOL_S` such a
pause counts as the tool's time.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
    Steered,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnTaken,
)

IDLE_S = 5.0
"""A shorter pause is the engine's own work, or a machine that is busy with something else."""
LONGEST_TOOL_S = 1_800.0
"""No tool is let run longer; a longer pause with only tools open was none of theirs."""
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
    """Tells how long a run had been worked on at a given time."""

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
    breaks = _breaks(records)
    starts = [records[0].at, *(end for _, end in breaks)]
    # Never backwards, though the machine's clock may have been set between two records.
    ends = [*(start for start, _ in breaks), max(record.at for record in records)]
    return RunClock([Life(start, max(start, end)) for start, end in zip(starts, ends, strict=True)])


def request_starts(records: Iterable[Record]) -> dict[int, datetime]:
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


def _breaks(records: Sequence[Record]) -> list[Span]:
    """The pauses between lives, in order."""
    asking = _Covered(_asking(records))
    watch, found = _Watch(), list[Span]()
    for before, record in pairwise(records):
        watch.see(before)
        bare = asking.bare(before.at, record.at)
        if watch.is_certain(before, record):
            # Before the first request of the new life is the pause; a request may reach back behind its first record.
            found.append(bare[0] if bare else (record.at, record.at))
        else:
            found += [span for span in bare if watch.is_dead(_seconds(span))]
    return found


def _asking(records: Sequence[Record]) -> list[Span]:
    """When a model was being asked for certain: a process was there."""
    starts, failed = request_starts(records), dict[str, datetime]()
    spans: list[Span] = []
    for record in records:
        event = record.event
        if isinstance(event, TurnTaken):
            spans.append((starts[record.seq], record.at))
        elif isinstance(event, TurnFailed):
            # Attempts after the first are counted by the process that made the one before.
            if event.attempt > 1 and event.agent in failed:
                spans.append((failed[event.agent], record.at))
            failed[event.agent] = record.at
    return sorted(spans)


class _Covered:
    """Spans of time, asked for what they leave bare; from early to late."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans: list[Span] = []
        for start, end in spans:
            if self._spans and start <= self._spans[-1][1]:
                self._spans[-1] = (self._spans[-1][0], max(end, self._spans[-1][1]))
            else:
                self._spans.append((start, end))
        self._starts = [start for start, _ in self._spans]

    def bare(self, start: datetime, end: datetime) -> list[Span]:
        """What of a span is not covered, in order."""
        found: list[Span] = []
        place = max(0, bisect_right(self._starts, start) - 1)
        while start < end and place < len(self._spans):
            covered_from, covered_to = self._spans[place]
            if covered_from >= end:
                break
            if start < covered_from:
                found.append((start, covered_from))
            start = max(start, covered_to)
            place += 1
        return [*found, (start, end)] if start < end else found


class _Watch:
    """What is known of a run up to some record: who works, and on what."""

    def __init__(self) -> None:
        self._tools: set[str] = set()
        self._leader = ""
        self._leads = False
        self._has_sandbox = False

    def see(self, record: Record) -> None:
        """Take one record in."""
        event = record.event
        match event:
            case AgentStarted() | AgentContinued():
                self._leader = self._leader or event.agent
                self._leads = self._leads or event.agent == self._leader
            case AgentFinished():
                self._leads = self._leads and event.agent != self._leader
            case ToolStarted() if event.name != CALL_AGENT:
                self._tools.add(event.call)
            case ToolFinished():
                self._tools.discard(event.call)
            case SandboxChosen():
                self._has_sandbox = True
            case _:
                pass

    def is_certain(self, before: Record, record: Record) -> bool:
        """Whether another process wrote the later of two records."""
        event = record.event
        if isinstance(before.event, RunFinished | RunForked) or isinstance(event, Repaired | RunForked):
            return True
        if isinstance(event, SandboxChosen):
            return self._has_sandbox
        return isinstance(event, Steered) and not event.order

    def is_dead(self, seconds: float) -> bool:
        """Whether a pause in which no model was asked is one in which nobody worked."""
        # Before the first agent begins and after the last is done the engine reads files and checks the report.
        return self._leads and seconds > (LONGEST_TOOL_S if self._tools else IDLE_S)


def _seconds(span: Span) -> float:
    return (span[1] - span[0]).total_seconds()
