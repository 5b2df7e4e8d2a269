"""A report as a PDF: the HTML page, laid out by WeasyPrint with the fonts of this machine, which the file contains."""

import logging
import warnings
from contextlib import redirect_stdout
from dataclasses import replace
from io import BytesIO, StringIO
from typing import Any
from unicodedata import category

from explorer.reports.evidence import Evidence
from explorer.reports.formats.document import ReportDocument
from explorer.reports.formats.html_page import html_page
from explorer.schema.errors import ConfigError

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


def pdf_file(document: ReportDocument) -> tuple[bytes, str]:
    """Return a report as PDF, and a warning; empty without one.

    Raises:
        ConfigError: Pango is missing, or the machine has no fonts for the report's script.
    """
    check_pango()
    from weasyprint import HTML  # noqa: PLC0415 - an extra, and slow to import
    from weasyprint.urls import URLFetcher  # noqa: PLC0415 - the same

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
