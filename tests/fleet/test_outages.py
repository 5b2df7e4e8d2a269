"""A database that goes away or refuses: no run at work fails for it, and each refusal names what fixes it."""

import errno
import time
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="the extra fleet is not installed")

import sqlalchemy as sa

from cli.conftest import hold, kept_run, story_run
from cli.stage import Hold
from command import explorer_here
from explorer.fleet.database import BATCHES, META, FleetDatabase
from explorer.fleet.database_trouble import DatabaseAwayError
from explorer.fleet.group_commit import GroupCommit, RunBatch
from explorer.fleet.leases import LeaseLostError, Leases, TakenRun
from explorer.fleet.run_record import RunRecords
from explorer.fleet.runs import FleetQueue, NewRun, QueueState
from explorer.fleet.stores import DatabaseStore, LeaseGuard
from explorer.schema.errors import StorageError
from fleet.postgres import PASSWORD, Postgres, server
from fleet.test_workers import OFFLINE, PATIENCE_S, QUESTION, worker
from llm.foreign_servers import FOREIGN, answering

_ = (hold, kept_run, story_run)
LEASE_S = 2.0


@pytest.fixture
def postgres() -> Generator[Postgres]:
    """A server of the test's own."""
    with server() as one:
        yield one


def taken_of(queue: FleetQueue) -> tuple[Leases, TakenRun]:
    """A run that a worker has taken."""
    run_id, _new = queue.submit(NewRun(QUESTION, OFFLINE))
    leases = Leases(queue, "one", LEASE_S)
    leases.enter("one", 1, 1)
    taken = leases.take(run_id)
    assert taken is not None
    return leases, taken


@pytest.mark.slow
def test_no_run_fails_because_the_database_was_away(tmp_path: Path, hold: Hold, postgres: Postgres) -> None:
    """Away for longer than a lease is trusted, so that the run could write nothing: the run waits, and is resumed."""
    with closing(FleetQueue(FleetDatabase(postgres.url))) as queue:
        run_id, _new = queue.submit(NewRun(QUESTION, OFFLINE))
        with worker(tmp_path, hold, "--until-empty", database=postgres.url) as one:
            assert hold.asked.wait(PATIENCE_S)
            postgres.stop("immediate")
            time.sleep(LEASE_S)  # the lease is no longer trusted then, however slow the machine
            hold.let_go.set()
            time.sleep(LEASE_S)
            postgres.start()
            out, _error = one.communicate(timeout=PATIENCE_S)
        assert queue.run(run_id).state is QueueState.DONE, (queue.run(run_id), out)
    assert out.count("waiting for the database: ") == out.count("the database answers again") == 1


def test_a_run_that_has_ended_is_shown_without_its_queue(tmp_path: Path, kept_run: Path) -> None:
    """Of a fleet whose database is away no more is asked than for its costs, of which no queue knows."""
    asked: list[int] = []
    for part in ((), ("--costs",)):
        with answering(FOREIGN["nothing"]) as away:
            settings = {"EXPLORER_FLEET_DATABASE": f"postgresql://me@127.0.0.1:{away.port}/fleet"}
            done = explorer_here("show", kept_run.name, *part, cwd=tmp_path, settings=settings)
        assert done.returncode == 0, done.stderr
        asked.append(away.connections)
    assert asked[0] == asked[1] > 0


@pytest.mark.slow
def test_a_worker_that_is_frozen_in_a_transaction_keeps_no_rows(postgres: Postgres) -> None:
    """Postgres ends it after a minute (here at once), and others take its row; woken, it takes the database as away."""
    change = sa.update(META).where(META.c.name == "version").values(value=META.c.value)
    with closing(FleetDatabase(postgres.url)) as frozen, closing(FleetDatabase(postgres.url)) as other:
        changed: list[int] = []

        def freeze() -> None:
            with frozen.transaction() as connection:
                assert connection.scalar(sa.text("SHOW idle_in_transaction_session_timeout")) == "1min"
                connection.execute(sa.text("SET LOCAL idle_in_transaction_session_timeout = '50ms'"))
                connection.execute(change)
                with other.transaction() as second:
                    changed.append(second.execute(change).rowcount)
                connection.execute(change)

        with pytest.raises(DatabaseAwayError):
            freeze()
        assert changed == [1]
        with frozen.transaction() as connection:
            assert connection.execute(change).rowcount == 1


