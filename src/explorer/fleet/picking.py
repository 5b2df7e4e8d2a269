"""Which waiting run is taken next: fair between tenants, by priority within one, and none that limits hold back.

The workflow engine says when a worker may take one more run, and brings the run that it would take itself. Which one is
taken is decided here, because the engine knows neither shares nor limits: with its partitions, each tenant would need
limits of its own, and a free worker would stay idle. The two runs change places in the engine's queue.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from explorer.fleet.database import HELD, LIMITS, RATES, RUNS, SHARES, SPENDING, TENANTS, FleetDatabase
from explorer.fleet.leases import Leases, TakenRun
from explorer.fleet.limits import Scope, window_of
from explorer.fleet.rates import is_closed
from explorer.fleet.runs import PAUSED, QueueState


@dataclass(frozen=True)
class Ticket:
    """What the workflow engine brought."""

    run_id: str
    workflow: str


@dataclass(frozen=True)
class HeldBack:
    """Which waiting runs are not taken now."""

    is_all: bool = False
    tenants: Collection[str] = ()
    models: Collection[str] = ()
    """Those that were submitted with these models, of which a key has reached a limit or is throttled."""

    @property
    def is_any(self) -> bool:
        """Whether any is held back."""
        return self.is_all or bool(self.tenants or self.models)

    def may_take(self, tenant: str) -> sa.ColumnElement[bool]:
        """Return the condition that a waiting run of a tenant may be taken.

        A run of which a dead worker holds something may always be: its journal is what brings that back.
        """
        brings_back = sa.exists().where(HELD.c.run_id == RUNS.c.run_id)
        if self.is_all or tenant in self.tenants:
            return brings_back
        return RUNS.c.models.not_in(sorted(self.models)) | brings_back if self.models else sa.true()


def held_back(connection: sa.Connection, now: float, keys: Mapping[str, Collection[str]]) -> HeldBack:
    """Return which runs are not taken now.

    Args:
        connection: The database.
        now: Its time.
        keys: The ids of the keys that runs used, by the models that they were submitted with, as far as is known.
    """
    same = [SPENDING.c[name] == LIMITS.c[name] for name in ("scope", "subject", "unit", "period")]
    left = LIMITS.c.amount - SPENDING.c.spent - SPENDING.c.held
    reached = sa.select(SPENDING).join(LIMITS, sa.and_(*same)).where(SPENDING.c.refused > 0, left < SPENDING.c.refused)
    rows = [row for row in connection.execute(reached) if row.window == window_of(row.period, now)]
    subjects = {scope: {row.subject for row in rows if row.scope == scope} for scope in Scope}
    closed = set(connection.scalars(sa.select(RATES.c.key_id).where(is_closed(now))))
    without = subjects[Scope.KEY] | closed
    models = {models for models, used in keys.items() if without.intersection(used)}
    return HeldBack(bool(subjects[Scope.FLEET]), subjects[Scope.TENANT], models)


def take_next(leases: Leases, ticket: Ticket, keys: Mapping[str, Collection[str]]) -> TakenRun | None:
    """Take the waiting run whose turn it is; None when there is none that may be taken now."""
    database = leases.database
    with database.transaction() as connection:
        database.begin_writing(connection)
        now = database.time(connection)
        run_id = None if _is_paused(connection) else _next(connection, held_back(connection, now, keys), now)
        if run_id is None:
            _keep(connection, ticket, now, leases.lease_s)
            return None
        _swap(connection, ticket, run_id)
        connection.execute(sa.update(TENANTS).where(TENANTS.c.tenant == _tenant(run_id)).values(served_at=now))
        return leases.take_within(connection, run_id)


def has_waiting(leases: Leases) -> bool:
    """Return whether any run waits."""
    with leases.database.transaction() as connection:
        waiting = sa.select(RUNS.c.run_id).where(RUNS.c.state == QueueState.WAITING).limit(1)
        return connection.scalar(waiting) is not None


def is_stalled(leases: Leases, keys: Mapping[str, Collection[str]]) -> bool:
    """Return whether no run is at work, and all that wait are held back by limits."""
    with leases.database.transaction() as connection:
        now = leases.database.time(connection)
        at_work = sa.select(RUNS.c.run_id).where(RUNS.c.state == QueueState.RUNNING).limit(1)
        if _is_paused(connection) or connection.scalar(at_work) is not None:
            return False
        held = held_back(connection, now, keys)
        return held.is_any and _next(connection, held, now) is None


def _is_paused(connection: sa.Connection) -> bool:
    return FleetDatabase.fact(connection, PAUSED) is not None


def _next(connection: sa.Connection, held: HeldBack, now: float) -> str | None:
    """Return the waiting run of the tenant with the fewest runs at work; of several, of the one not served longest.

    Both are measured by the tenant's share: with 2, twice as many runs count as many, and a time as twice as long.
    """
    at_work = sa.select(sa.func.count()).where(RUNS.c.state == QueueState.RUNNING, RUNS.c.tenant == TENANTS.c.tenant)
    waits = sa.exists().where(RUNS.c.state == QueueState.WAITING, RUNS.c.tenant == TENANTS.c.tenant)
    share = sa.cast(sa.func.coalesce(SHARES.c.share, 1), sa.Double)
    order = (at_work.scalar_subquery() / share, ((now - TENANTS.c.served_at) * share).desc(), TENANTS.c.tenant)
    waiting = sa.select(TENANTS.c.tenant).outerjoin(SHARES, SHARES.c.tenant == TENANTS.c.tenant).where(waits)
    for tenant in connection.scalars(waiting.order_by(*order)).all():
        chosen = (
            sa.select(RUNS.c.run_id)
            .where(RUNS.c.state == QueueState.WAITING, RUNS.c.tenant == tenant, held.may_take(tenant))
            .order_by(RUNS.c.priority, RUNS.c.submitted_at, RUNS.c.run_id)
            .limit(1)
            .with_for_update(skip_locked=True)
        )
        found = connection.scalar(chosen)
        if found is not None:
            return str(found)
    return None


def _tenant(run_id: str) -> sa.ScalarSelect[str]:
    return sa.select(RUNS.c.tenant).where(RUNS.c.run_id == run_id).scalar_subquery()


def _swap(connection: sa.Connection, ticket: Ticket, run_id: str) -> None:
    """Give the run that is taken the ticket's entry in the engine's queue, and the ticket's run the other entry."""
    if run_id == ticket.run_id:
        return
    other = connection.scalar(sa.select(RUNS.c.workflow).where(RUNS.c.run_id == run_id))
    same = (RUNS.c.run_id == ticket.run_id, RUNS.c.workflow == ticket.workflow, RUNS.c.state == QueueState.WAITING)
    connection.execute(sa.update(RUNS).where(*same).values(workflow=other))
    connection.execute(sa.update(RUNS).where(RUNS.c.run_id == run_id).values(workflow=ticket.workflow))


def _keep(connection: sa.Connection, ticket: Ticket, now: float, lease_s: float) -> None:
    """Note that a ticket is in a worker's hands, so that its run does not count as forgotten by the queue."""
    same = (RUNS.c.run_id == ticket.run_id, RUNS.c.workflow == ticket.workflow, RUNS.c.state == QueueState.WAITING)
    connection.execute(sa.update(RUNS).where(*same, RUNS.c.queued_at < now - lease_s).values(queued_at=now))
