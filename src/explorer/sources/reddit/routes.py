"""What every route to Reddit offers, how it says that it is closed, and the names and addresses of posts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from explorer.schema.errors import RefusedCallError, ToolError
from explorer.sources.reddit.items import Post
from explorer.sources.threads import Comment, CommentRange
from explorer.text.sanitize import single_line

ID = r"[0-9a-z]{1,13}"
HOSTS = re.compile(r"(?:(?:www|old|new|np|i|m|amp|sh|[a-z]{2})\.)?reddit\.com")
SHORT_HOSTS = frozenset({"redd.it", "www.redd.it"})
SUBREDDIT = re.compile(r"\w{2,24}(?:\+\w{2,24}){0,9}", re.ASCII)
POST_PATH = re.compile(
    rf"/(?:(?:r|u|user)/[\w-]+/)?(?:comments|gallery)/(?P<post>{ID})(?:/[^/]*/(?P<comment>{ID}))?(?:/|$)", re.IGNORECASE
)
PAIR = re.compile(rf"(?:t3_)?(?P<post>{ID})(?:/(?:t1_)?(?P<comment>{ID}))?", re.IGNORECASE)
EVERYWHERE = "all"


@dataclass(frozen=True)
class PostName:
    """Which post, and which comment of it if one is meant."""

    post: str
    """In Reddit's base 36."""
    comment: str = ""


def post_named(text: str) -> PostName:
    """A post from its id, its full name (`t3_abc`), `post/comment`, or an address.

    Raises:
        RefusedCallError: It is none of these.
    """
    words = text.strip()
    if name := post_at(words):
        return name
    if match := PAIR.fullmatch(words):
        return PostName(match["post"].lower(), (match["comment"] or "").lower())
    raise RefusedCallError(
        f'"{single_line(words, 80)}" names no Reddit post: give its id as get_reddit_posts shows it, or its '
        "address with /comments/ in it."
    )


def post_at(url: str) -> PostName | None:
    """The post at an address of Reddit's; None for any other address."""
    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
    except ValueError:
        return None
    host = (parts.hostname or "").rstrip(".")
    if host in SHORT_HOSTS and (match := re.fullmatch(rf"/({ID})/?", parts.path)):
        return PostName(match[1])
    if not HOSTS.fullmatch(host):
        return None
    match = POST_PATH.match(parts.path)
    return PostName(match["post"].lower(), (match["comment"] or "").lower()) if match else None


def subreddit_named(text: str) -> str:
    """A subreddit's bare name, or several joined by `+`; `all` is Reddit as a whole.

    Raises:
        RefusedCallError: It is no such name.
    """
    words = re.sub(r"^(?:https?://)?(?:[a-z]+\.)?reddit\.com", "", text.strip(), flags=re.IGNORECASE)
    name = re.sub(r"^/?r/", "", words, flags=re.IGNORECASE).strip("/")
    if not SUBREDDIT.fullmatch(name):
        raise RefusedCallError(
            f'"{single_line(text, 80)}" is not a subreddit\'s name: write e.g. python, or python+rust.'
        )
    return name


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


@dataclass(frozen=True)
class Routed:
    """By which route something came."""

    via: str
    label: str
    notes: tuple[str, ...] = ()
    """What the route lacks, and why those before it were not taken."""
