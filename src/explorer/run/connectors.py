"""The sources of a run: connections opened once for all agents, and the tools that bring evidence from them."""

from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from loguru import logger

from explorer.documents.parsing.parser import DocumentParser, Parser, TrustingParser
from explorer.network.guard import Guard
from explorer.offline.sample_day.transport import SAMPLE_NOW, SampleDayTransport
from explorer.run.extensions import OWN, Point, ToolPart, UnusablePartError, foreign_code, installed_extensions, made
from explorer.run.settings_parts import search_setup
from explorer.schema.setting import NO_LIMIT
from explorer.schema.settings import Settings
from explorer.schema.tool import Tool
from explorer.sources.connections import CheckAddress, SourceConnections, as_asked
from explorer.sources.date_ranges import zone_named
from explorer.sources.http.cache import CACHE_FOLDER, DiskCache
from explorer.sources.http.caller import Caller
from explorer.sources.http.fetch import FetchPolicy, Web
from explorer.sources.page import Site, SiteAccess, ThreadReader
from explorer.sources.pages import PUBLIC_ARCHIVE, PageReader, ReaderService, WebArchive
from explorer.sources.search.port import WebSearch
from explorer.sources.search.selection import choose_search
from explorer.workspace.user_key import open_key

if TYPE_CHECKING:  # the index is slow to import, and few runs have a folder
    from explorer.documents.corpus.index import Corpus, Progress


@dataclass(frozen=True)
class Connectors:
    """The open connections to sources."""

    settings: Settings
    web: Web
    parser: Parser
    sites: Sequence[ThreadReader]
    pages: PageReader
    search: WebSearch
    corpus: "Corpus | None"
    """The folder of the user's, where one is given."""
    now: Callable[[], datetime]

    @classmethod
    @asynccontextmanager
    async def open(
        cls, settings: Settings, progress: Callable[[str], None] = lambda _words: None
    ) -> AsyncGenerator[Self]:
        """Open them; on the sample day, files stand in for the network and its clock stands still.

        `progress` is told how far the indexing of the user's folder is.

        Raises:
            ConfigError: A folder or a service cannot be used as it is set.
        """
        now = (lambda: SAMPLE_NOW) if settings.is_sample else _now
        async with AsyncExitStack() as stack:
            transport = SampleDayTransport() if settings.is_sample else None
            disk = None if settings.is_sample else _disk_cache(settings)
            web = await stack.enter_async_context(
                Web(
                    Guard(settings.services.allow_hosts),
                    transport=transport,
                    fetch_policy=FetchPolicy(disk=disk, caller=_caller(settings)),
                )
            )
            parser = await stack.enter_async_context(Parser())
            corpus = _corpus(settings, parser, lambda indexed: progress(indexed.words))
            # The sample's pages come with us: a process of their own would guard nothing, and be slower.
            of_pages = TrustingParser() if settings.is_sample else parser
            access = SiteAccess(web, web.guard, _caller(settings), now, of_pages)
            sites = await _open_sites(settings, access, stack)
            yield cls(
                settings=settings,
                web=web,
                parser=parser,
                sites=tuple(dict.fromkeys(sites.values())),
                pages=PageReader(
                    web,
                    of_pages,
                    reader=_reader(web, settings),
                    threads=sites,
                    archive=_archive(web, settings),
                ),
                search=await stack.enter_async_context(choose_search(search_setup(settings))),
                corpus=await stack.enter_async_context(corpus) if corpus else None,
                now=now,
            )

    @property
    def zone(self) -> tzinfo:
        """The asker's."""
        return zone_named(self.settings.timezone)

    @property
    def absent(self) -> dict[str, str]:
        """Tools that roles may name and this run does not have, each with what would bring it."""
        connections, installed = self.connections(), installed_extensions()
        reasons = {part.name: part.missing(connections) for part in installed.built_in_tools}
        reasons |= {part.name: _lacks(part, connections) for part in installed.installed_tools}
        return {name: why for name, why in reasons.items() if why}

    def connections(self, check: CheckAddress = as_asked) -> SourceConnections:
        """Return what tools are handed; pages are read only at addresses that `check` admits."""
        return SourceConnections(
            web=self.web,
            search=self.search,
            pages=self.pages,
            sites=self.sites,
            corpus=self.corpus,
            zone=self.zone,
            check=check,
            is_sample=self.settings.is_sample,
        )

    def tools(self, check: CheckAddress = as_asked) -> list[Tool]:
        """Return the built-in tools that bring evidence; pages only at addresses that `check` admits."""
        parts = [part for part in installed_extensions().built_in_tools if part.name not in self.absent]
        return connected(parts, self.connections(check))

    def installed_tools(self, check: CheckAddress = as_asked) -> list[Tool]:
        """Return the tools of installed packages."""
        absent = self.absent
        parts = [part for part in installed_extensions().installed_tools if part.name not in absent]
        return connected(parts, self.connections(check))


