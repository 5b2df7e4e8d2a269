"""The text of a PDF, page by page, read by pdfium; pypdf reads those in which pdfium finds no text."""

import io
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from explorer.documents.parsing.document import DAMAGED, LOCKED, NO_TEXT_LAYER, TRUNCATED, Document
from explorer.documents.parsing.judgement import language_of
from explorer.schema.errors import ToolError
from explorer.text.sanitize import single_line

MAX_PAGES = 1_000
MAX_CHARS = 4_000_000
READ_S = 12.0
"""The longest time in seconds to read pages; the remaining pages are left out, and the text says so."""
MAX_FAILURES = 20
"""The number of consecutive pages that cannot be opened after which reading ends."""
TITLE_CHARS = 150
LANGUAGE_BYTES = 64

DATE = re.compile(r"D?:?(\d{4})(\d\d)(\d\d)")
NO_TITLE = re.compile(r"(untitled|unspecified|document\d*|.*\.(docx?|pdf|tex|dvi|indd|qxd|pptx?|rtf))?", re.IGNORECASE)
MADE_BY = re.compile(r"^(Microsoft (Word|PowerPoint) - )")
NOBODY = frozenset({"anonymous", "unknown", "user", "admin", "administrator", "author"})


@dataclass
class _Reading:
    """The result of one library."""

    total: int = 0
    facts: dict[str, str] = field(default_factory=dict[str, str])
    language: str = ""
    pages: list[str] = field(default_factory=list[str])


class _LockedError(Exception):
    """The PDF needs a password."""


def read_pdf(body: bytes) -> Document:
    """Return the text of a PDF with a mark before each page; the flags show what is missing.

    Raises:
        ToolError: The PDF needs a password, or is too damaged to be read.
    """
    return _read_with(_with_pdfium, body)


def read_pdf_again(body: bytes) -> Document:
    """Return the text of a PDF in which `read_pdf` found none; slower, and sometimes better with damaged ones.

    Raises:
        ToolError: The PDF needs a password, or is too damaged to be read.
    """
    return _read_with(_with_pypdf, body)


def _read_with(library: Callable[[bytes], _Reading | None], body: bytes) -> Document:
    try:
        reading = library(body)
    except _LockedError as error:
        raise ToolError(LOCKED) from error
    if reading is None:
        raise ToolError(DAMAGED)
    return _document(reading)


def _document(reading: _Reading) -> Document:
    marked = [f"[page {number}]\n{text}" for number, text in enumerate(reading.pages, start=1) if text]
    flags: list[str] = []
    read = len(reading.pages)
    if read < reading.total and marked:
        flags.append(TRUNCATED)
        marked.append(f"[pages {read + 1}-{reading.total} are not read]")
    if sum(not text for text in reading.pages) > read / 2 or not marked:
        flags.append(NO_TEXT_LAYER)
    text = "\n\n".join(marked)
    author = single_line(reading.facts.get("Author", ""))
    return Document(
        title=_title(reading),
        text=text,
        author="" if author.lower() in NOBODY else author,
        published=_date(reading.facts.get("CreationDate", "")),
        language=language_of(reading.language.partition("-")[0].lower(), text),
        flags=tuple(flags),
        pages=reading.total,
    )


def _title(reading: _Reading) -> str:
    """Return the title in the metadata, or the first line of the text if that title is missing or a file's name."""
    named = MADE_BY.sub("", single_line(reading.facts.get("Title", "")))
    if not NO_TITLE.fullmatch(named):
        return named[: 2 * TITLE_CHARS]
    first = reading.pages[0] if reading.pages else ""
    lines = (line.strip() for line in first.splitlines())
    return next((line[:TITLE_CHARS] for line in lines if sum(letter.isalpha() for letter in line) > 2), "")  # noqa: PLR2004 - page numbers and rules are no titles


def _date(value: str) -> str:
    found = DATE.match(value)
    return f"{found[1]}-{found[2]}-{found[3]}" if found and "01" <= found[2] <= "12" else ""


def _with_pdfium(body: bytes) -> _Reading | None:
    import pypdfium2  # noqa: PLC0415 - only the worker needs it
    from pypdfium2 import raw  # noqa: PLC0415 - the same

    try:
        pdf = pypdfium2.PdfDocument(body)
    except pypdfium2.PdfiumError as error:
        if error.err_code == raw.FPDF_ERR_PASSWORD:  # pyright: ignore[reportUnknownMemberType] - not annotated there
            raise _LockedError from error
        return None
    try:

        def text_of_page(number: int) -> str | None:
            try:
                page = pdf[number]
                text = page.get_textpage().get_text_range()
                page.close()
            except (pypdfium2.PdfiumError, IndexError):
                return None
            return text

        facts = {name: str(value) for name, value in pdf.get_metadata_dict(skip_empty=True).items()}
        return _read_pages(_Reading(len(pdf), facts, _language(pdf)), text_of_page)
    finally:
        pdf.close()


def _language(pdf: object) -> str:
    """Return the language in the PDF's catalog, such as `en-GB`; empty when the catalog has none."""
    import ctypes  # noqa: PLC0415 - with pdfium alone

    from pypdfium2 import raw  # noqa: PLC0415 - only the worker needs it

    buffer = (ctypes.c_ushort * (LANGUAGE_BYTES // 2))()
    size = raw.FPDFCatalog_GetLanguage(pdf, buffer, LANGUAGE_BYTES)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - generated
    return bytes(buffer)[:size].decode("utf-16-le", "replace").strip("\x00") if 0 < size <= LANGUAGE_BYTES else ""


def _with_pypdf(body: bytes) -> _Reading | None:
    import pypdf  # noqa: PLC0415 - slow to import, and most PDFs do not need it
    from pypdf.errors import PyPdfError  # noqa: PLC0415 - the same

    # What pypdf raises on files that are not as they should be.
    damage = (PyPdfError, ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OSError)
    try:
        pdf = pypdf.PdfReader(io.BytesIO(body))
        if pdf.is_encrypted and not pdf.decrypt(""):
            raise _LockedError
        total = len(pdf.pages)
        about = cast("Mapping[object, object]", pdf.metadata or {})
        facts = {str(name).lstrip("/"): str(value) for name, value in about.items()}
    except damage:
        return None

    def text_of_page(number: int) -> str | None:
        try:
            return pdf.pages[number].extract_text()
        except damage:
            return None

    return _read_pages(_Reading(total, facts), text_of_page)


def _read_pages(reading: _Reading, text_of_page: Callable[[int], str | None]) -> _Reading:
    """Read pages in order, up to the end or a limit, and return the reading with their texts."""
    until = time.monotonic() + READ_S
    failures = chars = 0
    for number in range(min(reading.total, MAX_PAGES)):
        text = text_of_page(number)
        failures = failures + 1 if text is None else 0
        reading.pages.append(_tidied(text or ""))
        chars += len(reading.pages[-1])
        if failures >= MAX_FAILURES or chars > MAX_CHARS or time.monotonic() > until:
            break
    if failures:
        del reading.pages[-failures:]
    return reading


def _tidied(text: str) -> str:
    """Return a page's text in lines; a word divided at the end of a line is joined (pdfium marks it with U+FFFE)."""
    joined = re.sub("[\ufffe\x02]\\s*", "", text.replace("\r\n", "\n").replace("\r", "\n"))
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]+\n", "\n", joined)).replace("\x00", "").strip()
