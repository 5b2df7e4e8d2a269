"""Figures that a writer worked out from those of a source: of two, or of one for another period or before a change.

Two figures have to be in the sentences of the source that share most with the writer's, and a short result counts only
where the sentence speaks of a comparison: of many figures, two make any small number. Where one is enough, the figure
that would have to be there is looked for, so that none of many fits by chance.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, islice
from typing import NamedTuple

from explorer.reports.verify.amounts import ABOUT, OVER, UNDER, bounds
from explorer.reports.verify.figures import Quantity
from explorer.reports.verify.indexed_source import IndexedSource
from explorer.reports.verify.numerals import MEASURES, PERCENT, POINTS_OF_PERCENT
from explorer.reports.verify.passages import Figure
from explorer.reports.verify.plain import terms_of
from explorer.text.words import sentence_ends

MAX_POOL = 16
"""Figures that are tried in pairs."""
MAX_ALIKE = 10
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
    r"|up|down|cheaper|on average|climb\w*"
    r"|rose|rise|fell|grew|gain\w*|lost|dropp\w*|cuts?|saves?|saved|wider|longer|taller|older|younger|larger"
    r"|higher|lower|between|after|before|later|earlier|above|below|apart|average|each|per|in all|won|add|adds|added"
    r"|doubl\w*|tripl\w*|ratio|share|times|lead|margin|old|aged?|turned|since|until|took|lasted"
    r"|short|missing|shy of|lacks?|lacking|needed|remain\w*|left"
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


OF_BEFORE = re.compile(r"\d (?:out )?of (?:the |its |their )?$")
"""Before all of which a part was named: `31 of 39`."""
OF_CHARS = 20
METRES = re.compile(r" ?m\b(?![²³^/])")
"""Behind a number: metres, or millions; a difference or a ratio with another length says which."""
FEW_SHARED = 2
FIRST_NAMED = 4


class Operand(NamedTuple):
    """A figure of the source, in the smallest unit of what it measures."""

    value: Fraction
    of: str
    """What it measures: a dimension, a currency, `%`; empty for a plain number."""
    sentence: int
    shown: str
    size: Fraction
    """How many of the smallest unit its own unit has."""
    is_said: bool = False
    """Whether the source says it of what the writer's sentence names."""


@dataclass(frozen=True)
class DerivedNumber:
    """A number of a sentence that may be worked out."""

    one: Quantity
    text: str
    """The sentence that it is in."""
    beside: Sequence[Quantity] = ()
    """Numbers of the sentence that the source has."""
    years: Sequence[int] = ()
    """Years of the sentence."""
    is_there: bool = False
    """Whether the source has it, of something else; the sentence has to name one of the two figures then."""

    @cached_property
    def named(self) -> frozenset[Fraction]:
        """Values that the sentence names, too."""
        months = (Fraction(year * MONTHS) for year in self.years)
        return frozenset([*(max(other.values) for other in self.beside), *months])

    @cached_property
    def is_short(self) -> bool:
        """Whether many pairs of figures make it by chance."""
        return self.one.is_word or len("".join(filter(str.isdigit, self.one.text)).strip("0")) <= FEW_DIGITS

    @cached_property
    def is_derived(self) -> bool:
        """Whether the sentence has words of a sum, a difference or a ratio; `more than 2,000` compares nothing."""
        clear = HEDGE.sub(" ", self.text[: self.one.start]) + self.text[self.one.end :]
        return DERIVED.search(clear) is not None or _dimension(self.one.unit) == "times"


def follows_from(number: DerivedNumber, indexed: IndexedSource) -> str:
    """Return how a number is worked out from two of a source's; empty when it is not."""
    one = number.one
    own = max(one.values) * (MEASURES[one.unit].size if one.unit in MEASURES else 1)
    pool = [operand for operand in _pool(one, number.text, indexed) if operand.value != own]
    for first, second in combinations(pool, 2):
        if _is_telling(number, first, second, len(pool)) and _is_result(one, number.text, first, second):
            return f"worked out from {first.shown} and {second.shown} of {indexed.source.id}"
    return _sum_of_three(number, pool)


def _is_telling(number: DerivedNumber, first: Operand, second: Operand, count: int) -> bool:
    """Return whether it says something if two figures make a number."""
    is_named = first.value in number.named or second.value in number.named
    if number.is_there or POINTS_OF_PERCENT in {first.of, second.of}:
        return (is_named or not number.is_there) and (
            number.is_derived or POINTS_OF_PERCENT not in {first.of, second.of}
        )
    if is_named or not number.is_short:
        return True
    is_one = first.sentence == second.sentence and (number.one.unit == PERCENT or first.of == "months")
    is_near = abs(first.sentence - second.sentence) <= NEAR_SENTENCES
    is_close = is_near or count <= FEW or (first.is_said and second.is_said)
    return is_one or (number.is_derived and is_close)


def _sum_of_three(number: DerivedNumber, pool: Sequence[Operand]) -> str:
    one = number.one
    if number.is_short or not SUM.search(number.text):
        return ""
    alike = [operand for operand in pool if operand.of == _dimension(one.unit)]
    for some in combinations(alike, 3):
        if _is(one, number.text, sum((operand.value for operand in some), Fraction(0))):
            return f"worked out from {', '.join(operand.shown for operand in some)}"
    return ""


HEDGE = re.compile(rf"(?:{OVER.pattern}|{UNDER.pattern}|{ABOUT.pattern})", re.IGNORECASE)


