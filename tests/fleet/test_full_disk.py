"""A worker whose disk is full: the queue is not emptied into failures, and all goes on when there is space."""

from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="the extra fleet is not installed")

from cli.conftest import hold
from cli.stage import Hold
from explorer.fleet.own_disk import OwnDisk
from explorer.fleet.runs import NewRun, QueueState
from explorer.schema.errors import ConfigError, JournalDamagedError, StorageError
from fleet.test_workers import OFFLINE, QUESTION, queue_in, until, worker
from small_disk import enlarge, small_disk

_ = hold
RUNS = 3
TOO_SMALL_BYTES = 40_000


@pytest.mark.slow
def test_a_worker_with_a_full_disk_fails_no_run(tmp_path: Path, hold: Hold) -> None:
    """The run that found out goes back to the queue with the reason, and no other is taken before there is space."""
    hold.let_go.set()
    with small_disk(tmp_path / "small", TOO_SMALL_BYTES) as disk, queue_in(tmp_path) as queue:
        runs = [queue.submit(NewRun(QUESTION, OFFLINE))[0] for _ in range(RUNS)]
        with worker(tmp_path, hold, "--workspace", str(disk), "--concurrency", "1", "--until-empty") as one:
            until(lambda: any("disk" in queue.run(run).reason for run in runs))
            returned = [queue.run(run) for run in runs]
            assert {run.state for run in returned} == {QueueState.WAITING}, returned
            assert sum("No space left on device" in run.reason for run in returned) == 1
            enlarge(disk)
            until(lambda: all(queue.run(run).state is QueueState.DONE for run in runs))
            out, _error = one.communicate(timeout=60)
        assert "no run is taken until there is space" in out
        assert "runs are taken again" in out
        assert sum(": taken" in line for line in out.splitlines()) == RUNS + 1


def test_a_disk_with_space_is_not_at_fault(tmp_path: Path) -> None:
    """What ended a run for another reason is the run's, or somebody else's."""
    said: list[str] = []
    disk = OwnDisk(tmp_path, said.append)
    for error in (StorageError("the database is away"), JournalDamagedError("line 3"), ConfigError("no key")):
        assert not disk.is_at_fault(error)
    assert disk.has_space()
    assert list(tmp_path.iterdir()) == said == []
