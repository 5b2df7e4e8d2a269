"""Dates and times of day in a plain text, in the forms of several languages."""

import re
from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

from explorer.text.words import WEEKDAYS, stretches

_MONTHS = (
    "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|"
    "september sept sep|october oct|november nov|december dec"
)
MONTHS = {name: number for number, names in enumerate(_MONTHS.split("|"), 1) for name in names.split()}
_MONTH = r"(?P<month{0}>" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")\b\.?"
_DAY = r"(?P<day{0}>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?"
_YEAR = r"(?P<year{0}>1[5-9]\d\d|20\d\d|21\d\d)"
_END = r"(?![\d%]|[.,]\d)"


_FORMS = (
    r"(?<!\d)" + _YEAR + r"[-/.](?P<number{0}>1[0-2]|0[1-9])[-/.](?P<day{0}>[12]\d|3[01]|0[1-9])" + _END,
    r"(?<![\w.-])" + _YEAR + r"-(?P<number{0}>1[0-2]|0[1-9])(?![\w/-]|\.\d)",
    r"(?<![\d-])"
    + _YEAR
    + r" ?年(?: ?(?P<number{0}>1[0-2]|0?[1-9]) ?月(?: ?(?P<day{0}>[12]\d|3[01]|0?[1-9]) ?[日号])?)?",
    r"(?<!\d)(?P<number{0}>1[0-2]|0?[1-9]) ?月(?! ?\d{3})(?: ?(?P<day{0}>[12]\d|3[01]|0?[1-9]) ?[日号])?",
    r"\b" + _DAY + r"(?: of)?[ -]" + _MONTH + r"(?:,? |-)" + _YEAR + r"\b",
    r"\b" + _MONTH + r" " + _DAY + r",? " + _YEAR + _END,
    r"\b" + _DAY + r"(?: of)? " + _MONTH + r"(?! ?\d{1,2}\b)",
    r"\b" + _MONTH + r",? (?:of )?" + _YEAR + _END,
    r"\b" + _MONTH + r" " + _DAY + r"\b" + _END,
    r"(?<![\w.,$€£¥/-])" + _YEAR + r"(?!\w|[-/.,:]\d|%| ?[$€£¥%])",
)


class Day(NamedTuple):
    """A date as far as a text gives it; 0 for what it leaves out."""

    year: int
    month: int
    day: int


class Dated(NamedTuple):
    """A date in a text."""

    start: int
    end: int
    day: Day


DATE = re.compile(
    # What each form begins with is looked at first: most places have neither a figure nor such a letter.
    r"(?=[\djfmasond])(?:"
    + "|".join(f"(?P<form{n}>{form})".replace("{0}", f"{n}") for n, form in enumerate(_FORMS))
    + ")",
    re.IGNORECASE,
)
SLASHED = re.compile(r"(?<![\d/.])(\d{1,2})([/.])(\d{1,2})\2((?:19|20)\d\d)(?![\d/])")
TIME = re.compile(r"(?<![\d:.])(\d{1,2}):([0-5]\d)(?::[0-5]\d)?(?![\d:])(?: ?([ap])\.?m\b)?", re.IGNORECASE)
DAY_MINUTES = 24 * 60
RELATIVE = re.compile(
    rf"\b(yesterday|today|tomorrow|{'|'.join(WEEKDAYS)})\b|昨天|今天|明天|昨日|今日|明日", re.IGNORECASE
)
SHIFTS = {"yesterday": -1, "昨天": -1, "昨日": -1, "tomorrow": 1, "明天": 1, "明日": 1}


def dates(text: str) -> Iterator[Dated]:
    """Yield all dates, in the order of the text; of a form like 10/08/2026 both readings."""
    for found in (one for stretch in stretches(text) for one in DATE.finditer(text, *stretch)):
        yield Dated(found.start(), found.end(), _day(found))
    for found in SLASHED.finditer(text):
        first, second, year = int(found[1]), int(found[3]), int(found[4])
        for day, month in {(first, second), (second, first)}:
            if 1 <= month <= 12 and 1 <= day <= 31:  # noqa: PLR2004 - the calendar's
                yield Dated(found.start(), found.end(), Day(year, month, day))


def _day(found: "re.Match[str]") -> Day:
    assert found.lastgroup is not None
    form = next(number for number in range(len(_FORMS)) if found[f"form{number}"] is not None)
    given = found.groupdict()
    parts = {name: given.get(f"{name}{form}") for name in ("year", "number", "month", "day")}
    month = int(parts["number"] or 0) or MONTHS.get((parts["month"] or "").lower(), 0)
    return Day(int(parts["year"] or 0), month, int(parts["day"] or 0))


def times(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield times of day, or what is written like one: start, end, and `15:20`."""
    for found in TIME.finditer(text):
        hour, minute, half = int(found[1]), found[2], (found[3] or "").lower()
        hour = hour if not half else hour % 12 + (12 if half == "p" else 0)
        yield found.start(), found.end(), f"{hour:02d}:{minute}"


ZONES = {
    "utc": 0, "gmt": 0, "z": 0, "wet": 0, "bst": 60, "cet": 60, "mez": 60, "west": 60, "cest": 120, "mesz": 120,
    "eet": 120, "eest": 180, "msk": 180, "ist": 330, "cst": 480, "jst": 540, "kst": 540, "aest": 600, "est": -300,
    "edt": -240, "ct": -360, "cdt": -300, "mst": -420, "mdt": -360, "pst": -480, "pdt": -420,
}  # fmt: skip
"""Minutes ahead of UTC. `CST` is China's; America's is mostly written with its city."""
ZONE = re.compile(r" ?(?:[ap]\.?m\.? ?)?\(?([A-Za-z]{1,4})\b(?:([+-]\d{1,2})(?::?([0-5]\d))?\b)?", re.IGNORECASE)


def utc_minutes(clock: str, behind: str) -> int | None:
    """Return the minutes of the day, in UTC, of a time with a zone behind it; None when there is none."""
    found = ZONE.match(behind)
    ahead = ZONES.get(found[1].lower()) if found else None
    if found is None or ahead is None:
        return None
    if found[2]:
        ahead += int(found[2]) * 60 + (-1 if found[2][0] == "-" else 1) * int(found[3] or 0)
    hour, _, minute = clock.partition(":")
    return (int(hour) * 60 + int(minute) - ahead) % DAY_MINUTES


def fits(claimed: Day, known: Day) -> bool:
    """Return whether a source's date has all that a claimed one says."""
    return all(not claimed_part or claimed_part == there for claimed_part, there in zip(claimed, known, strict=True))


def dates_of(published: str) -> Day | None:
    """Return the date at the beginning of an ISO date or date-time."""
    try:
        day = date.fromisoformat(published[:10])
    except ValueError:
        return None
    return Day(day.year, day.month, day.day)


def near(text: str, published: Day) -> set[Day]:
    """Return the dates that words like `yesterday` and `Friday` may mean in a text of that day."""
    written = date(*published)
    meant: set[date] = set()
    for found in RELATIVE.finditer(text):
        word = found[0].lower()
        if word in WEEKDAYS:
            ahead = (WEEKDAYS.index(word) - written.weekday()) % 7
            days = [ahead, ahead - 7]
        else:
            days = [SHIFTS.get(word, 0)]
        meant |= {date.fromordinal(written.toordinal() + shift) for shift in days if written.toordinal() + shift > 0}
    return {Day(day.year, day.month, day.day) for day in meant}
