"""The markdown of a report as tokens that every format may write as they are.

HTML stays text, links lead to web addresses or to the references only, and an image is one of the run's folder, as
data, or words. No format has to judge anything again.
"""

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

from explorer.reports.formats.document import ReportDocument, is_references

_ENDS = "\u3000-\u303f\uff00-\uffef"
BARE = re.compile(
    rf"(?P<url>https?://[^\s<>\"'`{_ENDS}]*[^\s<>\"'`.,;:!?\](\[{_ENDS}])|\[(?P<number>[1-9]\d{{0,3}})\]", re.IGNORECASE
)
"""The pattern of an address in plain text, and of a citation."""
WEB_LINK = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Characters that no format shows, and that XML forbids."""
IMAGE_KINDS = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif"}
"""Kinds of images by their first bytes. SVG is none of them: it can hold scripts and addresses."""
MAX_IMAGE_BYTES = 5_000_000


def markdown_reader() -> MarkdownIt:
    """Return the reader of reports: CommonMark with tables, without HTML."""
    return MarkdownIt("commonmark", {"html": False}).enable("table")


def report_tokens(document: ReportDocument) -> list[Token]:
    """Return a report as tokens, with ids on the entries of the references and links to them."""
    tokens = markdown_reader().parse(CONTROLS.sub("", document.markdown))
    references = _references_at(tokens)
    count = _number_entries(tokens[references:])
    for place, token in enumerate(tokens):
        if token.children is not None:
            shown = _shown(token.children, document)
            token.children = list(_linked(shown, count if place < references else 0))
    return tokens


def _references_at(tokens: Sequence[Token]) -> int:
    """Return the place of the last heading of references; behind all tokens without one."""
    found = [
        place
        for place, token in enumerate(tokens)
        if token.type == "inline" and tokens[place - 1].type == "heading_open" and is_references(token.content)
    ]
    return found[-1] if found else len(tokens)


def _number_entries(tokens: Sequence[Token]) -> int:
    """Give the entries of the list of references ids to link to; return how many there are."""
    number = 0
    for token in tokens:
        if token.type == "ordered_list_close" and token.level == 0:
            break
        if token.type == "list_item_open" and token.level == 1:
            number += 1
            token.attrSet("id", f"ref-{number}")
    return number


def _shown(children: Sequence[Token], document: ReportDocument) -> Iterator[Token]:
    """Yield the parts of a line, with words in the place of each image that is not shown."""
    for child in children:
        if child.type != "image":
            yield child
            continue
        path = unquote(str(child.attrs.get("src", "")))
        content = None if "://" in path else document.read_image(path)
        kind = next((IMAGE_KINDS[head] for head in IMAGE_KINDS if content and content.startswith(head)), "")
        if content and kind and len(content) <= MAX_IMAGE_BYTES:
            child.attrs = {"src": f"data:image/{kind};base64,{b64encode(content).decode()}", "alt": child.content}
            yield child
        else:
            yield _text(f"[image: {child.content or path}]")


def _linked(children: Iterator[Token], references: int) -> Iterator[Token]:
    """Yield the parts of a line: links to web addresses only, to those in plain text too, and to references."""
    is_web: bool | None = None
    for child in children:
        if child.type == "link_open":
            href = str(child.attrs.get("href", ""))
            is_web = bool(WEB_LINK.match(href))
            child.attrs = {"href": href}
        if child.type == "text" and is_web is None:
            yield from _links_in(child.content, references)
        elif is_web is not False or not child.type.startswith("link_"):
            yield child
        if child.type == "link_close":
            is_web = None


def _links_in(text: str, references: int) -> Iterator[Token]:
    place = 0
    for found in BARE.finditer(text):
        number = int(found["number"] or 0)
        if not found["url"] and not 0 < number <= references:
            continue
        yield _text(text[place : found.start()])
        yield Token("link_open", "a", 1, attrs={"href": found["url"] or f"#ref-{number}"})
        yield _text(found[0])
        yield Token("link_close", "a", -1)
        place = found.end()
    yield _text(text[place:])


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)
