"""Quoted passages of a sentence, and whether a source has them word for word."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from explorer.reports.verify.indexed_source import IndexedSource
from explorer.reports.verify.plain import plain, spaced, words
from explorer.text.words import is_mostly_cjk

MAX_QUOTE_CHARS = 3_000
LEAST_WORDS = 3
"""Fewer words in quotes may be the writer's own, or the short form of a title."""
LEAST_SQUEEZED = 12
WINDOW_CHARS = 2_000
"""Between two parts of a quote with an ellipsis."""
MAX_STARTS = 200
QUOTED = re.compile(
    "|".join(
        [
            rf"“(?:[^“”]|“[^“”]{{0,400}}”){{1,{MAX_QUOTE_CHARS}}}”",
            rf"„[^„“”]{{1,{MAX_QUOTE_CHARS}}}[“”]",
            rf"«[^«»]{{1,{MAX_QUOTE_CHARS}}}»",
            rf"「[^「」]{{1,{MAX_QUOTE_CHARS}}}」",
            rf"『[^『』]{{1,{MAX_QUOTE_CHARS}}}』",
            rf'(?<![A-Za-z0-9"])"(?=[^\s"])[^"]{{1,{MAX_QUOTE_CHARS}}}(?<=\S)"(?![A-Za-z0-9])',
            r"(?<![\w\u2019])\u2018(?=[^\s\u2018])(?:[^\u2018\u2019]|\u2019(?=\w)){3,400}[^\u2018\u2019\s]\u2019(?!\w)",
            r"(?<![\w'])'(?=[^\s'\d])(?:[^'\n]|'(?=\w)){3,400}[^'\s]'(?!\w)",
        ]
    )
)
GAP = re.compile(r"\[?\s?(?:\.\.\.|…|\. \. \.)\s?\]?|\[[^\[\]]{2,80}\]")
"""Left out, or put in by the writer."""
LETTER_IN_BRACKETS = re.compile(r"\[(\w)\](?=\w)")
_ENGLISH = "the of and to is in that for was with are have not it this"
ENGLISH = frozenset(_ENGLISH.split())
ENGLISH_WORDS = 2


class Quote(NamedTuple):
    """A passage in quotes, with its place in the sentence."""

    start: int
    end: int
    text: str
    """Without the marks."""


def quotes(sentence: str) -> Iterator[Quote]:
    """The quoted passages, outermost only."""
    for found in QUOTED.finditer(sentence):
        yield Quote(found.start(), found.end(), found[0][1:-1].strip())


def parts_of(quote: str) -> list[tuple[str, bool]]:
    """The parts between ellipses, each as words with spaces around; True for one whose last word may be cut."""
    text = LETTER_IN_BRACKETS.sub(r"\1", quote)
    pieces: list[tuple[str, bool]] = []
    position = 0
    for gap in GAP.finditer(text):
        is_cut = gap.start() > position and text[gap.start() - 1].isalnum() and gap[0][0] in ".…"
        pieces.append((spaced(plain(text[position : gap.start()])), is_cut))
        position = gap.end()
    pieces.append((spaced(plain(text[position:])), False))
    return [(piece, is_cut) for piece, is_cut in pieces if piece.strip()]


def has_quote(indexed: IndexedSource, quote: str) -> bool:
    """Whether the source has all parts of a quote, in their order and not far apart."""
    parts = parts_of(quote)
    if not parts:
        return False
    if _in_order(indexed.spaced, [_needle(part, is_cut=is_cut) for part, is_cut in parts]):
        return True
    squeezed = [re.sub(r"(?<!\d) | (?!\d)", "", part) for part, _ in parts]
    return all(len(part) >= LEAST_SQUEEZED for part in squeezed) and _in_order(indexed.squeezed, squeezed)


def _needle(part: str, *, is_cut: bool) -> str:
    return part.rstrip() if is_cut else part


def _in_order(text: str, parts: list[str]) -> bool:
    """Whether the parts stand one behind the other, each near the one before."""
    place = text.find(parts[0])
    for _ in range(MAX_STARTS):
        if place < 0:
            return False
        if _follow(text, parts, place):
            return True
        place = text.find(parts[0], place + 1)
    return False


def _follow(text: str, parts: list[str], place: int) -> bool:
    end = place + len(parts[0].rstrip())
    for part in parts[1:]:
        place = text.find(part, end, end + WINDOW_CHARS + len(part))
        if place < 0:
            return False
        end = place + len(part.rstrip())
    return True


def is_short(quote: str) -> bool:
    """Whether a quote is too short to hold its writer to it."""
    shown = words(plain(quote))
    return len(shown) < (LEAST_WORDS if not is_mostly_cjk(quote) else LEAST_WORDS + 2)


def is_translated(quote: str, indexed: IndexedSource) -> bool:
    """Whether a quote is plainly in another language than the source, so that it cannot be there word for word."""
    if is_mostly_cjk(quote) != indexed.is_chinese:
        return True
    language = indexed.source.language[:2].lower()
    is_english = len(ENGLISH & set(words(plain(quote)))) >= ENGLISH_WORDS
    return is_english and language not in {"", "en", "un"}


def likeness(quote: str, indexed: IndexedSource) -> str:
    """The beginning of a quote as far as the source has it; empty when it has no three words of it."""
    shown = words(" ".join(part for part, _ in parts_of(quote)))
    low, high = 0, len(shown)
    while low < high:
        middle = (low + high + 1) // 2
        if f" {' '.join(shown[:middle])} " in indexed.spaced:
            low = middle
        else:
            high = middle - 1
    return " ".join(shown[:low]) if low >= LEAST_WORDS else ""
