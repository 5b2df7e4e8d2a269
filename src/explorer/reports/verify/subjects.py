"""Whether a source says of another subject what a sentence says, or the other way round of the same two.

The subject of a sentence is the name that it, or one of its clauses, begins with. In the sentences of the source that
share most of the rest, the one who does it is the last name before the first word that is shared; of `It` and `The
company`, the first name of the sentence before.

No letter shows in Chinese and Japanese what a name is. There, a subject is taken to be what the sentence begins with,
if a clause of the source begins with it, too. The clause that says the rest has to have it, or to follow one that has
it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from explorer.reports.verify.numerals import CURRENCY_WORDS, MEASURES
from explorer.reports.verify.passages import GROUP, Passages
from explorer.reports.verify.plain import TERM, found_key, key, terms_of
from explorer.reports.verify.polarity import polarity
from explorer.text.calendar_dates import MONTHS
from explorer.text.words import CJK_LETTER, HAN, HIRAGANA, KATAKANA, WEEKDAYS

OTHER = "says it of something else"
TURNED = "says it the other way round"
MIN_TERMS = 2
SAYS = re.compile(r"(?:'s)?,? (?:said|says|told|wrote|writes|called|argue[sd]|warned|added|explained)\b")
OF_FIGURES = frozenset(
    map(key, (*MONTHS, *WEEKDAYS, *(one for one in (*MEASURES, *CURRENCY_WORDS) if one != one.lower())))
)
"""Words with a capital letter that are parts of figures: June, MB."""
SUBJECT_CHARS = 40
"""From the beginning of a sentence to the end of its subject."""
SUBJECT = "subject"
OF_SUBJECTS = frozenset(["said", "says", "by", "while", "and", "but"])
"""Words before a name that acts or speaks."""
PRONOUN_BEFORE = re.compile(
    r"\W*(?:it|he|she|they|this|these|those|its|his|her|their|er|sie|es|il|elle)\b", re.IGNORECASE
)
OF_BEFORE = re.compile(
    r"\W*(?:it|he|she|they|this|that|these|those|its|his|her|their|er|sie|es|il|elle|the)\b", re.IGNORECASE
)
"""Words that begin a sentence about something that was named before."""
CLAUSE_MARK = re.compile(r"[,.;:()]")


@dataclass(frozen=True)
class Conflict:
    """A passage that says something else than a sentence."""

    why: str
    """For people."""
    passages: tuple[str, ...]
    """What the source says there, and what it says of the sentence's own subject."""


def groups(text: str, there: Passages) -> list[tuple[int, frozenset[str]]]:
    """Return names that the source has, each as its place and its words."""
    found: list[tuple[int, frozenset[str]]] = []
    for group in GROUP.finditer(text):
        names = (terms_of(group[0]).names & there.known_names) - OF_FIGURES
        if names and all(one in there.index for one in names):
            found.append((group.start(), names))
    return found


def _end(text: str, place: int) -> int:
    found = GROUP.match(text, place)
    return found.end() if found else place


def other_subject(
    claimed: str, region: str, around: frozenset[str], words: frozenset[str], there: Passages
) -> int | None:
    """Return a sentence with a name of the claim's that is missing here, where another name is."""
    is_spoken = SAYS.search(claimed) is not None
    near = groups(region, there)
    extra = [
        _role(region, place)
        for place, group in near
        if not (group - there.generic or group) & words and (is_spoken or not SAYS.match(region, _end(region, place)))
    ]
    for place, group in groups(claimed, there):
        role = _role(claimed, place)
        if (
            (group - there.generic or group) & around
            or any(names < group for _, names in near)
            or role not in extra
            or (role == SUBJECT and PRONOUN_BEFORE.match(region))
        ):
            continue
        # What the title names may be what the whole text is about, and need no name.
        if (role == SUBJECT and not OF_BEFORE.match(region)) or not group <= there.title:
            return there.index[min(group)][0]
    return None


def _role(text: str, place: int) -> str:
    """Return what a name is in a sentence: its subject, or the word before it, as in `by Globex`."""
    before = text[:place].split()
    is_subject = place < SUBJECT_CHARS or not before or before[-1].lower() in OF_SUBJECTS
    return SUBJECT if is_subject else before[-1].lower()


def is_converse(claimed: str, source: str) -> bool:
    """Return whether two comparisons name the same things in another order: A is more than B, B is less than A."""
    if is_turned_comparison(claimed, source):
        return True
    names = [
        [key(found[0]) for found in re.finditer(r"[A-Z][\w'-]+", text) if found[0].lower() not in {"the", "in"}]
        for text in (claimed, source)
    ]
    shared = [[one for one in dict.fromkeys(some) if one in names[1 - side]] for side, some in enumerate(names)]
    return len(shared[0]) >= MIN_TERMS and shared[0] != shared[1]


def is_turned_comparison(claimed: str, source: str) -> bool:
    """Return whether what is before `than` in one text is behind it in the other one, and the other way round."""
    mine, its = claimed.partition(" than "), source.partition(" than ")
    if not mine[1] or not its[1]:
        return False
    right, other = (terms_of(CLAUSE_MARK.split(text)[0]).words for text in (mine[2], its[2]))
    left, before = terms_of(mine[0]).words, terms_of(its[0]).words
    same = len(right & other)
    return len(left & other) > same and len(right & before) > same


