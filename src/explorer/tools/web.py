"""The tool that reads a web page."""

from dataclasses import replace
from datetime import datetime
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field

from explorer.schema.errors import RefusedCallError
from explorer.schema.messages import JsonObject
from explorer.schema.tool import Arguments, SourceDraft, Tool, ToolContext, ToolResult
from explorer.sources.connections import CheckAddress, SourceConnections, as_asked
from explorer.sources.page import STALE, WebPage, is_stale
from explorer.sources.pages import PageReader
from explorer.text.sanitize import fence, single_line, visible

PAGE_CHARS = 20_000
"""Of a page's text per call."""
TITLE_CHARS = 300


class ReadWebpageArguments(Arguments):
    """Arguments of `read_webpage`."""

    url: str = Field(min_length=1, max_length=4_000)
    offset: int = Field(default=0, ge=0)


class ReadWebpageTool(Tool[ReadWebpageArguments]):
    """`read_webpage`."""

    name = "read_webpage"
    description = (
        f"Read a page, PDF, feed or JSON as markdown, {PAGE_CHARS} characters at a time. Do not rely on a flagged one "
        "alone."
    )
    arguments = ReadWebpageArguments
    is_lookup = True

    def __init__(self, client: PageReader, check: CheckAddress = as_asked) -> None:
        self._client = client
        self._check = check

    @classmethod
    def connect(cls, connections: SourceConnections) -> Self:
        """Make it for a run."""
        return cls(connections.pages, connections.check)

    def describe(self, arguments: ReadWebpageArguments) -> str:
        """Name the host: the beginning of an address says little."""
        return f"reading {_host(arguments.url) or arguments.url}"

    async def execute(self, arguments: ReadWebpageArguments, context: ToolContext) -> ToolResult:
        """Read one stretch of the page."""
        address = await self._check(arguments.url)
        page = _dated(await self._client.read(address), context.now())
        text = visible(page.text)
        if arguments.offset and arguments.offset >= len(text):
            raise RefusedCallError(f"offset={arguments.offset} is past the end:{page.url} has {len(text)} characters.")
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
        content = _page_lines(source.id, page, text, arguments.offset)
        page_facts: JsonObject = {
            "title": single_line(page.title, TITLE_CHARS),
            "url": page.url,
            "author": single_line(page.author, TITLE_CHARS),
            "published": single_line(page.published, TITLE_CHARS),
            "flags": list(page.flags),
            "unit": "characters",
            "first": arguments.offset,
            "last": min(arguments.offset + PAGE_CHARS, len(text)),
            "total": len(text),
        }
        return ToolResult(success=True, content=content, metadata=page_facts)


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _dated(page: WebPage, now: datetime) -> WebPage:
    return replace(page, flags=(*page.flags, STALE)) if is_stale(page, now) else page


def _page_lines(source_id: str, page: WebPage, text: str, offset: int) -> str:
    end = min(offset + PAGE_CHARS, len(text))
    facts = [
        f"by {single_line(page.author, TITLE_CHARS)}" if page.author else "",
        f"published {single_line(page.published, TITLE_CHARS)}" if page.published else "",
        page.url,
        f"via {page.via}",
        f"{page.pages} pages" if page.pages else "",
    ]
    more = f"; read on with offset={end}" if end < len(text) else ""
    lines = [
        f"[{source_id}] {single_line(page.title, TITLE_CHARS)}",
        " | ".join(fact for fact in facts if fact),
        f"characters {offset}-{end} of {len(text)}{more}",
        *([f"flags: {', '.join(page.flags)}"] if page.flags else []),
        *(single_line(note, TITLE_CHARS) for note in page.notes),
        fence(text[offset:end]),
    ]
    return "\n".join(lines)
