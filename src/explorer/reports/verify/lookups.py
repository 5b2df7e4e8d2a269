"""The quotes and the figures of a sentence, looked up in the sources that it cites."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from explorer.reports.verify.amounts import Places, counts_there, has_amount, instead, is_converted
from explorer.reports.verify.arithmetic import DerivedNumber, follows_from, from_one_figure, years_after
from explorer.reports.verify.claims import FAULTS, Finding, Kind, Verdict
from explorer.reports.verify.context import ClaimText, claim_text, closeness, conflict_at
from explorer.reports.verify.derived import COUNTED, RANKS, is_rank, own_count, part_of_whole, post_facts, worked_out
from explorer.reports.verify.figures import Named, Quantity, has_name, measured, release, wholes
from explorer.reports.verify.indexed_source import ZONE_CHARS, IndexedSource
from explorer.reports.verify.passages import Figure, figure_of, is_label
from explorer.reports.verify.plain import plain, words
from explorer.reports.verify.quotations import (
    SentencePart,
    has_quote,
    is_translated,
    likeness,
    part_of,
    parts,
    passages,
)
from explorer.reports.verify.sentences import Quote, Sentence, is_short
from explorer.reports.verify.speakers import report_conflict, speaker_conflict
from explorer.reports.verify.statements import statement_conflict
from explorer.reports.verify.subjects import Conflict
from explorer.text.calendar_dates import Day, fits, utc_minutes


def is_passed_over(one: Quantity) -> bool:
    """Return whether a number says nothing: `one` and `zero` as words, without a unit."""
    return one.is_word and not one.unit and max(one.values) <= 1


def is_checkable(sentence: Sentence) -> bool:
    """Return whether a sentence without a citation says something that needs one."""
    if any(not is_short(quote.text) for quote in passages(sentence)):
        return True
    for part in parts(sentence):
        shown = [one for one in part.figures.quantities if not is_passed_over(one) and not own_count(one, part.text)]
        if any((not one.is_word or one.unit) and not one.is_share for one in shown) or any(
            one.day.day for one in part.figures.dates
        ):
            return True
    return False


@dataclass(frozen=True)
class LookupOutcome:
    """An answer, and whether it speaks against calling the whole sentence supported."""

    finding: Finding
    is_own: bool = False
    """Unchecked, because it is plainly the writer's own: a count of points, the part behind a cited clause."""
    is_contradicted: bool = False
    """Not found, and the source says that it cannot be."""
    span: tuple[int, int] = (0, 0)
    """Where a figure is in its part of the sentence."""
    places: tuple[tuple[IndexedSource, Figure], ...] = ()
    """Where the sources have it; none where that cannot be said."""


@dataclass(frozen=True)
class Cited:
    """The sources of a sentence."""

    indexed_sources: tuple[IndexedSource, ...]
    """Sources that the sentence cites."""
    same_url_sources: tuple[IndexedSource, ...] = ()
    """Others of the same addresses: the page at another time, the story of a thread."""

    def first(self, has: Callable[[IndexedSource], str]) -> tuple[str, str]:
        """Return the first source that has what is looked for, and how; two empty strings when none has."""
        for indexed in self.indexed_sources:
            if how := has(indexed):
                return indexed.source.id, how
        for indexed in self.same_url_sources:
            if how := has(indexed):
                return indexed.source.id, f"{how}, stored from the same address"
        return "", ""

    @property
    def all(self) -> tuple[IndexedSource, ...]:
        """The cited ones, and those of the same addresses."""
        return (*self.indexed_sources, *self.same_url_sources)

    def __iter__(self) -> Iterator[IndexedSource]:
        """Return the sources that a sentence cites."""
        return iter(self.indexed_sources)

    @property
    def ids(self) -> str:
        """The cited ones, for people."""
        return ", ".join(indexed.source.id for indexed in self.indexed_sources)


def found(kind: Kind, text: str, source: str, how: str) -> LookupOutcome:
    """Return the finding that a source has it."""
    verdict, reason = Verdict.SUPPORTED, f"{how} in {source}"
    return LookupOutcome(Finding(kind=kind, text=text, verdict=verdict, source=source, reason=reason))


