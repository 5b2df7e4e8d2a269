"""Runs whose journals and files are in the fleet's database: taken over elsewhere, fenced, and made again."""

import os
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="the extra fleet is not installed")

import sqlalchemy as sa
from sqlalchemy import event

from engine_stage import noon
from explorer.fleet.database import BATCHES, CONTENTS, META, ORDERS, RUNS
from explorer.fleet.folder_changes import FolderChanges
from explorer.fleet.group_commit import GroupCommit, RunBatch
from explorer.fleet.leases import Ending, LeaseLostError, Leases, TakenRun
from explorer.fleet.orders import deliver_orders, leave_order
from explorer.fleet.restore import Restorer
from explorer.fleet.run_contents import RunContents, open_objects
from explorer.fleet.run_record import RunRecords
from explorer.fleet.runs import FleetQueue, NewRun, QueueState
from explorer.fleet.store_choice import StoreKind, agree_on_store, store_of
from explorer.fleet.stores import DatabaseStore, Stores
from explorer.journal.control import ControlKind, ControlMessage, Inbox
from explorer.journal.journal import Journal, Protection
from explorer.schema.errors import ConfigError, StorageError
from explorer.schema.events import (
    JournalRecord,
    NoteAdded,
    Repaired,
    RunFinished,
    Status,
    Steered,
    ToolFinished,
    ToolStarted,
)
from explorer.schema.tool import Effect
from explorer.workspace.user_key import NO_KEY, UserKey
from explorer.workspace.workspace import Workspace
from fleet.test_queue import queue, silence, tables, worker

_ = (queue, tables)
KEY = UserKey(b"k" * 32)
NOT_COMPARED = (".explorer/lock", ".explorer/holder", ".explorer/inbox")
ORDER = ControlMessage("01764000000000000000-0a1b2c", ControlKind.STEER, "leave out 2024")


def content_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    """All files of a run's folder, with their permissions."""
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mode & 0o777)
        for path in folder.rglob("*")
        if path.is_file() and not path.relative_to(folder).as_posix().startswith(NOT_COMPARED)
    }


@dataclass
class Machine:
    """A worker with a workspace of its own."""

    leases: Leases
    workspace: Path
    taken: TakenRun
    store: DatabaseStore
    journal: Journal

    @property
    def folder(self) -> Path:
        """Its folder of the run."""
        return self.workspace / self.taken.run_id


@contextmanager
def machine(queue: FleetQueue, place: Path, name: str, run_id: str) -> Generator[Machine]:
    """A worker that has taken a run, with its journal open."""
    leases = worker(queue, name)
    taken = leases.take(run_id)
    assert taken is not None
    stores = Stores(leases, place / name, StoreKind.DATABASE)
    store = stores.open(taken)
    assert isinstance(store, DatabaseStore)
    (place / name / run_id / ".explorer").mkdir(parents=True, exist_ok=True)
    journal = Journal.open(place / name / run_id / ".explorer", noon, protection=Protection(key=KEY, store=store))
    try:
        yield Machine(leases, place / name, taken, store, journal)
    finally:
        journal.close()
        stores.close()


def restored(queue: FleetQueue, workspace: Path, run_id: str) -> dict[str, tuple[bytes, int]]:
    """What a folder has that is made from the database."""
    records = RunRecords(queue.database)
    Restorer(records, workspace).restore(records.of(run_id))
    return content_of(workspace / run_id)


