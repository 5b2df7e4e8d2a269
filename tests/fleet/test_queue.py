"""The queue of a fleet and its leases, on a file: who gets a run, who keeps it, and what a dead worker leaves."""

import errno
import json
import shutil
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from time import monotonic, time

import pytest

pytest.importorskip("dbos", reason="the extra fleet is not installed")

import sqlalchemy as sa
from dbos._serialization import DBOSDefaultSerializer, deserialize_args

from command import explorer_here
from explorer.fleet.database import META, RUNS, WORKERS, FleetDatabase
from explorer.fleet.exploration import checked_run_id
from explorer.fleet.leases import MAX_DEATHS, Ending, LeaseLostError, Leases
from explorer.fleet.runs import FleetQueue, NewRun, QueueState, Wanted
from explorer.fleet.stores import LeaseGuard
from explorer.fleet.submission import settings_of, submitted
from explorer.schema.errors import ConfigError, NotFoundError, StorageError
from explorer.schema.limits import Limits
from explorer.schema.settings import Settings

LEASE_S = 30.0


def test_nothing_that_was_pickled_is_read(queue: FleetQueue) -> None:
    """The library of the queue refuses it, whoever asks, and also where a row of the database says that it is so."""
    code = DBOSDefaultSerializer.serialize({"args": (), "kwargs": {}})
    assert queue.runs() == []
    with pytest.raises(ValueError, match="code, which is not run"):
        deserialize_args(code, "py_pickle", DBOSDefaultSerializer)
    with pytest.raises(ValueError, match="code, which is not run"):
        DBOSDefaultSerializer.deserialize(code)


def test_each_connection_has_a_clock_of_milliseconds(queue: FleetQueue) -> None:
    """Of whatever SQLite: the library stores times by it on Python 3.12 and later, and one without answers NULL."""
    with queue.database.transaction() as connection:
        clock = connection.execute(sa.text("SELECT unixepoch('subsec'), unixepoch('now'), unixepoch('1970-01-02')"))
        subsecond, now, next_day = clock.one()
    assert abs(subsecond - time()) < LEASE_S
    assert abs(now - subsecond) < LEASE_S
    assert next_day == 24 * 60 * 60


@pytest.mark.parametrize("words", [("queue", "--all"), ("queue", "cancel", "2026"), ("queue", "retry")])
def test_what_a_queue_says_reaches_no_terminal(queue: FleetQueue, tmp_path: Path, words: tuple[str, ...]) -> None:
    """Escapes and lines in an id that others wrote are not passed on."""
    hostile = "2026a\x1b]52;c;aGk=\x07\u202eb\x9b31m\nFORGED"
    run_id, _ = queue.submit(NewRun("a question", {}))
    state = QueueState.FAILED if "retry" in words else QueueState.WAITING
    with queue.database.transaction() as connection:
        known = sa.update(RUNS).where(RUNS.c.run_id == run_id)
        connection.execute(known.values(run_id=hostile, question=hostile, reason=hostile, state=state))
    done = explorer_here(*words, cwd=tmp_path, settings={"EXPLORER_FLEET_DATABASE": queue.database.dsn})
    shown = done.stdout + done.stderr
    assert done.returncode == 0, shown
    assert "FORGED" in shown
    assert "\nFORGED" not in shown
    assert not set("\x1b\x07\x9b\u202e") & set(shown)


def test_the_cost_of_a_run_is_unknown_only_once_its_work_ended(queue: FleetQueue, tmp_path: Path) -> None:
    """A run that waits has none yet; one that failed has one that nothing says."""
    waiting, _new = queue.submit(NewRun("a question that waits", {}))
    failed, _new = queue.submit(NewRun("a question that failed", {}))
    with queue.database.transaction() as connection:
        connection.execute(sa.update(RUNS).where(RUNS.c.run_id == failed).values(state=QueueState.FAILED))
    done = explorer_here("queue", cwd=tmp_path, settings={"EXPLORER_FLEET_DATABASE": queue.database.dsn})
    rows = {line.split()[0]: line.split()[1:4] for line in done.stdout.splitlines()}
    assert (rows[waiting][0], rows[waiting][2]) == ("waiting", "-")
    assert (rows[failed][0], rows[failed][2]) == ("failed", "unknown")


