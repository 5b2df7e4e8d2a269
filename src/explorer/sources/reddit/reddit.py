"""Reddit by whatever route is open: its API, else an archive, else its feeds; which one answered is always told."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Self, TypeVar

from explorer.network.guard import Guard
from explorer.schema.errors import NoSuchThingError, ToolError
from explorer.sources.page import Fetcher, WebPage
from explorer.sources.reddit.api import RedditApi
from explorer.sources.reddit.arctic_shift import ArcticShift
from explorer.sources.reddit.feeds import RedditFeeds
from explorer.sources.reddit.routes import (
    PostName,
    PostsQuery,
    RedditPosts,
    RedditRefusedError,
    RedditThread,
    Route,
    RouteClosedError,
    Routed,
    closed_words,
    post_at,
)
from explorer.sources.reddit.session import Access, RedditSession
from explorer.sources.reddit.text import reddit_thread_text
from explorer.sources.threads import CommentRange, walk
from explorer.text.sanitize import single_line

API = "the API"
ARCHIVE = "the archive"
FEEDS = "the feeds"
REASON_CHARS = 240
SHOWN = CommentRange(limit=100, depth=8)
"""How much of a post's comments is read as a page."""
NO_KEY = "no credentials are set (REDDIT_CLIENT_ID); without them Reddit has closed it since May 2026"

T = TypeVar("T")


class Reddit:
    """A reader of Reddit over routes in the order of preference; `absent` says why others are not among them."""

    def __init__(
        self,
        routes: Mapping[str, Route],
        absent: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._routes = dict(routes)
        self._absent = dict(absent)
        self._clock = clock
        self._closed: dict[str, tuple[float, str]] = {}

    @classmethod
    @asynccontextmanager
    async def open(
        cls, web: Fetcher, guard: Guard, access: Access, now: Callable[[], datetime]
    ) -> AsyncGenerator[Self]:
        """Open what is configured. Without credentials the API is asked only at a stand-in, which may not want any."""
        routes: dict[str, Route] = {}
        absent: dict[str, str] = {}
        session = RedditSession(guard, access)
        if access.app or access.url:
            routes[API] = RedditApi(session)
        else:
            absent[API] = NO_KEY
        routes[ARCHIVE] = ArcticShift(web, access.url, now)
        routes[FEEDS] = RedditFeeds(web, access.url)
        try:
            yield cls(routes, absent)
        finally:
            await session.aclose()

    async def posts(self, query: PostsQuery) -> tuple[RedditPosts, Routed]:
        """Posts of a subreddit, or hits in it.

        Raises:
            ToolError: No route leads there, each with its reason; or Reddit refuses.
        """
        what = f"r/{query.subreddit}"
        return await self._first(what, lambda route: route.posts(query))

    async def thread(self, name: PostName, part: CommentRange) -> tuple[RedditThread, Routed]:
        """A post and a part of its comments.

        Raises:
            ToolError: No route leads there, each with its reason; or Reddit refuses.
        """
        return await self._first(f"post {name.post}", lambda route: route.thread(name, part))

    async def read(self, url: str) -> WebPage | None:
        """Read a post with its comments; None for any other address: a list, a picture, a user.

        Raises:
            ToolError: No route to Reddit is open, each with its reason; or Reddit refuses.
        """
        name = post_at(url)
        if name is None:
            return None
        thread, routed = await self.thread(name, SHOWN)
        written = reddit_thread_text(thread, routed, "post_id")
        is_cut = thread.next_offset is not None or any(comment.more for _, comment in walk(thread.comments))
        ways = ("More of the thread: get_comments with platform=reddit.",) if is_cut else ()
        return WebPage(
            url=written.draft.url,
            title=thread.post.title,
            text=written.draft.text,
            via=routed.via,
            author=written.draft.author,
            published=written.draft.published,
            flags=("truncated",) if is_cut else (),
            kind="comments",
            notes=(f"Through {routed.label}.", *written.notes, *ways),
        )

    async def _first(self, what: str, ask: Callable[[Route], Awaitable[T]]) -> tuple[T, Routed]:
        """The answer of the first route that is open."""
        reasons = [f"{name}: {reason}" for name, reason in self._absent.items()]
        for name, route in self._routes.items():
            if reason := self._still_closed(name):
                reasons.append(f"{name}: {reason}")
                continue
            try:
                return await ask(route), _routed(route, reasons)
            except RouteClosedError as error:
                self._closed[name] = (self._clock() + error.for_s, error.message)
                reasons.append(f"{name}: {error.message}")
            except RedditRefusedError as error:
                raise NoSuchThingError(
                    f"Reddit does not show {what} through {route.label}: {error.message}."
                ) from error
        raise ToolError(
            f"Reddit is not available for {what}. {_sentence(reasons)} Look for the same with web_search or search_hn, "
            "and say that Reddit could not be read."
        )

    def _still_closed(self, name: str) -> str:
        until, reason = self._closed.get(name, (0.0, ""))
        return reason if self._clock() < until else ""


def _routed(route: Route, reasons: Sequence[str]) -> Routed:
    notes = [route.lack] if route.lack else []
    if reasons:
        notes.append(f"Not taken: {_sentence(reasons)}")
    return Routed(route.via, route.label, tuple(notes))


def _sentence(reasons: Sequence[str]) -> str:
    words = closed_words([single_line(reason)[:REASON_CHARS] for reason in reasons])
    return f"{words[:1].upper()}{words[1:]}."
