"""One stored source, ready for look-ups: its words, dates and figures, read once, and whether it has a number.

A number is there in whatever form it is written, with a unit that fits, or rounded where the sentence says so.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from explorer.reports.verify.figures import MONTHS, Day, Figures, Quantity, dates_of, figures, near, quantities, release
from explorer.reports.verify.numerals import MEASURES, POINTS_OF_PERCENT
from explorer.reports.verify.plain import BOUNDARY, plain, spaced, words
from explorer.schema.events import Source
from explorer.text.words import is_mostly_cjk

DOTTED_LANGUAGES = frozenset(
    ["de", "fr", "es", "it", "pt", "nl", "pl", "tr", "id", "da", "sv", "nb", "no", "fi", "el", "ro", "cs"]
)
"""Languages in which 1.234 is more than a thousand."""
SPACED_GROUPS = re.compile(r"\d{1,3}(?: \d{3})+")
"""38 400, or two numbers side by side: both are taken for possible."""
BROKEN_WORD = re.compile(r"(?<=[a-zA-Z])-\n[ \t]*(?=[a-z])")
KEPT = 64
"""Sources that stay ready after a check; a handful is cited by most reports."""


@dataclass(frozen=True)
class IndexedSource:
    """A source's text, and what its entry in the ledger says of it."""

    source: Source
    text: str
    """Text as it is stored."""

    @cached_property
    def plain(self) -> str:
        """Title, author and text without marks of form; words that a line break cut are whole again."""
        facts = [self.source.title, self.source.author, plain_address(self.source.url)]
        return plain(BOUNDARY.join([*facts, BROKEN_WORD.sub("-", self.text)]))

    @cached_property
    def spaced(self) -> str:
        """Words of the text, for quotes and names."""
        return spaced(self.plain)

    @cached_property
    def squeezed(self) -> str:
        """Words without spaces, for those that are broken otherwise; figures stay separate."""
        return re.sub(r"(?<!\d) | (?!\d)", "", self.spaced)

    @cached_property
    def _figures(self) -> Figures:
        addresses = " ".join(re.findall(r"https?://[^\s<>()\"']+", self.text))
        is_dotted = self.source.language[:2].lower() in DOTTED_LANGUAGES
        return figures(f"{self.plain}\n{plain_address(addresses)}", is_dotted=is_dotted)

    @cached_property
    def by_value(self) -> dict[Fraction, list[Quantity]]:
        """Numbers of the text by value."""
        table: dict[Fraction, list[Quantity]] = defaultdict(list)
        for one in self._figures.quantities:
            parts = [Fraction(part) for part in one.text.split(" ")] if SPACED_GROUPS.fullmatch(one.text) else []
            for value in dict.fromkeys([*one.values, *parts]):
                table[value].append(one)
        return dict(table)

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """Numbers in the order of the text."""
        return self._figures.quantities

    @cached_property
    def in_order(self) -> list[tuple[Fraction, Quantity]]:
        """Numbers by size, for those that a sentence rounds."""
        return sorted(((value, one) for value, ones in self.by_value.items() for one in ones), key=lambda pair: pair[0])

    @cached_property
    def by_measure(self) -> dict[tuple[str, Fraction], list[Quantity]]:
        """Numbers with a unit, by what they measure: 90 minutes are 1.5 hours."""
        table: dict[tuple[str, Fraction], list[Quantity]] = defaultdict(list)
        for one in self.quantities:
            if one.unit in MEASURES:
                measure = MEASURES[one.unit]
                for value in one.values:
                    table[measure.of, value * measure.size].append(one)
        return dict(table)

    @cached_property
    def days(self) -> frozenset[Day]:
        """Dates of the text, as far as each is given."""
        named = {
            Day(0, MONTHS[word.lower()], 0)
            for word in re.findall(r"\b[A-Z][a-z]+", self.plain)
            if word.lower() in MONTHS
        }
        return frozenset(one.day for one in self._figures.dates) | named

    @cached_property
    def near_days(self) -> frozenset[Day]:
        """Dates that its words for days mean: yesterday, Friday."""
        published = self.published
        return frozenset(near(self.plain, published)) if published else frozenset()

    @cached_property
    def published(self) -> Day | None:
        """When the source was published, as the ledger has it."""
        return dates_of(self.source.published)

    @cached_property
    def clocks(self) -> frozenset[str]:
        """Times of day, and scores."""
        stamp = re.match(r"\d{4}-\d\d-\d\dT(\d\d:\d\d)", self.source.published)
        return frozenset(
            [*(clock for _, clock in self._figures.times), *([stamp[1]] if stamp else []), *self._stamps()]
        )

    def _stamps(self) -> Iterator[str]:
        for found in re.finditer(r"\d{4}-\d\d-\d\dT(\d\d:\d\d)", self.text):
            yield found[1]

    @cached_property
    def releases(self) -> frozenset[tuple[int, ...]]:
        """Versions, and numbers with one dot, which may be versions."""
        dotted = [one.text for one in self._figures.quantities if re.fullmatch(r"\d+\.\d+", one.text)]
        return frozenset(release(one) for one in [*(shown for _, shown in self._figures.versions), *dotted])

    @cached_property
    def is_chinese(self) -> bool:
        """Whether it has Chinese, Japanese or Korean text to speak of."""
        return is_mostly_cjk(self.spaced)


