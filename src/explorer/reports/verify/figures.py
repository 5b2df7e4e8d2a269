"""All figures of a plain text in one pass: dates, times, names, versions, and numbers with units in what is left."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from string import ascii_lowercase, digits
from typing import NamedTuple

from explorer.reports.verify.claims import Kind
from explorer.reports.verify.numerals import (
    AMBIGUOUS,
    BASIS_POINTS,
    CHINESE_DIGITS,
    CLOSE_ONLY,
    CURRENCY_SIGNS,
    CURRENCY_WORDS,
    FIGURES,
    GROUPED_BY_DOTS,
    LETTER_SCALES,
    MEASURES,
    PERCENT,
    PERCENT_WORDS,
    POINTS_OF_PERCENT,
    POWER,
    SCALES,
    SMALL_NUMBERS,
    WORDS,
    chinese_numbers,
    values_of,
    word_value,
)
from explorer.reports.verify.plain import words
from explorer.reports.verify.shares import WrittenShare, more_numbers, shares
from explorer.text.calendar_dates import Dated, dates, times
from explorer.workspace.threads import RaiseIfStopped, each, never_stopped

SIGN_CHARS = 5
FILLER = "\ufffc"
"""Stands where something was taken out: no letter, no figure, no space."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A figure as it is written in a text."""

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
    is_share: bool = False
    """A part of a whole in words: a third, which may as well be a word of the writer's."""


def _any_of(words: frozenset[str]) -> str:
    """Return a pattern of any of these; Latin words end where a word ends, signs and Chinese words anywhere."""
    latin = {word for word in words if word[-1].isascii() and word[-1].isalpha()}
    forms = [
        "|".join(re.escape(word) for word in sorted(some, key=lambda word: (-len(word), word)))
        for some in (latin, words - latin)
    ]
    return rf"(?:(?:{forms[0]})(?![A-Za-z]|\^?[23](?![\d.,]))|(?:{forms[1]}))"


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
MIN_PAIR = 10**4
AND_A_HALF = " and a half"
SMALLER = re.compile(r"(\d{1,4})([千百万萬]?)(?!\d)")
"""What may follow a Chinese scale: 1万8千."""
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
BETWEEN = re.compile(r" ?(?:-|to|through|by|至|到|\.\.) ?(?:[$€£¥]|US\$)?")
"""Between the ends of a range."""
ONE_AND = re.compile(rf"\ban?(?= (?:year|week|day|hour|minute|foot) and (?:\d|(?:{'|'.join(SMALL_NUMBERS)})\b))")
JOINED = re.compile(r",? ?(?:and |und |et )?")
"""Between the parts of a number in two units."""
PARTS_OF_HUNDRED = re.compile(r"百分之(?=[\d零\u3007一二两三四五六七八九十])")
TENTHS = re.compile(r"([一二两三四五六七八九])成([一二三四五六七八九]?)(?![为為员員功本果立长熟人就交都])")


def quantities(
    text: str, *, is_dotted: bool = False, raise_if_stopped: RaiseIfStopped = never_stopped
) -> list[Quantity]:
    """Return all figures of a plain text, in its order; dates and names must have been taken out before.

    Args:
        text: With `FILLER` where dates and names stood.
        is_dotted: The text's language groups figures by dots.
        raise_if_stopped: Called for each figure.
    """
    found = [_figure(text, match, is_dotted=is_dotted) for match in each(FIGURES.finditer(text), raise_if_stopped)]
    found += each(_words(text), raise_if_stopped)
    found += _tenths(text)
    parts = [_part(text, one) for one in shares(text)]
    taken = {place for part in parts for place in range(part.start, part.end)}
    found = [one for one in found if one and one.start not in taken] + parts
    return _compounds(text, _ranges(text, sorted(found, key=lambda one: one.start)))


def _figure(text: str, match: "re.Match[str]", *, is_dotted: bool) -> Quantity | None:
    values = values_of(match[0], is_dotted=is_dotted)
    if not values:
        return None
    start, end = match.span()
    if power := POWER.match(text, end):
        values, end = tuple(value ** int(power[1]) for value in values if value or int(power[1]) > 0), power.end()
    if text.startswith(AND_A_HALF, end):
        values, end = tuple(value + Fraction(1, 2) for value in values), end + len(AND_A_HALF)
    return measured(text, start, end, values)


