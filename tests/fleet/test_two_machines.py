"""Workers on machines without a shared folder, as processes on one Postgres: killed, frozen, looked at from a third."""

import json
import signal
import subprocess
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="the extra fleet is not installed")

import sqlalchemy as sa

from cli.conftest import hold
from cli.stage import SCRIPT, Hold, clean_environment
from command import done_by, forked_for_fleet
from explorer.fleet.database import BATCHES, METADATA, ORDERS, RUNS, FleetDatabase
from explorer.fleet.group_commit import GroupCommit, RunBatch
from explorer.fleet.leases import LeaseLostError, Leases
from explorer.fleet.restore import Restorer
from explorer.fleet.run_record import RunRecord, RunRecords
from explorer.fleet.runs import FleetQueue, NewRun, QueueState
from explorer.journal.listing import read_records
from fleet.postgres import server
from fleet.test_store import content_of
from fleet.test_workers import OFFLINE, QUESTION, bench

pytestmark = pytest.mark.slow
PATIENCE_S = 150
SAMPLE_QUESTION = "What do people say about Tern TLS?"
SAMPLE = {"model": "offline", "is_sample": True, "lean": "off"}
JOURNAL = ".explorer/journal.jsonl"
LOOKS = b'"type":"tool_started","call":"searcher-1.t1.1"'
"""In the last record of a run whose first look at Hacker News gets no answer."""
_ = hold


def until(is_so: Callable[[], bool]) -> None:
    """Wait for something that other processes bring about."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def url() -> Generator[str]:
    """The address of a Postgres server."""
    with server() as postgres:
        yield postgres.url


@pytest.fixture
def queue(url: str) -> Generator[FleetQueue]:
    """The fleet's queue, empty."""
    one = FleetQueue(FleetDatabase(url))
    one.prepare()
    with one.database.transaction() as connection:
        for table in METADATA.sorted_tables:
            connection.execute(sa.delete(table).where(table.c[0] != "version"))
        connection.execute(sa.text("DELETE FROM dbos.workflow_status"))
    yield one
    one.close()


class Machine:
    """A machine with a folder of its own, the user's key, and nothing else."""

    def __init__(self, place: Path, queue: FleetQueue, hold: Hold) -> None:
        state = place / "state" / "explorer"
        state.mkdir(parents=True)
        (state / "key").touch(0o600)
        (state / "key").write_bytes(b"k" * 32)
        self.place = place
        self.workspace = place / "workspace"
        self.environment = clean_environment(place) | {
            "XDG_STATE_HOME": str(place / "state"),
            "EXPLORER_HN_API_URL": f"{hold.url}/v0",
            "EXPLORER_HN_SEARCH_URL": f"{hold.url}/api/v1",
            "EXPLORER_ALLOW_HOSTS": "127.0.0.1",
            "EXPLORER_TAVILY_URL": hold.url,
            "EXPLORER_FLEET_DATABASE": queue.database.dsn,
        }

    @contextmanager
    def started(self, *words: str, crash: str = "") -> Generator["subprocess.Popen[str]"]:
        """A command at work."""
        variables = self.environment | ({"EXPLORER_CRASH": crash} if crash else {})
        with forked_for_fleet(str(SCRIPT), *words, cwd=self.place, variables=variables) as process:
            try:
                yield process
            finally:
                process.send_signal(signal.SIGCONT)
                process.kill()

    def worker(self, *flags: str, crash: str = "") -> AbstractContextManager["subprocess.Popen[str]"]:
        """A worker whose lease is short; it ends itself where a crash is named."""
        words = (
            "worker",
            "--model",
            "offline",
            "--no-shell",
            "--lease",
            "4s",
            "--store",
            "database",
            "--concurrency",
            "1",
        )
        return self.started(*words, *flags, crash=crash)

    def run(self, *words: str, code: int = 0) -> str:
        """Run a command to its end; return what it printed."""
        process = forked_for_fleet(str(SCRIPT), *words, cwd=self.place, variables=self.environment)
        done = done_by(process, None, PATIENCE_S)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stderr


@pytest.fixture
def machines(tmp_path: Path, queue: FleetQueue, hold: Hold) -> list[Machine]:
    """Three machines."""
    return [Machine(tmp_path / name, queue, hold) for name in ("one", "two", "three")]


def at_rest(queue: FleetQueue, run_id: str, machine: Machine, hold: Hold) -> RunRecord:
    """What the database and its worker's machine have of a run whose only agent at work waits for a service."""
    assert hold.asked.wait(PATIENCE_S)
    journal = machine.workspace / run_id / JOURNAL

    def is_at_rest() -> bool:
        lines = RunRecords(queue.database).of(run_id).lines
        return LOOKS in lines.splitlines()[-1] and journal.read_bytes() == lines

    until(is_at_rest)
    return RunRecords(queue.database).of(run_id)


