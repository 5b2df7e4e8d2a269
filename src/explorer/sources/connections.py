"""The connections of a run to its sources, which tools get when they are made."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import TYPE_CHECKING, TypeVar

from explorer.sources.page import Fetcher, ThreadReader
from explorer.sources.pages import PageReader
from explorer.sources.search.port import WebSearch

if TYPE_CHECKING:  # the index is slow to import, and few runs have a folder
    from explorer.documents.corpus.index import Corpus

R = TypeVar("R", bound=ThreadReader)
CheckAddress = Callable[[str], Awaitable[str]]
"""Returns the address to read for the requested one. Raises `ToolError` if it may not be read."""


async def as_asked(url: str) -> str:
    """Read whatever is asked for."""
    return url


@dataclass(frozen=True)
class SourceConnections:
    """The connections that tools which bring evidence may use. The run opens and closes all of them."""

    web: Fetcher
    """Fetches public addresses: guarded, bounded, cached and polite."""
    search: WebSearch
    pages: PageReader
    sites: Sequence[ThreadReader]
    """The sites that are read through their services; see `site`."""
    corpus: "Corpus | None"
    """The user's own folder, if one is given."""
    zone: tzinfo
    """The user's time zone."""
    check: CheckAddress = as_asked
    """Admits the addresses that agents may read."""
    is_sample: bool = False
    """Whether the run reads the sample day instead of the network."""

    def site(self, kind: type[R]) -> R:
        """Return the site of a class.

        Raises:
            LookupError: The run has none.
        """
        found = next((one for one in self.sites if isinstance(one, kind)), None)
        if found is None:
            raise LookupError(f"no site is a {kind.__name__}")
        return found