def index_source(source: Source, text: str) -> IndexedSource:
    """Return a source ready for look-ups; the same one for the same text, since a draft is checked several times."""
    return _first_of_its_kind(IndexedSource(source, text))


@lru_cache(maxsize=KEPT)
def _first_of_its_kind(indexed: IndexedSource) -> IndexedSource:
    return indexed


def plain_address(addresses: str) -> str:
    """Addresses with their parts as words, so that a story's number or a date in one is found."""
    return re.sub(r"[/?=&#_]+", " ", re.sub(r"/(\d{4})/(\d\d)/(\d\d)(?=/)", r" \1-\2-\3 ", addresses))


_ABOUT = "about|around|roughly|approximately|approx\\.?|circa|ca\\.|some|an estimated|estimated|or so|close to"
_UNDER = "nearly|almost|close to|just under|just below|under|below|less than|fewer than|up to|approaching"
_OVER = "more than|over|above|exceed(?:s|ed|ing)?|upwards of|at least|just over|north of|well over|beyond"
_ARTICLE = "(?: an?| the)? ?$"
ABOUT = re.compile(rf"(?:\b(?:{_ABOUT})|~|≈|大约|大概|约为|约|近乎|左右){_ARTICLE}", re.IGNORECASE)
UNDER = re.compile(rf"(?:\b(?:{_UNDER})|<|将近|接近|近|不到|不足|低于|少于){_ARTICLE}", re.IGNORECASE)
OVER = re.compile(rf"(?:\b(?:{_OVER})|>|超过|逾|超|高于|多于|不少于|至少){_ARTICLE}", re.IGNORECASE)
ABOUT_BEHIND = re.compile(r" ?(?:左右|上下|or so\b|-?ish\b)")
OVER_BEHIND = re.compile(r"\+|余|多(?=[名个家人台万亿次条年天])| or more\b| plus\b")
ABOUT_SHARE = Fraction(5, 100)
OVER_SHARE = Fraction(10, 100)
BEFORE_CHARS = 26
MAX_PLACES = 6


def bounds(claimed: Quantity, text: str) -> tuple[Fraction, Fraction] | None:
    """Between which numbers a source's number may lie, when the sentence says that it rounds."""
    before = text[max(0, claimed.start - BEFORE_CHARS) : claimed.start]
    value = max(claimed.values)
    if UNDER.search(before):
        return value * (1 - ABOUT_SHARE), value
    if OVER.search(before) or OVER_BEHIND.match(text, claimed.end) or "多" in claimed.text or "余" in claimed.text:
        return value, value * (1 + OVER_SHARE)
    if ABOUT.search(before) or ABOUT_BEHIND.match(text, claimed.end):
        return value * (1 - ABOUT_SHARE), value * (1 + ABOUT_SHARE)
    return None


def rounded(claimed: Quantity, text: str, indexed: IndexedSource) -> Iterator[Quantity]:
    """Yield the source's numbers that may be meant by a rounded one: it is rounder than they are, and close."""
    between = bounds(claimed, text)
    if between is None:
        return
    low, high = between
    value = max(claimed.values)
    digits, place = _roundness(value)
    for known, one in indexed.in_order[bisect_left(indexed.in_order, low, key=lambda pair: pair[0]) :]:
        if known > high:
            return
        if abs(known - value) <= place and _roundness(known)[0] > digits:
            yield one


