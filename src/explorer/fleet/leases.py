"""Which worker may work on which run: taken, kept by heartbeats, given back, and taken over from the dead.

A worker's lease ends when it was not heard of for `lease_s`. Each change of hands is one conditional statement, so
that of two who want a run one gets it; the epoch in each says which taking it was.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from explorer.fleet.database import INPUTS, META, ORDERS, RUNS, WORKERS, FleetDatabase
from explorer.fleet.dead_holdings import presume_spent
from explorer.fleet.runs import PAUSED, FleetQueue, QueueState, Wanted

MAX_DEATHS = 3
"""The number of workers that may die with a run before it is parked."""
PARKED = "{count} workers died while they had it; if it was not its fault, try again: explorer queue retry"
FORGOTTEN = 20
"""A worker that was not heard of for so many leases is taken off the list."""
LOST_LEASES = 3
"""A run that waits for longer than so many leases is looked up in the queue."""
MAX_CHECKED = 100
NO_LONGER_OURS = "another worker has the run now"
SHARE_TRUSTED = 0.5
"""Share of a lease after a heartbeat for which a worker need not ask whether it still has its runs."""


class LeaseLostError(OSError):
    """The run is another worker's now: nothing more of it may be written here."""


@dataclass(frozen=True)
class TakenRun:
    """A run that a worker has taken."""

    run_id: str
    epoch: int
    question: str
    settings: str
    """JSON."""
    tenant: str = ""
    models: str = ""
    """What was submitted of models: runs with the same use the same keys."""


@dataclass(frozen=True)
class Ending:
    """How the work on a run ended, for its row."""

    state: QueueState
    status: str = ""
    reason: str = ""
    cost_usd: float | None = None


