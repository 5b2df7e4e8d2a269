"""Posts and comments of Reddit as values, the records they are read from, and the tree of a thread."""

import html
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, cast
from urllib.parse import urljoin

from pydantic import BeforeValidator, ValidationError

from explorer.sources.http.wire import Seconds, WireModel, listed
from explorer.sources.threads import DELETED, REMOVED, Comment, CommentPage, CommentRange, Submission, page_of, size

SITE = "https://www.reddit.com"
GONE_TEXTS = {"[deleted]": DELETED, "[removed]": REMOVED, "[ Removed by Reddit ]": REMOVED}
GONE_AUTHOR = "[deleted]"
MOST = 1 << 53
KINDS = frozenset({"t1", "t3", "more"})


def _whole(value: object) -> int | None:
    """Return a number of points or comments; None for hidden and impossible ones."""
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
        """The bare id of the post or comment that it answers."""
        return self.parent_id.partition("_")[2]


@dataclass(frozen=True)
class Post(Submission):
    """A post."""

    id: str
    subreddit: str = ""
    marks: tuple[str, ...] = ()
    """Labels such as `pinned` and `nsfw`."""
    path: str = ""

    @property
    def page(self) -> str:
        """The address of its page on Reddit."""
        return f"{SITE}{self.path}" if self.path.startswith("/r/") else f"{SITE}/comments/{self.id}/"


def post_of(thing: Thing, *, is_escaped: bool = False) -> Post:
    """Return a record as a post; `is_escaped`: `& < >` are HTML entities in it."""
    plain = html.unescape if is_escaped else str
    text = plain(thing.selftext).strip()
    state = GONE_TEXTS.get(text, "") or (REMOVED if thing.removed_by_category else "")
    path = thing.permalink.removeprefix("https://reddit.com").removeprefix(SITE)
    link = plain(thing.url).strip()
    with suppress(ValueError):  # an address that is none stays as it was typed
        link = urljoin(SITE, link)
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
    """Return every post, comment and stub of an answer in its order, parents before their replies.

    Trees are flattened without recursion, since a thread may be nested to any depth. A record that cannot be read is
    left out alone.

    Raises:
        ValueError: It is not JSON.
    """
    try:
        whole: object = json.loads(body)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    return list(_things(whole))


