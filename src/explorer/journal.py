"""The journal: one append-only file of records in one total order, the only truth about a run.

A line is `{"v":1,"seq":17,"at":"...","agent":"...","type":"...", ..., "prev":"<crc32>","crc":"<crc32>"}`:
`prev` is the `crc` of the line before, `crc` covers the line up to itself. So neither a flipped bit nor a
missing or foreign line is ever taken for a record, the last line included.

`append` returns when the record is on disk (write + fdatasync). Appends that come while a sync is running wait
for the next one together: one sync for all of them.
"""

import asyncio
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock, Timeout
from pydantic import TypeAdapter, ValidationError

from explorer.errors import JournalDamagedError, RunLockedError, StorageError
from explorer.events import JOURNAL_VERSION, AnyEvent, Record, Repaired
from explorer.messages import JsonObject

GENESIS = "00000000"
"""`prev` of the first line."""
CRC_TAIL = re.compile(rb',"crc":"([0-9a-f]{8})"\}$')
ENVELOPE = ("v", "seq", "at", "prev", "crc")

Observe = Callable[[Record], None]
Upcaster = Callable[[JsonObject], JsonObject]

UPCASTERS: dict[int, Upcaster] = {}
"""By version: a pure function from a record's fields in that version to those in the next."""

_EVENTS: TypeAdapter[AnyEvent] = TypeAdapter(AnyEvent)


@dataclass(frozen=True)
class Scan:
    """What reading a journal file found."""

    records: tuple[Record, ...]
    last_crc: str
    good_bytes: int
    """Length of the valid head; what follows is a torn tail."""
    torn: bytes
    """The torn tail, empty in a clean journal."""


def encode(record: Record, prev: str) -> tuple[bytes, str]:
    """A record's line, with its newline, and its crc."""
    fields = {"v": record.v, "seq": record.seq, "at": record.at.isoformat()}
    fields |= record.event.model_dump(mode="json")
    fields["prev"] = prev
    head = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")[:-1]
    crc = f"{zlib.crc32(head):08x}"
    return head + b',"crc":"' + crc.encode() + b'"}\n', crc


def scan(content: bytes) -> Scan:
    """Read a journal's bytes.

    Raises:
        JournalDamagedError: A valid record stands after a damaged one, or the journal is of a newer version.
    """
    records: list[Record] = []
    last_crc, position = GENESIS, 0
    while position < len(content):
        end = content.find(b"\n", position)
        line = content[position : end if end >= 0 else len(content)]
        record = _decode(line, last_crc, len(records) + 1) if end >= 0 else None
        if record is None:
            _refuse_if_valid_records_follow(content[position:], len(records) + 1)
            return Scan(tuple(records), last_crc, position, content[position:])
        records.append(record)
        last_crc = _crc_of(line) or GENESIS
        position = end + 1
    return Scan(tuple(records), last_crc, position, b"")


def _crc_of(line: bytes) -> str | None:
    """The line's crc when it is the right one."""
    found = CRC_TAIL.search(line)
    if found is None or f"{zlib.crc32(line[: found.start()]):08x}".encode() != found[1]:
        return None
    return found[1].decode()


def _decode(line: bytes, prev: str, seq: int) -> Record | None:
    """The record of a line, or None when the line is not what was written after `prev`."""
    if _crc_of(line) is None:
        return None
    fields: JsonObject = json.loads(line)
    if fields["prev"] != prev or fields["seq"] != seq:
        return None
    version: int = fields["v"]
    if version > JOURNAL_VERSION:
        raise JournalDamagedError(
            f"record {seq} has version {version}; this explorer reads up to {JOURNAL_VERSION}",
            hint="update explorer: pip install -U explorer",
        )
    while version < JOURNAL_VERSION:
        fields = UPCASTERS[version](fields)
        version += 1
    body = {key: value for key, value in fields.items() if key not in ENVELOPE}
    try:
        event = _EVENTS.validate_python(body)
    except ValidationError as error:
        raise JournalDamagedError(f"record {seq} is intact but not understood: {error}") from error
    return Record(v=version, seq=seq, at=datetime.fromisoformat(fields["at"]), event=event)


def _refuse_if_valid_records_follow(tail: bytes, seq: int) -> None:
    """A torn tail may be cut off; a hole before intact records may not."""
    for line in tail.split(b"\n")[1:]:
        if _crc_of(line) is not None:
            raise JournalDamagedError(
                f"the journal is damaged at record {seq} (line {seq}), and intact records follow it",
                hint="restore the journal from a copy; explorer does not guess what was lost",
            )


def read(path: Path) -> tuple[Record, ...]:
    """All records of a journal, without lock or repair: for looking at a run, a running one too."""
    try:
        return scan(path.read_bytes()).records
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error


