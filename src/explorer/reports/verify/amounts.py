"""Whether a source has a number: in whatever form, with a unit that fits, converted, or rounded where that is said."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from explorer.reports.verify.figures import Quantity, release
from explorer.reports.verify.indexed_source import IndexedSource
from explorer.reports.verify.numerals import MEASURES, ORDINALS, POINTS_OF_PERCENT, Measure
from explorer.reports.verify.plain import words

_ABOUT = (
    "about|around|roughly|approximately|approx\\.?|circa|ca\\.|some|an estimated|estimated|or so|close to"
    "|rund|etwa|ungefähr|environ"
)
_UNDER = (
    "nearly|almost|close to|just under|just below|under|below|less than|fewer than|up to|approaching"
    "|knapp|fast|beinahe|unter|weniger als|presque|moins de|près de"
)
_OVER = (
    "more than|over|above|exceed(?:s|ed|ing)?|upwards of|at least|just over|north of|well over|beyond"
    "|mehr als|über|gut|plus de"
)
_ARTICLE = "(?: an?| the)? ?$"
ABOUT = re.compile(rf"(?:\b(?:{_ABOUT})|~|≈|大约|大概|约为|约|近乎|左右){_ARTICLE}", re.IGNORECASE)
UNDER = re.compile(rf"(?:\b(?:{_UNDER})|<|将近|接近|近|不到|不足|低于|少于){_ARTICLE}", re.IGNORECASE)
OVER = re.compile(rf"(?:\b(?:{_OVER})|>|超过|逾|超|高于|多于|不少于|至少){_ARTICLE}", re.IGNORECASE)
ABOUT_BEHIND = re.compile(r" ?(?:左右|上下|or so\b|-?ish\b)")
OVER_BEHIND = re.compile(r"\+|余|多(?=[名个家人台万亿次条年天])| or more\b| plus\b")
ABOUT_SHARE = Fraction(5, 100)
UNDER_SHARE = Fraction(8, 100)
OVER_SHARE = Fraction(10, 100)
BEFORE_CHARS = 26
MAX_PLACES = 6
DOTTED = re.compile(r"\d+\.\d+")
"""What may be a version."""


def bounds(claimed: Quantity, text: str) -> tuple[Fraction, Fraction] | None:
    """Return the least and the largest number that a source may have, if the sentence rounds; None if it does not."""
    before = text[max(0, claimed.start - BEFORE_CHARS) : claimed.start]
    value = max(claimed.values)
    if UNDER.search(before):
        return value * (1 - UNDER_SHARE), value
    if OVER.search(before) or OVER_BEHIND.match(text, claimed.end) or "多" in claimed.text or "余" in claimed.text:
        return value, value * (1 + OVER_SHARE)
    if ABOUT.search(before) or ABOUT_BEHIND.match(text, claimed.end):
        return value * (1 - ABOUT_SHARE), value * (1 + ABOUT_SHARE)
    return None


def rounded(claimed: Quantity, text: str, indexed: IndexedSource) -> Iterator[Quantity]:
    """Yield the source's numbers that may be meant by a rounded one: it is rounder than they are, and close."""
    value = max(claimed.values)
    digits, place = _roundness(value)
    between = bounds(claimed, text)
    if between is None and claimed.scale > 1 and digits > 1:  # 4.4 billion for 4,380 million is rounding
        between = value - place / 2, value + place / 2
    if between is None:
        return
    low, high = between
    for known, one in indexed.in_order[bisect_left(indexed.in_order, low, key=lambda pair: pair[0]) :]:
        if known > high:
            return
        is_rounder = _roundness(known)[0] > digits or claimed.is_word
        if (abs(known - value) <= place or claimed.is_word) and is_rounder:
            yield one


def _roundness(value: Fraction) -> tuple[int, Fraction]:
    """Return how many figures a number has but for zeros at its ends, and the value of the last one."""
    places = 0
    while value.denominator != 1 and places < MAX_PLACES:
        value, places = value * 10, places + 1
    figures = str(int(value))
    bare = figures.rstrip("0")
    return max(len(bare), 1), Fraction(10) ** (len(figures) - len(bare) - places)