def _roundness(value: Fraction) -> tuple[int, Fraction]:
    """Return how many figures a number has but for zeros at its ends, and the value of the last one."""
    places = 0
    while value.denominator != 1 and places < MAX_PLACES:
        value, places = value * 10, places + 1
    figures = str(int(value))
    bare = figures.rstrip("0")
    return max(len(bare), 1), Fraction(10) ** (len(figures) - len(bare) - places)


FEW = 100
"""Up to here a number is so often in a text by chance that what it counts is looked at."""
NEAR_CHARS = 70
BEHIND = re.compile(r"[ -]([A-Za-z][A-Za-z'-]{2,30})(?: ([A-Za-z][A-Za-z'-]{2,30}))?")
_NO_NOUNS = (
    "is was has this its his us as vs plus minus times across always perhaps towards besides unless yes thus does gas "
    "bus versus less gets says adds runs shows means makes takes sees uses needs gives comes goes lets keeps and or of "
    "in on at to for from by with than the that were are had have but per out over under which who when while after "
    "before during within without about around percent not more most other total"
)
NO_NOUNS = frozenset(_NO_NOUNS.split())
PEOPLE = frozenset(["people", "men", "women", "children", "staff", "feet", "mice", "data"])
NAME_BEFORE = re.compile(r"([A-Z][A-Za-z+#]+) $")
_NO_NAMES = (
    "in on at by of to from the a an and or about around over nearly almost only since until during before after no "
    "number version january february march april may june july august september october november december jan feb mar "
    "apr jun jul aug sep sept oct nov dec some up its it they all for with than these those this that just another "
    "both under between top rank day week year page step part phase figure table section chapter"
)
NO_NAMES = frozenset(_NO_NAMES.split())
MAX_SHOWN = 3


def has_amount(claimed: Quantity, text: str, indexed: IndexedSource) -> str:
    """Return how a source has a number that a sentence (`text`) names; empty when it does not."""
    name = _name_before(claimed, text)
    if name:
        beside = _beside(name, claimed, indexed)
        if beside is not None:
            return beside
    exact = [one for one in same_amounts(claimed, indexed) if _fits(claimed, text, one, indexed)]
    if exact:
        return "found" if _counts_the_same(claimed, text, exact, indexed) else ""
    if _is_year(claimed, indexed):
        return "found"
    return (
        "rounded, found" if any(_fits(claimed, text, one, indexed) for one in rounded(claimed, text, indexed)) else ""
    )


def same_amounts(claimed: Quantity, indexed: IndexedSource) -> Iterator[Quantity]:
    """Yield the source's numbers with the same value, whatever their unit; and those that are equal in another unit."""
    for value in claimed.values:
        yield from indexed.by_value.get(value, ())
    measure = MEASURES.get(claimed.unit)
    if measure is not None:
        for value in claimed.values:
            yield from (
                one for one in indexed.by_measure.get((measure.of, value * measure.size), ()) if value not in one.values
            )


def _fits(claimed: Quantity, text: str, there: Quantity, indexed: IndexedSource) -> bool:
    """Return whether the units of two numbers can be the same."""
    if claimed.per and there.per and claimed.per != there.per:
        return False
    if not claimed.unit and not there.unit:
        return True
    if not there.unit:
        return not counted(indexed.plain, there) and _may_have(claimed, there, indexed)
    if not claimed.unit:
        return not counted(text, claimed)
    return _same_unit(claimed, there)


def _may_have(claimed: Quantity, there: Quantity, indexed: IndexedSource) -> bool:
    """Return whether a bare number of the source can be meant with a unit: of a small one the unit must be near."""
    if max(claimed.values) > FEW:
        return True
    if _name_before(there, indexed.plain):
        return False
    around = indexed.plain[max(0, there.start - NEAR_CHARS) : there.end + NEAR_CHARS]
    return "|" in around or any(_like(one, claimed) for one in quantities(around))


def _same_unit(claimed: Quantity, there: Quantity) -> bool:
    one, other = MEASURES.get(claimed.unit), MEASURES.get(there.unit)
    if one is not None and one.of == "points" and there.unit == POINTS_OF_PERCENT:
        return True
    if one is None or other is None:
        return one is other and bool(set(claimed.unit.split("|")) & set(there.unit.split("|")))
    known = {value * other.size for value in there.values}
    return one.of == other.of and (one.size == other.size or any(value * one.size in known for value in claimed.values))


