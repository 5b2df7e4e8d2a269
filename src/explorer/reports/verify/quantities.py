"""Figures in a plain text: numbers with their scale and unit, money, percentages, words for numbers."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from explorer.reports.verify.claims import Kind
from explorer.reports.verify.numerals import FIGURES, POWER, WORDS, chinese_numbers, values_of, word_value
from explorer.reports.verify.units import (
    AMBIGUOUS,
    CLOSE_ONLY,
    CURRENCY_SIGNS,
    CURRENCY_WORDS,
    LETTER_SCALES,
    MEASURES,
    PERCENT_WORDS,
    SCALES,
)

SIGN_CHARS = 5
FILLER = "\ufffc"
"""Stands where something was taken out: no letter, no figure, no space."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A figure as it stands in a text."""

    start: int
    end: int
    text: str
    kind: Kind
    values: tuple[Fraction, ...]
    """What it may mean: `5m` is 5 of something or 5 million."""
    unit: str = ""
    """`%`, `pp`, a currency's code, or a spelling of `MEASURES`; empty when there is none that is known."""
    per: str = ""
    """`hour` in `20 an hour`."""
    scale: int = 1
    is_word: bool = False
    """Written in words: three."""


def _any_of(words: frozenset[str]) -> str:
    """Any of these; Latin words end where a word ends, signs and Chinese words wherever they end."""
    latin = {word for word in words if word[-1].isascii() and word[-1].isalpha()}
    forms = [
        "|".join(re.escape(word) for word in sorted(some, key=lambda word: (-len(word), word)))
        for some in (latin, words - latin)
    ]
    return rf"(?:(?:{forms[0]})(?![A-Za-z])|(?:{forms[1]}))"


_SIGNS = "|".join(re.escape(sign) for sign in sorted(CURRENCY_SIGNS, key=len, reverse=True))
_UNITS = frozenset(CURRENCY_WORDS) | frozenset(PERCENT_WORDS)
CURRENCIES = frozenset(CURRENCY_WORDS.values())
PERCENTS = frozenset(PERCENT_WORDS.values())
SIGN = re.compile(rf"(?<![A-Za-z])({_SIGNS}) ?$")
SCALE = re.compile(rf"[ -]?({_any_of(frozenset(SCALES))})", re.IGNORECASE)
PREFIX = re.compile(r" ?兆[瓦赫字比位]")
"""Here it is mega, and part of a unit."""
LETTER = re.compile(rf"([{''.join(LETTER_SCALES)}])(?![A-Za-z0-9])")
WORD_UNIT = re.compile(rf"[ -]?({_any_of(_UNITS)})", re.IGNORECASE)
MEASURE = re.compile(rf"([ -]?)({_any_of(frozenset(MEASURES))})")
_PERIODS = "second|minute|hour|day|night|week|month|quarter|year|user|person|seat|request|token"
PER = re.compile(
    rf"(?: [a-z]{{1,20}})?(?: ?/ ?| per | an? | each | every )({_PERIODS}|secs?|mins?|hrs?|mo|yr|[shd])(?![A-Za-z])"
)
PER_BEFORE = re.compile(r"每(?:个|一)?(秒|分钟|小时|天|日|周|月|年|人)[^。;,\d]{0,4}$")
PERIODS = {
    "sec": "second", "s": "second", "min": "minute", "hr": "hour", "h": "hour", "d": "day", "mo": "month", "yr": "year",
    "秒": "second", "分钟": "minute", "小时": "hour", "天": "day", "日": "day",
    "周": "week", "月": "month", "年": "year",
    "人": "person",
}  # fmt: skip
BETWEEN = re.compile(r" ?(?:-|to|through|至|到|\.\.) ?(?:[$€£¥]|US\$)?")
"""Between the ends of a range."""
PARTS_OF_HUNDRED = re.compile(r"百分之(?=[\d零\u3007一二两三四五六七八九十])")
TENTHS = re.compile(r"([一二三四五六七八九])成(?![为為员員功本果立长熟人就交都])")


def quantities(text: str, *, is_dotted: bool = False) -> list[Quantity]:
    """All figures of a plain text, in its order; dates and names must have been taken out before.

    Args:
        text: With `FILLER` where dates and names stood.
        is_dotted: The text's language groups figures by dots.
    """
    found = [_figure(text, match, is_dotted=is_dotted) for match in FIGURES.finditer(text)]
    found += _words(text)
    found += _tenths(text)
    return _ranges(text, sorted((one for one in found if one is not None), key=lambda one: one.start))


