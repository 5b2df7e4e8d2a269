"""Workers as processes: killed, frozen and ended, on a file and on Postgres; nothing is lost and nothing done twice."""

import importlib.util
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dbos", reason="the extra fleet is not installed")

from cli.conftest import hold
from cli.stage import SCRIPT, Hold, clean_environment
from command import done_by, forked_for_fleet
from explorer.fleet.database import FleetDatabase
from explorer.fleet.leases import Leases
from explorer.fleet.runs import FleetQueue, NewRun, QueueState
from explorer.journal.listing import is_running, read_records
from explorer.schema.errors import StorageError
from fleet.postgres import server

pytestmark = pytest.mark.slow
BENCH = Path(__file__).resolve().parents[2] / "bench" / "fleet.py"
PATIENCE_S = 60
OFFLINE = {"model": "offline"}
_ = hold
QUESTION = "What is notable on Hacker News today?"


def bench() -> Any:  # noqa: ANN401 - a script's module, which no package holds
    """The measurement under kills, loaded from its file."""
    spec = importlib.util.spec_from_file_location("bench_fleet", BENCH)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def until(is_so: Callable[[], bool]) -> None:
    """Wait for something that other processes bring about."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.05)


@contextmanager
def queue_in(folder: Path) -> Generator[FleetQueue]:
    """The queue of the workspace in this folder."""
    one = FleetQueue(FleetDatabase(f"sqlite:///{folder / 'workspace' / '.fleet' / 'queue.sqlite'}"))
    try:
        yield one
    finally:
        one.close()


def freeze(folder: Path, process: "subprocess.Popen[str]") -> None:
    """Stop a worker where it has no lock of the queue's file, which it would keep from all others."""
    with closing(sqlite3.connect(folder / "workspace" / ".fleet" / "queue.sqlite", timeout=PATIENCE_S)) as file:
        file.execute("BEGIN EXCLUSIVE")
        process.send_signal(signal.SIGSTOP)
        until(lambda: Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")


@contextmanager
def worker(folder: Path, hold: Hold, *flags: str, database: str = "") -> Generator["subprocess.Popen[str]"]:
    """A worker whose runs ask services that answer nothing until they are told to."""
    services = {
        "EXPLORER_HN_API_URL": f"{hold.url}/v0",
        "EXPLORER_HN_SEARCH_URL": f"{hold.url}/api/v1",
        "EXPLORER_ALLOW_HOSTS": "127.0.0.1",
        "EXPLORER_TAVILY_URL": hold.url,
        "EXPLORER_FLEET_DATABASE": database or f"sqlite:///{folder / 'workspace' / '.fleet' / 'queue.sqlite'}",
    }
    words = [str(SCRIPT), "worker", "--model", "offline", "--no-shell", "--lease", "2s", *flags]
    variables = clean_environment(folder) | services
    with forked_for_fleet(*words, cwd=folder, variables=variables, stderr=subprocess.STDOUT) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()


def test_nothing_is_lost_or_done_twice_when_workers_are_killed(tmp_path: Path) -> None:
    """On a file: all reports are those of an undisturbed run, and no tool's effect is there twice."""
    found = bench().under_kills(tmp_path, f"sqlite:///{tmp_path}/queue.sqlite", 8, 2, 4.0, least_kills=2)
    assert found.kills >= 2
    assert (found.done, found.equal, found.effects_twice, found.parked) == (found.runs, found.runs, 0, 0)


def test_the_same_on_postgres_that_is_restarted_twice(tmp_path: Path) -> None:
    """Workers wait until the database is back, and continue."""
    with server() as postgres:
        restarts = 0

        def restart(kills: int) -> None:
            nonlocal restarts
            if restarts < 2:
                postgres.stop("immediate" if kills == 1 else "fast")
                postgres.start()
                restarts += 1

        found = bench().under_kills(tmp_path, postgres.url, 10, 2, 4.0, restart, least_kills=2)
        assert restarts == 2
        assert (found.done, found.equal, found.effects_twice) == (found.runs, found.runs, 0)


def test_a_frozen_worker_writes_nothing_once_its_lease_is_over(tmp_path: Path, hold: Hold) -> None:
    """Woken after another worker has its run, it adds no record; the other one takes the run to its end."""
    with queue_in(tmp_path) as queue:
        run_id, _ = queue.submit(NewRun(QUESTION, OFFLINE))
        folder = tmp_path / "workspace" / run_id
        with worker(tmp_path, hold) as frozen:
            assert hold.asked.wait(PATIENCE_S)
            until(lambda: queue.run(run_id).epoch == 1)
            freeze(tmp_path, frozen)
            with worker(tmp_path, hold, "--until-empty") as other:
                until(lambda: queue.run(run_id).epoch == 2)
                before = read_records(folder)
                assert is_running(folder), "the frozen worker has the journal's lock"
                hold.let_go.set()
                frozen.send_signal(signal.SIGCONT)
                until(lambda: queue.run(run_id).state is QueueState.DONE)
                assert other.wait(PATIENCE_S) == 0
        after = read_records(folder)
        assert after[: len(before)] == before
        assert after[len(before)].event.type == "session_configured", "the first new record is the other worker's"
        assert queue.run(run_id).deaths == 0


def test_a_worker_takes_a_run_over_from_itself(tmp_path: Path, hold: Hold) -> None:
    """Silent for too long, and given its own run again, it ends its earlier work on it, and settles the run."""
    with queue_in(tmp_path) as queue:
        run_id, _ = queue.submit(NewRun(QUESTION, OFFLINE))
        with worker(tmp_path, hold, "--until-empty") as one:
            assert hold.asked.wait(PATIENCE_S)
            until(lambda: queue.run(run_id).epoch == 1)
            freeze(tmp_path, one)
            until(lambda: bool(Leases(queue, "another", 2.0).take_from_dead()))
            hold.let_go.set()
            one.send_signal(signal.SIGCONT)
            until(lambda: queue.run(run_id).state is QueueState.DONE)
            assert queue.run(run_id).epoch == 2
            assert one.wait(PATIENCE_S) == 0


def test_a_worker_that_is_ended_gives_its_runs_back(tmp_path: Path, hold: Hold) -> None:
    """After SIGTERM the run waits again without a death, and the next worker resumes it."""
    with queue_in(tmp_path) as queue:
        run_id, _ = queue.submit(NewRun(QUESTION, OFFLINE))
        with worker(tmp_path, hold) as first:
            assert hold.asked.wait(PATIENCE_S)
            first.send_signal(signal.SIGTERM)
            assert first.wait(PATIENCE_S) == 143
        assert (queue.run(run_id).state, queue.run(run_id).deaths) == (QueueState.WAITING, 0)
        assert queue.workers() == []
        hold.let_go.set()
        with worker(tmp_path, hold, "--until-empty") as second:
            assert second.wait(PATIENCE_S) == 0
        assert queue.run(run_id).state is QueueState.DONE
        assert sum(one.event.type == "run_started" for one in read_records(tmp_path / "workspace" / run_id)) == 1


def test_a_run_at_work_is_cancelled_and_all_are_stopped(tmp_path: Path, hold: Hold) -> None:
    """`queue cancel` ends one for good; `queue stop --all` gives the others back, and `queue start` lets them go on."""
    with queue_in(tmp_path) as queue, worker(tmp_path, hold, "--concurrency", "2") as one:
        first, _ = queue.submit(NewRun(QUESTION, OFFLINE))
        second, _ = queue.submit(NewRun(QUESTION, OFFLINE))
        until(lambda: all(run.state is QueueState.RUNNING for run in queue.runs()))
        assert hold.asked.wait(PATIENCE_S)
        queue.cancel(first)
        until(lambda: queue.run(first).state is QueueState.CANCELLED)
        assert queue.stop_all() == 1
        until(lambda: queue.run(second).state is QueueState.WAITING)
        hold.let_go.set()
        queue.pause(is_paused=False)
        until(lambda: queue.run(second).state is QueueState.DONE)
        assert queue.run(first).state is QueueState.CANCELLED
        assert one.poll() is None


def test_a_database_that_goes_away_is_named_in_one_line(tmp_path: Path) -> None:
    """Neither `submit` nor `queue` shows a traceback or the password."""
    with server() as postgres:
        url = postgres.url
        queue = FleetQueue(FleetDatabase(url))
        assert queue.submit(NewRun("What is new?", {}))[1]
        queue.close()
        with pytest.raises(StorageError, match="password"):
            FleetDatabase(url.replace("a-password", "another-password"))
    for words in (("submit", "What is new?"), ("queue",), ("worker",)):
        variables = clean_environment(tmp_path) | {"EXPLORER_FLEET_DATABASE": url}
        done = done_by(forked_for_fleet(str(SCRIPT), *words, cwd=tmp_path, variables=variables), None, PATIENCE_S)
        assert done.returncode == 1
        assert "cannot be used" in done.stderr
        assert "Traceback" not in done.stderr
        assert "a-password" not in done.stderr
