"""Stories and comments of Hacker News, as values of ours, and the foreign records they are read from."""

import heapq
import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError

from explorer.errors import ToolError
from explorer.net.hn_text import plain_text

ITEM_URL = "https://news.ycombinator.com/item?id={}"
STORY_TYPES = frozenset({"story", "job", "poll"})

DELETED = "deleted"
DEAD = "dead"
DEAD_TEXTS = frozenset({"[dead]", "[flagged]"})


@dataclass(frozen=True)
class Story:
    """A submission: story, job or poll."""

    id: int
    title: str
    url: str = ""
    """Empty for a story that is its own text."""
    author: str = ""
    points: int | None = None
    comments: int | None = None
    time: int | None = None
    """Unix seconds."""
    text: str = ""
    kind: str = "story"
    kids: tuple[int, ...] = ()
    """Direct comments in rank order."""
    options: tuple[str, ...] = ()
    """A poll's, with their points."""

    @property
    def item_url(self) -> str:
        """Its page on Hacker News."""
        return ITEM_URL.format(self.id)


@dataclass(frozen=True)
class Comment:
    """A comment with its replies."""

    id: int
    author: str = ""
    time: int | None = None
    text: str = ""
    state: str = ""
    """`deleted`, `dead`, or empty for a live one."""
    replies: tuple["Comment", ...] = ()


@dataclass(frozen=True)
class SearchHit:
    """One hit of a search: a story, or a comment with the story it is on."""

    story: Story
    comment: str = ""
    """The comment's text; empty when the hit is a story."""


def _listed(value: object) -> object:
    """Foreign lists may be null."""
    return value or []


Ids = Annotated[list[int], BeforeValidator(_listed)]


class Foreign(BaseModel):
    """A record from outside: unknown fields are dropped, absent ones are None."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class FirebaseItem(Foreign):
    """An item of the Firebase API; only `id` is guaranteed."""

    id: int
    type: str | None = None
    by: str | None = None
    time: int | None = None
    text: str | None = None
    dead: bool | None = None
    deleted: bool | None = None
    parent: int | None = None
    kids: Ids = []
    parts: Ids = []
    url: str | None = None
    score: int | None = None
    title: str | None = None
    descendants: int | None = None

    @property
    def is_live_story(self) -> bool:
        """Whether it belongs into a list of stories."""
        return self.type in STORY_TYPES and not self.dead and not self.deleted

    def story(self, options: Sequence[str] = ()) -> Story:
        """As a story of ours."""
        return Story(
            id=self.id,
            title=html.unescape(self.title or "").strip() or "(no title)",
            url=(self.url or "").strip(),
            author=self.by or "",
            points=self.score,
            comments=self.descendants,
            time=self.time,
            text=plain_text(self.text or ""),
            kind=self.type or "story",
            kids=tuple(self.kids),
            options=tuple(options),
        )

    def comment(self) -> Comment:
        """As a comment of ours, without its replies."""
        text = plain_text(self.text or "")
        state = DELETED if self.deleted else DEAD if self.dead or text in DEAD_TEXTS else ""
        return Comment(self.id, self.by or "", self.time, "" if state else text, state)


class AlgoliaItem(Foreign):
    """A node of Algolia's `items/<id>`: a whole tree in one answer."""

    id: int
    type: str | None = None
    author: str | None = None
    created_at_i: int | None = None
    title: str | None = None
    url: str | None = None
    text: str | None = None
    points: int | None = None
    parent_id: int | None = None
    story_id: int | None = None
    children: Annotated[list["AlgoliaItem"], BeforeValidator(_listed)] = []
    options: Annotated[list["AlgoliaItem"], BeforeValidator(_listed)] = []

    def story(self) -> Story:
        """As a story of ours; the number of comments is not in the answer."""
        options = [f"{plain_text(o.text or '')} ({_number(o.points)} points)" for o in self.options]
        return Story(
            id=self.id,
            title=html.unescape(self.title or "").strip() or "(no title)",
            url=(self.url or "").strip(),
            author=self.author or "",
            points=self.points,
            time=self.created_at_i,
            text=plain_text(self.text or ""),
            kind=self.type or "story",
            options=tuple(options),
        )

    def replies(self) -> tuple[Comment, ...]:
        """Its comments as a tree of ours, in the order given (by id, the oldest first)."""
        return tuple(child.comment() for child in self.children if child.type in {None, "comment"})

    def comment(self) -> Comment:
        """As a comment of ours, replies included; removed ones come without author and text."""
        text = plain_text(self.text or "")
        state = DEAD if text in DEAD_TEXTS else "" if text or self.author else DELETED
        return Comment(self.id, self.author or "", self.created_at_i, "" if state else text, state, self.replies())


