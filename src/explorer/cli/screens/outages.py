"""Outages as people see them: which model the run waits for, since when, and when it is asked again."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Outage:
    """A model that brought turns before and brings none now."""

    model: str
    """With the provider's prefix."""
    since: datetime
    waits_s: float | None
    """From the latest failed attempt to the next; None: it is not waited for any more."""
    next_try: datetime | None
    """None: there is none."""


def outage_words(outage: Outage, now: datetime | None = None) -> str:
    """Write an outage in one line: `waiting for openai:model-a since 12:03, next try in 20 s`.

    Args:
        outage: What is waited for.
        now: To count down from; None: the moment of the latest failed attempt.
    """
    since = f"{outage.since.astimezone():%H:%M}"
    if outage.waits_s is None:
        return f"{outage.model} has not answered since {since}; no further attempt"
    seconds = outage.waits_s
    if now is not None and outage.next_try is not None:
        seconds = (outage.next_try - now).total_seconds()
    next_try = f"next try in {seconds:.0f} s" if seconds > 0 else "trying again now"
    return f"waiting for {outage.model} since {since}, {next_try}"
