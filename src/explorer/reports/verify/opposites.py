"""Whether a source says the opposite of a sentence: word by word, or by the figures of what the sentence compares.

Tables of whole stretches say too little where a sentence of the source is long. Here a negation is compared at the word
it negates (`not joined`, `joined`; `locked`, `unlocked`), and a direction (`above`, `below`) at the words next to it.
Of a comparison, `A uses less power than B`, the figures are compared that the sources give of the two.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from explorer.reports.verify.passages import COMPARISON, Figure, Passages
from explorer.reports.verify.plain import TERM, key, term_key, terms_of
from explorer.reports.verify.polarity import (
    BOUND,
    IMPLICIT,
    MONTH,
    NEGATION,
    NO_NEGATION,
    SAME_ORDINAL,
    axis_words,
    polarity,
)
from explorer.reports.verify.subjects import Conflict, is_turned_comparison
from explorer.text.words import CJK_LETTER

MAX_CHARS = 700
LEAST_TERMS = 3
LEAST_SHARED = 0.5
LEAST_ALSO = 0.8
"""Part of what the best sentence shares that another one has to share to be compared, too."""
SCOPE_WORDS = 5
"""Words behind a negation that it negates, as far as its clause goes."""
LEAST_SAID = 2
"""Words behind a negation that the other text says, where the first of them is another one."""
CLAUSE_END = re.compile(
    r"[,;:()]| - |\b(?:but|and|because|while|although|since|until|unless|if|so|who|which|aber|und|weil|sondern|mais|et)"
    r"\b"
)
MORE_NEGATIONS = re.compile(r"\b(?:lacks?|lacked|refused to|yet to)\b")
UNSURE = re.compile(r"\b(?:if|whether|would|could|might|may|should|unless|ob|wenn|si)\b")
PREFIXES = ("un", "dis", "non-", "in", "im", "ir", "il")
MIN_BASE = 5
"""Letters of a word that a prefix turns round."""
PLACED = frozenset(["before", "after", "vor", "nach"])
"""Words of time that stand before what they are about."""
BESIDE = 2
"""Words next to a direction that say what goes there."""


class ReachedWord(NamedTuple):
    """A word that says something."""

    place: int
    word: str
    key: str
    is_negated: bool


class ReadText(NamedTuple):
    """A text, with its words."""

    text: str
    tokens: Sequence[ReachedWord]


class Direction(NamedTuple):
    """A word of a pair of opposites."""

    axis: str
    side: str
    word: str
    beside: frozenset[str]
    """Words next to it."""


def opposite_words(text: str, there: Passages) -> Conflict | None:
    """Return a passage that says the opposite of a sentence in its own words."""
    if CJK_LETTER.search(text) or len(text) > MAX_CHARS:
        return None
    mine = tokens(text)
    keys = {token.key for token in mine}
    if len(keys) < LEAST_TERMS:
        return None
    counts = there.shared(keys)
    best = max(counts.values(), default=0)
    if best < max(LEAST_TERMS, LEAST_SHARED * len(keys)):
        return _other_extreme(text, mine, there)
    alike = _tightest([number for number, count in counts.items() if count >= LEAST_ALSO * best], keys, there)
    why = [_opposite(text, mine, there.sentence(number), there) for number in alike]
    shown = max(alike, key=lambda number: counts[number])
    if all(why):
        return Conflict(f"says the opposite ({why[0]})", (there.sentence(shown),))
    return _other_rank(text, alike, there)


def _tightest(numbers: Sequence[int], keys: set[str], there: Passages) -> list[int]:
    """Return the sentences of some that have most of some words in one clause: `Western Europe`, not both far apart."""
    shares = [
        max(len(keys & terms_of(there.text, one.start, one.end).words) for one in there.clauses(number))
        for number in numbers
    ]
    return [number for number, share in zip(numbers, shares, strict=True) if share == max(shares)]


RANKED = re.compile(
    r"\b(?:(second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|[2-9](?:nd|rd|th))[ -])?"
    r"([a-z]{3,}est|most [a-z]+)\b"
)
"""A superlative, with a place before it: `second largest`."""
NO_RANK = frozenset(
    ["interest", "latest", "least", "request", "test", "invest", "suggest", "forest", "best", "west", "rest"]
)


def _other_rank(text: str, numbers: Sequence[int], there: Passages) -> Conflict | None:
    """Return a sentence with the same superlative of another place: `the largest`, `the second largest`."""
    mine = _ranks(text)
    for word, places in mine.items():
        known = {number: _ranks(there.sentence(number)).get(word, set[str]()) for number in numbers}
        having = [number for number in numbers if known[number]]
        if having and len(having) == len(numbers) and not any(places & known[number] for number in having):
            return Conflict("says the opposite (order)", (there.sentence(having[0]),))
    return None


def _ranks(text: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for one in RANKED.finditer(text):
        if one[2] not in NO_RANK:
            found.setdefault(one[2], set()).add(SAME_ORDINAL.get(one[1] or "", one[1] or ""))
    return found


def _other_extreme(text: str, mine: Sequence[ReachedWord], there: Passages) -> Conflict | None:
    """Return a sentence of the source with the opposite superlative beside the same words, where none has the same."""
    ours = [one for one in directions(text, mine) if EXTREME.fullmatch(one.word)]
    if not ours:
        return None
    keys = {token.key for token in mine}
    counts = there.shared(keys)
    alike = [number for number, count in counts.items() if count >= MIN_EXTREME]
    sentences = [(number, there.sentence(number)) for number in alike]
    theirs = [(number, one) for number, sentence in sentences for one in directions(sentence, tokens(sentence))]
    for our in ours:
        same = [(number, one) for number, one in theirs if one.axis == our.axis and EXTREME.fullmatch(one.word)]
        if same and all(one.side != our.side for _, one in same):
            return Conflict("says the opposite (superlative)", (there.sentence(same[0][0]),))
    return None


EXTREME = re.compile(r"\w+est|most|least|best|worst")
MIN_EXTREME = 2


def _opposite(text: str, mine: Sequence[ReachedWord], sentence: str, there: Passages) -> str:
    """Return how a sentence of the source turns a statement round; empty when it does not."""
    if len(sentence) > MAX_CHARS:
        return ""
    its = tokens(sentence)
    one, other = ReadText(text, mine), ReadText(sentence, its)
    names = there.known_names
    if _negated_otherwise(one, other, names) or _negated_otherwise(other, one, names):
        return "negation"
    if _prefixed(mine, its) or _prefixed(its, mine):
        return "negation"
    return "direction" if _turned(one, other) and not is_turned_comparison(text, sentence) else ""


def tokens(text: str) -> list[ReachedWord]:
    """Return the words of a text, with what negations reach."""
    clear = MONTH.sub(_blank, NO_NEGATION.sub(_blank, text))
    cues = sorted(found.end() for pattern in (NEGATION, MORE_NEGATIONS) for found in pattern.finditer(clear))
    ends = [found.start() for found in CLAUSE_END.finditer(text)]
    found: list[ReachedWord] = []
    reached: dict[int, int] = {}
    for word in TERM.finditer(text):
        key = word[0] if word["number"] else term_key(word[0])
        if not key or NEGATION.fullmatch(word[0]):
            continue
        cue = max((cue for cue in cues if cue <= word.start()), default=-1)
        is_open = cue >= 0 and not any(cue <= end < word.start() for end in ends)
        reached[cue] = reached.get(cue, 0) + 1
        is_negated = is_open and reached[cue] <= SCOPE_WORDS
        found.append(ReachedWord(word.start(), word[0].lower(), key, is_negated))
    return found


def _blank(found: "re.Match[str]") -> str:
    return " " * len(found[0])


def _negated_otherwise(mine: ReadText, its: ReadText, names: frozenset[str]) -> bool:
    """Return whether one text negates what the other one says without a negation."""
    scope = dict.fromkeys(token.key for token in mine.tokens if token.is_negated)
    plain = {token.key for token in its.tokens if not token.is_negated}
    denied = {token.key for token in its.tokens if token.is_negated}
    said = [one for one in scope if one in plain and one not in names]
    is_said = said and (len(plain & scope.keys()) >= LEAST_SAID or said[0] == next(iter(scope)))
    if not is_said or denied & scope.keys() or len(plain & scope.keys()) < LEAST_SHARED * len(scope):
        return False
    doubts = {found[0].lower() for pattern in (UNSURE, IMPLICIT) for found in pattern.finditer(mine.text)}
    beside = {token.key for token in mine.tokens} - {said[0]}
    clauses = [_clause(its.text, token.place) for token in its.tokens if token.key == said[0]]
    return all(
        not _is_unsure(its.text[begin:end], doubts)
        and any(begin <= token.place < end and token.key in beside for token in its.tokens)
        for begin, end in clauses
    )


def _clause(text: str, place: int) -> tuple[int, int]:
    """Return where the clause of a word begins and ends."""
    ends = [(found.start(), found.end()) for found in CLAUSE_END.finditer(text)]
    begin = max((end for _, end in ends if end <= place), default=0)
    return begin, min((start for start, _ in ends if start > place), default=len(text))


def _is_unsure(clause: str, known: set[str]) -> bool:
    """Return whether a clause denies or doubts in another way than by words that are known."""
    found = (one[0].lower() for pattern in (IMPLICIT, UNSURE) for one in pattern.finditer(clause))
    return any(one not in known for one in found)


def _prefixed(mine: Sequence[ReachedWord], its: Sequence[ReachedWord]) -> bool:
    """Return whether one text has a word that the other one has with a prefix that turns it round."""
    said = {token.word: token for token in its}
    for token in mine:
        for prefix in PREFIXES:
            base = token.word.removeprefix(prefix)
            if len(base) < len(token.word) and len(base) >= MIN_BASE and base in said and token.word not in said:
                return said[base].is_negated == token.is_negated and base not in {one.word for one in mine}
    return False


def _turned(one: ReadText, other: ReadText) -> bool:
    """Return whether two texts have opposites next to the same words, and never the same one there."""
    ours = directions(*one)
    theirs = directions(*other) if ours else []
    if not theirs or (
        COMPARISON.search(one.text) and COMPARISON.search(other.text) and _is_other_comparison(ours, theirs)
    ):
        return False
    # `mixed up a higher and a lower ratio` says neither.
    sides = Counter(axis for axis, _ in {(one.axis, one.side) for one in ours})
    return any(_is_turned(mine, theirs) for mine in ours if sides[mine.axis] == 1)


def _is_turned(mine: Direction, theirs: Sequence[Direction]) -> bool:
    same = [its for its in theirs if its.axis == mine.axis]
    alike = [its for its in same if its.beside & mine.beside and _is_pair(mine, its)]
    is_both = {its.side for its in same} != {its.side for its in alike}
    is_plain = not is_both or any(len(its.beside & mine.beside) >= BESIDE for its in alike)
    return bool(alike) and is_plain and all(its.side != mine.side for its in alike)


def _is_other_comparison(ours: Sequence[Direction], theirs: Sequence[Direction]) -> bool:
    """Return whether one compares with `more` and the other with `less`, so that the two sides change places."""
    sides = [{one.side for one in some if one.axis in {"more", "change"}} for some in (ours, theirs)]
    return bool(sides[0] and sides[1] and not sides[0] & sides[1])


def _is_pair(one: Direction, other: Direction) -> bool:
    """Return whether two words can be compared: `before` is turned round by `after`, and not by `later`."""
    return one.axis != "time" or (one.word in PLACED) == (other.word in PLACED)


def directions(text: str, words: Sequence[ReachedWord]) -> list[Direction]:
    """Return the words of opposites in a text that no negation reaches, each with the words next to it."""
    clear = BOUND.sub(_blank, MONTH.sub(_blank, text))
    found: list[Direction] = []
    for one in axis_words(clear):
        before = [word for word in words if word.place < one.start][-BESIDE:]
        behind = [word for word in words if word.place >= one.end][:BESIDE]
        if not any(word.is_negated for word in words if one.start <= word.place < one.end):
            beside = frozenset(word.key for word in (*before, *behind))
            found.append(Direction(one.axis, one.side, clear[one.start : one.end].lower(), beside))
    return found


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
COMPARED_CHARS = 400
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
    found = COMPARED.search(text[:COMPARED_CHARS])
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
