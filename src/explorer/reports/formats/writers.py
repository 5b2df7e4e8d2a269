"""The formats of a report's file by the ending of its name. What a format needs is imported when it is written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from explorer.schema.errors import ConfigError

if TYPE_CHECKING:  # slow to import, and an ending is looked at before a run starts
    from explorer.reports.formats.document import ReportDocument

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
    from explorer.reports.formats.json_form import json_form  # noqa: PLC0415 - only for its files

    return json_form(document).encode("utf-8", "replace"), ""


def _docx(document: "ReportDocument") -> Written:
    from explorer.reports.formats.docx_file import docx_file  # noqa: PLC0415 - an extra

    return docx_file(document), ""


def _pdf(document: "ReportDocument") -> Written:
    from explorer.reports.formats.pdf_file import pdf_file  # noqa: PLC0415 - an extra

    return pdf_file(document)


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
    ".pdf": ReportFormat(_pdf, "weasyprint", "pdf"),
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
        from explorer.reports.formats.pdf_file import check_pango  # noqa: PLC0415 - an extra

        check_pango()
    return found
