"""Dates that a question names, as tools take them: `from 10 to 16 August 2026`, `in August 2026`, `2026年8月`."""

import re
from typing import NamedTuple

from explorer.reports.verify.calendar_dates import Day, dates

RANGE = re.compile(
    r"(?:[A-Z][a-z]{2,8} )?(\d{1,2})(?:st|nd|rd|th)?\s*(?:to|until|till|through|and|bis|-|\u2013|至|到)\s*(?:the )?$",
)
"""The first day of a range, before the date that has its month."""
BEFORE = re.compile(r"\b(?:from|between|in|on|of|since|until|to|and|during|for)\s*$", re.IGNORECASE)
BEFORE_CHARS = 24


class NamedTime(NamedTuple):
    """When what a question asks about was, and the question without it."""

    since: str = ""
    until: str = ""
    rest: str = ""


def named_time(question: str) -> NamedTime:
    """Return the time between the dates of a question, which have a year and a month; empty without any."""
    found = [one for one in dates(question) if one.day.year and one.day.month]
    if not found:
        return NamedTime(rest=question)
    days = [one.day for one in found]
    rest, is_open = question, False
    for one in sorted(found, key=lambda dated: -dated.start):
        start = one.start
        first = RANGE.search(rest[max(0, start - BEFORE_CHARS) : start])
        if first and 0 < int(first[1]) < one.day.day:
            start -= len(first[0])
            days.append(one.day._replace(day=int(first[1])))
        word = BEFORE.search(rest[:start])
        is_open = is_open or (word is not None and word[0].strip().lower() == "since")
        rest = f"{rest[: word.start() if word else start].rstrip()} {rest[one.end :].lstrip()}"
    return NamedTime(_written(min(days)), "today" if is_open else _written(max(days)), " ".join(rest.split()))


def _written(day: Day) -> str:
    return f"{day.year}-{day.month:02d}" + (f"-{day.day:02d}" if day.day else "")
