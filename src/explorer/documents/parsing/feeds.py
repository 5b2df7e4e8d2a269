"""Feeds (RSS, Atom, RDF, JSON Feed) in the form of a list: title, date, link, author and summary of each entry."""

import io
import json
import re
from calendar import timegm
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import cast

from explorer.documents.parsing.comment_html import plain_text
from explorer.documents.parsing.document import ENTITIES, TRUNCATED, Document, FeedEntry
from explorer.documents.parsing.html_pages import markdown_of
from explorer.documents.parsing.judgement import language_of
from explorer.documents.parsing.kinds import text_of
from explorer.schema.errors import ToolError

MAX_ENTRIES = 300
SUMMARY_CHARS = 4_000
"""The largest number of characters in the summary of an entry; some feeds contain whole articles."""
WRITTEN = '<div class="md">'
"""The start of what a user wrote, in a feed of Reddit; around it are links that Reddit adds."""
DECLARES = re.compile(r"<!ENTITY", re.IGNORECASE)
"""Matches a declaration of XML entities: attacks use entities to fill the memory, and feeds do not need them."""


@dataclass(frozen=True)
class _Entry:
    title: str
    link: str = ""
    published: str = ""
    author: str = ""
    summary: str = ""


def read_feed(body: bytes, *, content_type: str = "") -> Document:
    """Return the entries of a feed in their order; XML that is not a feed is returned unchanged.

    Raises:
        ToolError: The feed declares entities of its own.
    """
    text = text_of(body, content_type).strip()
    if text.startswith("{"):
        return _json_feed(text)
    if DECLARES.search(text):
        raise ToolError(ENTITIES)
    return _xml_feed(text)


def read_entries(body: bytes, *, content_type: str = "") -> Document:
    """Return the entries of an XML feed in their order as a JSON list of `FeedEntry`.

    Raises:
        ToolError: The feed declares entities of its own.
    """
    text = text_of(body, content_type).strip()
    if DECLARES.search(text):
        raise ToolError(ENTITIES)
    _, entries = _parsed(text)
    found = [_value(entry) for entry in map(_Fields, entries)]
    return Document(title="", text=json.dumps([asdict(entry) for entry in found], ensure_ascii=False))


def _value(entry: "_Fields") -> FeedEntry:
    content = entry.first("content") or entry.text("summary")
    start, end = content.find(WRITTEN), content.rfind("</div>")
    return FeedEntry(
        entry.text("id"),
        entry.text("title"),
        entry.text("link"),
        entry.author() or entry.text("author"),
        entry.seconds("published_parsed", "updated_parsed"),
        content,
        plain_text(content[start + len(WRITTEN) : end]) if 0 <= start < end else "",
    )


def _parsed(text: str) -> "tuple[_Fields, list[Mapping[str, object]]]":
    """Return a feed's own fields, and those of its entries."""
    import feedparser  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs] - it has no types

    # As a stream: a text alone might be taken for an address, and fetched.
    body = re.sub(r"^<\?xml[^>]*\?>", "", text).encode("utf-8", "replace")
    parsed = feedparser.parse(io.BytesIO(body), response_headers={"content-type": "application/xml; charset=utf-8"})  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    feed = _Fields(cast("Mapping[str, object]", parsed.get("feed", {})))  # pyright: ignore[reportUnknownMemberType] - the same
    return feed, cast("list[Mapping[str, object]]", parsed.get("entries", []))  # pyright: ignore[reportUnknownMemberType] - the same


def _xml_feed(text: str) -> Document:
    feed, entries = _parsed(text)
    if not entries and not feed.text("title"):
        return Document(title="", text=text)
    return _document(
        feed,
        [
            _Entry(
                entry.text("title"),
                entry.text("link"),
                entry.date("published_parsed", "updated_parsed"),
                entry.text("author"),
                entry.first("content") or entry.text("summary"),
            )
            for entry in map(_Fields, entries)
        ],
        about=feed.text("subtitle"),
        published=feed.date("updated_parsed", "published_parsed"),
    )


