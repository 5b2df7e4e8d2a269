"""A little HTML as markdown: headings, paragraphs, lists, code and links, which is what feeds and extractors give."""

import re
from collections.abc import Callable
from html.parser import HTMLParser

HEADINGS = {f"h{level}": f"{'#' * level} " for level in range(1, 7)}
BLOCKS = frozenset({"p", "div", "ul", "ol", "table", "blockquote", "section", "article", "figure", "tr", *HEADINGS})
SILENT = frozenset({"script", "style", "template", "head"})
CODE = "\x00"
"""Stands at both ends of code while reading."""


def markdown_of(html: str, whole: Callable[[str], str] = str) -> str:
    """Markdown of a piece of HTML; `whole` makes an address of a link absolute."""
    reader = _Reader(whole)
    reader.feed(html.replace(CODE, ""))
    reader.close()
    return reader.text()


class _Reader(HTMLParser):
    def __init__(self, whole: Callable[[str], str]) -> None:
        super().__init__(convert_charrefs=True)
        self._whole = whole
        self._parts: list[str] = []
        self._links: list[tuple[int, str]] = []
        self._depth = 0
        self._silent = 0
        self._is_code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in SILENT:
            self._silent += 1
        elif tag in BLOCKS:
            self._parts.append("\n\n" + HEADINGS.get(tag, ""))
            self._depth += tag in {"ul", "ol"}
        elif tag == "br":
            self._parts.append("\n")
        elif tag == "li":
            self._parts.append("\n" + "  " * max(self._depth - 1, 0) + "- ")
        elif tag == "pre" and not self._is_code:
            self._is_code = True
            self._parts.append(CODE)
        elif tag == "a":
            self._links.append((len(self._parts), dict(attrs).get("href") or ""))

    def handle_endtag(self, tag: str) -> None:
        if tag in SILENT:
            self._silent = max(self._silent - 1, 0)
        elif tag in BLOCKS:
            self._parts.append("\n\n")
            self._depth = max(self._depth - (tag in {"ul", "ol"}), 0)
        elif tag == "pre" and self._is_code:
            self._is_code = False
            self._parts.append(CODE)
        elif tag == "a" and self._links:
            self._end_link()

    def handle_data(self, data: str) -> None:
        if self._silent:
            return
        self._parts.append(data if self._is_code else re.sub(r"[ \t\r\f\v]*\n[ \t\r\f\v]*|[ \t\r\f\v]+", " ", data))

    def _end_link(self) -> None:
        """Write the link's words and its address, where both are worth it."""
        start, address = self._links.pop()
        label = " ".join("".join(self._parts[start:]).split())
        if not label or CODE in label or not address or address.startswith(("#", "javascript:", "data:")):
            return
        try:
            target = self._whole(address.strip()).replace(" ", "%20").replace("(", "%28").replace(")", "%29")
        except ValueError:  # no address at all
            return
        self._parts[start:] = [f"[{label}]({target})"]

    def text(self) -> str:
        """What was read, tidied; code left open ends with the text."""
        blocks = "".join(self._parts).split(CODE)
        # Every second block is code: its spaces are its own.
        tidy = [block.strip("\n") if index % 2 else _tidied(block) for index, block in enumerate(blocks)]
        fenced = [f"```\n{block}\n```" if index % 2 else block for index, block in enumerate(tidy)]
        return "\n\n".join(block for block in fenced if block).strip()


def _tidied(text: str) -> str:
    lines = re.sub(r"[ \t]+\n", "\n", re.sub(r"(?<=\S)[ \t]{2,}", " ", text))
    lines = re.sub(r"\n [ \t]*(?![ \t]*- )", "\n", lines)
    return re.sub(r"\n{3,}", "\n\n", lines).strip()
