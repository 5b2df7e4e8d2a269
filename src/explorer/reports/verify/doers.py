"""Whether a source says of another one what a sentence says of its subject: a name in front of the same predicate.

The subject of a sentence is the name that it, or one of its clauses, begins with. In the sentences of the source that
share most of the rest, the one who does it is the last name before the first word that is shared; of `It` and `The
company`, the first name of the sentence before.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from explorer.reports.verify.context import OF_FIGURES, OTHER, SAYS, Conflict, groups
from explorer.reports.verify.passages import GROUP, Passages
from explorer.reports.verify.polarity import polarity
from explorer.reports.verify.terms import TERM, term_key, terms_of
from explorer.text.words import CJK_LETTER

LEAST_TERMS = 2
LEAST_SHARED = 0.6
LEAST_OWN = 0.5
"""Part of what the best sentence shares that one about the subject has to share."""
LEAST_ALSO = 0.85
"""Part of what the best sentence shares that another one has to share to be compared, too."""
SUBJECT_CHARS = 24
MAX_BETWEEN = 140
"""From a name to the first word that is shared: who is farther away may not be the one who does it."""
MAX_CHARS = 600
TWO_NAMES = re.compile(r"[A-Z][\w'-]* [A-Z]")
CLAUSES = re.compile(r"; |, (?:and|but|while|whereas|und|aber) (?=(?:the )?[A-Z])|: (?=[A-Z])")
PASSIVE = re.compile(r"\b(?:by|von|durch)\b")
RESUMED = re.compile(
    r"\b(?:it|he|she|they|er|sie|es|the (?:company|firm|group|agency|university|team|game|program|study))\b",
    re.IGNORECASE,
)
"""Words for the one who was named before."""
NOT_DOER = re.compile(r"\b(?:in|at|of|from|to|for|on|by|as|than|like|near|since|über|aus|bei|an|auf)(?: the)? $")
"""Words before a name that is a place, a time or a part of something else."""
BETWEEN = re.compile(r"\b(?:I|it|he|she|they|we|you|who|that|there|one|some|many|er|sie|es)\b")
"""Another subject between a name and the first word that is shared."""


class Word(NamedTuple):
    """A word that says something, and where it begins."""

    place: int
    key: str


def other_doer(text: str, there: Passages) -> Conflict | None:
    """Return a passage that says of another one what a sentence says of the name it begins with."""
    if CJK_LETTER.search(text) or PASSIVE.search(text) or polarity(text).is_denial:
        return None
    for clause in CLAUSES.split(text):
        subject = _subject(clause, there)
        found = _said_of_other(subject, clause, there) if subject else None
        if found is not None:
            return found
    return None


def _subject(clause: str, there: Passages) -> frozenset[str]:
    """Return the words of the name that a clause begins with; empty when it does not begin with one."""
    for group in GROUP.finditer(clause[:MAX_CHARS]):
        if group.start() > SUBJECT_CHARS:
            break
        names = terms_of(group[0]).names - OF_FIGURES
        is_new = bool(names) and there.has_names and not any(one in there.index for one in names)
        is_name = names & there.known_names or (is_new and (group.start() > 0 or TWO_NAMES.match(group[0])))
        if is_name and not NOT_DOER.search(clause[: group.start()]) and not SAYS.match(clause, group.end()):
            return names
    return frozenset()


def _said_of_other(subject: frozenset[str], clause: str, there: Passages) -> Conflict | None:
    rest = terms_of(clause).words - subject
    counts = there.shared(rest)
    best = max(counts.values(), default=0)
    if best < max(LEAST_TERMS, LEAST_SHARED * len(rest)):
        return None
    others: list[int] = []
    for number, count in counts.items():
        if count < max(LEAST_TERMS, LEAST_OWN * best):
            continue
        is_own, other = _doer_there(number, subject, rest, there)
        if is_own or (other is None and count >= LEAST_ALSO * best):
            return None
        others += [number, other] if other is not None and count == best else []
    return Conflict(OTHER, tuple(dict.fromkeys(map(there.sentence, others)))) if others else None


def _doer_there(number: int, subject: frozenset[str], rest: frozenset[str], there: Passages) -> tuple[bool, int | None]:
    """Return whether a sentence of the source may be about a subject, and which one names another instead."""
    sentence = there.sentence(number)
    first, last = _core(number, rest, there)
    named = groups(sentence, there)
    own = [place for place, names in named if subject & names]
    if any(place < last for place in own) or (not own and subject & there.terms[number].words):
        return True, None
    if len(sentence) > MAX_CHARS or PASSIVE.search(sentence):
        return False, None
    before = [(place, names) for place, names in named if place < first and not names <= rest]
    resumed = RESUMED.search(sentence, 0, first)
    if resumed and not any(place > resumed.start() for place, _ in before):
        return _other_before(number, subject, there)
    if not before:
        return False, number if _begins_with_other(sentence, first, rest, there) else None
    place = before[-1][0]
    end = _end(sentence, place)
    behind = sentence[end:first]
    is_doer = len(behind) <= MAX_BETWEEN and not NOT_DOER.search(sentence[:place]) and not BETWEEN.search(behind)
    is_plain = is_doer and not SAYS.match(sentence, end) and not sentence[place:end].endswith("'s")
    return False, number if is_plain else None


def _begins_with_other(sentence: str, first: int, rest: frozenset[str], there: Passages) -> bool:
    """Return whether a sentence begins with a name that is nowhere else within one, and never has a small letter."""
    found = GROUP.match(sentence)
    names = terms_of(found[0]).names - OF_FIGURES if found else frozenset[str]()
    is_name = bool(names) and not names & (rest | there.small)
    return is_name and found is not None and found.end() < first and not BETWEEN.search(sentence[found.end() : first])


def _core(number: int, rest: frozenset[str], there: Passages) -> tuple[int, int]:
    """Return where the words of the clause with most of the shared words begin and end, in its sentence."""
    sentence = there.sentence(number)
    shared = [word for word in _words(sentence) if word.key in rest]
    plain = [word for word in shared if word.key not in there.known_names] or shared
    parts = [sentence.find(" ".join(there.text[one.start : one.end].split())) for one in there.clauses(number)]
    starts = sorted(place for place in parts if place >= 0) or [0]
    counts = Counter(max(start for start in [0, *starts] if start <= word.place) for word in plain)
    begin = counts.most_common(1)[0][0]
    inside = [word.place for word in plain if word.place >= begin]
    return inside[0], inside[-1]


def _other_before(number: int, subject: frozenset[str], there: Passages) -> tuple[bool, int | None]:
    """Return whether the sentence before one has a subject, and its number if it begins with another name."""
    if not number or subject & there.terms[number - 1].words:
        return bool(number), None
    named = groups(there.sentence(number - 1), there)
    return False, number - 1 if named and named[0][0] <= SUBJECT_CHARS else None


def _words(text: str) -> Iterator[Word]:
    for found in TERM.finditer(text):
        key = found[0].rstrip(".,stndrh") if found["number"] else term_key(found[0])
        if key:
            yield Word(found.start(), key)


def _end(text: str, place: int) -> int:
    found = GROUP.match(text, place)
    return found.end() if found else place
