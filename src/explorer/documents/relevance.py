"""The passages of a long text that fit a task best, for a reader who sees only a part of the text."""

from explorer.documents.corpus.passages import passages_of
from explorer.text.ranking import rank_by_query
from explorer.text.words import is_stop_word, words_of

Stretch = tuple[int, int]
"""The start and the end of a part of a text, in characters."""


def fitting_stretches(text: str, task: str, start: int, max_chars: int) -> list[Stretch]:
    """Return the passages after `start` that have most of a task's rare words, in order; neighbours are one.

    Rare is what few passages of this text have, so words of the task that are not about this text count little.
    """
    passages = list(passages_of(text))
    query = [word for word in words_of(task) if not is_stop_word(word)]
    kept: list[Stretch] = []
    left = max_chars
    for _, place in rank_by_query([text[one.start : one.end] for one in passages], query):
        one = passages[place]
        if one.start >= start and one.end - one.start <= left:
            kept.append((one.start, one.end))
            left -= one.end - one.start
    return _joined(sorted(kept))


def _joined(stretches: list[Stretch]) -> list[Stretch]:
    joined: list[Stretch] = []
    for begin, end in stretches:
        if joined and joined[-1][1] == begin:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((begin, end))
    return joined
