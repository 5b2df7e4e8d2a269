import asyncio
from collections import Counter
from pathlib import Path

import pytest

from explorer.journal.listing import read_records
from explorer.run.run import resume, start
from explorer.schema.errors import ExplorerError, ModelError, ModelFault
from explorer.schema.events import Status, ToolStarted, TurnFailed
from explorer.schema.settings import Limits
from faults.fault_table import TABLE, Row
from faults.stage import QUESTION, WATCH_S, WIRES, check_left_behind, hooks, only_run, part_of, settings, steady
from model_servers import Asked, Reply
from team_script import role_of


def _marks(row: Row, *, is_todays: bool) -> list[pytest.MarkDecorator]:
    takes_long = row.name in {"ten megabytes", "silence", "pings only"} or row.name.endswith("for ever")
    return [] if is_todays and not takes_long else [pytest.mark.slow]


MOST_ATTEMPTS = 50
"""At one request: in ten minutes of an outage one every half minute, at first more, and each up to twice as soon."""
CASES = [
    pytest.param(
        row,
        wire,
        id=f"{row.name}-{wire}",
        marks=_marks(row, is_todays=number % 9 == 0 and number % len(WIRES) == shift),
    )
    for number, row in enumerate(TABLE)
    for shift, wire in enumerate(WIRES)
]
"""Every row on every wire; every ninth row on one of them every day, but for those that take long."""


class Striking:
    """The steady team, but that a fault strikes the orchestrator's second request and one helper's second."""

    def __init__(self, row: Row) -> None:
        self._row = row
        self.struck: Counter[str] = Counter()

    def __call__(self, asked: Asked) -> Reply:
        """Answer, or fail."""
        place = self._place(asked)
        if place and self.struck[place] < self._row.times:
            self.struck[place] += 1
            return self._row.at(asked)
        return steady(asked)

    @staticmethod
    def _place(asked: Asked) -> str:
        role = role_of(asked)
        if role == "orchestrator":
            return role if asked.results else ""
        return role if role == "searcher" and asked.results and part_of(asked) == "1" else ""


def watch_of(row: Row) -> float:
    """Seconds without content after which a model counts as stuck: few only where it is, however busy the machine."""
    return WATCH_S if row.fault is ModelFault.STALLED else 10 * WATCH_S


async def _outcome(row: Row, wire: str, folder: Path) -> ExplorerError | None:
    """Run with the fault; what stopped it, if anything did."""
    script = Striking(row)
    with WIRES[wire](script) as server:
        stopped: ExplorerError | None = None
        try:
            async with asyncio.timeout(50):
                # Ten megabytes that go back to the model would cost more than the default limit.
                unlimited = settings(folder, server).model_copy(update={"limits": Limits(max_cost_usd=None)})
                result = await start(QUESTION, unlimited, hooks(watch_of(row)))
        except ExplorerError as error:
            stopped = error
        else:
            assert result.status is (Status.PARTIAL if row.is_partial else Status.COMPLETE), result.reason
        check_left_behind(only_run(folder), server)
    if row.stops is None:
        assert script.struck == {"searcher": row.times, "orchestrator": row.times}
    assert 0 < script.struck["searcher"] <= MOST_ATTEMPTS
    return stopped


def _check_attempts(row: Row, run: Path) -> None:
    failed = [record.event for record in read_records(run) if isinstance(record.event, TurnFailed)]
    assert {event.fault for event in failed} == ({row.fault} if row.fault else set())
    waits = [event.waits_s for event in failed if event.waits_s is not None]
    assert all(row.waits_s[0] <= wait <= row.waits_s[1] for wait in waits), waits
    assert max((event.attempt for event in failed), default=0) <= MOST_ATTEMPTS


@pytest.mark.parametrize(("row", "wire"), CASES)
async def test_a_fault_of_the_model_costs_no_work(row: Row, wire: str, tmp_path: Path) -> None:
    """Whatever the API does: no hang, no raw exception, nothing half is run, and a report or a run to resume."""
    stopped = await _outcome(row, wire, tmp_path)
    run = only_run(tmp_path)
    _check_attempts(row, run)
    assert not (run / "cut").exists()
    started = [record.event for record in read_records(run) if isinstance(record.event, ToolStarted)]
    assert not [event for event in started if event.change is not None and event.change.path.startswith("cut/")]
    if row.stops is None:
        assert stopped is None
        return
    assert isinstance(stopped, ModelError)
    assert (stopped.exit_code, stopped.fault) == (row.stops, row.fault)
    assert f"explorer resume {run.name}" in (run / "report.md").read_text()
    with WIRES[wire](steady) as server:
        result = await resume(run, settings(tmp_path, server), hooks=hooks(watch_of(row)))
        assert result.status is Status.COMPLETE
        check_left_behind(run, server)
