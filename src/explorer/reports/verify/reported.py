"""Who a source gives a statement to that a sentence reports without quoting it: `Ida Holm said that prices will fall`.

The sentences of the source that share most with what is reported are sought. If they are somebody's, and the one whom
the sentence names is neither there nor next to it, it is not that one's statement.
"""

import re

from explorer.reports.verify.context import Conflict
from explorer.reports.verify.figures import FILLER
from explorer.reports.verify.passages import Passages
from explorer.reports.verify.speakers import BELONGS, CJK_PRONOUN, CJK_SPEAKER, SPEECH, placed_names
from explorer.reports.verify.terms import terms_of
from explorer.text.words import CJK_LETTER, HAN

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
LINE_OF = re.compile(r"^[ \t]*(?:- )?(?P<who>[\w.-]{3,30})(?: \([^()\n]{4,60}\))?: ", re.MULTILINE)
"""The beginning of a comment of a thread, with who wrote it."""
LEAST_TERMS = 2
LEAST_SHARED = 0.5
LEAST_ALSO = 0.75
MAX_POSTINGS = 60
AROUND_VERB = 90


def report_conflict(text: str, there: Passages) -> Conflict | None:
    """Return what speaks against the speaker of a reported statement; None when nothing plain does."""
    who, what = _reported(text)
    if not who or FILLER in text or not any(_has(there.text, name) for name in who):
        return None
    words = terms_of(what).words - terms_of(" ".join(who)).words
    counts: dict[int, int] = {}
    for word in words:
        for number in there.index.get(word, ())[:MAX_POSTINGS]:
            counts[number] = counts.get(number, 0) + 1
    best = max(counts.values(), default=0)
    if best < max(LEAST_TERMS, LEAST_SHARED * len(words)):
        return None
    alike = [number for number, count in counts.items() if count >= LEAST_ALSO * best]
    if any(_has(_around(number, there), name) for number in alike for name in who):
        return None
    own = next((number for number, count in counts.items() if count == best and _is_given(number, there)), None)
    if own is None:
        return None
    known = next(number for number in range(len(there)) if any(_has(there.sentence(number), name) for name in who))
    return Conflict("gives it to somebody else", (_around(own, there), there.sentence(known)))


def _reported(text: str) -> tuple[list[str], str]:
    """Return the words of a speaker's name, and what is reported; nothing when the sentence reports nothing."""
    shown = " ".join(text.split())
    if CJK_LETTER.search(shown):
        found = REPORTED_CJK.match(shown)
        is_plain = found and not CJK_PRONOUN.search(found["who"])
        return ([found["who"][-2:]], shown[found.end() :]) if found and is_plain else ([], "")
    if source := SOURCE_OF.match(shown):
        names = [name for _, name in placed_names(source["who"])]
        return [
            word.removesuffix("'s") for word in names[0].split() if len(word) > LEAST_TERMS
        ] if names else [], shown[source.end() :]
    verb = VERB.search(shown)
    if verb is None or not HERE.match(shown[: verb.start()]):
        return [], ""
    head = shown[: verb.start()]
    names = [name for place, name in placed_names(head) if not BELONGS.search(head[:place])]
    if not names and re.fullmatch(r"[\w.-]{3,30} ", head):
        names = [head.strip()]
    who = [word.removesuffix("'s") for word in names[0].split() if len(word) > LEAST_TERMS] if names else []
    return who, shown[verb.end() :]


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
    others = (found["who"] for found in LINE_OF.finditer(there.text))
    return line["who"] if line and any(other != line["who"] for other in others) else None


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
