"""A report as one HTML file: nothing in it runs, and nothing is loaded from anywhere.

nh3 removes whatever is not text, a web link or an image in the file, and a policy says the same to the browser.
Each reference has a card that unfolds: the passages of its source, and the verdict on each sentence that cites it.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from pathlib import Path

import nh3
from markdown_it.token import Token

from explorer.reports.evidence import Evidence
from explorer.reports.formats import cards
from explorer.reports.formats.document import WEB_LINK, ReportDocument, markdown_reader, report_tokens

DATA_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif);base64,[A-Za-z0-9+/=]*")
REFERENCE_ID = re.compile(r"ref-\d+")
LISTS_AND_TABLES = {"li", "ol", "table", "tbody", "td", "th", "thead", "tr", "ul"}
TAGS = {"a", "blockquote", "br", "code", "em", "hr", "img", "p", "pre", "strong", *LISTS_AND_TABLES, *cards.TAGS}
HEADINGS = {f"h{level}" for level in range(1, 7)}
WITH_CLASSES = ("article", "blockquote", "div", "p", "section", "span")
ATTRIBUTES = {
    "a": {"href"},
    "img": {"src", "alt"},
    "li": {"id"},
    "ol": {"start"},
    **{tag: {"class"} for tag in WITH_CLASSES},
}
SCHEMES = {"http", "https", "mailto", "data"}
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def html_page(document: ReportDocument) -> str:
    """Return a report as a page that is complete in itself."""
    language = f' lang="{document.language}"' if document.language else ""
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return (
        f'<!DOCTYPE html>\n<html{language}>\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(document.title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        f"{_body(document)}{_facts(document)}</main>\n</body>\n</html>\n"
    )


def _body(document: ReportDocument) -> str:
    evidence = document.look_up()
    reader = markdown_reader()
    tokens = _with_cards(report_tokens(document), evidence)
    return clean_html(reader.renderer.render(tokens, reader.options, {}) + cards.claims_html(evidence))


def is_reference(address: str) -> bool:
    """Return whether a link leads to an entry of the references."""
    return REFERENCE_ID.fullmatch(address.removeprefix("#")) is not None


def clean_html(found: str, is_own: Callable[[str], bool] = is_reference) -> str:
    """Return HTML with text, web links, own links and images in it, and nothing else.

    Args:
        found: Any HTML.
        is_own: Whether a link without a scheme is one of the page's own.
    """
    return nh3.clean(
        found,
        tags=TAGS | HEADINGS,
        attributes=ATTRIBUTES,
        attribute_filter=partial(_kept, is_own),
        url_schemes=SCHEMES,
        link_rel="noreferrer",
    )


def _with_cards(tokens: Sequence[Token], evidence: Evidence) -> list[Token]:
    """Return the tokens of a report with a folded card at the end of each entry of the references."""
    shown: list[Token] = []
    number = ""
    for token in tokens:
        if token.type == "list_item_open" and token.level == 1:
            number = str(token.attrs.get("id", "")).removeprefix("ref-")
        if token.type == "list_item_close" and token.level == 1 and number:
            card = evidence.card(int(number))
            if card is not None:
                shown.append(Token("html_block", "", 0, content=cards.folded_card(card)))
            number = ""
        shown.append(token)
    return shown


def _facts(document: ReportDocument) -> str:
    rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>\n" for name, value in document.facts)
    return f'<div class="facts">\n<h2>About this report</h2>\n<table>\n{rows}</table>\n</div>\n' if rows else ""


def _kept(is_own: Callable[[str], bool], tag: str, name: str, value: str) -> str | None:
    """Return the value of an attribute; None when it is removed."""
    match tag, name:
        case "a", "href":
            is_kept = WEB_LINK.match(value) or is_own(value)
        case "img", "src":
            is_kept = DATA_IMAGE.fullmatch(value)
        case "li", "id":
            is_kept = REFERENCE_ID.fullmatch(value)
        case _, "class":
            is_kept = value in cards.CLASSES
        case _:
            return value if name in ATTRIBUTES.get(tag, ()) else None
    return value if is_kept else None