class Journal:
    """The one writer of a run's journal. Use `Journal.open`, and `close` at the end."""

    def __init__(self, folder: Path, now: Callable[[], datetime], observers: Iterable[Observe]) -> None:
        self._folder = folder
        self._now = now
        self._observers = tuple(observers)
        # A moment of patience: someone may be looking whether the run is running.
        self._lock = FileLock(folder / "lock", timeout=0.3)
        # One thread: batches reach the file in the order of handing over, whatever is cancelled meanwhile.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._waiting: list[tuple[Record, bytes]] = []
        self._writing: asyncio.Future[None] | None = None
        self._failure: StorageError | None = None
        self._seq = self._durable = 0
        self._crc = GENESIS
        self._file: BinaryIO | None = None
        self.records: tuple[Record, ...] = ()
        """What was there at opening, a repair included."""

    @classmethod
    def open(cls, folder: Path, now: Callable[[], datetime], observers: Iterable[Observe] = ()) -> "Journal":
        """Take the lock, scan, cut off a torn tail.

        Args:
            folder: The run's `.explorer` folder.
            now: The clock for records' times (aware).
            observers: Called with each record once it is durable, in order.

        Raises:
            RunLockedError: Another process works on the run.
            JournalDamagedError: Damage that cannot be repaired without guessing.
            StorageError: The folder cannot be written.
        """
        journal = cls(folder, now, observers)
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
                hint="wait for it to end, or stop it: kill -INT " + (holder or "<pid>"),
            ) from error
        except OSError as error:
            raise StorageError(f"cannot write {self._folder}: {error.strerror}") from error

    def _load(self) -> None:
        path = self._folder / "journal.jsonl"
        try:
            (self._folder / "holder").write_text(str(os.getpid()))
            self._file = path.open("ab", buffering=0)
            found = scan(path.read_bytes())
            if found.torn:
                (self._folder / "journal.torn").write_bytes(found.torn)
                self._file.truncate(found.good_bytes)
            self.records = found.records
            self._seq = self._durable = len(found.records)
            self._crc = found.last_crc
            if found.torn:
                record, line = self._seal(Repaired(cut_bytes=len(found.torn)))
                self._write_all([(record, line)])
                self._durable = record.seq
                self.records = (*found.records, record)
            _sync_folder(self._folder)
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror}") from error

    async def append(self, event: AnyEvent) -> Record:
        """Put an event on disk and return its record.

        Raises:
            StorageError: The disk refused; this and all later appends fail, what was acknowledged is intact.
        """
        if self._failure is not None:
            raise self._failure
        entry = self._seal(event)
        self._waiting.append(entry)
        record = entry[0]
        while self._durable < record.seq:
            if self._failure is not None:
                raise self._failure
            if self._writing is None:
                self._hand_over()
            assert self._writing is not None
            # `wait` does not cancel what it waits for: a cancelled agent leaves a whole record behind.
            await asyncio.wait([self._writing])
        return record

    def _seal(self, event: AnyEvent) -> tuple[Record, bytes]:
        self._seq += 1
        record = Record(v=JOURNAL_VERSION, seq=self._seq, at=self._now(), event=event)
        line, self._crc = encode(record, self._crc)
        return record, line

    def _hand_over(self) -> None:
        batch, self._waiting = self._waiting, []
        loop = asyncio.get_running_loop()
        self._writing = loop.run_in_executor(self._thread, self._write_all, batch)
        self._writing.add_done_callback(lambda done: self._written(done, batch))

    def _written(self, done: "asyncio.Future[None]", batch: list[tuple[Record, bytes]]) -> None:
        self._writing = None
        error = None if done.cancelled() else done.exception()
        if isinstance(error, OSError):
            self._failure = StorageError(
                f"the journal cannot be written ({error.strerror}); everything acknowledged so far is safe",
                hint="free space or mend the disk, then: explorer resume " + self._folder.parent.name,
            )
            return
        if error is not None:
            raise error
        self._durable = batch[-1][0].seq
        for record, _ in batch:
            for observe in self._observers:
                observe(record)

    def _write_all(self, batch: list[tuple[Record, bytes]]) -> None:
        assert self._file is not None
        content = memoryview(b"".join(line for _, line in batch))
        while content:
            content = content[self._file.write(content) :]
        os.fdatasync(self._file.fileno())

    def close(self) -> None:
        """Finish what was handed over and give the lock back."""
        self._thread.shutdown(wait=True)
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._lock.is_locked:
            (self._folder / "holder").unlink(missing_ok=True)
            self._lock.release()


def _holder(folder: Path) -> str:
    try:
        return (folder / "holder").read_text()
    except OSError:
        return ""


def _sync_folder(folder: Path) -> None:
    """Make the folder's own entries durable, so that a new journal survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
