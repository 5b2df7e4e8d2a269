"""All figures of a plain text in one pass: dates, times, names, versions, and numbers in what is left."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from explorer.reports.verify.plain import words
from explorer.reports.verify.quantities import FILLER, Quantity, quantities
from explorer.reports.verify.units import CURRENCY_SIGNS, LETTER_SCALES, MEASURES, PERCENT_WORDS, SCALES


class Named(NamedTuple):
    """A name or a version in a text."""

    start: int
    end: int
    text: str


TOKEN = re.compile(r"(?<![A-Za-z0-9_$€£¥.,])[A-Za-z0-9_]+(?:[-./+#@][A-Za-z0-9_]+)*\+{0,2}")
STARTS_AS_NUMBER = re.compile(r"\d[\d.,]*(?:-[a-z]+)*(?:-?([A-Za-z]+))?(?:[/-].*)?")
"""24-node, 12GB, 3rd, 1990s, 100-metre: a number and what it counts."""
NUMBER_LETTERS = frozenset(
    {*SCALES, *LETTER_SCALES, *MEASURES, *PERCENT_WORDS, "st", "nd", "rd", "th", "s", "am", "pm", "d", "yo", "ish", "e"}
)
_BEFORE_NUMBERS = (
    "mid pre post sub non late early circa ca over under top near multi anti ex no nr fig pp p vol ch sec section step "
    "part level tier type phase stage layer day week month year page line item rank about around some at of to from"
)
BEFORE_NUMBERS = frozenset(_BEFORE_NUMBERS.split())
"""Words that a hyphen or a dot may tie to a number that is one all the same: mid-2023, No.5."""
TIED = re.compile(r"([A-Za-z]+)[-.]\d[\d.,]*s?")
SOURCE_ID = re.compile(r"S\d+")
LETTERS = re.compile(r"[A-Za-z]+")
MARKED_VERSION = re.compile(
    r"(?<![A-Za-z0-9.])(?:v\.? ?|versions? |releases? |ver\.? ?|版本(?:号)?:? ?)"
    r"(\d+(?:\.\d+)*)(?:-?(?:alpha|beta|rc)\.?\d*)?(?![A-Za-z0-9_%]|\.\d|,\d| (?:million|billion|thousand|percent))",
    re.IGNORECASE,
)
DOTTED_VERSION = re.compile(r"(?<![A-Za-z0-9_.])(\d+(?:\.\d+){2,})(?:-?(?:alpha|beta|rc)\.?\d*)?(?![A-Za-z0-9_])")
PIECE = re.compile(r"[a-z]+|\d+|[^a-z\d\s]+")


def names(text: str) -> Iterator[Named]:
    """Words in which letters and figures stand together, but for numbers with their unit."""
    for found in TOKEN.finditer(text):
        token = found[0]
        if _is_name(token):
            yield Named(found.start(), found.end(), token)


def _is_name(token: str) -> bool:
    has_both = any(c.isdigit() for c in token) and any(c.isalpha() for c in token)
    if not has_both or SOURCE_ID.fullmatch(token) or MARKED_VERSION.fullmatch(token):
        return False
    if token[0].isdigit():
        number = STARTS_AS_NUMBER.fullmatch(token)
        return number is None or not _counts(token, number[1] or "")
    tied = TIED.fullmatch(token)
    if tied and tied[1].lower() in BEFORE_NUMBERS:
        return False
    letters = LETTERS.match(token)
    return letters is None or letters[0] not in CURRENCY_SIGNS


def _counts(token: str, letters: str) -> bool:
    is_tied = re.match(r"\d[\d.,]*-", token) is not None
    return is_tied or not letters or letters in NUMBER_LETTERS or letters.lower() in NUMBER_LETTERS


def versions(text: str) -> Iterator[tuple[Named, str]]:
    """Versions that are marked as such or have three parts, each with its figures alone."""
    for pattern in (MARKED_VERSION, DOTTED_VERSION):
        for found in pattern.finditer(text):
            yield Named(found.start(), found.end(), found[0].strip()), found[1]


def release(figures: str) -> tuple[int, ...]:
    """A version as numbers, without zeros at its end: 2.0 is 2."""
    parts = [int(part[:18]) for part in figures.split(".") if part]
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def name_pattern(name: str) -> "re.Pattern[str]":
    """What a name looks like among the words of a text: GPT-4o, GPT 4o, gpt4o."""
    pieces = [re.escape(piece) for word in words(name) for piece in PIECE.findall(word)]
    if pieces and pieces[-1] == "s" and len(pieces) > 1:
        pieces.pop()
    return re.compile(r"(?<![a-z0-9])" + " ?".join(pieces) + r"(?![0-9])(?:s(?![a-z])|(?![a-z]))")


MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
            "september sept sep", "october oct", "november nov", "december dec",
        ),
        1,
    )
    for name in names.split()
}  # fmt: skip
_MONTH = r"(?P<month{0}>" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")\b\.?"
_DAY = r"(?P<day{0}>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?"
_YEAR = r"(?P<year{0}>1[5-9]\d\d|20\d\d|21\d\d)"
_END = r"(?![\d%]|[.,]\d)"


def _form(number: int, pattern: str) -> str:
    return pattern.replace("{0}", str(number))


_FORMS = (
    r"(?<!\d)" + _YEAR + r"[-/.](?P<number{0}>1[0-2]|0[1-9])[-/.](?P<day{0}>[12]\d|3[01]|0[1-9])" + _END,
    r"(?<![\w.-])" + _YEAR + r"-(?P<number{0}>1[0-2]|0[1-9])(?![\w/-]|\.\d)",
    r"(?<![\d-])"
    + _YEAR
    + r" ?年(?: ?(?P<number{0}>1[0-2]|0?[1-9]) ?月(?: ?(?P<day{0}>[12]\d|3[01]|0?[1-9]) ?[日号])?)?",
    r"(?<!\d)(?P<number{0}>1[0-2]|0?[1-9]) ?月(?! ?\d{3})(?: ?(?P<day{0}>[12]\d|3[01]|0?[1-9]) ?[日号])?",
    r"\b" + _DAY + r"(?: of)?[ -]" + _MONTH + r"(?:,? |-)" + _YEAR + r"\b",
    r"\b" + _MONTH + r" " + _DAY + r",? " + _YEAR + _END,
    r"\b" + _DAY + r"(?: of)? " + _MONTH + r"(?! ?\d{1,2}\b)",
    r"\b" + _MONTH + r",? (?:of )?" + _YEAR + _END,
    r"\b" + _MONTH + r" " + _DAY + r"\b" + _END,
    r"(?<![\w.,$€£¥/-])" + _YEAR + r"(?!\w|[-/.,:]\d|%| ?[$€£¥%])",
)


class Day(NamedTuple):
    """A date as far as a text tells it; 0 for what it leaves out."""

    year: int
    month: int
    day: int


class Dated(NamedTuple):
    """A date in a text."""

    start: int
    end: int
    day: Day


DATE = re.compile("|".join(f"(?P<form{n}>{_form(n, form)})" for n, form in enumerate(_FORMS)), re.IGNORECASE)
SLASHED = re.compile(r"(?<![\d/.])(\d{1,2})([/.])(\d{1,2})\2((?:19|20)\d\d)(?![\d/])")
TIME = re.compile(r"(?<![\d:.])(\d{1,2}):([0-5]\d)(?::[0-5]\d)?(?![\d:])(?: ?([ap])\.?m\b)?", re.IGNORECASE)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
RELATIVE = re.compile(
    rf"\b(yesterday|today|tomorrow|{'|'.join(WEEKDAYS)})\b|昨天|今天|明天|昨日|今日|明日", re.IGNORECASE
)
SHIFTS = {"yesterday": -1, "昨天": -1, "昨日": -1, "tomorrow": 1, "明天": 1, "明日": 1}


def dates(text: str) -> Iterator[Dated]:
    """All dates, in the order of the text; of a form like 10/08/2026 both readings."""
    for found in DATE.finditer(text):
        yield Dated(found.start(), found.end(), _day(found))
    for found in SLASHED.finditer(text):
        first, second, year = int(found[1]), int(found[3]), int(found[4])
        for day, month in {(first, second), (second, first)}:
            if 1 <= month <= 12 and 1 <= day <= 31:  # noqa: PLR2004 - the calendar's
                yield Dated(found.start(), found.end(), Day(year, month, day))


def _day(found: "re.Match[str]") -> Day:
    assert found.lastgroup is not None
    form = next(number for number in range(len(_FORMS)) if found[f"form{number}"] is not None)
    parts = {name: found.groupdict().get(f"{name}{form}") for name in ("year", "number", "month", "day")}
    month = int(parts["number"] or 0) or MONTHS.get((parts["month"] or "").lower(), 0)
    return Day(int(parts["year"] or 0), month, int(parts["day"] or 0))


def times(text: str) -> Iterator[tuple[int, int, str]]:
    """Times of day, or anything written like one: start, end, and `15:20`."""
    for found in TIME.finditer(text):
        hour, minute, half = int(found[1]), found[2], (found[3] or "").lower()
        hour = hour if not half else hour % 12 + (12 if half == "p" else 0)
        yield found.start(), found.end(), f"{hour:02d}:{minute}"


def fits(claimed: Day, known: Day) -> bool:
    """Whether a source's date has all that a claimed one says."""
    return all(not claimed_part or claimed_part == there for claimed_part, there in zip(claimed, known, strict=True))


