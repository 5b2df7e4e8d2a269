"""Text of models, pages and people as HTML of a page; nothing of it runs, and nothing is loaded from elsewhere."""

import re
from collections.abc import Sequence

from markdown_it.token import Token
from markupsafe import Markup

from explorer.reports.formats.document import ReportDocument, markdown_reader, report_tokens
from explorer.reports.formats.html_page import clean_html

CITATION_LINK = re.compile(r"/runs/[A-Za-z0-9._-]+/citations/\d+")
REFERENCE = "#ref-"


def report_html(document: ReportDocument, run_id: str) -> Markup:
    """Return a report, whose citations lead to the page of their evidence."""
    tokens = report_tokens(document)
    for token in tokens:
        for child in token.children or ():
            href = str(child.attrs.get("href", "")) if child.type == "link_open" else ""
            if href.startswith(REFERENCE):
                child.attrs = {"href": f"/runs/{run_id}/citations/{href.removeprefix(REFERENCE)}"}
    return _rendered(tokens)


def markdown_html(text: str) -> Markup:
    """Return any markdown: an agent's file, an answer."""
    return _rendered(report_tokens(ReportDocument(text, {"status": ""})))


def cleaned_card(html: str) -> Markup:
    """Return the HTML of a citation's card, cleaned as all other HTML is."""
    return Markup(clean_html(html, is_own=_is_page))  # noqa: S704 - nh3 has cleaned it


def _is_page(address: str) -> bool:
    return re.fullmatch(r"/runs/[A-Za-z0-9._-]+/sources/S\d+(?:\?find=\d+)?", address) is not None


def _rendered(tokens: Sequence[Token]) -> Markup:
    reader = markdown_reader()
    found = reader.renderer.render(tokens, reader.options, {})
    return Markup(clean_html(found, lambda href: CITATION_LINK.fullmatch(href) is not None))  # noqa: S704 - as above
