"""The routes to Reddit that need no key: Arctic Shift, a public archive, and Reddit's Atom feeds."""

import asyncio
import html
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import cast
from urllib.parse import urlencode

from pydantic import TypeAdapter

from explorer.documents.parsing.document import FeedEntry
from explorer.documents.parsing.kinds import ENTRIES
from explorer.documents.parsing.parser import DocumentParser
from explorer.schema.errors import ToolError, or_error
from explorer.sources.http.fetched import Fetched, FetchLimits
from explorer.sources.page import Fetcher
from explorer.sources.reddit.items import SITE, Forest, Post, Thing, post_of, posts_in, things_in
from explorer.sources.reddit.routes import (
    EVERYWHERE,
    SEARCH_SORTS,
    SECONDS,
    PostName,
    PostsQuery,
    RedditPosts,
    RedditRefusedError,
    RouteClosedError,
    post_at,
    read_answer,
    total_of,
)
from explorer.sources.threads import Comment, CommentRange, Thread, page_of, thread_under
from explorer.text.rendering import own

ARCHIVE = "https://arctic-shift.photon-reddit.com"
ARCHIVE_LIMITS = FetchLimits(seconds=25.0, body_bytes=32_000_000, in_flight=2, retries=1, is_service=True, keep_s=300.0)
PAGE = 100
PAGES = 3
"""The number of pages requested for the highest scores, because the archive sorts by time only."""
ALL_COMMENTS = 9_999
FRESH_S = 36 * 3_600
"""The age in seconds up to which the archive has a post's first score and count, 1 and 0, which mean nothing."""
NARROW_S = 90 * 86_400
"""The seconds that the second attempt of a search covers, when the first took the archive too long."""
RETRY_S = 1.0
NOT_FRESH = own(
    "In the archive, scores and counts are those of about 36 hours after posting; of newer posts they are unknown (?)."
)
TIMEOUTS = ("timed out", "timeout", "slow down")
ERROR_BYTES = 2_000


