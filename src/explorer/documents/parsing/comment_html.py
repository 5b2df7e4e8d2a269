"""The HTML of comments and posts that services give in JSON, read in one request for a whole thread.

This is Python code alone. It runs in the process that parses, because strangers write this HTML.
"""

import json
import re
from html.parser import HTMLParser

from explorer.documents.parsing.document import MAX_PIECE_CHARS, Document
from explorer.documents.parsing.kinds import COMMENTS
from explorer.text.sanitize import parsable_html

CODE = "\x00"
"""Marks both ends of code while reading; the API's text does not contain this character."""


def plain_text(html: str) -> str:
    """Return HTML as text: paragraphs separated by an empty line, `*italics*`, code in fences, links as addresses.

    Reading takes time that grows with the length alone.
    """
    reader = _Reader()
    reader.feed(parsable_html(html[:MAX_PIECE_CHARS]))
    reader.close()
    return reader.text() if len(html) <= MAX_PIECE_CHARS else f"{reader.text()} [...]"


def read_pieces(kind: str, body: bytes) -> Document:
    """Return a JSON list of pieces of HTML, `COMMENTS` or `POSTS`, as a JSON list of their texts in the same order."""
    read = plain_text if kind == COMMENTS else _markdown
    return Document(title="", text=json.dumps([read(piece) for piece in json.loads(body)], ensure_ascii=False))


def _markdown(html: str) -> str:
    from explorer.documents.parsing.html_pages import markdown_of  # noqa: PLC0415 - comments do not need it

    return markdown_of(html[:MAX_PIECE_CHARS])


class _Reader(HTMLParser):
    """Reads the HTML of Hacker News, which never closes `<p>` and cuts the visible text of links."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._link = ""
        self._link_text: list[str] | None = None
        self._is_code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "p":
            self._parts.append("\n\n")
        elif tag == "br":
            self._parts.append("\n")
        elif tag in {"i", "em"}:
            self._parts.append("*")
        elif tag == "pre" and not self._is_code:
            self._is_code = True
            self._parts.append(CODE)
        elif tag == "a":
            self._link = dict(attrs).get("href") or ""
            self._link_text = []

    def handle_endtag(self, tag: str) -> None:
        if tag in {"i", "em"}:
            self._parts.append("*")
        elif tag == "pre" and self._is_code:
            self._is_code = False
            self._parts.append(CODE)
        elif tag == "a" and self._link_text is not None:
            self._parts.append(_link(self._link, "".join(self._link_text)))
            self._link_text = None

    def handle_data(self, data: str) -> None:
        data = data.replace(CODE, "")
        if not self._is_code:
            data = re.sub(r"\s+", " ", data)
        if self._link_text is not None:
            self._link_text.append(data)
        else:
            self._parts.append(data)

    def text(self) -> str:
        """Return the text without surplus space; a link or code that is still open ends with the text."""
        if self._is_code:
            self.handle_endtag("pre")
        if self._link_text is not None:
            self._parts.append(_link(self._link, "".join(self._link_text)))
            self._link_text = None
        blocks = "".join(self._parts).split(CODE)
        # Every second block is code: its spaces are its own.
        tidy = [block.strip("\n") if index % 2 else _tidied(block) for index, block in enumerate(blocks)]
        fenced = [f"```\n{block}\n```" if index % 2 else block for index, block in enumerate(tidy)]
        return "\n\n".join(block for block in fenced if block).strip()


def _tidied(text: str) -> str:
    lines = "\n".join(line.strip(" ") for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", lines).strip()


def _link(href: str, text: str) -> str:
    """Return the address alone if the text is a (cut) form of it, else both."""
    shown = text.strip().removesuffix("...").removesuffix("…")
    if not href:
        return text
    bare = re.sub(r"^https?://", "", href)
    if not shown or href.startswith(shown) or bare.startswith(re.sub(r"^https?://", "", shown)):
        return href
    return f"{text.strip()} ({href})"
