"""Runs of the fleet for commands that look at runs, on a machine where no worker may have them.

A run is found in the database by its id; a copy of it is made on this machine, and refreshed.

While the run is at work anywhere, the copy's lock is held, as that of a run at work here: so whatever looks at the
folder sees that it is running. Orders that are left in the copy go to the database, and from there to the run's worker.
"""

import fcntl
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from filelock import FileLock
from loguru import logger

from explorer.fleet.database import BATCHES, RUNS, FleetDatabase
from explorer.fleet.orders import leave_order
from explorer.fleet.restore import Restorer, bring_up_to_date
from explorer.fleet.run_record import RunRecord, RunRecords
from explorer.fleet.store_choice import StoreKind, store_of
from explorer.fleet.submission import may_name_run
from explorer.journal.control import Inbox
from explorer.schema.errors import ConfigError, NotFoundError, StorageError
from explorer.workspace.access import ENGINE_FOLDER
from explorer.workspace.safe_open import FILE_MODE, make_private_folder

LOOK_EVERY_S = 0.5
AT_WORK = frozenset({"running", "waiting"})
"""States of a run that goes on: one that waits was begun before, and its next worker resumes it."""


class RunCopy:
    """A copy of one run. Use `open`, and `close` at the end; all methods block."""

    def __init__(self, database: FleetDatabase, records: RunRecords, copies: Path, run_id: str) -> None:
        self._database = database
        self._records = records
        self._record = RunRecord(run_id)
        self._copies = copies
        self._restorer = Restorer(records, copies, keeps_rest=False)
        self._refreshing = FileLock(copies / f"{run_id}.lock", mode=FILE_MODE)
        self._lock: int | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def folder(self) -> Path:
        """The folder of the copy."""
        return self._copies / self._record.run_id

    def open(self) -> Path:
        """Make the copy, or bring it up to date, and keep it so while the run is at work; return its folder.

        It may be called again later, for a run that is at work once more.

        Raises:
            NotFoundError: The run has not begun.
            StorageError: The database does not answer, or the disk refused.
        """
        if self._thread is not None and self._thread.is_alive():
            return self.folder
        make_private_folder(self._copies)
        is_at_work = self._refresh()
        if not self._record.number:
            found = find_in_fleet(self._database, self._record.run_id)
            words, hint = (found.words, found.next_step) if found is not None else ("not in the queue", "")
            raise NotFoundError(f"run {self._record.run_id} is {words}; nothing of it is on record yet", hint=hint)
        if is_at_work:
            self._take_lock()
            # Once more, with the lock: what came in between is there before anybody looks.
            self._refresh()
            name = f"copy of {self._record.run_id}"
            self._thread = threading.Thread(target=self._follow, name=name, daemon=True)
            self._thread.start()
        return self.folder

    def close(self) -> None:
        """End following the run, and pass on the orders that were left last."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        if self._lock is not None:
            with suppress(StorageError):
                self._pass_on_orders()
        self._release_lock()

    def _follow(self) -> None:
        """Keep the copy current until the run is no longer at work, or nobody looks any more."""
        is_at_work = True
        while is_at_work and not self._ended.wait(LOOK_EVERY_S):
            try:
                self._pass_on_orders()
                is_at_work = self._refresh()
            except StorageError as error:
                logger.warning("{}", error.message)
        if not is_at_work:
            self._release_lock()

    def _refresh(self) -> bool:
        """Bring the copy up to date; return whether the run was at work before that."""
        with self._database.transaction() as connection:
            state = connection.scalar(sa.select(RUNS.c.state).where(RUNS.c.run_id == self._record.run_id))
        before = self._record.number
        with self._refreshing:
            versions = self._records.catch_up(self._record)
            if self._record.number == before:
                pass
            elif before or (self.folder / ENGINE_FOLDER).is_dir():
                bring_up_to_date(self._records, self.folder, self._record, versions if before else None)
            else:
                self._restorer.restore(self._record)
        return state in AT_WORK

    def _pass_on_orders(self) -> None:
        inbox = Inbox(self.folder / ENGINE_FOLDER)
        for order in inbox.waiting():
            leave_order(self._database, self._record.run_id, order)
            inbox.done(order)

    def _take_lock(self) -> None:
        """Share the lock of the folder with others that look: a process that asks for it alone does not get it."""
        path = self.folder / ENGINE_FOLDER / "lock"
        self._lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
        fcntl.flock(self._lock, fcntl.LOCK_SH)

    def _release_lock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


MAX_LISTED = 200
"""The number of runs of a list, the newest: each one's journal is read for it."""


@dataclass(frozen=True)
class RunElsewhere:
    """A run of the queue."""

    run_id: str
    state: str
    worker: str
    store: StoreKind
    reason: str = ""

    @property
    def words(self) -> str:
        """Its state, with the reason: `failed (no key is set)`."""
        return f"{self.state} ({self.reason})" if self.reason else self.state

    @property
    def next_step(self) -> str:
        """What to do, so that a worker continues it; empty where one has it, or it is done."""
        steps = {
            "waiting": "a worker takes it; see whether one runs: explorer fleet status",
            "undecided": f"explorer resume {self.run_id} --plan approve",
            **dict.fromkeys(("failed", "parked", "cancelled"), f"try it again: explorer queue retry {self.run_id}"),
        }
        return steps.get(self.state, "")


def find_in_fleet(database: FleetDatabase, name: str) -> RunElsewhere | None:
    """Return a run by its id or the beginning of it; None when the fleet has none.

    Raises:
        ConfigError: Several begin so.
        StorageError: The database does not answer.
    """
    if not may_name_run(name):
        return None
    chosen = sa.select(RUNS.c.run_id, RUNS.c.state, RUNS.c.worker, RUNS.c.reason).limit(2)
    with database.transaction() as connection:
        found = connection.execute(
            chosen.where(RUNS.c.run_id.startswith(name, autoescape=True)).order_by(RUNS.c.run_id)
        ).all()
    if not found:
        return None
    if len(found) > 1 and found[0].run_id != name:
        raise ConfigError(f"{name!r} fits several runs of the fleet", hint="give more of the id: explorer queue --all")
    return RunElsewhere(found[0].run_id, found[0].state, found[0].worker, store_of(database), found[0].reason)


def newest_on_record(database: FleetDatabase, limit: int = MAX_LISTED) -> Sequence[RunElsewhere]:
    """Return the latest runs whose journals are in the database, oldest first.

    Raises:
        StorageError: The database does not answer.
    """
    is_begun = sa.exists().where(BATCHES.c.run_id == RUNS.c.run_id)
    chosen = sa.select(RUNS.c.run_id, RUNS.c.state, RUNS.c.worker).where(is_begun)
    with database.transaction() as connection:
        found = connection.execute(chosen.order_by(RUNS.c.run_id.desc()).limit(limit)).all()
    return [RunElsewhere(row.run_id, row.state, row.worker, StoreKind.DATABASE) for row in reversed(found)]