FEW = 100
"""Up to here a number is so often in a text by chance that what it counts is looked at."""
NEAR_CHARS = 70
STEM_CHARS = 4
"""The letters of a unit that are compared: `voted` for votes."""
BEHIND = re.compile(r"[ -]([A-Za-z][A-Za-z'-]{2,30})(?: ([A-Za-z][A-Za-z'-]{2,30}))?")
_NO_NOUNS = (
    "is was has this its his us as vs plus minus times across always perhaps towards besides unless yes thus does gas "
    "bus versus less gets says adds runs shows means makes takes sees uses needs gives comes goes lets keeps and or of "
    "in on at to for from by with than the that were are had have but per out over under which who when while after "
    "before during within without about around percent not more most other total"
)
NO_NOUNS = frozenset(_NO_NOUNS.split())
PEOPLE = frozenset(["people", "men", "women", "children", "staff", "feet", "mice", "data"])
NAME_BEFORE = re.compile(r"([A-Z][A-Za-z+#]+) $")
_NO_NAMES = (
    "in on at by of to from the a an and or about around over nearly almost only since until during before after no "
    "number version january february march april may june july august september october november december jan feb mar "
    "apr jun jul aug sep sept oct nov dec some up its it they all for with than these those this that just another "
    "both under between top rank day week year page step part phase figure table section chapter"
)
NO_NAMES = frozenset(_NO_NAMES.split())
MAX_SHOWN = 3


class Places(NamedTuple):
    """Where a source has a number, and how."""

    how: str
    """For people; empty when the source does not have it."""
    quantities: tuple[Quantity, ...] = ()
    """Numbers that are it; none where only a name with the number, or a year, was found."""


def has_amount(claimed: Quantity, text: str, indexed: IndexedSource) -> Places:
    """Return how a source has a number that a sentence (`text`) names, and where."""
    name = _name_before(claimed, text)
    if name:
        beside = _beside(name, claimed, indexed)
        if beside is not None:
            return Places(beside)
    exact = [one for one in same_amounts(claimed, indexed) if _fits(claimed, text, one, indexed)]
    if exact:
        near = (one for one in rounded(claimed, text, indexed) if _fits(claimed, text, one, indexed))
        exact = [*exact, *near]
        return Places("found", tuple(exact)) if _counts_the_same(claimed, text, exact, indexed) else Places("")
    if (
        _is_year(claimed, indexed)
        or _is_day(claimed, text, indexed)
        or _is_nth(claimed, text, indexed)
        or (DOTTED.fullmatch(claimed.text) and release(claimed.text) in indexed.releases)
    ):
        return Places("found")
    close = [one for one in rounded(claimed, text, indexed) if _fits(claimed, text, one, indexed)]
    if close:
        return Places("rounded, found", tuple(close))
    alike = [one for ones in indexed.by_unit.values() if _is_convertible(claimed, ones[0]) for one in ones]
    other = sorted((one for one in alike if is_converted(claimed, text, one)), key=lambda one: one.start)
    return Places("in another unit, found", tuple(other)) if other else Places("")


SHARE_SLACK = Fraction(2, 100)
CONVERTED_SLACK = Fraction(3, 100)
DAY_NS = MEASURES["day"].size
CENT = "cent"
WITH_CENTS = frozenset(["usd", "eur", "cad", "aud"])
NO_MEASURE = Measure("", Fraction(1))
MONTH_DAYS = Fraction(3044, 100)
MONTHS_SLACK = Fraction(10, 100)


def is_converted(claimed: Quantity, text: str, there: Quantity) -> bool:
    """Return whether two numbers in different units are the same, as exactly as the sentence writes its own."""
    value = max(claimed.values)
    if claimed.unit == there.unit:
        is_either = claimed.is_share or there.is_share
        return is_either and abs(value - max(there.values)) <= SHARE_SLACK * value
    known = _in_unit(claimed, there)
    if known is None or not value:
        return False
    if {MEASURES.get(one.unit, NO_MEASURE).of for one in (claimed, there)} == {"time", "months"}:
        return abs(value - known) <= MONTHS_SLACK * value
    digits, place = _roundness(value)
    if abs(value - known) <= place / 2 and (digits > 1 or bounds(claimed, text)):
        return True
    between = bounds(claimed, text)
    if between and between[0] <= known <= between[1]:
        return True
    slack = ABOUT_SHARE if between else CONVERTED_SLACK
    return abs(value - known) <= min(slack * value, max(place, slack * value / 5))


def _is_convertible(claimed: Quantity, there: Quantity) -> bool:
    """Return whether two numbers may be the same by their units, whatever their values are."""
    if claimed.unit == there.unit:
        return claimed.is_share or there.is_share
    return _in_unit(claimed, there) is not None


def _measure(unit: str) -> Measure | None:
    """Return what a unit measures; of one that may as well be money, `pounds`, the measure."""
    return next((MEASURES[one] for one in unit.split("|") if one in MEASURES), None)


