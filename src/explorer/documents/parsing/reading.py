"""Which parser reads what; the parsers' libraries are loaded when they are first needed."""

from dataclasses import replace

from explorer.documents.parsing.document import TRUNCATED, Document
from explorer.schema.errors import ToolError

MAX_TEXT_CHARS = 5_000_000
"""Of one document; what lies beyond is left out, and the flag says so."""


def read_document(kind: str, body: bytes, *, url: str = "", content_type: str = "") -> Document:
    """Read a body of a kind, in this process and without any limits of its own.

    Raises:
        ToolError: It has no text to read; the message says why.
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
        case "pdf":
            from explorer.documents.parsing.pdf_files import read_pdf  # noqa: PLC0415 - the same

            return read_pdf(body)
        case "feed":
            from explorer.documents.parsing.feeds import read_feed  # noqa: PLC0415 - the same

            return read_feed(body, content_type=content_type)
        case "json":
            from explorer.documents.parsing.plain_texts import read_json  # noqa: PLC0415 - the same

            return read_json(body, url=url, content_type=content_type)
        case "text":
            from explorer.documents.parsing.plain_texts import read_text  # noqa: PLC0415 - the same

            return read_text(body, url=url, content_type=content_type)
        case _:
            raise ToolError(f"a document of the kind {kind!r} is not read")