def _json_feed(text: str) -> Document:
    try:
        whole: object = json.loads(text)
    except (ValueError, RecursionError):
        return Document(title="", text=text)
    feed = _Fields(cast("Mapping[str, object]", whole) if isinstance(whole, dict) else {})
    return _document(
        feed,
        [
            _Entry(
                item.text("title"),
                item.text("url") or item.text("external_url"),
                item.text("date_published") or item.text("date_modified"),
                item.author(),
                item.text("content_html") or item.text("content_text") or item.text("summary"),
            )
            for item in feed.many("items")
        ],
        about=feed.text("description"),
    )


def _document(feed: "_Fields", entries: Iterable[_Entry], *, about: str, published: str = "") -> Document:
    every = list(entries)
    title = _line(feed.text("title"))
    written = [_written(number, entry) for number, entry in enumerate(every[:MAX_ENTRIES], start=1)]
    text = "\n\n".join(part for part in (f"# {title}" if title else "", markdown_of(about), *written) if part)
    language = feed.text("language").partition("-")[0].lower()
    return Document(
        title=title,
        text=text,
        author=_line(feed.text("author")),
        published=published or max((entry.published for entry in every), default=""),
        language=language_of(language, text),
        flags=(TRUNCATED,) if len(every) > MAX_ENTRIES else (),
    )


def _written(number: int, entry: _Entry) -> str:
    """Return an entry as lines: `1. Title (date)`, then the link, the author and the summary."""
    date = f" ({entry.published})" if entry.published else ""
    summary = markdown_of(entry.summary)
    if len(summary) > SUMMARY_CHARS:
        summary = summary[:SUMMARY_CHARS] + " ..."
    by = f"by {_line(entry.author)}" if entry.author else ""
    lines = [f"{number}. {_line(markdown_of(entry.title)) or 'untitled'}{date}", entry.link, by, *summary.splitlines()]
    return "\n   ".join(line for line in lines if line)


def _line(text: str) -> str:
    return " ".join(text.split())


class _Fields:
    """Fields of a feed or an entry, whose types are checked because the data is not trusted."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        self._fields = fields

    def text(self, name: str) -> str:
        """Return the text of a field; empty when the field has no text."""
        value = self._fields.get(name)
        return value.strip() if isinstance(value, str) else ""

    def many(self, name: str) -> "list[_Fields]":
        """Return the objects in a field's list; empty when the field has no list."""
        value = self._fields.get(name)
        items = cast("list[object]", value) if isinstance(value, list) else []
        return [_Fields(cast("Mapping[str, object]", item)) for item in items if isinstance(item, Mapping)]

    def first(self, name: str) -> str:
        """Return the value of the first object in a field's list."""
        return next((item.text("value") for item in self.many(name)), "")

    def author(self) -> str:
        """Return the authors' names, from the field `author` or `authors` of JSON Feed's two versions."""
        one = self._fields.get("author")
        names = [item.text("name") for item in self.many("authors")]
        if isinstance(one, Mapping):
            names.append(_Fields(cast("Mapping[str, object]", one)).text("name"))
        return ", ".join(name for name in names if name)

    def seconds(self, *names: str) -> int | None:
        """Return the first of these dates as Unix seconds, from feedparser's tuples in UTC; None without any."""
        for name in names:
            value = self._fields.get(name)
            with suppress(ValueError, OverflowError, TypeError):
                if isinstance(value, tuple):
                    return timegm(cast("tuple[int, ...]", value))
        return None

    def date(self, *names: str) -> str:
        """Return the first of these dates as YYYY-MM-DD, from feedparser's tuples of year, month, day and more."""
        for name in names:
            value = self._fields.get(name)
            if isinstance(value, tuple) and len(parts := cast("tuple[int, ...]", value)) >= 3:  # noqa: PLR2004 - year, month, day
                return f"{parts[0]:04d}-{parts[1]:02d}-{parts[2]:02d}"
        return ""
