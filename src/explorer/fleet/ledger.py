"""What runs hold and spend of the limits that a fleet shares, in the database.

A run at work holds its share in slices, so that most of its requests need no transaction. One transaction books what
the runs of a worker spent, gives back what they no longer need, and grants further slices.

Locks are taken in one order everywhere: rows of runs, of spending by their names, of what is held, of rates.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from explorer.fleet.database import HELD, RUNS, SPENDING, FleetDatabase
from explorer.fleet.limits import LimitName, LimitUse, Scope, SliceName, limit_name, shown, slice_condition, uses_in
from explorer.fleet.rates import (
    Closing,
    KeyState,
    SlotsAsked,
    SlotsGranted,
    close,
    grant_slots,
    key_states,
    lock_keys,
)
from explorer.fleet.runs import QueueState

SLICE_REQUESTS = 8
"""A slice is enough for so many requests like the one that it is asked for,"""
SLICE_SHARE = 32
"""but no more than one part in so many of what is left, unless that one request needs more."""
WANTED_S = 5.0
"""Seconds for which others give back what they do not need, after a request had to wait."""


@dataclass(frozen=True)
class Taking:
    """One taking of a run, as its lease names it."""

    run_id: str
    epoch: int
    tenant: str
    after_seq: int = 0
    """The last record of its journal before."""


@dataclass(frozen=True)
class ShareAsked:
    """A request that needs more than its run holds."""

    taking: Taking
    key_id: str
    need: Mapping[str, int]
    """The worst case by unit."""

    def counts_for(self, name: LimitName) -> bool:
        """Return whether a limit counts this request."""
        return applies(name, self.taking.tenant, self.key_id)


@dataclass(frozen=True)
class Refused:
    """Too little is left for a request."""

    use: LimitUse
    need: int
    is_final: bool
    """Whether there would be none either if all others gave back what they hold."""

    @property
    def words(self) -> str:
        """Why, for people."""
        unit = self.use.name.unit
        left = shown(unit, max(0, self.use.amount - self.use.spent))
        amount = shown(unit, self.use.amount)
        return (
            f"the limit of {amount} {self.use.name.words} is reached: "
            f"a request can take {shown(unit, self.need)}, and {left} is left"
        )


@dataclass(frozen=True)
class Later:
    """The run cannot be seen in this moment, because its row is being changed."""


Granted = Mapping[SliceName, int]
Answer = Granted | Refused | Later


@dataclass(frozen=True)
class Report:
    """What a run did with a slice since its last report."""

    run_id: str
    epoch: int
    of: SliceName
    spent: int
    released: int
    """How much less it holds: what it spent, and what it gives back."""


@dataclass(frozen=True)
class ShareExchange:
    """What a worker has to say and to ask at one time."""

    reports: Sequence[Report] = ()
    asks: Sequence[ShareAsked] = ()
    slots: Sequence[SlotsAsked] = ()
    closings: Sequence[Closing] = ()
    tenants: Collection[str] = ()
    """The tenants of its runs."""

    @property
    def is_only_reading(self) -> bool:
        """Whether nothing is changed."""
        return not (self.reports or self.asks or self.slots or self.closings)


@dataclass(frozen=True)
class Answers:
    """What the database says."""

    now: float
    """Its clock."""
    uses: Sequence[LimitUse]
    """The limits that can concern the worker's runs."""
    wanted: Collection[SliceName]
    """Slices of which others wait for more."""
    keys: Mapping[str, KeyState]
    granted: Sequence[Answer] = ()
    """One for each ask."""
    slots: Mapping[str, SlotsGranted] = field(default_factory=dict[str, SlotsGranted])


