"""Reads a page: from the service whose thread it is, through a reader service when one is set, else directly.

Flags say what is missing or wrong. What cannot be read is an error with its reason.
A reader service, such as Jina's, gets a page's address appended to its own and answers with the page's text.
Of a page that is gone, the Internet Archive may have a copy: its Wayback availability API says which copy is closest to
a day (https://archive.org/help/wayback_api.php), and the copy is fetched as it was recorded (`id_`), without the
archive's own frame.
"""

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Annotated, LiteralString
from urllib.parse import urlencode, urlsplit

from pydantic import BeforeValidator, ValidationError

from explorer.documents.parsing.document import CHALLENGE, NO_TEXT_LAYER, TRUNCATED, Document
from explorer.documents.parsing.judgement import FEW_WORDS, language_of, text_flags, words
from explorer.documents.parsing.kinds import KINDS, PACKED, PDF, kind_of, text_of
from explorer.documents.parsing.parser import DocumentParser
from explorer.network.guard import NoSuchSiteError
from explorer.schema.errors import NoSuchThingError, ToolError
from explorer.sources.http.cache import ResponseCache
from explorer.sources.http.fetch import Web
from explorer.sources.http.fetched import Fetched, FetchLimits
from explorer.sources.http.wire import WireModel
from explorer.sources.page import Fetcher, ThreadReader, WebPage
from explorer.text.rendering import ModelText, code, codes, own
from explorer.text.sanitize import single_line

READER_LIMITS = FetchLimits(seconds=45.0, in_flight=4, is_service=True)
HEAD = re.compile(r"^(Title|URL Source|Published Time|Warning):[ \t]*(.*)$", re.MULTILINE)
BODY = "Markdown Content:"
TARGET_ERROR = re.compile(r"Target URL returned error (\d{3})")
STATUS_DIGITS = 3
MAX_WORDS_CHARS = 200
REFUSALS: Mapping[int, LiteralString] = {
    401: "its key is missing or was refused",
    402: "its credit is used up",
    409: "the page is beyond its budget",
    413: "the page is too large for it",
    429: "it asks to send fewer requests",
    451: "it refuses this page",
}
"""Failures of the service, by the first three digits of its codes (40104, 40203, ...), which are those of HTTP."""


class _Found(WireModel):
    title: str | None = None
    content: str | None = None
    publishedTime: str | None = None  # noqa: N815 - the vendor's name
    warning: str | None = None


class _Answer(WireModel):
    code: int | None = None
    status: int | None = None
    data: _Found | None = None
    message: str | None = None
    readableMessage: str | None = None  # noqa: N815 - the vendor's name


class ReaderService:
    """Reads pages through the service at `url`; only the service gets `key`, which may be empty."""

    def __init__(self, web: Web, url: str, key: str = "") -> None:
        self._web = web
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    async def read(self, url: str) -> WebPage:
        """Return the page as the reader service gives it.

        Raises:
            ToolError: It gives none; says why.
        """
        fetched = await self._web.get(
            f"{self._url}/{url}", accept="application/json", limits=READER_LIMITS, headers=self._headers
        )
        answer = _answer(fetched)
        if fetched.problem:
            raise ToolError(_refusal(answer, fetched.status, fetched.problem))
        if answer is None:
            return _from_text(url, fetched)
        if answer.data is None:
            raise ToolError(_refusal(answer, answer.code or fetched.status, own("it gave no text")))
        found = answer.data
        facts = {"Title": found.title or "", "Published Time": found.publishedTime or ""}
        return _page(url, {**facts, "Warning": found.warning or ""}, (found.content or "").strip(), fetched)


def _answer(fetched: Fetched) -> _Answer | None:
    """Return the JSON form of an answer; None for text, which some readers always send."""
    if fetched.body.lstrip()[:1] != b"{":
        return None
    try:
        answer = _Answer.model_validate_json(fetched.body)
    except ValidationError:
        return None
    return answer if answer.code is not None or answer.data is not None else None


def _refusal(answer: _Answer | None, status: int, otherwise: str) -> ModelText:
    """Return the reason of a refusal: a fixed text for the documented codes, else the service's own message."""
    code = answer.code if answer and answer.code else status
    known = REFUSALS.get(int(str(code)[:STATUS_DIGITS]))
    message_text = single_line((answer.readableMessage or answer.message or "") if answer else "")
    if not known and not message_text:
        return own("{otherwise}.", otherwise=otherwise)
    detail = own("") if known else own(' ("{words}")', words=message_text[:MAX_WORDS_CHARS])
    return own("{why}{detail} (code {code}).", why=own(known) if known else otherwise, detail=detail, code=code)


