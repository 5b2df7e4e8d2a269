"""What earlier runs left behind, to be searched: their reports, their findings, and the titles of their sources."""

from explorer.reports.earlier.folders import SOURCES, PastRun, PastText, past_runs, texts_of
from explorer.reports.earlier.ranking import EarlierHit, SearchLimits, SearchResult, search

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
