"""What is removed from a fleet's queue and database, and what stays."""

import json
from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="the extra fleet is not installed")

import sqlalchemy as sa

from command import explorer_here
from explorer.fleet.database import BATCHES, CONTENTS, HELD, RUNS, SPENDING
from explorer.fleet.leases import Ending
from explorer.fleet.retention import ENDED, STUCK, Pruned, Retention
from explorer.fleet.run_contents import open_objects
from explorer.fleet.runs import FleetQueue, NewRun, QueueState
from explorer.schema.errors import StorageError
from fleet.test_queue import queue, tables, worker

_ = (queue, tables)
DAY_S = 24 * 60 * 60.0


def ended(queue: FleetQueue, state: QueueState, days_ago: float, place: str = "") -> str:
    """A run that ended so long ago, with a line and a file in the database, or the file in an object store."""
    run_id, _new = queue.submit(NewRun("What is new?", {}))
    one = worker(queue, f"worker-{run_id}")
    taken = one.take(run_id)
    assert taken is not None
    assert one.settle(taken, Ending(state))
    with queue.database.transaction() as connection:
        then = queue.database.now - days_ago * DAY_S
        connection.execute(sa.update(RUNS).where(RUNS.c.run_id == run_id).values(ended_at=then))
        connection.execute(
            sa.insert(BATCHES).values(run_id=run_id, number=1, epoch=1, last_seq=1, lines=b"line\n", files="")
        )
        content = b"" if place else b"file"
        connection.execute(sa.insert(CONTENTS).values(run_id=run_id, sha256="0a", content=content, place=place))
    return run_id


def stored(queue: FleetQueue) -> dict[str, set[str]]:
    """The runs of each table."""
    with queue.database.transaction() as connection:
        return {table.name: set(connection.scalars(sa.select(table.c.run_id))) for table in (RUNS, BATCHES, CONTENTS)}


def test_what_ended_long_ago_is_removed_whole(queue: FleetQueue) -> None:
    """A look changes nothing; runs that wait, are at work, failed or ended lately stay with all they have."""
    old = {ended(queue, QueueState.DONE, 31), ended(queue, QueueState.CANCELLED, 40)}
    failed = ended(queue, QueueState.FAILED, 90)
    late = ended(queue, QueueState.DONE, 29)
    waiting, _new = queue.submit(NewRun("And now?", {}))
    retention = Retention(queue, 30 * DAY_S)
    assert retention.look() == Pruned(2, 10, 8)
    assert stored(queue)["explorer_runs"] == {*old, failed, late, waiting}
    assert retention.prune() == Pruned(2, 10, 8)
    kept = {failed, late}
    assert stored(queue) == {
        "explorer_runs": {*kept, waiting},
        "explorer_batches": kept,
        "explorer_contents": kept,
    }
    assert retention.prune() == Pruned(0, 0, 0)
    assert Retention(queue, 30 * DAY_S, ENDED | STUCK, tenant="another").look().runs == 0
    assert Retention(queue, 30 * DAY_S, ENDED | STUCK).prune().runs == 1


def test_what_a_dead_worker_had_reserved_stays_spent(queue: FleetQueue) -> None:
    """With the journal goes what could say how much of it was sent."""
    run_id = ended(queue, QueueState.CANCELLED, 31)
    limit = {"scope": "fleet", "subject": "", "unit": "usd", "period": "total"}
    with queue.database.transaction() as connection:
        connection.execute(sa.insert(SPENDING).values(**limit, window="", spent=55, held=0))
        connection.execute(
            sa.insert(HELD).values(**limit, window="", run_id=run_id, epoch=1, held=50, is_presumed=True)
        )
    assert Retention(queue, 30 * DAY_S).prune().runs == 1
    with queue.database.transaction() as connection:
        assert connection.execute(sa.select(SPENDING.c.spent, SPENDING.c.held)).one() == (55, 0)
        assert connection.execute(sa.select(HELD)).all() == []


def test_what_the_library_handed_out_is_forgotten(queue: FleetQueue) -> None:
    """Its entries of runs that ended go, too; those that it has still to hand out stay."""
    run_id = ended(queue, QueueState.DONE, 31)
    waiting, _new = queue.submit(NewRun("And now?", {}))
    queue.drop([run_id])
    # All its entries are of this moment.
    assert Retention(queue, -DAY_S).prune().entries == 1
    assert queue.still_queued([run_id, waiting]) == {waiting}


def test_large_files_are_removed_from_their_store(queue: FleetQueue, tmp_path: Path) -> None:
    """Where the store is not set up or refuses, the run stays with its rows, which name them."""
    pytest.importorskip("obstore", reason="the extra objects is not installed")
    name = "a-run/0a"
    run_id = ended(queue, QueueState.DONE, 31, place=name)
    assert Retention(queue, 30 * DAY_S).prune() == Pruned(0, 0, 0, kept_runs=1)

    folder = tmp_path / "objects"
    objects = open_objects(folder.as_uri())
    assert objects is not None
    objects.put(name, iter([b"large"]))

    class Refusing:
        """A store that refuses."""

        put, get = objects.put, objects.get

        def remove(self, name: str) -> None:
            """Refuse."""
            raise OSError(0, f"no: {name}")

    with pytest.raises(StorageError, match="no: a-run/0a"):
        Retention(queue, 30 * DAY_S, objects=Refusing()).prune()
    assert stored(queue)["explorer_runs"] == stored(queue)["explorer_contents"] == {run_id}

    assert Retention(queue, 30 * DAY_S, objects=objects).prune().runs == 1
    assert not (folder / name).exists()
    objects.remove(name)


@pytest.mark.slow
def test_the_command_says_what_goes(queue: FleetQueue, tmp_path: Path) -> None:
    """First with `--dry-run`, then for good; an age that is none is refused."""
    ended(queue, QueueState.DONE, 31)
    settings = {"EXPLORER_FLEET_DATABASE": queue.database.dsn}
    looked = explorer_here("queue", "prune", "--dry-run", cwd=tmp_path, settings=settings)
    assert looked.stdout == "1 run would be removed: journals 5 B, files 4 B\n"
    done = explorer_here("queue", "prune", "--output-format", "json", cwd=tmp_path, settings=settings)
    assert json.loads(done.stdout)["runs"] == 1
    refused = explorer_here("queue", "prune", "--older-than", "soon", cwd=tmp_path, settings=settings)
    assert refused.returncode == 2
    assert "allowed is an age like 12h, 30d, 8w" in refused.stderr
