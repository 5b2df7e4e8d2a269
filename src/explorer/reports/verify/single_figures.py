"""Figures that follow from one figure of a source: for another period, doubled or halved, years after a year.

Each looks for the figure that would have to be there, so that of many figures none fits by chance.
"""

import re
from bisect import bisect_left
from fractions import Fraction
from itertools import islice

from explorer.reports.verify.amounts import bounds
from explorer.reports.verify.figures import Quantity
from explorer.reports.verify.indexed_source import IndexedSource
from explorer.reports.verify.numerals import MEASURES
from explorer.text.words import sentence_ends

PERIOD_CHARS = 40
DAYS_OF = {"day": 1, "week": 7, "month": Fraction(365, 12), "quarter": Fraction(365, 4), "year": 365}
PERIOD = re.compile(
    r"\b(?:an?|per|each|every) (?P<name>day|week|month|quarter|year)\b"
    r"|\b(?P<often>daily|weekly|monthly|quarterly|annual(?:ly)?|yearly)\b",
    re.IGNORECASE,
)
OFTEN = {"dai": "day", "wee": "week", "mon": "month", "qua": "quarter", "ann": "year", "yea": "year"}
CHANGED = re.compile(
    r"\b(?:(?P<half>halv\w+)|(?P<two>doubl\w+)|(?P<three>tripl\w+)|(?P<four>quadrupl\w+))", re.IGNORECASE
)
FACTORS = {"half": Fraction(1, 2), "two": Fraction(2), "three": Fraction(3), "four": Fraction(4)}
CHANGE_CHARS = 80
SLACK = Fraction(2, 100)
"""A month has 30.4 days, or four weeks; writers round."""
YEARS_BEHIND = re.compile(r"[ -]years?\b")
YEARS = frozenset(["year", "years"])
MAX_SENTENCE_CHARS = 400
MAX_TRIED = 200
"""Figures or years of a source that are tried for one of a sentence: a page may have a hundred thousand."""
MAX_NEAR = 8


def from_one_figure(one: Quantity, text: str, indexed: IndexedSource) -> str:
    """Return how a number follows from one of a source's figures; empty when it does not."""
    return _for_another_period(one, text, indexed) or _before_a_change(one, text, indexed)


def years_after(year: int, indexed: IndexedSource) -> str:
    """Return how a year follows from a year and a number of years in one sentence of a source; empty otherwise."""
    spans = ((dated, year - dated.day.year) for dated in indexed.dated if 0 < dated.day.year < year)
    there = ((dated, span) for dated, span in spans if Fraction(span) in indexed.by_value)
    for dated, span in islice(there, MAX_TRIED):
        start, end = _sentence(indexed.plain, dated.start)
        ones = indexed.by_value[Fraction(span)]
        for one in ones[bisect_left(ones, start, key=lambda one: one.start) :][:MAX_NEAR]:
            if one.start < end and (one.unit in YEARS or YEARS_BEHIND.match(indexed.plain, one.end)):
                return f"worked out from {dated.day.year} and {span} years of {indexed.source.id}"
    return ""


def _sentence(text: str, place: int) -> tuple[int, int]:
    begin = max(0, place - MAX_SENTENCE_CHARS)
    part = text[begin : place + MAX_SENTENCE_CHARS]
    ends = [begin + one.end for one in sentence_ends(part)]
    start = max((end for end in ends if end <= place), default=begin)
    return start, min((end for end in ends if end > place), default=begin + len(part))


def _for_another_period(one: Quantity, text: str, indexed: IndexedSource) -> str:
    """Return why a figure follows from one for another period: `$100 a month` from `$1,200 annually`; else ""."""
    mine = _period(text[one.end : one.end + PERIOD_CHARS])
    if not mine:
        return ""
    value = max(one.values)
    for name, days in DAYS_OF.items():
        factor = Fraction(days) / DAYS_OF[mine]
        for there in _with_value(value * factor, one, text, indexed, factor) if name != mine else ():
            if _period(indexed.plain[there.end : there.end + PERIOD_CHARS]) == name:
                return f"worked out from {there.text} a {name} of {indexed.source.id}"
    return ""


def _period(behind: str) -> str:
    found = PERIOD.search(re.split(r"[.;!?](?:\s|$)", behind, maxsplit=1)[0])
    if found is None:
        return ""
    return (found["name"] or OFTEN[found["often"][:3].lower()]).lower()


def _before_a_change(one: Quantity, text: str, indexed: IndexedSource) -> str:
    """Return why a figure follows from a change: `1 million before` from `2 million, after it doubled`; else ""."""
    for name, factor in FACTORS.items():
        for there in _with_value(max(one.values) * factor, one, text, indexed, factor):
            near = indexed.plain[max(0, there.start - CHANGE_CHARS) : there.end + CHANGE_CHARS]
            if any(found[name] for found in CHANGED.finditer(near)):
                return f"worked out from {there.text} of {indexed.source.id}, which says how it changed"
    return ""


def _with_value(value: Fraction, one: Quantity, text: str, indexed: IndexedSource, factor: Fraction) -> list[Quantity]:
    """Return the first figures of a source that have a value in the unit of a number, as exactly as that is written."""
    between = bounds(one, text) or (max(one.values), max(one.values))
    low, high = (Fraction(end) * factor for end in between)
    low, high = min(low, value * (1 - SLACK)), max(high, value * (1 + SLACK))
    begin = bisect_left(indexed.in_order, low, key=lambda pair: pair[0])
    tried = islice(indexed.in_order, begin, begin + MAX_TRIED)
    return [there for known, there in tried if known <= high and _unit(there) == _unit(one)]


def _unit(one: Quantity) -> str:
    return MEASURES[one.unit].of if one.unit in MEASURES else one.unit