@pytest.mark.parametrize("point", ["before_write:22", "after_sync:30"])
def test_a_second_machine_takes_over_byte_for_byte_what_a_killed_one_had_on_record(
    queue: FleetQueue, machines: list[Machine], tmp_path: Path, point: str
) -> None:
    """Its folder is what was on record; the run continues from there, and its report is that of an undisturbed run."""
    one, two, three = machines
    run_id, _new = queue.submit(NewRun(SAMPLE_QUESTION, SAMPLE))
    records = RunRecords(queue.database)
    with one.worker(crash=point) as first:
        assert first.wait(PATIENCE_S) == -signal.SIGKILL
    record = records.of(run_id)
    Restorer(records, tmp_path / "restored").restore(record)
    on_record = content_of(tmp_path / "restored" / run_id)
    assert len(record.files) > 5
    assert on_record[JOURNAL][0] == record.lines
    assert record.lines.startswith((one.workspace / run_id / JOURNAL).read_bytes())
    # Killed before it adds a record, so that its folder is what it was made from.
    with two.worker(crash="before_append:1") as second:
        assert second.wait(PATIENCE_S) == -signal.SIGKILL
    assert content_of(two.workspace / run_id) == on_record
    with three.worker("--until-empty") as third:
        assert third.wait(PATIENCE_S) == 0
    assert (queue.run(run_id).state, queue.run(run_id).epoch) == (QueueState.DONE, 3)
    ended = read_records(three.workspace / run_id)
    assert sum(one.event.type == "run_started" for one in ended) == 1
    configured = [one.event for one in ended if one.event.type == "session_configured"]
    assert [one.carried for one in configured] == [None, None], "it is the user's own on each machine"
    assert bench()._twice(ended) == 0
    undisturbed = two.run("demo", "--no-shell", "--quiet", SAMPLE_QUESTION)
    report = (three.workspace / run_id / "report.md").read_text()
    assert bench().compared(report) == bench().compared(undisturbed)
    assert one.run("report", run_id).strip() == report.strip()
    assert json.loads(one.run("show", run_id, "--output-format", "json"))["carried"] is False
    assert (one.workspace / run_id / JOURNAL).read_bytes() != records.of(run_id).lines, "the copy is another folder"


def test_a_plan_is_approved_on_a_third_machine(queue: FleetQueue, machines: list[Machine]) -> None:
    """The run waits with its plan for no worker; with the decision, a worker on another machine takes it to its end."""
    one, two, three = machines
    run_id = three.run("submit", "--sample", "--plan", SAMPLE_QUESTION).strip()
    with one.worker("--until-empty") as first:
        assert first.wait(PATIENCE_S) == 0
    assert queue.run(run_id).state is QueueState.UNDECIDED
    assert json.loads(three.run("show", run_id, "--output-format", "json"))["status"] == "waiting"
    assert "explorer resume" in three.run("resume", run_id, code=2)
    told = json.loads(three.run("resume", run_id, "--plan", "approve", "--output-format", "json"))
    assert told == {"run_id": run_id, "state": "waiting"}
    with two.worker("--until-empty") as second:
        assert second.wait(PATIENCE_S) == 0
    assert (queue.run(run_id).state, queue.run(run_id).status) == (QueueState.DONE, "complete")
    records = read_records(two.workspace / run_id)
    decided = [record.event for record in records if record.event.type == "plan_decided"]
    assert [(one.verdict, one.is_automatic) for one in decided] == [("approved", False)]
    assert "Tern TLS" in three.run("report", run_id)


def test_no_record_of_a_frozen_worker_gets_into_the_database_or_a_file(
    queue: FleetQueue, machines: list[Machine], hold: Hold
) -> None:
    """Woken after another machine has its run, it adds nothing to its own journal either, and drops the run."""
    one, two, three = machines
    run_id, _new = queue.submit(NewRun(QUESTION, OFFLINE))
    with one.worker() as frozen:
        record = at_rest(queue, run_id, one, hold)
        frozen.send_signal(signal.SIGSTOP)
        before = content_of(one.workspace / run_id)
        assert json.loads(three.run("show", run_id, "--output-format", "json"))["status"] == "running"
        assert f"{run_id}  running" in three.run("runs")
        assert "in the fleet's database" in three.run("resume", run_id, "more", code=2)
        assert "cannot be found from here" in three.run("stop", run_id, "--now", code=2)
        with two.worker("--until-empty") as other:
            until(lambda: len(RunRecords(queue.database).of(run_id).lines) > len(record.lines))
            # Its services answer while it sleeps: woken, it has records to write at once.
            hold.let_go.set()
            frozen.send_signal(signal.SIGCONT)
            until(lambda: queue.run(run_id).state is QueueState.DONE)
            assert other.wait(PATIENCE_S) == 0
        frozen.send_signal(signal.SIGTERM)
        assert frozen.wait(PATIENCE_S) == 143
    with queue.database.transaction() as connection:
        rows = connection.execute(sa.select(BATCHES.c.epoch).order_by(BATCHES.c.number)).scalars().all()
    assert sorted(rows) == list(rows)
    assert rows.count(1) == record.number
    assert content_of(one.workspace / run_id)[JOURNAL] == before[JOURNAL]
    assert (two.workspace / run_id / JOURNAL).read_bytes() == RunRecords(queue.database).of(run_id).lines


