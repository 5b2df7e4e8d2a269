"""The quotes and the figures of a sentence, looked up in the sources that it cites."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from explorer.reports.verify.claims import Finding, Kind, Verdict
from explorer.reports.verify.derived import COUNTED, own_count, post_facts, worked_out
from explorer.reports.verify.figures import (
    FILLER,
    Day,
    Figures,
    Quantity,
    figures,
    fits,
    measured,
    name_pattern,
    release,
)
from explorer.reports.verify.indexed_source import IndexedSource, counts_there, has_amount, instead
from explorer.reports.verify.plain import plain, spaced, words
from explorer.reports.verify.sentences import LEAST_WORDS, Quote, Sentence, is_short, quotes
from explorer.text.words import HAN, is_mostly_cjk

ATTRIBUTION = re.compile(rf"\n\s*(?:—|–|-{{1,2}})\s*\S.{{0,80}}$|\s+(?:—|–|--)\s*[A-Z@{HAN}][^.!?]{{0,60}}$")
"""Who said it, at the end of a blockquote."""
CALLOUT = re.compile(
    r"\s*(?:\[!\w+\]|(?:\*\*|__)?(?:note|tip|warning|important|summary|caveat|tl;?dr|注意|提示|说明)\b)", re.IGNORECASE
)
"""A blockquote that is a remark of the writer's."""
MARKS = str.maketrans(dict.fromkeys('“”„«»「」『』"', " "))


@dataclass(frozen=True)
class SentencePart:
    """A stretch of a sentence without its quotes."""

    text: str
    """Plain."""
    figures: Figures
    is_tail: bool = False
    """Whether the part is after a cited clause and cites nothing itself."""


def passages(sentence: Sentence) -> list[Quote]:
    """Return the quotes of a sentence; of a blockquote without any, all of it."""
    shown = list(quotes(sentence.text))
    if shown or sentence.kind != "quote" or CALLOUT.match(sentence.text):
        return shown
    text = ATTRIBUTION.sub("", sentence.text.rstrip())
    return [Quote(0, len(text), text.strip())] if text.strip() else []


def parts(sentence: Sentence) -> Iterator[SentencePart]:
    """Yield what the citation covers, and what is after it in a part of its own."""
    text = sentence.text
    for start, end, quote in passages(sentence):
        # A word or two in quotes is no passage, and its figures are the sentence's.
        kept = text[start:end].translate(MARKS) if is_short(quote) else FILLER * (end - start)
        text = text[:start] + kept + text[end:]
    for stretch, is_tail in ((text[: sentence.tail], False), (text[sentence.tail :], True)):
        if stretch.strip():
            clear = plain(stretch)
            yield SentencePart(clear, figures(clear), is_tail)


def part_of(quote: str) -> SentencePart:
    """Return a quote, read for its figures."""
    clear = plain(quote)
    return SentencePart(clear, figures(clear))


def is_passed_over(one: Quantity) -> bool:
    """Numbers that say nothing: `one` and `zero` as words, without a unit."""
    return one.is_word and not one.unit and max(one.values) <= 1


def is_checkable(sentence: Sentence) -> bool:
    """Return whether a sentence without a citation says something that needs one."""
    if any(not is_short(quote.text) for quote in passages(sentence)):
        return True
    for part in parts(sentence):
        shown = [one for one in part.figures.quantities if not is_passed_over(one) and not own_count(one, part.text)]
        if any(not one.is_word or one.unit for one in shown) or any(one.day.day for one in part.figures.dates):
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

    def __iter__(self) -> Iterator[IndexedSource]:
        """Return the sources that a sentence cites."""
        return iter(self.indexed_sources)

    @property
    def ids(self) -> str:
        """The cited ones, for people."""
        return ", ".join(indexed.source.id for indexed in self.indexed_sources)


def found(kind: Kind, text: str, source: str, how: str) -> LookupOutcome:
    """Return the finding that a source has it."""
    return LookupOutcome(
        Finding(kind=kind, text=text, verdict=Verdict.SUPPORTED, source=source, reason=f"{how} in {source}")
    )


def not_found(kind: Kind, text: str, cited: Cited, more: str = "", *, is_contradicted: bool = False) -> LookupOutcome:
    """Return the finding that no cited source has it."""
    reason = f"not in {cited.ids}" + (f"; {more}" if more else "")
    return LookupOutcome(
        Finding(kind=kind, text=text, verdict=Verdict.NOT_FOUND, reason=reason), is_contradicted=is_contradicted
    )


def unchecked(kind: Kind, text: str, why: str, *, is_own: bool) -> LookupOutcome:
    """Return the finding that it cannot be looked up."""
    return LookupOutcome(Finding(kind=kind, text=text, verdict=Verdict.UNCHECKED, reason=why), is_own)


LEAST_SQUEEZED = 12
WINDOW_CHARS = 2_000
"""Between two parts of a quote with an ellipsis."""
MAX_STARTS = 200
GAP = re.compile(r"\[?\s?(?:\.\.\.|…|\. \. \.)\s?\]?|\[[^\[\]]{2,80}\]")
"""Left out, or put in by the writer."""
LETTER_IN_BRACKETS = re.compile(r"\[(\w)\](?=\w)")
_ENGLISH = "the of and to is in that for was with are have not it this"
ENGLISH = frozenset(_ENGLISH.split())
ENGLISH_WORDS = 2


