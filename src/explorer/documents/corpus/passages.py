"""Passages: the parts of a text, their words in the form of the index, and which of them fit a task.

The input of a user is never read as query syntax. Scripts without spaces between words are indexed character by
character and searched in pairs: a search for `数据库` looks for `数据` and `据库`, whatever is around them.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from explorer.text.ranking import rank_by_query
from explorer.text.words import CJK, CJK_LETTER, is_stop_word, sentence_ends, words_of

PIECE = re.compile(f"[{CJK}]+|[^\\W_{CJK}]+")
QUOTED = re.compile(r"\"([^\"]{1,300})\"|“([^”]{1,300})”|「([^」]{1,300})」|『([^』]{1,300})』")
MAX_TERMS = 64


@dataclass(frozen=True)
class Query:
    """A question as search terms; the words of a term must follow each other in a text."""

    terms: tuple[str, ...]
    phrases: tuple[str, ...] = ()
    """The quoted parts of the question, as terms."""
    is_exact: bool = False
    """Whether the question consists of quoted phrases only, all of which a passage must have."""

    @property
    def match(self) -> str:
        """The FTS5 query for any of the terms; for an exact query, for every phrase."""
        if self.is_exact:
            return " AND ".join(map(_literal, self.phrases))
        return " OR ".join(map(_literal, dict.fromkeys((*self.phrases, *self.terms))))

    @property
    def match_all(self) -> str:
        """The FTS5 query for passages with all terms and phrases."""
        return " AND ".join(map(_literal, dict.fromkeys((*self.phrases, *self.terms))))


def _literal(term: str) -> str:
    return f'"{term}"'


def indexed(text: str) -> str:
    """Return a text in the form of the index: letters have normal width, and CJK characters spaces around them."""
    return CJK_LETTER.sub(r" \g<0> ", unicodedata.normalize("NFKC", text))


def understood(question: str) -> Query:
    """Return a question as a query; the query has no terms if the question has no word."""
    text = unicodedata.normalize("NFKC", question)
    quoted = ["".join(groups) for groups in QUOTED.findall(text)]
    phrases = tuple(dict.fromkeys(phrase for part in quoted if (phrase := phrase_of(part))))
    rest = QUOTED.sub(" ", text)
    terms = tuple(dict.fromkeys(_terms(f"{rest} {' '.join(quoted)}")))[:MAX_TERMS]
    return Query(terms, phrases[:MAX_TERMS], is_exact=bool(phrases) and not PIECE.search(rest))


def phrase_of(text: str) -> str:
    """Return the words of a text as one term, in their order, with spaces between CJK characters."""
    return " ".join(" ".join(piece) if CJK_LETTER.match(piece) else piece for piece in PIECE.findall(text))


def _terms(text: str) -> Iterator[str]:
    pieces: list[str] = PIECE.findall(text)
    telling = [term for piece in pieces for term in _terms_of(piece) if not is_stop_word(term.replace(" ", ""))]
    yield from telling or [term for piece in pieces for term in _terms_of(piece)]


def _terms_of(piece: str) -> list[str]:
    if not CJK_LETTER.match(piece):
        return [piece]
    return [f"{one} {other}" for one, other in pairwise(piece)] or [piece]


def folded(text: str) -> str:
    """Return a text of the same length in lower case without accents, in which words are searched; not for display."""
    return "".join(_fold(character) for character in text)


def _fold(character: str) -> str:
    if character.isascii():
        return character.lower()
    return unicodedata.normalize("NFKD", character)[:1].lower()[:1] or character


GOOD_CHARS = 1_000
"""The length in characters from which a passage ends at the end of its block."""
MAX_CHARS = 1_500
SNIPPET_CHARS = 320
LEAD_CHARS = 80
"""The number of characters in a snippet before the first word found."""
MIN_STEM_CHARS = 4
BLOCK_END = re.compile(r"\n[ \t]*\n\s*|\n(?=#{1,6} )")
WORD_END = re.compile(r"\s+|(?<=[，、；])")


@dataclass(frozen=True)
class Passage:
    """A part of a text: `start` and `end` are offsets in characters."""

    start: int
    end: int
    page: int = 0
    """The page number from 1; 0 for a text without pages."""


PageStarts = Sequence[tuple[int, int]]
"""Pairs of the offset in a text where a page begins and the page's number, in order."""


def passages_of(text: str, page_starts: PageStarts = ()) -> Iterator[Passage]:
    """Yield the passages of a text without blank ones; each has at most `MAX_CHARS` characters and is on one page."""
    for start, end in pairwise(sorted({0, *(offset for offset, _ in page_starts), len(text)})):
        page = page_at(start, page_starts)
        yield from (Passage(begin, stop, page) for begin, stop in _packed(text, start, end) if text[begin:stop].strip())


def page_at(offset: int, page_starts: PageStarts) -> int:
    """Return the page at an offset, from 1; 0 for a text without pages."""
    place = bisect_right(page_starts, offset, key=lambda start: start[0])
    return page_starts[place - 1][1] if place else 0


def _packed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each passage: short blocks that follow each other are joined."""
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
    """Yield the places where a block that is too long is cut, and then its end."""
    begin = start
    while end - begin > MAX_CHARS:
        begin = _cut(text, begin)
        yield begin
    if end > begin:
        yield end


def _cut(text: str, begin: int) -> int:
    """Return where a block that is too long is cut: after a line, else after a sentence, else after a word."""
    first, last = begin + GOOD_CHARS // 2, begin + MAX_CHARS
    if line_end := text.rfind("\n", first, last) + 1:
        return line_end
    ends = [found.end for found in sentence_ends(text, start=first, stop=last) if found.end < last]
    if ends:
        return last - len(text[ends[-1] : last].lstrip())
    return max((found.end() for found in WORD_END.finditer(text, first, last)), default=last)


def snippet(text: str, terms: Sequence[str]) -> str:
    """Return the part of a passage with the most different terms, unchanged; dots mark where text is left out."""
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
    """Return the offset of the window in which the most different terms are found."""
    places = sorted((match.start(), term) for term in terms for match in re.finditer(_near(term), text))
    window = SNIPPET_CHARS - LEAD_CHARS
    scored = [
        (len({term for place, term in places[index:] if place < start + window}), -start)
        for index, (start, _) in enumerate(places)
    ]
    return -max(scored)[1] if scored else 0


def _near(term: str) -> str:
    """Return a pattern for the first letters of a word, so that other endings match; other scripts match exactly."""
    bare = folded(term.replace(" ", ""))
    if not bare.isascii():
        return re.escape(bare)
    return rf"\b{re.escape(bare[: max(MIN_STEM_CHARS, len(bare) - 2)])}"


def _word_border(text: str, start: int) -> int:
    """Return the offset of the next word, or `start` if no word begins near it."""
    if not start or text[start - 1].isspace():
        return start
    space = re.compile(r"\s+").search(text, start, start + LEAD_CHARS // 2)
    return space.end() if space else start


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
