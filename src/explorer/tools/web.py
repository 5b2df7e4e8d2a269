"""The tools that search the web and read a page."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from typing import Literal, LiteralString, Self, cast

from pydantic import Field, create_model

from explorer.documents.corpus.passages import Stretch, fitting_stretches
from explorer.schema.events import Source
from explorer.schema.messages import JsonObject
from explorer.schema.text_part import TITLE_CHARS, URL_CHARS, facts_of, lines_of, numbered, part_at
from explorer.schema.tool import Arguments, SourceDraft, Tool, ToolContext, ToolResult, shown
from explorer.sources.connections import CheckAddress, SourceConnections, as_asked
from explorer.sources.date_ranges import since_time
from explorer.sources.page import STALE, WebPage, is_stale
from explorer.sources.pages import PageReader
from explorer.sources.search.port import WebAnswer, WebHit, WebQuery, WebSearch
from explorer.sources.site_search import SearchableSite
from explorer.text.rendering import ModelText, block, code, inline, own, render
from explorer.text.sanitize import single_line, visible
from explorer.text.urls import host_of

PAGE_CHARS = 20_000
"""The characters of a page's text per call."""
LEAD_CHARS = 12_000
"""The characters from its beginning, where the page is longer and passages further down fit the task."""


class ReadWebpageArguments(Arguments):
    """Arguments of `read_webpage`."""

    url: str = Field(min_length=1, max_length=4_000)
    offset: int = Field(default=0, ge=0)


class ReadWebpageTool(Tool[ReadWebpageArguments]):
    """`read_webpage`: reads a page."""

    name = "read_webpage"
    description = (
        f"Read a page, PDF, feed or JSON as markdown, {PAGE_CHARS} characters at a time: an address from the user, a "
        "search or a page. Its first lines give source id, author, date, length and flags; do not rely on a "
        "flagged one alone."
    )
    arguments = ReadWebpageArguments
    is_lookup = True

    def __init__(self, client: PageReader, check: CheckAddress = as_asked) -> None:
        self._client = client
        self._check = check

    @classmethod
    def connect(cls, connections: SourceConnections) -> Self:
        """Make the tool with the run's connections."""
        return cls(connections.pages, connections.check)

    def describe(self, arguments: ReadWebpageArguments) -> str:
        """Return the activity with the host: the beginning of an address says little."""
        return f"reading {host_of(arguments.url) or arguments.url}"

    async def execute(self, arguments: ReadWebpageArguments, context: ToolContext) -> ToolResult:
        """Return one part of the page."""
        address = await self._check(arguments.url)
        page = _dated(await self._client.read(address), context.now())
        text = visible(page.text)
        part = part_at(text, arguments.offset, PAGE_CHARS, page.url)
        draft = SourceDraft(
            url=page.url,
            title=page.title,
            kind=page.kind,
            via=page.via,
            author=page.author,
            published=page.published,
            language=page.language,
            text=text,
            retrieved=page.kept_since,
            flags=page.flags,
        )
        (source,) = await context.store([draft])
        fitting = await _fitting(text, arguments.offset, context.task)
        part = replace(part, end=LEAD_CHARS) if fitting else part
        pages = own("{pages} pages", pages=page.pages) if page.pages else own("")
        known = (own("via {via}", via=code(page.via)), pages)
        notes = (own("{note}", note=note) for note in page.notes)
        content = render(lines_of(source.id, draft, part, known, *notes), *_passages(text, fitting))
        return ToolResult(success=True, content=content, metadata=facts_of(draft) | part.facts)


def _dated(page: WebPage, now: datetime) -> WebPage:
    return replace(page, flags=(*page.flags, STALE)) if is_stale(page, now) else page


async def _fitting(text: str, offset: int, task: str) -> list[Stretch]:
    """Return what of a long page fits the task, where its beginning is read; nothing where the page is short."""
    if offset or len(text) <= PAGE_CHARS or not task:
        return []
    return await asyncio.to_thread(fitting_stretches, text, task, LEAD_CHARS, PAGE_CHARS - LEAD_CHARS)


def _passages(text: str, stretches: Sequence[Stretch]) -> Iterator[ModelText]:
    for start, end in stretches:
        yield own("further down, characters {start}-{end}, chosen by your task:", start=start, end=end)
        yield block(text[start:end])


SNIPPET_CHARS = 1_000
ENTRY_LINES = 3
"""The lines of a hit: title, address and snippet."""


class WebSearchArguments(Arguments):
    """Arguments of `web_search`."""

    query: str = Field(min_length=1, max_length=400, description='Few specific words; "quoted" for a phrase')
    max_results: int = Field(default=8, ge=1, le=20)
    search_depth: Literal["basic", "advanced"] = Field(
        default="basic", description="advanced: slower, for what basic does not find"
    )
    include_domains: list[str] = Field(default=[], description="Only these sites, e.g. europa.eu")
    exclude_domains: list[str] = Field(default=[])
    since: str = Field(default="", description="Published since: 2026-08-01, 24h, last week")


class TavilySearchTool(Tool[WebSearchArguments]):
    """`web_search`: searches with the configured engine."""

    name = "web_search"
    description = "Search the web for pages to read. A hit is a lead: open the page before you cite it."
    arguments = WebSearchArguments
    activity = 'searching the web for "{query}"'
    is_search = True
    is_lookup = True

    def __init__(self, client: WebSearch, zone: tzinfo = UTC) -> None:
        self._client = client
        self._zone = zone

    @classmethod
    def connect(cls, connections: SourceConnections) -> Self:
        """Make the tool with the run's connections."""
        return cls(connections.search, connections.zone)

    async def execute(self, arguments: WebSearchArguments, context: ToolContext) -> ToolResult:
        """Search and return the results."""
        after = since_time(arguments.since, context.now(), self._zone)
        query = WebQuery(
            words=arguments.query,
            max_results=arguments.max_results,
            depth=arguments.search_depth,
            include_domains=_named(arguments.include_domains),
            exclude_domains=_named(arguments.exclude_domains),
            since=after.astimezone(UTC).date().isoformat() if after else "",
        )
        return await _results("Web search", arguments.query, await self._client.search(query), context)


