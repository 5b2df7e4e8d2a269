"""A sentence in what is looked up of it: its quotes, and the stretches between them with their figures."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from explorer.reports.verify.figures import FILLER, Figures, figures
from explorer.reports.verify.indexed_source import DOTTED_LANGUAGES
from explorer.reports.verify.plain import plain
from explorer.reports.verify.sentences import Quote, Sentence, is_short, quotes
from explorer.text.languages import language_of
from explorer.text.words import HAN

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
