"""Where sentences end: the one splitter, for prose in English, Chinese and Japanese.

A full stop ends no sentence after an abbreviation or an initial, in a number or an address, or before a small letter.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

END = re.compile(r"[.!?]+|[。！？]+|…+|\.{3}")
CLOSERS = "\"'”\u2019»」』）)]*_`"
OPENERS = " \n*_\"'“\u2018("
NO_END = re.compile(
    r"(?:^|[\s(\[“\"'])(?:e\.g|i\.e|cf|vs|etc|al|approx|ca|no|nos|fig|figs|p|pp|vol|ch|sec|eq|mr|mrs|ms|dr|prof|st|sr|jr"
    r"|inc|ltd|co|corp|gov|sen|rep|gen|dept|est|min|max|avg|u\.s|u\.k|u\.n|e\.u|a\.m|p\.m|ph\.d|d\.c"
    r"|jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec|[a-z]|(?:[a-z]\.)+[a-z])$",
    re.IGNORECASE,
)
MAX_ABBREVIATION_CHARS = 12
LOOKED_AHEAD_CHARS = 400


class SentenceEnd(NamedTuple):
    """The end of a sentence, as offsets in its text."""

    mark: int
    """Where its full stop, question mark or the like begins."""
    after_mark: int
    end: int
    """Behind the quotation marks and brackets that close with it."""


def sentence_ends(
    text: str, note: "re.Pattern[str] | None" = None, start: int = 0, stop: int | None = None
) -> Iterator[SentenceEnd]:
    """Find where sentences end, in the order of the text.

    Args:
        text: A paragraph or more; a line break within it is a space.
        note: What may stand between a sentence and the next one and belongs to neither, such as a citation.
        start: Where to begin.
        stop: Where to stop: marks from here on are not looked at, however long the text is.
    """
    for found in END.finditer(text, start, len(text) if stop is None else stop):
        end = found.end()
        while end < len(text) and text[end] in CLOSERS:
            end += 1
        if _is_end(text, found, end, note):
            yield SentenceEnd(found.start(), found.end(), end)


def _is_end(text: str, found: "re.Match[str]", end: int, note: "re.Pattern[str] | None") -> bool:
    if found[0][0] in "。！？":
        return True
    if end < len(text) and not text[end].isspace() and not (note and note.match(text, end)):
        return False
    ahead = text[end : end + LOOKED_AHEAD_CHARS]
    follows = (note.sub("", ahead) if note else ahead).lstrip(OPENERS)[:1]
    if follows.islower() and follows.isascii():
        return False
    before = text[max(0, found.start() - MAX_ABBREVIATION_CHARS) : found.start()]
    return not (found[0] == "." and follows and NO_END.search(before))


def sentences(paragraph: str) -> list[str]:
    """Split a paragraph into its sentences, each as it is written, without the space around it."""
    places = [0, *(found.end for found in sentence_ends(paragraph)), len(paragraph)]
    pieces = (paragraph[start:end].strip() for start, end in pairwise(places))
    return [piece for piece in pieces if piece]