def _pool(one: Quantity, text: str, indexed: IndexedSource) -> list[Operand]:
    """Return the figures that can make this number, of the sentences that share most with the writer's."""
    mine = _dimension(one.unit)
    there, mine_too = indexed.passages, terms_of(text).words
    found: dict[tuple[Fraction, str], Operand] = {}
    for figure, number in _candidates(mine, text, indexed):
        if len(found) >= MAX_POOL:
            break
        new = [one for one in _operands(figure, number, indexed) if (one.value, one.of) not in found]
        if any(_is_usable(operand, mine) for operand in new):
            shared = (there.said_of(figure.start, figure.end).words | there.terms[number].words) & mine_too
            is_said = len(shared) >= FEW_SHARED or not shared.isdisjoint(there.known_names)
            found |= {(one.value, one.of): one._replace(is_said=is_said) for one in new if _is_usable(one, mine)}
    return list(found.values())[:MAX_POOL]


def _is_usable(operand: Operand, mine: str) -> bool:
    """Return whether a figure can make a number of what it measures."""
    return mine in {PERCENT, "times", *COUNTS} or operand.of in {mine, PERCENT, POINTS_OF_PERCENT}


def _candidates(mine: str, text: str, indexed: IndexedSource) -> Iterator[tuple[Figure, int]]:
    """Yield the figures of the sentences that are like a text, and of lines below them; all, where it has few."""
    there = indexed.passages
    best = [*_alike(text, indexed), *_naming(terms_of(text).words, indexed)]
    numbers = dict.fromkeys(line for number in best for line in (number, *there.lines_under(number)))
    if mine == "times":  # what is compared is often said one after the other
        after = [number + step for number in best[:1] for step in (-1, 1, -2, 2)]
        numbers |= dict.fromkeys(number for number in after if 0 <= number < len(there.terms))
    for number in numbers:
        yield from ((figure, number) for figure in there.figures_in(*there.span(number)))
    alike = {figure.value: figure for figure in there.figures if mine and _dimension(figure.unit) == mine}
    if len(alike) <= MAX_ALIKE:
        yield from ((figure, there.number_at(figure.start)) for figure in alike.values())


def _naming(words: Iterable[str], indexed: IndexedSource) -> Iterator[int]:
    """Yield the first sentences with each name of a text, which mostly say who or what that is."""
    there = indexed.passages
    for word in sorted(words):
        if word in there.known_names:
            yield from there.index.get(word, ())[:FIRST_NAMED]


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
            yield Operand(Fraction(year * MONTHS), "months", number, shown, Fraction(MONTHS))
            if month:
                value = Fraction(year * MONTHS + month)
                yield Operand(value, "months", number, shown, Fraction(MONTHS))
    elif figure.unit != "clock":
        size = MEASURES[figure.unit].size if figure.unit in MEASURES else Fraction(1)
        if not figure.unit and METRES.match(indexed.passages.text, figure.end):
            metre = MEASURES["metres"]
            yield Operand(Fraction(figure.value) * metre.size, metre.of, number, f"{shown} m", metre.size)
        of = POINTS_OF_PERCENT if figure.unit == POINTS_OF_PERCENT else _dimension(figure.unit)
        yield Operand(Fraction(figure.value) * size, of, number, shown, size)


def _dimension(unit: str) -> str:
    if unit in MEASURES:
        return MEASURES[unit].of
    return PERCENT if unit == POINTS_OF_PERCENT else unit.split("|", maxsplit=1)[0]


def _is_result(one: Quantity, text: str, first: Operand, second: Operand) -> bool:
    """Return whether a number is the sum, difference, ratio, percentage or part of two."""
    larger, smaller = sorted((first, second), reverse=True)
    if first.of != second.of and not {first.of, second.of} <= COUNTS:
        return _is_part(one, text, first, second)
    mine = _dimension(one.unit)
    if mine == PERCENT and one.unit != POINTS_OF_PERCENT:
        return (
            first.of != PERCENT and smaller.value > 0 and any(_is(one, text, 100 * r) for r in _ratios(larger, smaller))
        )
    if mine == "times":
        ratio = larger.value / smaller.value if smaller.value else Fraction(0)
        return abs(max(one.values) - ratio) <= TIMES_SHARE * ratio
    return _is_sum_or_difference(one, text, larger, smaller)


def _is_part(one: Quantity, text: str, first: Operand, second: Operand) -> bool:
    """Return whether a number is a share of another one, the rest of it, or a share that changed by points."""
    share, other = (first, second) if first.of == PERCENT else (second, first)
    if share.of != PERCENT:
        return False
    if other.of == POINTS_OF_PERCENT:
        changed = (share.value + other.value, share.value - other.value)
        return one.unit == PERCENT and any(_is(one, text, value) for value in changed)
    parts = (other.value * share.value / 100, other.value * (100 - share.value) / 100)
    return other.of == _dimension(one.unit) and any(_is(one, text, part) for part in parts)


def _is_sum_or_difference(one: Quantity, text: str, larger: Operand, smaller: Operand) -> bool:
    mine = _dimension(one.unit)
    if one.is_word and not one.unit and larger.of == smaller.of != "months" and larger.sentence == smaller.sentence:
        # `an hour against the plane and two against the train`
        return max(one.values) == (larger.value - smaller.value) / larger.size
    if mine != larger.of and not (mine in COUNTS and (larger.of in COUNTS or larger.of == PERCENT)):
        return False
    if SUM.search(text) or OF_BEFORE.search(text[max(0, one.start - OF_CHARS) : one.start]):
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
