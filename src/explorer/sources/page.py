"""A page as a value, and the port of sites whose pages are read through a service instead of as HTML."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from explorer.schema.setting import ExtensionSettings, NoSettings
from explorer.sources.http.caller import Caller
from explorer.sources.http.fetched import PAGE_LIMITS, Fetched, FetchLimits

if TYPE_CHECKING:
    # Every command reads the sites' settings, and the guard imports the library of HTTP.
    from explorer.documents.parsing.parser import DocumentParser
    from explorer.network.guard import Guard
    from explorer.sources.http.api_client import ApiRules

STALE = "stale"
STALE_AFTER = timedelta(days=548)
"""A year and a half: a page of that age may be wrong about the present."""


@dataclass(frozen=True)
class WebPage:
    """A page's text with its facts."""

    url: str
    """The address after redirects."""
    title: str
    text: str
    """Markdown, or plain text."""
    via: str
    """`direct`, `reader`, or the name of the service that it came from, such as `hackernews`."""
    author: str = ""
    published: str = ""
    flags: tuple[str, ...] = ()
    language: str = ""
    """A code such as `en`; empty when it is not known."""
    pages: int = 0
    """The number of pages of a PDF."""
    kind: str = "page"
    """The kind of the source: `page` or `comments`."""
    kept_since: datetime | None = None
    """The time when it was fetched, for a page from a cache; None for a new one."""
    notes: tuple[str, ...] = ()
    """Lines for the model: what is left out, and how to read it."""


class ThreadReader(Protocol):
    """A service that reads the discussions of a site."""

    async def read(self, url: str) -> WebPage | None:
        """Return the thread at an address; None when the address is read like any other page.

        Raises:
            ToolError: It is the address of a thread, and the service does not give it.
        """
        ...


class Fetcher(Protocol):
    """Fetches addresses for a site: guarded, bounded, cached; see `http/fetch.py`."""

    async def get(
        self,
        url: str,
        *,
        accept: str = "*/*",
        limits: FetchLimits = PAGE_LIMITS,
        headers: Mapping[str, str] | None = None,
    ) -> Fetched:
        """Fetch a URL, or return an answer from a short while ago.

        Raises:
            ToolError: No answer came.
        """
        ...


@dataclass(frozen=True)
class SiteAccess:
    """What connecting to a site takes, besides its own settings."""

    web: Fetcher
    """Fetches public addresses: guarded, bounded, cached and polite."""
    guard: "Guard"
    """Checks addresses, for connections of a site's own."""
    caller: Caller
    """The user's network and name."""
    now: Callable[[], datetime]
    """The run's clock."""
    parser: "DocumentParser"
    """Parses HTML, PDF, office files and feeds that strangers wrote, in confined processes."""

    def rules(self, rules: "ApiRules") -> "ApiRules":
        """Return the rules of a site's service for this caller."""
        return replace(rules, caller=self.caller)


class SiteProbe(NamedTuple):
    """An address that answers where a site's service is up."""

    name: str
    url: str
    field: str
    """The field of the site's settings that the address comes from."""


class SiteProblem(NamedTuple):
    """A setting that a site's service objects to, and its fix."""

    words: str
    fix: str


@dataclass(frozen=True)
class Site:
    """A site whose pages are read through a service: the entry point `explorer.sources` names one of these.

    It has `open`, or `connect` where it has settings or connections to close. Tools find what is opened by its class:
    `connections.site(CLASS)`.
    """

    name: str
    hosts: tuple[str, ...]
    """Its hosts; those below them belong to it, too."""
    open: Callable[[Fetcher], ThreadReader] | None = None
    settings: type[ExtensionSettings] = NoSettings
    connect: Callable[[Any, SiteAccess], AbstractAsyncContextManager[ThreadReader]] | None = None
    """Connects to its service for a run; the run closes it."""
    probes: Callable[[Any], Sequence[SiteProbe]] = lambda _settings: ()
    """The addresses that `doctor` asks."""
    problem: Callable[[Any, Caller], SiteProblem | None] = lambda _settings, _caller: None
    """What `doctor` says of the settings; None: nothing."""
    is_on_sample_day: bool = True
    """Whether all that it asks for goes through the run's fetcher, which the sample day replaces."""

    @asynccontextmanager
    async def opened(self, settings: ExtensionSettings, access: SiteAccess) -> AsyncGenerator[ThreadReader]:
        """Open its service for a run.

        Raises:
            TypeError: It has neither `open` nor `connect`.
        """
        if self.connect is not None:
            async with self.connect(settings, access) as reader:
                yield reader
        elif self.open is not None:
            yield self.open(access.web)
        else:
            raise TypeError(f"the site {self.name} has neither `open` nor `connect`")


def is_stale(page: WebPage, now: datetime) -> bool:
    """Return whether the page's own date is more than a year and a half ago; False without a date."""
    written = _moment(page.published)
    return written is not None and now - written > STALE_AFTER


def _moment(text: str) -> datetime | None:
    """Return a date in ISO form or in the form of mails, which readers pass on from HTTP."""
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = parse(text.strip())
        except ValueError:
            continue
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None
