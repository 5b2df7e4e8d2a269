"""Figures that a writer worked out from those of a source: sums, differences, ratios, percentages, years between dates.

The two figures have to be in the sentences of the source that share most with the writer's, and a short result counts
only where the sentence speaks of a comparison: of many figures, two make any small number.
"""

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

from explorer.reports.verify.amounts import ABOUT, OVER, UNDER, bounds
from explorer.reports.verify.figures import Quantity
from explorer.reports.verify.indexed_source import IndexedSource
from explorer.reports.verify.numerals import MEASURES, PERCENT, POINTS_OF_PERCENT
from explorer.reports.verify.passages import Figure
from explorer.reports.verify.terms import terms_of

MAX_POOL = 14
"""Figures that are tried in pairs."""
MAX_ALIKE = 8
"""Figures of the same measure in a source; of more, only those near what the sentence says are tried."""
MAX_SENTENCES = 8
"""Sentences of the source whose figures are tried, those that share most with the writer's first."""
LEAST_SHARED = 0.5
"""Smallest part of what the best sentence shares that another one has to share."""
FEW_DIGITS = 2
NEAR_SENTENCES = 1
FEW = 6
"""Up to so many figures, a short result is hardly there by chance."""
TIED = Fraction(1, 2)
TIMES_SHARE = Fraction(5, 100)
MONTHS = 12
COUNTS = frozenset(["", "points", "comments"])
"""What plain numbers count, which may be compared with each other."""
DERIVED = re.compile(
    r"\b(?:than|more|less|fewer|ahead|behind|difference|gap|places|totals?|altogether|together|sum|combined|both|makes?"
    r"|climb\w*|rose|rise|fell|grew|gain\w*|lost|dropp\w*|cuts?|saves?|saved|wider|longer|taller|older|younger|larger"
    r"|higher|lower|between|after|before|later|earlier|above|below|apart|average|each|per|in all|won|add|adds|added"
    r"|doubl\w*|tripl\w*|ratio|share|times|lead|margin|old|aged?|turned|since|until|took|lasted"
    r"|over (?:its|the|his|her|budget)|overr[au]n|mehr|weniger|zusammen|insgesamt|später|früher|länger|höher|plus|moins"
    r"|après|avant)\b|[多少差比]|合[计計]|一共|共计",
    re.IGNORECASE,
)
"""Words of a sum, a difference or a ratio; a shorter figure without one is none."""


SUM = re.compile(
    r"\b(?:totals?|altogether|together|sum|combined|both|makes?|in all|add|adds|added|zusammen|insgesamt|au total)\b"
    r"|合[计計]|一共|共计",
    re.IGNORECASE,
)
"""Words of a sum; without one, two figures are compared."""


class Operand(NamedTuple):
    """A figure of the source, in the smallest unit of what it measures."""

    value: Fraction
    of: str
    """What it measures: a dimension, a currency, `%`; empty for a plain number."""
    sentence: int
    shown: str


def follows_from(one: Quantity, text: str, indexed: IndexedSource, beside: Sequence[Quantity] = ()) -> str:
    """Return how a number is worked out from two of a source's; empty when it is not.

    Args:
        one: A number that the source does not have.
        text: The sentence that it is in.
        indexed: The source.
        beside: Numbers of the sentence that the source has.
    """
    pool = _pool(one, text, indexed)
    named = [max(other.values) for other in beside]
    # `More than 2,000` compares nothing.
    clear = HEDGE.sub(" ", text[: one.start]) + text[one.end :]
    is_short, is_derived = _is_short(one), DERIVED.search(clear) is not None
    is_derived = is_derived or _dimension(one.unit) == "times"
    for first, second in combinations(pool, 2):
        is_near = abs(first.sentence - second.sentence) <= NEAR_SENTENCES
        is_named = first.value in named or second.value in named
        is_one = first.sentence == second.sentence and (one.unit == PERCENT or first.of == "months")
        is_telling = not is_short or is_named or (is_derived and (is_near or len(pool) <= FEW)) or is_one
        if is_telling and _is_result(one, text, first, second):
            return f"worked out from {first.shown} and {second.shown} of {indexed.source.id}"
    return ""


HEDGE = re.compile(rf"(?:{OVER.pattern}|{UNDER.pattern}|{ABOUT.pattern})", re.IGNORECASE)


def _is_short(one: Quantity) -> bool:
    return one.is_word or len("".join(filter(str.isdigit, one.text)).strip("0")) <= FEW_DIGITS