def dates_of(published: str) -> Day | None:
    """The date at the beginning of an ISO date or date-time."""
    try:
        day = date.fromisoformat(published[:10])
    except ValueError:
        return None
    return Day(day.year, day.month, day.day)


def near(text: str, published: Day) -> set[Day]:
    """The dates that words like `yesterday` and `Friday` may mean in a text of that day."""
    written = date(*published)
    meant: set[date] = set()
    for found in RELATIVE.finditer(text):
        word = found[0].lower()
        if word in WEEKDAYS:
            ahead = (WEEKDAYS.index(word) - written.weekday()) % 7
            days = [ahead, ahead - 7]
        else:
            days = [SHIFTS.get(word, 0)]
        meant |= {date.fromordinal(written.toordinal() + shift) for shift in days if written.toordinal() + shift > 0}
    return {Day(day.year, day.month, day.day) for day in meant}


RATIO = re.compile(r"(?<![\d:.])\d{1,4}:\d{1,4}(?![\d:])")


@dataclass(frozen=True, slots=True)
class Figures:
    """What a text has, each with its place in it."""

    dates: tuple[Dated, ...]
    times: tuple[tuple[Named, str], ...]
    """Times of day, with `15:20`; scores like 16:9 are among them."""
    versions: tuple[tuple[Named, str], ...]
    names: tuple[Named, ...]
    quantities: tuple[Quantity, ...]


