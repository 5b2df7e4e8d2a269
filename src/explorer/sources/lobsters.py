"""Reads threads of Lobsters in the JSON form of each story."""

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import datetime
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from pydantic import BeforeValidator

from explorer.schema.errors import ToolError
from explorer.schema.setting import NoSettings
from explorer.sources.http.fetched import API_LIMITS
from explorer.sources.http.wire import WireModel, listed, parse
from explorer.sources.page import Fetcher, Site, SiteAccess, ThreadReader, WebPage
from explorer.sources.threads import DELETED, REMOVED, Comment, CommentRange, comment_lines, hanging, page_of, walk
from explorer.text.rendering import own
from explorer.text.sanitize import single_line

if TYPE_CHECKING:
    from explorer.documents.parsing.parser import DocumentParser

HOST = "lobste.rs"
VIA = "lobsters"
URL = f"https://{HOST}"
STORY_PATH = re.compile(r"/s/([a-z0-9]{1,12})(?:/[^/]*)?(?:\.json)?/?", re.IGNORECASE)
SHOWN = CommentRange(limit=200, depth=12)
MAX_LEVEL = 60
WHAT = own("Lobsters")
Texts = Mapping[str, str]
"""The text of each piece of HTML."""


def _name(value: object) -> object:
    """Return a user's name; older answers have an object with it."""
    return value.get("username") if isinstance(value, dict) else value  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - foreign, judged by the field's type


User = Annotated[str | None, BeforeValidator(_name)]


class _Comment(WireModel):
    short_id: str
    created_at: str | None = None
    is_deleted: bool | None = None
    is_moderated: bool | None = None
    score: int | None = None
    comment: str | None = None
    comment_plain: str | None = None
    depth: int | None = None
    indent_level: int | None = None
    commenting_user: User = None

    @property
    def level(self) -> int:
        """The level from 0; older answers count from 1, in another field."""
        level = self.depth if self.depth is not None else (self.indent_level or 1) - 1
        return min(max(level, 0), MAX_LEVEL)

    @property
    def html(self) -> str:
        """The HTML that its text has to be read from; empty where the service gives plain text."""
        return "" if self.comment_plain else self.comment or ""

    def ours(self, replies: Sequence[Comment], texts: Texts) -> Comment:
        """Return the record as a comment."""
        state = DELETED if self.is_deleted else REMOVED if self.is_moderated else ""
        return Comment(
            id=self.short_id,
            author=self.commenting_user or "",
            time=_seconds(self.created_at),
            text="" if state else (self.comment_plain or texts[self.html]).strip(),
            state=state,
            points=self.score,
            replies=tuple(replies),
        )


class _Story(WireModel):
    short_id: str
    title: str
    url: str | None = None
    created_at: str | None = None
    score: int | None = None
    comment_count: int | None = None
    description: str | None = None
    description_plain: str | None = None
    submitter_user: User = None
    tags: Annotated[tuple[str, ...], BeforeValidator(listed)] = ()
    comments: Annotated[tuple[_Comment, ...], BeforeValidator(listed)] = ()

    @property
    def html(self) -> str:
        """The HTML that its text has to be read from; empty where the service gives plain text."""
        return "" if self.description_plain else self.description or ""


class Lobsters:
    """Reads `lobste.rs/s/...`; `parser` reads HTML in a confined process, `url` is the address of the service."""

    def __init__(self, web: Fetcher, parser: "DocumentParser", url: str = URL) -> None:
        self._web = web
        self._parser = parser
        self._url = url.rstrip("/")

    async def read(self, url: str) -> WebPage | None:
        """Return the thread of a story; None for the site's other pages.

        Raises:
            ToolError: There is no such story, or the site does not answer.
        """
        from explorer.documents.parsing.kinds import COMMENTS  # noqa: PLC0415 - every command reads the sites
        from explorer.documents.parsing.parser import texts_of  # noqa: PLC0415 - the same

        found = STORY_PATH.fullmatch(urlsplit(url).path)
        if not found:
            return None
        address = f"{self._url}/s/{found[1].lower()}.json"
        fetched = await self._web.get(address, accept="application/json", limits=API_LIMITS)
        if fetched.problem:
            raise ToolError.of(
                "{what} does not give {url}: {problem}. Use another source.",
                what=WHAT,
                url=url,
                problem=fetched.problem,
            )
        story = parse(_Story, fetched.body, WHAT)
        pieces = [story.html, *(comment.html for comment in story.comments)]
        return _page(story, await texts_of(self._parser, COMMENTS, pieces))


def _page(story: _Story, texts: Texts) -> WebPage:
    comments, _ = _tree(story.comments, 0, 0, texts)
    shown = page_of(comments, [comment.id for comment in comments], SHOWN)
    text = (story.description_plain or texts[story.html]).strip()
    address = f"{URL}/s/{story.short_id}"
    title = single_line(story.title) or "(no title)"
    points = "" if story.score is None else f"{story.score} points, "
    lines = [
        title,
        story.url or address,
        "",
        f"{points}{story.comment_count or len(story.comments)} comments; tags: {', '.join(story.tags) or 'none'}",
        *([f"Text of the story: {hanging(text, '  ')}"] if text else []),
        *comment_lines(shown.comments),
    ]
    is_cut = shown.next_offset is not None or any(comment.more for _, comment in walk(shown.comments))
    return WebPage(
        url=address,
        title=title,
        text="\n".join(lines),
        via=VIA,
        author=story.submitter_user or "",
        published=story.created_at or "",
        kind="comments",
        flags=("truncated",) if is_cut else (),
    )


def _tree(flat: Sequence[_Comment], start: int, level: int, texts: Texts) -> tuple[list[Comment], int]:
    """Return a tree of a list in reading order with levels, and the place where the level ends."""
    comments: list[Comment] = []
    place = start
    while place < len(flat) and flat[place].level >= level:
        one = flat[place]
        replies, place = _tree(flat, place + 1, level + 1, texts)
        comments.append(one.ours(replies, texts))
    return comments, place


def _seconds(text: str | None) -> int | None:
    try:
        return int(datetime.fromisoformat(text or "").timestamp())
    except (ValueError, OverflowError):
        return None


def _connect(_settings: NoSettings, access: SiteAccess) -> AbstractAsyncContextManager[ThreadReader]:
    return nullcontext(Lobsters(access.web, access.parser))


SITE = Site("lobsters", (HOST,), connect=_connect)
