"""Whether a source says a whole sentence otherwise: the other way round, of another one, of another month or number.

Only the passages that share most of its words are compared; that there is none says nothing.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple

from explorer.reports.verify.context import (
    BARE_MONTH,
    CLAUSE,
    LEAST_ALIKE,
    LEAST_SHARED,
    MAX_POSTINGS,
    ClaimText,
    is_comparable,
    is_shortened,
    is_verbatim,
    negates,
    other_month,
)
from explorer.reports.verify.figures import FILLER
from explorer.reports.verify.indexed_source import IndexedSource
from explorer.reports.verify.numerals import MEASURES, ORDINALS, SCALES, SMALL_NUMBERS
from explorer.reports.verify.opposites import contrary_figures, opposite_words
from explorer.reports.verify.passages import COMPARISON, Passages
from explorer.reports.verify.plain import TERM, TermSet, found_key, key, terms_of
from explorer.reports.verify.polarity import NEGATION, polarity
from explorer.reports.verify.subjects import (
    MIN_TERMS,
    OTHER,
    TURNED,
    Conflict,
    groups,
    is_converse,
    is_turned,
    other_doer,
    other_head_conflict,
    other_subject,
)
from explorer.text.calendar_dates import MONTHS
from explorer.text.words import CJK_LETTER, WEEKDAYS

LEAST_SAME = 0.75
ROOT_CHARS = 4
"""The beginning that the forms of a word share: build, built, builder."""
NEAR = 2
"""Sentences before and behind a passage that belong to it."""


def _denied_share(text: str, words: frozenset[str]) -> float:
    """Return what part of a statement's words a clause with a negation has."""
    clauses = [terms_of(clause).words for clause in CLAUSE.split(text) if NEGATION.search(clause)]
    return max((len(one & words) / len(words) for one in clauses if words), default=0)


def statement_conflict(
    claim: ClaimText, sources: Sequence[IndexedSource], places: frozenset[str] | None = None
) -> tuple[str, Conflict] | None:
    """Return what speaks against a sentence, and in which source.

    Only the passages that share most of its words are compared, in the source that shares most; that there is none
    says nothing.

    Args:
        claim: The sentence.
        sources: Sources that it cites.
        places: What the places of its figures are said of, whose names need no other passage; None without figures.
    """
    if FILLER in claim.text:
        return None
    terms = terms_of(claim.text)
    terms = terms if claim.language != "de" else TermSet(terms.words, frozenset())
    statement = Statement(claim.text, terms, places)
    comparable = [one for one in sources if is_comparable(claim, one)]
    nearest = max(comparable, key=lambda one: _ranked(terms.words, one.passages)[0], default=None)
    if nearest is None or any(is_verbatim(claim.text, one) for one in comparable):
        return None
    found = _against(statement, nearest.passages)
    found = None if found is None or is_shortened(claim.text, nearest.passages) else found
    found = found or contrary_figures(claim.text, [one.passages for one in comparable])
    return None if found is None else (nearest.source.id, found)


def _against(one: "Statement", there: Passages) -> Conflict | None:
    """Return what the first rule that finds something says."""
    found = _opposite(one, there) or _other_time(one, there) or _other_name(one, there)
    if not one.places:
        found = found or _turned_round(one, there) or other_head_conflict(one.text, there)
    found = found or opposite_words(one.text, there)
    return found or substituted(one.text, there) or other_doer(one.text, there)


@dataclass(frozen=True)
class Statement:
    """A sentence that is compared as a whole."""

    text: str
    terms: TermSet
    places: frozenset[str] | None = None
    """Words around its figures in the sources; None when it has none."""


def _ranked(words: Iterable[str], there: Passages) -> tuple[int, list[int]]:
    """Return how many of some words the best sentences share, and these sentences."""
    counts = there.shared(words, MAX_POSTINGS)
    best = max(counts.values(), default=0)
    return best, [number for number, count in counts.items() if count == best]


def _opposite(one: Statement, there: Passages) -> Conflict | None:
    best, numbers = _ranked(one.terms.words, there)
    if best < max(MIN_TERMS, LEAST_ALIKE * len(one.terms.words)):
        return None
    reasons = [_contradiction(one, number, there) for number in numbers]
    if all(reasons) and not is_converse(one.text, there.sentence(numbers[0])):
        return Conflict(f"says the opposite ({reasons[0]})", (there.sentence(numbers[0]),))
    return None