def counted(text: str, one: Quantity) -> str:
    """Return the stem of the noun that a number counts: `server` in `46 idle servers`; empty when none is plain."""
    found = BEHIND.match(text, one.end)
    for word in (found[1], found[2]) if found else ():
        small = (word or "").lower().removesuffix("'")
        if not small or small in NO_NOUNS:
            return ""
        if small in PEOPLE or (small.endswith("s") and not small.endswith(("ss", "us", "is", "ous"))):
            return _stem(small)
    return ""


def _stem(noun: str) -> str:
    if noun.endswith("ies"):
        return noun[:-3]
    return noun.removesuffix("es") if noun.endswith(("ches", "shes", "xes", "sses")) else noun.removesuffix("s")


def _counts_the_same(claimed: Quantity, text: str, there: list[Quantity], indexed: IndexedSource) -> bool:
    """Return whether a small number counts in the source what it counts in the sentence.

    Only where the source counts the same things and says another number is it taken as a contradiction.
    """
    noun = counted(text, claimed)
    if not noun or max(claimed.values) > FEW or claimed.unit:
        return True
    if any(_is_near(noun, one, indexed) for one in there):
        return True
    return not any(counted(indexed.plain, one) == noun for one in indexed.quantities)


def _is_near(noun: str, there: Quantity, indexed: IndexedSource) -> bool:
    """Return whether a number of the source counts these things, or counts nothing else and they are near."""
    own = counted(indexed.plain, there)
    around = indexed.plain[max(0, there.start - NEAR_CHARS) : there.end + NEAR_CHARS].lower()
    return noun == own or (not own and noun in around)


def counts_there(claimed: Quantity, text: str, indexed: IndexedSource) -> str:
    """`found` when the source itself counts what the sentence counts, with this number; empty otherwise."""
    noun = counted(text, claimed)
    is_there = bool(noun) and any(noun == counted(indexed.plain, one) for one in same_amounts(claimed, indexed))
    return "found" if is_there else ""


def _name_before(claimed: Quantity, text: str) -> str:
    """Return the name that a bare number belongs to: `Windows` in `Windows 11`."""
    is_whole = not text[claimed.end : claimed.end + 1].isalnum()
    if claimed.unit or claimed.scale != 1 or claimed.is_word or not is_whole:
        return ""
    found = NAME_BEFORE.search(text[max(0, claimed.start - 30) : claimed.start])
    return found[1].lower() if found and found[1].lower() not in NO_NAMES else ""


def _beside(name: str, claimed: Quantity, indexed: IndexedSource) -> str | None:
    """`found` when the source has the name with this number, empty when only with others; None when with none."""
    number = " ".join(words(claimed.text))
    if f" {name} {number} " in indexed.spaced:
        return "found"
    others = re.findall(rf" {re.escape(name)} (\d[\d.]*) ", indexed.spaced)
    return "" if others and not any(other.startswith(f"{number}.") for other in others) else None


def _is_year(claimed: Quantity, indexed: IndexedSource) -> bool:
    """Return whether a bare number is in the source, but was read there as a year: 2,000 and 2000."""
    if claimed.unit or len(claimed.values) != 1:
        return False
    return any(day.year == claimed.values[0] and not day.month for day in indexed.days)


def instead(claimed: Quantity, sources: Iterator[IndexedSource]) -> str:
    """Return what the sources have in its place, in words for the writer; empty when nothing is like it."""
    for indexed in sources:
        others = list(dict.fromkeys(_shown(one, indexed) for one in same_amounts(claimed, indexed)))
        if not others and claimed.unit:
            others = list(dict.fromkeys(_shown(one, indexed) for one in indexed.quantities if _like(one, claimed)))
        if others and len(others) <= 2 * MAX_SHOWN:
            return f"{indexed.source.id} has {', '.join(others[:MAX_SHOWN])}"
    return ""


def _like(one: Quantity, claimed: Quantity) -> bool:
    """Return whether two numbers measure the same, and could be taken for each other."""
    mine, other = MEASURES.get(claimed.unit), MEASURES.get(one.unit)
    return mine.of == other.of if mine and other else claimed.unit == one.unit


def _shown(one: Quantity, indexed: IndexedSource) -> str:
    """Return a number of the source with a word or two of what follows."""
    behind = "" if one.unit else "".join(re.findall(r"^[ -][A-Za-z]+", indexed.plain[one.end : one.end + 30]))
    return f"“{' '.join((one.text + behind).split())}”"
