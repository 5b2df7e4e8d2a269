"""The HTML of comments and posts that services give in JSON, read in one request for a whole thread.

This is Python code alone. It runs in the process that parses, because strangers write this HTML.
"""

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser

from explorer.documents.parsing.document import MAX_PIECE_CHARS, Document
from explorer.text.sanitize import parsable_html

CODE = "\x00"
"""Marks both ends of code while reading; no text that is read contains this character."""


def plain_text(html: str) -> str:
    """Return HTML as text: paragraphs separated by an empty line, `*italics*`, code in fences, links as addresses.

    Reading takes time that grows with the length alone.
    """
    reader = _Reader()
    reader.feed(parsable_html(html[:MAX_PIECE_CHARS]))
    reader.close()
    return reader.text() if len(html) <= MAX_PIECE_CHARS else f"{reader.text()} [...]"


def read_pieces(body: bytes, read: Callable[[str], str]) -> Document:
    """Return a JSON list of pieces of HTML as a JSON list of their texts in the same order."""
    return Document(title="", text=json.dumps([read(piece) for piece in json.loads(body)], ensure_ascii=False))


class TextReader(HTMLParser):
    """Collects the parts of a text; `CODE` is at both ends of each `<pre>`, whose spaces are its own."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._is_code = False

    def _turn_code(self, *, is_on: bool) -> None:
        if self._is_code != is_on:
            self._is_code = is_on
            self._parts.append(CODE)

    def _whole(self, tidied: Callable[[str], str]) -> str:
        """Return the text with code in fences, and all else tidied; code without an end tag ends with the text."""
        blocks = "".join(self._parts).split(CODE)
        # Every second block is code.
        whole = [_fenced(block) if index % 2 else tidied(block) for index, block in enumerate(blocks)]
        return "\n\n".join(block for block in whole if block).strip()


def _fenced(code: str) -> str:
    return "```\n" + code.strip("\n") + "\n```"


class _Reader(TextReader):
    """Reads the HTML of Hacker News, which never closes `<p>` and cuts the visible text of links."""

    def __init__(self) -> None:
        super().__init__()
        self._link = ""
        self._link_text: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "p":
            self._parts.append("\n\n")
        elif tag == "br":
            self._parts.append("\n")
        elif tag in {"i", "em"}:
            self._parts.append("*")
        elif tag == "pre":
            self._turn_code(is_on=True)
        elif tag == "a":
            self._link = dict(attrs).get("href") or ""
            self._link_text = []

    def handle_endtag(self, tag: str) -> None:
        if tag in {"i", "em"}:
            self._parts.append("*")
        elif tag == "pre":
            self._turn_code(is_on=False)
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
        self._turn_code(is_on=False)
        if self._link_text is not None:
            self._parts.append(_link(self._link, "".join(self._link_text)))
            self._link_text = None
        return self._whole(_tidied)


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
