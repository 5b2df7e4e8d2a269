"""The stores of a worker's runs: where their journals and files are, in a folder or in the fleet's database.

What the database does not take is not written here. A batch has the lines of the journal, and the files that are new
with them, in one transaction. So whatever the lines say of files is in the database, too, and a worker on another
machine finds both.
"""

import errno
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import Protocol

from explorer.fleet.database_trouble import DatabaseAwayError
from explorer.fleet.folder_changes import FILE_VERSIONS, FileVersion, FolderChanges
from explorer.fleet.group_commit import GroupCommit, RunBatch
from explorer.fleet.leases import NO_LONGER_OURS, SHARE_TRUSTED, LeaseLostError, Leases, TakenRun
from explorer.fleet.orders import applied_orders, forget_orders
from explorer.fleet.restore import Restorer
from explorer.fleet.run_contents import Content, ObjectStore, RunContents
from explorer.fleet.run_record import RunRecord, RunRecords
from explorer.fleet.store_choice import StoreKind
from explorer.journal.journal import JournalStore
from explorer.schema.errors import StorageError
from explorer.schema.events import JournalRecord, RunFinished, SessionConfigured, ToolFinished
from explorer.schema.tool import Effect


class RunStore(JournalStore, Protocol):
    """The store of one run that a worker has."""

    @property
    def is_away(self) -> bool:
        """Whether it took no more, because the database did not answer."""
        ...

    def flush(self) -> None:
        """Take what was written after the last record.

        Raises:
            StorageError: It cannot be taken.
        """
        ...


@dataclass
class Stores:
    """Opens the stores of one worker's runs. All methods block."""

    leases: Leases
    workspace: Path
    kind: StoreKind = StoreKind.LOCAL
    objects: ObjectStore | None = None

    @cached_property
    def _commits(self) -> GroupCommit:
        return GroupCommit(self.leases.database, self.leases.worker)

    def open(self, taken: TakenRun) -> RunStore:
        """Return the store of a run, after its folder was made what the store has of it.

        Raises:
            StorageError: The folder cannot be made.
        """
        if self.kind is StoreKind.LOCAL:
            return LeaseGuard(self.leases, taken)
        records = RunRecords(self.leases.database, self.objects)
        record = records.of(taken.run_id)
        Restorer(records, self.workspace).restore(record)
        return DatabaseStore(self._commits, taken, self.workspace / taken.run_id, record, self.objects)

    def stop_waiting(self) -> None:
        """Wait no longer for a database that does not answer."""
        if "_commits" in self.__dict__:
            self._commits.stop_waiting()

    def close(self) -> None:
        """Close what the stores share."""
        if "_commits" in self.__dict__:
            self._commits.close()


@dataclass
class LeaseGuard:
    """Lets the lines of a journal be written only while the run is this worker's.

    For some seconds after a heartbeat that is known. A worker that was frozen for longer asks the database first.
    """

    leases: Leases
    taken: TakenRun
    now: Callable[[], float] = monotonic
    is_away: bool = False
    """Whether lines were refused because the database did not answer."""

    def write(self, entries: Sequence[tuple[JournalRecord, bytes]], *, is_synced: bool) -> None:
        """Refuse the lines of a run that may be another worker's.

        Raises:
            LeaseLostError: It is, or the database does not say.
        """
        if self.now() - self.leases.heard_at < SHARE_TRUSTED * self.leases.lease_s:
            return
        try:
            is_ours = self.leases.has(self.taken)
        except StorageError as error:
            self.is_away = isinstance(error, DatabaseAwayError)
            raise LeaseLostError(errno.ESTALE, f"nothing proves that the run is still ours: {error.message}") from error
        if not is_ours:
            raise LeaseLostError(errno.ESTALE, NO_LONGER_OURS)
        forget_orders(self.leases.database, applied_orders(entries))

    def flush(self) -> None:
        """Do nothing: the files are in the folder."""


