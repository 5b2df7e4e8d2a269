"""The figures of a sentence looked up: dates, times, versions, names, numbers."""

from collections.abc import Sequence
from fractions import Fraction

from explorer.reports.verify.amounts import counts_there, has_amount, instead
from explorer.reports.verify.claims import Kind
from explorer.reports.verify.derived import COUNTED, own_count, post_facts, worked_out
from explorer.reports.verify.figures import Day, fits, name_pattern, release
from explorer.reports.verify.indexed_source import IndexedSource
from explorer.reports.verify.lookup_outcome import Cited, LookupOutcome, found, not_found, unchecked
from explorer.reports.verify.plain import words
from explorer.reports.verify.quantities import Quantity, measured
from explorer.reports.verify.sentences import SentencePart, is_passed_over

READ_THEN = "the date of reading, not in the text"


def look_up_figures(part: SentencePart, cited: Cited) -> list[LookupOutcome]:
    """One answer for each."""
    message = part.figures
    readings: dict[tuple[int, int], list[Day]] = {}
    for one in message.dates:
        readings.setdefault((one.start, one.end), []).append(one.day)
    looks = [_day(part, span, days, cited) for span, days in readings.items()]
    looks += [_clock(named.text, clock, cited) for named, clock in message.times]
    looks += [_version(named.text, release(numbers), cited) for named, numbers in message.versions]
    looks += [_name(named.text, cited) for named in message.names]
    return looks + _amounts(part, cited)


def _day(part: SentencePart, span: tuple[int, int], days: Sequence[Day], cited: Cited) -> LookupOutcome:
    text = part.text[slice(*span)]
    # What looks like a year may be a number of something.
    number = measured(part.text, *span, (Fraction(days[0].year),)) if text.isdigit() else None

    def has(indexed: IndexedSource) -> str:
        how = next((how for day in days if (how := day_in(indexed, day))), "")
        return how or (has_amount(number, part.text, indexed) if number is not None else "")

    source, how = cited.first(has)
    if source:
        return found("date", text, source, how)
    read = [Day(*indexed.source.retrieved.timetuple()[:3]) for indexed in cited]
    if any(fits(day, one) for day in days for one in read):
        return unchecked("date", text, READ_THEN, is_own=True)
    return not_found("date", text, cited, _other_days(days[0], cited))


def day_in(indexed: IndexedSource, day: Day) -> str:
    """How a source has a date; empty when it does not."""
    if any(fits(day, known) for known in indexed.days):
        return "found"
    if indexed.published is not None and fits(day, indexed.published):
        return "the date of publication, found"
    if any(fits(day, known) for known in indexed.near_days):
        return "told by a word like `yesterday`, found"
    if _without_year(day, indexed) or (day.day and not day.month and indexed.by_value.get(Fraction(day.day))):
        return "found"
    is_bare_year = not day.month and any(not one.unit for one in indexed.by_value.get(Fraction(day.year), ()))
    return "found" if is_bare_year else ""


def _without_year(day: Day, indexed: IndexedSource) -> bool:
    """Whether the source has the day and month, and its year elsewhere: in another date, or as its own."""
    if not (day.year and day.month):
        return False
    years = {known.year for known in indexed.days}
    if indexed.published is not None:
        years.add(indexed.published.year)
    return day.year in years and day._replace(year=0) in indexed.days


def _other_days(day: Day, cited: Cited) -> str:
    """Dates of the source that could have been meant."""
    for indexed in cited:
        known = [
            one
            for one in [*indexed.days, *([indexed.published] if indexed.published else [])]
            if bool(one.day) == bool(day.day)
        ]
        near = sorted(one for one in known if one.year in {0, day.year} or one.month == day.month)
        if near:
            shown = dict.fromkeys("-".join(f"{part:02d}" for part in one if part) for one in near)
            return f"{indexed.source.id} has {', '.join(list(shown)[:3])}"
    return ""


def _clock(text: str, clock: str, cited: Cited) -> LookupOutcome:
    kind: Kind = "date" if len(clock) == len("15:20") else "number"
    pair = f" {' '.join(words(text.replace(':', ' ')))} "
    source, how = cited.first(lambda indexed: "found" if clock in indexed.clocks or pair in indexed.spaced else "")
    return found(kind, text, source, how) if source else not_found(kind, text, cited)


def _version(text: str, version: tuple[int, ...], cited: Cited) -> LookupOutcome:
    def has(indexed: IndexedSource) -> str:
        if any(known[: len(version)] == version for known in indexed.releases):
            return "found"
        is_number = len(version) == 1 and any(not one.unit for one in indexed.by_value.get(Fraction(version[0]), ()))
        return "found" if is_number or name_pattern(text).search(indexed.spaced) else ""

    source, how = cited.first(has)
    return found("version", text, source, how) if source else not_found("version", text, cited)


def _name(text: str, cited: Cited) -> LookupOutcome:
    pattern = name_pattern(text)
    source, how = cited.first(lambda indexed: "found" if pattern.search(indexed.spaced) else "")
    return found("name", text, source, how) if source else not_found("name", text, cited)


def _amounts(part: SentencePart, cited: Cited) -> list[LookupOutcome]:
    """Numbers: first those that a source has, then the others, some of which follow from the first."""
    message = [one for one in part.figures.quantities if not is_passed_over(one)]
    looks: dict[int, LookupOutcome] = {}
    for one in message:
        has = counts_there if own_count(one, part.text) in COUNTED else has_amount
        source, how = cited.first(lambda indexed, one=one, has=has: has(one, part.text, indexed))
        if source:
            looks[one.start] = found(one.kind, one.text, source, how)
    known = [one for one in message if one.start in looks]
    for one in message:
        if one.start not in looks:
            looks[one.start] = _absent(one, part, cited, known)
    return [looks[one.start] for one in message]


def _absent(one: Quantity, part: SentencePart, cited: Cited, known: Sequence[Quantity]) -> LookupOutcome:
    """What to say of a number that no source has."""
    why = own_count(one, part.text) or worked_out(one, known, [clock for _, clock in part.figures.times])
    if why:
        return unchecked(one.kind, one.text, why, is_own=True)
    for indexed in (*cited.indexed_sources, *cited.same_url_sources):
        facts = post_facts(one, indexed, part.figures.quantities, part.text)
        if facts is not None:
            fits_post, why = facts
            if fits_post:
                return unchecked(one.kind, one.text, why, is_own=True)
            return not_found(one.kind, one.text, cited, why, is_contradicted=True)
    return not_found(one.kind, one.text, cited, instead(one, iter(cited)))
