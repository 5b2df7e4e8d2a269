"""The port of all routes to Reddit, the error of a closed route, and the names and addresses of posts."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

from explorer.schema.errors import RefusedCallError, ToolError
from explorer.sources.reddit.items import Post
from explorer.sources.threads import CommentRange, Thread
from explorer.text.rendering import NOTHING, ModelText
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
SEARCH_SORTS = {"hot": "relevance", "new": "new", "top": "top", "rising": "new", "controversial": "comments"}
"""The order of a search by that of a list."""
T = TypeVar("T")


@dataclass(frozen=True)
class PostName:
    """The id of a post, and of one of its comments if that is meant."""

    post: str
    """The id in Reddit's base 36."""
    comment: str = ""


def post_named(text: str) -> PostName:
    """Read a post from its id, its full name (`t3_abc`), `post/comment`, or an address.

    Raises:
        RefusedCallError: It is none of these.
    """
    words = text.strip()
    if name := post_at(words):
        return name
    if match := PAIR.fullmatch(words):
        return PostName(match["post"].lower(), (match["comment"] or "").lower())
    raise RefusedCallError.of(
        '"{words}" names no Reddit post: give its id as get_reddit_posts shows it, or its address with '
        "/comments/ in it.",
        words=single_line(words, 80),
    )


def post_at(url: str) -> PostName | None:
    """Return the post at an address of Reddit; None for any other address."""
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
    """Return the bare name of a subreddit, or several joined by `+`; `all` is Reddit as a whole.

    Raises:
        RefusedCallError: It is not the name of a subreddit.
    """
    words = re.sub(r"^(?:https?://)?(?:[a-z]+\.)?reddit\.com", "", text.strip(), flags=re.IGNORECASE)
    name = re.sub(r"^/?r/", "", words, flags=re.IGNORECASE).strip("/")
    if not SUBREDDIT.fullmatch(name):
        raise RefusedCallError.of(
            '"{text}" is not a subreddit\'s name: write e.g. python, or python+rust.', text=single_line(text, 80)
        )
    return name


SECONDS = {"hour": 3_600, "day": 86_400, "week": 604_800, "month": 2_678_400, "year": 31_622_400}
"""The length in seconds of the ranges of time that Reddit's lists have; `all` has none."""


class RouteClosedError(ToolError):
    """This route cannot be used now, but another may; `for_s` are the seconds until it is tried again."""

    def __init__(self, message: str, *, for_s: float = 0.0) -> None:
        super().__init__(message)
        self.for_s = for_s


class RedditRefusedError(ToolError):
    """Reddit refuses: nobody can read this subreddit or post without more rights."""


def read_answer(read: Callable[[bytes], T], body: bytes) -> T:
    """Read the body of an answer.

    Raises:
        RouteClosedError: It cannot be read.
    """
    try:
        return read(body)
    except (ValueError, RecursionError) as error:
        raise RouteClosedError.of("it sent something that cannot be read") from error


@dataclass(frozen=True)
class PostsQuery:
    """A request for posts."""

    subreddit: str
    """The name, or several joined by `+`; `all` for Reddit as a whole."""
    sort: str = "hot"
    """`hot`, `new`, `top`, `rising` or `controversial`."""
    limit: int = 25
    words: str = ""
    """The words to search for; empty: the list itself."""
    time: str = ""
    """The range of `top`, `controversial` and a search: `hour` to `year`, `all`; empty: Reddit's default."""


@dataclass(frozen=True)
class RedditPosts:
    """The posts that a route gave."""

    posts: tuple[Post, ...]
    note: ModelText = NOTHING
    """The difference between the list and the request; empty when there is none."""


class Route(Protocol):
    """A route to Reddit."""

    via: str
    """The name in sources."""
    label: ModelText
    """The name in the first line of a result, with what the route lacks."""
    lack: ModelText
    """A sentence about what it lacks; empty when it lacks nothing."""

    async def posts(self, query: PostsQuery) -> RedditPosts:
        """Return the posts of a subreddit."""
        ...

    async def thread(self, name: PostName, part: CommentRange) -> Thread[Post]:
        """Return a post and a part of its comments."""
        ...


def total_of(post: Post, known: int) -> int:
    """Return a post's number of comments: the service's, else the known ones; stubs count some that are gone."""
    return known if post.comments is None else post.comments


@dataclass(frozen=True)
class Routed:
    """The route that an answer came by."""

    via: str
    label: ModelText
    notes: tuple[ModelText, ...] = ()
    """What the route lacks, and why those before it were not used."""
