"""Whom a source gives a quote to, or a statement that a sentence reports without quoting it.

The speaker of a quote is one of the names in its sentence, or before it where that has only a pronoun. Of a reported
statement, `Ida Holm said that prices will fall`, the sentences of the source that share most with it are sought: if
they are somebody's, and the one whom the sentence names is neither there nor next to it, it is not that one's.
"""

import re
from collections.abc import Iterator, Sequence

from explorer.reports.verify.figures import FILLER
from explorer.reports.verify.indexed_source import IndexedSource
from explorer.reports.verify.passages import LINE_OF, Passages
from explorer.reports.verify.plain import plain, terms_of, words
from explorer.reports.verify.sentences import LEAST_WORDS
from explorer.reports.verify.subjects import Conflict
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
    speakers = [] if is_title(quote) else _speakers(before, behind)
    known = next((one for one in speakers if one in there.text), None)
    if known is None:
        return None
    passage, has_signs = "", QUOTE_SIGN in there.text
    for place in _places(quote, there.text):
        start, end = _span(place, there)
        around = _around_quote(place, (start, end), there, has_signs=has_signs)
        # One place that does not speak against the sentence is enough, of however many.
        if any(speaker in around for speaker in speakers) or not (_names(around) or CJK_SPEAKER.search(around)):
            return None
        passage = passage or " ".join(there.text[start:end].split())
    if not passage:
        return None
    return Conflict("gives it to somebody else", (passage, there.sentence(there.number_at(there.text.find(known)))))


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


def _span(place: tuple[int, int], there: Passages) -> tuple[int, int]:
    """Return where the sentences of a quote begin and end."""
    first, last = there.number_at(place[0]), there.number_at(place[1])
    start, end = there.span(first)[0], there.span(last)[1]
    # A quote that is a sentence of its own: who says it is named before.
    return (there.span(first - 1)[0] if start == place[0] and first else start), end


def _around_quote(place: tuple[int, int], span: tuple[int, int], there: Passages, *, has_signs: bool) -> str:
    """Return the words around a quote in which it is said who speaks.

    Args:
        place: Where the quote begins and ends.
        span: Where its sentences do.
        there: The text.
        has_signs: Whether the text marks its quotes.
    """
    first, last = there.number_at(place[0]), there.number_at(place[1])
    around = f"{there.text[span[0] : place[0]]} {there.text[place[1] : span[1]]}"
    is_open = QUOTE_SIGN not in there.text[max(0, place[0] - 2) : place[0]] and not SPEECH.search(around)
    if first and (is_open or not _names(around)) and not CJK_LETTER.search(around):
        behind_it = there.sentence(last + 1) if is_open and last + 1 < len(there) else ""
        around = f"{there.sentence(first - 1)} {around} {behind_it}"
    if SAID_PRONOUN.search(around) or not has_signs:
        around = f"{' '.join(there.sentence(one) for one in range(max(0, first - MAX_BEFORE), first))} {around}"
    return around


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


VERB = re.compile(
    r"\b(?:sa(?:id|ys?)|t(?:old|ells)|wr(?:ote|ites)|argue[sd]?|warn(?:s|ed)|explain(?:s|ed)|call(?:s|ed)|believe[sd]?|thinks?"
    r"|thought|claim(?:s|ed)|note[sd]|add(?:s|ed)|recommend(?:s|ed)|advise[sd]?|suggest(?:s|ed)|complain(?:s|ed)"
    r"|predict(?:s|ed)|expect(?:s|ed)|den(?:ies|ied)|critici[sz]e[sd]|praise[sd]|asked|agree[sd]|insist(?:s|ed)"
    r"|worr(?:ies|ied)|hope[sd]?|doubt(?:s|ed)|sagte?|erklärte?|schrieb|meinte?|warnte?|kritisierte?|forderte?"
    r"|déclaré|affirmé|expliqué)\b"
)
"""Verbs of speaking and thinking, before what is reported."""
HERE = re.compile(r"^(?:[^,.;:]{2,60}?)(?:,[^,;:]{2,80},)? $")
"""A subject, with what it is: all that may be before the verb."""
SOURCE_OF = re.compile(r"^(?:According to|In the (?:view|words|opinion) of|Laut|Selon) (?P<who>[^,:;]{3,60}), ")
"""Before what is reported of somebody."""
REPORTED_CJK = re.compile(
    rf"^(?P<who>[{HAN}]{{2,8}}?)(?:氏|さん|先生|女士)?(?:说|說|称|稱|表示|认为|認為|指出|强调|透露|则称|则说|は)[，,、：:]?\s*"
)
LEAST_TERMS = 2
LEAST_SHARED = 0.5
LEAST_ALSO = 0.75
AROUND_VERB = 90