def measured(text: str, start: int, end: int, values: tuple[Fraction, ...]) -> Quantity:
    """Return a number, with the scale, the unit and the `per` that stand around it."""
    sign = SIGN.search(text[max(0, start - SIGN_CHARS) : start])
    began = start - len(sign[0]) if sign else start
    scale, end = _scale(text, end)
    if scale >= MIN_PAIR and text[end - 1] in "万萬亿億" and (less := SMALLER.match(text, end)):
        values = tuple(value + Fraction(int(less[1]) * SCALES.get(less[2], 1), scale) for value in values)
        end = less.end()
    letter = LETTER.match(text, end) if scale == 1 else None
    if letter is not None:
        scale, end = LETTER_SCALES[letter[1]], letter.end()
    scaled = tuple(value * scale for value in values)
    if letter is not None and letter[1] in AMBIGUOUS and sign is None:
        scaled += values
    unit, end = _unit(text, end)
    if unit == BASIS_POINTS:
        scaled, unit = tuple(value / 100 for value in scaled), POINTS_OF_PERCENT
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
        if scale > 1 and not found[1].isascii():  # 万百 is no scale: the second is part of another word
            break
        scale, end = scale * SCALES[found[1].lower()], found.end()
        if scale > 10**15:
            break
    return scale, end


def _unit(text: str, end: int) -> tuple[str, int]:
    """Return the unit behind a number, and where it ends."""
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
    found = [(*match.span(), Fraction(1)) for match in ONE_AND.finditer(text)]
    found += more_numbers(text)
    found += [(*match.span(), word_value(match[0])) for match in WORDS.finditer(text)]
    found += () if text.isascii() else chinese_numbers(text)
    for start, end, value in found:
        yield replace(measured(text, start, end, (value,)), is_word=True)


def _part(text: str, one: WrittenShare) -> Quantity:
    values, unit = (one.percent,), POINTS_OF_PERCENT if one.is_points else PERCENT
    shown = text[one.start : one.end]
    return Quantity(one.start, one.end, shown, "percentage", values, unit, is_word=True, is_share=True)


def _tenths(text: str) -> Iterator[Quantity]:
    """Yield Chinese tenths as percentages: `三成` is thirty per cent."""
    for match in TENTHS.finditer(text):
        value = Fraction(10 * CHINESE_DIGITS[match[1]] + CHINESE_DIGITS.get(match[2], 0))
        yield Quantity(match.start(), match.end(), match[0], "percentage", (value,), "%")


def _ranges(text: str, found: list[Quantity]) -> list[Quantity]:
    """Return the numbers; the ends of a range share what only one has: `5-10 million euros`, `$5-10 million`."""
    whole = list(found)
    for place, (one, other) in enumerate(pairwise(found)):
        if one.end <= other.start and BETWEEN.fullmatch(text[one.end : other.start]):
            is_one_kind = not one.unit or not other.unit or one.unit == other.unit
            scaled = tuple(value * other.scale for value in one.values) if one.scale == 1 < other.scale else ()
            scaled = scaled if is_one_kind else ()
            whole[place] = _shared(whole[place], other, scaled)
            whole[place + 1] = _shared(other, whole[place], ())
    return whole


def _compounds(text: str, found: list[Quantity]) -> list[Quantity]:
    """Return the numbers, and one in the smaller unit for two parts: `3 hours and 40 minutes`, `5 feet 11 inches`."""
    whole = list(found)
    for one, other in pairwise(found):
        larger, smaller = MEASURES.get(one.unit), MEASURES.get(other.unit)
        if larger is None or smaller is None or larger.of != smaller.of or larger.size <= smaller.size:
            continue
        if one.end <= other.start and JOINED.fullmatch(text[one.end : other.start]):
            value = max(one.values) * larger.size / smaller.size + max(other.values)
            shown = text[one.start : other.end]
            whole.append(replace(other, start=one.start, text=shown, values=(value,), scale=1))
    return sorted(whole, key=lambda one: (one.start, -one.end))


def wholes(found: Sequence[Quantity]) -> list[Quantity]:
    """Return numbers without those that are parts of another one, or have one place and not one meaning."""
    first: dict[tuple[int, int], Quantity] = {}
    left_out = {place for one in found if first.setdefault(place := (one.start, one.end), one) != one}
    reached = -1
    for start, end in sorted(first, key=lambda place: (place[0], -place[1])):
        if start < end <= reached:
            left_out.add((start, end))
        reached = max(reached, end)
    return [one for one in found if (one.start, one.end) not in left_out]


