"""The journal: one append-only file of records in one total order, the only truth about a run.

`append` returns when the record is on disk (write + fdatasync). Appends that come while a sync is running wait
for the next one together: one sync for all of them. No caller waits for an event that is not a barrier (see
`Event.is_barrier`): it reaches the disk before whatever is appended after it, in the same sync, or after `LINGER_S`.
For a third kind of events (`Event.is_written_at_once`) callers wait until they are in the file: there they survive the
end of the process; a loss of power takes at most those of the last `LINGER_S`. These the event loop's thread writes
itself; the journal's thread writes what is synced, and everything where there is a second store.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import IO, Protocol

from filelock import FileLock, Timeout

from explorer.journal.codec import EVENTS, GENESIS, MarkChain, chain_of, encode, scan
from explorer.schema.errors import RunLockedError, StorageError
from explorer.schema.events import JOURNAL_VERSION, AnyEvent, JournalRecord, Repaired
from explorer.text.sanitize import Redactor
from explorer.workspace.access import restore_access
from explorer.workspace.safe_open import FILE_MODE, open_private, write_private
from explorer.workspace.user_key import NO_KEY, UserKey


class JournalStore(Protocol):
    """Takes the lines of a run's journal, in their order, or refuses them.

    It is called in the journal's own thread, and may block. What it refuses does not reach the file, and the run's
    work ends with an error. What it has taken may be missing in the file after a crash: then it is the truth.
    """

    def write(self, entries: Sequence[tuple[JournalRecord, bytes]], *, is_synced: bool) -> None:
        """Take records, each with its line.

        Args:
            entries: The records, and their lines with the newline.
            is_synced: Whether callers wait until they are safe; if not, they may be kept back until the next call.

        Raises:
            OSError: They cannot be written; `strerror` says why.
        """


class NoStore:
    """There is no second place."""

    def write(self, entries: Sequence[tuple[JournalRecord, bytes]], *, is_synced: bool) -> None:
        """Take nothing."""


Observe = Callable[[JournalRecord], None]
OnCheckpoint = Callable[[str], None]
LINGER_S = 0.1
"""Seconds after which a record is on disk that no caller waits for, if no later sync was."""
SEE_DISK = "see what is wrong with it: explorer doctor"
"""What to do about a folder that cannot be written."""
CHECKPOINTS = ("before_append", "before_write", "mid_write", "before_sync", "after_sync", "after_append")


def read(path: Path) -> tuple[JournalRecord, ...]:
    """Return all records of a journal, without lock or repair; the run may be running.

    Raises:
        StorageError: The file cannot be read, or is damaged.
    """
    try:
        return scan(path.read_bytes()).records
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error


@dataclass(frozen=True)
class Protection:
    """What keeps secrets out of a journal's lines, proves whose lines they are, and keeps them in a second place."""

    redactor: Redactor = field(default_factory=Redactor)
    """Replaces the keys that must not be written."""
    key: UserKey = NO_KEY
    """Marks the lines as the user's own."""
    store: JournalStore = field(default_factory=NoStore)
    """Takes each line before the file does; what it refuses is not written."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Records that are written together, and reach the disk with one sync."""

    entries: list[tuple[JournalRecord, bytes]]
    until_written: list[asyncio.Future[None]]
    """Futures of callers that wait until the record is in the file."""
    until_synced: list[asyncio.Future[None]]
    """Futures of callers that wait until the record is on disk."""
    is_synced: bool
    """Whether it is synced; if not, it reaches the disk with a later batch."""
    loop: asyncio.AbstractEventLoop