class SearchSiteArguments(Arguments):
    """Arguments of `search_site`; a run's own have the names of its sites."""

    site: str
    query: str = Field(min_length=1, max_length=400)
    max_results: int = Field(default=8, ge=1, le=20)
    since: str = Field(default="", description="2026-08-01, last week")


class SearchSiteTool(Tool[SearchSiteArguments]):
    """`search_site`: searches one site through its own service."""

    name = "search_site"
    description = "Search one site's own index. What it finds is read with read_webpage."
    arguments = SearchSiteArguments
    activity = 'searching {site} for "{query}"'
    is_search = True
    is_lookup = True

    def __init__(self, sites: Sequence[SearchableSite] = (), zone: tzinfo = UTC) -> None:
        self._sites = {site.name: site for site in sites}
        self._zone = zone
        if sites:
            finds = "; ".join(f"{site.name}: {site.finds}" for site in sites)
            self.description = f"{type(self).description} {finds}."
            names = cast("type[str]", Literal[tuple(self._sites)])
            self.arguments = create_model("SearchSiteArguments", __base__=SearchSiteArguments, site=(names, ...))

    @classmethod
    def connect(cls, connections: SourceConnections) -> Self:
        """Make the tool with the run's sites."""
        return cls(_searchable(connections), connections.zone)

    @classmethod
    def missing(cls, connections: SourceConnections) -> str:
        """Return why the run has no such tool: it has no such sites, as on the sample day."""
        return "" if _searchable(connections) else "no site that can be searched"

    async def execute(self, arguments: SearchSiteArguments, context: ToolContext) -> ToolResult:
        """Search and return the results."""
        after = since_time(arguments.since, context.now(), self._zone)
        since = after.astimezone(UTC).date().isoformat() if after else ""
        query = WebQuery(words=arguments.query, max_results=arguments.max_results, since=since)
        answer = await self._sites[arguments.site].search(query)
        return await _results("Search", arguments.query, answer, context)


def _searchable(connections: SourceConnections) -> list[SearchableSite]:
    return sorted((one for one in connections.sites if isinstance(one, SearchableSite)), key=lambda one: one.name)


async def _results(what: LiteralString, words: str, answer: WebAnswer, context: ToolContext) -> ToolResult:
    """Store the hits of an answer, and return them as a list."""
    sources = await context.store([_draft(hit) for hit in answer.hits])
    listed = numbered(sources, answer.hits, _entry)
    body = block(listed) if answer.hits else own("Try other words or fewer filters.")
    content = render(*_head(what, words, answer), body)
    metadata = {
        **shown(len(sources), "result", "results"),
        **({"engines": dict(answer.counts)} if answer.counts else {}),
        "hits": _facts(sources, answer),
    }
    return ToolResult(success=True, content=content, metadata=metadata)


def _facts(sources: Sequence[Source], answer: WebAnswer) -> list[JsonObject]:
    """Return each hit for programs; its snippet is the given line within the fence."""
    return [
        {
            "source": source.id,
            "title": single_line(hit.title, TITLE_CHARS),
            "url": single_line(hit.url, URL_CHARS),
            "published": single_line(hit.published, TITLE_CHARS),
            "line": ENTRY_LINES * place + ENTRY_LINES - 1,
        }
        for place, (source, hit) in enumerate(zip(sources, answer.hits, strict=True))
    ]


def _named(sites: Sequence[str]) -> tuple[str, ...]:
    return tuple(site.strip() for site in sites if site.strip())


def _head(what: LiteralString, words: str, answer: WebAnswer) -> list[ModelText]:
    """Return the first lines, before the hits: which engine answered, and notes on the answer."""
    first = own(
        '{what} for "{words}" through {engine}: {count} results.',
        what=own(what),
        words=inline(words, TITLE_CHARS),
        engine=code(answer.engine),
        count=len(answer.hits),
    )
    return [first, *(own("{note}", note=note) for note in answer.notes)]


def _draft(hit: WebHit) -> SourceDraft:
    """Return a hit as a source: what was seen of the page, and its whole text where the engine delivers it."""
    seen = f"{hit.title}\n{hit.url}\n\n{hit.snippet}"
    is_page = len(hit.text) > len(hit.snippet)
    return SourceDraft(
        url=hit.url,
        title=hit.title,
        kind="page" if is_page else "search_hit",
        via=hit.engine,
        author=hit.author,
        published=hit.published,
        text=f"{seen}\n\n{hit.text}" if is_page else seen,
        flags=hit.flags if is_page else (),
    )


def _entry(number: int, source_id: str, hit: WebHit) -> str:
    date = f" ({single_line(hit.published, TITLE_CHARS)})" if hit.published else ""
    engines = f", found by {' and '.join(hit.found_by)}" if hit.found_by else ""
    snippet = single_line(hit.snippet, SNIPPET_CHARS)
    title, url = single_line(hit.title, TITLE_CHARS), single_line(hit.url, URL_CHARS)
    return f"{number}. [{source_id}] {title}{date}{engines}\n   {url}\n   {snippet}"
