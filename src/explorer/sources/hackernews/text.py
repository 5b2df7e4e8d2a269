"""Hacker News' little HTML as plain text: paragraphs, italics, links with their whole address, code."""

import re
from html.parser import HTMLParser

CODE = "\x00"
"""Stands at both ends of code while reading; the API's text has no such character."""


def plain_text(html: str) -> str:
    """Paragraphs parted by an empty line, `*italics*`, code in fences, links as addresses."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.text()


class _Reader(HTMLParser):
    """HN writes `<p>` between paragraphs and never closes it, and cuts the visible text of links."""

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
        """What was read, tidied; a link or code left open ends with the text."""
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
    return re.sub(r"\n{3,}", "\n\n", re.sub(r" *\n *", "\n", text)).strip()


def _link(href: str, text: str) -> str:
    """The address alone where the text is (the cut form of) it, else both."""
    shown = text.strip().removesuffix("...").removesuffix("…")
    if not href:
        return text
    bare = re.sub(r"^https?://", "", href)
    if not shown or href.startswith(shown) or bare.startswith(re.sub(r"^https?://", "", shown)):
        return href
    return f"{text.strip()} ({href})"
