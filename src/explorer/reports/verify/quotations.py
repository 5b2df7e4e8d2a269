"""Whether a source has a quote: its parts word for word, in their order."""

import re

from explorer.reports.verify.indexed_source import IndexedSource
from explorer.reports.verify.plain import plain, spaced, words
from explorer.reports.verify.polarity import NEGATION
from explorer.reports.verify.sentences import LEAST_WORDS
from explorer.text.words import is_mostly_cjk

LEAST_SQUEEZED = 12
WINDOW_CHARS = 2_000
"""Between two parts of a quote with an ellipsis."""
MAX_STARTS = 200
GAP = re.compile(r"\[?\s?(?:\.\.\.|…|\. \. \.)\s?\]?|\[[^\[\]]{2,80}\]")
"""Left out, or put in by the writer."""
ELLIPSIS = re.compile(r"\.\.\.|…|\. \. \.")
LEAST_PART_WORDS, LEAST_PART_CHARACTERS = 2, 4
"""The least length of what is between ellipses: of single words of a source, nearly any sentence can be made."""
LETTER_IN_BRACKETS = re.compile(r"\[(\w)\](?=\w)")
_ENGLISH = "the of and to is in that for was with are have not it this"
ENGLISH = frozenset(_ENGLISH.split())
ENGLISH_WORDS = 2


def parts_of(quote: str) -> list[tuple[str, bool]]:
    """Return the parts of a quote between ellipses, as words; True for a part whose last word may be cut."""
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
    """Return whether the source has all parts of a quote, in their order and not far apart."""
    parts = parts_of(quote)
    if not parts:
        return False
    if spaced(plain(quote)) in indexed.spaced:
        return True
    if _is_put_together(quote):
        return False
    if _in_order(indexed.spaced, [part.rstrip() if is_cut else part for part, is_cut in parts]):
        return True
    squeezed = [re.sub(r"(?<!\d) | (?!\d)", "", part) for part, _ in parts]
    return all(len(part) >= LEAST_SQUEEZED for part in squeezed) and _in_order(indexed.squeezed, squeezed)


def _is_put_together(quote: str) -> bool:
    """Return whether a quote is one of its writer: of single words with ellipses, or with a negation put in."""
    parts = [part for part in ELLIPSIS.split(quote) if words(plain(part))]
    is_short = len(parts) > 1 and any(
        len(words(plain(part))) < (LEAST_PART_CHARACTERS if is_mostly_cjk(part) else LEAST_PART_WORDS) for part in parts
    )
    return is_short or any(gap[0][0] == "[" and NEGATION.search(gap[0]) for gap in GAP.finditer(quote))


def _in_order(text: str, parts: list[str]) -> bool:
    """Return whether the parts stand one behind the other, each near the one before."""
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


def is_translated(quote: str, indexed: IndexedSource) -> bool:
    """Return whether a quote is in another language than the source, so that it cannot be there word for word."""
    if is_mostly_cjk(quote) != indexed.is_chinese:
        return True
    language = indexed.source.language[:2].lower()
    is_english = len(ENGLISH & set(words(plain(quote)))) >= ENGLISH_WORDS
    return is_english and language not in {"", "en", "un"}


def likeness(quote: str, indexed: IndexedSource) -> str:
    """Return the beginning of a quote as far as the source has it; empty when it has no three words of it."""
    shown = words(" ".join(part for part, _ in parts_of(quote)))
    low, high = 0, len(shown)
    while low < high:
        middle = (low + high + 1) // 2
        if f" {' '.join(shown[:middle])} " in indexed.spaced:
            low = middle
        else:
            high = middle - 1
    return " ".join(shown[:low]) if low >= LEAST_WORDS else ""
