"""From a file's bytes to a document of the index: HTML and PDF through a parser, texts as they are."""

import asyncio
import codecs
import re
from pathlib import PurePosixPath

from explorer.documents.corpus.database import StoredDocument
from explorer.documents.corpus.folder import NO_TEXT, FoundFile
from explorer.documents.parsing.document import TRUNCATED, Document
from explorer.documents.parsing.kinds import FEED, HTML, JSON, PDF, TEXT, kind_of
from explorer.documents.parsing.parser import DocumentParser
from explorer.schema.errors import ToolError
from explorer.text.sanitize import single_line, visible

MAX_TEXT_CHARS = 2_000_000
"""Of one document: in any script no more bytes than a stored source may have."""
TITLE_CHARS = 300
HEAD_BYTES = 8_192
TYPES = {
    **dict.fromkeys((".htm", ".html", ".xhtml", ".mhtml"), "text/html"),
    **dict.fromkeys((".md", ".markdown", ".txt", ".text", ".rst", ".org", ".csv", ".tsv", ".log"), "text/plain"),
    ".pdf": "application/pdf",
    ".json": "application/json",
}
"""What a name says, for files whose first bytes do not."""
BOMS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
PAGE_MARK = re.compile(r"^\[page (\d+)\]$", re.MULTILINE)
"""What stands before each page of a parsed PDF."""
PAIR = re.compile(rb"[\x81-\xfe][\x40-\xfe]")
FIRST_COMMON = 0xA1
"""From this second byte on stand the common characters of GB 18030."""
CHINESE_SHARE = 0.6


def readable_kind(body: bytes, name: str) -> str:
    """What a file is, by its first bytes and its name: a kind that can be read, or empty."""
    kind = kind_of(body, TYPES.get(PurePosixPath(name).suffix.lower(), ""))
    if kind in {HTML, PDF}:
        return kind
    if kind in {TEXT, JSON, FEED}:
        return TEXT
    head = body[:HEAD_BYTES]
    return "" if b"\0" in head or _decoded(head) is None else TEXT


async def read_file(parser: DocumentParser, body: bytes, file: FoundFile) -> StoredDocument:
    """A file's text, as it will be searched and cited.

    Raises:
        ToolError: It has none, or cannot be parsed; says why.
    """
    kind = await asyncio.to_thread(readable_kind, body, file.name)
    if not kind:
        raise ToolError(NO_TEXT)
    content = await asyncio.to_thread(as_utf8, body) if kind == TEXT else body
    label = "text/plain" if kind == TEXT else ""
    document = await parser.parse(kind, content, url=f"file:{file.path}", content_type=label)
    return await asyncio.to_thread(_stored, document, file)


def _stored(document: Document, file: FoundFile) -> StoredDocument:
    text = visible(document.text)
    if not text.strip():
        raise ToolError(f"{file.path} holds no text")
    flags = document.flags
    if len(text) > MAX_TEXT_CHARS:
        text, flags = text[:MAX_TEXT_CHARS], tuple(dict.fromkeys((*flags, TRUNCATED)))
    return StoredDocument(
        path=file.path,
        title=_line(document.title) or PurePosixPath(file.path).stem,
        author=_line(document.author),
        published=_line(document.published),
        language=_line(document.language),
        mtime_ns=file.mtime_ns,
        flags=flags,
        pages=document.pages,
        page_starts=_page_starts(text, document.pages),
        text=text,
    )


def as_utf8(body: bytes) -> bytes:
    """A text's bytes in UTF-8, whichever of the usual encodings they are in."""
    text = _decoded(body)
    return body if text is None else text.encode("utf-8", "replace")


def _decoded(body: bytes) -> str | None:
    """The characters of a text in UTF-8, UTF-16, GB 18030 or Windows-1252; None when it is none of them."""
    if body.startswith(BOMS):
        return body.decode("utf-8-sig" if body.startswith(codecs.BOM_UTF8) else "utf-16", "replace")
    text = _decode_whole(body, "utf-8")
    if text is None and _looks_chinese(body):
        text = _decode_whole(body, "gb18030")
    if text is not None:
        return text
    text = body.decode("cp1252", "replace")
    return None if sum(c < " " and c not in "\t\n\r\f\x1b" for c in text) * 100 > len(text) else text


def _decode_whole(body: bytes, encoding: str) -> str | None:
    """A character cut at the end is forgiven: it may be the head of a file."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(body)
    except UnicodeDecodeError:
        return None


def _looks_chinese(body: bytes) -> bool:
    """Whether bytes beyond ASCII come in pairs: in Western texts a letter follows."""
    pairs: list[bytes] = PAIR.findall(body)
    return sum(pair[1] >= FIRST_COMMON for pair in pairs) > CHINESE_SHARE * len(pairs)


def _page_starts(text: str, pages: int) -> tuple[tuple[int, int], ...]:
    """Where each page begins, with its number; a page's own words may look like a mark, but not in the right order."""
    starts: list[tuple[int, int]] = []
    for match in PAGE_MARK.finditer(text) if pages else ():
        number = int(match[1])
        if number <= pages and (not starts or number > starts[-1][1]):
            starts.append((match.start(), number))
    return tuple(starts)


def _line(text: str) -> str:
    return single_line(text, TITLE_CHARS)
