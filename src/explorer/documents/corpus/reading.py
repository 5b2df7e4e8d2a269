"""From a file's bytes to a document of the index, or to a file given with a question.

HTML and PDF go through a parser, texts are taken as they are; a given HTML or PDF file is kept, too, next to its text.
"""

import asyncio
import codecs
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from explorer.documents.corpus.database import StoredDocument
from explorer.documents.corpus.folder import MAX_FILE_BYTES, NO_TEXT, FoundFile, readable
from explorer.documents.parsing.document import TRUNCATED, Document
from explorer.documents.parsing.kinds import FEED, HTML, JSON, PDF, TEXT, kind_of
from explorer.documents.parsing.parser import DocumentParser
from explorer.schema.errors import ConfigError, ToolError
from explorer.schema.tool import SourceDraft
from explorer.text.frontmatter import read_frontmatter, with_frontmatter
from explorer.text.sanitize import single_line, visible
from explorer.workspace.access import MAX_NAME_BYTES

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
"""What precedes each page of a parsed PDF."""
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
        raise ToolError(f"{file.path} has no text")
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


PARSED_SUFFIX = ".md"
"""Ending of the text next to a file that is none."""
ORIGINAL = "original"
"""The field of a parsed text's frontmatter that names the file it was made of."""
MAX_STEM_BYTES = MAX_NAME_BYTES - 16
"""Of an input's name: a number may come before it, and the ending of its parsed text behind it."""
MAX_ENDING_CHARS = 16
FACTS = ("title", "author", "published", "language")


@dataclass(frozen=True)
class InputFile:
    """A file of the user's, by the name it gets in the run."""

    name: str
    body: bytes
    kind: str

    @property
    def is_parsed(self) -> bool:
        """Whether its text is made by a parser."""
        return self.kind in {HTML, PDF}


def read_inputs(paths: Iterable[Path], given: Mapping[str, bytes] | None = None) -> list[InputFile]:
    """The user's files, none with another's name; `given` are those that are not on disk, by name.

    Raises:
        ConfigError: One cannot be read, is too big, or has no text.
    """
    inputs: list[InputFile] = []
    taken: set[str] = set()
    bodies = [(path, _body(path)) for path in paths] + [(Path(name), body) for name, body in (given or {}).items()]
    for path, body in bodies:
        kind = readable_kind(body, path.name)
        if not kind:
            raise ConfigError(f"{path} is neither text nor HTML nor PDF", hint="convert it to one of these first")
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
            f"{path} cannot be read: {error.strerror}", hint="give a text, HTML or PDF file: --file PATH"
        ) from error


def usable_name(name: str) -> str:
    """Return a file's name as a run can have it: agents read and write it, and every system can store it.

    Args:
        name: As the disk has it; bytes that are no UTF-8 are read as Western letters, which they mostly are.
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
    """The name itself, unless it or that of its parsed text is another's."""
    number, free = 1, name
    while free in taken or f"{free}{PARSED_SUFFIX}" in taken:
        number += 1
        free = f"{number}-{name}"
    return free


async def parsed_texts(inputs: Iterable[InputFile], parser: DocumentParser) -> dict[str, str]:
    """What agents can read: each file's text under its name, that of HTML and PDF under a name of its own.

    Raises:
        ConfigError: A file has no text that can be read.
    """
    return {_text_name(one): await _text(one, parser) for one in inputs}


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


def _text_name(one: InputFile) -> str:
    return f"{one.name}{PARSED_SUFFIX}" if one.is_parsed else one.name


def _with_head(one: InputFile, document: StoredDocument) -> str:
    facts = {name: getattr(document, name) for name in FACTS}
    known = {name: value for name, value in facts.items() if value}
    flags = {"flags": list(document.flags)} if document.flags else {}
    return with_frontmatter({ORIGINAL: one.name, **known, **flags}, document.text)


def input_drafts(paths: Iterable[str], read_text: Callable[[str], str]) -> dict[str, SourceDraft]:
    """The inputs of a run as sources, by the path agents read: a parsed text represents the file it was made of."""
    listed = list(paths)
    drafts = {path: _draft(path, read_text(path)) for path in listed if path.endswith(PARSED_SUFFIX)}
    parsed = {original for _, original in drafts.values()}
    rest = [path for path in listed if path not in drafts and path not in parsed]
    drafts |= {path: _draft(path, read_text(path)) for path in rest}
    return {path: drafts[path][0] for path in listed if path in drafts and path not in parsed}


def _draft(path: str, text: str) -> tuple[SourceDraft, str]:
    """A file as a source, and the path of the original when its text was made by a parser."""
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
