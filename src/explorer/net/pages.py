"""Reading a page: through a reader service when one is set, else directly, with honest flags about what came back."""

import asyncio
import html
import re
import time
from dataclasses import dataclass, replace
from urllib.parse import parse_qs, unquote, urlsplit

from explorer.errors import ToolError
from explorer.net.cache import ResponseCache
from explorer.net.decode import HTML, PDF, TEXT, kind_of, text_of
from explorer.net.extract import (
    CHALLENGE,
    FEW_WORDS,
    TRUNCATED,
    Extracted,
    extract_html,
    plain_html,
    text_flags,
    words,
)
from explorer.net.fetch import Fetched, FetchLimits, Web

READER_LIMITS = FetchLimits(seconds=45.0, in_flight=4)
EXTRACTION_S = 20.0
PAGE_TYPES = "text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.9,application/json;q=0.8,*/*;q=0.5"
READER_HEAD = re.compile(r"^(Title|URL Source|Published Time|Warning):[ \t]*(.*)$", re.MULTILINE)
READER_BODY = "Markdown Content:"
TARGET_ERROR = re.compile(r"Target URL returned error (\d{3})")


@dataclass(frozen=True)
class Page:
    """A page's text and what is known about it."""

    url: str
    """After redirects."""
    title: str
    text: str
    """Markdown, or the text as it is."""
    via: str
    """`direct` or `reader`."""
    author: str = ""
    published: str = ""
    flags: tuple[str, ...] = ()


class PageReader:
    """Reads pages; `reader_url` is a Jina-style service that gets the page's URL appended."""

    def __init__(self, web: Web, reader_url: str = "") -> None:
        self._web = web
        self._reader_url = reader_url.rstrip("/")
        self._read = ResponseCache[Page](time.monotonic)

    async def read(self, url: str) -> Page:
        """Read one page.

        Raises:
            ToolError: It cannot be read; the text says why and what else to try.
        """
        target = str(self._web.guard.check_url(url.strip()))
        _refuse_item_page(target)
        if kept := self._read.get(target):
            return kept
        page = await self._through_reader(target) if self._is_for_reader(target) else await self._directly(target)
        page = replace(page, flags=tuple(dict.fromkeys(page.flags)))
        self._read.put(target, page, size=len(page.text))
        return page

    def _is_for_reader(self, url: str) -> bool:
        """The reader is somebody else's: it never learns of hosts the user opened for this machine alone."""
        return bool(self._reader_url) and not self._web.guard.is_allowed_host(urlsplit(url).hostname or "")

    async def _through_reader(self, url: str) -> Page:
        """The reader's answer, or the page itself where that is nothing or doubtful."""
        page: Page | None = None
        try:
            page = await self._from_reader(url)
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
            raise ToolError(f"{error.message} (The reader service did not help: {problem})") from error

    async def _from_reader(self, url: str) -> Page:
        fetched = await self._web.get(f"{self._reader_url}/{url}", accept="text/plain", limits=READER_LIMITS)
        if fetched.problem:
            raise ToolError(f"{fetched.problem}.")
        return _reader_page(url, fetched)

    async def _directly(self, url: str) -> Page:
        fetched = await self._web.get(url, accept=PAGE_TYPES)
        if fetched.problem:
            raise ToolError(_error_words(url, fetched))
        kind = kind_of(fetched)
        if kind == PDF:
            raise ToolError(f"{url} is a PDF; PDF is not read yet. Look for an HTML version or another source.")
        if kind not in {HTML, TEXT}:
            raise ToolError(f"{url} is {kind[:80]}, not text. Look for a page about it instead.")
        found = await _extracted(fetched) if kind == HTML else _as_it_is(fetched)
        if not found.text:
            raise ToolError(_empty_words(url, found))
        cut = (TRUNCATED,) if fetched.is_truncated else ()
        return Page(
            url=fetched.url,
            title=html.unescape(found.title) or fetched.url,
            text=found.text,
            via="direct",
            author=found.author,
            published=found.published,
            flags=(*cut, *found.flags),
        )


async def _extracted(fetched: Fetched) -> Extracted:
    """Extract in a thread, so that a large page does not hold up everything else; simply, if it takes too long."""
    text = text_of(fetched)
    try:
        async with asyncio.timeout(EXTRACTION_S):
            return await asyncio.to_thread(extract_html, text, fetched.url)
    except TimeoutError:
        return await asyncio.to_thread(plain_html, text)


def _as_it_is(fetched: Fetched) -> Extracted:
    text = text_of(fetched).strip()
    heading = re.match(r"#\s+(.+)", text)
    name = unquote(urlsplit(fetched.url).path.rstrip("/").rpartition("/")[2])
    return Extracted(text, title=heading[1].strip() if heading else name)


def _reader_page(url: str, fetched: Fetched) -> Page:
    """Read the form `Title: .. URL Source: .. Published Time: .. Warning: .. Markdown Content: ..`."""
    whole = text_of(fetched)
    head, mark, body = whole.partition(READER_BODY)
    facts = {match[1]: match[2].strip() for match in READER_HEAD.finditer(head)} if mark else {}
    text = (body if mark else whole).strip()
    failed = TARGET_ERROR.search(facts.get("Warning", ""))
    title = facts.get("Title", "")
    return Page(
        url=url,
        title=title or url,
        text=text,
        via="reader",
        published=facts.get("Published Time", ""),
        flags=(
            *((TRUNCATED,) if fetched.is_truncated else ()),
            *((f"http_{failed[1]}",) if failed else ()),
            *text_flags(title, text),
        ),
    )


def _refuse_item_page(url: str) -> None:
    """Hacker News' own pages have a tool that gives more than their HTML."""
    parts = urlsplit(url)
    if parts.hostname in {"news.ycombinator.com", "www.news.ycombinator.com"} and parts.path == "/item":
        item = "".join(parse_qs(parts.query).get("id", ["..."])[:1])
        raise ToolError(f"{url} is a Hacker News page: use get_hn_comments with story_id={item} instead.")


def _error_words(url: str, fetched: Fetched) -> str:
    is_check = CHALLENGE in text_flags("", text_of(fetched)[:4_000])
    reason = f"it is behind a check for robots (status {fetched.status})" if is_check else fetched.problem
    return f"Could not read {url}: {reason}. Use another source, or search for the same text elsewhere."


def _empty_words(url: str, found: Extracted) -> str:
    why = f" ({', '.join(found.flags)})" if found.flags else ""
    return f"{url} has no readable text{why}. It may be built by scripts; use another source."
