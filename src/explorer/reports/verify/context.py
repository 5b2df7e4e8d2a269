"""Whether a source says a figure, or a statement, of the same subject as the sentence does, and the same way round.

Every rule asks for two signs, one against the reading of the sentence and one for another: words of the sentence that
another figure of the source shares and this one does not; a name that is missing and another in its place; a negation
or an opposite in a passage that otherwise says the same. With one sign only, nothing is said.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from explorer.reports.verify.figures import Figures
from explorer.reports.verify.indexed_source import IndexedSource
from explorer.reports.verify.passages import Figure, Passages, Said
from explorer.reports.verify.plain import spaced, terms_of, words
from explorer.reports.verify.polarity import IMPLICIT, NEGATION
from explorer.reports.verify.subjects import (
    MIN_TERMS,
    OTHER,
    PRONOUN_BEFORE,
    TURNED,
    Conflict,
    groups,
    is_converse,
    is_turned,
    other_head_conflict,
    other_subject,
)
from explorer.text.calendar_dates import MONTHS
from explorer.text.words import language_of

LEAST_SHARED = 0.5
LEAST_ALIKE = 0.6
LEAST_BESIDE = 0.3
NEAR_SENTENCES = 2
MAX_POSTINGS = 40
"""Sentences that are looked at for a word; a word of more says little."""
MAX_RIVALS = 300
"""Figures that are compared with one of the source; a page may have thousands around it."""
MIN_MONTH = 3
BEHIND_CHARS = 30
ELLIPTIC = re.compile(r" (?:more|fewer|less|higher|lower|up|down)\b")
"""Behind a figure that counts what the one before it counts."""
BEHIND_END = re.compile(r"[.,;:()\n，。；、]|\b(?:and|in|on|at|by|from|to|und|et)\b")
BARE_MONTH = re.compile(
    rf"(?<!\d )(?<!\d\. )\b({'|'.join(one.title() for one in MONTHS if len(one) > MIN_MONTH)})\b(?! \d\d?\b)"
)
CLAUSE = re.compile(
    r"[,;:()，；]| - |—|–"
    r"|\b(?:that|who|which|but|and|because|why|although|since|while|if|dass|weil|und|aber|qui|que|mais|et)\b"
)
LABEL = re.compile(r"^\s*\w{1,20}: ")
TITLE_WORDS = 4
"""Fewer words of a title may be a name that other texts have, too."""
PRONOUN_SUBJECT = re.compile(r"\b(?:he|she)\b")
"""Somebody who was named before."""


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


def is_titled(text: str, indexed: IndexedSource) -> bool:
    """Return whether a sentence names the source by its title, and so is about what the source is about."""
    title = indexed.source.title
    return len(title.split()) >= TITLE_WORDS and spaced(title) in spaced(text)


def closeness(claim: ClaimText, span: tuple[int, int], place: Figure, indexed: IndexedSource) -> float:
    """Return how much a place of a figure shares with a sentence: the words of its own clauses count twice."""
    there = indexed.passages
    if place.start >= len(there.text):
        return 0
    said, known = claim.passages.said_of(*span).words, there.said_of(place.start, place.end)
    return len(said & known.words) + len(said & known.own)


def conflict_at(claim: ClaimText, span: tuple[int, int], place: Figure, indexed: IndexedSource) -> Conflict | None:
    """Return what speaks against a figure of the sentence being this one of the source; None when nothing plain does.

    Args:
        claim: The sentence.
        span: Where the figure is in it.
        place: The figure of the source.
        indexed: The source.
    """
    there = indexed.passages
    if place.start >= len(there.text) or is_verbatim(claim.text, indexed) or _is_listed(place, there):
        return None
    found = _conflict_at(claim, span, place, indexed)
    return None if found is None or is_shortened(claim.text, there) else found


def _conflict_at(claim: ClaimText, span: tuple[int, int], place: Figure, indexed: IndexedSource) -> Conflict | None:
    there = indexed.passages
    said, known = claim.passages.said_of(*span), there.said_of(place.start, place.end)
    shown = _at(place.start, there)
    whole = there.terms[there.number_at(place.start)].words
    is_whole = len(whole) >= MIN_TERMS and whole <= terms_of(claim.text).words
    rival = _better(claim, said, known, place, there) or _beside(claim, span, known, place, there)
    rival = rival or other_part(claim.passages, span, place, there)
    if rival is not None and not is_whole and not is_titled(claim.text, indexed):
        return Conflict(OTHER, (shown, _at(rival.start, there)))
    if not is_comparable(claim, indexed):
        return None
    mine = claim.text[said.named_from : said.end]
    return (
        _swapped(mine, said, known, there)
        or other_head_conflict(claim.text, there)
        or _turned(claim, said, known, there)
    )


def _is_listed(place: Figure, there: Passages) -> bool:
    """Return whether a figure is one of a list of figures, `71, 70 and 69 percent`, whose names stand in another."""
    before, behind = there.text[max(0, place.start - LIST_CHARS) : place.start], there.text[place.end :][:LIST_CHARS]
    return bool(LIST_BEFORE.search(before) or LIST_BEHIND.match(behind))


LIST_CHARS = 10
LIST_BEFORE = re.compile(r"\d%?(?:, (?:and )?| and )[$€£]?$")
LIST_BEHIND = re.compile(r"%?, (?:and )?[$€£]?\d+%?(?:,| and)")


def _turned(claim: ClaimText, said: Said, known: Said, there: Passages) -> Conflict | None:
    """Return what is the other way round in a passage with the same figure."""
    shown = _at(known.start, there)
    if is_turned(claim.text, groups(claim.text, there), shown, groups(shown, there)):
        return Conflict(TURNED, (shown,))
    why = _contrary(claim.passages, said, there, known)
    is_so = why and not is_converse(claim.text, shown)
    return Conflict(f"says the opposite ({why})", (shown,)) if is_so else None


def _contrary(claimed: Passages, said: Said, there: Passages, known: Said) -> str:
    """Return how two stretches of text with the same figure contradict each other; empty when they do not."""
    mine, region = claimed.text[said.start : said.end], there.text[known.start : known.end]
    why = claimed.polarity(said.start, said.end).contradicts(there.polarity(known.start, known.end))
    if why != "negation":
        return why if said.words & known.words else ""
    own = said.own - said.names
    is_same = len(own & known.own) >= max(1, LEAST_SHARED * len(own))
    return why if is_same and (negates(mine, known.words) or negates(region, said.words)) else ""


def negates(text: str, words: frozenset[str]) -> bool:
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
    is_of_named = PRONOUN_BEFORE.match(_at(place.start, there)) and not known.names.isdisjoint(said.words)
    number = there.number_at(place.start)
    values = {one.value for one in claim.passages.figures}
    # Of a line of a list, what the list has no word for says nothing.
    is_line = there.is_line(number)
    least = LEAST_SHARED * (sum(term in there.index for term in said.words) if is_line else len(said.words))
    here = terms_of(there.text, there.span(number)[0], place.start).names & there.known_names
    for rival in islice(_rivals(missing, place, there), MAX_RIVALS):
        other = there.said_of(rival.start, rival.end)
        theirs = said.words & other.words
        # The names before a figure in its sentence are what the sentence is about.
        its = there.number_at(rival.start)
        gained = theirs - shared - (here if its != number else frozenset())
        if is_of_named and there.number_at(rival.start) != number:
            continue
        is_near = abs(its - number) <= NEAR_SENTENCES or (is_line and there.is_line(its))
        is_whole = len(theirs) == len(said.words) >= MIN_TERMS
        is_plain = (
            gained and len(theirs) >= (max(least, MIN_TERMS) if its == number else least) and rival.value not in values
        )
        if _is_labelled(said, place, rival, there) and rival.value not in values:
            return rival
        if _is_resumed(said, known, other, there) and is_near and rival.value not in values:
            return rival
        if is_plain and shared <= theirs and (is_whole or (gained if is_near else _far(gained, there))):
            return rival
    return None


def _far(gained: frozenset[str], there: Passages) -> bool:
    """Return whether words are enough for a figure that is far away: a name, and more."""
    return len(gained) >= MIN_TERMS and bool(gained & there.known_names)


def _is_labelled(said: Said, place: Figure, rival: Figure, there: Passages) -> bool:
    """Return whether the lines of two figures have labels, and the sentence names the other one: `Width: 30 inches`."""
    mine, its = there.label(place.start), there.label(rival.start)
    return bool(its & said.words) and not mine & said.words and not said.words & there.said_of(*place[:2]).own


def _is_resumed(said: Said, known: Said, other: Said, there: Passages) -> bool:
    """Return whether another figure has who and what of a sentence, and this one only its subject, named just before.

    `Nvidia joined the partnership in March`, after `Microsoft launched the partnership in September`.
    """
    gained = (said.own & other.own) - known.words
    lost = (said.own & known.own) - other.words
    number = there.number_at(other.start)
    before = frozenset[str]().union(*(there.terms[one].words for one in range(max(0, number - NEAR_SENTENCES), number)))
    return (
        len(gained) >= MIN_TERMS
        and bool(gained & there.known_names)
        and bool(gained - there.known_names)
        and (lost <= before)
    )


def _beside(claim: ClaimText, span: tuple[int, int], known: Said, place: Figure, there: Passages) -> Figure | None:
    """Return a figure nearby of which the source says what the sentence says of another: paintings, not prints.

    Looked at are the words directly behind the figures; or, where this one shares none with the sentence, its clause.
    """
    said = claim.passages.said_of(*span)
    mine, its = _behind(claim.passages, span[1]), _behind(there, place.end)
    values = {one.value for one in claim.passages.figures}
    for rival in islice(_around(place, there), MAX_RIVALS):
        if rival.value in values or ELLIPTIC.match(there.text, place.end) or _is_in_brackets(rival, place, there):
            continue
        theirs, other = _behind(there, rival.end), there.said_of(rival.start, rival.end)
        if said.words & there.known_names & known.own - other.words:
            continue
        gained = (mine & theirs) - known.own
        is_here = there.number_at(rival.start) == there.number_at(place.start)
        if is_here and its and theirs and theirs <= said.words and not its & said.words and not mine:
            return rival
        if gained and its - said.words and mine & its <= theirs:
            return rival
        is_other = is_here and not said.own & known.own and len(known.own) >= MIN_TERMS
        alike = said.own & other.own
        if is_other and alike - there.known_names and MIN_TERMS <= len(alike) >= LEAST_ALIKE * len(said.own):
            return rival
    return None


def _is_in_brackets(one: Figure, place: Figure, there: Passages) -> bool:
    """Return whether a figure is in brackets behind another one, and so is said of the same."""
    between = there.text[one.end : place.start]
    return between.count("(") > between.count(")")


def _around(place: Figure, there: Passages) -> Iterator[Figure]:
    """Yield the figures of the same kind in the sentences around one."""
    number = there.number_at(place.start)
    first, last = max(0, number - NEAR_SENTENCES), min(len(there) - 1, number + NEAR_SENTENCES)
    for one in there.figures_in(there.span(first)[0], there.span(last)[1]):
        if one.unit == place.unit and one.value != place.value:
            yield one


def _behind(passages: Passages, end: int) -> frozenset[str]:
    """Return the words directly after a figure, as far as the next one."""
    following = passages.figures_in(end, end + BEHIND_CHARS)
    last = following[0].start if following else end + BEHIND_CHARS
    stop = BEHIND_END.search(passages.text, end, last)
    return terms_of(passages.text, end, stop.start() if stop else last).words


def other_month(claimed: str, region: str) -> bool:
    """Return whether two stretches name months without a day, and no month is in both."""
    mine, its = ({MONTHS[one.lower()] for one in BARE_MONTH.findall(text)} for text in (claimed, region))
    return bool(mine and its and not mine & its)


def _rivals(missing: Iterable[str], place: Figure, there: Passages) -> Iterator[Figure]:
    named = {number for term in missing for number in there.index[term][:MAX_POSTINGS]}
    numbers = named | {line for number in named for line in there.lines_under(number)}
    for number in sorted(numbers, key=lambda one: abs(one - there.number_at(place.start))):
        for one in there.figures_in(*there.span(number)):
            is_alike = one.unit == place.unit and _is_ordinal(one, there) == _is_ordinal(place, there)
            if is_alike and one.value != place.value:
                yield one


def _is_ordinal(one: Figure, there: Passages) -> bool:
    return ORDINAL_END.match(there.text, one.end) is not None


ORDINAL_END = re.compile(r"(?:st|nd|rd|th)\b")


def _swapped(claimed: str, said: Said, known: Said, there: Passages) -> Conflict | None:
    """Return what speaks against the name at a figure: it is missing there, and another is in its place."""
    if PRONOUN_SUBJECT.search(there.text, known.start, known.end):
        return None
    names = said.words & there.known_names
    rest = {one for one in said.words - names if not one[0].isdigit()}
    if not names or len(rest & known.words) < LEAST_BESIDE * len(rest):
        return None
    # `This furniture` is what the text is about, not who was named last.
    start = known.start if PRONOUN_BEFORE.match(_at(known.start, there)) else known.named_from
    words = known.words
    if there.is_line(there.number_at(known.start)):  # a line of a list is about what the title names, if it names it
        words |= there.title
    found = other_subject(claimed, there.text[start : known.end], words, said.words, there)
    return None if found is None else Conflict(OTHER, (_at(known.start, there), there.sentence(found)))


PART = re.compile(r"(?:[ -][\w'-]+){0,2}? (?:by|for|in|with|from|to|at|on|of|as|among|under|bei|mit|für|von|aus)\b")
MAX_CHARS = 120
PART_END = re.compile(r"[.,;:()\n]|\b(?:and|but|while|und|aber)\b")
COMPARED = re.compile(r"\b(?:from|than)(?: \w+)? ?$")
"""Before a figure with which another one is compared."""


def other_part(passages: Passages, span: tuple[int, int], place: Figure, there: Passages) -> Figure | None:
    """Return another figure of the source's sentence whose part the sentence has behind this one.

    Args:
        passages: The sentence.
        span: Where the figure is in it.
        place: The figure of the source.
        there: The source.
    """
    mine, its = _part(passages, span[1]), _part(there, place.end)
    said = mine or terms_of(passages.text, 0, span[0]).words
    is_compared = not mine and COMPARED.search(passages.text[max(0, span[0] - MAX_CHARS) : span[0]])
    if not its or not said or its & said or is_compared:
        return None
    for rival in there.figures_in(*there.span(there.number_at(place.start))):
        if rival.unit != place.unit or rival.value == place.value:
            continue
        other = _part(there, rival.end)
        if other and (other & said) - its:
            return rival
    return None


def _part(passages: Passages, end: int) -> frozenset[str]:
    """Return the words behind a figure that say what it is of; none where no preposition leads to them."""
    start = PART.match(passages.text, end, end + MAX_CHARS)
    if start is None:
        return frozenset()
    following = passages.figures_in(start.end(), end + MAX_CHARS)
    last = following[0].start if following else end + MAX_CHARS
    stop = PART_END.search(passages.text, start.end(), last)
    return terms_of(passages.text, start.end(), stop.start() if stop else last).words


PIECE_END = re.compile(r"(?:;|, (?:and|but|while)) ")
MAX_LEFT_OUT = 4
MIN_WORDS = 4
MAX_SENTENCES = 3
"""Sentences of the source that share most, which are compared."""


def is_shortened(text: str, there: Passages) -> bool:
    """Return whether each part of a sentence has the words of a sentence of the source, in order, but for a few."""
    return all(_is_shorter(piece, there) for piece in PIECE_END.split(text) if piece.strip())


def _is_shorter(piece: str, there: Passages) -> bool:
    mine = words(piece)
    if len(mine) < MIN_WORDS:
        return False
    counts = there.shared(terms_of(piece).words)
    return any(_is_part(mine, words(there.sentence(number))) for number, _ in counts.most_common(MAX_SENTENCES))


def _is_part(mine: list[str], its: list[str]) -> bool:
    if not 0 <= len(its) - len(mine) <= MAX_LEFT_OUT:
        return False
    left_out: list[str] = []
    rest = iter(its)
    for word in mine:
        for other in rest:
            if other == word:
                break
            left_out.append(other)
        else:
            return False
    out = " ".join([*left_out, *rest])
    return NEGATION.search(out) is None and IMPLICIT.search(out) is None
