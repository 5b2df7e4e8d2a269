"""The sources of two runs: which are new, gone, or have another text."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from explorer.reports.compare.comparison import SourceDifference
from explorer.reports.compare.snapshots import RunSnapshot
from explorer.schema.events import Source
from explorer.text.differences import compare
from explorer.text.urls import url_key

MAX_COMPARED_CHARS = 60_000
SINCE_REPORT = "inputs/since-report.md"
"""Of the earlier run, put in by the engine itself; no source that one of two runs found."""
SEARCH_HIT = "search_hit"
READ_KINDS = ("page", "file", "comments", "story")
"""Kinds with a text of their own, the most telling first."""


@dataclass(frozen=True)
class ComparedSources:
    """The sources of both runs, by address and kind."""

    first: RunSnapshot
    second: RunSnapshot
    first_cited: set[str]
    second_cited: set[str]

    def common(self) -> list[str]:
        """Addresses that both have."""
        return [address for address in _grouped(self.first) if address in _grouped(self.second)]

    def new(self) -> tuple[SourceDifference, ...]:
        """What only the second run has."""
        known = _grouped(self.first)
        found = [_telling(kinds) for address, kinds in _grouped(self.second).items() if address not in known]
        return _ordered(self._described(None, source) for source in found)

    def gone(self) -> tuple[SourceDifference, ...]:
        """What only the first run has."""
        known = _grouped(self.second)
        found = [_telling(kinds) for address, kinds in _grouped(self.first).items() if address not in known]
        return _ordered(self._described(source, None) for source in found)

    def same(self, changed: Iterable[SourceDifference]) -> int:
        """How many addresses both have, but for the changed ones."""
        return len({*self.common()} - {url_key(found.url) for found in changed})

    def changed(self) -> tuple[SourceDifference, ...]:
        """What both read, and read differently; passages of search results differ by the words searched for."""
        found: list[SourceDifference] = []
        latest = _grouped(self.second)
        for address, kinds in _grouped(self.first).items():
            for kind, before in kinds.items():
                after = latest.get(address, {}).get(kind)
                if after is not None and kind != SEARCH_HIT and after.sha256 != before.sha256:
                    found.append(self._described(before, after, self._changes(before, after)))
        return _ordered(found)

    def _changes(self, before: Source, after: Source) -> tuple[str, ...]:
        texts = self.first.read(before)[:MAX_COMPARED_CHARS], self.second.read(after)[:MAX_COMPARED_CHARS]
        return tuple(change.labelled for change in compare(*texts).changes)

    def _described(
        self, before: Source | None, after: Source | None, changes: tuple[str, ...] = ()
    ) -> SourceDifference:
        source = after or before
        assert source is not None
        return SourceDifference(
            url=source.url,
            title=source.title,
            kind=source.kind,
            before=before.id if before is not None else "",
            after=after.id if after is not None else "",
            is_cited=(before is not None and before.id in self.first_cited)
            or (after is not None and after.id in self.second_cited),
            changes=changes,
        )


def _grouped(snapshot: RunSnapshot) -> dict[str, dict[str, Source]]:
    """The latest source of each kind, by address."""
    grouped: dict[str, dict[str, Source]] = {}
    for source in snapshot.sources.values():
        if source.url != f"file:{SINCE_REPORT}":
            grouped.setdefault(url_key(source.url), {})[source.kind] = source
    return grouped


def _telling(kinds: Mapping[str, Source]) -> Source:
    """The source of an address that tells most."""
    return next((kinds[kind] for kind in READ_KINDS if kind in kinds), next(iter(kinds.values())))


def _ordered(found: Iterable[SourceDifference]) -> tuple[SourceDifference, ...]:
    """What a report cites first, what was only listed last."""
    return tuple(sorted(found, key=lambda one: (not one.is_cited, one.kind == SEARCH_HIT)))
