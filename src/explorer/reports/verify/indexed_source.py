"""One stored source, ready for look-ups: its words, dates and figures, read once."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from explorer.reports.verify.figures import MONTHS, Day, Figures, dates_of, figures, near, release
from explorer.reports.verify.plain import BOUNDARY, plain, spaced
from explorer.reports.verify.quantities import Quantity
from explorer.reports.verify.units import MEASURES
from explorer.schema.events import Source
from explorer.text.words import is_mostly_cjk

DOTTED_LANGUAGES = frozenset(
    ["de", "fr", "es", "it", "pt", "nl", "pl", "tr", "id", "da", "sv", "nb", "no", "fi", "el", "ro", "cs"]
)
"""Where 1.234 is a thousand and more."""
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
    """As it is stored."""

    @cached_property
    def plain(self) -> str:
        """Title, author and text without marks of form; words that a line break cut are whole again."""
        facts = [self.source.title, self.source.author, plain_address(self.source.url)]
        return plain(BOUNDARY.join([*facts, BROKEN_WORD.sub("-", self.text)]))

    @cached_property
    def spaced(self) -> str:
        """Its words, for quotes and names."""
        return spaced(self.plain)

    @cached_property
    def squeezed(self) -> str:
        """The same without spaces, for words that are broken otherwise; figures stay apart."""
        return re.sub(r"(?<!\d) | (?!\d)", "", self.spaced)

    @cached_property
    def _figures(self) -> Figures:
        addresses = " ".join(re.findall(r"https?://[^\s<>()\"']+", self.text))
        is_dotted = self.source.language[:2].lower() in DOTTED_LANGUAGES
        return figures(f"{self.plain}\n{plain_address(addresses)}", is_dotted=is_dotted)

    @cached_property
    def by_value(self) -> dict[Fraction, list[Quantity]]:
        """Its numbers."""
        table: dict[Fraction, list[Quantity]] = defaultdict(list)
        for one in self._figures.quantities:
            parts = [Fraction(part) for part in one.text.split(" ")] if SPACED_GROUPS.fullmatch(one.text) else []
            for value in dict.fromkeys([*one.values, *parts]):
                table[value].append(one)
        return dict(table)

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """Its numbers, in its order."""
        return self._figures.quantities

    @cached_property
    def in_order(self) -> list[tuple[Fraction, Quantity]]:
        """Its numbers by size, for those that a sentence rounds."""
        return sorted(((value, one) for value, ones in self.by_value.items() for one in ones), key=lambda pair: pair[0])

    @cached_property
    def by_measure(self) -> dict[tuple[str, Fraction], list[Quantity]]:
        """Its numbers with a unit, by what they measure: 90 minutes are 1.5 hours."""
        table: dict[tuple[str, Fraction], list[Quantity]] = defaultdict(list)
        for one in self.quantities:
            if one.unit in MEASURES:
                measure = MEASURES[one.unit]
                for value in one.values:
                    table[measure.of, value * measure.size].append(one)
        return dict(table)

    @cached_property
    def days(self) -> frozenset[Day]:
        """Its dates, as far as each is told."""
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
        """Its times of day, and scores."""
        stamp = re.match(r"\d{4}-\d\d-\d\dT(\d\d:\d\d)", self.source.published)
        return frozenset(
            [*(clock for _, clock in self._figures.times), *([stamp[1]] if stamp else []), *self._stamps()]
        )

    def _stamps(self) -> Iterator[str]:
        for found in re.finditer(r"\d{4}-\d\d-\d\dT(\d\d:\d\d)", self.text):
            yield found[1]

    @cached_property
    def releases(self) -> frozenset[tuple[int, ...]]:
        """Its versions, and its numbers with one dot, which may be versions."""
        dotted = [one.text for one in self._figures.quantities if re.fullmatch(r"\d+\.\d+", one.text)]
        return frozenset(release(one) for one in [*(shown for _, shown in self._figures.versions), *dotted])

    @cached_property
    def is_chinese(self) -> bool:
        """Whether it has Chinese, Japanese or Korean text to speak of."""
        return is_mostly_cjk(self.spaced)


def index_source(source: Source, text: str) -> IndexedSource:
    """A source ready for look-ups; the same one for the same text, since a draft is checked several times."""
    return _first_of_its_kind(IndexedSource(source, text))


@lru_cache(maxsize=KEPT)
def _first_of_its_kind(indexed: IndexedSource) -> IndexedSource:
    return indexed


def plain_address(addresses: str) -> str:
    """Addresses with their parts as words, so that a story's number or a date in one is found."""
    return re.sub(r"[/?=&#_]+", " ", re.sub(r"/(\d{4})/(\d\d)/(\d\d)(?=/)", r" \1-\2-\3 ", addresses))
