"""Moments as services write them: numbers that may be absent, fractions, text or absurd, and how they are shown."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import BeforeValidator

LAST_SECOND = 253_402_300_799
"""The end of the year 9999, behind which no date can be written."""


def _seconds(value: object) -> int | None:
    """Unix seconds; what cannot be a moment is unknown, since one bad number must not cost the whole item."""
    if isinstance(value, str):
        value = int(value) if value.isdecimal() and len(value) <= len(str(LAST_SECOND)) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LAST_SECOND:
        return None
    return int(value)


Seconds = Annotated[int | None, BeforeValidator(_seconds)]
"""A foreign field that holds unix seconds."""


def moment(seconds: int | None) -> str:
    """As `2026-08-10T09:12:00Z`; empty when it is not known."""
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