def _from_text(url: str, fetched: Fetched) -> WebPage:
    """Read the form `Title: .. URL Source: .. Published Time: .. Warning: .. Markdown Content: ..`."""
    whole = text_of(fetched.body, fetched.content_type)
    head, mark, body = whole.partition(BODY)
    facts = {match[1]: match[2].strip() for match in HEAD.finditer(head)} if mark else {}
    return _page(url, facts, (body if mark else whole).strip(), fetched)


def _page(url: str, facts: dict[str, str], text: str, fetched: Fetched) -> WebPage:
    failed = TARGET_ERROR.search(facts.get("Warning", "") or text[:500])
    title = facts.get("Title", "")
    return WebPage(
        url=url,
        title=title or url,
        text=text,
        via="reader",
        published=facts.get("Published Time", ""),
        language=language_of("", text),
        kept_since=fetched.kept_since,
        flags=(
            *((TRUNCATED,) if fetched.is_truncated else ()),
            *((f"http_{failed[1]}",) if failed else ()),
            *text_flags(title, text),
        ),
    )


PUBLIC_ARCHIVE = "https://archive.org"
PLAYBACK = "web.archive.org"
"""The host that has the copies of the public archive."""
ARCHIVE_LIMITS = FetchLimits(seconds=30.0, is_service=True, in_flight=1)
MOMENT = re.compile(r"\d{14}")
OK = "200"
ARCHIVED = "archived"
"""The flag of an archived copy, followed by its day."""


class _Copy(WireModel):
    available: bool = False
    timestamp: str = ""
    status: str = ""


class _Copies(WireModel):
    closest: _Copy | None = None


class _Availability(WireModel):
    archived_snapshots: Annotated[_Copies, BeforeValidator(lambda value: value or {})] = _Copies()


@dataclass(frozen=True)
class ArchivedCopy:
    """A copy of a page, and the day on which it was recorded."""

    fetched: Fetched
    url: str
    """The address at which people see it."""
    day: date

    @property
    def flag(self) -> str:
        """The flag of its source, which reports show: `archived_2013-09-19`."""
        return f"{ARCHIVED}_{self.day.isoformat()}"


class WebArchive:
    """Asks the archive at `url`; it learns the addresses of the pages that are gone."""

    def __init__(self, web: Fetcher, url: str = PUBLIC_ARCHIVE) -> None:
        self._web = web
        self._url = url.rstrip("/")
        parts = urlsplit(self._url)
        is_public = self._url == PUBLIC_ARCHIVE
        self._playback = f"https://{PLAYBACK}" if is_public else f"{parts.scheme}://{parts.netloc}"

    async def latest_copy(self, url: str) -> ArchivedCopy | None:
        """Return the latest copy of a page that had an answer; None where there is none, or the archive is down."""
        try:
            asked = f"{self._url}/wayback/available?{urlencode({'url': url})}"
            found = await self._web.get(asked, limits=ARCHIVE_LIMITS)
            copy = _Availability.model_validate_json(found.body).archived_snapshots.closest
            if found.problem or copy is None or not copy.available or copy.status != OK:
                return None
            if not MOMENT.fullmatch(copy.timestamp):
                return None
            day = date.fromisoformat(copy.timestamp[:8])
            fetched = await self._web.get(f"{self._playback}/web/{copy.timestamp}id_/{url}", limits=ARCHIVE_LIMITS)
        except (ToolError, ValidationError, ValueError):
            return None
        return None if fetched.problem else ArchivedCopy(fetched, f"{self._playback}/web/{copy.timestamp}/{url}", day)


WHOLE_FILE = FetchLimits(seconds=60.0, body_bytes=32_000_000)
"""Limits for a PDF and for packed files. Half of one cannot be read, because its table of contents is at the end."""
PAGE_TYPES = "text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.9,application/json;q=0.8,*/*;q=0.5"
ERROR_HEAD = 4_000
GONE = frozenset({404, 410})
"""Statuses which say that the page does not exist."""