Groups = Sequence[tuple[int, frozenset[str]]]
"""Names in a text: where each begins, and its words."""
THAN = re.compile(r"^(?P<left>.*)\b(?P<than>than|als)\b(?P<right>[^.,;:()]*)", re.DOTALL)
PASSIVE_END = re.compile(r"\b(?:by|von|durch)(?: the| d\w\w)?\s*$")
MUTUAL = re.compile(
    r"[.;]|\b(?:is|are|was|were|ist|war)(?=\s*$)|\b(?:and|or|und|oder|with|mit|between|zwischen|for|versus|met|meets?|married|like|says?|said|which|who)\b"
)
"""Words between two names that part them, or that tie both of them to each other."""
FROM = re.compile(r"\b(?:from|von|aus)(?: the| an?| d\w\w)?\s*$")
MAX_CHARS = 600
"""A longer sentence is a list, whose names are in many orders."""
FEW = 4
"""Words of a thing that is compared; of more, it is not plain which count."""


def is_turned(text: str, mine: Groups, sentence: str, its: Groups) -> bool:
    """Return whether a statement gives a deed or a place in a comparison to the other one of two.

    Args:
        text: The statement.
        mine: Names in it.
        sentence: A sentence of the source.
        its: Names in that.
    """
    if len(text) > MAX_CHARS:
        return False
    return (
        _other_doer(text, mine, sentence, its) or _other_way(text, mine, sentence, its) or _other_side(text, sentence)
    )


def _other_doer(text: str, mine: Groups, sentence: str, its: Groups) -> bool:
    return any(
        _same_deed(between, there, first | second)
        for between, first, second in _pairs(text, mine)
        for there, words, said in _pairs(sentence, its)
        if first & said and second & words and not first & words
    )


def _pairs(text: str, groups: Groups) -> list[tuple[str, frozenset[str], frozenset[str]]]:
    """Return the text between each two names that follow each other, and both."""
    return [(text[one[0] : other[0]], one[1], other[1]) for one, other in pairwise(groups)]


def _same_deed(mine: str, its: str, names: frozenset[str]) -> bool:
    if MUTUAL.search(mine) or MUTUAL.search(its) or bool(PASSIVE_END.search(mine)) != bool(PASSIVE_END.search(its)):
        return False
    shared = (terms_of(mine).words & terms_of(its).words) - names
    return bool(shared) and not polarity(mine).contradicts(polarity(its))


def _other_way(text: str, mine: Groups, sentence: str, its: Groups) -> bool:
    """Return whether both go from one to another, and the other one begins elsewhere with the same names."""
    ours, theirs = (_begun(one, names) for one, names in ((text, mine), (sentence, its)))
    everyone = frozenset[str]().union(*(names for _, names in its))
    return bool(ours and theirs and not ours & theirs and ours <= everyone)


def _begun(text: str, groups: Groups) -> frozenset[str]:
    """Return the names behind `from`."""
    return frozenset[str]().union(*(names for place, names in groups if FROM.search(text[:place])))


def _other_side(text: str, sentence: str) -> bool:
    """Compare two comparisons: `Men gained more than women`, `Women gained more than men`."""
    mine, its = THAN.match(text), THAN.match(sentence)
    if mine is None or its is None or polarity(mine["left"]).contradicts(polarity(its["left"])):
        return False
    left, right = terms_of(mine["left"]).words, terms_of(mine["right"]).words
    known, other = terms_of(its["left"]).words, terms_of(its["right"]).words
    # `AI uploads grow faster than AI purchases`: what is on both sides tells nothing.
    right, other = right - other, other - right
    is_plain = 0 < len(right) <= FEW and 0 < len(other) <= FEW and left & known
    return bool(is_plain and left & other and right & known and not right & other)


LEAST_TERMS = 2
LEAST_DONE = 0.6
LEAST_OWN = 0.5
"""Part of what the best sentence shares that one about the subject has to share."""
LEAST_ALSO = 0.85
"""Part of what the best sentence shares that another one has to share to be compared, too."""
DOER_CHARS = 24
MAX_BETWEEN = 140
"""From a name to the first word that is shared: who is farther away may not be the one who does it."""
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
        if group.start() > DOER_CHARS:
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
    if best < max(LEAST_TERMS, LEAST_DONE * len(rest)):
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
    return False, number - 1 if named and named[0][0] <= DOER_CHARS else None


def _words(text: str) -> Iterator[Word]:
    for found in TERM.finditer(text):
        if word := found_key(found):
            yield Word(found.start(), word)


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


def _other_head(text: str, there: Passages) -> int | None:
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
        for span in ((one.start, one.end) for one in there.clauses(number))
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


def _has_other(head: str, rest: frozenset[str], number: int, span: tuple[int, int], there: Passages) -> bool:
    """Return whether a clause, or what is before it in its sentence, has a subject, and not this one."""
    clause = there.text[slice(*span)]
    places = [place for term in rest if (place := clause.find(term)) >= 0]
    own = NO_HEAD.sub("", clause[: min(places, default=0)].strip())
    if len(own) >= MIN_HEAD:
        return head not in clause
    before = there.text[there.span(number)[0] : span[0]]
    return head not in before + clause and len(NO_HEAD.sub("", before)) >= MIN_HEAD


def other_head_conflict(text: str, there: Passages) -> Conflict | None:
    """Return what speaks against the subject of a Chinese or Japanese sentence."""
    number = _other_head(text, there) if CJK_LETTER.search(text) else None
    if number is None or polarity(text).is_denial != there.polarity(*there.span(number)).is_denial:
        return None
    return Conflict(OTHER, (there.sentence(number),))
