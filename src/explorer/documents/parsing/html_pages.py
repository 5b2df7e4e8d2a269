"""The text of an HTML page in markdown, with its metadata; also short HTML, as feeds have it.

trafilatura reads most pages best, with the settings to keep doubtful parts, comments and links. If it finds little
text, or much less than resiliparse, the main content from resiliparse is used (`bench/extraction.py` measures both).

`time_box` sets a soft time limit for slow extraction in the worker; the operating system sets the hard limit.
"""

import contextlib
import html as entities
import re
import signal
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from types import FrameType
from typing import Literal
from urllib.parse import urljoin

from explorer.documents.parsing.comment_html import CODE, TextReader
from explorer.documents.parsing.document import Document
from explorer.documents.parsing.judgement import (
    FEW_WORDS,
    declared_language,
    html_flags,
    language_of,
    text_flags,
    words,
)
from explorer.documents.parsing.kinds import text_of
from explorer.text.sanitize import parsable_html

HEADINGS = {f"h{level}": f"{'#' * level} " for level in range(1, 7)}
BLOCKS = frozenset({"p", "div", "ul", "ol", "table", "blockquote", "section", "article", "figure", "tr", *HEADINGS})
SILENT = frozenset({"script", "style", "template", "head"})


def markdown_of(html: str, whole: Callable[[str], str] = str) -> str:
    """Return a piece of HTML as markdown; `whole` makes the address of a link absolute."""
    reader = _Reader(whole)
    reader.feed(parsable_html(html.replace(CODE, "")))
    reader.close()
    return reader.text()


class _Reader(TextReader):
    def __init__(self, whole: Callable[[str], str]) -> None:
        super().__init__()
        self._absolute = whole
        self._links: list[tuple[int, str]] = []
        self._depth = 0
        self._silent = 0

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
        elif tag == "pre":
            self._turn_code(is_on=True)
        elif tag == "a":
            self._links.append((len(self._parts), dict(attrs).get("href") or ""))

    def handle_endtag(self, tag: str) -> None:
        if tag in SILENT:
            self._silent = max(self._silent - 1, 0)
        elif tag in BLOCKS:
            self._parts.append("\n\n")
            self._depth = max(self._depth - (tag in {"ul", "ol"}), 0)
        elif tag == "pre":
            self._turn_code(is_on=False)
        elif tag == "a" and self._links:
            self._end_link()

    def handle_data(self, data: str) -> None:
        if self._silent:
            return
        self._parts.append(data if self._is_code else re.sub(r"[ \t\r\f\v]*\n[ \t\r\f\v]*|[ \t\r\f\v]+", " ", data))

    def _end_link(self) -> None:
        """Write a link in markdown if it has a label and a useful address."""
        start, address = self._links.pop()
        label = " ".join("".join(self._parts[start:]).split())
        if not label or CODE in label or not address or address.startswith(("#", "javascript:", "data:")):
            return
        try:
            target = self._absolute(address.strip()).replace(" ", "%20").replace("(", "%28").replace(")", "%29")
        except ValueError:  # no address at all
            return
        self._parts[start:] = [f"[{label}]({target})"]

    def text(self) -> str:
        """Return the markdown without unnecessary space."""
        return self._whole(_tidied)


def _tidied(text: str) -> str:
    lines = re.sub(r"[ \t]+\n", "\n", re.sub(r"(?<=\S)[ \t]{2,}", " ", text))
    lines = re.sub(r"\n [ \t]*(?![ \t]*- )", "\n", lines)
    return re.sub(r"\n{3,}", "\n\n", lines).strip()


class OutOfTime(BaseException):
    """The time limit of a `time_box` is reached."""