class AlgoliaHit(Foreign):
    """A hit of Algolia's search."""

    objectID: int  # noqa: N815 - the vendor's name
    title: str | None = None
    url: str | None = None
    author: str | None = None
    points: int | None = None
    num_comments: int | None = None
    created_at_i: int | None = None
    story_text: str | None = None
    comment_text: str | None = None
    story_title: str | None = None
    children: Ids = []

    def hit(self) -> SearchHit:
        """As a hit of ours."""
        comment = plain_text(self.comment_text or "")
        title = html.unescape(self.title or "").strip()
        if comment:
            title = f"Comment on: {html.unescape(self.story_title or '').strip() or 'an unnamed story'}"
        story = Story(
            id=self.objectID,
            title=title or "(no title)",
            url="" if comment else (self.url or "").strip(),
            author=self.author or "",
            points=self.points,
            comments=self.num_comments,
            time=self.created_at_i,
            text=comment or plain_text(self.story_text or ""),
            kind="comment" if comment else "story",
            kids=tuple(self.children),
        )
        return SearchHit(story, comment)


class AlgoliaAnswer(Foreign):
    """The envelope of a search."""

    hits: Annotated[list[AlgoliaHit], BeforeValidator(_listed)] = []
    nbHits: int | None = None  # noqa: N815 - the vendor's name


T = TypeVar("T")


def parse(kind: type[T] | TypeAdapter[T], body: bytes, what: str) -> T:
    """Read a foreign JSON body.

    Raises:
        ToolError: It is not what the service's contract says.
    """
    adapter: TypeAdapter[T] = kind if isinstance(kind, TypeAdapter) else TypeAdapter(kind)
    try:
        return adapter.validate_json(body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ToolError(f"{what} sent something unexpected: {first['msg']}.") from error


def choose(comments: Sequence[Comment], limit: int, depth: int) -> tuple[Comment, ...]:
    """The most prominent comments of a tree, as a tree.

    A comment's place is its parent's place plus its own rank among its siblings, so that the best answers to the
    best comments come before the worst comments, and a parent always before its replies.
    """
    tie = count()
    waiting = [(rank, next(tie), 1, comment) for rank, comment in enumerate(comments, start=1)]
    heapq.heapify(waiting)
    chosen: set[int] = set()
    while waiting and len(chosen) < limit:
        place, _, level, comment = heapq.heappop(waiting)
        chosen.add(comment.id)
        if level < depth:
            for rank, reply in enumerate(comment.replies, start=1):
                heapq.heappush(waiting, (place + rank, next(tie), level + 1, reply))
    return _pruned(comments, chosen)


def _pruned(comments: Sequence[Comment], chosen: set[int]) -> tuple[Comment, ...]:
    return tuple(replace(c, replies=_pruned(c.replies, chosen)) for c in comments if c.id in chosen)


def ranked(comments: Sequence[Comment], kids: Sequence[int]) -> tuple[Comment, ...]:
    """Comments in the order of `kids`; those not in it keep their order, behind."""
    rank: Mapping[int, int] = {kid: index for index, kid in enumerate(kids)}
    return tuple(sorted(comments, key=lambda comment: rank.get(comment.id, len(rank))))


def walk(comments: Sequence[Comment]) -> Iterator[tuple[int, Comment]]:
    """Each comment of a tree with its level, parents before their replies."""
    for comment in comments:
        yield 0, comment
        for level, reply in walk(comment.replies):
            yield level + 1, reply


def _number(value: int | None) -> str:
    return "?" if value is None else str(value)
