"""The tool that reads a discussion of Hacker News or Reddit."""

import re
from typing import Literal, Self
from urllib.parse import parse_qs, urlsplit

from pydantic import Field

from explorer.schema.errors import RefusedCallError
from explorer.schema.tool import Arguments, Tool, ToolContext, ToolResult
from explorer.sources.connections import SourceConnections
from explorer.sources.hackernews.hackernews import HackerNews, hn_thread_text
from explorer.sources.hackernews.services import or_advise
from explorer.sources.reddit.reddit import Reddit, reddit_thread_text
from explorer.sources.reddit.routes import post_named
from explorer.sources.threads import CommentRange, ThreadText, stored
from explorer.text.sanitize import single_line

MAX_COMMENTS = 500
ARGUMENT = "post_id"
HN_HOSTS = frozenset({"news.ycombinator.com", "www.news.ycombinator.com"})
HN_ID = re.compile(r"[1-9]\d{0,11}")


class GetCommentsArguments(Arguments):
    """Arguments of `get_comments`."""

    post_id: str = Field(
        max_length=500, description="Id or address of the post; post/comment for one comment and its replies"
    )
    platform: Literal["hackernews", "reddit"]
    limit: int = Field(default=50, ge=1, le=MAX_COMMENTS)
    depth: int = Field(default=6, ge=1, le=30)
    offset: int = Field(default=0, ge=0)


class GetCommentsTool(Tool[GetCommentsArguments]):
    """`get_comments`: reads the discussion of a post."""

    name = "get_comments"
    description = "Read the discussion under a Hacker News or Reddit post."
    arguments = GetCommentsArguments
    activity = "reading the comments on {post_id}"
    is_lookup = True

    def __init__(self, hackernews: HackerNews, reddit: Reddit) -> None:
        self._hackernews = hackernews
        self._reddit = reddit

    @classmethod
    def connect(cls, connections: SourceConnections) -> Self:
        """Make the tool with the run's sites."""
        return cls(connections.site(HackerNews), connections.site(Reddit))

    async def execute(self, arguments: GetCommentsArguments, context: ToolContext) -> ToolResult:
        """Return the thread."""
        part = CommentRange(arguments.limit, arguments.depth, arguments.offset)
        read = self._of_reddit if arguments.platform == "reddit" else self._of_hackernews
        content, data = await stored(await read(arguments.post_id.strip(), part), context.store)
        return ToolResult(success=True, content=content, metadata=data)

    async def _of_reddit(self, post_id: str, part: CommentRange) -> ThreadText:
        thread, routed = await self._reddit.thread(post_named(post_id), part)
        return reddit_thread_text(thread, routed, ARGUMENT)

    async def _of_hackernews(self, post_id: str, part: CommentRange) -> ThreadText:
        advice = "Try this later, or look for the discussion with web_search."
        thread = await or_advise(self._hackernews.thread(_hn_item(post_id), part), advice)
        return hn_thread_text(thread, ARGUMENT)


def _hn_item(post_id: str) -> int:
    """Return the item of an id, of `story/comment`, or of an address.

    Raises:
        ToolError: It is none of these.
    """
    text = post_id
    if "/" in text and (item := _item_of_address(text)):
        text = item
    number = text.rpartition("/")[2]
    if not HN_ID.fullmatch(number):
        raise RefusedCallError.of(
            '"{post_id}" names no item of Hacker News: give its number, or the address with item?id= in it. '
            "For Reddit, set platform=reddit.",
            post_id=single_line(post_id, 80),
        )
    return int(number)


def _item_of_address(text: str) -> str:
    try:
        parts = urlsplit(text if "://" in text else f"https://{text}")
    except ValueError:
        return ""
    return "".join(parse_qs(parts.query).get("id", [])[:1]) if parts.hostname in HN_HOSTS else ""
