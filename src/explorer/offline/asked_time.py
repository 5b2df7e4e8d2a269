"""The time that a question names, as tools take it, in English, German, Chinese and Japanese, and the rest of it.

`from 10 to 16 August 2026`, `2026年8月`, `last week`, `since Monday`, `in den letzten drei Tagen`, `最近三天`.
"""

import re
from typing import NamedTuple

from explorer.text.calendar_dates import Day, dates
from explorer.text.words import WEEKDAYS

RANGE = re.compile(
    r"(?:[A-Z][a-z]{2,8} )?(\d{1,2})(?:st|nd|rd|th)?\s*(?:to|until|till|through|and|bis|-|\u2013|至|到)\s*(?:the )?$"
)
"""The first day of a range, before the date that has its month."""
BEFORE = re.compile(
    r"\b(?:(?:from|between|in|on|of|since|until|to|and|during|for|over|within|at|am|seit|vom|von|im|für|in den)\s+)+"
    r"(?:(?:the|den|der|dem)\s+)?$",
    re.IGNORECASE,
)
LED_CHARS = 60
"""Characters before a time in which words lead to it."""
BEFORE_CHARS = 24
OPEN = re.compile(r"\b(?:since|seit)\b", re.IGNORECASE)
"""A word before a time that makes it last until now."""
A_DAY = "24h"
DAYS = {"hour": 0, "day": 1, "week": 7, "month": 30, "year": 365}
"""How many days a unit has; an hour has none of its own."""
UNITS = {
    "hour": "hour", "stunde": "hour", "小时": "hour", "時間": "hour",
    "day": "day", "tag": "day", "天": "day", "日": "day", "日間": "day",
    "week": "week", "woche": "week", "周": "week", "星期": "week", "週間": "week", "週": "week",
    "month": "month", "monat": "month", "个月": "month", "か月": "month", "ヶ月": "month", "月": "month",
    "year": "year", "jahr": "year", "年": "year", "年間": "year",
}  # fmt: skip
COUNTS = {
    "a": 1, "couple": 2, "two": 2, "three": 3, "few": 3, "several": 5, "four": 4, "five": 5, "six": 6, "seven": 7,
    "ten": 10, "twelve": 12, "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "sieben": 7, "zehn": 10, "paar": 3,
    "一": 1, "两": 2, "二": 2, "三": 3, "几": 3, "数": 3, "四": 4, "五": 5, "六": 6, "七": 7, "十": 10,
}  # fmt: skip
GERMAN_WEEKDAYS = ("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag")
_NUMBER = r"(?P<number>\d{1,3}|" + "|".join(COUNTS) + ")"
_UNIT = rf"(?P<unit>{'|'.join(sorted(UNITS, key=len, reverse=True))})"
_BACK = re.compile(
    rf"\b(?:last|past|previous|letzten|vergangenen)\s+(?:a\s+)?{_NUMBER}(?:\s+of)?\s*{_UNIT}(?:s|n|en)?\b"
    rf"|(?:最近|过去|近|過去|ここ)(?:的)?\s*{_NUMBER.replace('number', 'number2')}\s*{_UNIT.replace('unit', 'unit2')}",
    re.IGNORECASE,
)
_AGO = re.compile(
    rf"\b(?:\d{{1,3}}|{'|'.join(COUNTS)})\s+(?:hour|day|week|month|year)s?\s+ago\b|\bvor\s+\w+\s+(?:Stunde|Tag|Woche|Monat|Jahr)\w*",
    re.IGNORECASE,
)
"""A time that is not exact enough to search by: it is only taken out of the question."""
_YESTERDAY = r"\byesterday(?:'s)?\b|\bgestern\b|昨天|昨日|きのう"
_TODAY = (
    r"\btoday(?:'s)?\b|\bthis (?:morning|afternoon|evening)\b|\btonight\b|\bright now\b"
    r"|\bheute(?:\s+(?:morgen|früh))?\b|今天|今日|今朝|きょう"
)
_LAST = (
    r"\blast (?:week|month|year)(?:'s)?\b"
    r"|\b(?:letzte|vorige|vergangene)[nrs]? (?:woche|monat|jahr)e?s?\b|上(?:个)?(?:周|星期|月)|去年|先週|先月|昨年"
)
_THIS = (
    r"\b(?:this|past|current) (?:week|month|year)(?:'s)?\b"
    r"|\b(?:diese|laufende)[nrsm]? (?:woche|monat|jahr)e?s?\b"
    r"|(?:本|这个?|这一)(?:周|星期|月)|最近一(?:周|个月)|今年|今週|今月"
)
NAMED = (
    (re.compile(_YESTERDAY, re.IGNORECASE), "yesterday", "yesterday"),
    (re.compile(_TODAY, re.IGNORECASE), A_DAY, "today"),
    (re.compile(_LAST, re.IGNORECASE), "last {unit}", "last {unit}"),
    (re.compile(_THIS, re.IGNORECASE), "{days}d", "today"),
)
"""Patterns, with the time as tools read it, in which the unit of what was found is put."""
YEAR = re.compile(r"\b(?:of|in|from|during|since|seit)\s+((?:19|20)\d\d)\b(?!-)", re.IGNORECASE)
WEEKDAY = re.compile(rf"\b(?:last |letzten )?({'|'.join((*WEEKDAYS, *GERMAN_WEEKDAYS))})\b", re.IGNORECASE)


