"""Commits of runs' journals: what several runs of a worker wait to write goes into one transaction.

Each write is conditional: it takes place only while the run is this worker's with this epoch. The run's row is locked
for it, so that a take-over comes before it or after it, and never in between.
"""

import errno
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from explorer.fleet.database import BATCHES, CONTENTS, ORDERS, RUNS, FleetDatabase
from explorer.fleet.database_trouble import DatabaseAwayError, translated
from explorer.fleet.leases import NO_LONGER_OURS, LeaseLostError
from explorer.fleet.run_contents import Content
from explorer.fleet.runs import QueueState
from explorer.schema.errors import StorageError

PATIENCE_S = 60.0
"""How long a write waits for a database that does not answer, such as one that is being restarted."""
PAUSE_S = 0.25


@dataclass
class RunBatch:
    """What one run adds. The committing thread sets `error`, `is_away` and `is_done`."""

    run_id: str
    epoch: int
    number: int = 0
    """Its number in the run; 0: contents only, before the batch that they belong to."""
    last_seq: int = 0
    lines: bytes = b""
    files: str = ""
    contents: Mapping[str, Content] = field(default_factory=dict[str, Content])
    orders: Sequence[str] = ()
    """Orders that the lines put on record."""
    error: OSError | None = None
    is_away: bool = False
    """Whether it was not written because the database did not answer."""
    is_done: bool = False


class GroupCommit:
    """Writes the batches of one worker; call it in the threads of journals, and `close` at the end."""

    def __init__(self, database: FleetDatabase, worker: str, patience_s: float = PATIENCE_S) -> None:
        self._database = database
        self._patience_s = patience_s
        self._statements = _Statements(worker, database.url.get_backend_name())
        self._connection: sa.Connection | None = None
        self._waiting: list[RunBatch] = []
        self._is_adding = threading.Lock()
        self._is_committing = threading.Lock()
        self._ended = threading.Event()

    def commit(self, batch: RunBatch) -> None:
        """Write a batch; on return it is safe.

        Raises:
            LeaseLostError: The run is another worker's; nothing was written.
            OSError: The database does not answer.
        """
        with self._is_adding:
            self._waiting.append(batch)
        # Whoever comes first commits for all that wait by then.
        with self._is_committing:
            if not batch.is_done:
                with self._is_adding:
                    group, self._waiting = self._waiting, []
                self._write(sorted(group, key=lambda one: one.run_id))
        if batch.error is not None:
            raise batch.error

    def stop_waiting(self) -> None:
        """Give up at once, from now on, where the database does not answer."""
        self._ended.set()

    def close(self) -> None:
        """Close the connection."""
        self._ended.set()
        with self._is_committing:
            self._disconnect()

    def _write(self, group: Sequence[RunBatch]) -> None:
        give_up_at = monotonic() + self._patience_s
        parts: Sequence[Sequence[RunBatch]] = [group]
        while True:
            try:
                for part in parts:
                    self._attempt([one for one in part if not one.is_done])
            except StorageError as error:
                # One by one from here on: what the database refuses of one run is nothing to the others.
                parts = [[one] for one in group]
                if monotonic() > give_up_at or self._ended.wait(PAUSE_S):
                    for one in group:
                        one.is_away = not one.is_done and isinstance(error, DatabaseAwayError)
                        one.error = one.error if one.is_done else OSError(errno.EIO, error.message)
                        one.is_done = True
                    return
            else:
                return

    def _attempt(self, group: Sequence[RunBatch]) -> None:
        """Write batches in one transaction.

        Raises:
            StorageError: The database does not answer, or refuses; it may have written them.
        """
        try:
            with translated(self._database.url, self._database.place):
                connection = self._connection = self._connection or self._database.engine.connect()
                with connection.begin():
                    refused = [one for one in group if not self._statements.write(connection, one)]
        except StorageError:
            self._disconnect()
            raise
        for one in group:
            one.error = LeaseLostError(errno.ESTALE, NO_LONGER_OURS) if one in refused else None
            one.is_done = True

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.invalidate()
            self._connection.close()
            self._connection = None


class _Statements:
    """The statements, made once."""

    def __init__(self, worker: str, backend: str) -> None:
        insert = sqlite.insert if backend == "sqlite" else postgresql.insert
        names = ("run_id", "number", "epoch", "last_seq", "lines", "files")
        values = [sa.bindparam(f"a_{name}", type_=BATCHES.c[name].type) for name in names]
        still = sa.and_(
            RUNS.c.run_id == sa.bindparam("a_run_id"),
            RUNS.c.worker == worker,
            RUNS.c.epoch == sa.bindparam("a_epoch"),
            RUNS.c.state == QueueState.RUNNING,
        )
        ours = sa.select(*values).where(still).with_for_update(read=True)
        adding = insert(BATCHES).from_select(names, ours).on_conflict_do_nothing()
        self._add = adding.execution_options(preserve_rowcount=True)
        self._is_ours = sa.select(RUNS.c.run_id).where(still).with_for_update(read=True)
        self._known = sa.select(BATCHES.c.epoch, BATCHES.c.last_seq).where(
            BATCHES.c.run_id == sa.bindparam("a_run_id"), BATCHES.c.number == sa.bindparam("a_number")
        )
        self._keep = insert(CONTENTS).on_conflict_do_nothing()
        self._done = sa.delete(ORDERS).where(ORDERS.c.order_id.in_(sa.bindparam("a_orders", expanding=True)))

    def write(self, connection: sa.Connection, batch: RunBatch) -> bool:
        """Write a batch; return whether the run is still this worker's."""
        if not self._may_write(connection, batch):
            return False
        if batch.contents:
            rows = [
                {"run_id": batch.run_id, "sha256": digest, "content": one.content, "place": one.place}
                for digest, one in batch.contents.items()
            ]
            connection.execute(self._keep, rows)
        if batch.orders:
            connection.execute(self._done, {"a_orders": list(batch.orders)})
        return True

    def _may_write(self, connection: sa.Connection, batch: RunBatch) -> bool:
        key = {"a_run_id": batch.run_id, "a_epoch": batch.epoch}
        if not batch.number:
            return connection.scalar(self._is_ours, key) is not None
        row = {"a_number": batch.number, "a_last_seq": batch.last_seq, "a_lines": batch.lines, "a_files": batch.files}
        if connection.execute(self._add, key | row).rowcount > 0:
            return True
        # It may have been written by an attempt of which no answer came; no other worker has this epoch.
        known = connection.execute(self._known, {"a_run_id": batch.run_id, "a_number": batch.number}).one_or_none()
        return known is not None and (known.epoch, known.last_seq) == (batch.epoch, batch.last_seq)
