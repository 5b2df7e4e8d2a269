"""A Jina-style reader: a service that gets a page's address appended to its own and answers with the page's text."""

import re

from pydantic import TypeAdapter, ValidationError

from explorer.documents.parsing.document import TRUNCATED
from explorer.documents.parsing.judgement import language_of, text_flags
from explorer.documents.parsing.kinds import text_of
from explorer.schema.errors import ToolError
from explorer.sources.http.fetch import Fetched, FetchLimits, Web
from explorer.sources.http.wire import WireModel
from explorer.sources.page import WebPage
from explorer.text.sanitize import single_line

READER_LIMITS = FetchLimits(seconds=45.0, in_flight=4, is_service=True)
HEAD = re.compile(r"^(Title|URL Source|Published Time|Warning):[ \t]*(.*)$", re.MULTILINE)
BODY = "Markdown Content:"
TARGET_ERROR = re.compile(r"Target URL returned error (\d{3})")
STATUS_DIGITS = 3
MAX_WORDS_CHARS = 200
REFUSALS = {
    401: "its key is missing or was refused",
    402: "its credit is used up",
    409: "the page is beyond its budget",
    413: "the page is too large for it",
    429: "it asks to send fewer requests",
    451: "it refuses this page",
}
"""Of the service, by the first three digits of its own codes (40104, 40203, ...), which are those of HTTP."""


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


ANSWER = TypeAdapter(_Answer)


class ReaderService:
    """The reader at `url`; `key` is sent to it alone, and may be empty."""

    def __init__(self, web: Web, url: str, key: str = "") -> None:
        self._web = web
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    async def read(self, url: str) -> WebPage:
        """The page as the reader gives it.

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
            raise ToolError(_refusal(answer, answer.code or fetched.status, "it gave no text"))
        found = answer.data
        facts = {"Title": found.title or "", "Published Time": found.publishedTime or ""}
        return _page(url, {**facts, "Warning": found.warning or ""}, (found.content or "").strip(), fetched)


def _answer(fetched: Fetched) -> _Answer | None:
    """Its JSON form; None when it answered with text, as some readers always do."""
    if fetched.body.lstrip()[:1] != b"{":
        return None
    try:
        answer = ANSWER.validate_json(fetched.body)
    except ValidationError:
        return None
    return answer if answer.code is not None or answer.data is not None else None


def _refusal(answer: _Answer | None, status: int, otherwise: str) -> str:
    """Why the service refused, in our words for the codes it documents, and else in its own."""
    code = answer.code if answer and answer.code else status
    known = REFUSALS.get(int(str(code)[:STATUS_DIGITS]))
    message_text = single_line((answer.readableMessage or answer.message or "") if answer else "")
    detail = f' ("{message_text[:MAX_WORDS_CHARS]}")' if message_text and not known else ""
    return f"{known or otherwise}{detail} (code {code})." if known or detail else f"{otherwise}."


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