@pytest.mark.parametrize("run_id", ["/home/ada", "../../ada", "20261124-032547-a/../../ada", "", "ada", ".fleet"])
def test_a_run_is_named_by_its_id_only(run_id: str) -> None:
    """What becomes the name of a folder is no path."""
    with pytest.raises(ConfigError, match="not that of a run"):
        checked_run_id(run_id)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file with all tables and no runs."""
    path = tmp_path_factory.mktemp("fleet") / "queue.sqlite"
    queue = FleetQueue(FleetDatabase(f"sqlite:///{path}"))
    queue.submit(NewRun("first", {}))
    with queue.database.transaction() as connection:
        connection.execute(sa.delete(RUNS))
    queue.close()
    return path


@pytest.fixture
def queue(tables: Path, tmp_path: Path) -> Generator[FleetQueue]:
    """An empty queue."""
    path = tmp_path / "queue.sqlite"
    shutil.copy(tables, path)
    one = FleetQueue(FleetDatabase(f"sqlite:///{path}"))
    yield one
    one.close()


def worker(queue: FleetQueue, name: str) -> Leases:
    """A worker that has entered the fleet."""
    leases = Leases(queue, name, LEASE_S)
    leases.enter("host", 1, 2)
    return leases


def silence(queue: FleetQueue, name: str) -> None:
    """Let a worker's lease run out."""
    with queue.database.transaction() as connection:
        connection.execute(
            sa.update(WORKERS).where(WORKERS.c.worker == name).values(seen_at=WORKERS.c.seen_at - 2 * LEASE_S)
        )


def test_a_key_makes_one_run_of_a_question(queue: FleetQueue) -> None:
    """The same key gives the same run; for another question it is refused, and another tenant's key is its own."""
    run_id, is_new = queue.submit(NewRun("What is new?", {}, idempotency_key="k"))
    assert is_new
    assert queue.submit(NewRun("What is new?", {}, idempotency_key="k")) == (run_id, False)
    with pytest.raises(ConfigError, match="belongs to another question"):
        queue.submit(NewRun("Something else?", {}, idempotency_key="k"))
    assert queue.submit(NewRun("Something else?", {}, idempotency_key="k", tenant="t"))[1]
    assert [one.tenant for one in queue.runs()] == ["", "t"]


HOSTILE_NAMES = ("\ud800", "a\0b", "a\nb", "\u202ea", "\x1b[31m", "t" * 300_000)


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda name: ascii(name[:8]))
def test_names_that_cannot_be_stored_are_refused(queue: FleetQueue, name: str) -> None:
    """Of tenants and as keys, before anything is written; a question keeps what can be read of it."""
    for bad in (NewRun("What is new?", {}, tenant=name), NewRun("What is new?", {}, idempotency_key=name)):
        with pytest.raises(ConfigError, match=r"the (tenant|idempotency key) has"):
            queue.submit(bad)
    assert queue.runs() == []
    run_id, _new = queue.submit(NewRun(f"What is {name[:20]} new?", {}, tenant="team a / höfe", idempotency_key="a  b"))
    assert "What is" in queue.run(run_id).question
    assert "\0" not in queue.run(run_id).question
    with pytest.raises((ConfigError, NotFoundError)):
        queue.run(name)


def test_a_file_of_hostile_lines_stops_at_none(queue: FleetQueue, tmp_path: Path) -> None:
    """Each is refused with its number, and those that can be used are submitted."""
    bad = [
        '{"question":"ok","tenant":"\\ud800"}',
        '{"question":"ok","key":"a\\u0000b"}',
        '{"question":"ok","priority":true}',
        '{"question":"ok","priority":99999999999999999999999}',
        '{"question":NaN}',
        "[" * 100_000,
        f'{{"question":"{"x" * 300_000}"}}',
        f'{{"question":"ok","key":"{"k" * 300_000}"}}',
    ]
    good = ['{"question":"lone \\ud800 surrogate"}', '{"question":"nul \\u0000 here"}', '"plain"']
    (tmp_path / "many.jsonl").write_text("\n".join([*bad, *good]) + "\n")
    known = {"EXPLORER_FLEET_DATABASE": queue.database.dsn}
    done = explorer_here("submit", "--many", "many.jsonl", cwd=tmp_path, settings=known)
    assert done.returncode == 2, done.stderr
    assert "3 runs submitted, 8 lines refused" in done.stderr
    assert all(f"line {number}: " in done.stderr for number in range(1, 9))
    assert len(done.stderr) < 5_000
    assert len(queue.runs()) == 3