IN_PLACE = frozenset({Effect.JOB, Effect.EXTERNAL})
"""Effects of calls that may write into files, and not only replace them."""


@dataclass
class DatabaseStore:
    """Takes the lines of one run's journal. All methods block; `write` is called in the journal's thread."""

    commits: GroupCommit
    taken: TakenRun
    folder: Path
    record: RunRecord
    """What the database has of the run; the folder holds just that."""
    objects: ObjectStore | None = None
    is_away: bool = False
    """Whether the last write was given up because the database did not answer."""
    _effects: dict[str, str] = field(default_factory=dict[str, str])
    """The effect of each call that was started and not finished."""
    _has_commands: bool = False
    """Whether a command may still be at work, in the background."""

    def __post_init__(self) -> None:
        """Take over from the database which files it has."""
        self._files = FolderChanges(self.folder)
        for path in self.record.files:
            self._files.know(path)
        digests = set(self.record.digests)
        self._contents = RunContents(self.folder, self.taken.run_id, self._upload, self.objects, digests)
        self._known = dict(self.record.files)
        self._number, self._last_seq = self.record.number, self.record.last_seq

    def write(self, entries: Sequence[tuple[JournalRecord, bytes]], *, is_synced: bool) -> None:
        """Take lines, with the files that are new.

        Raises:
            LeaseLostError: The run is another worker's.
            OSError: The database does not answer, or has another journal of the run.
        """
        if entries and entries[0][0].seq != self._last_seq + 1:
            raise OSError(errno.ESTALE, f"the database has {self._last_seq} records of the run, and the folder others")
        self._add(entries, is_full=self._may_have_written_in_place(entries))

    def flush(self) -> None:
        """Take the files that were written since the last line.

        Raises:
            StorageError: The run is another worker's, or the database does not answer.
        """
        try:
            self._add((), is_full=True)
        except OSError as error:
            raise StorageError(f"the files of the run are not in the database: {error.strerror}") from error

    def _add(self, entries: Sequence[tuple[JournalRecord, bytes]], *, is_full: bool) -> None:
        versions = self._changed(is_full=is_full)
        if not entries and not versions:
            return
        last_seq = entries[-1][0].seq if entries else self._last_seq
        self._commit(
            RunBatch(
                self.taken.run_id,
                self.taken.epoch,
                self._number + 1,
                last_seq,
                b"".join(line for _, line in entries),
                FILE_VERSIONS.dump_json(versions, exclude_defaults=True).decode() if versions else "",
                self._contents.take_new(),
                applied_orders(entries),
            )
        )
        self._known |= {one.path: one for one in versions}
        self._number, self._last_seq = self._number + 1, last_seq

    def _changed(self, *, is_full: bool) -> tuple[FileVersion, ...]:
        changed, gone = self._files.look(is_full=is_full)
        found = [self._contents.version_of(path) for path in changed] + [FileVersion(path=path) for path in gone]
        return tuple(one for one in found if self._known.get(one.path, FileVersion(path=one.path)) != one)

    def _upload(self, contents: Mapping[str, Content]) -> None:
        self._commit(RunBatch(self.taken.run_id, self.taken.epoch, contents=contents))

    def _commit(self, batch: RunBatch) -> None:
        try:
            self.commits.commit(batch)
        finally:
            self.is_away = batch.is_away

    def _may_have_written_in_place(self, entries: Sequence[tuple[JournalRecord, bytes]]) -> bool:
        is_full = False
        for record, _ in entries:
            event = record.event
            if event.type == "tool_started" and event.effect in IN_PLACE:
                self._effects[event.call] = event.effect
                self._has_commands = self._has_commands or event.effect == Effect.JOB
            elif isinstance(event, ToolFinished):
                is_full = is_full or self._effects.pop(event.call, "") in IN_PLACE or self._has_commands
            elif isinstance(event, RunFinished | SessionConfigured):
                is_full = True
        return is_full
