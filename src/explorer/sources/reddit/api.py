"""Reads Reddit through its API: current scores, whole trees, stubs expanded."""

import asyncio
from dataclasses import replace

from explorer.sources.reddit.items import Forest, Thing, live_posts, post_of, things_in
from explorer.sources.reddit.routes import (
    EVERYWHERE,
    PostName,
    PostsQuery,
    RedditPosts,
    RedditRefusedError,
    RedditThread,
    RouteClosedError,
    total_of,
)
from explorer.sources.reddit.session import RedditSession
from explorer.sources.threads import CommentRange
from explorer.text.rendering import own

MOST_COMMENTS = 500
"""The number of comments in one answer."""
MOST_IDS = 100
"""The number of ids in one request for more comments."""
MAX_EXPANSIONS = 5
"""The number of further requests for one thread."""
SEARCH_SORTS = {"hot": "relevance", "new": "new", "top": "top", "rising": "new", "controversial": "comments"}


class RedditApi:
    """Reads Reddit through its API."""

    via = "reddit-api"
    label = own("its API")
    lack = own("")

    def __init__(self, session: RedditSession) -> None:
        self._session = session
        self._expanding = asyncio.Lock()

    async def posts(self, query: PostsQuery) -> RedditPosts:
        """Return the posts of a subreddit, or the hits of a search in it.

        Raises:
            RouteClosedError: The API cannot be used just now.
            RedditRefusedError: The subreddit cannot be read.
        """
        parameters: dict[str, str | int] = {"limit": query.limit}
        if query.time:
            parameters["t"] = query.time
        path = f"/r/{query.subreddit}/{query.sort}"
        if query.words:
            parameters |= {"q": query.words, "sort": SEARCH_SORTS[query.sort], "type": "link"}
            is_everywhere = query.subreddit.lower() == EVERYWHERE
            path = "/search" if is_everywhere else f"/r/{query.subreddit}/search"
            parameters |= {} if is_everywhere else {"restrict_sr": 1}
        things = _read(await self._session.get(path, parameters))
        return RedditPosts(tuple(live_posts(things)[: query.limit]))

    async def thread(self, name: PostName, part: CommentRange) -> RedditThread:
        """Return a post and a part of its comments; stubs are expanded as far as the part needs it.

        Raises:
            RouteClosedError: The API cannot be used just now.
            RedditRefusedError: The post cannot be read.
        """
        limit = min(part.limit + part.offset, MOST_COMMENTS)
        # One level more below a comment: the comment itself is on the first.
        depth = part.depth + bool(name.comment)
        parameters: dict[str, str | int] = {"sort": "confidence", "limit": limit, "depth": depth}
        if name.comment:
            parameters |= {"comment": name.comment, "context": 0}
        things = _read(await self._session.get(f"/comments/{name.post}", parameters))
        post = next((post_of(thing) for thing in things if thing.kind == "t3"), None)
        if post is None:
            raise RouteClosedError.of("it sent a thread without its post")
        forest = Forest()
        forest.add(things)
        root = forest.comment(name.comment) if name.comment else None
        if name.comment and root is None:
            raise RedditRefusedError.of("there is no such comment under the post")
        base = name.comment or post.id
        await self._expand(forest, PostName(post.id, name.comment), part)
        page, known = forest.page(base, part), forest.total(base)
        if root is None:
            return RedditThread(post, page.comments, total_of(post, known), page.next_offset)
        return RedditThread(post, (replace(root, replies=page.comments),), known, page.next_offset, root.id)

    async def _expand(self, forest: Forest, name: PostName, part: CommentRange) -> None:
        """Request comments that the page lacks, a few times; after a refusal they remain counted as missing."""
        base = name.comment or name.post
        async with self._expanding:  # Reddit wants one expansion at a time of each client
            for _ in range(MAX_EXPANSIONS):
                if forest.held(base, part) >= part.limit:
                    return
                try:
                    if not await self._expanded(forest, name, part):
                        return
                except (RouteClosedError, RedditRefusedError):
                    return

    async def _expanded(self, forest: Forest, name: PostName, part: CommentRange) -> bool:
        """Request further comments, and return whether there were any to request."""
        base = name.comment or name.post
        if ids := forest.missing(base, part)[:MOST_IDS]:
            form = {
                "link_id": f"t3_{name.post}",
                "children": ",".join(ids),
                "sort": "confidence",
                "limit_children": "false",
                "api_type": "json",
            }
            things = _read(await self._session.post("/api/morechildren", form))
            forest.cover(ids)
            forest.add(things)
            return True
        if left := forest.left_off(base, part)[:1]:
            parameters: dict[str, str | int] = {
                "comment": left[0],
                "context": 0,
                "depth": part.depth,
                "limit": MOST_IDS,
            }
            things = _read(await self._session.get(f"/comments/{name.post}", parameters))
            forest.cover_left_off(left[0])
            forest.add(things)
            return True
        return False


def _read(body: bytes) -> list[Thing]:
    try:
        return things_in(body)
    except ValueError as error:
        raise RouteClosedError.of("it sent something that cannot be read") from error
