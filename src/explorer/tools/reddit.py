"""The tool that lists and searches posts of Reddit."""

from typing import Literal, Self

from pydantic import Field

from explorer.schema.text_part import numbered
from explorer.schema.tool import Arguments, Tool, ToolContext, ToolResult
from explorer.sources.connections import SourceConnections
from explorer.sources.reddit.reddit import Reddit, reddit_draft, reddit_entry
from explorer.sources.reddit.routes import PostsQuery, RedditPosts, Routed, subreddit_named
from explorer.sources.threads import submission_facts
from explorer.text.rendering import ModelText, block, code, own, render

MAX_POSTS = 100
NOT_IN_SAMPLE = "the sample day has no Reddit"


class RedditPostsArguments(Arguments):
    """Arguments of `get_reddit_posts`."""

    subreddit: str = Field(description="Its name; all: Reddit as a whole")
    sort: Literal["hot", "new", "top", "rising", "controversial"] = "hot"
    limit: int = Field(default=25, ge=1, le=MAX_POSTS)
    query: str = Field(default="", max_length=300, description="Keywords; empty: list the posts")
    time: Literal["", "hour", "day", "week", "month", "year", "all"] = Field(
        default="", description="hour, day, week, month, year or all, for sort=top and for a query"
    )


class RedditPostsTool(Tool[RedditPostsArguments]):
    """`get_reddit_posts`: lists or searches posts."""

    name = "get_reddit_posts"
    description = "List a subreddit's posts, or search it."
    arguments = RedditPostsArguments
    activity = "looking at posts of r/{subreddit}"
    is_search = True
    is_lookup = True

    def __init__(self, client: Reddit) -> None:
        self._client = client

    @classmethod
    def connect(cls, connections: SourceConnections) -> Self:
        """Make the tool with the run's sites."""
        return cls(connections.site(Reddit))

    @classmethod
    def missing(cls, connections: SourceConnections) -> str:
        """Return why the tool is not offered: the sample day has no Reddit."""
        return NOT_IN_SAMPLE if connections.is_sample else ""

    async def execute(self, arguments: RedditPostsArguments, context: ToolContext) -> ToolResult:
        """Return the posts."""
        query = PostsQuery(
            subreddit_named(arguments.subreddit),
            arguments.sort,
            arguments.limit,
            " ".join(arguments.query.split()),
            arguments.time,
        )
        found, routed = await self._client.posts(query)
        sources = await context.store([reddit_draft(post, routed) for post in found.posts])
        now = context.now()
        listed = numbered(sources, found.posts, lambda place, name, post: reddit_entry(place, name, post, now))
        content = render(*_head(query, found, routed), block(listed))
        stories = [submission_facts(source, post, now) for source, post in zip(sources, found.posts, strict=True)]
        return ToolResult(success=True, content=content, metadata={"stories": stories})


def _head(query: PostsQuery, found: RedditPosts, routed: Routed) -> list[ModelText]:
    listed = own("{sort} posts", sort=code(query.sort))
    what = own('search for "{words}"', words=query.words) if query.words else listed
    first = own(
        "Reddit r/{subreddit} {what} through {label}: {count}.",
        subreddit=code(query.subreddit),
        what=what,
        label=routed.label,
        count=len(found.posts),
    )
    advice = (
        "" if found.posts else "This route found nothing. Try other or fewer words, more time, or another subreddit."
    )
    return [first, own(advice), found.note, *routed.notes]
