"""Reads times as models write them (`today`, `24h`, `2026-08`, `2026-08-10..2026-08-12`), in the user's zone.

A day begins at midnight in the user's zone, and has 23 or 25 hours when clocks are changed.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from explorer.schema.errors import ConfigError, RefusedCallError
from explorer.text.rendering import code, own
from explorer.text.words import WEEKDAYS

UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
AGO = re.compile(r"(?:(?:the\s+)?(?:last|past)\s+)?(\d{1,5})\s*([hdw])[a-z]*(?:\s+ago)?", re.IGNORECASE)
NAMED = re.compile(r"(this|last)\s+(week|month|year)", re.IGNORECASE)
MONTH = re.compile(r"(\d{4})-(\d{1,2})")
YEAR = re.compile(r"\d{4}")
DECEMBER = 12
UNDERSTOOD = own(
    "today, yesterday, last week, this month, a span like 24h or 7d, a day like 2026-08-01, a month like 2026-08"
)


@dataclass(frozen=True)
class Window:
    """A range of time; None is an open end."""

    start: datetime | None = None
    end: datetime | None = None
    """The first moment after the range."""


def zone_named(name: str) -> tzinfo:
    """Return a zone of the IANA database; UTC for an empty name.

    Raises:
        ConfigError: There is no such zone on this machine.
    """
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(
            f"this machine knows no time zone {name!r}", hint="EXPLORER_TIMEZONE=Europe/Berlin, or leave it empty"
        ) from error


def since_time(text: str, now: datetime, zone: tzinfo = UTC) -> datetime | None:
    """Return the beginning of a time, relative to `now`; None when nothing is given.

    Raises:
        RefusedCallError: It is no time that is understood.
    """
    return window(text, "", now, zone).start


def window(since: str, until: str, now: datetime, zone: tzinfo = UTC) -> Window:
    """Return the range from the beginning of `since` to the end of `until`, so that a day in `until` is included.

    A length in `until` is counted back from now: `since="7d", until="24h"` leaves out the last day.

    Raises:
        RefusedCallError: One of them is not understood, or the end lies before the beginning.
    """
    start = _stretch("since", since, now, zone)[0] if since.strip() else None
    end = _stretch("until", until, now, zone)[not AGO.fullmatch(until.strip())] if until.strip() else None
    if start and end and start >= end:
        raise RefusedCallError.of(
            'until="{until}" is before since="{since}": nothing can be between them.',
            until=until[:40],
            since=since[:40],
        )
    return Window(start, end)


def days_in(text: str, now: datetime, zone: tzinfo, most: int) -> tuple[date, ...]:
    """Return the days of one time, or of two with `..` between them, none after today, in order.

    Raises:
        RefusedCallError: Not understood, too many, or all still to come.
    """
    first, _, last = text.partition("..")
    start, end = _stretch("date", first, now, zone)
    if last.strip():
        end = _stretch("date", last, now, zone)[1]
    today = now.astimezone(zone).date()
    begin = start.astimezone(zone).date()
    if (ago := AGO.fullmatch(first.strip())) and ago[2].lower() != "h":
        begin += timedelta(days=1)  # the last seven days end with today
    close = min((end - timedelta(microseconds=1)).astimezone(zone).date(), today)
    if begin > today:
        raise RefusedCallError.of('date="{text}" is still to come: today is {today}.', text=text[:60], today=today)
    count = (close - begin).days + 1
    if count < 1:
        raise RefusedCallError.of('date="{text}" ends before it begins.', text=text[:60])
    if count > most:
        raise RefusedCallError.of(
            'date="{text}" means {count} days; ask for at most {most} at a time.',
            text=text[:60],
            count=count,
            most=most,
        )
    return tuple(begin + timedelta(days=number) for number in range(count))


def day_window(day: date, zone: tzinfo) -> tuple[datetime, datetime]:
    """Return a day in the user's zone, from midnight to midnight, in UTC."""
    return _midnight(day, zone), _midnight(day + timedelta(days=1), zone)


def _stretch(field: str, text: str, now: datetime, zone: tzinfo) -> tuple[datetime, datetime]:
    """Return the range of a text in UTC; both ends are the same for a single moment."""
    words = " ".join(text.split())
    try:
        if match := AGO.fullmatch(words):
            return now - int(match[1]) * UNITS[match[2].lower()], now
        if days := _days(words.lower(), now.astimezone(zone).date()):
            return _midnight(days[0], zone), _midnight(days[1], zone)
        moment = datetime.fromisoformat(words)
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise RefusedCallError.of(
            '{field}="{words}" is not understood: write {understood}.',
            field=code(field),
            words=words[:40],
            understood=UNDERSTOOD,
        ) from error
    return moment, moment


def _days(words: str, today: date) -> tuple[date, date] | None:
    """Return the first day of a calendar term and the first day after it; None for anything else."""
    if day := _one_day(words, today):
        return day, day + timedelta(days=1)
    if match := NAMED.fullmatch(words):
        return _named(match[2], today, is_last=match[1] == "last")
    if match := MONTH.fullmatch(words):
        first = date(int(match[1]), int(match[2]), 1)
        return first, _next_month(first)
    if YEAR.fullmatch(words):
        return date(int(words), 1, 1), date(int(words) + 1, 1, 1)
    return None


def _one_day(words: str, today: date) -> date | None:
    """Return the day that a text means; a weekday is the latest one, today included. None for anything else."""
    if words in {"today", "yesterday"}:
        return today - timedelta(days=words == "yesterday")
    if words in WEEKDAYS:
        return today - timedelta(days=(today.weekday() - WEEKDAYS.index(words)) % 7)
    return date.fromisoformat(words) if re.fullmatch(r"\d{4}-\d\d-\d\d", words) else None


def _named(unit: str, today: date, *, is_last: bool) -> tuple[date, date]:
    """Return this or the last week (from Monday), month or year."""
    if unit == "week":
        first = today - timedelta(days=today.weekday())
        return (first - timedelta(weeks=1), first) if is_last else (first, first + timedelta(weeks=1))
    if unit == "month":
        first = today.replace(day=1)
        return ((first - timedelta(days=1)).replace(day=1), first) if is_last else (first, _next_month(first))
    first = today.replace(month=1, day=1)
    return (first.replace(year=first.year - 1), first) if is_last else (first, first.replace(year=first.year + 1))


def _next_month(first: date) -> date:
    return first.replace(year=first.year + first.month // DECEMBER, month=first.month % DECEMBER + 1)


def _midnight(day: date, zone: tzinfo) -> datetime:
    """Return the first moment of a day; where a change of clocks skips midnight, the moment of that change."""
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)
