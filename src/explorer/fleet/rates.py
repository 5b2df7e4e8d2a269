"""How fast requests with one provider key may be sent over all workers, and until when none may.

In the fleet's database, an id is in the place of a key.

The times to send are given out in order, each so long after the one before that no period holds more than the rate
allows (a generic cell rate algorithm without a burst). A worker asks for as many at once as it has requests waiting.
"""

import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from explorer.fleet.database import RATES, FleetDatabase
from explorer.llm.models import ModelSetup

MAX_CLOSED_S = 3600.0
"""The longest time for which one answer of a provider holds all workers back."""
FURTHEST_S = 2 * MAX_CLOSED_S
"""A key that is closed for longer was closed by a clock that was ahead and is right now."""
MOST_SLOTS = 10_000
"""Slots that are further in the future than so many were given out by such a clock."""
LATE_S = 0.25
"""The longest time after its slot at which a request may still be sent,"""
LATE_SHARE = 0.1
"""but at most this share of the rate's period."""


@dataclass(frozen=True)
class SlotsAsked:
    """Requests with one key that wait to be sent."""

    key_id: str
    count: int


@dataclass(frozen=True)
class SlotsGranted:
    """Times to send requests, in seconds from now."""

    first_s: float
    every_s: float
    count: int


@dataclass(frozen=True)
class Closing:
    """A provider that asked a worker to wait."""

    key_id: str
    wait_s: float
    why: str


@dataclass(frozen=True)
class KeyState:
    """What holds for the requests with a key."""

    closed_s: float = 0.0
    """Seconds until requests may be sent; 0: they may."""
    closed_why: str = ""
    has_rate: bool = False
    late_s: float = LATE_S
    """How long after its slot a request may be sent."""


def late_s(period_s: float) -> float:
    """Return how long after its slot a request may be sent, at a rate over so many seconds."""
    return min(LATE_S, LATE_SHARE * period_s)


def interval_s(requests: int, period_s: float) -> float:
    """Return the seconds between two slots, so that also requests that are late keep within the rate."""
    return (period_s + late_s(period_s)) / requests


def lock_keys(
    connection: sa.Connection, database: FleetDatabase, closings: Iterable[Closing], asked: Iterable[SlotsAsked]
) -> None:
    """Make the rows of keys that are closed, and keep all rows from being changed by others; in one order."""
    closed = sorted({one.key_id for one in closings})
    for key_id in closed:
        connection.execute(database.insert_new(RATES, key_id=key_id))
    keys = {*closed, *(one.key_id for one in asked)}
    if keys:
        chosen = sa.select(RATES.c.key_id).where(RATES.c.key_id.in_(sorted(keys)))
        connection.execute(chosen.order_by(RATES.c.key_id).with_for_update()).all()


def grant_slots(connection: sa.Connection, asked: Sequence[SlotsAsked], now: float) -> Mapping[str, SlotsGranted]:
    """Give out the next times of keys that have a rate; of another key, none is given."""
    counts = {one.key_id: one.count for one in asked}
    chosen = sa.select(RATES).where(RATES.c.key_id.in_(sorted(counts)), RATES.c.requests.is_not(None))
    granted: dict[str, SlotsGranted] = {}
    for row in connection.execute(chosen).all():
        every_s = interval_s(row.requests, row.period_s)
        next_at = row.next_at if row.next_at - now <= MOST_SLOTS * every_s else now
        first = max(now + closed_for(row.closed_until, now), next_at)
        granted[row.key_id] = SlotsGranted(first - now, every_s, counts[row.key_id])
        taken = sa.update(RATES).where(RATES.c.key_id == row.key_id)
        connection.execute(taken.values(next_at=first + counts[row.key_id] * every_s))
    return granted


def close(connection: sa.Connection, closings: Iterable[Closing], now: float) -> None:
    """Let no request with a key be sent for as long as its provider asked."""
    for one in closings:
        until = now + min(one.wait_s, MAX_CLOSED_S)
        is_shorter = ~RATES.c.closed_until.between(until, now + FURTHEST_S)
        longer = sa.update(RATES).where(RATES.c.key_id == one.key_id, is_shorter)
        connection.execute(longer.values(closed_until=until, closed_why=one.why))


def closed_for(until: float, now: float) -> float:
    """Return the seconds for which a key is still closed; 0: it is open."""
    return until - now if 0 < until - now <= FURTHEST_S else 0.0


def is_closed(now: float | sa.ColumnElement[float]) -> sa.ColumnElement[bool]:
    """Return the condition that a key is closed."""
    return (RATES.c.closed_until > now) & (RATES.c.closed_until <= now + FURTHEST_S)


def key_states(connection: sa.Connection, now: float) -> dict[str, KeyState]:
    """Return the keys that have a rate or are closed."""
    chosen = sa.select(RATES).where(RATES.c.requests.is_not(None) | is_closed(now))
    return {
        row.key_id: KeyState(
            closed_for(row.closed_until, now),
            row.closed_why,
            row.requests is not None,
            late_s(row.period_s or 0.0),
        )
        for row in connection.execute(chosen)
    }


ID_CHARS = 10


@dataclass(frozen=True)
class KeyIds:
    """Makes the id of the key that a worker uses for a vendor's models.

    It is the vendor's name and the beginning of a keyed hash: the same for all workers with the same key, and of no use
    to anybody who reads the database. A vendor without a key has one for its server's address.
    """

    salt: str
    """The fleet's secret for its hashes; all workers read the same one from the store."""
    setup: ModelSetup

    def vendor_of(self, prefix: str) -> str:
        """Return the name of the vendor of a model's prefix."""
        return self.setup.contact_of(prefix)

    def id_of(self, prefix: str) -> str:
        """Return the id of the key for models with a prefix."""
        vendor = self.setup.vendor_of(prefix)
        secret = (vendor.needed or vendor.server.url) if vendor is not None else ""
        digest = hmac.new(self.salt.encode(), secret.encode(), hashlib.sha256).hexdigest()
        return f"{self.vendor_of(prefix)}-{digest[:ID_CHARS]}"
