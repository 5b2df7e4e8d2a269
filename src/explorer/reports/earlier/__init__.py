"""What earlier runs left behind, to be searched: their reports, their findings, and the titles of their sources."""

from explorer.reports.earlier.ranking import (
    SOURCES,
    EarlierHit,
    PastRun,
    PastText,
    SearchLimits,
    SearchResult,
    past_runs,
    search,
    texts_of,
)

__all__ = [
    "SOURCES",
    "EarlierHit",
    "PastRun",
    "PastText",
    "SearchLimits",
    "SearchResult",
    "past_runs",
    "search",
    "texts_of",
]