def elsewhere(kind: Kind, text: str, source: str, conflict: Conflict) -> LookupOutcome:
    """Return the finding that a source has it, and says it otherwise."""
    shown = "; ".join(f"“{passage[:PASSAGE_CHARS]}”" for passage in dict.fromkeys(conflict.passages))
    verdict, reason, passages = Verdict.ELSEWHERE, f"{source} {conflict.why}: {shown}", conflict.passages
    return LookupOutcome(
        Finding(kind=kind, text=text, verdict=verdict, source=source, reason=reason, passages=passages)
    )


def not_found(kind: Kind, text: str, cited: Cited, more: str = "", *, is_contradicted: bool = False) -> LookupOutcome:
    """Return the finding that no cited source has it."""
    reason = f"not in {cited.ids}" + (f"; {more}" if more else "")
    finding = Finding(kind=kind, text=text, verdict=Verdict.NOT_FOUND, reason=reason)
    return LookupOutcome(finding, is_contradicted=is_contradicted)


PASSAGE_CHARS = 300


def unchecked(kind: Kind, text: str, why: str, *, is_own: bool) -> LookupOutcome:
    """Return the finding that it cannot be looked up."""
    return LookupOutcome(Finding(kind=kind, text=text, verdict=Verdict.UNCHECKED, reason=why), is_own)


READ_THEN = "the date of reading, not in the text"


def look_up_figures(part: SentencePart, cited: Cited) -> list[LookupOutcome]:
    """Look up every figure of a part; return one finding each."""
    message = part.figures
    readings: dict[tuple[int, int], list[Day]] = {}
    for one in message.dates:
        readings.setdefault((one.start, one.end), []).append(one.day)
    outcomes = [_day(part, span, days, cited) for span, days in readings.items()]
    outcomes += [_clock(part, named, clock, cited) for named, clock in message.times]
    outcomes += [_version(named.text, release(numbers), cited) for named, numbers in message.versions]
    outcomes += [_name(named.text, cited) for named in message.names]
    return outcomes + _amounts(part, cited)


def _day(part: SentencePart, span: tuple[int, int], days: Sequence[Day], cited: Cited) -> LookupOutcome:
    text = part.text[slice(*span)]
    # What looks like a year may be a number of something.
    number = measured(part.text, *span, (Fraction(days[0].year),)) if text.isdigit() else None

    def has(indexed: IndexedSource) -> str:
        how = next((how for day in days if (how := day_in(indexed, day))), "")
        return how or (has_amount(number, part.text, indexed).how if number is not None else "")

    source, how = cited.first(has)
    if source:
        places = [(indexed, one) for indexed in cited.all for one in _dated(days, indexed)]
        return replace(found("date", text, source, how), span=span, places=tuple(places))
    if not days[0].month and (why := next((why for one in cited.all if (why := years_after(days[0].year, one))), "")):
        return unchecked("date", text, why, is_own=True)
    read = [Day(*indexed.source.retrieved.timetuple()[:3]) for indexed in cited]
    if any(fits(day, one) for day in days for one in read):
        return unchecked("date", text, READ_THEN, is_own=True)
    return not_found("date", text, cited, _other_days(days[0], cited))


def _dated(days: Sequence[Day], indexed: IndexedSource) -> Iterator[Figure]:
    for one in indexed.dated:
        if any(fits(day, one.day) for day in days):
            yield Figure(one.start, one.end, "date", str(one.day))


def day_in(indexed: IndexedSource, day: Day) -> str:
    """Return how a source has a date; empty when it does not."""
    if any(fits(day, known) for known in indexed.days):
        return "found"
    if indexed.published is not None and fits(day, indexed.published):
        return "the date of publication, found"
    if any(fits(day, known) for known in indexed.near_days):
        return "given by a word like `yesterday`, found"
    if indexed.is_month_before(day):
        return "counted from the date of publication, found"
    if _without_year(day, indexed) or (day.day and not day.month and indexed.by_value.get(Fraction(day.day))):
        return "found"
    is_bare_year = not day.month and any(not one.unit for one in indexed.by_value.get(Fraction(day.year), ()))
    return "found" if is_bare_year else ""


