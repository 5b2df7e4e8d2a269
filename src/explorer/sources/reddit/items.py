"""Posts and comments of Reddit, as values of ours, and the foreign records they are read from."""

import html
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, cast
from urllib.parse import urljoin

from pydantic import BeforeValidator, ValidationError

from explorer.sources.http.wire import WireModel, listed
from explorer.sources.threads import DELETED, REMOVED
from explorer.sources.timestamps import Seconds

SITE = "https://www.reddit.com"
GONE_TEXTS = {"[deleted]": DELETED, "[removed]": REMOVED, "[ Removed by Reddit ]": REMOVED}
GONE_AUTHOR = "[deleted]"
MOST = 1 << 53
KINDS = frozenset({"t1", "t3", "more"})


def _whole(value: object) -> int | None:
    """A number of points or comments; hidden and absurd ones are unknown."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < MOST:
        return None
    return int(value)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


Text = Annotated[str, BeforeValidator(_text)]
Whole = Annotated[int | None, BeforeValidator(_whole)]


class Thing(WireModel):
    """A post (`t3`), a comment (`t1`) or a stub for comments left out (`more`), with the fields of all three."""

    kind: str
    id: str
    parent_id: Text = ""
    author: Text = ""
    created_utc: Seconds = None
    score: Whole = None
    score_hidden: bool | None = None
    body: Text = ""
    title: Text = ""
    subreddit: Text = ""
    permalink: Text = ""
    url: Text = ""
    selftext: Text = ""
    is_self: bool | None = None
    num_comments: Whole = None
    over_18: bool | None = None
    stickied: bool | None = None
    removed_by_category: Text = ""
    count: Whole = None
    children: Annotated[tuple[str, ...], BeforeValidator(listed)] = ()

    @property
    def above(self) -> str:
        """The bare id of what it answers."""
        return self.parent_id.partition("_")[2]


@dataclass(frozen=True)
class Post:
    """A submission."""

    id: str
    title: str
    subreddit: str = ""
    url: str = ""
    """What it links to; empty for a text."""
    author: str = ""
    points: int | None = None
    comments: int | None = None
    time: int | None = None
    """Unix seconds."""
    text: str = ""
    state: str = ""
    """`deleted`, `removed`, or empty for a live one."""
    marks: tuple[str, ...] = ()
    """`pinned`, `nsfw`."""
    path: str = ""

    @property
    def page(self) -> str:
        """Its page on Reddit."""
        return f"{SITE}{self.path}" if self.path.startswith("/r/") else f"{SITE}/comments/{self.id}/"


def post_of(thing: Thing, *, is_escaped: bool = False) -> Post:
    """A post of ours; `is_escaped` says that `& < >` come as HTML entities."""
    plain = html.unescape if is_escaped else str
    text = plain(thing.selftext).strip()
    state = GONE_TEXTS.get(text, "") or (REMOVED if thing.removed_by_category else "")
    path = thing.permalink.removeprefix("https://reddit.com").removeprefix(SITE)
    link = urljoin(SITE, plain(thing.url).strip())
    return Post(
        id=thing.id,
        title=plain(thing.title).strip() or "(no title)",
        subreddit=thing.subreddit,
        url="" if thing.is_self or _is_own_page(link, thing.id) else link,
        author="" if thing.author == GONE_AUTHOR else thing.author,
        points=None if thing.score_hidden else thing.score,
        comments=thing.num_comments,
        time=thing.created_utc,
        text="" if text in GONE_TEXTS else text,
        state=state,
        marks=tuple(mark for mark, holds in (("pinned", thing.stickied), ("nsfw", thing.over_18)) if holds),
        path=path,
    )


def _is_own_page(link: str, post_id: str) -> bool:
    return link == SITE or f"/comments/{post_id}" in link


def things_in(body: bytes) -> list[Thing]:
    """Every post, comment and stub of an answer, in its order, parents before their replies.

    Trees are flattened without recursion, and what is no thing is passed over: a thread may be nested as deep as it
    likes, and one odd record costs itself alone.

    Raises:
        ValueError: It is no JSON.
    """
    try:
        whole: object = json.loads(body)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    return list(_things(whole))


def posts_in(body: bytes) -> list[Thing] | None:
    """The bare posts of an archive's `{"data": [...]}`; None when it holds no list.

    Raises:
        ValueError: It is no JSON.
    """
    whole: object = json.loads(body)
    items = cast("dict[str, object]", whole).get("data") if isinstance(whole, dict) else None
    if not isinstance(items, list):
        return None
    read = [_thing("t3", item) for item in cast("list[object]", items)]
    return [thing for thing in read if thing]


def _things(whole: object) -> Iterator[Thing]:
    waiting = [whole]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += reversed(cast("list[object]", node))
        elif isinstance(node, dict):
            fields = cast("dict[str, object]", node)
            kind = _text(fields.get("kind"))
            if thing := _thing(kind, fields.get("data")):
                yield thing
            waiting.append(_within(kind, fields))


def _within(kind: str, fields: dict[str, object]) -> object:
    """What an envelope holds: replies of a comment, children of a listing, things of an expansion."""
    for name in ("json", "data", "replies" if kind in KINDS else "children", "things"):
        inner = fields.get(name)
        if isinstance(inner, dict):
            fields = cast("dict[str, object]", inner)
            if "kind" in fields:
                return fields
        elif isinstance(inner, list):
            return cast("list[object]", inner)
    return None


def _thing(kind: str, data: object) -> Thing | None:
    if kind not in KINDS or not isinstance(data, dict):
        return None
    try:
        return Thing.model_validate({**cast("dict[str, object]", data), "kind": kind})
    except ValidationError:
        return None


def live_posts(things: Sequence[Thing], *, is_escaped: bool = False) -> list[Post]:
    """The posts among them."""
    return [post_of(thing, is_escaped=is_escaped) for thing in things if thing.kind == "t3"]
