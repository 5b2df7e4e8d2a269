"""Stories and comments of Hacker News as values, the records that they are read from, and their HTML as plain text."""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Annotated

from pydantic import BeforeValidator

from explorer.sources.http.wire import Ids, Seconds, WireModel, listed
from explorer.sources.submissions import Submission
from explorer.sources.threads import DEAD, DELETED, Comment
from explorer.text.sanitize import parsable_html

CODE = "\x00"
"""Marks both ends of code while reading; the API's text does not contain this character."""
MAX_HTML_CHARS = 200_000
"""Limit of one comment; its rest is left out."""


def plain_text(html: str) -> str:
    """Return HTML as text: paragraphs separated by an empty line, `*italics*`, code in fences, links as addresses.

    A comment is read by this process, in time that grows with its length alone, and by Python code alone.
    """
    reader = _Reader()
    reader.feed(parsable_html(html[:MAX_HTML_CHARS]))
    reader.close()
    return reader.text() if len(html) <= MAX_HTML_CHARS else f"{reader.text()} [...]"


class _Reader(HTMLParser):
    """Reads the HTML of Hacker News, which never closes `<p>` and cuts the visible text of links."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._link = ""
        self._link_text: list[str] | None = None
        self._is_code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "p":
            self._parts.append("\n\n")
        elif tag == "br":
            self._parts.append("\n")
        elif tag in {"i", "em"}:
            self._parts.append("*")
        elif tag == "pre" and not self._is_code:
            self._is_code = True
            self._parts.append(CODE)
        elif tag == "a":
            self._link = dict(attrs).get("href") or ""
            self._link_text = []

    def handle_endtag(self, tag: str) -> None:
        if tag in {"i", "em"}:
            self._parts.append("*")
        elif tag == "pre" and self._is_code:
            self._is_code = False
            self._parts.append(CODE)
        elif tag == "a" and self._link_text is not None:
            self._parts.append(_link(self._link, "".join(self._link_text)))
            self._link_text = None

    def handle_data(self, data: str) -> None:
        data = data.replace(CODE, "")
        if not self._is_code:
            data = re.sub(r"\s+", " ", data)
        if self._link_text is not None:
            self._link_text.append(data)
        else:
            self._parts.append(data)

    def text(self) -> str:
        """Return the text without surplus space; a link or code that is still open ends with the text."""
        if self._is_code:
            self.handle_endtag("pre")
        if self._link_text is not None:
            self._parts.append(_link(self._link, "".join(self._link_text)))
            self._link_text = None
        blocks = "".join(self._parts).split(CODE)
        # Every second block is code: its spaces are its own.
        tidy = [block.strip("\n") if index % 2 else _tidied(block) for index, block in enumerate(blocks)]
        fenced = [f"```\n{block}\n```" if index % 2 else block for index, block in enumerate(tidy)]
        return "\n\n".join(block for block in fenced if block).strip()


def _tidied(text: str) -> str:
    lines = "\n".join(line.strip(" ") for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", lines).strip()


def _link(href: str, text: str) -> str:
    """Return the address alone if the text is a (cut) form of it, else both."""
    shown = text.strip().removesuffix("...").removesuffix("…")
    if not href:
        return text
    bare = re.sub(r"^https?://", "", href)
    if not shown or href.startswith(shown) or bare.startswith(re.sub(r"^https?://", "", shown)):
        return href
    return f"{text.strip()} ({href})"


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
    text: str | None = None
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
            text=plain_text(self.text or ""),
            kind=self.type or "story",
            kids=self.kids,
            options=tuple(options),
            state=self._state(""),
        )

    def comment(self, replies: Sequence[Comment] = ()) -> Comment:
        """Return the item as a comment."""
        text = plain_text(self.text or "")
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
    text: str | None = None
    points: int | None = None
    parent_id: int | None = None
    story_id: int | None = None
    children: Annotated[tuple["AlgoliaItem", ...], BeforeValidator(listed)] = ()
    options: Annotated[tuple["AlgoliaItem", ...], BeforeValidator(listed)] = ()

    def story(self) -> Story:
        """Return the node as a story; the answer does not have the number of comments."""
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
        """The comments as a tree, in the order of the answer (by id, the oldest first)."""
        return tuple(child.comment() for child in self.children if child.type in {None, "comment"})

    def comment(self) -> Comment:
        """Return the node as a comment with its replies; a removed one has no author and no text."""
        text = plain_text(self.text or "")
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
    story_text: str | None = None
    comment_text: str | None = None
    story_title: str | None = None
    children: Ids = ()

    def hit(self) -> SearchHit:
        """Return the hit as a value."""
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
            kids=self.children,
        )
        return SearchHit(story, comment)


class AlgoliaAnswer(WireModel):
    """An answer of Algolia's search."""

    hits: Annotated[tuple[AlgoliaHit, ...], BeforeValidator(listed)] = ()
    nbHits: int | None = None  # noqa: N815 - the vendor's name


def _number(value: int | None) -> str:
    return "?" if value is None else str(value)


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
    about: str | None = None
    submitted: Ids = ()

    def user(self) -> HnUser:
        """Return the profile."""
        return HnUser(self.id, self.karma, self.created, plain_text(self.about or ""), len(self.submitted))


class AlgoliaUser(WireModel):
    """A user in an answer of the search service."""

    username: str
    karma: int | None = None
    about: str | None = None

    def user(self) -> HnUser:
        """Return the profile."""
        return HnUser(self.username, self.karma, None, plain_text(self.about or ""))