class PageReader:
    """Reads pages; `reader` is asked for public pages, `threads` for those of some hosts, `archive` for those gone."""

    def __init__(
        self,
        web: Web,
        parser: DocumentParser,
        *,
        reader: ReaderService | None = None,
        threads: Mapping[str, ThreadReader] | None = None,
        archive: WebArchive | None = None,
    ) -> None:
        self._web = web
        self._parser = parser
        self._reader = reader
        self._threads = threads or {}
        self._archive = archive
        self._pages = ResponseCache[WebPage](time.monotonic)
        self._locks: dict[str, asyncio.Lock] = {}

    async def read(self, url: str) -> WebPage:
        """Read one page; a second caller waits for a page that is being read.

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
        """Return the page of the service that has the host, or a domain above it."""
        host = urlsplit(url).hostname or ""
        while host and host not in self._threads:
            host = host.partition(".")[2]
        return await self._threads[host].read(url) if host else None

    async def _page(self, url: str) -> WebPage:
        """Return the page, without the reader for hosts that the user allowed for this machine."""
        if self._reader is None or self._web.guard.is_allowed_host(urlsplit(url).hostname or ""):
            return await self._directly(url)
        return await self._through(self._reader, url)

    async def _through(self, reader: ReaderService, url: str) -> WebPage:
        """Return the reader's answer, or the page itself if that answer is empty or doubtful."""
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
        try:
            fetched = await self._web.get(url, accept=PAGE_TYPES)
        except NoSuchSiteError:
            if copy := await self._copy(url, own("its host is gone")):
                return copy
            raise
        if fetched.problem:
            if fetched.status in GONE and (copy := await self._copy(url, own("status {s}", s=fetched.status))):
                return copy
            fault = NoSuchThingError if fetched.status in GONE else ToolError
            raise fault(_error_words(url, fetched))
        return await self._document(url, fetched)

    async def _copy(self, url: str, why: ModelText) -> WebPage | None:
        """Return the archived copy of a page that is gone; None where there is none that can be read."""
        if self._archive is None or self._web.guard.is_allowed_host(urlsplit(url).hostname or ""):
            return None
        copy = await self._archive.latest_copy(url)
        if copy is None:
            return None
        try:
            page = await self._document(url, copy.fetched)
        except ToolError:
            return None
        note = own("The page is gone ({why}). This is its archived copy of {day}: say so.", why=why, day=copy.day)
        return replace(page, url=copy.url, via="archive", flags=(copy.flag, *page.flags), notes=(note, *page.notes))

    async def _document(self, url: str, fetched: Fetched) -> WebPage:
        """Return what was fetched as a page.

        Raises:
            ToolError: It has no text to read.
        """
        kind = kind_of(fetched.body, fetched.content_type)
        if kind not in KINDS:
            raise ToolError.of("{url} is {kind}, not text. Look for a page about it instead.", url=url, kind=kind[:80])
        if kind in {PDF, *PACKED} and fetched.is_truncated:
            fetched = await self._web.get(url, accept=PAGE_TYPES, limits=WHOLE_FILE)
            _refuse_half(url, kind, fetched)
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


def _refuse_half(url: str, kind: str, fetched: Fetched) -> None:
    if fetched.is_truncated:
        size = WHOLE_FILE.body_bytes // 1_000_000
        raise ToolError.of(
            "{url} is a file ({kind}) of more than {size} MB, which is not read. Look for a page about it instead.",
            url=url,
            kind=code(kind),
            size=size,
        )


def _error_words(url: str, fetched: Fetched) -> str:
    head = text_of(fetched.body, fetched.content_type)[:ERROR_HEAD]
    is_check = CHALLENGE in text_flags("", head)
    reason = f"it is behind a check for robots (status {fetched.status})" if is_check else fetched.problem
    return f"Could not read {url}: {reason}. Use another source, or search for the same text elsewhere."


def _empty_words(url: str, found: Document) -> ModelText:
    if NO_TEXT_LAYER in found.flags:
        return own(
            "{url} is a PDF whose {pages} pages are pictures without a text layer, so there are no words to read. Use "
            "another source.",
            url=url,
            pages=found.pages,
        )
    why = own(" ({flags})", flags=codes(found.flags)) if found.flags else own("")
    return own("{url} has no readable text{why}. It may be built by scripts; use another source.", url=url, why=why)
