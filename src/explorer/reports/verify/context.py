"""Whether a source says a figure, or a statement, of the same subject as the sentence does, and the same way round.

Every rule asks for two signs, one against the reading of the sentence and one for another: words of the sentence that
another figure of the source shares and this one does not; a name that is missing and another in its place; a negation
or an opposite in a passage that otherwise says the same. With one sign only, nothing is said.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from explorer.reports.verify.calendar_dates import MONTHS, WEEKDAYS
from explorer.reports.verify.figures import FILLER, Figures
from explorer.reports.verify.indexed_source import IndexedSource
from explorer.reports.verify.numerals import CURRENCY_WORDS, MEASURES
from explorer.reports.verify.passages import Figure, Passages, Said, TermSet, key, language_of, terms_of
from explorer.reports.verify.plain import spaced
from explorer.reports.verify.polarity import NEGATION, polarity

GROUP = re.compile(r"(?<![\w.])[A-Z][\w'-]*(?: (?:(?:of|the|de|von|van|&) )?[A-Z\d][\w'-]*)*")
LEAST_SHARED = 0.5
LEAST_ALIKE = 0.6
LEAST_SAME = 0.75
NEAR_SENTENCES = 2
MAX_POSTINGS = 40
"""Sentences that are looked at for a word; a word of more says little."""
MIN_TERMS = 2
OTHER = "says it of something else"
BEHIND_CHARS = 30
BEHIND_END = re.compile(r"[.,;:()\n，。；、]|\b(?:and|in|on|at|by|from|to|und|et)\b")
YEAR = re.compile(r"(?<![\d.,])(?:1[5-9]|20)\d\d(?![\d%]|[.,]\d)")
COMPARED = re.compile(r"\b(?:since|than|compared|from|seit|depuis|als|gegenüber)\b|[比较較]", re.IGNORECASE)
"""Words before a year with which another one is compared."""
CLAUSE = re.compile(
    r"[,;:()，；]| - |—|–"
    r"|\b(?:that|who|which|but|and|because|why|although|since|while|if|dass|weil|und|aber|qui|que|mais|et)\b"
)
SAYS = re.compile(r"(?:'s)?,? (?:said|says|told|wrote|writes|called|argue[sd]|warned|added|explained)\b")
OF_FIGURES = frozenset(map(key, (*MONTHS, *MEASURES, *CURRENCY_WORDS, *WEEKDAYS)))
"""Words with a capital letter that are parts of figures: June, MB."""
LABEL = re.compile(r"^\s*\w{1,20}: ")
SUBJECT_CHARS = 40
"""From the beginning of a sentence to the end of its subject."""
SUBJECT = "subject"
PRONOUN_BEFORE = re.compile(
    r"\W*(?:it|he|she|they|this|these|those|its|his|her|their|er|sie|es|il|elle)\b", re.IGNORECASE
)
OF_BEFORE = re.compile(
    r"\W*(?:it|he|she|they|this|that|these|those|its|his|her|their|er|sie|es|il|elle|the)\b", re.IGNORECASE
)
"""Words that begin a sentence about something that was named before."""


@dataclass(frozen=True)
class Conflict:
    """A passage that says something else than a sentence."""

    why: str
    """For people."""
    passages: tuple[str, ...]
    """What the source says there, and what it says of the sentence's own subject."""


@dataclass(frozen=True)
class ClaimText:
    """A stretch of a sentence, ready to be compared."""

    text: str
    figures: Figures
    passages: Passages
    language: str


def claim_text(text: str, figures: Figures) -> ClaimText:
    """Prepare a plain stretch of a sentence."""
    language = language_of(text)
    return ClaimText(text, figures, Passages(text, figures, has_names=language != "de"), language)


def is_comparable(claim: ClaimText, indexed: IndexedSource) -> bool:
    """Return whether the words of a sentence and of a source are of one language."""
    return not (claim.language and indexed.language) or claim.language == indexed.language


def is_verbatim(text: str, indexed: IndexedSource) -> bool:
    """Return whether a source has a sentence word for word, but for a label before it."""
    return spaced(LABEL.sub("", text)) in indexed.spaced