def _without_year(day: Day, indexed: IndexedSource) -> bool:
    """Return whether the source has the day and month, and its year elsewhere: in another date, or as its own."""
    if not (day.year and day.month):
        return False
    years = {known.year for known in indexed.days}
    if indexed.published is not None:
        years.add(indexed.published.year)
    return day.year in years and day._replace(year=0) in indexed.days


def _other_days(day: Day, cited: Cited) -> str:
    """Return the source's dates that could have been meant."""
    for indexed in cited:
        dated = indexed.days | ({indexed.published} if indexed.published else set[Day]())
        known = [one for one in dated if bool(one.day) == bool(day.day)]
        near = sorted(one for one in known if one.year in {0, day.year} or one.month == day.month)
        if near:
            shown = dict.fromkeys("-".join(f"{part:02d}" for part in one if part) for one in near)
            return f"{indexed.source.id} has {', '.join(list(shown)[:3])}"
    return ""


def _clock(part: SentencePart, named: Named, clock: str, cited: Cited) -> LookupOutcome:
    text = named.text
    kind: Kind = "date" if len(clock) == len("15:20") else "number"
    minutes = utc_minutes(clock, part.text[named.end : named.end + ZONE_CHARS])
    pair = f" {' '.join(words(text.replace(':', ' ')))} "

    def has(indexed: IndexedSource) -> str:
        if clock in indexed.clocks or pair in indexed.spaced:
            return "found"
        return "in another time zone, found" if minutes in indexed.utc_clocks else ""

    source, how = cited.first(has)
    if not source:
        return not_found(kind, text, cited)
    places = [
        (indexed, Figure(one.start, one.end, "clock", known))
        for indexed in cited.all
        for one, known in indexed.times
        if known == clock
    ]
    return replace(found(kind, text, source, how), span=(named.start, named.end), places=tuple(places))


def _either(kind: Kind, text: str, cited: Cited, has: Callable[[IndexedSource], str]) -> LookupOutcome:
    source, how = cited.first(has)
    return found(kind, text, source, how) if source else not_found(kind, text, cited)


def _version(text: str, version: tuple[int, ...], cited: Cited) -> LookupOutcome:
    def has(indexed: IndexedSource) -> str:
        if any(known[: len(version)] == version for known in indexed.releases):
            return "found"
        is_number = len(version) == 1 and any(not one.unit for one in indexed.by_value.get(Fraction(version[0]), ()))
        return "found" if is_number or has_name(indexed.spaced, text) else ""

    return _either("version", text, cited, has)


def _name(text: str, cited: Cited) -> LookupOutcome:
    return _either("name", text, cited, lambda indexed: "found" if has_name(indexed.spaced, text) else "")


MAX_EXPLAINED = 60
"""Numbers of one sentence that no source has and that may follow from others; a text with more is made to cost time."""


def _amounts(part: SentencePart, cited: Cited) -> list[LookupOutcome]:
    """Look up numbers: first those that a source has, then the others, some of which follow from the first."""
    message = [one for one in wholes(part.figures.quantities) if not is_passed_over(one)]
    outcomes: dict[int, LookupOutcome] = {}
    for one in message:
        own = own_count(one, part.text)
        has = counts_there if own in COUNTED else has_amount
        by_source = {indexed.source.id: (indexed, has(one, part.text, indexed)) for indexed in cited.all}
        source, how = cited.first(lambda indexed, by_source=by_source: by_source[indexed.source.id][1].how)
        if source:
            places = _places(by_source.values())
            if own in RANKS:
                places = tuple(pair for pair in places if is_rank(pair[1], pair[0].plain))
            elif own or is_label(one, part.text):
                places = ()
            outcomes[one.start] = replace(
                found(one.kind, one.text, source, how), span=(one.start, one.end), places=places
            )
    known = [one for one in message if one.start in outcomes or one.is_share]
    absent = [one for one in message if one.start not in outcomes and not one.is_share]
    for number, one in enumerate(absent):
        is_explained = number < MAX_EXPLAINED
        outcomes[one.start] = _absent(one, part, cited, known) if is_explained else not_found(one.kind, one.text, cited)
    return [outcomes[one.start] for one in message if one.start in outcomes]