def _shared(one: Quantity, other: Quantity, scaled: tuple[Fraction, ...]) -> Quantity:
    if one.unit or not other.unit:
        return replace(one, values=one.values + scaled)
    return replace(one, values=one.values + scaled, unit=other.unit, kind=other.kind, per=one.per or other.per)


class Named(NamedTuple):
    """A name or a version in a text."""

    start: int
    end: int
    text: str


TOKEN = re.compile(r"(?<![A-Za-z0-9_$€£¥.,])[A-Za-z0-9_]+(?:[-./+#@][A-Za-z0-9_]+)*\+{0,2}")
STARTS_AS_NUMBER = re.compile(r"\d[\d.,]*(?:-[a-z]+)*(?:-?([A-Za-z]+))?(?:[/-].*)?")
"""24-node, 12GB, 3rd, 1990s, 100-metre: a number and what it counts."""
NUMBER_LETTERS = frozenset(
    {*SCALES, *LETTER_SCALES, *MEASURES, *PERCENT_WORDS, "st", "nd", "rd", "th", "s", "am", "pm", "d", "yo", "ish", "e"}
)
_BEFORE_NUMBERS = (
    "mid pre post sub non late early circa ca over under top near multi anti ex no nr fig pp p vol ch sec section step "
    "part level tier type phase stage layer day week month year page line item rank about around some at of to from"
)
BEFORE_NUMBERS = frozenset(_BEFORE_NUMBERS.split())
"""Words that a hyphen or a dot may tie to a number that is one all the same: mid-2023, No.5."""
TIED = re.compile(r"([A-Za-z]+)[-.]\d[\d.,]*s?")
SOURCE_ID = re.compile(r"S\d+")
LETTERS = re.compile(r"[A-Za-z]+")
ZONE = re.compile(r"\b(?:UTC|GMT)[+-]\d{1,2}")
MARKED_VERSION = re.compile(
    r"(?<![A-Za-z0-9.])(?:v\.? ?|versions? |releases? |ver\.? ?|版本(?:号)?:? ?)"
    r"(\d+(?:\.\d+)*)(?:-?(?:alpha|beta|rc)\.?\d*)?(?![A-Za-z0-9_%]|\.\d|,\d| (?:million|billion|thousand|percent))",
    re.IGNORECASE,
)
DOTTED_VERSION = re.compile(r"(?<![A-Za-z0-9_.])(\d+(?:\.\d+){2,})(?:-?(?:alpha|beta|rc)\.?\d*)?(?![A-Za-z0-9_])")
PIECE = re.compile(r"[a-z]+|\d+|[^a-z\d\s]+")
LATIN = frozenset(ascii_lowercase)
ALNUM = LATIN | frozenset(digits)


def names(text: str) -> Iterator[Named]:
    """Yield words in which letters and figures stand together, but for numbers with their unit."""
    for found in TOKEN.finditer(text):
        token = found[0]
        if _is_name(token):
            yield Named(found.start(), found.end(), token)


def _is_name(token: str) -> bool:
    has_both = any(c.isdigit() for c in token) and any(c.isalpha() for c in token)
    if not has_both or SOURCE_ID.fullmatch(token) or MARKED_VERSION.fullmatch(token):
        return False
    if token[0].isdigit():
        number = STARTS_AS_NUMBER.fullmatch(token)
        return number is None or not _counts(token, number[1] or "")
    tied = TIED.fullmatch(token)
    if tied and tied[1].lower() in BEFORE_NUMBERS:
        return False
    letters = LETTERS.match(token)
    return letters is None or letters[0] not in CURRENCY_SIGNS


def _counts(token: str, letters: str) -> bool:
    is_tied = re.match(r"\d[\d.,]*-", token) is not None
    return is_tied or not letters or letters in NUMBER_LETTERS or letters.lower() in NUMBER_LETTERS


def versions(text: str) -> Iterator[tuple[Named, str]]:
    """Yield versions that are marked as such or have three parts, each with its figures alone."""
    for pattern in (MARKED_VERSION, DOTTED_VERSION):
        for found in pattern.finditer(text):
            if pattern is DOTTED_VERSION and GROUPED_BY_DOTS.fullmatch(found[0]):
                continue  # 1.948.211 is a number
            yield Named(found.start(), found.end(), found[0].strip()), found[1]


