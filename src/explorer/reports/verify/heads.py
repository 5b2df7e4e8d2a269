"""Whether a Chinese or Japanese source says of another subject what a sentence says.

No letter shows in these scripts what a name is. A subject is taken to be what the sentence begins with, if a clause of
the source begins with it, too. The clause that says the rest has to have it, or to follow one that has it.
"""

import re

from explorer.reports.verify.passages import Passages
from explorer.reports.verify.terms import terms_of
from explorer.text.words import HAN, HIRAGANA, KATAKANA

NO_HEAD = re.compile(
    r"^(?:\d{4}年(?:度|\d{1,2}月)?|[今去前明]年|昨天|今天|目前|其中|全年|而|则|同时|但是?|其|该|[\d.]+%?|[约共计]?[一二三四五六七八九十百千万亿两]*分之[一二三四五六七八九十百点]+|[的在是为有设约共将了,，\s])+"
)
START = rf"(?:^|[^{HAN}{HIRAGANA}{KATAKANA}\w]|其中|而|但)"
"""Before the beginning of a clause."""
LETTERS = re.compile(rf"[{HAN}{HIRAGANA}{KATAKANA}A-Z\d]+")
MIN_HEAD = 2
MAX_HEAD = 10
LEAST_SAME = 0.6
MAX_SENTENCES = 40


def other_head(text: str, there: Passages) -> int | None:
    """Return the sentence of a source that says of another what a sentence says of its subject; None without one."""
    bare = NO_HEAD.sub("", text.strip())
    head = _head(bare, there.text)
    rest = terms_of(bare[len(head) :]).words
    if not head or not rest or head in there.sentence(0):
        return None
    numbers = sorted({number for term in rest for number in there.index.get(term, ())[:MAX_SENTENCES]})
    shares = [
        (len(rest & terms_of(there.text, *span).words), number, span)
        for number in numbers
        for span in _spans(number, there)
    ]
    best = max(shares, default=(0, 0, (0, 0)))[0]
    if best < max(1, LEAST_SAME * len(rest)):
        return None
    others = [number for share, number, span in shares if share == best and _has_other(head, rest, number, span, there)]
    return others[0] if len(others) == sum(share == best for share, _, _ in shares) else None


def _head(bare: str, text: str) -> str:
    """Return the longest beginning of a sentence with which a clause of the source begins."""
    found = LETTERS.match(bare)
    whole = found[0][:MAX_HEAD] if found else ""
    for length in range(len(whole), MIN_HEAD - 1, -1):
        if re.search(START + re.escape(whole[:length]), text):
            return whole[:length]
    return ""


def _spans(number: int, there: Passages) -> list[tuple[int, int]]:
    return [(one.start, one.end) for one in there.clauses(number)]


def _has_other(head: str, rest: frozenset[str], number: int, span: tuple[int, int], there: Passages) -> bool:
    """Return whether a clause, or what is before it in its sentence, has a subject, and not this one."""
    clause = there.text[slice(*span)]
    places = [place for term in rest if (place := clause.find(term)) >= 0]
    own = NO_HEAD.sub("", clause[: min(places, default=0)].strip())
    if len(own) >= MIN_HEAD:
        return head not in clause
    before = there.text[there.span(number)[0] : span[0]]
    return head not in before + clause and len(NO_HEAD.sub("", before)) >= MIN_HEAD