def report_conflict(text: str, there: Passages) -> Conflict | None:
    """Return what speaks against the speaker of a reported statement; None when nothing plain does."""
    who, what = _reported(text)
    if not who or FILLER in text or not any(_has(there.text, name) for name in who):
        return None
    words = terms_of(what).words - terms_of(" ".join(who)).words
    counts = there.shared(words)
    best = max(counts.values(), default=0)
    if best < max(LEAST_TERMS, LEAST_SHARED * len(words)):
        return None
    alike = [number for number, count in counts.items() if count >= LEAST_ALSO * best]
    if any(_has(_around(number, there), name) for number in alike for name in who):
        return None
    own = next((number for number, count in counts.items() if count == best and _is_given(number, there)), None)
    if own is None:
        return None
    sentences = enumerate(map(there.sentence, range(len(there))))
    known = next((number for number, one in sentences if any(_has(one, name) for name in who)), own)
    return Conflict("gives it to somebody else", (_around(own, there), there.sentence(known)))


def _reported(text: str) -> tuple[list[str], str]:
    """Return the words of a speaker's name, and what is reported; nothing when the sentence reports nothing."""
    shown = " ".join(text.split())
    if CJK_LETTER.search(shown):
        found = REPORTED_CJK.match(shown)
        is_plain = found and not CJK_PRONOUN.search(found["who"])
        return ([found["who"][-2:]], shown[found.end() :]) if found and is_plain else ([], "")
    if source := SOURCE_OF.match(shown):
        return _words_of(_names(source["who"])), shown[source.end() :]
    verb = VERB.search(shown)
    if verb is None or not HERE.match(shown[: verb.start()]):
        return [], ""
    head = shown[: verb.start()]
    names = [name for place, name in placed_names(head) if not BELONGS.search(head[:place])]
    if not names and re.fullmatch(r"[\w.-]{3,30} ", head):
        names = [head.strip()]
    return _words_of(names), shown[verb.end() :]


def _words_of(names: Sequence[str]) -> list[str]:
    """Return the words of the first of some names."""
    return [word.removesuffix("'s") for name in names[:1] for word in name.split() if len(word) > LEAST_TERMS]


def _has(text: str, name: str) -> bool:
    return name in text if CJK_LETTER.search(name) else re.search(rf"\b{re.escape(name)}\b", text) is not None


def _around(number: int, there: Passages) -> str:
    """Return a sentence with whose line of a thread it is; without a speaker, with those next to it."""
    own = there.sentence(number)
    if (writer := _writer(number, there)) is not None:
        return f"{writer}: {own}"
    if _names_speaker(own):
        return own
    first, last = max(0, number - 1), min(len(there) - 1, number + 1)
    return " ".join(there.sentence(one) for one in range(first, last + 1))


def _writer(number: int, there: Passages) -> str | None:
    """Return who wrote the line of a sentence, where the text is a thread of several."""
    line = LINE_OF.match(there.text, there.text.rfind("\n", 0, there.span(number)[0]) + 1)
    return line["who"] if line and there.writers - {line["who"]} else None


def _is_given(number: int, there: Passages) -> bool:
    """Return whether a sentence of a source, or the one before it, is given to somebody by name."""
    if _writer(number, there) is not None:
        return True
    return any(_names_speaker(there.sentence(one)) for one in (number, number - 1) if one >= 0)


def _names_speaker(sentence: str) -> bool:
    if CJK_LETTER.search(sentence):
        return CJK_SPEAKER.search(sentence) is not None
    found = SPEECH.search(sentence)
    if found is None:
        return False
    start, end = max(0, found.start() - AROUND_VERB), found.end() + AROUND_VERB
    return any(True for _ in placed_names(sentence[start:end]))