def release(figures: str) -> tuple[int, ...]:
    """Return a version as numbers, without zeros at its end: 2.0 is 2."""
    parts = [int(part[:18]) for part in figures.split(".") if part]
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def has_name(text: str, name: str) -> bool:
    """Return whether a name is among the words of a text: GPT-4o, GPT 4o, gpt4o.

    Without a pattern of its own for each name: the module `re` keeps the last five hundred for the whole process.

    Args:
        text: Lower-case words with one space between them.
        name: As it is written in a sentence.
    """
    pieces = [piece for word in words(name) for piece in PIECE.findall(word)]
    if len(pieces) > 1 and pieces[-1] == "s":
        pieces.pop()
    if not pieces:
        return True
    start = text.find(pieces[0])
    while start >= 0:
        if text[start - 1 : start] not in ALNUM and _ends_name(text, _end_of(pieces, text, start)):
            return True
        start = text.find(pieces[0], start + 1)
    return False


def _end_of(pieces: Sequence[str], text: str, place: int) -> int:
    """Return where the pieces, with at most one space between two, end; -1 when they are not all there."""
    for number, piece in enumerate(pieces):
        place += number > 0 and text.startswith(" ", place)
        if not text.startswith(piece, place):
            return -1
        place += len(piece)
    return place


def _ends_name(text: str, end: int) -> bool:
    """Return whether no word or number goes on at a place, but for a plural's s."""
    following = text[end : end + 2]
    return end > 0 and (following[:1] not in ALNUM or (following[:1] == "s" and following[1:] not in LATIN))


BARE_YEAR = re.compile(r"\d{4}")
OF_YEARS = frozenset(["time", "months", "points", "comments", "times", "degrees"])
"""What a year may stand before without being a number of it."""
RATIO = re.compile(r"(?<![\d:.])\d{1,4}:\d{1,4}(?![\d:])")


@dataclass(frozen=True, slots=True)
class Figures:
    """What a text has, each with its place in it."""

    dates: tuple[Dated, ...]
    times: tuple[tuple[Named, str], ...]
    """Times of day, with `15:20`; scores like 16:9 are among them."""
    versions: tuple[tuple[Named, str], ...]
    names: tuple[Named, ...]
    quantities: tuple[Quantity, ...]


def figures(text: str, *, is_dotted: bool = False, raise_if_stopped: RaiseIfStopped = never_stopped) -> Figures:
    """Find them all; what is part of one is not found again as another. `quantities` says what it is given."""
    # Dates and times may be written like a name: 10Aug2026, 2026-08-10T09:12.
    found = each(names(text), raise_if_stopped)
    shown = [one for one in found if not (ZONE.fullmatch(one.text) or re.match(r"\d{4}-\d\d", one.text))]
    text = _without(text, ((one.start, one.end) for one in shown))
    days = [one for one in each(dates(text), raise_if_stopped) if not _is_measured(text, one)]
    text = _without(text, ((one.start, one.end) for one in days))
    hours = [(Named(start, end, text[start:end]), clock) for start, end, clock in times(text)]
    taken = {place for one, _ in hours for place in range(one.start, one.end)}
    ratios = (found for found in RATIO.finditer(text) if found.start() not in taken)
    hours += [(Named(*found.span(), found[0]), found[0]) for found in ratios]
    text = _without(text, [*((one.start, one.end) for one, _ in hours), *(one.span() for one in ZONE.finditer(text))])
    releases = _apart(list(versions(text)))
    text = _without(text, ((one.start, one.end) for one, _ in releases))
    numbers = quantities(text, is_dotted=is_dotted, raise_if_stopped=raise_if_stopped)
    return Figures(tuple(days), tuple(hours), tuple(releases), tuple(shown), tuple(numbers))


def _is_measured(text: str, one: Dated) -> bool:
    """Return whether what looks like a year is a number of something: `1500 MHz`."""
    found = MEASURE.match(text, one.end) if BARE_YEAR.fullmatch(text[one.start : one.end]) else None
    is_unit = found is not None and not (found[1] and found[2] in CLOSE_ONLY)
    return is_unit and MEASURES[found[2]].of not in OF_YEARS if found else False


def _apart(found: list[tuple[Named, str]]) -> list[tuple[Named, str]]:
    """Keep each version once, in its longest form."""
    kept: list[tuple[Named, str]] = []
    for one in sorted(found, key=lambda pair: (pair[0].start, -pair[0].end)):
        if not kept or one[0].start >= kept[-1][0].end:
            kept.append(one)
    return kept


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the text with fillers in place of some parts, so that every place keeps its number."""
    pieces: list[str] = []
    position = 0
    for start, end in sorted(spans):
        if start >= position:
            pieces += [text[position:start], FILLER * (end - start)]
            position = end
    return "".join([*pieces, text[position:]])