class AskedTime(NamedTuple):
    """When what a question asks about was, and the question without it."""

    since: str = ""
    until: str = ""
    rest: str = ""
    days: int = 0
    """About how many days it has; 0: no time is named."""


def time_asked(question: str) -> AskedTime:
    """Return the time that a question names; a day or a month with its year comes before words such as `last week`."""
    named = _dated(question)
    if named.since:
        return named
    if found := _BACK.search(question):
        hours = _hours(found)
        since = f"{hours // 24}d" if hours % 24 == 0 and hours > 24 else f"{hours}h"  # noqa: PLR2004 - hours of a day
        return AskedTime(since, "today", _cut(question, *found.span()), max(1, hours // 24))
    for pattern, since, until in NAMED:
        if found := pattern.search(question):
            unit = next((unit for name, unit in UNITS.items() if name in found[0].lower()), "day")
            days = DAYS[unit]
            return AskedTime(
                since.format(unit=unit, days=days), until.format(unit=unit), _cut(question, *found.span()), days
            )
    if found := YEAR.search(question):
        until = "today" if OPEN.match(found[0]) else found[1]
        return AskedTime(found[1], until, _cut(question, *found.span()), DAYS["year"])
    if found := WEEKDAY.search(question):
        name = found[1].lower()
        day = WEEKDAYS[GERMAN_WEEKDAYS.index(name)] if name in GERMAN_WEEKDAYS else name
        is_open = OPEN.search(question[max(0, found.start() - BEFORE_CHARS) : found.start()])
        until, days = ("today", DAYS["week"]) if is_open else (day, 1)
        return AskedTime(day, until, _cut(question, *found.span()), days)
    return AskedTime(rest=_AGO.sub(" ", question))


def _hours(found: re.Match[str]) -> int:
    """Return a length of time in hours."""
    number = (found["number"] or found["number2"]).lower()
    count = int(number) if number.isdigit() else COUNTS[number]
    unit = UNITS[(found["unit"] or found["unit2"]).lower()]
    return count * (24 * DAYS[unit] or 1)


def _cut(question: str, start: int, end: int) -> str:
    """Return a question without a time, and without the words that lead to it."""
    before = BEFORE.search(question, max(0, start - LED_CHARS), start)
    return f"{question[: before.start() if before else start].rstrip()} {question[end:].lstrip()}".strip()


def _dated(question: str) -> AskedTime:
    """Return the time between the dates of a question, which have a year and a month; empty without any."""
    found = [one for one in dates(question) if one.day.year and one.day.month]
    if not found:
        return AskedTime(rest=question)
    days = [one.day for one in found]
    rest, is_open = question, False
    for one in sorted(found, key=lambda dated: -dated.start):
        start = one.start
        first = RANGE.search(rest[max(0, start - BEFORE_CHARS) : start])
        if first and 0 < int(first[1]) < one.day.day:
            start -= len(first[0])
            days.append(one.day._replace(day=int(first[1])))
        is_open = is_open or OPEN.search(rest[max(0, start - BEFORE_CHARS) : start]) is not None
        rest = _cut(rest, start, one.end)
    first_day, last_day = min(days), max(days)
    until = "today" if is_open else _written(last_day)
    return AskedTime(_written(first_day), until, " ".join(rest.split()), _count(first_day, last_day, is_open=is_open))


def _count(first: Day, last: Day, *, is_open: bool) -> int:
    """Return about how many days there are from one to the other, both included."""
    if is_open or not (first.day and last.day):
        return DAYS["month"] * (1 + 12 * (last.year - first.year) + last.month - first.month)
    return 1 + 365 * (last.year - first.year) + 30 * (last.month - first.month) + last.day - first.day


def _written(day: Day) -> str:
    return f"{day.year}-{day.month:02d}" + (f"-{day.day:02d}" if day.day else "")
