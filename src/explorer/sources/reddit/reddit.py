"""Reads Reddit by the first open route (its API, an archive, its feeds), and writes posts and threads as text."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Self, TypeVar

from explorer.schema.errors import NoSuchThingError, ToolError
from explorer.schema.tool import SourceDraft
from explorer.sources.http.wire import moment
from explorer.sources.page import SiteAccess, WebPage
from explorer.sources.reddit.api import Access, RedditApi, RedditSession
from explorer.sources.reddit.items import Post
from explorer.sources.reddit.keyless import ArcticShift, RedditFeeds
from explorer.sources.reddit.routes import (
    PostName,
    PostsQuery,
    RedditPosts,
    RedditRefusedError,
    Route,
    RouteClosedError,
    Routed,
    post_at,
)
from explorer.sources.threads import (
    CommentRange,
    LeadLine,
    Thread,
    ThreadText,
    hanging,
    number,
    preview,
    submission_draft,
    submission_entry,
    ways_on,
)
from explorer.text.rendering import MAX_ID_CHARS, ModelText, code, first_chars, own, render
from explorer.text.sanitize import single_line

PREVIEW_CHARS = 300


def reddit_entry(place: int, source_id: str, post: Post, now: datetime) -> str:
    """Return two lines for a post; a third with the beginning of its text."""
    more = [f"r/{single_line(post.subreddit) or '?'}", *post.marks, *([post.state] if post.state else [])]
    return submission_entry(place, source_id, post, now, *more) + preview(post.text, PREVIEW_CHARS)


def reddit_draft(post: Post, routed: Routed) -> SourceDraft:
    """Return a post as a source, with all that is known of it."""
    return submission_draft(post, routed.via, where=f"r/{post.subreddit}, ")


def reddit_thread_text(thread: Thread[Post], routed: Routed, argument: str) -> ThreadText:
    """Return a thread as text; `argument` is the name of the argument for its id in the tool that shows it."""
    post, name = thread.post, code(argument)
    identifier = code(post.id, MAX_ID_CHARS)

    def way(comment: str) -> ModelText:
        return own("{name}={post}/{comment}", name=name, post=identifier, comment=code(comment, MAX_ID_CHARS))

    return ThreadText(
        thread,
        url=f"{post.page.rstrip('/')}/{thread.root}/" if thread.root and post.path else post.page,
        via=routed.via,
        about=own(
            '"{title}" (Reddit post {id}, r/{subreddit}) through {label}',
            title=post.title,
            id=identifier,
            subreddit=post.subreddit or "?",
            label=routed.label,
        ),
        lead=() if thread.root else tuple(_post_lines(post)),
        notes=(*routed.notes, *ways_on(thread, way)),
    )


def _post_lines(post: Post) -> list[LeadLine]:
    """Return the lines of the post's own text and numbers, before the comments."""
    facts = f"{number(post.points)} points, by {single_line(post.author) or '?'}, {moment(post.time) or '?'}"
    lines = [LeadLine(facts)]
    if post.state:
        lines.append(LeadLine(f"The post is {post.state}."))
    if post.url:
        lines.append(LeadLine(f"Links to {single_line(post.url)}"))
    if post.text:
        lines.append(LeadLine(hanging(post.text, "  "), "Text of the post: ", is_of_author=True))
    return lines


API = own("the API")
ARCHIVE = own("the archive")
FEEDS = own("the feeds")
REASON_CHARS = 240
SHOWN = CommentRange(limit=100, depth=8)
"""The part of a post's comments that is read as a page."""
NO_KEY = "no credentials are set (REDDIT_CLIENT_ID); without them Reddit has closed it since May 2026"

T = TypeVar("T")


class Reddit:
    """Reads Reddit by its routes in order of preference; `absent` has the reasons why others are missing."""

    def __init__(
        self,
        routes: Mapping[str, Route],
        absent: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._routes = dict(routes)
        self._absent = dict(absent)
        self._clock = clock
        self._closed: dict[str, tuple[float, ModelText]] = {}

    @classmethod
    @asynccontextmanager
    async def open(cls, site: SiteAccess, access: Access) -> AsyncGenerator[Self]:
        """Open the configured routes. Without credentials the API is asked only at a replaced address."""
        routes: dict[str, Route] = {}
        absent: dict[str, str] = {}
        session = RedditSession(site.guard, access)
        if access.identity or access.url:
            routes[API] = RedditApi(session)
        else:
            absent[API] = NO_KEY
        routes[ARCHIVE] = ArcticShift(site.web, access.url, site.now)
        routes[FEEDS] = RedditFeeds(site.web, access.url, site.parser)
        try:
            yield cls(routes, absent)
        finally:
            await session.aclose()

    async def posts(self, query: PostsQuery) -> tuple[RedditPosts, Routed]:
        """Return the posts of a subreddit, or the hits of a search in it.

        Raises:
            ToolError: No route leads there, each with its reason; or Reddit refuses.
        """
        what = own("r/{name}", name=code(query.subreddit))
        return await self._first(what, lambda route: route.posts(query))

    async def thread(self, name: PostName, part: CommentRange) -> tuple[Thread[Post], Routed]:
        """Return a post and a part of its comments.

        Raises:
            ToolError: No route leads there, each with its reason; or Reddit refuses.
        """
        return await self._first(own("post {id}", id=code(name.post)), lambda route: route.thread(name, part))

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
        ways = (own("More of the thread: get_comments with platform=reddit."),) if thread.is_cut else ()
        notes = (own("Through {label}.", label=routed.label), *written.notes, *ways)
        return written.as_page(notes, ("truncated",) if thread.is_cut else ())

    async def _first(self, what: ModelText, ask: Callable[[Route], Awaitable[T]]) -> tuple[T, Routed]:
        """Return the answer of the first open route."""
        reasons = [_reason(name, reason) for name, reason in self._absent.items()]
        for name, route in self._routes.items():
            if reason := self._still_closed(name):
                reasons.append(_reason(name, reason))
                continue
            try:
                return await ask(route), _routed(route, reasons)
            except RouteClosedError as error:
                self._closed[name] = (self._clock() + error.for_s, error.words)
                reasons.append(_reason(name, error.words))
            except RedditRefusedError as error:
                raise NoSuchThingError.of(
                    "Reddit does not show {what} through {label}: {why}.", what=what, label=route.label, why=error.words
                ) from error
        raise ToolError.of(
            "Reddit is not available for {what}. {reasons} Look for the same with web_search or search_hn, "
            "and say that Reddit could not be read.",
            what=what,
            reasons=_sentence(reasons),
        )

    def _still_closed(self, name: str) -> ModelText:
        until, reason = self._closed.get(name, (0.0, own("")))
        return reason if self._clock() < until else own("")


def _routed(route: Route, reasons: Sequence[ModelText]) -> Routed:
    notes = [route.lack] if route.lack else []
    if reasons:
        notes.append(own("Not taken: {reasons}", reasons=_sentence(reasons)))
    return Routed(route.via, route.label, tuple(notes))


def _reason(route: str, reason: str) -> ModelText:
    return own("{route}: {reason}", route=route, reason=reason)


def _sentence(reasons: Sequence[ModelText]) -> ModelText:
    return own("{reasons}.", reasons=render(*(first_chars(reason, REASON_CHARS) for reason in reasons), between="; "))
