"""Stories and comments of Hacker News as values, and the records that they are read from."""

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

from pydantic import BeforeValidator

from explorer.documents.parsing.kinds import COMMENTS
from explorer.documents.parsing.parser import DocumentParser, texts_of
from explorer.sources.http.wire import Ids, Seconds, WireModel, listed
from explorer.sources.threads import DEAD, DELETED, Comment, Submission, number

IS_HTML = "HTML"
Html = Annotated[str | None, IS_HTML]
"""A field with HTML that a stranger wrote; plain text in a record that `in_plain_text` returned."""
R = TypeVar("R", bound=WireModel)


async def in_plain_text(parser: DocumentParser, records: Sequence[R]) -> list[R]:
    """Return records with plain text in place of their HTML, which the parser reads in one request.

    Raises:
        ToolError: It takes too much time or memory to read.
    """
    texts = await texts_of(parser, COMMENTS, (one for record in records for one in _pieces(record)))
    return [_replaced(record, texts) for record in records]


def _pieces(record: WireModel) -> Iterator[str]:
    for name, field in type(record).model_fields.items():
        value = getattr(record, name)
        if IS_HTML in field.metadata:
            yield value or ""
        elif isinstance(value, tuple):
            for one in value:  # pyright: ignore[reportUnknownVariableType] - any tuple
                if isinstance(one, WireModel):
                    yield from _pieces(one)


