"""A finished report, apart from the format in which it is written: its facts, and its markdown as tokens.

Every format may write the tokens as they are. HTML stays text, links lead to web addresses or to the references only,
and an image is one of the run's folder, as data, or words. No format has to judge anything again.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

from explorer.reports.evidence import Evidence
from explorer.schema.messages import JsonObject
from explorer.text.citations import HEADING_REFERENCES
from explorer.text.frontmatter import read_frontmatter

TITLE = re.compile(r"^# +(.+?)[ #]*$", re.MULTILINE)
MAX_VALUE_CHARS = 1_000
ReadImage = Callable[[str], bytes | None]
"""Returns the content of an image file of the run by its path; None when it is not shown."""


@dataclass(frozen=True)
class ReportDocument:
    """A finished report with all that its formats need."""

    text: str
    """The whole text of `report.md`, or an answer in words."""
    about: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What is said of an answer, which has no frontmatter."""
    claims: Sequence[JsonObject] = ()
    """The rows of `claims.jsonl`: each cited sentence, and what was found of it."""
    sources: Sequence[JsonObject] = ()
    """The rows of `sources.jsonl`."""
    read_image: ReadImage = field(default=lambda _path: None)
    look_up: Callable[[], Evidence] = Evidence
    """Returns the evidence behind the report; called only by formats that show it."""

    @cached_property
    def _parts(self) -> tuple[dict[str, Any], str]:
        return read_frontmatter(self.text)

    @property
    def markdown(self) -> str:
        """The text without its frontmatter."""
        return self._parts[1]

    @property
    def fields(self) -> Mapping[str, Any]:
        """The frontmatter."""
        return self._parts[0] or self.about

    @property
    def title(self) -> str:
        """The first heading; else the question."""
        found = TITLE.search(self.markdown)
        return found[1] if found else str(self.fields.get("question", "") or "Report")[:MAX_VALUE_CHARS]

    @property
    def language(self) -> str:
        """The code of the report's language; empty when it is not known."""
        code = str(self.fields.get("language", ""))
        return code if re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", code) else ""

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What the engine knows of the report, as names and values: status and check of the citations first."""
        first = ("status", "reason", "citations", "uncited")
        names = [*(name for name in first if name in self.fields), *(one for one in self.fields if one not in first)]
        return [(name.replace("_", " "), _words(self.fields[name])[:MAX_VALUE_CHARS]) for name in names]


def _words(value: object) -> str:
    """Return a value of the frontmatter on one line."""
    if isinstance(value, dict):
        return ", ".join(f"{str(name).replace('_', ' ')} {_words(one)}" for name, one in value.items())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list):
        return ", ".join(_words(one) for one in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return "unknown" if value is None else " ".join(str(value).split())


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
    headings = frozenset(HEADING_REFERENCES.values())
    found = [
        place
        for place, token in enumerate(tokens)
        if token.type == "inline" and tokens[place - 1].type == "heading_open" and token.content.strip() in headings
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
