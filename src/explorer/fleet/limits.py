"""The limits that all runs of a fleet share: set them, remove them, and see what of them is used."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from math import ceil
from typing import Any, NamedTuple

import sqlalchemy as sa

from explorer.fleet.database import HELD, LIMITS, RATES, SHARES, SPENDING, FleetDatabase
from explorer.fleet.rates import closed_for
from explorer.schema.errors import ConfigError

NANO = 1_000_000_000
"""Billionths of a dollar in a dollar."""
MAX_AMOUNT = 2**62
MAX_RATE = 100_000
OF_ALL = "all"
"""The window of a limit that no day or month ends."""


class Unit(StrEnum):
    """What is limited."""

    USD = "usd"
    TOKENS = "tokens"
    REQUESTS = "requests"


class Period(StrEnum):
    """The time after which a limit begins anew, by the database's clock, in UTC."""

    DAY = "day"
    MONTH = "month"
    TOTAL = "total"
    """Never."""


class Scope(StrEnum):
    """Whose requests a limit counts."""

    FLEET = "fleet"
    """All."""
    TENANT = "tenant"
    KEY = "key"
    """Those with one key of a provider."""


class LimitName(NamedTuple):
    """What a limit is known by."""

    scope: str
    subject: str
    """The tenant, or the key's id; empty for the fleet."""
    unit: str
    period: str

    @property
    def words(self) -> str:
        """The limit for people, without its amount: `a day for tenant a`."""
        per = {Period.DAY: " a day", Period.MONTH: " a month"}.get(Period(self.period), "")
        whose = {
            Scope.TENANT: f"tenant {self.subject}" if self.subject else "runs without a tenant",
            Scope.KEY: f"key {self.subject}",
        }
        return f"{per} for {whose.get(Scope(self.scope), 'the fleet')}".strip()


class SliceName(NamedTuple):
    """A limit in one of its windows."""

    limit: LimitName
    window: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The values of the columns that name it."""
        return (*self.limit, self.window)


@dataclass(frozen=True)
class LimitUse:
    """A limit, and what is used of it in the present window."""

    name: LimitName
    window: str
    amount: int
    spent: int = 0
    held: int = 0
    """What runs at work may spend without asking again."""
    refused: int = 0
    """The latest need for which there was too little left."""

    @property
    def of(self) -> SliceName:
        """The limit in this window."""
        return SliceName(self.name, self.window)

    @property
    def left(self) -> int:
        """What is neither spent nor held."""
        return self.amount - self.spent - self.held

    @property
    def is_reached(self) -> bool:
        """Whether runs wait, because the latest request that was refused would be refused again."""
        return self.left < max(self.refused, 1)


@dataclass(frozen=True)
class KeyRate:
    """How fast requests with one key may be sent."""

    key_id: str
    requests: int | None
    """None: no rate is set."""
    period_s: float | None
    closed_s: float = 0.0
    """Seconds for which the provider asked to wait."""
    closed_why: str = ""


def window_of(period: str, now: float) -> str:
    """Return the name of the day or month of a time in seconds since 1970."""
    at = datetime.fromtimestamp(now, UTC)
    return {Period.DAY: f"{at:%Y-%m-%d}", Period.MONTH: f"{at:%Y-%m}"}.get(Period(period), OF_ALL)


def whole(unit: str, amount: float) -> int:
    """Return an amount as it is stored, rounded up."""
    # Dollars come from sums of floats: without the rounding, 0.1 + 0.2 would be a billionth more than 0.3.
    return ceil(round(amount * NANO, 3)) if unit == Unit.USD else ceil(amount)


def amount_of(unit: str, stored: int) -> float:
    """Return a stored amount in US dollars, tokens or requests."""
    return stored / NANO if unit == Unit.USD else stored


def shown(unit: str, amount: int) -> str:
    """Return a stored amount for people."""
    if unit != Unit.USD:
        return f"{amount:,} {unit}"
    usd = amount / NANO
    return f"${usd:.2f}" if round(usd, 2) * NANO == amount else f"${usd:.6f}".rstrip("0")


def slice_condition(table: sa.Table, names: Iterable[SliceName]) -> sa.ColumnElement[bool]:
    """Return the condition that a row is of one of these slices."""
    columns = [table.c[name] for name in ("scope", "subject", "unit", "period", "window")]
    return sa.tuple_(*columns).in_([one.columns for one in names])


def limit_name(row: sa.Row[Any]) -> LimitName:
    """Return the limit that a row is of."""
    return LimitName(row.scope, row.subject, row.unit, row.period)


@dataclass(frozen=True)
class SharedLimitBook:
    """The limits in a fleet's database. All methods block."""

    database: FleetDatabase

    def put(self, name: LimitName, amount: float) -> None:
        """Set a limit, or change its amount; what is spent of it stays.

        Raises:
            ConfigError: The amount cannot be a limit.
        """
        stored = whole(name.unit, amount) if 0 < amount < MAX_AMOUNT else 0
        if not 0 < stored < MAX_AMOUNT:
            raise ConfigError(
                f"{amount:g} {name.unit} cannot be a limit", hint="give more than 0, or none to remove it"
            )
        columns = name._asdict()
        with self.database.transaction() as connection:
            connection.execute(self.database.insert_new(LIMITS, **columns, amount=stored))
            connection.execute(sa.update(LIMITS).where(*_is(LIMITS, name)).values(amount=stored))

    def remove(self, name: LimitName) -> bool:
        """Remove a limit with what was spent of it; return whether there was one."""
        with self.database.transaction() as connection:
            found = connection.execute(sa.delete(LIMITS).where(*_is(LIMITS, name))).rowcount > 0
            connection.execute(sa.delete(SPENDING).where(*_is(SPENDING, name)))
            connection.execute(sa.delete(HELD).where(*_is(HELD, name)))
        return found

    def put_rate(self, key_id: str, requests: int | None, period_s: float | None) -> None:
        """Set how many requests with a key may be sent in so many seconds; None: as many as the provider allows.

        Raises:
            ConfigError: The rate is none.
        """
        if requests is not None and not (1 <= requests <= MAX_RATE and period_s):
            raise ConfigError(f"{requests} requests cannot be a rate", hint="for example --rate 5/s or --rate 300/min")
        with self.database.transaction() as connection:
            connection.execute(self.database.insert_new(RATES, key_id=key_id))
            changed = sa.update(RATES).where(RATES.c.key_id == key_id)
            connection.execute(changed.values(requests=requests, period_s=period_s, next_at=0))

    def uses(self, tenants: Collection[str] | None = None) -> list[LimitUse]:
        """Return the limits with what is used of each now; of tenants only these."""
        with self.database.transaction() as connection:
            now = self.database.time(connection)
            return uses_in(connection, now, tenants)

    def rates(self) -> list[KeyRate]:
        """Return the rate of each key that has one, or that is throttled."""
        with self.database.transaction() as connection:
            now = self.database.time(connection)
            rows = connection.execute(sa.select(RATES).order_by(RATES.c.key_id)).all()
        found = [
            KeyRate(row.key_id, row.requests, row.period_s, closed_for(row.closed_until, now), row.closed_why)
            for row in rows
        ]
        return [one for one in found if one.requests or one.closed_s]