def left_out(tools: Collection[str]) -> dict[str, str]:
    """Return the tools of packages that are not among those of a run, because they could not be made for it."""
    names = (part.name for part in installed_extensions().installed_tools)
    return {name: "its package could not make it; -v says why" for name in names if name not in tools}


def _lacks(part: ToolPart, connections: SourceConnections) -> str:
    """Return what a run lacks for a tool of a package; empty: nothing."""
    try:
        return made(lambda: str(part.missing(connections) or ""), part.name)
    except UnusablePartError as error:
        return str(error)


def connected(parts: Iterable[ToolPart], connections: SourceConnections) -> list[Tool[Any]]:
    """Make tools for a run; one of a package that cannot be made is left out, with a line in the log."""
    tools: list[Tool[Any]] = []
    for part in parts:
        try:
            tools.append(part if isinstance(part, Tool) else made(partial(_connect, part, connections), part.name))
        except UnusablePartError as error:
            logger.warning("the tool {}", error)
    return tools


def _connect(part: type[Tool[Any]], connections: SourceConnections) -> Tool[Any]:
    return part.connect(connections)


def _now() -> datetime:
    return datetime.now(UTC)


def _disk_cache(settings: Settings) -> DiskCache:
    return DiskCache(settings.workspace / CACHE_FOLDER, partial(open_key, settings.state_dir))


def _caller(settings: Settings) -> Caller:
    return Caller(settings.network, settings.contact)


def _corpus(settings: Settings, parser: DocumentParser, on_progress: "Callable[[Progress], None]") -> "Corpus | None":
    """Return the folder that the settings name, without explorer's own runs and reports; None where there is none.

    A run over the sample day reads nothing else, and has none.

    Raises:
        ConfigError: There is no such folder, or it may not be read.
    """
    if settings.corpus is None or settings.is_sample:
        return None
    from explorer.documents.corpus.index import Corpus, Options, checked_folder, index_path  # noqa: PLC0415 - slow

    folder = checked_folder(settings.corpus)
    key = open_key(settings.state_dir)
    options = Options(excluded=(settings.workspace, settings.reports_dir), on_progress=on_progress, key=key)
    return Corpus(folder, index_path(settings.workspace, folder, key), parser, options)


async def _open_sites(settings: Settings, access: SiteAccess, stack: AsyncExitStack) -> Mapping[str, ThreadReader]:
    """Open the sites that are better read through their services than as pages; by host.

    On the sample day they are where they are by default: its files stand in for the public addresses.
    """
    own: dict[str, ThreadReader] = {}
    # From the last to the first: no package's site takes the host of a built-in one.
    for part in reversed(installed_extensions().of(Point.SOURCES)):
        site: Site = part.value
        if settings.is_sample and not site.is_on_sample_day:
            continue
        values = site.settings() if settings.is_sample else settings.extension(site.name, site.settings)
        opening = stack.enter_async_context(site.opened(values, access))
        try:
            with foreign_code(f"{site.name} of {part.origin}") if part.origin != OWN else nullcontext():
                own |= dict.fromkeys(site.hosts, await opening)
        except UnusablePartError as error:
            logger.warning("the site {}; its pages are read like any others", error)
    return own


def _archive(web: Web, settings: Settings) -> WebArchive | None:
    """Return the archive of pages that are gone; none on the sample day, and where the user wants none."""
    url = settings.services.archive_url
    return None if settings.is_sample or url == NO_LIMIT else WebArchive(web, url or PUBLIC_ARCHIVE)


def _reader(web: Web, settings: Settings) -> ReaderService | None:
    """Return the service that pages are read through, where one is set; the sample day's are nobody else's."""
    url = settings.reader_address
    return ReaderService(web, url, settings.secrets.jina_key.get_secret_value()) if url else None
