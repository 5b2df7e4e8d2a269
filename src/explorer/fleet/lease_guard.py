"""The store of a run that is in a folder alone: it keeps nothing, and refuses the lines of a run that was lost."""

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic

from explorer.fleet.leases import NO_LONGER_OURS, SHARE_TRUSTED, LeaseLostError, Leases, TakenRun
from explorer.fleet.orders import applied_orders, forget_orders
from explorer.schema.errors import StorageError
from explorer.schema.events import JournalRecord


@dataclass(frozen=True)
class LeaseGuard:
    """Lets the lines of a journal be written only while the run is this worker's.

    For some seconds after a heartbeat that is known. A worker that was frozen for longer asks the database first.
    """

    leases: Leases
    taken: TakenRun
    now: Callable[[], float] = monotonic

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
            raise LeaseLostError(errno.ESTALE, f"nothing proves that the run is still ours: {error.message}") from error
        if not is_ours:
            raise LeaseLostError(errno.ESTALE, NO_LONGER_OURS)
        forget_orders(self.leases.database, applied_orders(entries))

    def flush(self) -> None:
        """Do nothing: the files are in the folder."""
