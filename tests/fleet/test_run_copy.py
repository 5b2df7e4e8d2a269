"""Runs of the fleet looked at from a machine that has no folder of them: copies that look like any run."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

import pytest

pytest.importorskip("dbos", reason="the extra fleet is not installed")

from pydantic import SecretStr

from command import explorer_here
from explorer.cli.runs_at_hand import all_runs, run_at_hand, run_to_resume, workspace_for
from explorer.fleet.leases import Ending
from explorer.fleet.orders import deliver_orders
from explorer.fleet.run_copy import RunCopy
from explorer.fleet.run_record import RunRecords
from explorer.fleet.runs import FleetQueue, NewRun, QueueState
from explorer.fleet.store_choice import agree_on_store
from explorer.journal.control import ControlKind, Inbox
from explorer.journal.listing import JournalTail, is_running
from explorer.schema.errors import ConfigError, NotFoundError
from explorer.schema.events import NoteAdded, RunFinished, RunStarted, Status
from explorer.schema.settings import Secrets, Settings
from fleet.test_queue import queue, silence, tables, worker
from fleet.test_store import KEY, content_of, machine, machine_after

_ = (queue, tables)
PATIENCE_S = 30


def until(is_so: Callable[[], bool]) -> None:
    """Wait for what a thread brings about."""
    deadline = monotonic() + PATIENCE_S
    while not is_so():
        assert monotonic() < deadline, "it did not come about"
        sleep(0.01)


def settings_of(queue: FleetQueue, place: Path) -> Settings:
    """The settings of a command on a machine."""
    return Settings(workspace=place / "workspace", secrets=Secrets(fleet_database=SecretStr(queue.database.dsn)))


def started(run_id: str) -> RunStarted:
    """The first event of a run."""
    return RunStarted(run_id=run_id, question="What is new?", engine="1", settings={})


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database is asked often, so that tests are short."""
    monkeypatch.setattr("explorer.fleet.run_copy.LOOK_EVERY_S", 0.02)


async def test_a_copy_looks_like_the_run_while_it_is_at_work_and_after(queue: FleetQueue, tmp_path: Path) -> None:
    """It is running for as long as the run is, whichever worker has it; records and files come as they are written."""
    agree_on_store(queue.database, "database", KEY)
    run_id, _new = queue.submit(NewRun("What is new?", {}))
    settings = settings_of(queue, tmp_path / "third")
    with machine(queue, tmp_path, "one", run_id) as one:
        await one.journal.append(started(run_id))
        with run_at_hand(settings, run_id[:20]) as folder, run_at_hand(settings, "latest") as same:
            assert folder == same
            assert is_running(folder)
            tail = JournalTail(folder)
            assert [record.seq for record in tail.read()] == [1]
            (one.folder / "found.md").write_text("found\n")
            await one.journal.append(NoteAdded(text="it is there"))
            until(lambda: bool(tail.read()))
            assert (folder / "found.md").read_text() == "found\n"
            assert all_runs(settings)[0].status == "running"
            silence(queue, "one")
            with machine_after(queue, tmp_path, "two", run_id) as two:
                (two.folder / "found.md").unlink()
                await two.journal.append(RunFinished(status=Status.COMPLETE, reason=""))
                two.leases.settle(two.taken, Ending(QueueState.DONE))
            until(lambda: not is_running(folder))
            assert [record.seq for record in tail.read()] == [3]
            assert content_of(folder) == content_of(two.folder)
    (folder / "by-a-command.md").write_text("made in the copy\n")
    with run_at_hand(settings, run_id) as again:
        assert not is_running(again)
        assert content_of(again) == content_of(two.folder)
    (overview,) = all_runs(settings)
    assert (overview.run_id, overview.status) == (run_id, "complete")
    with pytest.raises(ConfigError, match="a worker of the fleet continues it"):
        run_to_resume(settings, run_id)
    assert workspace_for(again, settings) == settings.workspace
    assert workspace_for(two.folder, settings) == two.workspace


async def test_an_order_left_in_a_copy_reaches_the_worker(queue: FleetQueue, tmp_path: Path) -> None:
    """By the database, under the id that it was left with; also when the copy is closed at once."""
    agree_on_store(queue.database, "database", KEY)
    run_id, _new = queue.submit(NewRun("What is new?", {}))
    with machine(queue, tmp_path, "one", run_id) as one:
        await one.journal.append(started(run_id))
        with run_at_hand(settings_of(queue, tmp_path / "third"), run_id) as folder:
            order = Inbox(folder / ".explorer").leave(ControlKind.STEER, "be short", lambda: 1)
        deliver_orders(queue.database, one.workspace, [run_id])
        assert Inbox(one.folder / ".explorer").waiting() == [order]
        assert Inbox(folder / ".explorer").waiting() == []


async def test_a_copy_that_is_behind_or_wrong_is_made_right(queue: FleetQueue, tmp_path: Path) -> None:
    """In its place, so that others may read it meanwhile."""
    agree_on_store(queue.database, "database", KEY)
    run_id, _new = queue.submit(NewRun("What is new?", {}))
    with machine(queue, tmp_path, "one", run_id) as one:
        (one.folder / "a.md").write_text("a\n")
        await one.journal.append(started(run_id))
        one.leases.settle(one.taken, Ending(QueueState.FAILED))
        copies = tmp_path / "copies"
        for spoil in (b"", b"other lines\n" * 100):
            copy = RunCopy(queue.database, RunRecords(queue.database), copies, run_id)
            folder = copy.open()
            assert content_of(folder) == content_of(one.folder)
            copy.close()
            (folder / ".explorer" / "journal.jsonl").write_bytes(spoil)
            (folder / "a.md").write_text("b\n")
        copy = RunCopy(queue.database, RunRecords(queue.database), copies, run_id)
        assert content_of(copy.open()) == content_of(one.folder)
        copy.close()