@pytest.mark.slow
def test_a_store_says_whether_the_database_was_away(tmp_path: Path, postgres: Postgres) -> None:
    """Both stores: a write that was given up because it did not answer is told apart from one that it refused."""
    with closing(FleetQueue(FleetDatabase(postgres.url))) as queue:
        leases, taken = taken_of(queue)
        with closing(GroupCommit(queue.database, "one", patience_s=0.0)) as commits:
            record = RunRecords(queue.database).of(taken.run_id)
            store = DatabaseStore(commits, taken, tmp_path, record)
            guard = LeaseGuard(leases, taken, lambda: leases.heard_at + LEASE_S)
            (tmp_path / "notes.md").write_text("a file that is new")
            store.flush()
            guard.write((), is_synced=True)
            assert not store.is_away
            assert not guard.is_away
            postgres.stop("immediate")
            (tmp_path / "notes.md").write_text("another text")
            with pytest.raises(StorageError, match="not in the database"):
                store.flush()
            with pytest.raises(LeaseLostError, match="nothing proves"):
                guard.write((), is_synced=True)
            assert store.is_away
            assert guard.is_away
            postgres.start()
            store.flush()
            assert not store.is_away
            BATCHES.drop(queue.database.engine)
            refused = RunBatch(taken.run_id, taken.epoch, 2, 1, b"a line\n")
            with pytest.raises(OSError, match="does not exist") as error:
                commits.commit(refused)
            assert error.value.errno == errno.EIO
            assert not refused.is_away


def test_a_file_that_takes_no_changes_is_away_and_one_without_a_table_is_not(tmp_path: Path) -> None:
    """What passes by itself, such as a disk that is read-only, is told apart from what does not."""
    with closing(FleetDatabase(f"sqlite:///{tmp_path}/queue.sqlite")) as database:
        with pytest.raises(StorageError, match="no such table") as missing, database.transaction() as connection:
            connection.execute(sa.text("SELECT 1 FROM missing"))
        assert not isinstance(missing.value, DatabaseAwayError)
        with database.transaction() as connection:
            connection.execute(sa.text("PRAGMA query_only = 1"))
        with pytest.raises(DatabaseAwayError, match="readonly"), database.transaction() as connection:
            connection.execute(sa.text("CREATE TABLE another (name TEXT)"))


@pytest.mark.slow
def test_each_refusal_of_postgres_names_the_command_that_fixes_it(postgres: Postgres) -> None:
    """Of the address, the rights, the server and its state; the password is in none of the words."""
    server_flags = f"-h 127.0.0.1 -p {postgres.port}"
    user = f"{server_flags} -U explorer"
    refused = f"postgresql://explorer:{PASSWORD}@127.0.0.1:1/postgres"
    expected = {
        postgres.url.replace("a-password", "b-password"): f"try the user and the password: psql {user} postgres",
        f"{postgres.url}-two": f"make it: createdb {user} postgres-two",
        refused: "see whether it runs there: pg_isready -h 127.0.0.1 -p 1",
    }
    for url, fix in expected.items():
        with pytest.raises(DatabaseAwayError) as error:
            FleetDatabase(url)
        assert error.value.hint.startswith(fix), error.value
        assert "a-password" not in f"{error.value.message} {error.value.hint}"
    with closing(FleetDatabase(postgres.url)) as database, database.engine.connect() as opened:
        connection = opened.execution_options(isolation_level="AUTOCOMMIT")
        for statement in (
            "CREATE ROLE reader LOGIN PASSWORD 'secret'",
            "CREATE DATABASE other",
            "CREATE DATABASE copy",
            "ALTER DATABASE copy SET default_transaction_read_only = on",
        ):
            connection.execute(sa.text(statement))
    theirs = postgres.url.replace(f"explorer:{PASSWORD}", "reader:secret").replace("/postgres", "/other")
    with pytest.raises(StorageError, match="permission denied") as denied:
        FleetDatabase(theirs)
    assert denied.value.hint.endswith("ALTER DATABASE other OWNER TO reader")
    assert not isinstance(denied.value, DatabaseAwayError)
    with pytest.raises(DatabaseAwayError, match="read-only") as copy:
        FleetDatabase(postgres.url.removesuffix("postgres") + "copy")
    assert copy.value.hint.startswith("name the server that takes changes")


@pytest.mark.slow
def test_tables_of_the_queue_that_may_not_be_made_are_a_refusal_too(postgres: Postgres) -> None:
    """They are made by the queue's own library, whose errors are translated as well; `postgres://` is an address."""
    with closing(FleetDatabase(postgres.url)) as database, database.transaction() as connection:
        connection.execute(sa.text("CREATE ROLE reader LOGIN PASSWORD 'secret'"))
        connection.execute(sa.text("GRANT ALL ON SCHEMA public TO reader"))
        connection.execute(sa.text("GRANT ALL ON ALL TABLES IN SCHEMA public TO reader"))
    theirs = postgres.url.replace(f"postgresql://explorer:{PASSWORD}", "postgres://reader:secret")
    with closing(FleetQueue(FleetDatabase(theirs))) as queue:
        with pytest.raises(StorageError, match="permission denied for database postgres") as denied:
            queue.submit(NewRun(QUESTION, OFFLINE))
        assert denied.value.hint.endswith("ALTER DATABASE postgres OWNER TO reader")
        assert queue.runs() == []
