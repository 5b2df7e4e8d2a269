"""Reading of files: documents for the index, and input files that the user gives with a question.

A parser reads HTML, PDF, office files and books, and texts are only decoded. A parsed input is stored next to its text.
"""

import asyncio
import codecs
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from explorer.documents.corpus.folder import MAX_FILE_BYTES, NO_TEXT, READ_FILES, FoundFile, readable
from explorer.documents.parsing.document import TRUNCATED, Document
from explorer.documents.parsing.kinds import FEED, HTML, JSON, PACKED, PDF, TEXT, kind_of
from explorer.documents.parsing.parser import DocumentParser
from explorer.schema.errors import ConfigError, ToolError
from explorer.schema.tool import SourceDraft
from explorer.text.frontmatter import read_frontmatter, with_frontmatter
from explorer.text.sanitize import single_line, visible
from explorer.workspace.access import MAX_NAME_BYTES

if TYPE_CHECKING:  # slow to import: a database, which few runs have
    from explorer.documents.corpus.database import StoredDocument

MAX_TEXT_CHARS = 2_000_000
"""The largest number of characters in a document: in any script, its bytes are within the limit of a stored source."""
TITLE_CHARS = 300
HEAD_BYTES = 8_192
TYPES = {
    **dict.fromkeys((".htm", ".html", ".xhtml", ".mhtml"), "text/html"),
    **dict.fromkeys((".md", ".markdown", ".txt", ".text", ".rst", ".org", ".csv", ".tsv", ".log"), "text/plain"),
    ".pdf": "application/pdf",
    ".json": "application/json",
}
"""The content type for each ending of a name, for files whose first bytes do not show their type."""
BOMS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
PARSED = frozenset({HTML, PDF, *PACKED})
"""Kinds whose text is stored next to the file."""
PAGE_MARK = re.compile(r"^\[(?:page|slide|sheet|chapter) (\d+)\]$", re.MULTILINE)
"""Matches the line before each page, slide, sheet or chapter in the text of a parsed file."""
PAIR = re.compile(rb"[\x81-\xfe][\x40-\xfe]")
FIRST_COMMON = 0xA1
"""The smallest second byte of the common characters in GB 18030."""
CHINESE_SHARE = 0.6


def readable_kind(body: bytes, name: str) -> str:
    """Return the kind of a file by its first bytes and its name; empty when the kind cannot be read."""
    kind = kind_of(body, TYPES.get(PurePosixPath(name).suffix.lower(), ""))
    if kind in PARSED:
        return kind
    if kind in {TEXT, JSON, FEED}:
        return TEXT
    head = body[:HEAD_BYTES]
    return "" if b"\0" in head or _decoded(head) is None else TEXT


async def read_file(parser: DocumentParser, body: bytes, file: FoundFile) -> "StoredDocument":
    """Return a file as a document whose text can be searched and cited.

    Raises:
        ToolError: The file has no text or cannot be parsed; the message says why.
    """
    kind = await asyncio.to_thread(readable_kind, body, file.name)
    if not kind:
        raise ToolError(NO_TEXT)
    content = await asyncio.to_thread(as_utf8, body) if kind == TEXT else body
    label = "text/plain" if kind == TEXT else ""
    document = await parser.parse(kind, content, url=f"file:{file.path}", content_type=label)
    return await asyncio.to_thread(_stored, document, file)


def _stored(document: Document, file: FoundFile) -> "StoredDocument":
    from explorer.documents.corpus.database import StoredDocument  # noqa: PLC0415 - slow to import

    text = visible(document.text)
    if not text.strip():
        raise ToolError.of("{path} has no text", path=file.path)
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
    """Return the bytes of a text in UTF-8; bytes in no usual encoding are returned unchanged."""
    text = _decoded(body)
    return body if text is None else text.encode("utf-8", "replace")


def _decoded(body: bytes) -> str | None:
    """Return a text from UTF-8, UTF-16, GB 18030 or Windows-1252; None for bytes in none of these encodings."""
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
    """Return the decoded text, None if it is not valid; an incomplete character at the end is ignored."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(body)
    except UnicodeDecodeError:
        return None


def _looks_chinese(body: bytes) -> bool:
    """Return whether bytes beyond ASCII mostly come in pairs, as in Chinese; in Western texts a letter follows."""
    pairs: list[bytes] = PAIR.findall(body)
    return sum(pair[1] >= FIRST_COMMON for pair in pairs) > CHINESE_SHARE * len(pairs)


def _page_starts(text: str, pages: int) -> tuple[tuple[int, int], ...]:
    """Return the offset and number of each page; text that looks like a mark counts only if its number is in order."""
    starts: list[tuple[int, int]] = []
    for match in PAGE_MARK.finditer(text) if pages else ():
        number = int(match[1])
        if number <= pages and (not starts or number > starts[-1][1]):
            starts.append((match.start(), number))
    return tuple(starts)


def _line(text: str) -> str:
    return single_line(text, TITLE_CHARS)


PARSED_SUFFIX = ".md"
"""The ending that is added to the name of a parsed file to name its text."""
ORIGINAL = "original"
"""The frontmatter field of a parsed text that names its original file."""
MAX_STEM_BYTES = MAX_NAME_BYTES - 16
"""The largest size of an input's name in bytes, with space for a number before it and `PARSED_SUFFIX` after it."""
MAX_ENDING_CHARS = 16
FACTS = ("title", "author", "published", "language")


