"""Whether a sentence is one of its source, or two of them, with a few words left out: nobody is swapped there."""

import re

from explorer.reports.verify.passages import Passages
from explorer.reports.verify.plain import words
from explorer.reports.verify.polarity import IMPLICIT, NEGATION
from explorer.reports.verify.terms import terms_of

PIECE_END = re.compile(r"(?:;|, (?:and|but|while)) ")
MAX_LEFT_OUT = 4
MIN_WORDS = 4
MAX_SENTENCES = 3
"""Sentences of the source that share most, which are compared."""


def is_shortened(text: str, there: Passages) -> bool:
    """Return whether each part of a sentence has the words of a sentence of the source, in order, but for a few."""
    return all(_is_shorter(piece, there) for piece in PIECE_END.split(text) if piece.strip())


def _is_shorter(piece: str, there: Passages) -> bool:
    mine = words(piece)
    if len(mine) < MIN_WORDS:
        return False
    counts = there.shared(terms_of(piece).words)
    return any(_is_part(mine, words(there.sentence(number))) for number, _ in counts.most_common(MAX_SENTENCES))


def _is_part(mine: list[str], its: list[str]) -> bool:
    if not 0 <= len(its) - len(mine) <= MAX_LEFT_OUT:
        return False
    left_out: list[str] = []
    rest = iter(its)
    for word in mine:
        for other in rest:
            if other == word:
                break
            left_out.append(other)
        else:
            return False
    out = " ".join([*left_out, *rest])
    return NEGATION.search(out) is None and IMPLICIT.search(out) is None