def posts_in(body: bytes) -> list[Thing] | None:
    """Return the posts of an archive's `{"data": [...]}`; None when there is no list.

    Raises:
        ValueError: It is not JSON.
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
    """Return the content of a record: replies of a comment, children of a listing, things of an expansion."""
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
    """Return the posts among records."""
    return [post_of(thing, is_escaped=is_escaped) for thing in things if thing.kind == "t3"]


MAX_LEVELS = 100
"""The deepest level that is read; deeper replies are only counted."""


@dataclass(frozen=True)
class Stub:
    """Comments that an answer left out."""

    above: str
    """The id of the post or comment that they answer."""
    ids: tuple[str, ...]
    """The ids of direct replies in rank order; empty when only their existence is known."""
    count: int
    """The number of comments on all levels."""


class Forest:
    """The known comments of one thread; `is_escaped`: `& < >` are HTML entities in them."""

    def __init__(self, *, is_escaped: bool = False, is_ranked: bool = True) -> None:
        self._is_escaped = is_escaped
        self._is_ranked = is_ranked
        self._comments: dict[str, Thing] = {}
        self._below: dict[str, list[str]] = {}
        self._stubs: dict[str, list[Stub]] = {}
        self._asked: set[str] = set()

    def add(self, things: Sequence[Thing]) -> None:
        """Add the records of an answer; known ones do not change."""
        for thing in things:
            if thing.kind == "t1" and thing.id not in self._comments:
                self._comments[thing.id] = thing
                self._below.setdefault(thing.above, []).append(thing.id)
            elif thing.kind == "more":
                self._add_stub(thing)

    def _add_stub(self, thing: Thing) -> None:
        """Add a stub, unless its comments were requested already: they would be requested without end."""
        ids = tuple(one for one in thing.children if one not in self._asked)
        if not ids and (thing.children or _left_off(thing.above) in self._asked):
            return
        count = max((thing.count or 0) - len(thing.children) + len(ids), len(ids), 1)
        self._stubs.setdefault(thing.above, []).append(Stub(thing.above, ids, count))

    def cover(self, ids: Sequence[str]) -> None:
        """Remove the stubs of ids that were requested, whatever came."""
        self._asked |= set(ids)
        for above, stubs in self._stubs.items():
            self._stubs[above] = [left for stub in stubs if (left := self._unspent(stub))]

    def cover_left_off(self, above: str) -> None:
        """Note that the comments which an answer cut off below a comment were requested."""
        self._asked.add(_left_off(above))
        self._stubs[above] = [stub for stub in self._stubs.get(above, []) if stub.ids]

    def _unspent(self, stub: Stub) -> Stub | None:
        ids = tuple(one for one in stub.ids if one not in self._asked)
        if len(ids) == len(stub.ids):
            return stub
        return Stub(stub.above, ids, max(stub.count - len(stub.ids) + len(ids), 1)) if ids else None

    def comment(self, comment_id: str) -> Comment | None:
        """Return one comment without its replies."""
        thing = self._comments.get(comment_id)
        return self._one(thing, (), 0) if thing else None

    def page(self, root: str, part: CommentRange) -> CommentPage:
        """Return a part of the comments below a post or a comment."""
        return page_of(self._tree(root), self._order(root), part)

    def total(self, root: str) -> int:
        """Return the number of comments below, as far as it is known."""
        known = self._tree(root)
        return size(known) + sum(stub.count for stub in self._stubs.get(root, []))

    def missing(self, root: str, part: CommentRange) -> tuple[str, ...]:
        """Return the ids that a page lacks, the most prominent first."""
        order = self._order(root)[part.offset : part.offset + part.limit]
        top = [one for one in order if one not in self._comments]
        below = [one for stub in self._reachable(order, part.depth) for one in stub.ids]
        return tuple(dict.fromkeys([*top, *below]))

    def left_off(self, root: str, part: CommentRange) -> tuple[str, ...]:
        """Return the comments of a page below which an answer was cut off."""
        order = self._order(root)[part.offset : part.offset + part.limit]
        return tuple(stub.above for stub in self._reachable(order, part.depth) if not stub.ids)

    def held(self, root: str, part: CommentRange) -> int:
        """Return the number of comments that a page can show now."""
        order = self._order(root)[part.offset :]
        return sum(1 for _ in self._walk(order, part.depth))

    def _order(self, root: str) -> list[str]:
        stubbed = [one for stub in self._stubs.get(root, []) for one in stub.ids]
        return list(dict.fromkeys([*self._ranked(root), *stubbed]))

    def _ranked(self, above: str) -> list[str]:
        """Return replies in the order of the answer, or by points where that order means nothing."""
        ids = self._below.get(above, [])
        return ids if self._is_ranked else sorted(ids, key=lambda one: -(self._comments[one].score or 0))

    def _walk(self, ids: Sequence[str], depth: int, level: int = 1) -> Iterator[tuple[int, str]]:
        for one in ids:
            if one in self._comments and level <= min(depth, MAX_LEVELS):
                yield level, one
                yield from self._walk(self._ranked(one), depth, level + 1)

    def _reachable(self, order: Sequence[str], depth: int) -> Iterator[Stub]:
        for level, one in self._walk(order, depth):
            if level < depth:
                yield from self._stubs.get(one, [])

    def _tree(self, above: str, level: int = 1) -> tuple[Comment, ...]:
        things = [self._comments[one] for one in self._ranked(above)]
        if level > MAX_LEVELS:
            return ()
        return tuple(
            self._one(thing, self._tree(thing.id, level + 1), sum(s.count for s in self._stubs.get(thing.id, [])))
            for thing in things
        )

    def _one(self, thing: Thing, replies: tuple[Comment, ...], more: int) -> Comment:
        text = html.unescape(thing.body).strip() if self._is_escaped else thing.body.strip()
        return Comment(
            id=thing.id,
            author="" if thing.author == GONE_AUTHOR else thing.author,
            time=thing.created_utc,
            text="" if text in GONE_TEXTS else text,
            state=GONE_TEXTS.get(text, ""),
            points=None if thing.score_hidden else thing.score,
            replies=replies,
            more=more,
        )


def _left_off(above: str) -> str:
    """Return a name for the comments below one where an answer only says `continue this thread`."""
    return f"{above}/_"
