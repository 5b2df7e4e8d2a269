"""Reddit through its Atom feeds: 25 entries, texts whole, no scores, no counts, no tree."""

import asyncio
import html
import io
import re
from calendar import timegm
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlencode

from explorer.schema.errors import ToolError
from explorer.sources.hackernews.text import plain_text
from explorer.sources.http.fetched import FetchLimits
from explorer.sources.page import Fetcher
from explorer.sources.reddit.items import Post
from explorer.sources.reddit.routes import (
    EVERYWHERE,
    PostName,
    PostsQuery,
    RedditPosts,
    RedditRefusedError,
    RedditThread,
    RouteClosedError,
    post_at,
)
from explorer.sources.threads import Comment, CommentRange, page_of

SITE = "https://www.reddit.com"
LIMITS = FetchLimits(seconds=20.0, body_bytes=4_000_000, in_flight=1, retries=0, is_service=True, keep_s=600.0)
"""A feed may be asked for a few times a minute only: one answer serves for a while, and none is tried again."""
CLOSED_S = 60.0
NO_NUMBERS = "Feeds hold no scores and no numbers of comments, and at most 25 entries."
NO_TREE = "Feeds hold at most 25 entries and no tree: which comment answers which is not known."
ENTITY = re.compile(rb"<!ENTITY", re.IGNORECASE)
MARKDOWN = re.compile(r'<div class="md">(.*)</div>', re.DOTALL)
LINK = re.compile(r'<a href="([^"]*)">\[link\]</a>')
SEARCH_SORTS = {"hot": "relevance", "new": "new", "top": "top", "rising": "new", "controversial": "comments"}


@dataclass(frozen=True)
class _Entry:
    """One entry, as Reddit's feeds give it."""

    id: str
    """With its kind: `t3_abc`."""
    title: str
    link: str
    author: str
    time: int | None
    content: str


class RedditFeeds:
    """The feeds as a route; `url` stands in for the public host."""

    via = "reddit-feed"
    label = "its feed (no scores, no counts)"
    lack = NO_NUMBERS

    def __init__(self, web: Fetcher, url: str) -> None:
        self._web = web
        self._url = url.rstrip("/") or SITE

    async def posts(self, query: PostsQuery) -> RedditPosts:
        """Posts of a subreddit, or hits in it, in the order of Reddit's own list.

        Raises:
            RouteClosedError: The feed does not answer, or is none.
        """
        entries = await self._entries(_posts_path(query))
        posts = [_post(entry) for entry in entries if entry.id.startswith("t3_")]
        if not posts and not query.words:
            raise RouteClosedError(f"it has no entries for r/{query.subreddit}")
        return RedditPosts(tuple(posts[: query.limit]))

    async def thread(self, name: PostName, part: CommentRange) -> RedditThread:
        """A post and some of its comments, one after the other.

        Raises:
            RouteClosedError: The feed does not answer, or holds no such post.
            RedditRefusedError: The feed holds the post, but not the comment asked for.
        """
        entries = await self._entries(f"/comments/{name.post}/.rss")
        post = next((_post(entry) for entry in entries if entry.id == f"t3_{name.post}"), None)
        if post is None:
            raise RouteClosedError(f"it holds no post {name.post}")
        comments = [_comment(entry) for entry in entries if entry.id.startswith("t1_")]
        if name.comment:
            root = next((comment for comment in comments if comment.id == name.comment), None)
            if root is None:
                raise RedditRefusedError("the feed does not contain that comment, and its replies are not known")
            return RedditThread(post, (root,), 0, None, root.id)
        page = page_of(comments, [comment.id for comment in comments], part)
        return RedditThread(post, page.comments, len(comments), page.next_offset)

    async def _entries(self, path: str) -> list[_Entry]:
        try:
            fetched = await self._web.get(f"{self._url}{path}", accept="application/atom+xml", limits=LIMITS)
        except ToolError as error:
            raise RouteClosedError(f"it is not available: {error.message}") from error
        if fetched.problem:
            raise RouteClosedError(f"it is not available: {fetched.problem}", for_s=fetched.retry_after_s or CLOSED_S)
        if "html" in fetched.content_type.lower() or ENTITY.search(fetched.body):
            raise RouteClosedError("it shows something that is not a feed", for_s=CLOSED_S)
        return await asyncio.to_thread(_parsed, fetched.body)


def _posts_path(query: PostsQuery) -> str:
    span = {"t": query.time} if query.time else {}
    if query.words:
        is_everywhere = query.subreddit.lower() == EVERYWHERE
        within = {} if is_everywhere else {"restrict_sr": "1"}
        parameters = {"q": query.words, **within, "sort": SEARCH_SORTS[query.sort], **span}
        return f"{'' if is_everywhere else f'/r/{query.subreddit}'}/search.rss?{urlencode(parameters)}"
    sort = "" if query.sort == "hot" else f"{query.sort}/"
    return f"/r/{query.subreddit}/{sort}.rss{f'?{urlencode(span)}' if span else ''}"


def _parsed(body: bytes) -> list[_Entry]:
    import feedparser  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs] - slow to import, and without types

    # As a stream: a text alone might be taken for an address, and fetched.
    feed = feedparser.parse(io.BytesIO(body), response_headers={"content-type": "application/atom+xml"})  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    entries = cast("list[Mapping[str, object]]", feed.get("entries", []))  # pyright: ignore[reportUnknownMemberType] - the same
    return [_entry(fields) for fields in entries]


def _entry(fields: Mapping[str, object]) -> _Entry:
    contents = fields.get("content")
    first = cast("list[object]", contents)[0] if isinstance(contents, list) and contents else None
    content = cast("Mapping[str, object]", first).get("value") if isinstance(first, Mapping) else ""
    return _Entry(
        id=_text(fields.get("id")).rpartition("/")[2],
        title=_text(fields.get("title")),
        link=_text(fields.get("link")),
        author=_text(fields.get("author")).removeprefix("/u/"),
        time=_seconds(fields.get("published_parsed") or fields.get("updated_parsed")),
        content=_text(content) or _text(fields.get("summary")),
    )


def _post(entry: _Entry) -> Post:
    link = html.unescape(match[1]) if (match := LINK.search(entry.content)) else ""
    path = re.search(r"/r/[^/]+/comments/.*", entry.link)
    subreddit = re.search(r"/r/([^/]+)/", entry.link)
    return Post(
        id=entry.id.removeprefix("t3_"),
        title=html.unescape(entry.title) or "(no title)",
        subreddit=subreddit[1] if subreddit else "",
        url="" if not link or post_at(link) else link,
        author=entry.author,
        time=entry.time,
        text=_words(entry.content),
        path=path[0] if path else "",
    )


def _comment(entry: _Entry) -> Comment:
    return Comment(entry.id.removeprefix("t1_"), author=entry.author, time=entry.time, text=_words(entry.content))


def _words(content: str) -> str:
    """What the author wrote, without the links that the feed puts around it."""
    match = MARKDOWN.search(content)
    return plain_text(match[1]) if match else ""


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _seconds(parsed: object) -> int | None:
    """Unix seconds from feedparser's tuple in UTC."""
    try:
        return timegm(cast("tuple[int, ...]", parsed)) if isinstance(parsed, tuple) else None
    except (ValueError, OverflowError):
        return None
