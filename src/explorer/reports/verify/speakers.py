"""Who a source gives a quote to: the names in the sentence of the quote, or before it where that has only a pronoun."""

import re
from collections.abc import Iterator

from explorer.reports.verify.context import Conflict
from explorer.reports.verify.indexed_source import IndexedSource
from explorer.reports.verify.passages import Passages, terms_of
from explorer.reports.verify.plain import plain, words
from explorer.reports.verify.sentences import LEAST_WORDS
from explorer.text.words import CJK_LETTER, HAN

FIRST_WORDS = 6
NEAR_CHARS = 60
"""Between a quote and the name of who is said to have said it."""
LATIN_WORD = re.compile(r"[^\W\d_]+")
LONGEST_SMALL = 3
"""Longer words of a title begin with a capital letter."""
LEAST_TITLE = 2
NAME = re.compile(r"[A-ZÀ-Þ][\w'-]+(?: (?:(?:de|von|van|al|bin|di|da) )?[A-ZÀ-Þ][\w'-]+)*")
_NO_SPEAKER = (
    "the in on at by of to from a an and or as but he she they it his her their this that according when while after"
    " er sie der die das il elle le la les"
)
NO_SPEAKER = frozenset(_NO_SPEAKER.split())
CJK_SPEAKER = re.compile(
    rf"([{HAN}]{{2}})(?:氏|さん|先生|女士)?(?:表示|说|說|称|稱|认为|認為|指出|强调|透露|写道|坦言|回应|は\s*$|:\s*$|：\s*$)"
)
CJK_PRONOUN = re.compile("[他她它我们們者方]")


def speaker_conflict(quote: str, before: str, behind: str, indexed: IndexedSource) -> Conflict | None:
    """Return what speaks against the speaker whom a sentence names; None when nothing plain does.

    Args:
        quote: The quote's text, which the source has.
        before: The sentence's words before the quote.
        behind: The words behind it.
        indexed: The source.
    """
    there = indexed.passages
    places = [] if is_title(quote) else list(_places(quote, there.text))
    if not places:
        return None
    found = [_at(place, before, behind, there) for place in places]
    return found[0] if all(found) else None


def is_title(quote: str) -> bool:
    """Return whether quoted words are the title of a work, which nobody says: “Birds of Prey”."""
    long = [word for word in LATIN_WORD.findall(quote) if len(word) > LONGEST_SMALL]
    return len(long) >= LEAST_TITLE and all(word[0].isupper() for word in long)


def _places(quote: str, text: str) -> Iterator[tuple[int, int]]:
    shown, whole = words(plain(re.split(r"\.\.\.|…|\[", quote)[0])), words(plain(quote))
    if len(whole) >= LEAST_WORDS and shown and (" " in quote.strip() or CJK_LETTER.search(quote)):
        small = text.lower()
        pattern = re.compile(r"\W*".join(map(re.escape, shown[:FIRST_WORDS])), re.IGNORECASE)
        for found in pattern.finditer(text):
            end = small.rfind(whole[-1], found.start(), found.start() + len(quote) + len(whole[-1]))
            yield found.start(), max(found.end(), end)


def _at(place: tuple[int, int], before: str, behind: str, there: Passages) -> Conflict | None:
    first, last = there.number_at(place[0]), there.number_at(place[1])
    start, end = there.span(first)[0], there.span(last)[1]
    if start == place[0] and first:  # the quote is a sentence of its own: who says it is named before
        start = there.span(first - 1)[0]
    around = f"{there.text[start : place[0]]} {there.text[place[1] : end]}"
    if not _names(around) and first and not CJK_LETTER.search(around):
        around = f"{there.sentence(first - 1)} {around}"
    speakers = _speakers(before, behind)
    if any(speaker in around for speaker in speakers) or not speakers or not all(one in there.text for one in speakers):
        return None
    if not _names(around) and not CJK_SPEAKER.search(around):
        return None
    other = next(number for number in range(len(there)) if speakers[0] in there.text[slice(*there.span(number))])
    passages = (" ".join(there.text[start:end].split()), there.sentence(other))
    return Conflict("gives it to somebody else", passages)


def _speakers(before: str, behind: str) -> list[str]:
    """Return the name nearest to the quote, by its last word; of Chinese names, the last two characters."""
    if CJK_LETTER.search(before) or CJK_LETTER.search(behind):
        found = [one[1] for one in CJK_SPEAKER.finditer(before)][-1:]
        return [one for one in found if not CJK_PRONOUN.search(one)]
    names = _names(before[-NEAR_CHARS:])[-1:] or _names(behind[:NEAR_CHARS])[:1]
    return [name.split()[-1].removesuffix("'s") for name in names]


def _names(text: str) -> list[str]:
    found: list[str] = []
    for one in NAME.finditer(text):
        kept = [word for word in one[0].split() if word.lower() not in NO_SPEAKER]
        if kept and terms_of(" ".join(kept)).names:
            found.append(" ".join(kept))
    return found