def test_what_looks_at_a_run_says_what_the_queue_knows(queue: FleetQueue, tmp_path: Path) -> None:
    """Its journal cannot: the run's worker gave it up after its last record. The next command is a worker's, too."""
    agree_on_store(queue.database, "database", KEY)
    ids = [queue.submit(NewRun(question, {}))[0] for question in ("What is new?", "What is old?")]
    with machine(queue, tmp_path, "one", ids[0]) as one:
        asyncio.run(one.journal.append(started(ids[0])))
        one.leases.settle(one.taken, Ending(QueueState.FAILED, reason="a key was \x1b[31mrefused"))
        taken = one.leases.take(ids[1])
        assert taken is not None
        one.leases.settle(taken, Ending(QueueState.FAILED, reason="no key"))
    place = {"EXPLORER_FLEET_DATABASE": queue.database.dsn}
    for words, code in ((("show", ids[0]), 0), (("doctor", ids[0]), 0), (("show", ids[1]), 5)):
        done = explorer_here(*words, cwd=tmp_path, settings=place)
        said = " ".join((done.stdout + done.stderr).split())
        assert done.returncode == code, said
        assert f"→ try it again: explorer queue retry {words[1]}" in said
        assert "failed (a key was refused)" in said or "failed (no key); nothing of it is on record yet" in said


def test_a_run_that_is_not_in_the_database_is_named_in_one_line(queue: FleetQueue, tmp_path: Path) -> None:
    """One in another machine's workspace, one that only waits, and none at all; one of this workspace is as ever."""
    run_id, _new = queue.submit(NewRun("What is new?", {}))
    settings = settings_of(queue, tmp_path)
    with pytest.raises(NotFoundError, match=r"is waiting.* in the workspace of the worker that had it, not on this"):
        run_at_hand(settings, run_id).__enter__()
    worker(queue, "host-12-ab").take(run_id)
    with pytest.raises(NotFoundError, match="the workspace of host-12-ab"):
        run_at_hand(settings, run_id).__enter__()
    with pytest.raises(NotFoundError, match="there are no runs"):
        run_at_hand(settings, "nothing").__enter__()
    journal = settings.workspace / run_id / ".explorer" / "journal.jsonl"
    journal.parent.mkdir(parents=True)
    journal.touch()
    with run_at_hand(settings, run_id) as folder:
        assert folder == settings.workspace / run_id
    assert run_to_resume(settings, run_id) == settings.workspace / run_id
    other = settings_of(queue, tmp_path / "other")
    with queue.database.transaction() as connection:
        connection.exec_driver_sql("INSERT INTO explorer_fleet VALUES ('store', 'database')")
    with pytest.raises(NotFoundError, match="nothing of it is on record yet"):
        run_at_hand(other, run_id).__enter__()


def test_a_fleet_that_does_not_answer_hides_no_run_of_this_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is here is shown, and said to be that."""
    secrets = Secrets(fleet_database=SecretStr(f"sqlite:///{tmp_path}"))
    settings = Settings(workspace=tmp_path / "workspace", secrets=secrets)
    journal = settings.workspace / "20261124-000000-a" / ".explorer" / "journal.jsonl"
    journal.parent.mkdir(parents=True)
    journal.touch()
    with run_at_hand(settings, "2026") as folder:
        assert folder.name == "20261124-000000-a"
    assert [one.run_id for one in all_runs(settings)] == ["20261124-000000-a"]
    assert capsys.readouterr().err.count("cannot be used") == 2


def test_a_database_that_came_with_the_folder_is_not_asked(tmp_path: Path) -> None:
    """Its runs are somebody else's."""
    settings = Settings(workspace=tmp_path, state_dir=tmp_path / "state")
    (tmp_path / ".fleet").mkdir()
    (tmp_path / ".fleet" / "queue.sqlite").write_text("no database")
    with pytest.raises(NotFoundError, match="there are no runs"):
        run_at_hand(settings, "latest").__enter__()


async def test_runs_elsewhere_are_searched_compared_and_examined(queue: FleetQueue, tmp_path: Path) -> None:
    """`grep`, `diff` and `doctor` take a run of the fleet by its name."""
    agree_on_store(queue.database, "database", KEY)
    names: list[str] = []
    for text in ("The quay cost 410 million.", "The quay cost 500 million."):
        run_id, _new = queue.submit(NewRun("What did the quay cost?", {}))
        with machine(queue, tmp_path, "one", run_id) as one:
            await one.journal.append(started(run_id))
            (one.folder / "report.md").write_text(f"# The quay\n\n{text}\n")
            (one.folder / "notes.md").write_text(f"{text}\n")
            await one.journal.append(RunFinished(status=Status.COMPLETE, reason=""))
            one.leases.settle(one.taken, Ending(QueueState.DONE))
            one.leases.leave()
        names.append(run_id)
    here = tmp_path / "third"
    here.mkdir()

    def asked(*words: str) -> tuple[int, str]:
        done = explorer_here(*words, cwd=here, settings={"EXPLORER_FLEET_DATABASE": queue.database.dsn})
        return done.returncode, done.stdout + done.stderr

    code, found = asked("grep", "410 million", *names)
    assert (code, f"{names[0]}/notes.md:1" in found, names[1] in found) == (0, True, False), found
    code, found = asked("diff", *names)
    assert (code, *(name in found for name in names)) == (0, True, True), found
    code, found = asked("doctor", names[0])
    assert (code, "in the fleet's database" in found, "2 records" in found) == (0, True, True), found
    assert asked("doctor", "20200101-000000-nothing")[0] == 5
