"""The chain of waiting that made a run last as long as it did, from its end back to its start."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from explorer.observe.costs.timeline import Interval, Task, Timeline, WorkKind
from explorer.schema.events import ENGINE

PLACE_WAIT_S = 0.05
"""A helper that waits longer for its first turn waits for a place that another one has."""
ROUNDING_S = 0.01
"""Of the seconds of a turn, and of the moment at which it is written down."""


@dataclass
class PathSegment:
    """What was waited for in one stretch of the run: one agent's work."""

    agent: str
    """`engine` for what is done before the first agent begins and after the last has ended."""
    start_s: float
    """On the run's clock, which stands still while no process works on the run."""
    seconds: float = 0.0
    model_s: float = 0.0
    tools_s: float = 0.0
    other_s: float = 0.0
    """The engine's own work, and waiting for a place or for room in the limits."""


def critical_path(work: Timeline) -> tuple[PathSegment, ...]:
    """The links from start to end; their seconds add up to the run's."""
    leader = next((agent for agent, tasks in work.tasks.items() if not tasks[0].parent), "")
    walk = _Walk(work, leader)
    if leader:
        while walk.step():
            pass
    walk.add(ENGINE, None, 0.0)
    return tuple(reversed(walk.links))


class _Walk:
    """Goes back through a run: at each moment, to what the agent there had waited for."""

    def __init__(self, work: Timeline, leader: str) -> None:
        self._work = work
        self._agent = leader
        self._bound = work.over + 1
        """Only what ended with an earlier record comes next."""
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
        """From the latest to the earliest."""
        last = work.tasks[leader][-1] if leader else None
        if last is not None and last.last < work.over:
            self.add(ENGINE, None, last.end)

    def step(self) -> bool:
        """Go back over one piece, or from a task's beginning to what it waited for; False at the run's beginning."""
        # A machine's clock that jumps could make a circle of it.
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
        """From a task's beginning on: to the agent that had its place, else to the agent that called it."""
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
        """The helper whose end let another one begin."""
        place = bisect_right(self._ends, self._now + ROUNDING_S) - 1
        while place >= 0 and self._ends[place] > task.start:
            found = self._ended[place]
            if found.agent != task.agent and found.call:
                return found
            place -= 1
        return None

    def _task(self) -> Task | None:
        """The agent's task at this point."""
        tasks = self._work.tasks.get(self._agent, ())
        return next((task for task in reversed(tasks) if task.seq < self._bound), None)

    def _interval(self) -> Interval | None:
        """The agent's latest piece before this point."""
        place = bisect_left(self._seqs.get(self._agent, ()), self._bound) - 1
        return self._work.intervals[self._agent][place] if place >= 0 else None

    def add(self, agent: str, kind: WorkKind | None, since: float) -> None:
        """Put down what was waited for between a moment and the one reached so far."""
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
    """The longest links, in order."""
    kept = {id(link) for link in sorted(links, key=lambda link: -link.seconds)[:most]}
    return [link for link in links if id(link) in kept]
