"""What a look-up is given and what it answers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from explorer.reports.verify.claims import Finding, Kind, Verdict
from explorer.reports.verify.indexed_source import IndexedSource


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
    """Those it cites."""
    same_url_sources: tuple[IndexedSource, ...] = ()
    """Others of the same addresses: the page at another time, the story of a thread."""

    def first(self, has: Callable[[IndexedSource], str]) -> tuple[str, str]:
        """The first source that has it, and how; two empty words when none has."""
        for indexed in self.indexed_sources:
            if how := has(indexed):
                return indexed.source.id, how
        for indexed in self.same_url_sources:
            if how := has(indexed):
                return indexed.source.id, f"{how}, stored from the same address"
        return "", ""

    def __iter__(self) -> Iterator[IndexedSource]:
        """The cited ones."""
        return iter(self.indexed_sources)

    @property
    def ids(self) -> str:
        """The cited ones, for people."""
        return ", ".join(indexed.source.id for indexed in self.indexed_sources)


def found(kind: Kind, text: str, source: str, how: str) -> LookupOutcome:
    """It is there."""
    return LookupOutcome(
        Finding(kind=kind, text=text, verdict=Verdict.SUPPORTED, source=source, reason=f"{how} in {source}")
    )


def not_found(kind: Kind, text: str, cited: Cited, more: str = "", *, is_contradicted: bool = False) -> LookupOutcome:
    """It is in none of the cited sources."""
    reason = f"not in {cited.ids}" + (f"; {more}" if more else "")
    return LookupOutcome(
        Finding(kind=kind, text=text, verdict=Verdict.NOT_FOUND, reason=reason), is_contradicted=is_contradicted
    )


def unchecked(kind: Kind, text: str, why: str, *, is_own: bool) -> LookupOutcome:
    """It cannot be looked up."""
    return LookupOutcome(Finding(kind=kind, text=text, verdict=Verdict.UNCHECKED, reason=why), is_own)