def _places(by_source: Iterable[tuple[IndexedSource, Places]]) -> tuple[tuple[IndexedSource, Figure], ...]:
    """Return where sources have a number; none when one of them has it in a place that is not known."""
    shown = list(by_source)
    if any(places.how and not places.quantities for _, places in shown):
        return ()
    return tuple((indexed, figure_of(one)) for indexed, places in shown for one in places.quantities)


def _absent(one: Quantity, part: SentencePart, cited: Cited, known: Sequence[Quantity]) -> LookupOutcome:
    """Return what to say of a number that no source has."""
    clocks, years = [clock for _, clock in part.figures.times], {dated.day.year for dated in part.figures.dates}
    why = own_count(one, part.text) or worked_out(one, known, clocks, sorted(years - {0}))
    why = why or next((why for indexed in cited.all if (why := part_of_whole(one, known, indexed))), "")
    number = DerivedNumber(one, part.text, known, sorted(years))
    why = why or next((why for indexed in cited.all if (why := follows_from(number, indexed))), "")
    why = why or next((why for indexed in cited.all if (why := from_one_figure(one, part.text, indexed))), "")
    why = why or next((f"the same as {other.text}" for other in known if is_converted(one, part.text, other)), "")
    if why:
        return unchecked(one.kind, one.text, why, is_own=True)
    for indexed in cited.all:
        facts = post_facts(one, indexed, part.figures.quantities, part.text)
        if facts is not None:
            fits_post, why = facts
            if fits_post:
                return unchecked(one.kind, one.text, why, is_own=True)
            return not_found(one.kind, one.text, cited, why, is_contradicted=True)
    return not_found(one.kind, one.text, cited, instead(one, iter(cited)))


UNCITED_PART = "is after the citation, in a part of its own that cites nothing"
TRANSLATED = "a translation cannot be looked up word for word"


def look_up(sentence: Sentence, cited: Cited) -> list[LookupOutcome]:
    """Return one finding for each quote and figure."""
    outcomes: list[LookupOutcome] = []
    for quote in passages(sentence):
        outcomes += _quote(quote, sentence, cited)
    for part in parts(sentence):
        answers = look_up_figures(part, cited)
        outcomes += [_in_tail(outcome) for outcome in answers] if part.is_tail else _in_context(part, answers, cited)
    return outcomes


MAX_PLACES = 12
"""A figure with more of them in its sources is taken to be where it should."""
MAX_AROUND = 200
"""The places of a figure whose words are read for what the statement is about; of more, the others add nothing."""


WORKED_OUT = "worked out"
"""Begins the reason of a figure that follows from others; its sentence need not go the same way round as they do."""


def _in_context(part: SentencePart, answers: list[LookupOutcome], cited: Cited) -> list[LookupOutcome]:
    """Look whether what was found is said of the same in the sources, and the same way round."""
    claim = claim_text(part.text, part.figures)
    checked = [_or_worked_out(_same_subject(claim, answer), answer, part, cited) for answer in answers]
    if not any(answer.finding.verdict in FAULTS for answer in checked):
        found = [place for answer in answers for place in answer.places[:MAX_AROUND]]
        places = [indexed.passages.said_of(one.start, one.end).own for indexed, one in found]
        around = frozenset[str]().union(*places) if places else None
        is_reworded = any(answer.finding.reason.startswith(WORKED_OUT) for answer in answers)
        against = None if is_reworded else statement_conflict(claim, cited.all, around)
        against = against or _reported_otherwise(claim, cited)
        if against is not None:
            checked.append(elsewhere("statement", " ".join(part.text.split()), *against))
    return checked


def _reported_otherwise(claim: ClaimText, cited: Cited) -> tuple[str, Conflict] | None:
    """Return what speaks against the speaker of a reported statement, and in which source; None when one agrees."""
    found = [(one.source.id, report_conflict(claim.text, one.passages)) for one in cited.all]
    conflicts = [(source, conflict) for source, conflict in found if conflict is not None]
    return conflicts[0] if len(conflicts) == len(found) == 1 else None