def _other_time(one: Statement, there: Passages) -> Conflict | None:
    """Return what speaks against the month of a statement: passages that say the rest, of another month."""
    rest = one.terms.words - {key(found) for found in BARE_MONTH.findall(one.text)}
    if len(rest) == len(one.terms.words):
        return None
    best, numbers = _ranked(rest, there)
    regions = [sentence for number in numbers if BARE_MONTH.search(sentence := there.sentence(number))]
    is_said = best >= max(MIN_TERMS, LEAST_ALIKE * len(rest))
    if is_said and regions and all(other_month(one.text, region) for region in regions):
        return Conflict("says it of another time", (there.sentence(numbers[0]),))
    return None


def _contradiction(one: Statement, number: int, there: Passages) -> str:
    """Return how a statement contradicts a sentence of the source; empty when it does not."""
    text, words = one.text, one.terms.words
    mine = polarity(text)
    region = (_narrow if CJK_LETTER.search(text) else _region)(words, number, there)
    is_narrow = region != (wide := _region(words, number, there))
    why = mine.contradicts(there.polarity(*(wide if is_narrow else there.span(number))))
    why = mine.contradicts(there.polarity(*region)) if why or is_narrow else ""
    if why != "negation":
        return why
    known = terms_of(there.text, *region).words
    shared = max(len(words & known) / len(known) if known else 0, len(words & known) / len(words))
    sentence = there.sentence(number)
    is_partly = one.places is not None and not mine.is_negated and _denied_share(sentence, words) < LEAST_SHARED
    is_denied = negates(text, there.terms[number].words) or negates(sentence, words)
    return why if shared >= LEAST_SHARED and is_denied and not is_partly else ""


def _region(words: frozenset[str], number: int, there: Passages) -> tuple[int, int]:
    """Return where the clauses of a sentence are, from the first to the last that shares a word."""
    shared = [one for one in there.clauses(number) if terms_of(there.text, one.start, one.end).words & words]
    return (shared[0].start, shared[-1].end) if shared else there.span(number)


def _narrow(words: frozenset[str], number: int, there: Passages) -> tuple[int, int]:
    """Return the one clause of a sentence that says what a statement says; all that share a word, where none does."""
    clauses = [(len(terms_of(there.text, one.start, one.end).words & words), one) for one in there.clauses(number)]
    best = max(count for count, _ in clauses)
    alike = [one for count, one in clauses if count == best]
    is_one = best >= max(MIN_TERMS, LEAST_ALIKE * len(words)) and len(alike) == 1
    return (alike[0].start, alike[0].end) if is_one else _region(words, number, there)


def _other_name(one: Statement, there: Passages) -> Conflict | None:
    """Return what speaks against a name of a statement: passages that say all the rest, of another one."""
    text, terms = one.text, one.terms
    if COMPARISON.search(text):
        return None
    for _, group in groups(text, there):
        if one.places and group & one.places:
            continue
        rest = terms.words - group
        best, numbers = _ranked(rest, there)
        if best < max(MIN_TERMS, LEAST_SAME * len(rest)) or _is_said_nearby(group, rest, numbers, there):
            continue
        regions = [_region(rest, number, there) for number in numbers]
        found = [_named_otherwise(text, terms.words, region, there) for region in regions]
        # Who doubts what another one says is no other one in his place.
        is_denied = polarity(text).is_denial and not any(there.polarity(*region).is_denial for region in regions)
        if None not in found and not is_denied:
            return Conflict(OTHER, (there.sentence(numbers[0]), there.sentence(found[0] or 0)))
    return None


