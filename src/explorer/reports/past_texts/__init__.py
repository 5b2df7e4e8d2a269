"""What earlier runs left behind, to be searched: their reports, their findings, and the titles of their sources."""

from explorer.reports.past_texts.folders import SOURCES, PastRun, PastText, past_runs, texts_of
from explorer.reports.past_texts.ranking import Hit, Reach, Sought, search

__all__ = ["SOURCES", "Hit", "PastRun", "PastText", "Reach", "Sought", "past_runs", "search", "texts_of"]