def _pool(one: Quantity, text: str, indexed: IndexedSource) -> list[Operand]:
    """Return the figures that can make this number, of the sentences that share most with the writer's."""
    mine = _dimension(one.unit)
    found: dict[tuple[Fraction, str], Operand] = {}
    for operand in _candidates(mine, text, indexed):
        if mine in {PERCENT, "times", *COUNTS} or operand.of in {mine, PERCENT}:
            found.setdefault((operand.value, operand.of), operand)
    return list(found.values())[:MAX_POOL]


def _candidates(mine: str, text: str, indexed: IndexedSource) -> Iterator[Operand]:
    """Yield the figures of the sentences that are like a text, and of lines below them; all, where it has few."""
    there = indexed.passages
    numbers = dict.fromkeys(line for number in _alike(text, indexed) for line in (number, *there.lines_under(number)))
    figures = [(figure, number) for number in numbers for figure in there.figures_in(*there.span(number))]
    alike = [figure for figure in there.figures if mine and _dimension(figure.unit) == mine]
    if len(alike) <= MAX_ALIKE:
        figures += [(figure, there.number_at(figure.start)) for figure in alike]
    for figure, number in figures:
        yield from _operands(figure, number, indexed)


def _alike(text: str, indexed: IndexedSource) -> list[int]:
    """Return the sentences that share most words with a text, the best first."""
    counts = indexed.passages.shared(terms_of(text).words)
    best = max(counts.values(), default=0)
    shown = [number for number, count in counts.most_common() if count >= LEAST_SHARED * best]
    return shown[:MAX_SENTENCES]


def _operands(figure: Figure, number: int, indexed: IndexedSource) -> Iterator[Operand]:
    shown = indexed.passages.text[figure.start : figure.end]
    if figure.unit == "date":
        year, month, _ = (int(part) for part in figure.value.split("-"))
        if year:
            yield Operand(Fraction(year * MONTHS), "months", number, shown)
            if month:
                yield Operand(Fraction(year * MONTHS + month), "months", number, shown)
    elif figure.unit != "clock":
        value = Fraction(figure.value) * (MEASURES[figure.unit].size if figure.unit in MEASURES else 1)
        yield Operand(value, _dimension(figure.unit), number, shown)


def _dimension(unit: str) -> str:
    if unit in MEASURES:
        return MEASURES[unit].of
    return PERCENT if unit == POINTS_OF_PERCENT else unit.split("|", maxsplit=1)[0]


def _is_result(one: Quantity, text: str, first: Operand, second: Operand) -> bool:
    """Return whether a number is the sum, difference, ratio, percentage or part of two."""
    mine = _dimension(one.unit)
    larger, smaller = sorted((first, second), reverse=True)
    if first.of != second.of and not {first.of, second.of} <= COUNTS:
        share, whole = (first, second) if first.of == PERCENT else (second, first)
        parts = (whole.value * share.value / 100, whole.value * (100 - share.value) / 100)
        return share.of == PERCENT and whole.of == mine and any(_is(one, text, part) for part in parts)
    if mine == PERCENT and one.unit != POINTS_OF_PERCENT:
        return (
            first.of != PERCENT and smaller.value > 0 and any(_is(one, text, 100 * r) for r in _ratios(larger, smaller))
        )
    if mine == "times":
        ratio = larger.value / smaller.value if smaller.value else Fraction(0)
        return abs(max(one.values) - ratio) <= TIMES_SHARE * ratio
    if mine != first.of and not (mine in COUNTS and (first.of in COUNTS or first.of == PERCENT)):
        return False
    if SUM.search(text):
        return mine != PERCENT and _is(one, text, larger.value + smaller.value)
    return _is(one, text, larger.value - smaller.value)


def _ratios(larger: Operand, smaller: Operand) -> tuple[Fraction, ...]:
    change = larger.value - smaller.value
    return smaller.value / larger.value, change / larger.value, change / smaller.value


def _is(one: Quantity, text: str, known: Fraction) -> bool:
    """Return whether a result is a number as far as that is written out, or as the sentence says that it rounds."""
    size = MEASURES[one.unit].size if one.unit in MEASURES else Fraction(1)
    value, between = known / size, bounds(one, text)
    if between is not None and between[0] <= value <= between[1]:
        return True
    digits = sum(character.isdigit() for character in one.text.partition(".")[2])
    return abs(max(one.values) - value) / one.scale <= TIED / 10**digits
