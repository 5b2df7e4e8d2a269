"""The stores of a worker's runs: where their journals and files are, in a folder or in the database."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from explorer.fleet.database_store import DatabaseStore
from explorer.fleet.group_commit import GroupCommit
from explorer.fleet.lease_guard import LeaseGuard
from explorer.fleet.leases import Leases, TakenRun
from explorer.fleet.restore import Restorer
from explorer.fleet.run_contents import ObjectStore
from explorer.fleet.run_record import RunRecords
from explorer.fleet.store_choice import StoreKind
from explorer.journal.journal import JournalStore


class RunStore(JournalStore, Protocol):
    """The store of one run that a worker has."""

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