class ArcticShift:
    """Reads Reddit through Arctic Shift; `url` replaces the public archive, `now` is the clock for ages."""

    via = "reddit-archive"
    label = own("the archive (scores not fresh)")
    lack = NOT_FRESH

    def __init__(
        self,
        web: Fetcher,
        url: str,
        now: Callable[[], datetime],
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._web = web
        self._url = url.rstrip("/") or ARCHIVE
        self._now = now
        self._pause = pause

    async def posts(self, query: PostsQuery) -> RedditPosts:
        """Return the newest posts, or those with most points among the newest.

        Raises:
            RouteClosedError: The archive does not answer, cannot do this, or has nothing of the subreddit.
        """
        if query.subreddit.lower() == EVERYWHERE or "+" in query.subreddit:
            raise RouteClosedError.of("it lists and searches one subreddit at a time")
        is_ranked = query.sort in {"top", "controversial"}
        found = await self._found(query, PAGES if is_ranked else 1)
        if not found and not query.words:
            when = own(" of that time") if query.time else own("")
            raise RouteClosedError.of("it has no posts of r/{name}{when}", name=query.subreddit, when=when)
        posts = [self._post(thing) for thing in found]
        if is_ranked:
            posts.sort(key=lambda post: -(post.points or 0))
            note = own(
                "The archive lists by time only: these have most points among the newest {count} it has.",
                count=len(found),
            )
        else:
            is_asked = query.sort == "new"
            note = own("" if is_asked else "The archive lists by time only: these are the newest, not the hot ones.")
        return RedditPosts(tuple(posts[: query.limit]), note)

    async def thread(self, name: PostName, part: CommentRange) -> Thread[Post]:
        """Return a post and a part of its comments, the most points first.

        Raises:
            RouteClosedError: The archive does not answer, or does not have the post.
            RedditRefusedError: It has the post, but not the comment asked for.
        """
        parameters: dict[str, str | int] = {"link_id": f"t3_{name.post}", "limit": ALL_COMMENTS}
        if name.comment:
            parameters["parent_id"] = f"t1_{name.comment}"
        async with asyncio.TaskGroup() as group:
            first = group.create_task(or_error(self._post_of(name.post)))
            below = group.create_task(or_error(self._things("comments/tree", parameters)))
            above = group.create_task(or_error(self._root(name.comment)))
        post, things, root = first.result(), below.result(), above.result()
        for failure in (post, things, root):
            if isinstance(failure, ToolError):
                raise failure
        assert isinstance(post, Post)
        forest = Forest(is_escaped=True, is_ranked=False)
        forest.add([self._settled(thing) for thing in cast("list[Thing]", things) if thing.id != name.comment])
        base = name.comment or name.post
        page, known = forest.page(base, part), forest.total(base)
        if isinstance(root, Comment):
            return thread_under(root, post, page, known)
        return Thread(post, page.comments, total_of(post, known), page.next_offset)

    async def _found(self, query: PostsQuery, pages: int) -> list[Thing]:
        parameters: dict[str, str | int] = {"subreddit": query.subreddit, "limit": PAGE, "sort": "desc"}
        if query.words:
            parameters["query"] = query.words
        if seconds := SECONDS.get(query.time):
            parameters["after"] = int(self._now().timestamp()) - seconds
        found: dict[str, Thing] = {}
        for _ in range(pages):
            page = await self._page_of_posts(parameters)
            found |= {thing.id: thing for thing in page}
            oldest = page[-1].created_utc if page else None
            if len(page) < PAGE or oldest is None:
                break
            parameters["before"] = oldest
        return list(found.values())

    async def _page_of_posts(self, parameters: Mapping[str, str | int]) -> list[Thing]:
        """Return one page of posts; a search that took too long is repeated for less time."""
        try:
            return await self._posts("posts/search", parameters)
        except _TooSlowError:
            since = max(int(parameters.get("after", 0)), int(self._now().timestamp()) - NARROW_S)
            await self._pause(RETRY_S)
            return await self._posts("posts/search", {**parameters, "after": since})

    async def _posts(self, path: str, parameters: Mapping[str, str | int]) -> list[Thing]:
        things = read_answer(posts_in, await self._body(path, parameters))
        if things is None:
            raise RouteClosedError.of("it sent something that cannot be read")
        return things

    async def _post_of(self, post_id: str) -> Post:
        found = await self._posts("posts/ids", {"ids": post_id})
        if not found:
            raise RouteClosedError.of("it has no post {post_id}", post_id=post_id)
        return self._post(found[0])

    async def _root(self, comment_id: str) -> Comment | None:
        """Return the requested comment; None where a whole post is requested."""
        if not comment_id:
            return None
        body = await self._body("comments/ids", {"ids": comment_id})
        forest = Forest(is_escaped=True)
        read = read_answer(posts_in, body) or []
        forest.add([self._settled(thing.model_copy(update={"kind": "t1"})) for thing in read])
        root = forest.comment(comment_id)
        if root is None:
            raise RedditRefusedError.of("the archive has no such comment under the post")
        return root

    async def _things(self, path: str, parameters: Mapping[str, str | int]) -> list[Thing]:
        return read_answer(things_in, await self._body(path, parameters))

    def _post(self, thing: Thing) -> Post:
        """Return a post; its numbers are unknown while the archive has only the first ones."""
        return post_of(self._settled(thing), is_escaped=True)

    def _settled(self, thing: Thing) -> Thing:
        if thing.created_utc is not None and self._now().timestamp() - thing.created_utc >= FRESH_S:
            return thing
        return thing.model_copy(update={"score": None, "num_comments": None})

    async def _body(self, path: str, parameters: Mapping[str, str | int]) -> bytes:
        url = f"{self._url}/api/{path}?{urlencode(parameters)}"
        try:
            fetched = await self._web.get(url, accept="application/json", limits=ARCHIVE_LIMITS)
        except ToolError as error:
            raise RouteClosedError.of("it is not available: {why}", why=error.words) from error
        if _is_too_slow(fetched):
            raise _TooSlowError.of("it took too long")
        if fetched.problem:
            raise RouteClosedError(
                own("it is not available: {problem}", problem=fetched.problem), for_s=fetched.retry_after_s or 0.0
            )
        return fetched.body


class _TooSlowError(RouteClosedError):
    """The archive stopped working on a query."""


def _is_too_slow(fetched: Fetched) -> bool:
    """Return whether the answer says that it took too long; the rest of its text is not used."""
    try:
        whole: object = json.loads(fetched.body) if len(fetched.body) <= ERROR_BYTES else None
    except (ValueError, RecursionError):
        return False
    error_text = str(cast("dict[str, object]", whole).get("error", "")) if isinstance(whole, dict) else ""
    return any(word in error_text.lower() for word in TIMEOUTS)


FEED_LIMITS = FetchLimits(seconds=20.0, body_bytes=4_000_000, in_flight=1, retries=0, is_service=True, keep_s=600.0)
"""Limits for a feed, which allows few requests a minute: one answer is kept for a while, and none is repeated."""
CLOSED_S = 60.0
LACKS_OF_FEEDS = own(
    "Feeds contain at most 25 entries, no scores, no numbers of comments, and no tree: which comment answers which is "
    "not known."
)
NO_FEED = own("it shows something that is not a feed")
FEED_ENTRIES = TypeAdapter(list[FeedEntry])
LINK = re.compile(r'<a href="([^"]*)">\[link\]</a>')


class RedditFeeds:
    """Reads Reddit through its feeds; `url` replaces the public host."""

    via = "reddit-feed"
    label = own("its feed (no scores, no counts)")
    lack = LACKS_OF_FEEDS

    def __init__(self, web: Fetcher, url: str, parser: DocumentParser) -> None:
        self._web = web
        self._url = url.rstrip("/") or SITE
        self._parser = parser

    async def posts(self, query: PostsQuery) -> RedditPosts:
        """Return the posts of a subreddit, or the hits of a search in it, in the order of Reddit's list.

        Raises:
            RouteClosedError: The feed does not answer, or is none.
        """
        entries = await self._entries(_posts_path(query))
        posts = [_post(entry) for entry in entries if _id(entry).startswith("t3_")]
        if not posts and not query.words:
            raise RouteClosedError.of("it has no entries for r/{subreddit}", subreddit=query.subreddit)
        return RedditPosts(tuple(posts[: query.limit]))

    async def thread(self, name: PostName, part: CommentRange) -> Thread[Post]:
        """Return a post and some of its comments, one after the other.

        Raises:
            RouteClosedError: The feed does not answer, or holds no such post.
            RedditRefusedError: The feed holds the post, but not the comment asked for.
        """
        entries = await self._entries(f"/comments/{name.post}/.rss")
        post = next((_post(entry) for entry in entries if _id(entry) == f"t3_{name.post}"), None)
        if post is None:
            raise RouteClosedError.of("it contains no post {post}", post=name.post)
        comments = [_comment(entry) for entry in entries if _id(entry).startswith("t1_")]
        if name.comment:
            root = next((comment for comment in comments if comment.id == name.comment), None)
            if root is None:
                raise RedditRefusedError.of("the feed does not contain that comment, and its replies are not known")
            return Thread(post, (root,), 0, None, root.id)
        page = page_of(comments, [comment.id for comment in comments], part)
        return Thread(post, page.comments, len(comments), page.next_offset)

    async def _entries(self, path: str) -> list[FeedEntry]:
        try:
            fetched = await self._web.get(f"{self._url}{path}", accept="application/atom+xml", limits=FEED_LIMITS)
        except ToolError as error:
            raise RouteClosedError.of("it is not available: {why}", why=error.words) from error
        if fetched.problem:
            raise RouteClosedError(
                own("it is not available: {problem}", problem=fetched.problem), for_s=fetched.retry_after_s or CLOSED_S
            )
        if "html" in fetched.content_type.lower():
            raise RouteClosedError(NO_FEED, for_s=CLOSED_S)
        try:
            read = await self._parser.parse(ENTRIES, fetched.body)
            return FEED_ENTRIES.validate_json(read.text)
        except (ToolError, ValueError) as error:
            raise RouteClosedError(NO_FEED, for_s=CLOSED_S) from error


def _posts_path(query: PostsQuery) -> str:
    span = {"t": query.time} if query.time else {}
    if query.words:
        is_everywhere = query.subreddit.lower() == EVERYWHERE
        within = {} if is_everywhere else {"restrict_sr": "1"}
        parameters = {"q": query.words, **within, "sort": SEARCH_SORTS[query.sort], **span}
        return f"{'' if is_everywhere else f'/r/{query.subreddit}'}/search.rss?{urlencode(parameters)}"
    sort = "" if query.sort == "hot" else f"{query.sort}/"
    return f"/r/{query.subreddit}/{sort}.rss{f'?{urlencode(span)}' if span else ''}"


def _id(entry: FeedEntry) -> str:
    """Return the id with its kind: `t3_abc`."""
    return entry.id.rpartition("/")[2]


def _author(entry: FeedEntry) -> str:
    return entry.author.removeprefix("/u/")


def _post(entry: FeedEntry) -> Post:
    link = html.unescape(match[1]) if (match := LINK.search(entry.content)) else ""
    path = re.search(r"/r/[^/]+/comments/.*", entry.link)
    subreddit = re.search(r"/r/([^/]+)/", entry.link)
    return Post(
        id=_id(entry).removeprefix("t3_"),
        title=html.unescape(entry.title) or "(no title)",
        subreddit=subreddit[1] if subreddit else "",
        url="" if not link or post_at(link) else link,
        author=_author(entry),
        time=entry.time,
        text=entry.words,
        path=path[0] if path else "",
    )


def _comment(entry: FeedEntry) -> Comment:
    return Comment(_id(entry).removeprefix("t1_"), author=_author(entry), time=entry.time, text=entry.words)