def conflict_at(claim: ClaimText, span: tuple[int, int], place: Figure, indexed: IndexedSource) -> Conflict | None:
    """Return what speaks against a figure of the sentence being this one of the source; None when nothing plain does.

    Args:
        claim: The sentence.
        span: Where the figure is in it.
        place: The figure of the source.
        indexed: The source.
    """
    there = indexed.passages
    if place.start >= len(there.text) or is_verbatim(claim.text, indexed):
        return None
    said, known = claim.passages.said_of(*span), there.said_of(place.start, place.end)
    shown = _at(place.start, there)
    rival = _better(claim, said, known, place, there) or _beside(claim, span, known, place, there)
    if rival is not None:
        return Conflict(OTHER, (shown, _at(rival.start, there)))
    region, mine = there.text[known.start : known.end], claim.text[said.start : said.end]
    if _other_year(mine, region, claim.text[slice(*span)]):
        return Conflict("says it of another time", (shown,))
    if not is_comparable(claim, indexed):
        return None
    swapped = _swapped(mine, said, known, region, there)
    if swapped is not None:
        return Conflict(OTHER, (shown, there.sentence(swapped)))
    why = _turned(claim.passages, said, there, known)
    is_so = why and not _is_converse(claim.text, shown)
    return Conflict(f"says the opposite ({why})", (shown,)) if is_so else None


def _turned(claimed: Passages, said: Said, there: Passages, known: Said) -> str:
    """Return how two stretches of text with the same figure contradict each other; empty when they do not."""
    mine, region = claimed.text[said.start : said.end], there.text[known.start : known.end]
    why = claimed.polarity(said.start, said.end).contradicts(there.polarity(known.start, known.end))
    if why != "negation":
        return why if said.words & known.words else ""
    own = said.own - said.names
    is_same = len(own & known.own) >= max(1, LEAST_SHARED * len(own))
    return why if is_same and (_negates(mine, known.words) or _negates(region, said.words)) else ""


def _negates(text: str, words: frozenset[str]) -> bool:
    """Return whether what a text negates is what the other one says.

    Not in `..., which nobody reads`, nor in `Bed 1 is not there yet, for its beans are in flower`: the words after the
    negation, or those of its clause where it ends it, have to be shared; a figure there is the one that is compared.
    """
    clauses = ((clause, NEGATION.search(clause)) for clause in CLAUSE.split(text))
    return any(found and _is_shared(clause, found.end(), words) for clause, found in clauses)


def _is_shared(clause: str, place: int, words: frozenset[str]) -> bool:
    negated = terms_of(clause[place:]).words or terms_of(clause).words
    return len(negated & words) >= max(1, LEAST_SHARED * len(negated)) or any(
        character.isdigit() for character in clause[place:]
    )


def _at(place: int, passages: Passages) -> str:
    return passages.sentence(passages.number_at(place))


def _better(claim: ClaimText, said: Said, known: Said, place: Figure, there: Passages) -> Figure | None:
    """Return a figure of the same kind that shares all with the sentence that this one shares, and more.

    One that is far away shares a name, too, or all that the sentence says.
    """
    shared = said.words & known.words
    missing = {term for term in said.words - known.words if term in there.index}
    if not missing or PRONOUN_BEFORE.match(claim.text):
        return None
    number = there.number_at(place.start)
    values = {one.value for one in claim.passages.figures}
    for rival in _rivals(missing, place, there):
        other = there.said_of(rival.start, rival.end)
        theirs = said.words & other.words
        gained = theirs - shared
        is_near = abs(there.number_at(rival.start) - number) <= NEAR_SENTENCES
        is_whole = len(theirs) == len(said.words) >= MIN_TERMS <= len(gained)
        is_plain = len(theirs) >= LEAST_SHARED * len(said.words) and rival.value not in values
        if is_plain and shared <= theirs and (is_whole or gained & (gained if is_near else there.known_names)):
            return rival
    return None