@dataclass
class Leases:
    """The leases of one worker. All methods block: call them in a thread."""

    queue: FleetQueue
    worker: str
    lease_s: float
    heard_at: float = field(default_factory=time.monotonic)
    """When the database last confirmed that this worker is alive, by this machine's clock, before it was asked."""
    _entry: dict[str, str | int | float] = field(default_factory=dict[str, str | int | float])
    """What the list of workers says of it; empty before it entered, and when it has left."""

    @property
    def database(self) -> FleetDatabase:
        """The fleet's database."""
        return self.queue.database

    def enter(self, host: str, process: int, concurrency: int) -> None:
        """Add the worker to the fleet."""
        self.queue.prepare()
        row = {"worker": self.worker, "host": host, "process": process, "concurrency": concurrency}
        self._entry = {**row, "lease_s": self.lease_s}
        with self.database.transaction() as connection:
            self._list(connection)
        self.heard_at = time.monotonic()

    def _list(self, connection: sa.Connection) -> None:
        now = self.database.now
        connection.execute(sa.insert(WORKERS).values(**self._entry, started_at=now, seen_at=now))

    def leave(self) -> None:
        """Take the worker out of the fleet."""
        self._entry = {}
        with self.database.transaction() as connection:
            connection.execute(sa.delete(WORKERS).where(WORKERS.c.worker == self.worker))

    def renew(self) -> dict[str, tuple[int, Wanted]]:
        """Say that the worker is alive; return the epochs of its runs and what is wanted of each."""
        asked_at = time.monotonic()
        mine = sa.select(RUNS.c.run_id, RUNS.c.epoch, RUNS.c.wanted)
        mine = mine.where(RUNS.c.worker == self.worker, RUNS.c.state == QueueState.RUNNING)
        with self.database.transaction() as connection:
            seen = sa.update(WORKERS).where(WORKERS.c.worker == self.worker).values(seen_at=self.database.now)
            if not connection.execute(seen).rowcount and self._entry:
                # It was taken off the list, such as when its machine had slept: else its runs would be taken for ever.
                self._list(connection)
            found = {row.run_id: (row.epoch, Wanted(row.wanted)) for row in connection.execute(mine)}
        self.heard_at = asked_at
        return found

    def take(self, run_id: str) -> TakenRun | None:
        """Take a waiting run; None when it does not wait, or no run may be taken now."""
        with self.database.transaction() as connection:
            return self.take_within(connection, run_id)

    def take_within(self, connection: sa.Connection, run_id: str) -> TakenRun | None:
        """Take a waiting run, together with the other changes of a transaction."""
        is_paused = sa.exists().where(META.c.name == PAUSED)
        taken = (
            sa.update(RUNS)
            .where(RUNS.c.run_id == run_id, RUNS.c.state == QueueState.WAITING, ~is_paused)
            .values(
                state=QueueState.RUNNING,
                worker=self.worker,
                epoch=RUNS.c.epoch + 1,
                started_at=sa.func.coalesce(RUNS.c.started_at, self.database.now),
            )
            .returning(RUNS.c.run_id, RUNS.c.epoch, RUNS.c.question, RUNS.c.settings, RUNS.c.tenant, RUNS.c.models)
        )
        row = connection.execute(taken).one_or_none()
        return TakenRun(**row._mapping) if row is not None else None  # noqa: SLF001 - its public name

    def is_waiting(self, run_id: str) -> bool:
        """Return whether a run waits for a worker, so that it can be taken when the fleet is no longer paused."""
        with self.database.transaction() as connection:
            return connection.scalar(sa.select(RUNS.c.state).where(RUNS.c.run_id == run_id)) == QueueState.WAITING

    def has(self, taken: TakenRun) -> bool:
        """Return whether a run is still this worker's."""
        kept = sa.select(RUNS.c.run_id).where(*self._still(taken))
        with self.database.transaction() as connection:
            return connection.scalar(kept) is not None

    def settle(
        self, taken: TakenRun, ending: Ending, within: Callable[[sa.Connection], None] = lambda _connection: None
    ) -> bool:
        """Record how the work ended, and what else belongs to it; return whether the run was still this worker's."""
        values: dict[str, object] = {"state": ending.state, "status": ending.status, "reason": ending.reason}
        values |= {} if ending.cost_usd is None else {"cost_usd": ending.cost_usd}
        settled = sa.update(RUNS).where(*self._still(taken)).returning(RUNS.c.priority)
        settled = settled.values(**values, worker="", wanted=Wanted.NOTHING, deaths=0, ended_at=self.database.now)
        with self.database.transaction() as connection:
            row = connection.execute(settled).one_or_none()
            if row is not None:
                within(connection)
            if row is not None and ending.state is QueueState.WAITING:
                workflow = self.queue.enqueue(connection, taken.run_id, row.priority)
                back = sa.update(RUNS).where(RUNS.c.run_id == taken.run_id)
                connection.execute(back.values(workflow=workflow, queued_at=self.database.now, ended_at=None))
            elif row is not None:
                # Later sessions must not obey words that were meant for this one.
                connection.execute(sa.delete(ORDERS).where(ORDERS.c.run_id == taken.run_id))
            if row is not None and ending.state is QueueState.DONE:
                # The run has them in its folder.
                connection.execute(sa.delete(INPUTS).where(INPUTS.c.run_id == taken.run_id))
            return row is not None

    def _still(self, taken: TakenRun) -> Sequence[sa.ColumnElement[bool]]:
        return (
            RUNS.c.run_id == taken.run_id,
            RUNS.c.worker == self.worker,
            RUNS.c.epoch == taken.epoch,
            RUNS.c.state == QueueState.RUNNING,
        )

    def take_from_dead(self) -> list[str]:
        """Put the runs of dead workers back into the queue; cancel or park those for which that is due.

        Returns:
            The ids under which the queue had handed them to the dead workers.
        """
        now = self.database.now
        long_s = FORGOTTEN * WORKERS.c.lease_s
        dead = sa.select(WORKERS.c.worker).where(WORKERS.c.seen_at < now - WORKERS.c.lease_s)
        known = sa.select(WORKERS.c.worker)
        theirs = sa.select(RUNS).where(
            RUNS.c.state == QueueState.RUNNING, RUNS.c.worker.in_(dead) | RUNS.c.worker.not_in(known)
        )
        with self.database.transaction() as connection:
            # First of all a change: so that of two workers on one file the second waits for the first.
            # Who was heard of far in the future was so by a clock that was ahead: whoever lives says so again.
            connection.execute(sa.delete(WORKERS).where(~WORKERS.c.seen_at.between(now - long_s, now + long_s)))
            found = connection.execute(theirs.with_for_update(skip_locked=True)).all()
            for row in found:
                self._put_back(connection, row)
            presume_spent(connection, [row.run_id for row in found])
        return [row.workflow for row in found]

    def _put_back(self, connection: sa.Connection, row: sa.Row[Any]) -> None:
        deaths, now = row.deaths + 1, self.database.now
        values: dict[str, object] = {"worker": "", "wanted": Wanted.NOTHING, "deaths": deaths}
        if row.wanted == Wanted.CANCEL:
            values |= {"state": QueueState.CANCELLED, "ended_at": now}
        elif deaths >= MAX_DEATHS:
            values |= {"state": QueueState.PARKED, "ended_at": now, "reason": PARKED.format(count=deaths)}
        else:
            workflow = self.queue.enqueue(connection, row.run_id, row.priority)
            values |= {"state": QueueState.WAITING, "queued_at": now, "workflow": workflow}
        connection.execute(sa.update(RUNS).where(RUNS.c.run_id == row.run_id).values(**values))

    def hand_out_again(self) -> int:
        """Hand out once more what the queue gave to a worker that died before taking it; return how many.

        Taking is what puts a run on the list of its worker, so such a run waits, and nothing will take it.
        """
        now = self.database.now
        old = (
            sa.select(RUNS.c.run_id, RUNS.c.workflow)
            .where(
                RUNS.c.state == QueueState.WAITING,
                RUNS.c.queued_at < now - LOST_LEASES * self.lease_s,
                ~sa.exists().where(META.c.name == PAUSED),
            )
            .order_by(RUNS.c.queued_at)
            .limit(MAX_CHECKED)
        )
        with self.database.transaction() as connection:
            workflows = {row.workflow: row.run_id for row in connection.execute(old)}
        lost = workflows.keys() - self.queue.still_queued(workflows)
        for workflow in lost:
            self._hand_out(workflows[workflow], workflow)
        return len(lost)

    def return_unstarted(self, run_id: str) -> None:
        """Hand a run out again that this worker was given and could not take before its end."""
        with self.database.transaction() as connection:
            workflow = connection.scalar(sa.select(RUNS.c.workflow).where(RUNS.c.run_id == run_id))
        self._hand_out(run_id, str(workflow))

    def _hand_out(self, run_id: str, workflow: str) -> None:
        """Hand a waiting run out again, unless that has happened since."""
        same = (RUNS.c.run_id == run_id, RUNS.c.state == QueueState.WAITING, RUNS.c.workflow == workflow)
        waiting = sa.update(RUNS).where(*same).values(queued_at=self.database.now).returning(RUNS.c.priority)
        with self.database.transaction() as connection:
            found = connection.execute(waiting).one_or_none()
            if found is not None:
                self.queue.hand_out(connection, run_id, found.priority)