def figures(text: str, *, is_dotted: bool = False) -> Figures:
    """Find them all; what is part of one is not found again as another."""
    shown = list(_whole_names(text))
    text = _without(text, ((one.start, one.end) for one in shown))
    days = list(dates(text))
    text = _without(text, ((one.start, one.end) for one in days))
    hours = [(Named(start, end, text[start:end]), clock) for start, end, clock in times(text)]
    hours += [
        (Named(*found.span(), found[0]), found[0])
        for found in RATIO.finditer(text)
        if not any(start.start <= found.start() < start.end for start, _ in hours)
    ]
    text = _without(text, ((one.start, one.end) for one, _ in hours))
    releases = _apart(list(versions(text)))
    text = _without(text, ((one.start, one.end) for one, _ in releases))
    return Figures(
        tuple(days), tuple(hours), tuple(releases), tuple(shown), tuple(quantities(text, is_dotted=is_dotted))
    )


def _whole_names(text: str) -> Iterable[Named]:
    """Names, but for dates and times that are written like one: 10Aug2026, 2026-08-10T09:12."""
    return (one for one in names(text) if not re.match(r"\d{4}-\d\d", one.text))


def _apart(found: list[tuple[Named, str]]) -> list[tuple[Named, str]]:
    """The same version is found once, in its longest form."""
    kept: list[tuple[Named, str]] = []
    for one in sorted(found, key=lambda pair: (pair[0].start, -pair[0].end)):
        if not kept or one[0].start >= kept[-1][0].end:
            kept.append(one)
    return kept


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with fillers in place of some parts, so that every place keeps its number."""
    pieces: list[str] = []
    position = 0
    for start, end in sorted(spans):
        if start >= position:
            pieces += [text[position:start], FILLER * (end - start)]
            position = end
    return "".join([*pieces, text[position:]])
