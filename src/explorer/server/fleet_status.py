"""What the page of a fleet shows: values that the command line takes from the fleet's database."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from explorer.schema.plan import PlanDecision


@dataclass(frozen=True)
class FleetWorker:
    """A worker."""

    name: str
    runs: int
    concurrency: int
    age_s: float
    silent_s: float
    """Seconds since it renewed its lease."""
    is_alive: bool


@dataclass(frozen=True)
class FleetRun:
    """A run of the queue."""

    run_id: str
    question: str
    state: str
    worker: str
    cost_usd: float | None


@dataclass(frozen=True)
class FleetLimit:
    """A limit that all runs of the fleet share."""

    limit: str
    """How much, in which time, for whom."""
    scope: str
    """`fleet`, `tenant` or `key`."""
    subject: str
    """The tenant, or the key's id; empty for the fleet."""
    unit: str
    """`usd`, `tokens` or `requests`."""
    period: str
    """`day`, `month` or `total`."""
    amount: float
    spent: float
    reserved: float
    """What runs at work may spend without asking again."""
    is_reached: bool


@dataclass(frozen=True)
class FleetKey:
    """A provider key that has a rate, or is throttled."""

    key_id: str
    rate: str
    """How fast requests are sent."""
    throttled_s: float
    """Seconds for which its provider asked to wait."""


@dataclass(frozen=True)
class FleetStatus:
    """A fleet as its database has it."""

    database: str
    """Its address, without a password."""
    is_paused: bool
    workers: Sequence[FleetWorker]
    runs: Sequence[FleetRun]
    """Those that wait, are at work, failed or are parked."""
    waiting: int
    running: int
    ended_last_hour: int
    cost_last_hour: float
    ended: Sequence[FleetRun] = ()
    """The latest of those that are done or cancelled, newest first."""
    limits: Sequence[FleetLimit] = ()
    keys: Sequence[FleetKey] = ()


AskFleet = Callable[[], FleetStatus]
CopyOf = Callable[[str], Path | None]
"""Returns the folder of a copy of a run of the fleet, kept current; None where the fleet has none of that name."""
Queued = Callable[[str], str]
"""Returns what the fleet's queue knows of a run, by its id, and the next command; empty where neither is needed."""
DecideElsewhere = Callable[[str, PlanDecision], str]
"""Hands a decision about a plan to the fleet; returns the run's id, empty where no plan of such a run waits."""
