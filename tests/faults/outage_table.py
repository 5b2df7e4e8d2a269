"""Outages in the middle of a fan-out: what is run, what has to come of it, and the table of `make outages`.

Time is counted by the waits themselves: a clock that only sleeping moves on. An outage of 20 minutes takes a second,
and no verdict depends on how busy the machine is.
"""

import asyncio
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from explorer.journal.listing import read_records
from explorer.llm.clients import RetrySettings
from explorer.llm.options import Timeouts
from explorer.llm.retry import Timing
from explorer.run.hooks import RunHooks
from explorer.run.run import resume, start
from explorer.schema.errors import ModelError
from explorer.schema.events import AgentFinished, AgentStarted, JournalRecord, Status, TurnFailed
from faults.stage import QUESTION, WIRES, Raw, Watchful, check_left_behind, only_run, settings, steady
from model_servers import Asked, Reply
from team_script import role_of

PARTS = 6
"""Helpers that are at work when the server goes."""
SURVIVED_S = (10, 20, 30, 60, 90, 300)
TOO_LONG_S = 1_200
PAUSED = 6
"""The exit code."""
WAYS = ("closed", "reset", "503", "amid")
"""Nothing listens; connections are reset; a gateway answers for the server; streams begin and break."""
RUNS = [(wire, way) for wire in WIRES for way in WAYS]
"""Twelve of each length."""


class SleepingTime:
    """A clock that only sleeping moves on."""

    def __init__(self, seed: int) -> None:
        self.now = 0.0
        self.look: Callable[[], None] = lambda: None
        """Called whenever time has passed."""
        self.timing = Timing(lambda: self.now, self.sleep, random.Random(seed).random)  # noqa: S311 - jitter

    async def sleep(self, seconds: float) -> None:
        """Move the clock on, and let the others work."""
        until = self.now + seconds
        await asyncio.sleep(0)
        self.now = max(self.now, until)
        self.look()


class Outage:
    """The steady team, whose server is gone for some seconds from a helper's second request on."""

    def __init__(self, way: str, seconds: float, clock: SleepingTime) -> None:
        self._way, self._seconds, self._clock = way, seconds, clock
        self._began: float | None = None
        self._is_closed = False
        self.server: Watchful | None = None

    @property
    def is_on(self) -> bool:
        """Whether the server is gone now."""
        return self._began is not None and self._clock.now < self._began + self._seconds

    def __call__(self, asked: Asked) -> Reply:
        """Answer, or be gone."""
        if self._began is None and role_of(asked) == "searcher" and asked.results:
            self._began = self._clock.now
            if self._way == "closed":
                return Raw(resets="before", before=self._close)
        if not self.is_on:
            return steady(asked, PARTS)
        if self._way == "503":
            return Reply(status=503, body="<html><h1>Service Unavailable</h1></html>")
        return Raw(text="I look at it now.", resets="amid" if self._way == "amid" else "before")

    def _close(self) -> None:
        assert self.server is not None
        self.server.stop_listening()
        self._is_closed = True

    def look(self) -> None:
        """Listen at the old port again once the outage is over."""
        if self._is_closed and not self.is_on and self.server is not None:
            self._is_closed = False
            self.server.listen_again()

    def end(self) -> None:
        """Let the time pass until the outage is over."""
        self._clock.now += self._seconds
        self.look()


@dataclass(frozen=True)
class Outcome:
    """What came of one run."""

    is_paused: bool
    """It was paused, and then resumed."""
    attempts: int
    """Failed ones."""
    told: int
    """Of them, those that say since when the run waits."""
    waited_s: float
    """By the clock of the waits."""
    problem: str
    """What is not as it has to be; empty: nothing."""


async def run_through(wire: str, way: str, seconds: float, folder: Path, seed: int = 7) -> Outcome:
    """Make one run that meets an outage; if it was paused, resume it: after the outage, or during it if it is short."""
    clock = SleepingTime(seed)
    outage = Outage(way, seconds, clock)
    clock.look = outage.look
    timeouts = Timeouts(connect_s=20, first_content_s=60, idle_s=60, total_s=120)
    hooks = RunHooks(retry_settings=RetrySettings(timeouts, clock.timing), run_id="20260810-120000-plant-0001")
    is_paused, problems = False, list[str]()
    with WIRES[wire](outage) as server:
        outage.server = server
        given = settings(folder, server, max_parallel_agents=PARTS)
        async with asyncio.timeout(100):
            try:
                result = await start(QUESTION, given, hooks)
            except ModelError as error:
                is_paused = True
                problems += _of_pause(error, only_run(folder))
                if seconds >= TOO_LONG_S:
                    outage.end()
                result = await resume(only_run(folder), given, hooks=hooks)
        check_left_behind(result.folder, server)
    if result.status is not Status.COMPLETE:
        problems.append(f"{result.status}: {result.reason}")
    records = list(read_records(result.folder))
    failed = [record.event for record in records if isinstance(record.event, TurnFailed)]
    return Outcome(
        is_paused,
        len(failed),
        sum(event.waiting_since is not None for event in failed),
        clock.now,
        "; ".join([*problems, *_of_agents(records)]),
    )


def _of_pause(error: ModelError, run: Path) -> list[str]:
    report = (run / "report.md").read_text()
    checks = {
        f"exit code {error.exit_code}": error.exit_code == PAUSED,
        f"no outage: {error.message}": error.is_outage,
        "no resume command in the report": f"explorer resume {run.name}" in report,
        "a helper was recorded as ended": not [
            record for record in read_records(run) if isinstance(record.event, AgentFinished)
        ],
    }
    return [problem for problem, holds in checks.items() if not holds]


def _of_agents(records: list[JournalRecord]) -> list[str]:
    """Check that every piece of work was given once, and no helper failed."""
    started = Counter(record.event.task for record in records if isinstance(record.event, AgentStarted))
    problems = [f"given {times} times: {task}" for task, times in started.items() if times > 1]
    if len(started) != PARTS + 2:
        problems.append(f"{len(started)} agents")
    ended = [record.event for record in records if isinstance(record.event, AgentFinished)]
    return problems + [f"{event.agent} {event.status}" for event in ended if event.status is not Status.COMPLETE]


def main() -> int:
    """Print a row for each length of an outage; the exit code says whether all runs are as they have to be."""
    row = "{:>8}  {:>8}  {:>18}  {:>15}  {}"
    print(row.format("outage", "survived", "paused and resumed", "failed attempts", "problems"))  # noqa: T201 - a command
    problems = 0
    for seconds in (*SURVIVED_S, TOO_LONG_S):
        outcomes = [_alone(wire, way, seconds, seed) for seed, (wire, way) in enumerate(RUNS)]
        wrong = [f"{RUNS[at]}: {one.problem}" for at, one in enumerate(outcomes) if one.problem]
        good = [one for one in outcomes if not one.problem]
        problems += len(wrong) + sum(one.is_paused is not (seconds == TOO_LONG_S) for one in good)
        most = max(one.attempts for one in outcomes)
        survived, paused = (sum(one.is_paused is is_paused for one in good) for is_paused in (False, True))
        counts = [f"{count} of {len(RUNS)}" for count in (survived, paused)]
        print(row.format(f"{seconds} s", *counts, f"at most {most}", "; ".join(wrong) or "none"))  # noqa: T201
    return 1 if problems else 0


def _alone(wire: str, way: str, seconds: float, seed: int) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(run_through(wire, way, seconds, Path(folder), seed))


if __name__ == "__main__":
    sys.exit(main())
