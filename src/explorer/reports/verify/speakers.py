"""Who a source gives a quote to: the names in the sentence of the quote, or before it where that has only a pronoun."""

import re
from collections.abc import Iterator

from explorer.reports.verify.context import Conflict
from explorer.reports.verify.indexed_source import IndexedSource
from explorer.reports.verify.passages import Passages
from explorer.reports.verify.plain import plain, words
from explorer.reports.verify.sentences import LEAST_WORDS
from explorer.reports.verify.terms import terms_of
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
QUOTE_SIGN = '"'
"""Before a quote that a source marks as one; without it, the sentence before may say who speaks on."""
BELONGS = re.compile(r"\b(?:of|at|from|for|in|by|with|heads|runs|leads)(?: the)? $")
"""Before the name of what somebody belongs to."""
MAX_INITIAL = 2
SPEECH = re.compile(
    r"\b(?:said|says?|told|tells|wrote|writes|add(?:s|ed)|argue[sd]?|warn(?:s|ed)|explain(?:s|ed)|call(?:s|ed)|according"
    r"|claim(?:s|ed)|note[sd]|ask(?:s|ed)|announc\w+|stated|tweeted|posted|criticized|criticised|sagt\w*|erklär\w+"
    r"|schrieb|laut|dit|déclar\w+|affirm\w+|selon)\b"
)
"""Words that give what is said to somebody."""
MAX_BEFORE = 3
SAID_PRONOUN = re.compile(
    r"(?:\b(?:he|she|they)|'s(?: [a-z]+){1,3})\W+(?:\w+\W+)?"
    r"(?:said|says?|t(?:old|ells)|wrote|writes|added|argued|explained)\b"
)
"""Who speaks was named in a sentence before."""
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
    is_open = QUOTE_SIGN not in there.text[max(0, place[0] - 2) : place[0]] and not SPEECH.search(around)
    if first and (is_open or not _names(around)) and not CJK_LETTER.search(around):
        behind_it = there.sentence(last + 1) if is_open and last + 1 < len(there) else ""
        around = f"{there.sentence(first - 1)} {around} {behind_it}"
    if SAID_PRONOUN.search(around) or QUOTE_SIGN not in there.text:
        around = f"{' '.join(there.sentence(one) for one in range(max(0, first - MAX_BEFORE), first))} {around}"
    speakers = _speakers(before, behind)
    if any(speaker in around for speaker in speakers) or not any(one in there.text for one in speakers):
        return None
    if not _names(around) and not CJK_SPEAKER.search(around):
        return None
    known = next(one for one in speakers if one in there.text)
    other = next(number for number in range(len(there)) if known in there.text[slice(*there.span(number))])
    passages = (" ".join(there.text[start:end].split()), there.sentence(other))
    return Conflict("gives it to somebody else", passages)


def _speakers(before: str, behind: str) -> list[str]:
    """Return the words of the name nearest to the quote, the last one first; of a Chinese name, two characters."""
    if CJK_LETTER.search(before) or CJK_LETTER.search(behind):
        found = [one[1] for one in CJK_SPEAKER.finditer(before)][-1:]
        return [one for one in found if not CJK_PRONOUN.search(one)]
    names = _sayer(before) or _names(behind[:NEAR_CHARS])[:1]
    return [word.removesuffix("'s") for name in names for word in reversed(name.split()) if len(word) > MAX_INITIAL]


def _sayer(before: str) -> list[str]:
    """Return the name of who speaks in the words before a quote: `Ida Holm, who heads Northport Ferries, said that`."""
    verbs = list(SPEECH.finditer(before))
    if not verbs:
        return _names(before)[::-1]
    head = before[: verbs[-1].start()]
    names = [name for place, name in placed_names(head) if not BELONGS.search(head[:place])]
    return names[:1] if head.rstrip().endswith(",") else names[-1:]


def _names(text: str) -> list[str]:
    return [name for _, name in placed_names(text)]


def placed_names(text: str) -> Iterator[tuple[int, str]]:
    """Yield where names begin, and the names without words such as `The`."""
    for one in NAME.finditer(text):
        kept = [word for word in one[0].split() if word.lower().split("'")[0] not in NO_SPEAKER]
        if kept and terms_of(" ".join(kept)).names:
            yield one.start(), " ".join(kept)
