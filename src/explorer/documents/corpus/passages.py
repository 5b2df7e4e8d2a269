"""A text in passages: about a screenful each, cut where the text itself has a border."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from explorer.documents.corpus.words import folded

GOOD_CHARS = 1_000
"""A passage this long ends at the next border."""
MAX_CHARS = 1_500
SNIPPET_CHARS = 320
LEAD_CHARS = 80
"""Of a snippet, before the first word found."""
MIN_STEM_CHARS = 4
BLOCK_END = re.compile(r"\n[ \t]*\n\s*|\n(?=#{1,6} )")
CLAUSE_ENDS = (
    re.compile(r"\n"),
    re.compile(r"(?<=[.!?])\s+|(?<=[。！？])"),
    re.compile(r"\s+|(?<=[，、；])"),
)
"""Where a block that is too long is cut: at a line, a sentence, a word."""


@dataclass(frozen=True)
class Passage:
    """A stretch of a text."""

    start: int
    end: int
    page: int = 0
    """From 1; 0 where there are no pages."""


PageStarts = Sequence[tuple[int, int]]
"""Where in a text each page begins, with the page's number, in order."""


def passages_of(text: str, page_starts: PageStarts = ()) -> Iterator[Passage]:
    """Cut a text: passages join to the whole, none is longer than `MAX_CHARS`, none reaches over a page's end."""
    for start, end in pairwise(sorted({0, *(offset for offset, _ in page_starts), len(text)})):
        page = page_at(start, page_starts)
        yield from (Passage(begin, stop, page) for begin, stop in _packed(text, start, end) if text[begin:stop].strip())


def page_at(offset: int, page_starts: PageStarts) -> int:
    """The page an offset is on, from 1; 0 where there are no pages."""
    place = bisect_right(page_starts, offset, key=lambda start: start[0])
    return page_starts[place - 1][1] if place else 0


def _packed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Blocks put together until there are enough of them."""
    begin = start
    last = start
    for stop in _block_ends(text, start, end):
        if stop - begin > MAX_CHARS and last > begin:
            yield begin, last
            begin = last
        if stop - begin >= GOOD_CHARS:
            yield begin, stop
            begin = stop
        last = stop
    if last > begin:
        yield begin, last


def _block_ends(text: str, start: int, end: int) -> Iterator[int]:
    begin = start
    for match in BLOCK_END.finditer(text, start, end):
        yield from _cuts(text, begin, match.end())
        begin = match.end()
    if begin < end:
        yield from _cuts(text, begin, end)


def _cuts(text: str, start: int, end: int) -> Iterator[int]:
    """The block's end, after places to cut it when it is too long."""
    begin = start
    while end - begin > MAX_CHARS:
        begin = _cut(text, begin)
        yield begin
    if end > begin:
        yield end


def _cut(text: str, begin: int) -> int:
    for border in CLAUSE_ENDS:
        ends = [match.end() for match in border.finditer(text, begin + GOOD_CHARS // 2, begin + MAX_CHARS)]
        if ends:
            return ends[-1]
    return begin + MAX_CHARS


def snippet(text: str, terms: Sequence[str]) -> str:
    """The stretch of a passage that holds most of the terms, verbatim; dots stand where it was cut."""
    if len(text) <= SNIPPET_CHARS:
        return text.strip()
    start = _best_start(folded(text), terms)
    begin = _word_border(text, max(0, min(start - LEAD_CHARS, len(text) - SNIPPET_CHARS)))
    end = min(len(text), begin + SNIPPET_CHARS)
    if end < len(text):
        space = text.rfind(" ", begin + SNIPPET_CHARS // 2, end)
        end = space if space > 0 else end
    return f"{'... ' if begin else ''}{text[begin:end].strip()}{' ...' if end < len(text) else ''}"


def _best_start(text: str, terms: Sequence[str]) -> int:
    """Where the window begins in which most different terms are found."""
    places = sorted((match.start(), term) for term in terms for match in re.finditer(_near(term), text))
    window = SNIPPET_CHARS - LEAD_CHARS
    scored = [
        (len({term for place, term in places[index:] if place < start + window}), -start)
        for index, (start, _) in enumerate(places)
    ]
    return -max(scored)[1] if scored else 0


def _near(term: str) -> str:
    """The beginning of a word, so that another ending of it is found too; characters stand as they are."""
    bare = folded(term.replace(" ", ""))
    if not bare.isascii():
        return re.escape(bare)
    return rf"\b{re.escape(bare[: max(MIN_STEM_CHARS, len(bare) - 2)])}"


def _word_border(text: str, start: int) -> int:
    """The beginning of the next word, unless there is none near."""
    if not start or text[start - 1].isspace():
        return start
    space = re.compile(r"\s+").search(text, start, start + LEAD_CHARS // 2)
    return space.end() if space else start