@dataclass(frozen=True)
class Ledger:
    """What is held and spent. All methods block."""

    database: FleetDatabase
    worker: str

    def exchange(self, given: ShareExchange) -> Answers:
        """Book reports, grant slices and times to send, and return the state of all limits; in one transaction.

        Raises:
            StorageError: The database does not answer; nothing was changed, or all of it.
        """
        with self.database.transaction() as connection:
            if not given.is_only_reading:
                self.database.begin_writing(connection)
            running = self._running(connection, [ask.taking for ask in given.asks])
            now = self.database.time(connection)
            uses = {one.of for one in uses_in(connection, now, given.tenants)}
            asked = {name for ask in given.asks for name in uses if ask.counts_for(name.limit)}
            for name in sorted(asked):
                columns = {**name.limit._asdict(), "window": name.window}
                connection.execute(self.database.insert_new(SPENDING, **columns))
            lock_spending(connection, [*asked, *(report.of for report in given.reports)])
            book(connection, given.reports)
            granted = [
                self._granted(connection, ask, asked, now)
                if (ask.taking.run_id, ask.taking.epoch) in running
                else Later()
                for ask in given.asks
            ]
            lock_keys(connection, self.database, given.closings, given.slots)
            close(connection, given.closings, now)
            slots = grant_slots(connection, given.slots, now)
            after = uses_in(connection, now, given.tenants)
            return Answers(now, after, _wanted(connection, uses, now), key_states(connection, now), granted, slots)

    def _running(self, connection: sa.Connection, takings: Sequence[Taking]) -> set[tuple[str, int]]:
        """Return those of some takings that are this worker's now, and keep them from being taken over meanwhile."""
        if not takings:
            return set()
        chosen = (
            sa.select(RUNS.c.run_id, RUNS.c.epoch)
            .where(
                RUNS.c.run_id.in_({one.run_id for one in takings}),
                RUNS.c.worker == self.worker,
                RUNS.c.state == QueueState.RUNNING,
            )
            .order_by(RUNS.c.run_id)
            .with_for_update(read=True, skip_locked=True)
        )
        return {(row.run_id, row.epoch) for row in connection.execute(chosen)}

    def _granted(self, connection: sa.Connection, ask: ShareAsked, locked: Collection[SliceName], now: float) -> Answer:
        """Grant slices of all limits that a request counts for, or of none."""
        uses = uses_in(connection, now, [ask.taking.tenant])
        concerned = [one for one in uses if one.of in locked and ask.counts_for(one.name)]
        short = [one for one in concerned if one.left < ask.need[one.name.unit]]
        if short:
            return self._refused(connection, ask, short, now)
        grants = {one.of: _slice(ask.need[one.name.unit], one.left) for one in concerned}
        for name, amount in grants.items():
            row = {
                "run_id": ask.taking.run_id,
                "epoch": ask.taking.epoch,
                **name.limit._asdict(),
                "window": name.window,
            }
            connection.execute(self.database.insert_new(HELD, **row, after_seq=ask.taking.after_seq))
            mine = sa.and_(HELD.c.run_id == ask.taking.run_id, HELD.c.epoch == ask.taking.epoch)
            of_slice = slice_condition(HELD, [name])
            connection.execute(sa.update(HELD).where(mine, of_slice).values(held=HELD.c.held + amount))
            spending = sa.update(SPENDING).where(slice_condition(SPENDING, [name]))
            connection.execute(spending.values(held=SPENDING.c.held + amount))
        return grants

    def _refused(self, connection: sa.Connection, ask: ShareAsked, short: Sequence[LimitUse], now: float) -> Refused:
        """Note which limits have too little left, and return one that will not have more soon, if there is one."""
        refusals = [
            Refused(one, ask.need[one.name.unit], one.amount - one.spent < ask.need[one.name.unit]) for one in short
        ]
        for one in refusals:
            changed = {"refused": one.need} if one.is_final else {"wanted_at": now}
            row = slice_condition(SPENDING, [one.use.of])
            connection.execute(sa.update(SPENDING).where(row).values(**changed))
        return max(refusals, key=lambda one: one.is_final)


def applies(name: LimitName, tenant: str, key_id: str) -> bool:
    """Return whether a limit counts the requests of a tenant with a key."""
    return name.subject == {Scope.TENANT: tenant, Scope.KEY: key_id}.get(Scope(name.scope), name.subject)


def _slice(need: int, left: int) -> int:
    return max(need, min(SLICE_REQUESTS * need, left // SLICE_SHARE))


def _wanted(connection: sa.Connection, slices: Collection[SliceName], now: float) -> set[SliceName]:
    if not slices:
        return set()
    chosen = sa.select(SPENDING).where(SPENDING.c.wanted_at > now - WANTED_S, slice_condition(SPENDING, slices))
    return {
        SliceName(LimitName(row.scope, row.subject, row.unit, row.period), row.window)
        for row in connection.execute(chosen)
    }


def lock_spending(connection: sa.Connection, slices: Iterable[SliceName]) -> None:
    """Keep rows of spending from being changed by others until the transaction ends; all of them in one order."""
    names = sorted(set(slices))
    if names:
        order = [SPENDING.c[name] for name in (*LimitName._fields, "window")]
        chosen = sa.select(SPENDING.c.window).where(slice_condition(SPENDING, names))
        connection.execute(chosen.order_by(*order).with_for_update()).all()


def book(connection: sa.Connection, reports: Iterable[Report]) -> None:
    """Book what runs spent and gave back; of a run that was taken from its worker, nothing more is believed."""
    for one in reports:
        theirs = sa.and_(HELD.c.run_id == one.run_id, HELD.c.epoch == one.epoch, ~HELD.c.is_presumed)
        row = sa.update(HELD).where(theirs, slice_condition(HELD, [one.of]))
        changed = row.values(held=HELD.c.held - one.released, spent=HELD.c.spent + one.spent)
        if connection.execute(changed).rowcount:
            spending = sa.update(SPENDING).where(slice_condition(SPENDING, [one.of]))
            connection.execute(spending.values(held=SPENDING.c.held - one.released, spent=SPENDING.c.spent + one.spent))


def release(connection: sa.Connection, taking: Taking, spent: Mapping[SliceName, int]) -> None:
    """Book the last spending of a run that ends, and give back all else that it holds."""
    theirs = sa.and_(HELD.c.run_id == taking.run_id, HELD.c.epoch == taking.epoch, ~HELD.c.is_presumed)
    rows = connection.execute(sa.select(HELD).where(theirs)).all()
    slices = {SliceName(limit_name(row), row.window): row.held for row in rows}
    lock_spending(connection, slices)
    for name, held in slices.items():
        spending = sa.update(SPENDING).where(slice_condition(SPENDING, [name]))
        more = spent.get(name, 0)
        connection.execute(spending.values(held=SPENDING.c.held - held, spent=SPENDING.c.spent + more))
    connection.execute(sa.delete(HELD).where(theirs))