def uses_in(connection: sa.Connection, now: float, tenants: Collection[str] | None = None) -> list[LimitUse]:
    """Return the limits with what is used of each in the window of a time."""
    chosen = sa.select(LIMITS).order_by(*(LIMITS.c[name] for name in LimitName._fields))
    if tenants is not None:
        chosen = chosen.where((LIMITS.c.scope != Scope.TENANT) | LIMITS.c.subject.in_(sorted(tenants)))
    amounts = {limit_name(row): row.amount for row in connection.execute(chosen)}
    slices = [SliceName(name, window_of(name.period, now)) for name in amounts]
    if not slices:
        return []
    rows = connection.execute(sa.select(SPENDING).where(slice_condition(SPENDING, slices)))
    used = {limit_name(row): (row.spent, row.held, row.refused) for row in rows}
    return [LimitUse(one.limit, one.window, amounts[one.limit], *used.get(one.limit, (0, 0, 0))) for one in slices]


def _is(table: sa.Table, name: LimitName) -> list[sa.ColumnElement[bool]]:
    return [table.c[column] == value for column, value in name._asdict().items()]


def put_share(database: FleetDatabase, tenant: str, share: int) -> None:
    """Set the share of a tenant; 1 is that of all others, and removes it.

    Raises:
        StorageError: The database does not answer.
    """
    with database.transaction() as connection:
        connection.execute(sa.delete(SHARES).where(SHARES.c.tenant == tenant))
        if share != 1:
            connection.execute(sa.insert(SHARES).values(tenant=tenant, share=share))


def shares_of(database: FleetDatabase) -> dict[str, int]:
    """Return the tenants that have a share, with it.

    Raises:
        StorageError: The database does not answer.
    """
    chosen = sa.select(SHARES.c.tenant, SHARES.c.share).order_by(SHARES.c.tenant)
    with database.transaction() as connection:
        return {str(tenant): int(share) for tenant, share in connection.execute(chosen)}
