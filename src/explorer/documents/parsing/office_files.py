"""The text of Word, PowerPoint and Excel files and of EPUB books, with a mark before each slide, sheet and chapter.

All four are ZIP archives of XML. Word files are read by mammoth, sheets by calamine; slides and chapters are plain
enough for the standard library. Macros, embedded files and links to other files are not opened.
"""

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from urllib.parse import unquote
from xml.etree import ElementTree as ET
from xml.parsers import expat

from explorer.documents.parsing.document import (
    NOT_READ,
    OWN_ENTITIES,
    TRUNCATED,
    UNPACKS_TO_TOO_MUCH,
    Document,
)
from explorer.documents.parsing.html_pages import markdown_of
from explorer.documents.parsing.judgement import language_of
from explorer.documents.parsing.kinds import DOCX, EPUB, PPTX, XLSX, text_of
from explorer.schema.errors import ToolError
from explorer.text.sanitize import single_line

MAX_UNPACKED_BYTES = 300_000_000
MAX_ENTRIES = 10_000
MAX_CHARS = 4_000_000
TITLE_CHARS = 150
XML_NAMES = re.compile(r".*\.(xml|rels|opf|vml)", re.IGNORECASE)
ROWS = re.compile(r"<tr\b[^>]*>(.*?)</tr>", re.DOTALL | re.IGNORECASE)
CELLS = re.compile(r"<t[dh]\b[^>]*>(.*?)</t[dh]>", re.DOTALL | re.IGNORECASE)
BLOCK_TAGS = re.compile(r"</?(?:p|div|ul|ol|li|h[1-6]|br)\b[^>]*>", re.IGNORECASE)
CORE = "docProps/core.xml"
CONTAINER = "META-INF/container.xml"
PRESENTATION = "ppt/presentation.xml"
RELATION_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
NOTES = "/notesSlide"

DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    ET.ParseError,
    expat.ExpatError,
    *(OSError, EOFError, LookupError, ValueError, TypeError, AttributeError, StopIteration),
    *(RuntimeError, NotImplementedError, RecursionError),
)
"""What the libraries raise on files that are not as they should be; a RuntimeError is a password."""
Part = tuple[str, str]
"""The mark of a part, such as `slide 3`, and its text."""


def read_office(kind: str, body: bytes) -> Document:
    """Return the text of a file of a kind, with its metadata.

    Raises:
        ToolError: It is damaged, locked, or unpacks to too much.
    """
    with _damage_named():
        archive = zipfile.ZipFile(io.BytesIO(body))
        _check(archive)
        parts = list(_some(READERS[kind](body, archive)))
        facts = _facts(archive, _package(archive) if kind == EPUB else CORE)
    return _document(parts, facts)


@contextmanager
def _damage_named() -> Generator[None]:
    """Turn what libraries raise on files that are not as they should be into one error.

    Raises:
        ToolError: The file cannot be read.
    """
    try:
        yield
    except DAMAGE as error:
        raise ToolError(NOT_READ) from error


def _check(archive: zipfile.ZipFile) -> None:
    """Refuse bombs before anything is unpacked, and XML that declares entities of its own.

    Raises:
        ToolError: It is one.
    """
    entries = archive.infolist()
    if len(entries) > MAX_ENTRIES or sum(entry.file_size for entry in entries) > MAX_UNPACKED_BYTES:
        raise ToolError(UNPACKS_TO_TOO_MUCH)
    for entry in entries:
        if XML_NAMES.fullmatch(entry.filename) and _declares_entities(archive, entry):
            raise ToolError(OWN_ENTITIES)


class _PrologEndedError(Exception):
    """The first element of an XML file is reached, so that no declaration can follow."""


def _declares_entities(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bool:
    """Return whether an XML file has declarations inside; its encoding is its own, so a parser has to look."""
    found: list[int] = []

    def on_type(_name: str, _system: str | None, _public: str | None, has_declarations: int) -> None:
        found.append(has_declarations)

    def on_element(_name: str, _attributes: object) -> None:
        raise _PrologEndedError

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = on_type
    parser.StartElementHandler = on_element
    with archive.open(entry) as file:
        try:
            while (piece := file.read(4_096)) and not any(found):
                parser.Parse(piece)
        except _PrologEndedError:
            pass
        except expat.ExpatError:
            return any(found)
    return any(found)


def _docx(body: bytes, _archive: zipfile.ZipFile) -> Iterator[Part]:
    import mammoth  # noqa: PLC0415 - only the worker needs it

    def no_picture(_image: object) -> list[object]:
        return []

    found = mammoth.convert_to_html(  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] - not annotated there
        io.BytesIO(body), convert_image=no_picture, include_embedded_style_map=False, external_file_access=False
    )
    yield "", markdown_of(_with_rows(str(found.value)))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - the same


def _with_rows(html: str) -> str:
    """Return HTML with each row of a table on a line, its cells apart by bars."""

    def line(row: re.Match[str]) -> str:
        cells = (" ".join(BLOCK_TAGS.sub(" ", cell).split()) for cell in CELLS.findall(row[1]))
        return f"{' | '.join(cells)}<br>"

    return ROWS.sub(line, html)


def _xlsx(body: bytes, _archive: zipfile.ZipFile) -> Iterator[Part]:
    from python_calamine import CalamineError, CalamineWorkbook  # noqa: PLC0415 - only the worker needs it

    try:
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(body))
        for number, name in enumerate(workbook.sheet_names, start=1):
            lines = _rows(workbook.get_sheet_by_index(number - 1).iter_rows())
            yield f"sheet {number}", f"{single_line(name)}\n\n{lines}" if lines else ""
    except CalamineError as error:
        raise ToolError(NOT_READ) from error


