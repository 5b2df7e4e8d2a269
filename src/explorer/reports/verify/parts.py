"""A sentence as look-ups take it: its quotes, and what is left as plain text with the figures in it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from explorer.reports.verify.derived import own_count
from explorer.reports.verify.figures import Figures, figures
from explorer.reports.verify.plain import plain
from explorer.reports.verify.quantities import FILLER, Quantity
from explorer.reports.verify.quotes import Quote, is_short, quotes
from explorer.reports.verify.sentences import Sentence
from explorer.text.words import HAN

ATTRIBUTION = re.compile(rf"\n\s*(?:—|–|-{{1,2}})\s*\S.{{0,80}}$|\s+(?:—|–|--)\s*[A-Z@{HAN}][^.!?]{{0,60}}$")
"""Who said it, at the end of a blockquote."""
CALLOUT = re.compile(
    r"\s*(?:\[!\w+\]|(?:\*\*|__)?(?:note|tip|warning|important|summary|caveat|tl;?dr|注意|提示|说明)\b)", re.IGNORECASE
)
"""A blockquote that is a remark of the writer's."""
MARKS = str.maketrans(dict.fromkeys('“”„«»「」『』"', " "))


@dataclass(frozen=True)
class SentencePart:
    """A stretch of a sentence without its quotes."""

    text: str
    """Plain."""
    figures: Figures
    is_tail: bool = False
    """It stands behind a cited clause and cites nothing itself."""


def passages(sentence: Sentence) -> list[Quote]:
    """The quotes of a sentence; of a blockquote without any, all of it."""
    shown = list(quotes(sentence.text))
    if shown or sentence.kind != "quote" or CALLOUT.match(sentence.text):
        return shown
    text = ATTRIBUTION.sub("", sentence.text.rstrip())
    return [Quote(0, len(text), text.strip())] if text.strip() else []


def parts(sentence: Sentence) -> Iterator[SentencePart]:
    """What the citation covers, and what stands behind it in a part of its own."""
    text = sentence.text
    for start, end, quote in passages(sentence):
        # A word or two in quotes is no passage, and its figures are the sentence's.
        kept = text[start:end].translate(MARKS) if is_short(quote) else FILLER * (end - start)
        text = text[:start] + kept + text[end:]
    for stretch, is_tail in ((text[: sentence.tail], False), (text[sentence.tail :], True)):
        if stretch.strip():
            clear = plain(stretch)
            yield SentencePart(clear, figures(clear), is_tail)


def part_of(quote: str) -> SentencePart:
    """A quote, read for its figures."""
    clear = plain(quote)
    return SentencePart(clear, figures(clear))


def is_passed_over(one: Quantity) -> bool:
    """Numbers that say nothing: `one` and `zero` as words, without a unit."""
    return one.is_word and not one.unit and max(one.values) <= 1


def is_checkable(sentence: Sentence) -> bool:
    """Whether a sentence without a citation says something that needs one."""
    if any(not is_short(quote.text) for quote in passages(sentence)):
        return True
    for part in parts(sentence):
        shown = [one for one in part.figures.quantities if not is_passed_over(one) and not own_count(one, part.text)]
        if any(not one.is_word or one.unit for one in shown) or any(one.day.day for one in part.figures.dates):
            return True
    return False