def _in_unit(claimed: Quantity, there: Quantity) -> Fraction | None:
    """Return a source's number in the sentence's unit; None when that is not possible."""
    mine, other, value = _measure(claimed.unit), _measure(there.unit), max(there.values)
    if CENT in {claimed.unit, there.unit} and {claimed.unit, there.unit} & WITH_CENTS:
        return value * 100 if claimed.unit == CENT else value / 100
    if mine is None or other is None:
        return None
    if mine.of == other.of:
        return value * other.size / mine.size if mine.size != other.size else None
    if {mine.of, other.of} == {"celsius", "fahrenheit"}:
        return value * Fraction(9, 5) + 32 if mine.of == "fahrenheit" else (value - 32) * Fraction(5, 9)
    if {mine.of, other.of} == {"time", "months"}:
        days = value * other.size * (MONTH_DAYS if other.of == "months" else 1 / DAY_NS)
        return days / mine.size / (MONTH_DAYS if mine.of == "months" else 1 / DAY_NS)
    return None


def same_amounts(claimed: Quantity, indexed: IndexedSource) -> Iterator[Quantity]:
    """Yield the source's numbers with the same value, whatever their unit; and those that are equal in another unit."""
    for value in claimed.values:
        yield from indexed.by_value.get(value, ())
    measure = MEASURES.get(claimed.unit)
    if measure is not None:
        for value in claimed.values:
            yield from (
                one for one in indexed.by_measure.get((measure.of, value * measure.size), ()) if value not in one.values
            )


def _fits(claimed: Quantity, text: str, there: Quantity, indexed: IndexedSource) -> bool:
    """Return whether the units of two numbers can be the same."""
    if claimed.per and there.per and claimed.per != there.per:
        return False
    if not claimed.unit and not there.unit:
        return True
    if claimed.is_share and not there.unit:
        return False
    if not there.unit:
        return not counted(indexed.plain, there) and _may_have(claimed, text, there, indexed)
    if not claimed.unit:
        noun = counted(text, claimed)
        return not noun or (there.unit == "times" and _is_done(noun, there, indexed))
    return _same_unit(claimed, there)


def _is_done(noun: str, there: Quantity, indexed: IndexedSource) -> bool:
    """Return whether what is done so many times is what a sentence counts: `a finalist 24 times`, `24 finals`."""
    before = indexed.plain[max(0, there.start - NEAR_CHARS) : there.start].lower().split()[-1:]
    return before[:1] != [] and before[0].startswith(noun[: STEM_CHARS + 1])


OLD = re.compile(r"[- ]olds?\b")
"""Behind an age, whose years a source need not name: `ages 10 to 12`."""


def _may_have(claimed: Quantity, text: str, there: Quantity, indexed: IndexedSource) -> bool:
    """Return whether a bare number of the source can be meant with a unit: of a small one the unit must be near."""
    if max(claimed.values) > FEW or max(claimed.values).denominator > 1 or OLD.match(text, claimed.end):
        return True
    if _name_before(there, indexed.plain):
        return False
    start, end = max(0, there.start - NEAR_CHARS), there.end + NEAR_CHARS
    around = indexed.plain[start:end]
    is_named = len(claimed.unit) >= STEM_CHARS and claimed.unit[:STEM_CHARS].lower() in around.lower()
    return is_named or "|" in around or any(_like(one, claimed) for one in indexed.quantities_in(start, end))


def _same_unit(claimed: Quantity, there: Quantity) -> bool:
    one, other = MEASURES.get(claimed.unit), MEASURES.get(there.unit)
    if one is not None and one.of == "points" and there.unit == POINTS_OF_PERCENT:
        return True
    if one is None or other is None:
        return bool(set(claimed.unit.split("|")) & set(there.unit.split("|")))
    if {one.of, other.of} in ({"degrees", "celsius"}, {"degrees", "fahrenheit"}):
        return True
    known = {value * other.size for value in there.values}
    return one.of == other.of and (one.size == other.size or any(value * one.size in known for value in claimed.values))


def counted(text: str, one: Quantity) -> str:
    """Return the stem of the noun that a number counts: `server` in `46 idle servers`; empty when none is plain."""
    found = BEHIND.match(text, one.end)
    for word in (found[1], found[2]) if found else ():
        small = (word or "").lower().removesuffix("'")
        if not small or small in NO_NOUNS:
            return ""
        if small in PEOPLE or (small.endswith("s") and not small.endswith(("ss", "us", "is", "ous"))):
            return _stem(small)
    return ""


def _stem(noun: str) -> str:
    if noun.endswith("ies"):
        return noun[:-3]
    return noun.removesuffix("es") if noun.endswith(("ches", "shes", "xes", "sses")) else noun.removesuffix("s")