async def test_a_run_is_made_again_on_another_machine_byte_for_byte(queue: FleetQueue, tmp_path: Path) -> None:
    """Lines and files, with what commands wrote in place and removed; nothing of the process that wrote them."""
    run_id, _new = queue.submit(NewRun("What is new?", {}))
    with machine(queue, tmp_path, "one", run_id) as one:
        workspace = Workspace(one.folder)
        workspace.write_text("notes/a.md", "first\n")
        await one.journal.append(NoteAdded(text="the file is there"))
        workspace.write_text("notes/a.md", "second\n")
        workspace.write_text("gone.md", "gone\n")
        await one.journal.append(NoteAdded(text="it has changed"))
        await one.journal.append(ToolStarted(agent="a", call="a.t1.1", name="execute_shell", effect=Effect.JOB))
        with (one.folder / "notes" / "a.md").open("a") as file:
            file.write("more\n")
        (one.folder / "gone.md").unlink()
        (one.folder / "run.sh").write_bytes(b"\0echo\n")
        (one.folder / "run.sh").chmod(0o755)
        (one.folder / "empty").touch()
        (one.folder / "link").symlink_to("/etc/passwd")
        Inbox(one.folder / ".explorer").put(ORDER)
        done = ToolFinished(agent="a", call="a.t1.1", name="execute_shell", success=True, content="")
        await one.journal.append(done)
        before = content_of(one.folder)
        assert "gone.md" not in before
        del before["link"]
    assert restored(queue, tmp_path / "two", run_id) == before
    assert not (tmp_path / "two" / run_id / "link").is_symlink()
    assert not (tmp_path / "two" / run_id / ".explorer" / "inbox").exists()
    with queue.database.transaction() as connection:
        kept = connection.execute(sa.select(CONTENTS.c.content)).scalars().all()
        paths = " ".join(connection.execute(sa.select(BATCHES.c.files)).scalars())
    assert not {"lock", "holder", "inbox"} & {*paths.split('"')}
    assert len(set(kept)) == len(kept), "a content is kept once"


async def test_the_next_worker_continues_the_journal_with_its_marks(queue: FleetQueue, tmp_path: Path) -> None:
    """Made again elsewhere it is the user's own, and its next records follow those of the first worker."""
    run_id, _new = queue.submit(NewRun("What is new?", {}))
    with machine(queue, tmp_path, "one", run_id) as one:
        await one.journal.append(NoteAdded(text="first"))
    silence(queue, "one")
    with machine_after(queue, tmp_path, "two", run_id) as two:
        assert two.journal.is_own
        record = await two.journal.append(NoteAdded(text="second"))
        assert (record.seq, two.taken.epoch) == (2, 2)
    lines = RunRecords(queue.database).of(run_id).lines
    assert lines == (two.folder / ".explorer" / "journal.jsonl").read_bytes()


@contextmanager
def machine_after(queue: FleetQueue, place: Path, name: str, run_id: str) -> Generator[Machine]:
    """A worker that takes a run over from one that died."""
    helper = worker(queue, f"{name}-helper")
    helper.take_from_dead()
    helper.leave()
    with machine(queue, place, name, run_id) as found:
        yield found


async def test_no_record_of_a_worker_that_lost_its_run_gets_in(queue: FleetQueue, tmp_path: Path) -> None:
    """Neither into the database nor into a file, nor a content: the write itself is conditional."""
    run_id, _new = queue.submit(NewRun("What is new?", {}))
    with machine(queue, tmp_path, "one", run_id) as one:
        await one.journal.append(NoteAdded(text="first"))
        silence(queue, "one")
        with machine_after(queue, tmp_path, "two", run_id) as two:
            before = RunRecords(queue.database).of(run_id)
            (one.folder / "late.md").write_text("late")
            with pytest.raises(StorageError, match="another worker has the run"):
                await one.journal.append(NoteAdded(text="too late"))
            with pytest.raises(StorageError, match="another worker"):
                one.store.flush()
            assert RunRecords(queue.database).of(run_id) == before
            assert b"too late" not in (one.folder / ".explorer" / "journal.jsonl").read_bytes()
            await two.journal.append(NoteAdded(text="in time"))
    with queue.database.transaction() as connection:
        assert b"late" not in connection.execute(sa.select(CONTENTS.c.content)).scalars().all()


@pytest.mark.parametrize("ending", [QueueState.WAITING, QueueState.CANCELLED, QueueState.DONE])
def test_a_write_needs_the_run_to_be_at_work(queue: FleetQueue, tmp_path: Path, ending: QueueState) -> None:
    """Given back, cancelled or done, the same worker with the same epoch is refused."""
    run_id, _new = queue.submit(NewRun("What is new?", {}))
    with machine(queue, tmp_path, "one", run_id) as one:
        (one.folder / "a.md").write_text("a")
        one.store.flush()
        one.leases.settle(one.taken, Ending(ending))
        (one.folder / "b.md").write_text("b")
        with pytest.raises(StorageError, match="another worker"):
            one.store.flush()


