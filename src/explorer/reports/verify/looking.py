"""What a look-up is given and what it answers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from explorer.reports.verify.claims import Finding, Kind, Verdict
from explorer.reports.verify.haystack import Haystack


@dataclass(frozen=True)
class Look:
    """An answer, and whether it speaks against calling the whole sentence supported."""

    finding: Finding
    is_own: bool = False
    """Unchecked, because it is plainly the writer's own: a count of points, the part behind a cited clause."""
    is_contradicted: bool = False
    """Not found, and the source says that it cannot be."""


@dataclass(frozen=True)
class Cited:
    """The sources of a sentence."""

    hays: tuple[Haystack, ...]
    """Those it cites."""
    kin: tuple[Haystack, ...] = ()
    """Others of the same addresses: the page at another time, the story of a thread."""

    def first(self, has: Callable[[Haystack], str]) -> tuple[str, str]:
        """The first source that has it, and how; two empty words when none has."""
        for hay in self.hays:
            if how := has(hay):
                return hay.source.id, how
        for hay in self.kin:
            if how := has(hay):
                return hay.source.id, f"{how}, stored from the same address"
        return "", ""

    def __iter__(self) -> Iterator[Haystack]:
        """The cited ones."""
        return iter(self.hays)

    @property
    def ids(self) -> str:
        """The cited ones, for people."""
        return ", ".join(hay.source.id for hay in self.hays)


def found(kind: Kind, text: str, source: str, how: str) -> Look:
    """It is there."""
    return Look(Finding(kind=kind, text=text, verdict=Verdict.SUPPORTED, source=source, reason=f"{how} in {source}"))


def not_found(kind: Kind, text: str, cited: Cited, more: str = "", *, is_contradicted: bool = False) -> Look:
    """It is in none of the cited sources."""
    reason = f"not in {cited.ids}" + (f"; {more}" if more else "")
    return Look(
        Finding(kind=kind, text=text, verdict=Verdict.NOT_FOUND, reason=reason), is_contradicted=is_contradicted
    )


def unchecked(kind: Kind, text: str, why: str, *, is_own: bool) -> Look:
    """It cannot be looked up."""
    return Look(Finding(kind=kind, text=text, verdict=Verdict.UNCHECKED, reason=why), is_own)