def test_bad_submissions_leave_nothing(queue: FleetQueue) -> None:
    """An empty question and a priority out of range are refused."""
    for bad in (NewRun(" ", {}), NewRun("x", {}, priority=0)):
        with pytest.raises(ConfigError):
            queue.submit(bad)
    assert queue.runs() == []


def test_one_worker_takes_a_run_and_its_word_counts(queue: FleetQueue) -> None:
    """A second worker gets nothing, and cannot record an end."""
    run_id, _ = queue.submit(NewRun("What is new?", {}))
    first, second = worker(queue, "first"), worker(queue, "second")
    claim = first.take(run_id)
    assert claim is not None
    assert claim.epoch == 1
    assert second.take(run_id) is None
    assert not second.settle(claim, Ending(QueueState.FAILED))
    assert first.settle(claim, Ending(QueueState.DONE, "complete", cost_usd=0.25))
    one = queue.run(run_id)
    assert (one.state, one.status, one.cost_usd, one.worker) == (QueueState.DONE, "complete", 0.25, "")
    assert not queue.has_work


def test_a_worker_that_slept_is_a_worker_again(queue: FleetQueue) -> None:
    """After a time for which it is taken off the list; what it takes then stays its own."""
    run_id, _ = queue.submit(NewRun("What is new?", {}))
    first, second = worker(queue, "first"), worker(queue, "second")
    with queue.database.transaction() as connection:
        connection.execute(sa.update(WORKERS).values(seen_at=WORKERS.c.seen_at - 100 * LEASE_S))
    second.take_from_dead()
    assert queue.workers() == []
    first.renew()
    assert [(row.worker, row.is_alive) for row in queue.workers()] == [("first", True)]
    assert first.take(run_id) is not None
    assert second.take_from_dead() == []
    first.leave()
    first.renew()
    assert queue.workers() == []


def test_a_worker_that_died_while_the_clock_was_ahead_is_dead(queue: FleetQueue) -> None:
    """Its run does not wait for the day that the clock showed."""
    run_id, _ = queue.submit(NewRun("What is new?", {}))
    first, second = worker(queue, "first"), worker(queue, "second")
    assert first.take(run_id) is not None
    with queue.database.transaction() as connection:
        ahead = sa.update(WORKERS).where(WORKERS.c.worker == "first").values(seen_at=WORKERS.c.seen_at + 1e8)
        connection.execute(ahead)
    assert second.take_from_dead() == [run_id]
    assert [row.worker for row in queue.workers()] == ["second"]


def test_the_runs_of_a_dead_worker_go_to_another_one(queue: FleetQueue) -> None:
    """They wait again under a new number in the queue; the dead one can neither write nor record an end."""
    run_id, _ = queue.submit(NewRun("What is new?", {}))
    first, second = worker(queue, "first"), worker(queue, "second")
    old = first.take(run_id)
    assert old is not None
    assert second.take_from_dead() == []
    silence(queue, "first")
    assert second.take_from_dead() == [run_id]
    assert second.take_from_dead() == []
    assert queue.run(run_id).state is QueueState.WAITING
    new = second.take(run_id)
    assert new is not None
    assert new.epoch == 2
    assert not first.settle(old, Ending(QueueState.DONE))
    assert first.renew() == {}
    assert second.renew() == {run_id: (2, Wanted.NOTHING)}


def test_a_run_that_kills_its_workers_is_parked(queue: FleetQueue) -> None:
    """After several deaths nobody gets it by itself; `retry` puts it back."""
    run_id, _ = queue.submit(NewRun("What is new?", {}))
    reaper = worker(queue, "reaper")
    for number in range(MAX_DEATHS):
        victim = worker(queue, f"victim {number}")
        assert victim.take(run_id) is not None
        silence(queue, f"victim {number}")
        reaper.take_from_dead()
    parked = queue.run(run_id)
    assert parked.state is QueueState.PARKED
    assert f"{MAX_DEATHS} workers died" in parked.reason
    queue.retry(run_id)
    assert queue.run(run_id).deaths == 0
    assert reaper.take(run_id) is not None


