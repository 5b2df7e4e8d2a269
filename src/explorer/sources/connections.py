"""The connections of a run to its sources, as tools are handed them when they are made."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import tzinfo

from explorer.documents.corpus.index import Corpus
from explorer.sources.hackernews.hackernews import HackerNews
from explorer.sources.page import Fetcher
from explorer.sources.pages import PageReader
from explorer.sources.reddit.reddit import Reddit
from explorer.sources.search.port import WebSearch

CheckAddress = Callable[[str], Awaitable[str]]
"""The address to be read for the one asked for; raises ToolError when it may not be."""


async def as_asked(url: str) -> str:
    """Read whatever is asked for."""
    return url


@dataclass(frozen=True)
class SourceConnections:
    """What a tool that brings evidence can ask; all of it is opened and closed by the run."""

    web: Fetcher
    """Fetches public addresses: guarded, bounded, cached and polite."""
    search: WebSearch
    pages: PageReader
    hackernews: HackerNews
    reddit: Reddit
    corpus: Corpus | None
    """The folder of the user's, where one is given."""
    zone: tzinfo
    """The asker's."""
    check: CheckAddress = as_asked
    """Admits the addresses that agents may read."""
