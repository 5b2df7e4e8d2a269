"""The quotes of a sentence, the stretches between them, and whether a source has a quote: word for word, in order."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from explorer.reports.verify.figures import FILLER, Figures, figures
from explorer.reports.verify.indexed_source import DOTTED_LANGUAGES, IndexedSource
from explorer.reports.verify.plain import plain, spaced, words
from explorer.reports.verify.polarity import NEGATION
from explorer.reports.verify.sentences import LEAST_WORDS, Quote, Sentence, is_short, quotes
from explorer.text.words import HAN, is_mostly_cjk, language_of

ATTRIBUTION = re.compile(rf"\n\s*(?:—|–|-{{1,2}})\s*\S.{{0,80}}$|\s+(?:—|–|--)\s*[A-Z@{HAN}][^.!?]{{0,60}}$")
"""Who said it, at the end of a blockquote."""
CALLOUT = re.compile(
    r"\s*(?:\[!\w+\]|(?:\*\*|__)?(?:note|tip|warning|important|summary|caveat|tl;?dr|注意|提示|说明)\b)", re.IGNORECASE
)
"""A blockquote that is a remark of the writer's."""
GERMAN_SIGN = re.compile(r"[äöüß]|^(?:Der|Die|Das|Ein|Eine|Im|In de[rnm]) ")
"""In a sentence that is too short for its language to be plain, a sign of one that groups figures by dots."""
MARKS = str.maketrans(dict.fromkeys('“”„«»「」『』"', " "))


@dataclass(frozen=True)
class SentencePart:
    """A stretch of a sentence without its quotes."""

    text: str
    """Plain."""
    figures: Figures
    is_tail: bool = False
    """Whether the part is after a cited clause and cites nothing itself."""


def passages(sentence: Sentence) -> list[Quote]:
    """Return the quotes of a sentence; of a blockquote without any, all of it."""
    shown = list(quotes(sentence.text))
    if shown or sentence.kind != "quote" or CALLOUT.match(sentence.text):
        return shown
    text = ATTRIBUTION.sub("", sentence.text.rstrip())
    return [Quote(0, len(text), text.strip())] if text.strip() else []


def parts(sentence: Sentence) -> Iterator[SentencePart]:
    """Yield what the citation covers, and what is after it in a part of its own."""
    text = sentence.text
    for start, end, quote in passages(sentence):
        # A word or two in quotes is no passage, and its figures are the sentence's.
        kept = text[start:end].translate(MARKS) if is_short(quote) else FILLER * (end - start)
        text = text[:start] + kept + text[end:]
    for stretch, is_tail in ((text[: sentence.tail], False), (text[sentence.tail :], True)):
        if stretch.strip():
            clear = plain(stretch)
            language = language_of(clear)
            is_dotted = language in DOTTED_LANGUAGES or (not language and GERMAN_SIGN.search(clear) is not None)
            yield SentencePart(clear, figures(clear, is_dotted=is_dotted), is_tail)


def part_of(quote: str) -> SentencePart:
    """Return a quote, read for its figures."""
    clear = plain(quote)
    return SentencePart(clear, figures(clear))


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
