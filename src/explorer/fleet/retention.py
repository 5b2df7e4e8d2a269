"""Removes what ended long ago: rows of the queue, journals and files in the database, and large files elsewhere."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa

from explorer.fleet.database import BATCHES, CONTENTS, HELD, INPUTS, ORDERS, RUNS
from explorer.fleet.run_contents import ObjectStore
from explorer.fleet.runs import FleetQueue, QueueState
from explorer.schema.errors import StorageError

ENDED = frozenset({QueueState.DONE, QueueState.CANCELLED})
"""What is removed by itself."""
STUCK = frozenset({QueueState.FAILED, QueueState.PARKED, QueueState.UNDECIDED})
"""What `retry` or a decision would continue: removed only where that was asked for."""
RUNS_AT_ONCE = 100
"""The runs of one transaction: a lock is held for a moment, and an interruption undoes little."""


@dataclass(frozen=True)
class Pruned:
    """What was removed, or would be."""

    runs: int
    journal_bytes: int
    file_bytes: int
    """Bytes of files in the database; without those in an object store."""
    entries: int = 0
    """Entries of the queue's own library."""
    kept_runs: int = 0
    """Runs whose large files are in an object store that is not set up here: they are left alone."""


@dataclass(frozen=True)
class Retention:
    """What may be removed. All methods block."""

    queue: FleetQueue
    older_than_s: float
    """Seconds since a run ended, by the database's clock."""
    states: Collection[QueueState] = ENDED
    tenant: str | None = None
    objects: ObjectStore | None = None

    def look(self) -> Pruned:
        """Return what `prune` would remove; it changes nothing.

        Raises:
            StorageError: The database does not answer.
        """
        return self._count(self._old())

    def prune(self) -> Pruned:
        """Remove the runs, some in each transaction; what is interrupted goes on when it is called again.

        Raises:
            StorageError: The database or the object store does not answer.
        """
        kept: set[str] = set()
        runs = journal_bytes = file_bytes = 0
        while found := [one for one in self._old() if one not in kept]:
            chosen = found[:RUNS_AT_ONCE]
            if self.objects is None:
                kept |= self._with_objects(chosen)
                chosen = [one for one in chosen if one not in kept]
            counted = self._count(chosen)
            runs += self._remove(chosen)
            journal_bytes += counted.journal_bytes
            file_bytes += counted.file_bytes
        return Pruned(runs, journal_bytes, file_bytes, self._remove_entries(), len(kept))

    def _old(self) -> list[str]:
        """Return the runs that may be removed, the oldest first."""
        chosen = sa.select(RUNS.c.run_id).where(self._is_old()).order_by(RUNS.c.ended_at)
        with self.queue.database.transaction() as connection:
            return list(connection.scalars(chosen))

    def _is_old(self) -> sa.ColumnElement[bool]:
        is_old = sa.and_(
            RUNS.c.state.in_(list(self.states)), RUNS.c.ended_at < self.queue.database.now - self.older_than_s
        )
        return is_old if self.tenant is None else sa.and_(is_old, RUNS.c.tenant == self.tenant)

    def _count(self, runs: Collection[str]) -> Pruned:
        lines = sa.select(sa.func.coalesce(sa.func.sum(sa.func.length(BATCHES.c.lines)), 0))
        files = sa.select(sa.func.coalesce(sa.func.sum(sa.func.length(CONTENTS.c.content)), 0))
        with self.queue.database.transaction() as connection:
            return Pruned(
                len(runs),
                int(connection.scalar(lines.where(BATCHES.c.run_id.in_(list(runs)))) or 0),
                int(connection.scalar(files.where(CONTENTS.c.run_id.in_(list(runs)))) or 0),
            )

    def _with_objects(self, runs: Collection[str]) -> set[str]:
        """Return the runs that have files in an object store."""
        chosen = sa.select(CONTENTS.c.run_id).where(CONTENTS.c.run_id.in_(list(runs)), CONTENTS.c.place != "")
        with self.queue.database.transaction() as connection:
            return set(connection.scalars(chosen))

    def _remove(self, runs: Collection[str]) -> int:
        """Remove runs that may still be removed, with all that is theirs; return how many."""
        again = sa.delete(RUNS).where(RUNS.c.run_id.in_(list(runs)), self._is_old()).returning(RUNS.c.run_id)
        with self.queue.database.transaction() as connection:
            # One that was put back into the queue meanwhile stays, with all that it has.
            removed = list(connection.scalars(again))
            places = sa.select(CONTENTS.c.place).where(CONTENTS.c.run_id.in_(removed), CONTENTS.c.place != "")
            # Before the end of the transaction: their names are nowhere else, and a failure leaves the rows.
            self._remove_objects(connection.scalars(places))
            for table in (BATCHES, CONTENTS, ORDERS, INPUTS, HELD):
                connection.execute(sa.delete(table).where(table.c.run_id.in_(removed)))
        return len(removed)

    def _remove_objects(self, places: Iterable[str]) -> None:
        try:
            for place in places:
                if self.objects is not None:
                    self.objects.remove(place)
        except OSError as error:
            raise StorageError(f"{error.strerror}", hint="the runs are still there; try again") from error

    def _remove_entries(self) -> int:
        """Remove what the queue's library keeps of runs that it handed out long ago; return how many entries."""
        if self.tenant is not None:
            return 0
        until = datetime.fromtimestamp(self.queue.now() - self.older_than_s, UTC).isoformat()
        return self.queue.forget_ended(until)