@dataclass(frozen=True)
class InputFile:
    """A file of the user with its name in the run."""

    name: str
    body: bytes
    kind: str

    @property
    def is_parsed(self) -> bool:
        """Whether a parser makes the text of the file."""
        return self.kind in PARSED


def read_inputs(paths: Iterable[Path], given: Mapping[str, bytes] | None = None) -> list[InputFile]:
    """Return the user's files under distinct names; `given` has the bytes of files that are not on disk, by name.

    Raises:
        ConfigError: A file cannot be read, is too big, or is of no kind that is read.
    """
    inputs: list[InputFile] = []
    taken: set[str] = set()
    bodies = [(path, _body(path)) for path in paths] + [(Path(name), body) for name, body in (given or {}).items()]
    for path, body in bodies:
        kind = readable_kind(body, path.name)
        if not kind:
            raise ConfigError(f"{path} is none of {READ_FILES}", hint="convert it to one of these first")
        one = InputFile(_free_name(usable_name(path.name), taken), body, kind)
        taken |= {one.name, f"{one.name}{PARSED_SUFFIX}"} if one.is_parsed else {one.name}
        inputs.append(one)
    return inputs


def _body(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise ConfigError(
                f"{path} has {size} bytes; the limit is {MAX_FILE_BYTES}",
                hint="split it, or give the part that matters",
            )
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}", hint=f"give a file of {READ_FILES}: --file PATH"
        ) from error


def usable_name(name: str) -> str:
    """Return a file's name for a run: agents can read and write it, and every system can store it.

    Args:
        name: The name on disk; bytes that are not UTF-8 are decoded as Windows-1252, which they mostly are.
    """
    try:
        letters = os.fsencode(name).decode()
    except UnicodeDecodeError:
        letters = os.fsencode(name).decode("cp1252", "replace")
    shown = readable(letters.replace("\\", "_"))
    ending = PurePosixPath(shown).suffix[:MAX_ENDING_CHARS]
    stem = shown.removesuffix(ending).encode()[: MAX_STEM_BYTES - len(ending.encode())].decode(errors="ignore")
    return f"{stem}{ending}"


def _free_name(name: str, taken: set[str]) -> str:
    """Return the name, with a number before it if the name, or that of its parsed text, is already used."""
    number, free = 1, name
    while free in taken or f"{free}{PARSED_SUFFIX}" in taken:
        number += 1
        free = f"{number}-{name}"
    return free


async def parsed_texts(inputs: Iterable[InputFile], parser: DocumentParser) -> dict[str, str]:
    """Return the text of each file by name; the text of a parsed file has the file's name with `PARSED_SUFFIX`.

    Raises:
        ConfigError: A file has no text that can be read.
    """
    return {f"{one.name}{PARSED_SUFFIX if one.is_parsed else ''}": await _text(one, parser) for one in inputs}


async def _text(one: InputFile, parser: DocumentParser) -> str:
    if not one.is_parsed:
        return as_utf8(one.body).decode("utf-8", "replace")
    try:
        document = await read_file(parser, one.body, FoundFile(one.name, one.name, len(one.body), 0, 0))
    except ToolError as error:
        raise ConfigError(
            f"{one.name} cannot be used: {error.message}", hint="convert it to text or markdown first"
        ) from error
    return _with_head(one, document)


def _with_head(one: InputFile, document: "StoredDocument") -> str:
    facts = {name: getattr(document, name) for name in FACTS}
    known = {name: value for name, value in facts.items() if value}
    flags = {"flags": list(document.flags)} if document.flags else {}
    return with_frontmatter({ORIGINAL: one.name, **known, **flags}, document.text)


def input_drafts(paths: Iterable[str], read_text: Callable[[str], str]) -> dict[str, SourceDraft]:
    """Return the inputs of a run as sources by the path that agents read; a parsed text represents its original."""
    listed = list(paths)
    drafts = {path: _draft(path, read_text(path)) for path in listed if path.endswith(PARSED_SUFFIX)}
    parsed = {original for _, original in drafts.values()}
    rest = [path for path in listed if path not in drafts and path not in parsed]
    drafts |= {path: _draft(path, read_text(path)) for path in rest}
    return {path: drafts[path][0] for path in listed if path in drafts and path not in parsed}


def _draft(path: str, text: str) -> tuple[SourceDraft, str]:
    """Return a file as a source, and the path of the original file if the text is parsed; else an empty path."""
    folder, _, name = path.rpartition("/")
    head, body = read_frontmatter(text)
    original = str(head.get(ORIGINAL, ""))
    if f"{original}{PARSED_SUFFIX}" != name:
        return SourceDraft(url=f"file:{path}", title=name, kind="file", via="file", text=text), ""
    place = f"{folder}/{original}"
    flags = head.get("flags")
    draft = SourceDraft(
        url=f"file:{place}",
        title=str(head.get("title", original)),
        kind="file",
        via="file",
        author=str(head.get("author", "")),
        published=str(head.get("published", "")),
        language=str(head.get("language", "")),
        flags=tuple(str(flag) for flag in flags) if isinstance(flags, list) else (),  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - YAML
        text=body,
    )
    return draft, place