def _figure(text: str, match: "re.Match[str]", *, is_dotted: bool) -> Quantity | None:
    values = values_of(match[0], is_dotted=is_dotted)
    if not values:
        return None
    start, end = match.span()
    if power := POWER.match(text, end):
        values, end = tuple(value ** int(power[1]) for value in values if value or int(power[1]) > 0), power.end()
    return measured(text, start, end, values)


def measured(text: str, start: int, end: int, values: tuple[Fraction, ...]) -> Quantity:
    """A number, with the scale, the unit and the `per` that stand around it."""
    sign = SIGN.search(text[max(0, start - SIGN_CHARS) : start])
    began = start - len(sign[0]) if sign else start
    scale, end = _scale(text, end)
    letter = LETTER.match(text, end) if scale == 1 else None
    if letter is not None:
        scale, end = LETTER_SCALES[letter[1]], letter.end()
    scaled = tuple(value * scale for value in values)
    if letter is not None and letter[1] in AMBIGUOUS and sign is None:
        scaled += values
    unit, end = _unit(text, end)
    if sign is not None:
        unit = CURRENCY_SIGNS[sign[1]]
    elif PARTS_OF_HUNDRED.search(text[max(0, start - 3) : start + 1]):
        unit, began = "%", start - 3
    per = PER.match(text, end)
    per_before = PER_BEFORE.search(text[max(0, start - 10) : start])
    period = per[1] if per else per_before[1] if per_before else ""
    period = PERIODS.get(period.removesuffix("s") if period not in PERIODS else period, period)
    kind = _kind(unit, is_money=sign is not None)
    return Quantity(began, end, text[began:end], kind, scaled, unit, period, scale)


def _scale(text: str, end: int) -> tuple[int, int]:
    scale = 1
    while (found := SCALE.match(text, end)) and not PREFIX.match(text, found.start()):
        scale, end = scale * SCALES[found[1].lower()], found.end()
        if scale > 10**15:
            break
    return scale, end


def _unit(text: str, end: int) -> tuple[str, int]:
    """The unit behind a number, and where it ends."""
    if found := WORD_UNIT.match(text, end):
        word = found[1].lower()
        return CURRENCY_WORDS.get(word) or PERCENT_WORDS[word], found.end()
    found = MEASURE.match(text, end)
    if found is None or (found[1] == " " and found[2] in CLOSE_ONLY):
        return "", end
    return found[2], found.end()


def _kind(unit: str, *, is_money: bool) -> Kind:
    if is_money or unit in CURRENCIES:
        return "money"
    return "percentage" if unit in PERCENTS else "number"


def _words(text: str) -> Iterator[Quantity]:
    for match in WORDS.finditer(text):
        yield replace(measured(text, *match.span(), (word_value(match[0]),)), is_word=True)
    if not text.isascii():
        for start, end, value in chinese_numbers(text):
            yield replace(measured(text, start, end, (value,)), is_word=True)


def _tenths(text: str) -> Iterator[Quantity]:
    """三成: thirty per cent."""
    for match in TENTHS.finditer(text):
        value = Fraction(10 * ("一二三四五六七八九".index(match[1]) + 1))
        yield Quantity(match.start(), match.end(), match[0], "percentage", (value,), "%")


def _ranges(text: str, found: list[Quantity]) -> list[Quantity]:
    """`5-10 million euros`, `$5-10 million`: the ends share what only one of them has."""
    whole = list(found)
    for place, (one, other) in enumerate(pairwise(found)):
        if one.end <= other.start and BETWEEN.fullmatch(text[one.end : other.start]):
            scaled = tuple(value * other.scale for value in one.values) if one.scale == 1 < other.scale else ()
            whole[place] = _shared(whole[place], other, scaled)
            whole[place + 1] = _shared(other, whole[place], ())
    return whole


def _shared(one: Quantity, other: Quantity, scaled: tuple[Fraction, ...]) -> Quantity:
    if one.unit or not other.unit:
        return replace(one, values=one.values + scaled)
    return replace(one, values=one.values + scaled, unit=other.unit, kind=other.kind, per=one.per or other.per)