def parts_of(quote: str) -> list[tuple[str, bool]]:
    """Return the parts of a quote between ellipses, as words; True for a part whose last word may be cut."""
    text = LETTER_IN_BRACKETS.sub(r"\1", quote)
    pieces: list[tuple[str, bool]] = []
    position = 0
    for gap in GAP.finditer(text):
        is_cut = gap.start() > position and text[gap.start() - 1].isalnum() and gap[0][0] in ".…"
        pieces.append((spaced(plain(text[position : gap.start()])), is_cut))
        position = gap.end()
    pieces.append((spaced(plain(text[position:])), False))
    return [(piece, is_cut) for piece, is_cut in pieces if piece.strip()]


def has_quote(indexed: IndexedSource, quote: str) -> bool:
    """Return whether the source has all parts of a quote, in their order and not far apart."""
    parts = parts_of(quote)
    if not parts:
        return False
    if _in_order(indexed.spaced, [part.rstrip() if is_cut else part for part, is_cut in parts]):
        return True
    squeezed = [re.sub(r"(?<!\d) | (?!\d)", "", part) for part, _ in parts]
    return all(len(part) >= LEAST_SQUEEZED for part in squeezed) and _in_order(indexed.squeezed, squeezed)


def _in_order(text: str, parts: list[str]) -> bool:
    """Return whether the parts stand one behind the other, each near the one before."""
    place = text.find(parts[0])
    for _ in range(MAX_STARTS):
        if place < 0:
            return False
        if _follow(text, parts, place):
            return True
        place = text.find(parts[0], place + 1)
    return False


def _follow(text: str, parts: list[str], place: int) -> bool:
    end = place + len(parts[0].rstrip())
    for part in parts[1:]:
        place = text.find(part, end, end + WINDOW_CHARS + len(part))
        if place < 0:
            return False
        end = place + len(part.rstrip())
    return True


def is_translated(quote: str, indexed: IndexedSource) -> bool:
    """Return whether a quote is in another language than the source, so that it cannot be there word for word."""
    if is_mostly_cjk(quote) != indexed.is_chinese:
        return True
    language = indexed.source.language[:2].lower()
    is_english = len(ENGLISH & set(words(plain(quote)))) >= ENGLISH_WORDS
    return is_english and language not in {"", "en", "un"}


def likeness(quote: str, indexed: IndexedSource) -> str:
    """Return the beginning of a quote as far as the source has it; empty when it has no three words of it."""
    shown = words(" ".join(part for part, _ in parts_of(quote)))
    low, high = 0, len(shown)
    while low < high:
        middle = (low + high + 1) // 2
        if f" {' '.join(shown[:middle])} " in indexed.spaced:
            low = middle
        else:
            high = middle - 1
    return " ".join(shown[:low]) if low >= LEAST_WORDS else ""


READ_THEN = "the date of reading, not in the text"


def look_up_figures(part: SentencePart, cited: Cited) -> list[LookupOutcome]:
    """Look up every figure of a part; return one finding each."""
    message = part.figures
    readings: dict[tuple[int, int], list[Day]] = {}
    for one in message.dates:
        readings.setdefault((one.start, one.end), []).append(one.day)
    outcomes = [_day(part, span, days, cited) for span, days in readings.items()]
    outcomes += [_clock(named.text, clock, cited) for named, clock in message.times]
    outcomes += [_version(named.text, release(numbers), cited) for named, numbers in message.versions]
    outcomes += [_name(named.text, cited) for named in message.names]
    return outcomes + _amounts(part, cited)


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
    """Return how a source has a date; empty when it does not."""
    if any(fits(day, known) for known in indexed.days):
        return "found"
    if indexed.published is not None and fits(day, indexed.published):
        return "the date of publication, found"
    if any(fits(day, known) for known in indexed.near_days):
        return "given by a word like `yesterday`, found"
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
    outcomes: dict[int, LookupOutcome] = {}
    for one in message:
        has = counts_there if own_count(one, part.text) in COUNTED else has_amount
        source, how = cited.first(lambda indexed, one=one, has=has: has(one, part.text, indexed))
        if source:
            outcomes[one.start] = found(one.kind, one.text, source, how)
    known = [one for one in message if one.start in outcomes]
    for one in message:
        if one.start not in outcomes:
            outcomes[one.start] = _absent(one, part, cited, known)
    return [outcomes[one.start] for one in message]


def _absent(one: Quantity, part: SentencePart, cited: Cited, known: Sequence[Quantity]) -> LookupOutcome:
    """Return what to say of a number that no source has."""
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


UNCITED_PART = "is after the citation, in a part of its own that cites nothing"
TRANSLATED = "a translation cannot be looked up word for word"


def look_up(sentence: Sentence, cited: Cited) -> list[LookupOutcome]:
    """Return one finding for each quote and figure."""
    outcomes: list[LookupOutcome] = []
    for quote in passages(sentence):
        outcomes += _quote(quote, sentence, cited)
    for part in parts(sentence):
        answers = look_up_figures(part, cited)
        outcomes += [_in_tail(outcome) for outcome in answers] if part.is_tail else answers
    return outcomes


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
        yield found("quote", shown, source, how)
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


def _alike(quote: str, cited: Cited) -> str:
    """Return how far the source goes along with an altered quote."""
    alike = [(likeness(quote, indexed), indexed.source.id) for indexed in cited]
    words, source = max(alike, key=lambda pair: len(pair[0]))
    return f"{source} continues otherwise after “{words}”" if words else ""
