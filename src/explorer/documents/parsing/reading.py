"""The choice of the parser for each kind of document; the parsers' libraries are loaded when first needed.

This module itself reads plain texts and JSON.
"""

import json
import re
from contextlib import suppress
from dataclasses import replace
from urllib.parse import unquote, urlsplit

from explorer.documents.parsing.document import DAMAGED, MAX_PIECE_CHARS, TRUNCATED, Document
from explorer.documents.parsing.kinds import COMMENTS, FEED, JSON, PDF, PDF_AGAIN, text_of
from explorer.schema.errors import ToolError

TITLE_CHARS = 200
TITLE_KEYS = ("title", "name", "full_name")
MAX_LAID_OUT = 2_000_000
"""The largest number of characters of JSON that is formatted; longer JSON is left unchanged."""


def read_text(body: bytes, *, url: str = "", content_type: str = "") -> Document:
    """Return a plain text unchanged; its title is a heading in its first line, else its file's name."""
    from explorer.documents.parsing.judgement import language_of  # noqa: PLC0415 - its patterns take long to load

    text = text_of(body, content_type).strip()
    heading = re.match(r"#\s+(.+)", text)
    return Document(title=heading[1].strip() if heading else _name(url), text=text, language=language_of("", text))


def read_json(body: bytes, *, url: str = "", content_type: str = "") -> Document:
    """Return JSON with one value per line; text that is not JSON, or is too long to format, is returned unchanged."""
    text = text_of(body, content_type).strip()
    title = _name(url)
    if len(text) <= MAX_LAID_OUT:
        try:
            value: object = json.loads(text)
        except (ValueError, RecursionError):
            return Document(title=title, text=text)
        text = json.dumps(value, ensure_ascii=False, indent=1)
        title = _json_title(value) or title
    return Document(title=title, text=text)


def _json_title(value: object) -> str:
    if isinstance(value, dict):
        for key in TITLE_KEYS:
            if isinstance(named := value.get(key), str) and named.strip():  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - any JSON
                return " ".join(named.split())[:TITLE_CHARS]
    return ""


def _name(url: str) -> str:
    return unquote(urlsplit(url).path.rstrip("/").rpartition("/")[2])


MAX_TEXT_CHARS = 5_000_000
"""The largest number of characters of a document; the rest is left out, and `TRUNCATED` is set."""


def read_document(kind: str, body: bytes, *, url: str = "", content_type: str = "") -> Document:
    """Return a body of a kind as a document, parsed in this process without limits of time or memory.

    Raises:
        ToolError: The body has no text to read; the message says why.
    """
    try:
        found = read_once(kind, body, url=url, content_type=content_type)
    except ToolError as error:
        if not (again := again_as(kind, None, error.message)):
            raise
        return read_once(again, body)
    if again := again_as(kind, found):
        with suppress(ToolError):
            return read_once(again, body)
    return found


def again_as(kind: str, document: Document | None, problem: str = "") -> str:
    """Return the kind that a body is read as once more, after a first result; empty when that one is final."""
    has_nothing = problem == DAMAGED if document is None else not document.text
    return PDF_AGAIN if kind == PDF and has_nothing else ""


def read_once(kind: str, body: bytes, *, url: str = "", content_type: str = "") -> Document:
    """Return a body as a document, read with the libraries of this kind only.

    Raises:
        ToolError: The body has no text to read; the message says why.
    """
    document = _read(kind, body, url, content_type)
    if len(document.text) <= MAX_TEXT_CHARS:
        return document
    flags = (*document.flags, TRUNCATED)
    return replace(document, text=document.text[:MAX_TEXT_CHARS], flags=tuple(dict.fromkeys(flags)))


def _read(kind: str, body: bytes, url: str, content_type: str) -> Document:
    match kind:
        case "html":
            from explorer.documents.parsing.html_pages import read_html  # noqa: PLC0415 - only what is asked for is loaded

            return read_html(body, url=url, content_type=content_type)
        case "pdf" | "pdf again":
            from explorer.documents.parsing.pdf_files import read_pdf, read_pdf_again  # noqa: PLC0415 - the same

            return read_pdf(body) if kind == PDF else read_pdf_again(body)
        case "feed" | "entries":
            from explorer.documents.parsing.feeds import read_entries, read_feed  # noqa: PLC0415 - the same

            return (read_feed if kind == FEED else read_entries)(body, content_type=content_type)
        case "comments" | "posts":
            from explorer.documents.parsing.comment_html import plain_text, read_pieces  # noqa: PLC0415 - the same

            return read_pieces(body, plain_text if kind == COMMENTS else _markdown)
        case "docx" | "pptx" | "xlsx" | "epub":
            from explorer.documents.parsing.office_files import read_office  # noqa: PLC0415 - the same

            return read_office(kind, body)
        case "json" | "text":
            return (read_json if kind == JSON else read_text)(body, url=url, content_type=content_type)
        case _:
            raise ToolError.of("a document of the kind {kind} is not read", kind=repr(kind))


def _markdown(html: str) -> str:
    from explorer.documents.parsing.html_pages import markdown_of  # noqa: PLC0415 - the same

    return markdown_of(html[:MAX_PIECE_CHARS])
