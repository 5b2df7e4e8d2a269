"""Whether a sentence takes a figure of a list with another one's part: `4.5 hours by plane, 5.5 hours by train`.

Each figure of such a list has what it is of behind it, with a preposition, as far as the next figure.
"""

import re

from explorer.reports.verify.passages import Figure, Passages
from explorer.reports.verify.terms import terms_of

PART = re.compile(r"(?:[ -][\w'-]+){0,2}? (?:by|for|in|with|from|to|at|on|of|as|among|under|bei|mit|für|von|aus)\b")
MAX_CHARS = 120
PART_END = re.compile(r"[.,;:()\n]|\b(?:and|but|while|und|aber)\b")
COMPARED = re.compile(r"\b(?:from|than)(?: \w+)? ?$")
"""Before a figure with which another one is compared."""


def other_part(passages: Passages, span: tuple[int, int], place: Figure, there: Passages) -> Figure | None:
    """Return another figure of the source's sentence whose part the sentence has behind this one.

    Args:
        passages: The sentence.
        span: Where the figure is in it.
        place: The figure of the source.
        there: The source.
    """
    mine, its = _part(passages, span[1]), _part(there, place.end)
    said = mine or terms_of(passages.text, 0, span[0]).words
    is_compared = not mine and COMPARED.search(passages.text[max(0, span[0] - MAX_CHARS) : span[0]])
    if not its or not said or its & said or is_compared:
        return None
    for rival in there.figures_in(*there.span(there.number_at(place.start))):
        if rival.unit != place.unit or rival.value == place.value:
            continue
        other = _part(there, rival.end)
        if other and (other & said) - its:
            return rival
    return None


def _part(passages: Passages, end: int) -> frozenset[str]:
    """Return the words behind a figure that say what it is of; none where no preposition leads to them."""
    start = PART.match(passages.text, end, end + MAX_CHARS)
    if start is None:
        return frozenset()
    following = passages.figures_in(start.end(), end + MAX_CHARS)
    last = following[0].start if following else end + MAX_CHARS
    stop = PART_END.search(passages.text, start.end(), last)
    return terms_of(passages.text, start.end(), stop.start() if stop else last).words
