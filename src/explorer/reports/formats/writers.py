"""The formats of a report's file by the ending of its name. What a format needs is imported when it is written.

A PDF is the HTML page, laid out by WeasyPrint with the fonts of this machine, which the file contains.
"""

import json
import logging
import warnings
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from importlib.util import find_spec
from io import BytesIO, StringIO
from typing import TYPE_CHECKING, Any
from unicodedata import category

from explorer.schema.errors import ConfigError
from explorer.text.citations import listed_references

if TYPE_CHECKING:  # slow to import, and an ending is looked at before a run starts
    from explorer.reports.formats.document import ReportDocument

MAX_IMAGE_PIXELS = 25_000_000
"""A larger image is not shown: a small file can hold gigabytes of one colour."""
MOST_MISSING = 0.1
"""The share of a text's letters without a font, above which a PDF of it would be of no use."""
SHOWN = 12
LIBRARIES = (
    "PDF needs the library Pango: apt install libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0, "
    "or: brew install weasyprint"
)
FONTS = (
    "install fonts that have them (apt install fonts-noto-cjk has Chinese, Japanese and Korean), then write it again"
)
JSON_VERSION = 1
Written = tuple[bytes, str]
"""The content of a file, and a warning; empty without one."""


@dataclass(frozen=True)
class ReportFormat:
    """How a report is written under one ending."""

    write: "Callable[[ReportDocument], Written]"
    package: str = ""
    """The package that it needs; empty: none but those that are always there."""
    extra: str = ""
    """The extra of explorer that brings it."""


def _markdown(document: "ReportDocument") -> Written:
    return document.text.encode("utf-8", "replace"), ""


def _html(document: "ReportDocument") -> Written:
    from explorer.reports.formats.html_page import html_page  # noqa: PLC0415 - only for its files

    return html_page(document).encode("utf-8", "replace"), ""


def _json(document: "ReportDocument") -> Written:
    """Return a report as one JSON object, for programs; docs/outputs.md has its fields."""
    sources = {str(source.get("id")): source for source in document.sources}
    shown = {
        "version": JSON_VERSION,
        "title": document.title,
        "about": dict(document.fields),
        "markdown": document.markdown,
        "references": [
            {"number": int(number), "id": name, **sources.get(name, {})}
            for number, name in listed_references(document.markdown)
        ],
        "claims": list(document.claims),
        "evidence": [card.model_dump(mode="json") for card in document.look_up().cards],
    }
    text = json.dumps(shown, ensure_ascii=False, indent=1, default=str) + "\n"
    return text.encode("utf-8", "replace"), ""


def _docx(document: "ReportDocument") -> Written:
    from explorer.reports.formats.docx_file import docx_file  # noqa: PLC0415 - an extra

    return docx_file(document), ""


def pdf_file(document: "ReportDocument") -> Written:
    """Return a report as PDF, and a warning; empty without one.

    Raises:
        ConfigError: Pango is missing, or the machine has no fonts for the report's script.
    """
    check_pango()
    from weasyprint import HTML  # noqa: PLC0415 - an extra, and slow to import
    from weasyprint.urls import URLFetcher  # noqa: PLC0415 - the same

    from explorer.reports.evidence import Evidence  # noqa: PLC0415 - only for its files
    from explorer.reports.formats.html_page import html_page  # noqa: PLC0415 - only for its files

    logging.getLogger("weasyprint").setLevel(logging.CRITICAL)

    def bounded(path: str) -> bytes | None:
        return _bounded(document.read_image(path))

    # Paper does not unfold: the references are enough there.
    page = html_page(replace(document, read_image=bounded, look_up=Evidence))
    source: Any = HTML(string=page, url_fetcher=URLFetcher(allowed_protocols=["data"]))
    made = source.render()
    content: bytes = made.write_pdf()
    missing = {chr(code) for font in made.fonts.values() for code in font.missing}
    return content, _about_missing(document.markdown, missing)


def check_pango() -> None:
    """Check that WeasyPrint finds its libraries.

    Raises:
        ConfigError: It does not.
    """
    try:
        # Where libraries are missing, it prints so to stdout, which is for results, and warns of older ones.
        with redirect_stdout(StringIO()), warnings.catch_warnings(action="ignore"):
            import weasyprint  # noqa: F401, PLC0415 # pyright: ignore[reportUnusedImport] - an extra, slow to import
    except OSError as error:
        raise ConfigError("the libraries that PDF files are made with are not there", hint=LIBRARIES) from error


def _bounded(content: bytes | None) -> bytes | None:
    """Return an image that is small enough when it is unpacked; None for every other."""
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415 - comes with WeasyPrint

    if not content:
        return None
    try:
        with Image.open(BytesIO(content), formats=("PNG", "JPEG", "GIF")) as image:
            width, height = image.size
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError):
        return None
    return content if width * height <= MAX_IMAGE_PIXELS else None


def _about_missing(text: str, missing: set[str]) -> str:
    """Return a warning on letters that no font of this machine has.

    Raises:
        ConfigError: They are so many that nobody could read the file.
    """
    letters = [one for one in text if category(one).startswith("L")]
    lost = [one for one in letters if one in missing]
    if not lost:
        return ""
    some = "".join(dict.fromkeys(lost))[:SHOWN]
    if len(lost) > MOST_MISSING * len(letters):
        raise ConfigError(
            f"no font on this machine has {len(lost)} of the report's letters, such as {some}", hint=FONTS
        )
    return f"{len(lost)} letters are boxes in the PDF, such as {some}: {FONTS}"


MARKDOWN = ReportFormat(_markdown)
FORMATS: Mapping[str, ReportFormat] = {
    "": MARKDOWN,
    ".md": MARKDOWN,
    ".markdown": MARKDOWN,
    ".txt": MARKDOWN,
    ".html": ReportFormat(_html),
    ".htm": ReportFormat(_html),
    ".json": ReportFormat(_json),
    ".docx": ReportFormat(_docx, "docx", "docx"),
    ".pdf": ReportFormat(pdf_file, "weasyprint", "pdf"),
}


def format_of(suffix: str) -> ReportFormat:
    """Return the format of an ending, such as `.pdf`, ready to write.

    Raises:
        ConfigError: There is no such format, or what it needs is not installed.
    """
    found = FORMATS.get(suffix.lower())
    if found is None:
        known = ", ".join(one for one in FORMATS if one)
        raise ConfigError(f"a report cannot be written as {suffix}", hint=f"the endings are: {known}")
    if found.package and find_spec(found.package) is None:
        install = f"pip install 'explorer[{found.extra}]'"
        raise ConfigError(
            f"a report is written as {suffix} with the package {found.package}, which is not installed",
            hint=f"{install}, or in a clone: uv sync --extra {found.extra}",
        )
    if found.extra == "pdf":
        check_pango()
    return found
