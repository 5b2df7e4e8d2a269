"""Tools that read the web: one page, or a search."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, ClassVar, Literal

from pydantic import Field

from explorer.errors import ToolError
from explorer.evidence import SourceDraft, Store, fence, visible
from explorer.net.pages import Page, PageReader
from explorer.net.search import WebHit, WebQuery, WebSearch
from explorer.net.since import since_time
from explorer.tool import Arguments, Tool, ToolResult

PAGE_CHARS = 20_000
"""Of a page's text per call."""
SNIPPET_CHARS = 1_000
TITLE_CHARS = 300


class ReadWebpageArguments(Arguments):
    """Arguments of `read_webpage`."""

    url: str = Field(min_length=1, max_length=4_000, description="The page's whole address, with http:// or https://.")
    offset: int = Field(
        default=0, ge=0, description="Character to read on from; a long page's answer says which. 0 = the beginning."
    )


class ReadWebpageTool(Tool):
    """`read_webpage`."""

    name: ClassVar[str] = "read_webpage"
    description = (
        f"Read a public web page as markdown, {PAGE_CHARS} characters at a time. The whole page is stored as a source "
        "you can cite by its id in brackets. Flags warn you: truncated (its end is missing), paywall, challenge (a bot "
        "check instead of content), script_shell (its text is loaded by scripts), http_403 and the like. Do not rely "
        "on a flagged page alone. Not for PDF, nor for Hacker News threads (get_hn_comments)."
    )
    arguments: ClassVar[type[Arguments]] = ReadWebpageArguments

    def __init__(self, client: PageReader, store: Store, now: Callable[[], datetime]) -> None:
        self._client = client
        self._store = store
        self._now = now

    async def execute(self, **arguments: Any) -> ToolResult:
        """Read one stretch of the page."""
        asked = ReadWebpageArguments(**arguments)
        page = await self._client.read(asked.url)
        text = visible(page.text)
        if asked.offset and asked.offset >= len(text):
            raise ToolError(f"offset={asked.offset} is behind the end: {page.url} has {len(text)} characters.")
        draft = SourceDraft(
            url=page.url,
            title=page.title,
            kind="page",
            via=page.via,
            author=page.author,
            published=page.published,
            text=text,
            flags=page.flags,
        )
        (source,) = await self._store([draft])
        content = _page_lines(source.id, page, text, asked.offset)
        return ToolResult(success=True, content=content, metadata={"sources": [source.id]})


class WebSearchArguments(Arguments):
    """Arguments of `web_search`."""

    query: str = Field(min_length=1, max_length=400, description="What to look for, in a few words or a question.")
    max_results: int = Field(default=8, ge=1, le=20, description="How many results at most.")
    search_depth: Literal["basic", "advanced"] = Field(
        default="basic", description="advanced: slower and dearer, with more fitting passages of each page."
    )
    include_domains: list[str] = Field(default=[], description='Only these sites, e.g. ["example.com"].')
    exclude_domains: list[str] = Field(default=[], description="None of these sites.")
    since: str = Field(default="", description="Nothing older: a date (2026-08-01) or a span (24h, 7d). Empty: all.")


class TavilySearchTool(Tool):
    """`web_search`, through whatever engine stands behind the port; Tavily as delivered."""

    name: ClassVar[str] = "web_search"
    description = (
        "Search the web. Returns title, address and a passage of each result; each is stored as a source you can "
        "cite by its id in brackets. A passage is not the page: read the pages that matter with read_webpage."
    )
    arguments: ClassVar[type[Arguments]] = WebSearchArguments

    def __init__(self, client: WebSearch, store: Store, now: Callable[[], datetime]) -> None:
        self._client = client
        self._store = store
        self._now = now

    async def execute(self, **arguments: Any) -> ToolResult:
        """Search and list the results."""
        asked = WebSearchArguments(**arguments)
        after = since_time(asked.since, self._now())
        query = WebQuery(
            words=asked.query,
            max_results=asked.max_results,
            depth=asked.search_depth,
            include_domains=tuple(asked.include_domains),
            exclude_domains=tuple(asked.exclude_domains),
            since=after.date().isoformat() if after else "",
        )
        hits = await self._client.search(query)
        sources = await self._store([_draft(hit) for hit in hits])
        head = f'Web search for "{_one_line(asked.query)}" through {self._client.name}: {len(hits)} results.'
        entries = [
            _entry(number, source.id, hit)
            for number, (source, hit) in enumerate(zip(sources, hits, strict=True), start=1)
        ]
        content = "\n".join([head, fence("\n".join(entries)) if entries else "Try other words or fewer filters."])
        return ToolResult(success=True, content=content, metadata={"sources": [source.id for source in sources]})


def _page_lines(source_id: str, page: Page, text: str, offset: int) -> str:
    end = min(offset + PAGE_CHARS, len(text))
    facts = [
        f"by {_one_line(page.author)}" if page.author else "",
        f"published {_one_line(page.published)}" if page.published else "",
        page.url,
        f"via {page.via}",
    ]
    more = f"; read on with offset={end}" if end < len(text) else ""
    lines = [
        f"[{source_id}] {_one_line(page.title)}",
        " | ".join(fact for fact in facts if fact),
        f"characters {offset}-{end} of {len(text)}{more}",
        *([f"flags: {', '.join(page.flags)}"] if page.flags else []),
        fence(text[offset:end]),
    ]
    return "\n".join(lines)


def _draft(hit: WebHit) -> SourceDraft:
    return SourceDraft(
        url=hit.url,
        title=hit.title,
        kind="search_hit",
        via=hit.engine,
        published=hit.published,
        text=f"{hit.title}\n{hit.url}\n\n{hit.snippet}",
    )


def _entry(number: int, source_id: str, hit: WebHit) -> str:
    date = f" ({_one_line(hit.published)})" if hit.published else ""
    snippet = _one_line(hit.snippet, SNIPPET_CHARS)
    return (
        f"{number}. [{source_id}] {_one_line(hit.title)}{date}\n   {_one_line(hit.url, max_chars=4_000)}\n   {snippet}"
    )


def _one_line(text: str, max_chars: int = TITLE_CHARS) -> str:
    """Text from outside stays on the line it is given."""
    line = " ".join(visible(text).split())
    return line if len(line) <= max_chars else f"{line[:max_chars]} ..."