def _same_subject(claim: ClaimText, answer: LookupOutcome) -> LookupOutcome:
    if not answer.places or len(answer.places) > MAX_PLACES:
        return answer
    conflict: Conflict | None = None
    for indexed, place in _nearest(claim, answer):
        conflict = conflict_at(claim, answer.span, place, indexed)
        if conflict is None:
            return answer
    finding = answer.finding
    return elsewhere(finding.kind, finding.text, answer.places[-1][0].source.id, conflict) if conflict else answer


def _or_worked_out(checked: LookupOutcome, answer: LookupOutcome, part: SentencePart, cited: Cited) -> LookupOutcome:
    """Return that a number is worked out, where it only happens to be in the source, of something else, as well."""
    if checked is answer:
        return answer
    quantities = [one for one in part.figures.quantities if (one.start, one.end) == answer.span]
    beside = [one for one in part.figures.quantities if one not in quantities]
    years = sorted({dated.day.year for dated in part.figures.dates} - {0})
    for one in quantities:
        number = DerivedNumber(one, part.text, beside, years, is_there=True)
        reasons = [follows_from(number, indexed) for indexed in cited.all]
        if any(reasons):
            return unchecked(one.kind, one.text, next(filter(None, reasons)), is_own=True)
    return checked


LEAST_NEAR = 0.6
"""Smallest share of the best place's words in common with the sentence; a place with fewer proves nothing."""


def _nearest(claim: ClaimText, answer: LookupOutcome) -> list[tuple[IndexedSource, Figure]]:
    """Return the places of a figure that share about as much with the sentence as the best of them."""
    shared = [closeness(claim, answer.span, place, indexed) for indexed, place in answer.places]
    least = LEAST_NEAR * max(shared)
    return [one for one, count in zip(answer.places, shared, strict=True) if count >= least]


def _in_tail(outcome: LookupOutcome) -> LookupOutcome:
    """Soften findings on what no citation covers, unless the source contradicts it."""
    finding = outcome.finding
    if finding.verdict is not Verdict.NOT_FOUND or outcome.is_contradicted:
        return outcome
    return unchecked(finding.kind, finding.text, UNCITED_PART, is_own=True)


def _quote(quote: Quote, sentence: Sentence, cited: Cited) -> Iterator[LookupOutcome]:
    shown = " ".join(quote.text.split())

    def has(indexed: IndexedSource) -> str:
        return "word for word" if has_quote(indexed, quote.text) else ""

    source, how = cited.first(has)
    if source:
        yield _spoken(quote, sentence, found("quote", shown, source, how), cited)
    elif is_short(quote.text):
        return  # a word or two may be the writer's own; see `parts`
    elif all(is_translated(quote.text, indexed) for indexed in cited):
        yield unchecked("quote", shown, TRANSLATED, is_own=False)
        # The figures in it are the same in every language.
        yield from look_up_figures(part_of(quote.text), cited)
    elif quote.start >= sentence.tail:
        yield unchecked("quote", shown, UNCITED_PART, is_own=True)
    else:
        yield not_found("quote", shown, cited, _alike(quote.text, cited))


def _spoken(quote: Quote, sentence: Sentence, answer: LookupOutcome, cited: Cited) -> LookupOutcome:
    """Look whether the source gives the quote to whom the sentence gives it."""
    before, behind = (plain(sentence.text[part]) for part in (slice(quote.start), slice(quote.end, None)))
    having = [indexed for indexed in cited.all if has_quote(indexed, quote.text)]
    conflicts = [speaker_conflict(quote.text, before, behind, indexed) for indexed in having]
    against = conflicts[0] if all(conflicts) else None
    return elsewhere("quote", answer.finding.text, having[0].source.id, against) if against else answer


def _alike(quote: str, cited: Cited) -> str:
    """Return how far the source goes along with an altered quote."""
    alike = [(likeness(quote, indexed), indexed.source.id) for indexed in cited]
    words, source = max(alike, key=lambda pair: len(pair[0]))
    return f"{source} continues otherwise after “{words}”" if words else ""
