"""The claims of two reports: which are new, gone, or say something else."""

from collections import Counter
from collections.abc import Callable, Sequence

from explorer.reports.compare.cited_sentences import CitedSentence, quotes_in
from explorer.reports.compare.comparison import ClaimDifference
from explorer.text.differences import changes_between, normal, words

MIN_ALIKE = 0.6
"""Of two sentences that cite the same address."""
MIN_ALIKE_ELSEWHERE = 0.85
"""Of two that do not."""
MAX_ELSEWHERE = 300
"""Sentences on each side, left over, that are compared with all others."""
OTHER_SOURCE = "cites another source"

Pairs = list[tuple[CitedSentence, CitedSentence]]


def compared_claims(
    before: Sequence[CitedSentence], after: Sequence[CitedSentence]
) -> tuple[list[CitedSentence], list[CitedSentence], list[ClaimDifference], int]:
    """New, gone, changed, and how many are the same."""
    gone, new = list(before), list(after)
    pairs = _paired(gone, new, lambda one, other: float(one.text == other.text and bool(one.shares(other))), 1.0)
    pairs += _paired(gone, new, lambda one, other: _alike(one, other) if one.shares(other) else 0.0, MIN_ALIKE)
    if max(len(gone), len(new)) <= MAX_ELSEWHERE:
        pairs += _paired(gone, new, _alike, MIN_ALIKE_ELSEWHERE)
    compared = [ClaimDifference(before=one, after=other, changes=_changes(one, other)) for one, other in pairs]
    changed = sorted((found for found in compared if found.changes), key=_line)
    return new, gone, changed, len(compared) - len(changed)


def _line(found: ClaimDifference) -> int:
    return found.after.line if found.after is not None else 0


def _paired(
    gone: list[CitedSentence],
    new: list[CitedSentence],
    score: Callable[[CitedSentence, CitedSentence], float],
    least: float,
) -> Pairs:
    """Pair the most alike first; what is paired leaves both lists."""
    scored = [
        (value, -i, -j)
        for i, one in enumerate(gone)
        for j, other in enumerate(new)
        if (value := score(one, other)) >= least
    ]
    left, right = dict(enumerate(gone)), dict(enumerate(new))
    pairs: Pairs = []
    for _, i, j in sorted(scored, reverse=True):
        if -i in left and -j in right:
            pairs.append((left.pop(-i), right.pop(-j)))
    gone[:], new[:] = left.values(), right.values()
    return pairs


def _alike(one: CitedSentence, other: CitedSentence) -> float:
    """Share of words in common; figures count as one word, since they are what changes."""
    mine, theirs = _bag(one.text), _bag(other.text)
    return 2 * (mine & theirs).total() / max(1, mine.total() + theirs.total())


def _bag(text: str) -> "Counter[str]":
    return Counter("#" if any(map(str.isdigit, word)) else word for word in words(normal(text).lower()))


def _changes(one: CitedSentence, other: CitedSentence) -> tuple[str, ...]:
    if one.text == other.text:
        return () if one.shares(other) else (OTHER_SOURCE,)
    found = [change.labelled for change in changes_between(one.text, other.text)]
    mine, theirs = quotes_in(one.text), quotes_in(other.text)
    lost, came = [q for q in mine if q not in theirs], [q for q in theirs if q not in mine]
    found += [f"“{before}” → “{after}”" for before, after in zip(lost, came, strict=False)]
    return tuple(found) or (() if one.shares(other) else (OTHER_SOURCE,))
