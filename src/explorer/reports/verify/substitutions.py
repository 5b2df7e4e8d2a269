"""Whether a sentence has another name, number, month or ordinal than its source: `Novice 2` for `Novice 1`.

The words of the sentence are laid against those of the source's sentences that share most of them. Between words that
are the same, one of a kind stands in the place of another one of that kind.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from explorer.reports.verify.context import OTHER, Conflict
from explorer.reports.verify.numerals import MEASURES, SCALES, SMALL_NUMBERS
from explorer.reports.verify.passages import COMPARISON, Passages
from explorer.reports.verify.terms import TERM, term_key
from explorer.text.calendar_dates import MONTHS
from explorer.text.words import CJK_LETTER, WEEKDAYS

MAX_CHARS = 700
LEAST_SAME = 3
LEAST_SHARED = 0.6
LEAST_OWN = 0.75
"""Part of what the best sentence shares that one with the word itself has to share to speak for it."""
LEAST_ALSO = 0.85
MAX_PLACED = 3
"""Words in the place of others; of more, it is not plain which is in whose place."""
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth last"
CLAUSES = re.compile(r"; |, (?:and|but|while|whereas) (?=(?:the )?[A-Z])")
"""Between clauses that each have a subject of their own."""
ORDINALS = frozenset(_ORDINALS.split())
YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
BEHIND = re.compile(r"[ -]?([^\W\d_]+|%)?")
COMMA_BEFORE = re.compile(r"[,;] $")
SHORT_NAME = re.compile(r"[A-Z]{2,4}")
"""A unit or a zone as well as a name."""
LABEL_BEFORE = re.compile(r"(?:\b[A-Z][\w'-]*|\b[Nn]o\.|#) ?$")
"""Before a number that is a part of a name, or a place in a list."""


class PlacedWord(NamedTuple):
    """A word that says something, and of what kind it is."""

    key: str
    kind: str
    behind: str
    """The word directly behind a number, which it counts."""
    is_apart: bool
    """Whether a comma is before it."""


def substituted(text: str, there: Passages) -> Conflict | None:
    """Return a passage that has another name, number, month or ordinal where a sentence has its own."""
    if CJK_LETTER.search(text) or COMPARISON.search(text) or len(text) > MAX_CHARS or not there.has_names:
        return None
    found = (_substituted(clause, there) for clause in CLAUSES.split(text))
    return next((one for one in found if one is not None), None)


def _substituted(text: str, there: Passages) -> Conflict | None:
    mine = list(_tokens(text, there))
    keys = {token.key for token in mine}
    counts = there.shared(keys)
    best = max(counts.values(), default=0)
    if best < max(LEAST_SAME, LEAST_SHARED * (len(keys) - 1)):
        return None
    alike = [number for number, count in counts.items() if count >= LEAST_ALSO * best]
    around = [there.terms[number].words for number, count in counts.items() if count >= LEAST_OWN * best]
    shown = next((number for number in alike if _pair(mine, there.sentence(number), around, there)), None)
    return None if shown is None else Conflict(OTHER, (there.sentence(shown),))


def _pair(mine: Sequence[PlacedWord], sentence: str, around: Sequence[frozenset[str]], there: Passages) -> bool:
    """Return whether a sentence of the source has something else in the place of a word, which is nowhere near it."""
    if len(sentence) > MAX_CHARS:
        return False
    its = list(_tokens(sentence, there))
    matcher = SequenceMatcher(None, [one.key for one in mine], [one.key for one in its], autojunk=False)
    same = sum(block.size for block in matcher.get_matching_blocks())
    if same < max(LEAST_SAME, LEAST_SHARED * (len(mine) - 1)):
        return False
    known = frozenset(one.key for one in its)
    for kind, first, end, begin, stop in matcher.get_opcodes():
        if kind != "replace" or end - first > MAX_PLACED:
            continue
        if mine[first].is_apart:
            continue
        chunk = its[begin:stop]
        chunk = chunk[-MAX_PLACED:] if first == 0 else chunk[:MAX_PLACED] if end == len(mine) else chunk
        if len(chunk) <= MAX_PLACED and _is_other(mine[first:end], chunk, known, around):
            return True
    return False


def _is_other(
    mine: Sequence[PlacedWord], its: Sequence[PlacedWord], known: frozenset[str], around: Sequence[frozenset[str]]
) -> bool:
    """Return whether one of some words excludes one of the others: of the same kind, and not the same."""
    keys = frozenset(one.key for one in mine)
    for one in mine:
        rivals = [other for other in its if other.kind == one.kind != "word" and other.key not in keys]
        is_said = one.key in known or any(one.key in words for words in around)
        if rivals and not is_said and any(_excludes(one, other) for other in rivals):
            return True
    return False


def _excludes(one: PlacedWord, other: PlacedWord) -> bool:
    return one.kind != "number" or one.behind == other.behind


def _tokens(text: str, there: Passages) -> Iterator[PlacedWord]:
    for found in TERM.finditer(text):
        is_apart = COMMA_BEFORE.search(text[max(0, found.start() - 2) : found.start()]) is not None
        if found["number"]:
            key = found[0].rstrip(".,stndrh")
            is_number = re.fullmatch(r"\d+(?:,\d{3})*(?:\.\d+)?", key) is not None
            behind = BEHIND.match(text, found.end())
            is_label = is_number and LABEL_BEFORE.search(text[: found.start()]) is not None
            kind = "year" if YEAR.fullmatch(key) else "number" if is_label else "word"
            yield PlacedWord(key, kind, ((behind[1] if behind else "") or "").lower(), is_apart)
        elif key := term_key(found[0]):
            yield PlacedWord(key, _kind(found[0], key, there, is_first=not found.start()), "", is_apart)


def _kind(word: str, key: str, there: Passages, *, is_first: bool) -> str:
    """Return of what kind a word is; only words of one kind stand for each other."""
    small = word.lower()
    if small in MONTHS and word[0].isupper():
        return "month"
    if small in WEEKDAYS:
        return "weekday"
    if small in ORDINALS:
        return "ordinal"
    if small in SMALL_NUMBERS:
        return "count"
    if small in SCALES or word in MEASURES or (SHORT_NAME.fullmatch(word) and key not in there.index):
        return "word"
    is_name = word[0].isupper() and (key in there.known_names or (key not in there.index and not is_first))
    return "name" if is_name else "word"