def test_a_clean_end_forgets_the_deaths_before_it(queue: FleetQueue) -> None:
    """Only deaths in a row park a run."""
    run_id, _ = queue.submit(NewRun("What is new?", {}))
    first, second = worker(queue, "first"), worker(queue, "second")
    assert first.take(run_id) is not None
    silence(queue, "first")
    second.take_from_dead()
    claim = second.take(run_id)
    assert claim is not None
    second.settle(claim, Ending(QueueState.WAITING))
    assert (queue.run(run_id).deaths, queue.run(run_id).state) == (0, QueueState.WAITING)


def test_a_run_lost_between_queue_and_worker_is_handed_out_again(queue: FleetQueue) -> None:
    """A worker that died before it took what it was handed leaves no run behind that waits for ever."""
    run_id, _ = queue.submit(NewRun("What is new?", {}))
    one = worker(queue, "one")
    with queue.database.transaction() as connection:
        connection.execute(sa.text("UPDATE workflow_status SET status = 'PENDING'"))
    assert one.hand_out_again() == 0
    with queue.database.transaction() as connection:
        connection.execute(sa.update(RUNS).values(queued_at=RUNS.c.queued_at - 1000))
    assert one.hand_out_again() == 1
    again = queue.still_queued([_workflow(queue, run_id)])
    assert len(again) == 1
    with queue.database.transaction() as connection:
        connection.execute(sa.update(RUNS).values(queued_at=RUNS.c.queued_at - 1000))
    assert one.hand_out_again() == 0, "it is in the queue"


def _workflow(queue: FleetQueue, run_id: str) -> str:
    with queue.database.transaction() as connection:
        return str(connection.scalar(sa.select(RUNS.c.workflow).where(RUNS.c.run_id == run_id)))


def test_cancel_and_retry(queue: FleetQueue) -> None:
    """What waits is cancelled at once; what is at work is marked for its worker; what is done cannot be."""
    run_id, _ = queue.submit(NewRun("What is new?", {}))
    assert queue.cancel(run_id) is QueueState.CANCELLED
    one = worker(queue, "one")
    assert one.take(run_id) is None
    assert not one.is_waiting(run_id)
    queue.retry(run_id)
    claim = one.take(run_id)
    assert claim is not None
    assert queue.cancel(run_id) is QueueState.RUNNING
    assert one.renew() == {run_id: (1, Wanted.CANCEL)}
    with pytest.raises(ConfigError, match="did not fail"):
        queue.retry(run_id)
    one.settle(claim, Ending(QueueState.DONE))
    with pytest.raises(ConfigError, match="has ended"):
        queue.cancel(run_id)


def test_a_cancelled_run_of_a_dead_worker_stays_cancelled(queue: FleetQueue) -> None:
    """Its worker died before it heard of it."""
    run_id, _ = queue.submit(NewRun("What is new?", {}))
    one, two = worker(queue, "one"), worker(queue, "two")
    one.take(run_id)
    queue.cancel(run_id)
    silence(queue, "one")
    two.take_from_dead()
    assert queue.run(run_id).state is QueueState.CANCELLED


def test_a_paused_queue_gives_nothing(queue: FleetQueue) -> None:
    """Runs wait until it is let go; `stop_all` asks for those at work."""
    first, _ = queue.submit(NewRun("What is new?", {}))
    second, _ = queue.submit(NewRun("And else?", {}))
    one = worker(queue, "one")
    assert one.take(first) is not None
    assert queue.stop_all() == 1
    assert one.renew() == {first: (1, Wanted.RETURN)}
    assert one.take(second) is None
    assert one.is_waiting(second)
    queue.pause(is_paused=False)
    assert one.take(second) is not None


def test_workers_and_throughput(queue: FleetQueue) -> None:
    """The list says who is alive, and how many runs ended."""
    run_id, _ = queue.submit(NewRun("What is new?", {}))
    one = worker(queue, "one")
    worker(queue, "two")
    claim = one.take(run_id)
    assert claim is not None
    silence(queue, "two")
    assert [(row.worker, row.runs, row.is_alive) for row in queue.workers()] == [("one", 1, True), ("two", 0, False)]
    one.settle(claim, Ending(QueueState.DONE, cost_usd=0.5))
    assert queue.throughput() == {"waiting": 0, "running": 0, "ended_last_hour": 1, "cost_last_hour": 0.5}
    one.leave()
    assert [row.worker for row in queue.workers()] == ["two"]