async def test_what_only_this_machine_has_is_kept_aside(queue: FleetQueue, tmp_path: Path) -> None:
    """The database wins over more lines and other files, which are moved and not lost; what is the same stays."""
    run_id, _new = queue.submit(NewRun("What is new?", {}))
    with machine(queue, tmp_path, "one", run_id) as one:
        Workspace(one.folder).write_text("same.md", "same\n")
        Workspace(one.folder).write_text("other.md", "on record\n")
        await one.journal.append(NoteAdded(text="first"))
        on_record = content_of(one.folder)
    folder, lines = one.folder, on_record[".explorer/journal.jsonl"][0]
    with (folder / ".explorer" / "journal.jsonl").open("ab") as file:
        file.write(b"a line that the database never had\n")
    (folder / "other.md").write_text("not on record\n")
    (folder / "more.md").write_text("more\n")
    same = (folder / "same.md").stat().st_ino
    assert restored(queue, one.workspace, run_id) == on_record
    assert (folder / "same.md").stat().st_ino == same
    (aside,) = (one.workspace / ".fleet" / "aside").iterdir()
    assert content_of(aside) == {
        ".explorer/journal.jsonl": (lines + b"a line that the database never had\n", 0o600),
        "other.md": (b"not on record\n", 0o600),
        "more.md": (b"more\n", 0o644),
    }
    assert restored(queue, one.workspace, run_id) == on_record
    assert len(list((one.workspace / ".fleet" / "aside").iterdir())) == 1
    # Less than the database has is no loss: nothing is kept of it.
    (folder / ".explorer" / "journal.jsonl").write_bytes(lines[: len(lines) // 2])
    (folder / "same.md").unlink()
    assert restored(queue, one.workspace, run_id) == on_record
    assert len(list((one.workspace / ".fleet" / "aside").iterdir())) == 1


async def test_a_torn_tail_is_repaired_in_both_places(queue: FleetQueue, tmp_path: Path) -> None:
    """The record of the repair goes through the store like any other."""
    run_id, _new = queue.submit(NewRun("What is new?", {}))
    with machine(queue, tmp_path, "one", run_id) as one:
        await one.journal.append(NoteAdded(text="first"))
        one.journal.close()
        with (one.folder / ".explorer" / "journal.jsonl").open("ab") as file:
            file.write(b'{"half a li')
        store = replace(one.store, record=RunRecords(queue.database).of(run_id))
        again = Journal.open(one.folder / ".explorer", noon, protection=Protection(key=KEY, store=store))
        assert isinstance(again.records[-1].event, Repaired)
        again.close()
    assert RunRecords(queue.database).of(run_id).lines == (one.folder / ".explorer" / "journal.jsonl").read_bytes()


def test_a_folder_that_is_not_what_the_database_has_is_not_written_to(queue: FleetQueue, tmp_path: Path) -> None:
    """A journal with other records than the database's is refused before either has one more."""
    run_id, _new = queue.submit(NewRun("What is new?", {}))
    with machine(queue, tmp_path, "one", run_id) as one:
        other = replace(one.store, record=replace(one.store.record, last_seq=7))
        with pytest.raises(OSError, match="7 records"):
            other.write([(_record(1), b"line\n")], is_synced=True)


def _record(seq: int) -> JournalRecord:
    return JournalRecord(v=1, seq=seq, at=noon(), event=RunFinished(status=Status.COMPLETE, reason=""))


def test_runs_that_wait_together_share_a_transaction(queue: FleetQueue) -> None:
    """A run that was lost is refused alone; the others of the same transaction are written."""
    leases = worker(queue, "one")
    runs = [queue.submit(NewRun("What is new?", {}))[0] for _ in range(4)]
    taken = [leases.take(run_id) for run_id in runs]
    lost = runs[1]
    with queue.database.transaction() as connection:
        connection.execute(sa.update(RUNS).where(RUNS.c.run_id == lost).values(epoch=2))
    commits = GroupCommit(queue.database, "one")
    transactions: list[object] = []
    event.listen(queue.database.engine, "commit", transactions.append)
    batches = [RunBatch(one.run_id, one.epoch, 1, 1, b"line\n") for one in taken if one is not None]
    with ThreadPoolExecutor(4) as pool, commits._is_committing:
        found = [pool.submit(commits.commit, one) for one in batches]
        while len(commits._waiting) < 4:
            pass
        transactions.clear()
    errors = [one.exception() for one in found]
    commits.close()
    assert len(transactions) == 1
    assert [isinstance(error, LeaseLostError) for error in errors] == [run_id == lost for run_id in runs]
    records = RunRecords(queue.database)
    assert [records.of(run_id).lines for run_id in runs] == [b"" if run_id == lost else b"line\n" for run_id in runs]


def test_a_commit_whose_answer_was_lost_is_not_written_twice(queue: FleetQueue) -> None:
    """Made again it finds itself; another worker's batch of that number is not taken for it."""
    leases = worker(queue, "one")
    run_id, _new = queue.submit(NewRun("What is new?", {}))
    taken = leases.take(run_id)
    assert taken is not None
    commits = GroupCommit(queue.database, "one")
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        statements.append(statement)

    event.listen(queue.database.engine, "before_cursor_execute", note)
    commits.commit(RunBatch(run_id, taken.epoch, 1, 3, b"three lines\n"))
    assert len(statements) == 1, "one statement a batch, while nothing is in doubt"
    commits.commit(RunBatch(run_id, taken.epoch, 1, 3, b"three lines\n"))
    with pytest.raises(LeaseLostError):
        commits.commit(RunBatch(run_id, taken.epoch, 1, 4, b"four lines\n"))
    commits.close()
    assert RunRecords(queue.database).of(run_id).lines == b"three lines\n"


def test_a_database_that_does_not_answer_is_waited_for_and_then_named(queue: FleetQueue) -> None:
    """The batch is refused when patience ends, and nothing of it was written."""
    leases = worker(queue, "one")
    run_id, _new = queue.submit(NewRun("What is new?", {}))
    taken = leases.take(run_id)
    assert taken is not None
    commits = GroupCommit(queue.database, "one", patience_s=0.0)
    with queue.database.transaction() as connection:
        connection.execute(sa.text("ALTER TABLE explorer_batches RENAME TO away"))
    with pytest.raises(OSError, match="cannot be used") as refused:
        commits.commit(RunBatch(run_id, taken.epoch, 1, 1, b"line\n"))
    assert not isinstance(refused.value, LeaseLostError)
    with queue.database.transaction() as connection:
        connection.execute(sa.text("ALTER TABLE away RENAME TO explorer_batches"))
    commits.commit(RunBatch(run_id, taken.epoch, 1, 1, b"line\n"))
    commits.close()


@pytest.mark.parametrize("has_objects", [True, False])
def test_large_files_are_kept_in_pieces_or_in_the_object_store(
    queue: FleetQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_objects: bool
) -> None:
    """With an object store they are there as one; a change at the end of a file in pieces adds a piece only."""
    monkeypatch.setattr("explorer.fleet.folder_changes.PIECE_BYTES", 1000)
    run_id, _new = queue.submit(NewRun("What is new?", {}))
    objects = open_objects(f"file://{tmp_path}/objects") if has_objects else None
    with machine(queue, tmp_path, "one", run_id) as one:
        store = replace(one.store, objects=objects)
        store._contents.large_bytes = 2000
        content = bytes(range(250)) * 10
        (one.folder / "large.bin").write_bytes(content)
        (one.folder / "small.bin").write_bytes(content[:1500])
        store.flush()
        (one.folder / "large.bin").write_bytes(content + b"more")
        store.flush()
        before = content_of(one.folder)
    record = RunRecords(queue.database).of(run_id)
    assert len(record.files["small.bin"].pieces) == 2
    assert len(record.files["large.bin"].pieces) == (0 if has_objects else 3)
    with queue.database.transaction() as connection:
        kept = sorted(len(one) for one in connection.execute(sa.select(CONTENTS.c.content)).scalars())
    assert kept == ([0, 0, 500, 1000] if has_objects else [500, 504, 1000])
    records = RunRecords(queue.database, objects)
    Restorer(records, tmp_path / "two").restore(record)
    assert content_of(tmp_path / "two" / run_id) == {".explorer/journal.jsonl": (b"", 0o600)} | before
    if has_objects:
        with pytest.raises(StorageError, match="object store, which is not set up here"):
            Restorer(RunRecords(queue.database), tmp_path / "three").restore(record)
        assert not (tmp_path / "three" / run_id).exists()


def test_a_file_that_is_not_kept_is_on_record_with_the_reason(tmp_path: Path) -> None:
    """One that is too large without an object store, and one that changes while it is read."""
    (tmp_path / "large").write_bytes(b"x" * 100)
    contents = RunContents(tmp_path, "run", lambda _new: None, max_bytes=50)
    assert "100 bytes" in contents.version_of("large").problem

    class Changes:
        def put(self, name: str, pieces: Iterator[bytes]) -> None:
            (tmp_path / "large").write_bytes(os.urandom(100))
            assert name
            assert b"".join(pieces)

        def get(self, name: str) -> Iterator[bytes]:
            yield name.encode()

        def remove(self, name: str) -> None:
            raise AssertionError(name)

    restless = RunContents(tmp_path, "run", lambda _new: None, objects=Changes(), large_bytes=50)
    assert "changed" in restless.version_of("large").problem
    assert restless.take_new() == {}
    assert contents.version_of("missing").is_removed


def test_pieces_of_a_large_file_are_written_before_its_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a transaction, and the memory for it, stay small."""
    monkeypatch.setattr("explorer.fleet.run_contents.UPLOAD_BYTES", 2500)
    monkeypatch.setattr("explorer.fleet.folder_changes.PIECE_BYTES", 1000)
    (tmp_path / "large").write_bytes(bytes(range(256)) * 40)
    early: list[int] = []
    contents = RunContents(tmp_path, "run", lambda new: early.append(len(new)))
    version = contents.version_of("large")
    assert early == [3, 3, 3]
    assert len(contents.take_new()) == len(version.pieces) - 9


def test_a_file_that_was_replaced_within_one_tick_of_the_clock_is_found(tmp_path: Path) -> None:
    """Disks count time in steps; what changed just before a look is looked at again."""
    (tmp_path / "a").write_text("1")
    status = (tmp_path / "a").stat()
    files = FolderChanges(tmp_path, lambda: status.st_mtime_ns + 10**6)
    assert files.look(is_full=False) == (["a"], [])
    (tmp_path / "a").write_text("2")
    os.utime(tmp_path / "a", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert files.look(is_full=False) == (["a"], [])
    later = FolderChanges(tmp_path, lambda: status.st_mtime_ns + 10**12)
    assert later.look(is_full=False) == (["a"], [])
    assert later.look(is_full=False) == ([], [])
    with (tmp_path / "a").open("a") as file:
        file.write("in place")
    assert later.look(is_full=False) == ([], [])
    assert later.look(is_full=True) == (["a"], [])


@pytest.mark.parametrize(
    "path", ["../a", "/etc/a", "a/../../b", ".explorer/lock", ".explorer/journal.jsonl", "a//b", ""]
)
def test_a_record_that_names_a_file_outside_the_run_is_refused(queue: FleetQueue, tmp_path: Path, path: str) -> None:
    """Who may write to the database does not decide which files there are on a worker."""
    with queue.database.transaction() as connection:
        files = f'[{{"path":"{path}","sha256":"00","bytes":1}}]'
        row = {"run_id": "20261124-000000-a", "number": 1, "epoch": 1, "last_seq": 1, "lines": b"", "files": files}
        connection.execute(sa.insert(BATCHES).values(**row))
    with pytest.raises(StorageError, match="not the run's"):
        restored(queue, tmp_path, "20261124-000000-a")


def test_a_damaged_content_is_refused_and_leaves_no_folder(queue: FleetQueue, tmp_path: Path) -> None:
    """A content is known by its digest; a wrong one is not written."""
    run_id, _new = queue.submit(NewRun("What is new?", {}))
    with machine(queue, tmp_path, "one", run_id) as one:
        (one.folder / "a.md").write_text("as it was")
        one.store.flush()
    with queue.database.transaction() as connection:
        connection.execute(sa.update(CONTENTS).values(content=b"as it was not"))
    with pytest.raises(StorageError, match="damaged"):
        restored(queue, tmp_path / "two", run_id)
    assert not (tmp_path / "two" / run_id).exists()
    assert [path.name for path in (tmp_path / "two" / ".fleet").iterdir()] == []


def test_the_database_remembers_the_store_and_the_key(queue: FleetQueue) -> None:
    """Workers that disagree, and machines on which runs would lose their rights, are refused in one line each."""
    database = queue.database
    assert store_of(database) is StoreKind.LOCAL
    assert agree_on_store(database, "", KEY) is StoreKind.LOCAL
    assert agree_on_store(database, "database", KEY) is StoreKind.DATABASE, "nothing has run yet"
    assert store_of(database) is StoreKind.DATABASE
    with pytest.raises(ConfigError, match="another user key"):
        agree_on_store(database, "", UserKey(b"o" * 32))
    with pytest.raises(ConfigError, match="no key"):
        agree_on_store(database, "", NO_KEY)
    run_id, _new = queue.submit(NewRun("What is new?", {}))
    worker(queue, "one").take(run_id)
    with pytest.raises(ConfigError, match="are in the store database"):
        agree_on_store(database, "local", KEY)
    assert agree_on_store(database, "", KEY) is StoreKind.DATABASE
    with database.transaction() as connection:
        connection.execute(sa.update(META).where(META.c.name == "store").values(value="tape"))
    with pytest.raises(ConfigError, match="not known here"):
        store_of(database)


async def test_an_order_stays_in_the_database_until_it_is_on_record(queue: FleetQueue, tmp_path: Path) -> None:
    """A take-over brings it again; the record and its removal are one transaction."""
    run_id, _new = queue.submit(NewRun("What is new?", {}))
    with machine(queue, tmp_path, "one", run_id) as one:
        await one.journal.append(NoteAdded(text="first"))
        leave_order(queue.database, run_id, ORDER)
        leave_order(queue.database, run_id, replace(ORDER, id="../../elsewhere"))
        for _ in range(2):
            deliver_orders(queue.database, one.workspace, [run_id, "another"])
        assert Inbox(one.folder / ".explorer").waiting() == [ORDER]
    silence(queue, "one")
    with machine_after(queue, tmp_path, "two", run_id) as two:
        deliver_orders(queue.database, two.workspace, [run_id])
        assert Inbox(two.folder / ".explorer").waiting() == [ORDER]
        await two.journal.append(Steered(text=ORDER.text, order=ORDER.id))
        assert _orders(queue) == ["../../elsewhere"]
        two.leases.settle(two.taken, Ending(QueueState.DONE))
    assert _orders(queue) == []


def _orders(queue: FleetQueue) -> list[str]:
    with queue.database.transaction() as connection:
        return list(connection.execute(sa.select(ORDERS.c.order_id)).scalars())


@pytest.mark.parametrize("address", ["http://host/x", "s3://key@bucket", "s3://bucket?secret=1", "bucket"])
def test_an_object_store_with_keys_in_its_address_is_refused(address: str) -> None:
    """The address is shown; keys have variables of their own."""
    with pytest.raises(ConfigError, match="cannot be used"):
        open_objects(address)
    assert open_objects("") is None


def test_an_object_store_says_what_it_has_not() -> None:
    """In a line, as an error of reading."""
    objects = open_objects("memory:///")
    assert objects is not None
    objects.put("run/a", iter([b"one", b"two"]))
    assert b"".join(objects.get("run/a")) == b"onetwo"
    with pytest.raises(OSError, match="does not give run/b"):
        list(objects.get("run/b"))