def _beside(claim: ClaimText, span: tuple[int, int], known: Said, place: Figure, there: Passages) -> Figure | None:
    """Return a figure nearby of which the source says what the sentence says of another: paintings, not prints.

    Looked at are the words directly behind the figures; or, where this one shares none with the sentence, its clause.
    """
    said = claim.passages.said_of(*span)
    mine, its = _behind(claim.passages, span[1]), _behind(there, place.end)
    values = {one.value for one in claim.passages.figures}
    for rival in _around(place, there):
        if rival.value in values:
            continue
        theirs, other = _behind(there, rival.end), there.said_of(rival.start, rival.end)
        gained = (mine & theirs) - known.own
        if gained and its - said.words and mine & its <= theirs:
            return rival
        is_here = there.number_at(rival.start) == there.number_at(place.start)
        is_other = is_here and not said.own & known.own and len(known.own) >= MIN_TERMS
        if is_other and MIN_TERMS <= len(said.own & other.own) >= LEAST_ALIKE * len(said.own):
            return rival
    return None


def _around(place: Figure, there: Passages) -> Iterator[Figure]:
    """Yield the figures of the same kind in the sentences around one."""
    number = there.number_at(place.start)
    first, last = max(0, number - NEAR_SENTENCES), min(len(there) - 1, number + NEAR_SENTENCES)
    for one in there.figures_in(there.span(first)[0], there.span(last)[1]):
        if one.unit == place.unit and one.value != place.value:
            yield one


def _behind(passages: Passages, end: int) -> frozenset[str]:
    """Words directly behind a figure, as far as the next one."""
    following = passages.figures_in(end, end + BEHIND_CHARS)
    last = following[0].start if following else end + BEHIND_CHARS
    stop = BEHIND_END.search(passages.text, end, last)
    return terms_of(passages.text, end, stop.start() if stop else last).words


def _other_year(claimed: str, region: str, figure: str) -> bool:
    """Return whether two stretches name years, and no year is in both."""
    mine, its = ({one for one in YEAR.findall(text) if one not in figure} for text in (claimed, region))
    if COMPARED.search(region):
        return False
    return bool(mine and its and not mine & its)


def _rivals(missing: Iterable[str], place: Figure, there: Passages) -> Iterator[Figure]:
    numbers = {number for term in missing for number in there.index[term][:MAX_POSTINGS]}
    for number in sorted(numbers, key=lambda one: abs(one - there.number_at(place.start))):
        for one in there.figures_in(*there.span(number)):
            if one.unit == place.unit and one.value != place.value:
                yield one


def _swapped(claimed: str, said: Said, known: Said, region: str, there: Passages) -> int | None:
    """Return a sentence with the name that is missing at a figure, where another name is in its place."""
    names = said.words & there.known_names
    rest = {one for one in said.words - names if not one[0].isdigit()}
    if not names or not rest or len(rest & known.words) < LEAST_ALIKE * len(rest):
        return None
    return _other_subject(claimed, region, known.words, said.words, there)


def _other_subject(
    claimed: str, region: str, around: frozenset[str], words: frozenset[str], there: Passages
) -> int | None:
    """Return a sentence with a name of the claim's that is missing here, where another name is."""
    is_spoken = SAYS.search(claimed) is not None
    extra = [
        _role(region, place)
        for place, group in _groups(region, there)
        if not group & words and (is_spoken or not SAYS.match(region, _end(region, place)))
    ]
    for place, group in _groups(claimed, there):
        role = _role(claimed, place)
        if group & around or role not in extra or (role == SUBJECT and PRONOUN_BEFORE.match(region)):
            continue
        # What the title names may be what the whole text is about, and need no name.
        if (role == SUBJECT and not OF_BEFORE.match(region)) or not group <= there.terms[0].words:
            return there.index[min(group)][0]
    return None


def _role(text: str, place: int) -> str:
    """Return what a name is in a sentence: its subject, or the word before it, as in `by Globex`."""
    before = text[:place].split()
    return SUBJECT if place < SUBJECT_CHARS else before[-1].lower() if before else SUBJECT


def _end(text: str, place: int) -> int:
    found = GROUP.match(text, place)
    return found.end() if found else place


