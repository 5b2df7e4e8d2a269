"""Reading a page: from the service whose thread it is, through a reader when one is set, else directly.

What came back is told honestly: flags say what is missing or wrong, and what cannot be read is an error with words.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from explorer.documents.parsing.document import CHALLENGE, NO_TEXT_LAYER, TRUNCATED, Document
from explorer.documents.parsing.judgement import FEW_WORDS, text_flags, words
from explorer.documents.parsing.kinds import KINDS, PDF, kind_of, text_of
from explorer.documents.parsing.parser import DocumentParser
from explorer.schema.errors import NoSuchThingError, ToolError
from explorer.sources.http.cache import ResponseCache
from explorer.sources.http.fetch import Fetched, FetchLimits, Web
from explorer.sources.page import ThreadReader, WebPage
from explorer.sources.reader_service import ReaderService

__all__ = ["PageReader", "ThreadReader", "WebPage"]

PDF_LIMITS = FetchLimits(seconds=60.0, body_bytes=32_000_000)
"""Half a PDF is none: its table of contents stands at the end."""
PAGE_TYPES = "text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.9,application/json;q=0.8,*/*;q=0.5"
ERROR_HEAD = 4_000
GONE = frozenset({404, 410})
"""Answers that say there is no such page."""


class PageReader:
    """Reads pages; `reader` stands in front of the public web, `threads` has the services of some hosts."""

    def __init__(
        self,
        web: Web,
        parser: DocumentParser,
        *,
        reader: ReaderService | None = None,
        threads: Mapping[str, ThreadReader] | None = None,
    ) -> None:
        self._web = web
        self._parser = parser
        self._reader = reader
        self._threads = threads or {}
        self._pages = ResponseCache[WebPage](time.monotonic)
        self._locks: dict[str, asyncio.Lock] = {}

    async def read(self, url: str) -> WebPage:
        """Read one page; who asks for one that is being read waits for it.

        Raises:
            ToolError: It cannot be read; the text says why and what else to try.
        """
        target = str(self._web.guard.check_url(url.strip()))
        async with self._locks.setdefault(target, asyncio.Lock()):
            if kept := self._pages.get(target):
                return kept
            page = await self._thread(target) or await self._page(target)
            page = replace(page, flags=tuple(dict.fromkeys(page.flags)))
            self._pages.put(target, page, size=len(page.text))
            return page

    async def _thread(self, url: str) -> WebPage | None:
        """From the service that has the host, or a domain above it."""
        host = urlsplit(url).hostname or ""
        while host and host not in self._threads:
            host = host.partition(".")[2]
        return await self._threads[host].read(url) if host else None

    async def _page(self, url: str) -> WebPage:
        """The reader is somebody else's: it never learns of hosts the user opened for this machine alone."""
        if self._reader is None or self._web.guard.is_allowed_host(urlsplit(url).hostname or ""):
            return await self._directly(url)
        return await self._through(self._reader, url)

    async def _through(self, reader: ReaderService, url: str) -> WebPage:
        """The reader's answer, or the page itself where that is nothing or doubtful."""
        page: WebPage | None = None
        try:
            page = await reader.read(url)
            if words(page.text) >= FEW_WORDS and CHALLENGE not in page.flags:
                return page
            problem = "it gave too little text"
        except ToolError as error:
            problem = error.message
        try:
            return await self._directly(url)
        except ToolError as error:
            if page and page.text:
                return page
            fault = NoSuchThingError if isinstance(error, NoSuchThingError) else ToolError
            raise fault(f"{error.message} (The reader service did not help: {problem})") from error

    async def _directly(self, url: str) -> WebPage:
        fetched = await self._web.get(url, accept=PAGE_TYPES)
        if fetched.problem:
            fault = NoSuchThingError if fetched.status in GONE else ToolError
            raise fault(_error_words(url, fetched))
        kind = kind_of(fetched.body, fetched.content_type)
        if kind not in KINDS:
            raise ToolError(f"{url} is {kind[:80]}, not text. Look for a page about it instead.")
        if kind == PDF and fetched.is_truncated:
            fetched = await self._web.get(url, accept=PAGE_TYPES, limits=PDF_LIMITS)
            _refuse_half(url, fetched)
        document = await self._parser.parse(kind, fetched.body, url=fetched.url, content_type=fetched.content_type)
        if not document.text:
            raise ToolError(_empty_words(url, document))
        cut = (TRUNCATED,) if fetched.is_truncated else ()
        return WebPage(
            url=fetched.url,
            title=document.title or fetched.url,
            text=document.text,
            via="direct",
            author=document.author,
            published=document.published,
            flags=(*cut, *document.flags),
            language=document.language,
            pages=document.pages,
            kept_since=fetched.kept_since,
        )


def _refuse_half(url: str, fetched: Fetched) -> None:
    if fetched.is_truncated:
        size = PDF_LIMITS.body_bytes // 1_000_000
        raise ToolError(f"{url} is a PDF of more than {size} MB, which is not read. Look for a page about it instead.")


def _error_words(url: str, fetched: Fetched) -> str:
    head = text_of(fetched.body, fetched.content_type)[:ERROR_HEAD]
    is_check = CHALLENGE in text_flags("", head)
    reason = f"it is behind a check for robots (status {fetched.status})" if is_check else fetched.problem
    return f"Could not read {url}: {reason}. Use another source, or search for the same text elsewhere."


def _empty_words(url: str, found: Document) -> str:
    if NO_TEXT_LAYER in found.flags:
        return (
            f"{url} is a PDF whose {found.pages} pages are pictures without a text layer, so there are no words to "
            "read. Use another source."
        )
    why = f" ({', '.join(found.flags)})" if found.flags else ""
    return f"{url} has no readable text{why}. It may be built by scripts; use another source."
