"""Numbers that a sentence rounds, and says so: about 2,000 for 1,987."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from fractions import Fraction

from explorer.reports.verify.indexed_source import IndexedSource
from explorer.reports.verify.quantities import Quantity

_ABOUT = "about|around|roughly|approximately|approx\\.?|circa|ca\\.|some|an estimated|estimated|or so|close to"
_UNDER = "nearly|almost|close to|just under|just below|under|below|less than|fewer than|up to|approaching"
_OVER = "more than|over|above|exceed(?:s|ed|ing)?|upwards of|at least|just over|north of|well over|beyond"
_ARTICLE = "(?: an?| the)? ?$"
ABOUT = re.compile(rf"(?:\b(?:{_ABOUT})|~|≈|大约|大概|约为|约|近乎|左右){_ARTICLE}", re.IGNORECASE)
UNDER = re.compile(rf"(?:\b(?:{_UNDER})|<|将近|接近|近|不到|不足|低于|少于){_ARTICLE}", re.IGNORECASE)
OVER = re.compile(rf"(?:\b(?:{_OVER})|>|超过|逾|超|高于|多于|不少于|至少){_ARTICLE}", re.IGNORECASE)
ABOUT_BEHIND = re.compile(r" ?(?:左右|上下|or so\b|-?ish\b)")
OVER_BEHIND = re.compile(r"\+|余|多(?=[名个家人台万亿次条年天])| or more\b| plus\b")
ABOUT_SHARE = Fraction(5, 100)
OVER_SHARE = Fraction(10, 100)
BEFORE_CHARS = 26
MAX_PLACES = 6


def bounds(claimed: Quantity, text: str) -> tuple[Fraction, Fraction] | None:
    """Between which numbers a source's number may lie, when the sentence says that it rounds."""
    before = text[max(0, claimed.start - BEFORE_CHARS) : claimed.start]
    value = max(claimed.values)
    if UNDER.search(before):
        return value * (1 - ABOUT_SHARE), value
    if OVER.search(before) or OVER_BEHIND.match(text, claimed.end) or "多" in claimed.text or "余" in claimed.text:
        return value, value * (1 + OVER_SHARE)
    if ABOUT.search(before) or ABOUT_BEHIND.match(text, claimed.end):
        return value * (1 - ABOUT_SHARE), value * (1 + ABOUT_SHARE)
    return None


def rounded(claimed: Quantity, text: str, indexed: IndexedSource) -> Iterator[Quantity]:
    """The source's numbers that may be meant by a rounded one: it is rounder than they are, and close."""
    between = bounds(claimed, text)
    if between is None:
        return
    low, high = between
    value = max(claimed.values)
    digits, place = _roundness(value)
    for known, one in indexed.in_order[bisect_left(indexed.in_order, low, key=lambda pair: pair[0]) :]:
        if known > high:
            return
        if abs(known - value) <= place and _roundness(known)[0] > digits:
            yield one


def _roundness(value: Fraction) -> tuple[int, Fraction]:
    """How many figures a number has but for zeros at its ends, and what the last of them stands for."""
    places = 0
    while value.denominator != 1 and places < MAX_PLACES:
        value, places = value * 10, places + 1
    figures = str(int(value))
    bare = figures.rstrip("0")
    return max(len(bare), 1), Fraction(10) ** (len(figures) - len(bare) - places)
