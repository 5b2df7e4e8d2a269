"""What every route to Reddit offers, and how it says that it is closed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from explorer.schema.errors import ToolError
from explorer.sources.reddit.items import Post
from explorer.sources.reddit.names import PostName
from explorer.sources.threads import Comment, CommentRange

SECONDS = {"hour": 3_600, "day": 86_400, "week": 604_800, "month": 2_678_400, "year": 31_622_400}
"""Of the stretches of time that Reddit's lists know; `all` is none."""


class RouteClosedError(ToolError):
    """This route does not lead there just now; another may. `for_s` is how long it need not be tried again."""

    def __init__(self, message: str, *, for_s: float = 0.0) -> None:
        super().__init__(message)
        self.for_s = for_s


class RedditRefusedError(ToolError):
    """Reddit answers, and says no: this subreddit or post cannot be read by anyone without more rights."""


@dataclass(frozen=True)
class PostsQuery:
    """Which posts."""

    subreddit: str
    """Several joined by `+`; `all` for Reddit as a whole."""
    sort: str = "hot"
    """`hot`, `new`, `top`, `rising`, `controversial`."""
    limit: int = 25
    words: str = ""
    """To search for; empty: the list itself."""
    time: str = ""
    """How far back `top`, `controversial` and a search look: `hour` to `year`, `all`; empty: as usual."""


@dataclass(frozen=True)
class RedditPosts:
    """What a route gave for a query."""

    posts: tuple[Post, ...]
    note: str = ""
    """How the list differs from what was asked; empty when it does not."""


@dataclass(frozen=True)
class RedditThread:
    """A post with a part of its comments."""

    post: Post
    comments: tuple[Comment, ...]
    """Below a root, the root alone, with what is shown of its replies."""
    total: int
    """As the service counts them, or as far as is known."""
    next_offset: int | None = None
    root: str = ""
    """Id of the comment that was asked for, if one was."""


class Route(Protocol):
    """One way to Reddit."""

    via: str
    """As sources name it."""
    label: str
    """As a first line names it, with what it lacks."""
    lack: str
    """What it lacks, in a sentence; empty when nothing."""

    async def posts(self, query: PostsQuery) -> RedditPosts:
        """Posts of a subreddit."""
        ...

    async def thread(self, name: PostName, part: CommentRange) -> RedditThread:
        """A post and a part of its comments."""
        ...


def total_of(post: Post, known: int) -> int:
    """Comments of a post: what the service says, else what is known of; stubs count some that are gone."""
    return known if post.comments is None else post.comments


def closed_words(reasons: Sequence[str]) -> str:
    """The reasons of all routes on one line."""
    return "; ".join(reason.rstrip(".") for reason in reasons)