def _is_said_nearby(group: frozenset[str], rest: frozenset[str], numbers: Iterable[int], there: Passages) -> bool:
    """Return whether a sentence near the passages names the same one with another form of a word of a short statement.

    `The lighthouse was built for the harbour. [...] The builder was Hallen & Sons.` has nobody else who built it.
    """
    if len(rest) > MIN_TERMS:
        return False
    roots = {word[:ROOT_CHARS] for word in rest if len(word) >= ROOT_CHARS}
    near = {place for number in numbers for place in range(max(0, number - NEAR), number + NEAR + 1)}
    named = [there.terms[place].words for place in near if place < len(there) and group <= there.terms[place].words]
    return any(word[:ROOT_CHARS] in roots for words in named for word in words - group - rest)


def _turned_round(one: Statement, there: Passages) -> Conflict | None:
    """Return a passage that says the same of the same two the other way round."""
    text = one.text
    best, numbers = _ranked(one.terms.words, there)
    if best < max(MIN_TERMS, LEAST_SHARED * len(one.terms.words)):
        return None
    for number in numbers:
        sentence = there.sentence(number)
        if not is_turned(text, groups(text, there), sentence, groups(sentence, there)):
            return None
    return Conflict(TURNED, (there.sentence(numbers[0]),))


PARENTHESES = re.compile(r"\([^()]{0,200}(?:\([^()]{0,100}\)[^()]{0,100}){0,3}\)")


def _named_otherwise(text: str, words: frozenset[str], region: tuple[int, int], there: Passages) -> int | None:
    number = there.number_at(region[0])
    before = PARENTHESES.sub(" ", there.text[there.span(number)[0] : region[0]])
    last = groups(before, there)[-1:]
    if last and last[0][1] & words:  # the one who is named before what is in brackets: `Mara Lind (born 1951) was`
        return None
    start = there.named_from(number, region[0])
    own = terms_of(there.text, start, region[1])
    if there.is_line(number):  # a line of a list is about what the title names, if it names it
        own = TermSet(own.words | there.title, own.names)
    before = there.terms[number - 1].words if number and not own.names & there.known_names else frozenset[str]()
    return other_subject(text, there.text[start : region[1]], own.words | before, words, there)


MAX_CHARS = 700
MIN_SAME = 3
LEAST_LAID = 0.6
LEAST_OWN = 0.75
"""Part of what the best sentence shares that one with the word itself has to share to speak for it."""
LEAST_ALSO = 0.85
MAX_PLACED = 3
"""Words in the place of others; of more, it is not plain which is in whose place."""
CLAUSES = re.compile(r"; |, (?:and|but|while|whereas) (?=(?:the )?[A-Z])")
"""Between clauses that each have a subject of their own."""
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
    if best < max(MIN_SAME, LEAST_LAID * (len(keys) - 1)):
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
    if same < max(MIN_SAME, LEAST_LAID * (len(mine) - 1)):
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
        if rivals and not is_said and any(one.kind != "number" or one.behind == other.behind for other in rivals):
            return True
    return False


def _tokens(text: str, there: Passages) -> Iterator[PlacedWord]:
    for found in TERM.finditer(text):
        is_apart = COMMA_BEFORE.search(text[max(0, found.start() - 2) : found.start()]) is not None
        key = found_key(found)
        if found["number"]:
            is_number = re.fullmatch(r"\d+(?:,\d{3})*(?:\.\d+)?", key) is not None
            behind = BEHIND.match(text, found.end())
            is_label = is_number and LABEL_BEFORE.search(text[: found.start()]) is not None
            kind = "year" if YEAR.fullmatch(key) else "number" if is_label else "word"
            yield PlacedWord(key, kind, ((behind[1] if behind else "") or "").lower(), is_apart)
        elif key:
            yield PlacedWord(key, _kind(found[0], key, there, is_first=not found.start()), "", is_apart)


def _kind(word: str, key: str, there: Passages, *, is_first: bool) -> str:
    """Return of what kind a word is; only words of one kind stand for each other."""
    small = word.lower()
    if small in MONTHS and word[0].isupper():
        return "month"
    if small in WEEKDAYS:
        return "weekday"
    if small in {*ORDINALS, "last"}:
        return "ordinal"
    if small in SMALL_NUMBERS:
        return "count"
    if small in SCALES or word in MEASURES or (SHORT_NAME.fullmatch(word) and key not in there.index):
        return "word"
    is_name = word[0].isupper() and (key in there.known_names or (key not in there.index and not is_first))
    return "name" if is_name else "word"