def _rows(rows: Iterable[Sequence[object]]) -> str:
    """Return the rows with text as lines, their cells apart by bars, up to a little more than the limit."""
    lines: list[str] = []
    chars = 0
    for row in rows:
        line = " | ".join(map(_cell, row)).rstrip(" |")
        lines += [line] if line.strip(" |") else []
        chars += len(line)
        if chars > MAX_CHARS:
            break
    return "\n".join(lines)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return f"{value:.15g}"
    return single_line(str(value))


def _pptx(_body: bytes, archive: zipfile.ZipFile) -> Iterator[Part]:
    targets = {key: path for key, (path, _kind) in _relations(archive, PRESENTATION).items()}
    slides = (one.get(RELATION_ID, "") for one in _tree(archive, PRESENTATION).iter() if _local(one) == "sldId")
    for number, path in enumerate((targets[key] for key in slides), start=1):
        notes = [target for target, kind in _relations(archive, path).values() if kind.endswith(NOTES)]
        spoken = "\n".join(_slide_text(archive, one) for one in notes)
        text = _slide_text(archive, path)
        yield f"slide {number}", f"{text}\n\nNotes: {spoken}" if spoken.strip() else text


def _slide_text(archive: zipfile.ZipFile, path: str) -> str:
    """Return the paragraphs and the rows of tables on a slide, in the order of the file."""
    lines: list[str] = []
    _add_lines(_tree(archive, path), lines)
    return "\n".join(line for line in lines if line)


def _add_lines(element: ET.Element, lines: list[str]) -> None:
    name = _local(element)
    if name == "tr":
        cells = (one for one in element if _local(one) == "tc")
        lines.append(" | ".join(" ".join(_paragraphs(cell)) for cell in cells))
    elif name == "p":
        lines.append(_paragraph(element))
    elif name != "fld" and element.get("type") not in {"sldNum", "dt", "ftr"}:
        for child in element:
            _add_lines(child, lines)


def _paragraphs(element: ET.Element) -> Iterator[str]:
    return (text for one in element.iter() if _local(one) == "p" and (text := _paragraph(one)))


def _paragraph(element: ET.Element) -> str:
    words = (one.text or "" if _local(one) == "t" else " " for one in element.iter() if _local(one) in {"t", "br"})
    return " ".join("".join(words).split())


def _epub(_body: bytes, archive: zipfile.ZipFile) -> Iterator[Part]:
    path = _package(archive)
    package = _tree(archive, path)
    items = {one.get("id"): one for one in package.iter() if _local(one) == "item"}
    order = [one.get("idref") for one in package.iter() if _local(one) == "itemref"]
    for number, item in enumerate((items[key] for key in order if key in items), start=1):
        name = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(item.get("href", ""))))
        if name in archive.namelist():
            yield f"chapter {number}", markdown_of(_with_rows(text_of(archive.read(name))))


def _package(archive: zipfile.ZipFile) -> str:
    """Return the name of the file that lists the chapters of a book."""
    return next(one.get("full-path", "") for one in _tree(archive, CONTAINER).iter() if _local(one) == "rootfile")


READERS: Mapping[str, Callable[[bytes, zipfile.ZipFile], Iterator[Part]]] = {
    DOCX: _docx,
    XLSX: _xlsx,
    PPTX: _pptx,
    EPUB: _epub,
}


def _tree(archive: zipfile.ZipFile, name: str) -> ET.Element:
    return ET.fromstring(archive.read(name))  # noqa: S314 - `_check` refused entities


def _local(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _relations(archive: zipfile.ZipFile, name: str) -> dict[str, tuple[str, str]]:
    """Return the files inside the archive that a part refers to, by the id of the reference, with the kind of each."""
    folder, _, file = name.rpartition("/")
    listed = f"{folder}/_rels/{file}.rels"
    if listed not in archive.namelist():
        return {}
    inside = (one for one in _tree(archive, listed) if one.get("TargetMode") != "External")
    return {
        one.get("Id", ""): (
            posixpath.normpath(posixpath.join("/", folder, one.get("Target", ""))).lstrip("/"),
            one.get("Type", ""),
        )
        for one in inside
    }


def _facts(archive: zipfile.ZipFile, name: str) -> dict[str, str]:
    """Return the metadata (title, creator, date or created, language) as far as there are any."""
    if name not in archive.namelist():
        return {}
    facts: dict[str, str] = {}
    for one in _tree(archive, name).iter():
        facts.setdefault(_local(one), single_line(one.text or ""))
    return facts


def _some(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield parts up to the limit of characters; what is cut off is noticed by its size."""
    chars = 0
    for mark, text in parts:
        yield mark, text
        chars += len(text)
        if chars > MAX_CHARS:
            return


def _document(parts: list[Part], facts: Mapping[str, str]) -> Document:
    marked = [f"[{mark}]\n{text.strip()}" if mark else text.strip() for mark, text in parts if text.strip()]
    text = "\n\n".join(marked)
    lines = (line.strip("#- ") for _, part in parts for line in part.splitlines())
    first = next((line for line in lines if any(letter.isalpha() for letter in line)), "")
    language = facts.get("language", "").partition("-")[0].lower()
    return Document(
        title=(facts.get("title") or first)[: 2 * TITLE_CHARS],
        text=text[:MAX_CHARS],
        author=facts.get("creator", ""),
        published=(facts.get("date") or facts.get("modified") or facts.get("created", ""))[:10],
        language=language_of(language, text),
        flags=(TRUNCATED,) if len(text) > MAX_CHARS else (),
        pages=len(parts) if parts and parts[0][0] else 0,
    )