def _groups(text: str, there: Passages) -> list[tuple[int, frozenset[str]]]:
    """Names that the source knows, each as its place and its words."""
    found: list[tuple[int, frozenset[str]]] = []
    for group in GROUP.finditer(text):
        names = (terms_of(group[0]).names & there.known_names) - OF_FIGURES
        if names and all(one in there.index for one in names):
            found.append((group.start(), names))
    return found


def _is_converse(claimed: str, source: str) -> bool:
    """Return whether two comparisons name the same things in another order: A is more than B, B is less than A."""
    names = [
        [key(found[0]) for found in re.finditer(r"[A-Z][\w'-]+", text) if found[0].lower() not in {"the", "in"}]
        for text in (claimed, source)
    ]
    shared = [[one for one in dict.fromkeys(some) if one in names[1 - side]] for side, some in enumerate(names)]
    return len(shared[0]) >= MIN_TERMS and shared[0] != shared[1]


def statement_conflict(claim: ClaimText, sources: Sequence[IndexedSource]) -> tuple[str, Conflict] | None:
    """Return what speaks against a sentence without figures, and in which source.

    Only the passages that share most of its words are compared; that there is none says nothing.
    """
    if FILLER in claim.text:
        return None
    terms = terms_of(claim.text)
    terms = terms if claim.language != "de" else TermSet(terms.words, frozenset())
    for indexed in sources:
        if is_comparable(claim, indexed) and not is_verbatim(claim.text, indexed):
            found = _opposite(claim.text, terms, indexed.passages) or _other_name(claim.text, terms, indexed.passages)
            if found is not None:
                return indexed.source.id, found
    return None


def _ranked(words: Iterable[str], there: Passages) -> tuple[int, list[int]]:
    """Return how many of some words the best sentences share, and these sentences."""
    counts: Counter[int] = Counter()
    for word in words:
        counts.update(there.index.get(word, ())[:MAX_POSTINGS])
    best = max(counts.values(), default=0)
    return best, [number for number, count in counts.items() if count == best]


def _opposite(text: str, terms: TermSet, there: Passages) -> Conflict | None:
    best, numbers = _ranked(terms.words, there)
    if best < max(MIN_TERMS, LEAST_ALIKE * len(terms.words)):
        return None
    reasons = [_contradiction(text, terms.words, number, there) for number in numbers]
    if all(reasons) and not _is_converse(text, there.sentence(numbers[0])):
        return Conflict(f"says the opposite ({reasons[0]})", (there.sentence(numbers[0]),))
    return None


def _contradiction(text: str, words: frozenset[str], number: int, there: Passages) -> str:
    """Return how a statement contradicts a sentence of the source; empty when it does not."""
    mine, region = polarity(text), _region(words, number, there)
    why = mine.contradicts(there.polarity(*there.span(number)))
    why = why and mine.contradicts(there.polarity(*region))
    known = terms_of(there.text, *region).words
    if why == "negation" and len(words & known) < LEAST_SHARED * len(known):
        return ""
    sentence = there.sentence(number)
    if why == "negation" and not (_negates(text, there.terms[number].words) or _negates(sentence, words)):
        return ""
    return why


def _region(words: frozenset[str], number: int, there: Passages) -> tuple[int, int]:
    """Return where the clauses of a sentence are, from the first to the last that shares a word."""
    shared = [one for one in there.clauses(number) if terms_of(there.text, one.start, one.end).words & words]
    return (shared[0].start, shared[-1].end) if shared else there.span(number)


def _other_name(text: str, terms: TermSet, there: Passages) -> Conflict | None:
    names = terms.words & there.known_names
    rest = terms.words - names
    best, numbers = _ranked(rest, there)
    if not names or best < max(MIN_TERMS, LEAST_SAME * len(rest)):
        return None
    found: int | None = None
    for number in numbers:
        own = there.terms[number]
        before = there.terms[number - 1].words if number and not own.names else frozenset[str]()
        found = _other_subject(text, there.sentence(number), own.words | before, terms.words, there)
        if found is None:
            return None
    passages = (there.sentence(numbers[0]), there.sentence(found or 0))
    return Conflict(OTHER, passages)