@contextlib.contextmanager
def time_box(seconds: float) -> Generator[None]:
    """Raise `OutOfTime` in the block after so many seconds; no limit where the system or the thread cannot set one."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise OutOfTime

    try:
        before = signal.signal(signal.SIGALRM, stop)
    except (AttributeError, ValueError):  # no such signal here, or not the main thread
        yield
        return
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


LEAST_SHARE = 0.7
"""The smallest share of resiliparse's words that trafilatura must find; with less, it missed a part of the page."""
CAREFUL_S = 12.0
"""The longest time in seconds for trafilatura; for a slower page the main content from resiliparse is used."""
MAX_DEPTH = 1_000
"""The largest depth of nested elements at which main content is extracted; browsers stop at half of it."""
NESTING = re.compile(
    r"<(/?)(?:div|span|section|article|main|table|ul|ol|dl|b|i|u|a|em|strong|font|center|blockquote)\b", re.IGNORECASE
)
HEADER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
BLANK_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True)
class _Found:
    """The result of one extraction."""

    text: str = ""
    title: str = ""
    author: str = ""
    published: str = ""
    site: str = ""


def read_html(body: bytes, *, url: str = "", content_type: str = "") -> Document:
    """Return the main content of a page as markdown; a page with little main content is returned with all its words."""
    html = text_of(body, content_type)
    found = _Found()
    try:
        with time_box(CAREFUL_S):
            found = _carefully(html, url)
    except (OutOfTime, MemoryError, RecursionError):
        found = replace(found, text=_main_content(html, url))
    best = _best(found.text, html, url)
    title = entities.unescape(found.title or _title(html)).strip()
    return Document(
        title=title,
        text=best,
        author=found.author,
        published=found.published,
        language=language_of(declared_language(html), best),
        flags=tuple(dict.fromkeys((*html_flags(html, best), *text_flags(title, best)))),
        site=found.site,
    )


def _best(careful: str, html: str, url: str) -> str:
    """Return trafilatura's text, or that of resiliparse if trafilatura seems to have missed much of the page."""
    if words(careful) >= FEW_WORDS and words(careful) >= LEAST_SHARE * words(_resiliparse(html)):
        return careful
    best = max(careful, _main_content(html, url), key=words)
    if words(best) >= FEW_WORDS:
        return best
    return max(best, _all_words(html), key=words)


def _carefully(html: str, url: str) -> _Found:
    import trafilatura  # noqa: PLC0415 - slow to import

    found = trafilatura.extract_with_metadata(
        html,
        url=url or None,
        output_format="markdown",
        include_links=True,
        favor_recall=True,
        # A wider search finds a date on every page, most of them not its own.
        date_extraction_params={"original_date": True, "extensive_search": False},
    )
    if not found:
        return _Found()
    text = HEADER.sub("", found.text or "").strip()
    return _Found(text, found.title or "", found.author or "", found.date or "", found.sitename or "")


def _main_content(html: str, url: str) -> str:
    return markdown_of(_resiliparse(html, layout="minimal_html"), lambda address: urljoin(url, address))


def _all_words(html: str) -> str:
    return BLANK_LINES.sub("\n\n", _resiliparse(html, is_main=False, layout=True)).strip()


def _resiliparse(html: str, *, is_main: bool = True, layout: bool | Literal["minimal_html"] = False) -> str:
    """Return the main content, or all words; empty for the main content of very deep HTML, which takes too long."""
    from resiliparse.extract.html2text import (  # noqa: PLC0415 # pyright: ignore[reportMissingModuleSource] - compiled
        extract_plain_text,
    )
    from resiliparse.parse.html import HTMLParserException  # noqa: PLC0415 - the same

    if is_main and depth_of(html) > MAX_DEPTH:
        return ""
    has_links = layout == "minimal_html"
    try:
        return extract_plain_text(
            html, preserve_formatting=layout, main_content=is_main, links=has_links, alt_texts=False
        )
    except HTMLParserException as error:  # any HTML can be parsed, but for the memory it takes
        raise MemoryError(str(error)) from error


def depth_of(html: str) -> int:
    """Return the approximate depth of nested elements, counted by tags that need an end tag."""
    depth = deepest = 0
    for match in NESTING.finditer(html):
        depth += -1 if match[1] else 1
        deepest = max(deepest, depth)
    return deepest


def _title(html: str) -> str:
    found = re.search(r"<title[^>]*>(.*?)</title>", html, re.IGNORECASE | re.DOTALL)
    return " ".join(found[1].split()) if found else ""