def test_another_tenants_run_is_not_found(queue: FleetQueue) -> None:
    """Neither by its id nor by its beginning."""
    run_id, _ = queue.submit(NewRun("What is new?", {}, tenant="a"))
    assert queue.run(run_id[:12], "a").run_id == run_id
    for name in (run_id, run_id[:12]):
        with pytest.raises(NotFoundError):
            queue.run(name, "b")
    with pytest.raises(NotFoundError):
        queue.run("")


def test_a_lease_that_may_be_over_is_checked_before_anything_is_written(queue: FleetQueue) -> None:
    """Soon after a heartbeat nothing is asked; later the database decides, and a frozen worker is refused."""
    run_id, _ = queue.submit(NewRun("What is new?", {}))
    first, second = worker(queue, "first"), worker(queue, "second")
    claim = first.take(run_id)
    assert claim is not None
    fresh, frozen = (LeaseGuard(first, claim, lambda later=later: monotonic() + later) for later in (0.0, LEASE_S))
    frozen.write([], is_synced=True)
    silence(queue, "first")
    second.take_from_dead()
    fresh.write([], is_synced=True)
    with pytest.raises(LeaseLostError, match="another worker") as lost:
        frozen.write([], is_synced=True)
    assert lost.value.errno == errno.ESTALE


def test_a_queue_is_read_without_the_right_to_change_it(queue: FleetQueue, tmp_path: Path) -> None:
    """Opening it writes nothing where its tables are there."""
    queue.submit(NewRun("What is new?", {}))
    with closing(FleetQueue(FleetDatabase(f"sqlite:///file:{tmp_path}/queue.sqlite?mode=ro&uri=true"))) as reader:
        assert [one.question for one in reader.runs()] == ["What is new?"]
        assert (reader.is_paused, reader.workers(), reader.throughput()["waiting"]) == (False, [], 1)
        with pytest.raises(StorageError, match="readonly") as refused:
            reader.pause(is_paused=True)
    assert refused.value.hint.startswith("let your user write to the file")


def test_a_newer_database_and_a_wrong_address_are_refused(queue: FleetQueue, tmp_path: Path) -> None:
    """In one line each, which names the place without its password."""
    with queue.database.transaction() as connection:
        connection.execute(sa.update(META).where(META.c.name == "version").values(value="9"))
    with pytest.raises(ConfigError, match="version 9"):
        FleetDatabase(f"sqlite:///{tmp_path / 'queue.sqlite'}")
    for url in ("mysql://x/y", "no address", ""):
        with pytest.raises(ConfigError, match="cannot be used"):
            FleetDatabase(url)
    with pytest.raises(ConfigError, match="with this locale"):
        FleetDatabase("sqlite:////runs-f\udcc3\udcbcr/queue.sqlite")
    with pytest.raises(StorageError) as refused:
        FleetDatabase("postgresql://user:hidden-words@127.0.0.1:1/x")
    assert "hidden-words" not in f"{refused.value.message} {refused.value.hint}"
    (tmp_path / "text").write_text("no database " * 100)
    with pytest.raises(StorageError, match="not a database"):
        FleetDatabase(f"sqlite:///{tmp_path / 'text'}")


def test_a_submission_asks_within_what_its_worker_allows() -> None:
    """Of two limits the lower one holds; nothing of the submitter's machine goes with a run."""
    asked = Settings(
        model="offline", language="de", workspace=Path("/elsewhere"), shell="unsafe",
        limits=Limits(max_cost_usd=2.0, max_steps=10, max_tokens=None),
    )  # fmt: skip
    given = submitted(asked)
    assert given == {
        "model": "offline", "language": "de", "limits": {"max_cost_usd": 2.0, "max_steps": 10, "max_tokens": None},
    }  # fmt: skip
    own = Settings(limits=Limits(max_cost_usd=0.5, max_tokens=1000), shell="off")
    run = settings_of(json.dumps(given), own)
    assert (run.model, run.language, run.shell, run.workspace) == ("offline", "de", "off", own.workspace)
    limits = {name: getattr(run.limits, name) for name in run.limits.model_fields_set}
    assert limits == {"max_cost_usd": 0.5, "max_steps": 10, "max_tokens": 1000}
    with pytest.raises(ConfigError):
        settings_of('{"limits": {"max_steps": "many"}}', own)