def _replaced(record: R, texts: Mapping[str, str]) -> R:
    changes: dict[str, object] = {}
    for name, field in type(record).model_fields.items():
        value = getattr(record, name)
        if IS_HTML in field.metadata:
            changes[name] = texts[value or ""]
        elif isinstance(value, tuple) and value and isinstance(value[0], WireModel):
            changes[name] = tuple(_replaced(one, texts) for one in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - a tuple of records
    return record.model_copy(update=changes)


ITEM_URL = "https://news.ycombinator.com/item?id={}"
STORY_TYPES = frozenset({"story", "job", "poll"})
USER_URL = "https://news.ycombinator.com/user?id={}"
DEAD_TEXTS = frozenset({"[dead]", "[flagged]"})


@dataclass(frozen=True)
class Story(Submission):
    """A story, a job or a poll."""

    id: int
    kind: str = "story"
    kids: tuple[int, ...] = ()
    """The ids of direct comments in rank order."""
    options: tuple[str, ...] = ()
    """The options of a poll, with their points."""

    @property
    def page(self) -> str:
        """The address of its page on Hacker News."""
        return ITEM_URL.format(self.id)


@dataclass(frozen=True)
class SearchHit:
    """One hit of a search: a story, or a comment with the story it is on."""

    story: Story
    comment: str = ""
    """The text of the comment; empty when the hit is a story."""


class FirebaseItem(WireModel):
    """An item of the Firebase API; only `id` is guaranteed."""

    id: int
    type: str | None = None
    by: str | None = None
    time: Seconds = None
    text: Html = None
    dead: bool | None = None
    deleted: bool | None = None
    parent: int | None = None
    kids: Ids = ()
    parts: Ids = ()
    url: str | None = None
    score: int | None = None
    title: str | None = None
    descendants: int | None = None

    @property
    def is_live_story(self) -> bool:
        """Whether it belongs in a list of stories."""
        return self.type in STORY_TYPES and not self.dead and not self.deleted

    def story(self, options: Sequence[str] = ()) -> Story:
        """Return the item as a story."""
        return Story(
            id=self.id,
            title=html.unescape(self.title or "").strip() or "(no title)",
            url=(self.url or "").strip(),
            author=self.by or "",
            points=self.score,
            comments=self.descendants,
            time=self.time,
            text=self.text or "",
            kind=self.type or "story",
            kids=self.kids,
            options=tuple(options),
            state=self._state(""),
        )

    def comment(self, replies: Sequence[Comment] = ()) -> Comment:
        """Return the item as a comment."""
        text = self.text or ""
        state = self._state(text)
        return Comment(
            id=str(self.id),
            author=self.by or "",
            time=self.time,
            text="" if state else text,
            state=state,
            replies=tuple(replies),
            more=max(len(self.kids) - len(replies), 0),
        )

    def _state(self, text: str) -> str:
        return DELETED if self.deleted else DEAD if self.dead or text in DEAD_TEXTS else ""


class AlgoliaItem(WireModel):
    """A node of Algolia's `items/<id>`, whose answer holds a whole tree."""

    id: int
    type: str | None = None
    author: str | None = None
    created_at_i: Seconds = None
    title: str | None = None
    url: str | None = None
    text: Html = None
    points: int | None = None
    parent_id: int | None = None
    story_id: int | None = None
    children: Annotated[tuple["AlgoliaItem", ...], BeforeValidator(listed)] = ()
    options: Annotated[tuple["AlgoliaItem", ...], BeforeValidator(listed)] = ()

    def story(self) -> Story:
        """Return the node as a story; the answer does not have the number of comments."""
        options = [f"{o.text or ''} ({number(o.points)} points)" for o in self.options]
        return Story(
            id=self.id,
            title=html.unescape(self.title or "").strip() or "(no title)",
            url=(self.url or "").strip(),
            author=self.author or "",
            points=self.points,
            time=self.created_at_i,
            text=self.text or "",
            kind=self.type or "story",
            options=tuple(options),
        )

    def replies(self) -> tuple[Comment, ...]:
        """Return the comments as a tree, in the order of the answer (by id, the oldest first)."""
        return tuple(child.comment() for child in self.children if child.type in {None, "comment"})

    def comment(self) -> Comment:
        """Return the node as a comment with its replies; a removed one has no author and no text."""
        text = self.text or ""
        state = DEAD if text in DEAD_TEXTS else "" if text or self.author else DELETED
        return Comment(
            id=str(self.id),
            author=self.author or "",
            time=self.created_at_i,
            text="" if state else text,
            state=state,
            replies=self.replies(),
        )


class AlgoliaHit(WireModel):
    """A hit in an answer of Algolia's search."""

    objectID: int  # noqa: N815 - the vendor's name
    title: str | None = None
    url: str | None = None
    author: str | None = None
    points: int | None = None
    num_comments: int | None = None
    created_at_i: Seconds = None
    story_text: Html = None
    comment_text: Html = None
    story_title: str | None = None
    children: Ids = ()

    def hit(self) -> SearchHit:
        """Return the hit as a value."""
        comment = self.comment_text or ""
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
            text=comment or self.story_text or "",
            kind="comment" if comment else "story",
            kids=self.children,
        )
        return SearchHit(story, comment)


class AlgoliaAnswer(WireModel):
    """An answer of Algolia's search."""

    hits: Annotated[tuple[AlgoliaHit, ...], BeforeValidator(listed)] = ()
    nbHits: int | None = None  # noqa: N815 - the vendor's name


@dataclass(frozen=True)
class HnUser:
    """A user's public profile."""

    name: str
    karma: int | None = None
    created: int | None = None
    """The time of registration in Unix seconds."""
    about: str = ""
    submitted: int | None = None
    """The number of stories, comments and poll options of all times; None if the service that answered does not say."""

    @property
    def url(self) -> str:
        """The address of the profile's page."""
        return USER_URL.format(self.name)


class FirebaseUser(WireModel):
    """A user in an answer of the Firebase API."""

    id: str
    karma: int | None = None
    created: Seconds = None
    about: Html = None
    submitted: Ids = ()

    def user(self) -> HnUser:
        """Return the profile."""
        return HnUser(self.id, self.karma, self.created, self.about or "", len(self.submitted))


class AlgoliaUser(WireModel):
    """A user in an answer of the search service."""

    username: str
    karma: int | None = None
    about: Html = None

    def user(self) -> HnUser:
        """Return the profile."""
        return HnUser(self.username, self.karma, None, self.about or "")