def test_a_third_machine_watches_and_steers_a_run_at_work_elsewhere(
    queue: FleetQueue, machines: list[Machine], hold: Hold
) -> None:
    """Its words are in the run's journal once, and what it watched ends with the report."""
    one, _two, three = machines
    run_id, _new = queue.submit(NewRun(QUESTION, OFFLINE))
    with one.worker("--until-empty") as at_work:
        until(lambda: RunRecords(queue.database).of(run_id).number > 0)
        with (
            three.started("steer", run_id, "be short", "--wait", "2m") as told,
            three.started("watch", run_id) as watched,
        ):
            inbox = one.workspace / run_id / ".explorer" / "inbox"
            until(lambda: bool(list(inbox.glob("*.json"))) or told.poll() is not None)
            hold.let_go.set()
            words, complaint = told.communicate(timeout=PATIENCE_S)
            assert told.returncode == 0, complaint
            assert "applied at record" in words
            report, complaint = watched.communicate(timeout=PATIENCE_S)
            assert watched.returncode == 6, complaint  # no source was reached
        assert at_work.wait(PATIENCE_S) == 0
    records = read_records(one.workspace / run_id)
    assert [one.event.text for one in records if one.event.type == "steered"] == ["be short"]
    assert report.strip() == (one.workspace / run_id / "report.md").read_text().strip()
    with queue.database.transaction() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(ORDERS)) == 0
    assert "is not running" in three.run("stop", run_id, code=2)


def test_a_run_is_stopped_from_another_machine(queue: FleetQueue, machines: list[Machine], hold: Hold) -> None:
    """It writes up what it has, and its journal says who asked."""
    one, _two, three = machines
    run_id, _new = queue.submit(NewRun(QUESTION, OFFLINE))
    with one.worker("--until-empty") as at_work:
        until(lambda: RunRecords(queue.database).of(run_id).number > 0)
        assert "applied at record" in three.run("stop", run_id, "--wait", "2m")
        hold.let_go.set()
        assert at_work.wait(PATIENCE_S) == 0
    asked = [record.event for record in read_records(one.workspace / run_id) if record.event.type == "stop_asked"]
    assert [one.reason for one in asked] == ["stopped by the user"]
    assert queue.run(run_id).status == "partial"
    assert (one.workspace / run_id / "report.md").read_text() == three.run("report", run_id)


def test_reports_are_those_of_undisturbed_runs_when_machines_die(tmp_path: Path) -> None:
    """On Postgres, which is restarted: each worker that takes over has an empty folder."""
    with server() as postgres:
        restarts = 0

        def restart(_kills: int) -> None:
            nonlocal restarts
            if restarts < 1:
                postgres.stop("immediate")
                postgres.start()
                restarts += 1

        found = bench().under_kills(tmp_path, postgres.url, 4, 2, 12.0, restart, store="database", least_kills=1)
        assert restarts == 1
        assert (found.done, found.equal, found.effects_twice, found.parked) == (found.runs, found.runs, 0, 0)


def test_a_write_that_meets_a_take_over_waits_for_it_and_is_refused(queue: FleetQueue) -> None:
    """The take-over is under way and not committed when the old worker writes: the write is decided after it."""
    run_id, _new = queue.submit(NewRun(QUESTION, OFFLINE))
    leases = Leases(queue, "one", 30.0)
    leases.enter("one", 1, 1)
    taken = leases.take(run_id)
    assert taken is not None
    commits = GroupCommit(queue.database, "one")
    commits.commit(RunBatch(run_id, taken.epoch, 1, 1, b"in time\n"))
    waiting = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    with ThreadPoolExecutor(1) as pool:
        with queue.database.transaction() as connection:
            connection.execute(sa.update(RUNS).where(RUNS.c.run_id == run_id).values(worker="two", epoch=2))
            late = pool.submit(commits.commit, RunBatch(run_id, taken.epoch, 2, 2, b"too late\n"))
            until(lambda: connection.scalar(waiting) == 1)
            assert not late.done()
        assert isinstance(late.exception(PATIENCE_S), LeaseLostError)
    commits.close()
    assert RunRecords(queue.database).of(run_id).lines == b"in time\n"
