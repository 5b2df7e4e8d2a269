"""Whether the figures of the sources say the opposite of a comparison in a sentence: `A uses less power than B`.

Only two that are named are compared, or two years, and only where the sources give each of them one figure of the same
unit that shares most words with the sentence. The figures may be in different sources.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from explorer.reports.verify.context import Conflict
from explorer.reports.verify.passages import Figure, Passages
from explorer.reports.verify.polarity import polarity
from explorer.reports.verify.terms import key, terms_of

OTHER_WAY = "gives the figures the other way round"
MORE = "more higher larger bigger greater longer taller heavier wider deeper pricier"
LESS = "less fewer lower smaller shorter lighter narrower cheaper"
COMPARED = re.compile(
    rf"\b(?:(?P<more>{'|'.join(MORE.split())})|(?P<less>{'|'.join(LESS.split())}))\b(?P<what>[^.;:,()]{{0,60}}?)\bthan\b",
    re.IGNORECASE,
)
CLAUSE_START = re.compile(r"[.;:]|, (?:and|but|while|whereas)\b")
CLAUSE_STOP = re.compile(r"[.;:(,]| (?:and|but|while|whereas|when|because)\b")
YEAR = re.compile(r"\b(?:19|20)\d\d\b")
NO_SIZE = re.compile(r"\b(?:expensive|likely|often|than|important|popular|common)\b")
"""After `more`: what is no amount of something, except `more expensive`, which is one of money."""
EXPENSIVE = re.compile(r"^\s*(?:expensive|costly)\b")
MAX_CHARS = 400
MAX_FIGURES = 300
"""In a source with more figures, a pair that looks like the two may easily be another one."""


@dataclass(frozen=True)
class _Sides:
    """The two that a sentence compares."""

    first: frozenset[str]
    second: frozenset[str]
    shared: frozenset[str]
    """What else the sentence says."""


@dataclass(frozen=True)
class _Found:
    """A figure of one of the two."""

    score: int
    unit: str
    value: Fraction
    sentence: str


def contrary_figures(text: str, sources: Sequence[Passages]) -> Conflict | None:
    """Return the two figures of the sources that say the opposite of a comparison."""
    found = COMPARED.search(text[:MAX_CHARS])
    if found is None or polarity(text).is_negated or not _is_of_size(found):
        return None
    sides = _sides(text, found, sources)
    if sides is None or any(_is_compared(sides, there) for there in sources):
        return None
    first = [one for there in sources for one in _figures_of(sides.first, sides.second, sides.shared, there)]
    second = [one for there in sources for one in _figures_of(sides.second, sides.first, sides.shared, there)]
    for unit in sorted({one.unit for one in first} & {one.unit for one in second}):
        left, right = _only(first, unit), _only(second, unit)
        if left and right and left.value != right.value and (left.value > right.value) != bool(found["more"]):
            return Conflict(OTHER_WAY, tuple(dict.fromkeys((left.sentence, right.sentence))))
    return None


def _is_of_size(found: re.Match[str]) -> bool:
    return bool(EXPENSIVE.match(found["what"])) or not NO_SIZE.search(found["what"])


def _sides(text: str, found: re.Match[str], sources: Sequence[Passages]) -> _Sides | None:
    """Return the names, or else the years, on both sides of a comparison."""
    starts = [one.end() for one in CLAUSE_START.finditer(text, 0, found.start())]
    stop = CLAUSE_STOP.search(text, found.end())
    begin, end = starts[-1] if starts else 0, stop.start() if stop else len(text)
    left, right = text[begin : found.start()] + found["what"], text[found.end() : end]
    known = frozenset[str]().union(*(there.known_names for there in sources))
    first, second = terms_of(left).names & known, terms_of(right).names & known
    if not second:
        first, second = frozenset(YEAR.findall(left)), frozenset(YEAR.findall(right))
    # What both sides have, such as `pump`, says which two are meant and not what is compared of them.
    both = terms_of(left).words & terms_of(right).words
    shared = terms_of(left).words - both - first - second - {key(found["more"] or found["less"])}
    return _Sides(first - second, second - first, shared) if first - second and second - first else None


def _is_compared(sides: _Sides, there: Passages) -> bool:
    """Return whether a source itself says which of the two is more: other rules read that."""
    numbers = set(there.shared(sides.first)) & set(there.shared(sides.second))
    return any(COMPARED.search(there.sentence(number)) for number in numbers)


def _figures_of(mine: frozenset[str], other: frozenset[str], shared: frozenset[str], there: Passages) -> list[_Found]:
    """Return the figures that a source gives of one of the two, and of what the sentence is about."""
    if len(there.figures) > MAX_FIGURES:
        return []
    found = [_found(one, mine, other, shared, there) for one in there.figures]
    return [one for one in found if one is not None]


def _found(
    one: Figure, mine: frozenset[str], other: frozenset[str], shared: frozenset[str], there: Passages
) -> _Found | None:
    said = there.said_of(one.start, one.end)
    score = len(shared & said.own)
    of_whom = said.words | said.names
    if not score or not mine <= of_whom or other & (said.own | said.names) or one.value in mine | other:
        return None
    try:
        value = Fraction(one.value)
    except ValueError:  # a time of day, or a date
        return None
    return _Found(score, one.unit, value, there.sentence(there.number_at(one.start)))


def _only(found: Sequence[_Found], unit: str) -> _Found | None:
    """Return the one figure of a unit that shares most words with the sentence; None where there are several."""
    mine = [one for one in found if one.unit == unit]
    best = [one for one in mine if one.score == max(other.score for other in mine)]
    return best[0] if best and len({one.value for one in best}) == 1 else None