class Journal:
    """The one writer of a run's journal. Use `Journal.open`, and `close` at the end."""

    def __init__(
        self,
        folder: Path,
        now: Callable[[], datetime],
        observers: Iterable[Observe],
        on_checkpoint: OnCheckpoint,
        protection: Protection,
    ) -> None:
        self._folder = folder
        self._redactor = protection.redactor
        self._key = protection.key
        self._store = protection.store
        self._chain: MarkChain | None = None
        """Marks the next line; None in a journal that has lines without the user's mark."""
        self._now = now
        self._observers = tuple(observers)
        self._on_checkpoint = on_checkpoint
        # A short wait: another process may be testing whether the run is running.
        self._lock = FileLock(folder / "lock", timeout=0.3, mode=FILE_MODE)
        # One thread: batches reach the file in the order of handing over, whatever is cancelled meanwhile. It is the
        # journal's own, because a call through an executor costs as much again as the sync itself.
        self._batches: SimpleQueue[Batch | None] = SimpleQueue()
        self._thread = Thread(target=self._write_batches, name="journal", daemon=True)
        self._waiting: list[tuple[JournalRecord, bytes]] = []
        self._is_writing = False
        self._until_synced: list[asyncio.Future[None]] = []
        """One future for each caller that waits until the records in `_waiting` are on disk."""
        self._until_written: list[asyncio.Future[None]] = []
        """One future for each caller that waits until the records in `_waiting` are in the file."""
        self._has_lingered = False
        """Whether to sync although no caller waits for it."""
        self._lingering: asyncio.TimerHandle | None = None
        self._failure: StorageError | None = None
        self._seq = self._written_seq = self._durable = 0
        self._crc = GENESIS
        self._file: IO[bytes] | None = None
        self.records: tuple[JournalRecord, ...] = ()
        """The records at opening, a repair included, until `take_records`."""

    @classmethod
    def open(
        cls,
        folder: Path,
        now: Callable[[], datetime],
        observers: Iterable[Observe] = (),
        on_checkpoint: OnCheckpoint | None = None,
        protection: Protection | None = None,
    ) -> "Journal":
        """Take the lock, read the file, and cut off a torn tail.

        Args:
            folder: The run's `.explorer` folder.
            now: The clock for records' times (aware).
            observers: Called with each record once it is durable, in order.
            on_checkpoint: Called with the name of each checkpoint as it is reached; tests end the process there.
            protection: What its lines are protected with.

        Raises:
            RunLockedError: Another process works on the run.
            JournalDamagedError: Damage that cannot be repaired without guessing.
            StorageError: The folder cannot be written.
        """
        restore_access(folder.parent)
        journal = cls(folder, now, observers, on_checkpoint or (lambda _point: None), protection or Protection())
        journal._take_lock()
        try:
            journal._load()
        except BaseException:
            journal.close()
            raise
        return journal

    def _take_lock(self) -> None:
        try:
            self._lock.acquire()
        except Timeout as error:
            holder = _holder(self._folder)
            raise RunLockedError(
                f"process {holder} is working on this run" if holder else "another process is working on this run",
                hint=f"wait for it to end, or have it write up and stop: explorer stop {self._folder.parent.name}",
            ) from error
        except OSError as error:
            raise StorageError(f"cannot write {self._folder}: {error.strerror}", hint=SEE_DISK) from error

    def _load(self) -> None:
        path = self._folder / "journal.jsonl"
        try:
            write_private(self._folder / "holder", str(os.getpid()).encode())
            self._file = open_private(path, "a", buffering=0)
            content = path.read_bytes()
            found = scan(content)
            self._chain = chain_of(content[: found.good_bytes], self._key)
            if found.torn:
                write_private(self._folder / "journal.torn", found.torn)
                self._file.truncate(found.good_bytes)
            self.records = found.records
            self._seq = self._written_seq = self._durable = len(found.records)
            self._crc = found.last_crc
            if found.torn:
                record, line = self._seal(Repaired(cut_bytes=len(found.torn)))
                self._store.write([(record, line)], is_synced=True)
                self._write_all([(record, line)])
                self._sync()
                self._written_seq = self._durable = record.seq
                self.records = (*found.records, record)
            _sync_folder(self._folder)
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror}", hint=SEE_DISK) from error

    def take_records(self) -> tuple[JournalRecord, ...]:
        """Return the records at opening, and drop them."""
        taken, self.records = self.records, ()
        return taken

    async def append(self, event: AnyEvent) -> JournalRecord:
        """Put an event on disk, and return its record, in which `REDACTED` replaces every key.

        An event that is not a barrier is only queued: it is written with the next one, or alone after `LINGER_S`.
        One that is written at once is in the file on return, and reaches the disk with the next sync, or then.

        Raises:
            StorageError: The disk is full or failing; this and all later appends fail, acknowledged records are safe.
        """
        if self._failure is not None:
            raise self._failure
        self._on_checkpoint("before_append")
        entry = self._seal(event)
        self._waiting.append(entry)
        loop = asyncio.get_running_loop()
        if not event.is_barrier:
            self._lingering = self._lingering or loop.call_later(LINGER_S, self._linger_no_more)
        if not event.is_written_at_once:
            return entry[0]
        # A future of its own: a cancelled agent leaves a whole record, and cancels no other append.
        waiter = loop.create_future()
        (self._until_synced if event.is_barrier else self._until_written).append(waiter)
        self._hand_over()
        await waiter
        self._on_checkpoint("after_append")
        return entry[0]

    def _linger_no_more(self) -> None:
        self._lingering = None
        self._has_lingered = self._durable < self._seq
        self._hand_over()

    def _seal(self, event: AnyEvent) -> tuple[JournalRecord, bytes]:
        record = JournalRecord(v=JOURNAL_VERSION, seq=self._seq + 1, at=self._now(), event=event)
        sign = None if self._chain is None else self._chain.sign
        line, crc = encode(record, self._crc, self._durable, sign)
        if self._redactor.is_in(line):
            clean = EVENTS.validate_json(self._redactor.clean(event.model_dump_json()))
            record = record.model_copy(update={"event": clean})
            line, crc = encode(record, self._crc, self._durable, sign)
        self._crc = crc
        if self._chain is not None:
            self._chain = self._chain.after(line)
        # Counted only now: an event that cannot be encoded leaves no gap.
        self._seq = record.seq
        return record, line

    def _hand_over(self) -> None:
        """Give all queued records to the thread as one batch, unless none has to be written or it is writing one."""
        is_synced = bool(self._until_synced) or self._has_lingered
        if self._is_writing or not (is_synced or self._until_written):
            return
        batch = Batch(self._waiting, self._until_written, self._until_synced, is_synced, asyncio.get_running_loop())
        self._waiting, self._until_written, self._until_synced, self._has_lingered = [], [], [], False
        self._is_writing = True
        if not is_synced and isinstance(self._store, NoStore):
            self._write_here(batch)
            return
        if not self._thread.is_alive():
            self._thread.start()
        self._batches.put(batch)

    def _write_here(self, batch: Batch) -> None:
        """Write a batch that needs no sync: it takes a tenth of what handing it to the thread takes."""
        error: OSError | None = None
        try:
            self._write_all(batch.entries)
        except OSError as failed:
            error = failed
        self._written(batch, error)

    def _write_batches(self) -> None:
        """Write batches in the thread, until it gets None."""
        while (batch := self._batches.get()) is not None:
            error: OSError | None = OSError(0, "the writing thread ended")
            try:
                self._store.write(batch.entries, is_synced=batch.is_synced)
                if batch.entries:
                    self._write_all(batch.entries)
                if batch.is_synced:
                    if batch.until_written:
                        batch.loop.call_soon_threadsafe(_release, batch.until_written)
                    self._sync()
                error = None
            except OSError as failed:
                error = failed
            finally:
                # Also after another error, which ends the thread: no caller may wait for it then.
                batch.loop.call_soon_threadsafe(self._written, batch, error)

    def _written(self, batch: Batch, error: OSError | None) -> None:
        self._is_writing = False
        if error is not None:
            self._fail(error, batch)
            return
        if batch.entries:
            self._written_seq = batch.entries[-1][0].seq
        if batch.is_synced:
            self._durable = self._written_seq
            self._has_lingered = self._has_lingered and self._durable < self._seq
        _release(batch.until_written)
        _release(batch.until_synced)
        # After the waiting callers have continued: what they append now shares the next batch.
        batch.loop.call_soon(self._hand_over)
        with ExitStack() as calls:
            # Backwards, since the last one is called first. What one raises keeps no other from its record.
            for record, _ in reversed(batch.entries):
                for observe in reversed(self._observers):
                    calls.callback(observe, record)

    def _fail(self, error: OSError, batch: Batch) -> None:
        """Fail this batch, the next one, and all later appends."""
        self._failure = StorageError(
            f"the journal cannot be written ({error.strerror}); everything acknowledged so far is safe",
            hint="free space or fix the disk, then: explorer resume " + self._folder.parent.name,
        )
        for waiter in (*batch.until_written, *batch.until_synced, *self._until_written, *self._until_synced):
            if not waiter.done():
                waiter.set_exception(self._failure)
        self._waiting, self._until_written, self._until_synced = [], [], []

    def _write_all(self, batch: list[tuple[JournalRecord, bytes]]) -> None:
        content = memoryview(b"".join(line for _, line in batch))
        half = len(content) // 2
        self._on_checkpoint("before_write")
        self._write(content[:half])
        self._on_checkpoint("mid_write")
        self._write(content[half:])

    def _sync(self) -> None:
        self._on_checkpoint("before_sync")
        assert self._file is not None
        os.fdatasync(self._file.fileno())
        self._on_checkpoint("after_sync")

    def _write(self, content: memoryview) -> None:
        assert self._file is not None
        while content:
            content = content[self._file.write(content) :]

    @property
    def is_own(self) -> bool:
        """Whether every line so far has the user's mark, as those to come will have."""
        return self._chain is not None

    @property
    def last_seq(self) -> int:
        """The number of the last record that was queued, written or not."""
        return self._seq

    def finish_writing(self) -> None:
        """Wait until the thread has written its batches; nothing can be appended afterwards, and the lock is kept."""
        if self._lingering is not None:
            self._lingering.cancel()
        for waiter in (*self._until_written, *self._until_synced):
            waiter.cancel()
        self._until_written, self._until_synced, self._has_lingered = [], [], False
        if self._thread.is_alive():
            self._batches.put(None)
            self._thread.join()

    def close(self) -> None:
        """Finish writing, and release the lock."""
        self.finish_writing()
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._lock.is_locked:
            restore_access(self._folder.parent)
            with suppress(OSError):
                (self._folder / "holder").unlink(missing_ok=True)
            self._lock.release()


def _release(waiters: Iterable[asyncio.Future[None]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)


def _holder(folder: Path) -> str:
    with suppress(OSError):
        return (folder / "holder").read_text()
    return ""


def _sync_folder(folder: Path) -> None:
    """Make the folder's own entries durable, so that a new journal survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
