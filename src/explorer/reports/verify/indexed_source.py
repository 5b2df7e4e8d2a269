"""One stored source, ready for look-ups: its words, dates and figures, read once."""

import re
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from explorer.reports.verify.figures import Figures, Named, Quantity, figures, release
from explorer.reports.verify.numerals import MEASURES
from explorer.reports.verify.passages import Passages
from explorer.reports.verify.plain import BOUNDARY, plain, spaced
from explorer.schema.events import Source
from explorer.text.calendar_dates import MONTHS, Dated, Day, dates_of, near, utc_minutes
from explorer.text.words import is_mostly_cjk, language_of
from explorer.workspace.threads import RaiseIfStopped, never_stopped

DOTTED_LANGUAGES = frozenset(
    ["de", "fr", "es", "it", "pt", "nl", "pl", "tr", "id", "da", "sv", "nb", "no", "fi", "el", "ro", "cs"]
)
"""Languages in which 1.234 is more than a thousand."""
SPACED_GROUPS = re.compile(r"\d{1,3}(?: \d{3})+")
"""38 400, or two numbers side by side: both are taken for possible."""
BROKEN_WORD = re.compile(r"(?<=[a-zA-Z])-\n[ \t]*(?=[a-z])")
ZONE_CHARS = 12
STAMP = re.compile(r"\d{4}-\d\d-\d\dT(\d\d:\d\d)")


@dataclass(frozen=True)
class IndexedSource:
    """A source's text, and what its entry in the ledger says of it."""

    source: Source
    text: str
    """Text as it is stored."""
    raise_if_stopped: RaiseIfStopped = field(default=never_stopped, compare=False, repr=False)
    """Called often while it is read."""

    @cached_property
    def plain(self) -> str:
        """Title, author and text without marks of form; words that a line break cut are whole again."""
        facts = [self.source.title, self.source.author, plain_address(self.source.url)]
        return plain(BOUNDARY.join([*facts, BROKEN_WORD.sub("-", self.text)]), self.raise_if_stopped)

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
        text = f"{self.plain}\n{plain_address(addresses)}"
        return figures(text, is_dotted=is_dotted, raise_if_stopped=self.raise_if_stopped)

    @cached_property
    def by_value(self) -> dict[Fraction, list[Quantity]]:
        """Numbers of the text by value."""
        table: dict[Fraction, list[Quantity]] = defaultdict(list)
        for one in self.quantities:
            parts = [Fraction(part) for part in one.text.split(" ")] if SPACED_GROUPS.fullmatch(one.text) else []
            for value in dict.fromkeys([*one.values, *parts]):
                table[value].append(one)
        return dict(table)

    @cached_property
    def language(self) -> str:
        """Two letters; empty when neither the ledger nor the text says it."""
        return self.source.language[:2].lower() or language_of(self.text)

    @cached_property
    def passages(self) -> Passages:
        """Its sentences, with what is said of what in them."""
        return Passages(self.plain, self._figures, has_names=self.language != "de")

    @property
    def dated(self) -> tuple[Dated, ...]:
        """Dates in the order of the text."""
        return self._figures.dates

    @property
    def times(self) -> tuple[tuple[Named, str], ...]:
        """Times of day in the order of the text."""
        return self._figures.times

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """Numbers in the order of the text."""
        return self._figures.quantities

    @cached_property
    def shares(self) -> tuple[Quantity, ...]:
        """Parts of a whole in words, in the order of the text."""
        return tuple(one for one in self.quantities if one.is_share)

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
    def _quantity_starts(self) -> list[int]:
        return [one.start for one in self.quantities]

    def quantities_in(self, start: int, end: int) -> tuple[Quantity, ...]:
        """Return the numbers that begin between two places of the text."""
        first, last = (bisect_left(self._quantity_starts, place) for place in (start, end))
        return self.quantities[first:last]

    @cached_property
    def by_unit(self) -> dict[tuple[str, bool], list[Quantity]]:
        """Numbers by their unit, and by whether they are a share."""
        table: dict[tuple[str, bool], list[Quantity]] = defaultdict(list)
        for one in self.quantities:
            table[one.unit, one.is_share].append(one)
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

    def is_month_before(self, day: Day) -> bool:
        """Return whether a month that is named without a year is this one, counted back from the day of publication."""
        known = self.published
        if known is None or day.day or not (day.year and day.month) or Day(0, day.month, 0) not in self.days:
            return False
        return day.year == (known.year if day.month <= known.month else known.year - 1)

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
        published = STAMP.match(self.source.published)
        written = [clock for _, clock in self._figures.times] + STAMP.findall(self.text)
        return frozenset([*written, published[1]] if published else written)

    @cached_property
    def utc_clocks(self) -> frozenset[int]:
        """Minutes of the day, in UTC, of times of day that are given with their zone."""
        return frozenset(
            minutes
            for named, clock in self._figures.times
            if (minutes := utc_minutes(clock, self.plain[named.end : named.end + ZONE_CHARS])) is not None
        )

    @cached_property
    def releases(self) -> frozenset[tuple[int, ...]]:
        """Versions, and numbers with one dot, which may be versions."""
        dotted = [one.text for one in self._figures.quantities if re.fullmatch(r"\d+\.\d+", one.text)]
        return frozenset(release(one) for one in [*(shown for _, shown in self._figures.versions), *dotted])

    @cached_property
    def is_chinese(self) -> bool:
        """Whether it has Chinese, Japanese or Korean text to speak of."""
        return is_mostly_cjk(self.spaced)


def plain_address(addresses: str) -> str:
    """Return addresses with their parts as words, so that a story's number or a date in one is found."""
    return re.sub(r"[/?=&#_]+", " ", re.sub(r"/(\d{4})/(\d\d)/(\d\d)(?=/)", r" \1-\2-\3 ", addresses))
