"""Whether a sentence and its source name the same two in another order: who beat whom, what is larger than what."""

import re
from collections.abc import Sequence
from itertools import pairwise

from explorer.reports.verify.polarity import polarity
from explorer.reports.verify.terms import terms_of

Groups = Sequence[tuple[int, frozenset[str]]]
"""Names in a text: where each begins, and its words."""
THAN = re.compile(r"^(?P<left>.*)\b(?P<than>than|als)\b(?P<right>[^.,;:()]*)", re.DOTALL)
PASSIVE = re.compile(r"\b(?:by|von|durch)(?: the| d\w\w)?\s*$")
MUTUAL = re.compile(
    r"[.;]|\b(?:is|are|was|were|ist|war)(?=\s*$)|\b(?:and|or|und|oder|with|mit|between|zwischen|for|versus|met|meets?|married|like|says?|said|which|who)\b"
)
"""Words between two names that part them, or that tie both of them to each other."""
FROM = re.compile(r"\b(?:from|von|aus)(?: the| an?| d\w\w)?\s*$")
MAX_CHARS = 600
"""A longer sentence is a list, whose names are in many orders."""
FEW = 4
"""Words of a thing that is compared; of more, it is not plain which count."""


def is_turned(text: str, mine: Groups, sentence: str, its: Groups) -> bool:
    """Return whether a statement gives a deed or a place in a comparison to the other one of two.

    Args:
        text: The statement.
        mine: Names in it.
        sentence: A sentence of the source.
        its: Names in that.
    """
    if len(text) > MAX_CHARS:
        return False
    return (
        _other_doer(text, mine, sentence, its) or _other_way(text, mine, sentence, its) or _other_side(text, sentence)
    )


def _other_doer(text: str, mine: Groups, sentence: str, its: Groups) -> bool:
    return any(
        _same_deed(between, there, first | second)
        for between, first, second in _pairs(text, mine)
        for there, words, said in _pairs(sentence, its)
        if first & said and second & words and not first & words
    )


def _pairs(text: str, groups: Groups) -> list[tuple[str, frozenset[str], frozenset[str]]]:
    """Return the text between each two names that follow each other, and both."""
    return [(text[one[0] : other[0]], one[1], other[1]) for one, other in pairwise(groups)]


def _same_deed(mine: str, its: str, names: frozenset[str]) -> bool:
    if MUTUAL.search(mine) or MUTUAL.search(its) or bool(PASSIVE.search(mine)) != bool(PASSIVE.search(its)):
        return False
    shared = (terms_of(mine).words & terms_of(its).words) - names
    return bool(shared) and not polarity(mine).contradicts(polarity(its))


def _other_way(text: str, mine: Groups, sentence: str, its: Groups) -> bool:
    """Return whether both go from one to another, and the other one begins elsewhere with the same names."""
    ours, theirs = (_begun(one, names) for one, names in ((text, mine), (sentence, its)))
    everyone = frozenset[str]().union(*(names for _, names in its))
    return bool(ours and theirs and not ours & theirs and ours <= everyone)


def _begun(text: str, groups: Groups) -> frozenset[str]:
    """Return the names behind `from`."""
    return frozenset[str]().union(*(names for place, names in groups if FROM.search(text[:place])))


def _other_side(text: str, sentence: str) -> bool:
    """Compare two comparisons: `Men gained more than women`, `Women gained more than men`."""
    mine, its = THAN.match(text), THAN.match(sentence)
    if mine is None or its is None or polarity(mine["left"]).contradicts(polarity(its["left"])):
        return False
    left, right = terms_of(mine["left"]).words, terms_of(mine["right"]).words
    known, other = terms_of(its["left"]).words, terms_of(its["right"]).words
    # `AI uploads grow faster than AI purchases`: what is on both sides tells nothing.
    right, other = right - other, other - right
    is_plain = 0 < len(right) <= FEW and 0 < len(other) <= FEW and left & known
    return bool(is_plain and left & other and right & known and not right & other)