def _counts_the_same(claimed: Quantity, text: str, there: list[Quantity], indexed: IndexedSource) -> bool:
    """Return whether a small number counts in the source what it counts in the sentence.

    Only where the source counts the same things and says another number is it taken as a contradiction.
    """
    noun = counted(text, claimed)
    if not noun or max(claimed.values) > FEW or claimed.unit:
        return True
    if any(_is_near(noun, one, indexed) for one in there):
        return True
    return not any(counted(indexed.plain, one) == noun for one in indexed.quantities)


def _is_near(noun: str, there: Quantity, indexed: IndexedSource) -> bool:
    """Return whether a number of the source counts these things, or counts nothing else and they are near."""
    own = counted(indexed.plain, there)
    around = indexed.plain[max(0, there.start - NEAR_CHARS) : there.end + NEAR_CHARS].lower()
    return noun == own or (not own and noun in around)


def counts_there(claimed: Quantity, text: str, indexed: IndexedSource) -> Places:
    """Return where the source itself counts what the sentence counts, with this number."""
    noun = counted(text, claimed)
    same = [one for one in same_amounts(claimed, indexed) if noun and noun == counted(indexed.plain, one)]
    return Places("found", tuple(same)) if same else Places("")


def _name_before(claimed: Quantity, text: str) -> str:
    """Return the name that a bare number belongs to: `Windows` in `Windows 11`."""
    is_whole = not text[claimed.end : claimed.end + 1].isalnum()
    if claimed.unit or claimed.scale != 1 or claimed.is_word or not is_whole:
        return ""
    found = NAME_BEFORE.search(text[max(0, claimed.start - 30) : claimed.start])
    return found[1].lower() if found and found[1].lower() not in NO_NAMES else ""


def _beside(name: str, claimed: Quantity, indexed: IndexedSource) -> str | None:
    """Return `found` if the source has the name with this number, empty if only with others, None if with none."""
    number = " ".join(words(claimed.text))
    if f" {name} {number} " in indexed.spaced:
        return "found"
    others = re.findall(rf" {re.escape(name)} (\d[\d.]*) ", indexed.spaced)
    return "" if others and not any(other.startswith(f"{number}.") for other in others) else None


def _is_year(claimed: Quantity, indexed: IndexedSource) -> bool:
    """Return whether a bare number is in the source, but was read there as a year: 2,000 and 2000."""
    if claimed.unit or len(claimed.values) != 1:
        return False
    return any(day.year == claimed.values[0] and not day.month for day in indexed.days)


DAYS_BEHIND = re.compile(r" ?(?:and|to|until|-|und|bis|et|au) ?\d{1,2}\.? [A-Z]")
"""The end of a range of days, with its month: `14 and 30 April`."""


def _is_day(claimed: Quantity, text: str, indexed: IndexedSource) -> bool:
    """Return whether a bare number is the first of two days, which the source has as a date of its own."""
    is_first = not claimed.unit and DAYS_BEHIND.match(text, claimed.end) is not None
    return is_first and any(day.day and day.day == claimed.values[0] for day in indexed.days)


COUNTED_BEFORE = re.compile(r"\b([A-Za-z]{3,12}) $")


def _is_nth(claimed: Quantity, text: str, indexed: IndexedSource) -> bool:
    """Return whether a bare number is behind what the source counts with an ordinal: `week 5`, `the fifth week`."""
    value = max(claimed.values)
    before = COUNTED_BEFORE.search(text[max(0, claimed.start - BEFORE_CHARS) : claimed.start])
    if claimed.unit or before is None or value.denominator != 1 or not 0 < value <= len(ORDINALS):
        return False
    return f" {ORDINALS[int(value) - 1]} {before[1].lower()} " in indexed.spaced


def instead(claimed: Quantity, sources: Iterator[IndexedSource]) -> str:
    """Return what the sources have in its place, in words for the writer; empty when nothing is like it."""
    for indexed in sources:
        others = list(dict.fromkeys(_shown(one, indexed) for one in same_amounts(claimed, indexed)))
        if not others and claimed.unit:
            others = list(dict.fromkeys(_shown(one, indexed) for one in indexed.quantities if _like(one, claimed)))
        if others and len(others) <= 2 * MAX_SHOWN:
            return f"{indexed.source.id} has {', '.join(others[:MAX_SHOWN])}"
    return ""


def _like(one: Quantity, claimed: Quantity) -> bool:
    """Return whether two numbers measure the same, and could be taken for each other."""
    mine, other = MEASURES.get(claimed.unit), MEASURES.get(one.unit)
    return mine.of == other.of if mine and other else claimed.unit == one.unit


def _shown(one: Quantity, indexed: IndexedSource) -> str:
    """Return a number of the source with a word or two of what follows."""
    behind = "" if one.unit else "".join(re.findall(r"^[ -][A-Za-z]+", indexed.plain[one.end : one.end + 30]))
    return f"“{' '.join((one.text + behind).split())}”"
