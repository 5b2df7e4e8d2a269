"""Posts and comment threads of any site: as values, as text for a model, as sources, and as facts for programs."""

import heapq
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import Any, Generic, TypeVar

from explorer.schema.events import Source
from explorer.schema.messages import JsonObject
from explorer.schema.tool import SourceDraft, Store, shown
from explorer.sources.http.wire import moment
from explorer.sources.page import WebPage
from explorer.text.rendering import MAX_ID_CHARS, ModelText, block, code, own, render
from explorer.text.sanitize import single_line
from explorer.text.urls import site_of

DELETED = "deleted"
DEAD = "dead"
REMOVED = "removed"


@dataclass(frozen=True)
class Comment:
    """A comment with its replies."""

    id: str
    author: str = ""
    time: int | None = None
    """The time of writing in Unix seconds."""
    text: str = ""
    state: str = ""
    """`deleted` (by its author), `dead` or `removed` (by moderators), or empty for a live comment."""
    points: int | None = None
    """The number of points; None where the service does not say."""
    replies: tuple["Comment", ...] = ()
    more: int = 0
    """The number of replies on all levels below that exist and are not in `replies`."""


@dataclass(frozen=True)
class CommentRange:
    """The requested part of a thread."""

    limit: int = 50
    """The number of comments."""
    depth: int = 6
    """The number of levels; 1 is the top-level comments alone."""
    offset: int = 0
    """The number of top-level comments to skip."""


@dataclass(frozen=True)
class CommentPage:
    """A part of a thread."""

    comments: tuple[Comment, ...]
    next_offset: int | None = None
    """The offset of the next top-level comments; None when there are none."""


def page_of(
    comments: Sequence[Comment], order: Sequence[str], part: CommentRange, gone: Collection[str] = ()
) -> CommentPage:
    """Return the most prominent comments of a tree, from a top-level comment on.

    `order` has every top-level id in rank order, fetched or not, so that an offset always means the same. The top-level
    comments shown are the first fetched ones from the offset on, without gaps: see `_chosen`. `gone` has ids that could
    not be fetched.
    """
    places = {one: index for index, one in enumerate(order)}
    waiting = [comment for comment in comments if places.get(comment.id, -1) >= part.offset]
    waiting.sort(key=lambda comment: places[comment.id])
    shown = _pruned(waiting, _chosen(waiting, part))
    behind = places[shown[-1].id] + 1 if shown else len(order)
    return CommentPage(shown, next((place for place in range(behind, len(order)) if order[place] not in gone), None))


def _chosen(comments: Sequence[Comment], part: CommentRange) -> set[str]:
    """Return the ids of the most prominent comments.

    The rank of a comment is its parent's rank plus its own rank among its siblings. So the best answers to the best
    comments come before the worst comments, and a parent always before its replies.
    """
    tie = count()
    waiting = [(rank, next(tie), 1, comment) for rank, comment in enumerate(comments, start=1)]
    heapq.heapify(waiting)
    chosen: set[str] = set()
    while waiting and len(chosen) < part.limit:
        place, _, level, comment = heapq.heappop(waiting)
        chosen.add(comment.id)
        if level < part.depth:
            for rank, reply in enumerate(comment.replies, start=1):
                heapq.heappush(waiting, (place + rank, next(tie), level + 1, reply))
    return chosen


def _pruned(comments: Sequence[Comment], chosen: set[str]) -> tuple[Comment, ...]:
    return tuple(_cut(comment, chosen) for comment in comments if comment.id in chosen)


def _cut(comment: Comment, chosen: set[str]) -> Comment:
    """Return a comment with its chosen replies; the others are counted where they were."""
    kept = _pruned(comment.replies, chosen)
    left = sum(size((reply,)) for reply in comment.replies if reply.id not in chosen)
    return replace(comment, replies=kept, more=comment.more + left)


def walk(comments: Sequence[Comment]) -> Iterator[tuple[int, Comment]]:
    """Yield each comment of a tree with its level, parents before their replies."""
    for comment in comments:
        yield 0, comment
        for level, reply in walk(comment.replies):
            yield level + 1, reply


def size(comments: Sequence[Comment]) -> int:
    """Return the number of comments in a tree, with those known to be left out of it."""
    return sum(1 + comment.more for _, comment in walk(comments))


MAX_WAYS = 5
"""The number of comments named as places to continue reading."""
HEAD = re.compile(r"^ *- \S+ \([^()]*, id \w+\): ?", re.MULTILINE)
"""The beginning of a comment's first line."""
FORGED = re.compile(r"^(\s*)- (?=.*\bid \w+\))", re.MULTILINE)
"""A line within a comment that looks like the beginning of another one."""


@dataclass(frozen=True)
class LeadLine:
    """A text about a post, or by its author."""

    text: str
    head: str = ""
    """The label of the text."""
    is_of_author: bool = False
    """Whether the text is the post's own."""


@dataclass(frozen=True)
class Submission(ABC):
    """A story or a post."""

    id: int | str
    title: str
    url: str = ""
    """The address that it links to; empty for one that is its own text."""
    author: str = ""
    points: int | None = None
    comments: int | None = None
    time: int | None = None
    """When it was submitted, in Unix seconds."""
    text: str = ""
    state: str = ""
    """`deleted`, `dead` or `removed`; empty for a live one."""

    @property
    @abstractmethod
    def page(self) -> str:
        """The address of its page on its site."""

    def age_h(self, now: datetime) -> float | None:
        """Return its age in hours; None when it is not known."""
        return None if self.time is None else max(now.timestamp() - self.time, 0.0) / 3600

    def points_per_hour(self, now: datetime) -> float | None:
        """Return its points per hour, with an age of at least one hour; None when they are not known."""
        age_h = self.age_h(now)
        return None if self.points is None or age_h is None else self.points / max(age_h, 1.0)


P = TypeVar("P", bound=Submission)


@dataclass(frozen=True)
class Thread(Generic[P]):
    """A post, or one of its comments, with a part of the comments below."""

    post: P
    comments: tuple[Comment, ...]
    """The comments; with a root, the root alone, which has the replies that are shown."""
    total: int
    """The number of comments as the service counts them, or as far as it is known."""
    next_offset: int | None = None
    """The offset of the next top-level comments; None when there are none."""
    root: str = ""
    """The id of the comment that was requested instead of the post."""

    @property
    def shown(self) -> int:
        """The number of comments in `comments`, on all levels, without the root."""
        return sum(1 for _ in walk(self.comments)) - bool(self.root)

    @property
    def is_cut(self) -> bool:
        """Whether there are comments that are not shown."""
        return self.next_offset is not None or any(comment.more for _, comment in walk(self.comments))


def thread_under(root: Comment, post: P, page: CommentPage, total: int) -> Thread[P]:
    """Return the thread that a comment begins: itself, with a part of its replies."""
    return Thread(post, (replace(root, replies=page.comments),), total, page.next_offset, root.id)


@dataclass(frozen=True)
class ThreadText:
    """A thread as text."""

    thread: Thread[Any]
    url: str
    """The address of what is shown."""
    via: str
    about: ModelText
    """What it is, in the first line: after `Comments on [S1] `, before how much of it is shown."""
    lead: tuple["LeadLine", ...]
    """The texts in the fence before the comments; none with a root."""
    notes: tuple[ModelText, ...] = ()
    """Lines after the first one: what the thread lacks, and how to continue reading."""

    @property
    def total(self) -> int:
        """The number of comments, never less than are shown."""
        return max(self.thread.total, self.thread.shown)

    @property
    def head(self) -> ModelText:
        """The first line, after `Comments on [S1] `."""
        root = self.thread.root
        under = own(" under comment {id}", id=code(root, MAX_ID_CHARS)) if root else own("")
        shown = shown_of(self.thread.shown, self.total)
        return own("{about}: {shown}{under}.", about=self.about, shown=shown, under=under)

    @property
    def body(self) -> str:
        """The content of the fence: the thread as it is shown and stored."""
        return "\n".join([*(one.head + one.text for one in self.lead), *comment_lines(self.thread.comments)])

    @property
    def draft(self) -> SourceDraft:
        """The thread as a source."""
        post = self.thread.post
        top = self.thread.comments[0] if self.thread.root else post
        return SourceDraft(
            url=self.url,
            title=post.title,
            kind="comments",
            via=self.via,
            author=top.author,
            published=moment(top.time),
            text=f"{post.title}\n{post.url or post.page}\n\n{self.body}",
        )

    def as_page(self, notes: Iterable[ModelText], flags: tuple[str, ...] = ()) -> WebPage:
        """Return the thread as a page."""
        draft = self.draft
        return WebPage(
            url=draft.url,
            title=draft.title,
            text=draft.text,
            via=draft.via,
            author=draft.author,
            published=draft.published,
            kind=draft.kind,
            flags=flags,
            notes=tuple(notes),
        )


async def stored(text: ThreadText, store: Store) -> tuple[ModelText, JsonObject]:
    """Store a thread as one source; return what the model reads, and the same for programs."""
    (source,) = await store([text.draft])
    head = own("Comments on [{id}] {head}", id=code(source.id), head=text.head)
    return render(head, *text.notes, block(text.body)), {
        **shown(text.thread.shown, "comment", "comments"),
        "total": text.total,
        **places(text),
    }


def places(thread: ThreadText) -> JsonObject:
    """Return where texts begin: the line within the fence, and the column on that line."""
    line, words = 0, None
    for one in thread.lead:
        lines = one.text.count("\n") + 1
        words = {"line": line, "column": len(one.head), "lines": lines} if one.is_of_author else words
        line += lines
    comments = _comment_places(thread.thread.comments, line)
    return {"comments": comments} | ({} if words is None else {"text": words})


def _comment_places(comments: Sequence[Comment], line: int) -> list[JsonObject]:
    facts: list[JsonObject] = []
    for level, comment in walk(comments):
        head, text = _comment_head(level, comment), _comment_text(level, comment)
        fact: JsonObject = {"id": comment.id, "level": level, "line": line, "column": len(head)}
        facts.append(fact | ({"state": comment.state} if comment.state else {"author": single_line(comment.author)}))
        line += text.count("\n") + 1
    return facts


def shown_of(shown: int, total: int) -> ModelText:
    """Return how many of the comments are shown, as text."""
    words = own("{shown} of {total} shown", shown=shown, total=total)
    return own("{words} (their text is not available)", words=words) if total and not shown else words


def ways_on(thread: Thread[Any], name: Callable[[str], ModelText]) -> tuple[ModelText, ...]:
    """Return a line that says how to read what is left out; none when nothing is.

    `name` is how a comment is asked for: `story_id=555`.
    """
    offset = thread.next_offset
    ways = [] if offset is None else [own("offset={offset} (further top-level comments)", offset=offset)]
    below = thread.comments[0].replies if thread.root else thread.comments
    cut = sorted((comment for _, comment in walk(below) if comment.more), key=lambda comment: -comment.more)
    for number, comment in enumerate(cut[:MAX_WAYS]):
        what = own("more replies" if number == 0 else "more")
        ways.append(own("{comment} ({more} {what})", comment=name(comment.id), more=comment.more, what=what))
    return (own("Read on with {ways}.", ways=render(*ways, between=", or ")),) if ways else ()


def comment_lines(comments: Sequence[Comment]) -> list[str]:
    """Return one entry for each comment, replies indented."""
    return [_comment_head(level, one) + _comment_text(level, one) for level, one in walk(comments)]


def _comment_head(level: int, comment: Comment) -> str:
    indent = "  " * level
    if comment.state:
        return f"{indent}- [{comment.state}] (id {comment.id})"
    points = "" if comment.points is None else f"{comment.points} points, "
    who = f"{single_line(comment.author) or '?'} ({moment(comment.time) or '?'}, {points}id {comment.id})"
    return f"{indent}- {who}: "


def _comment_text(level: int, comment: Comment) -> str:
    return "" if comment.state else hanging(comment.text, "  " * level + "  ")


def without_heads(text: str) -> str:
    """Return a stored thread without the lines' beginnings that say whose comment it is."""
    return HEAD.sub("", text)


def hanging(text: str, indent: str) -> str:
    """Return paragraphs on separate lines, all but the first indented, so that none looks like another comment."""
    return FORGED.sub(r"\1\- ", re.sub(r"\n{2,}", "\n", text)).replace("\n", f"\n{indent}")


def number(value: int | None) -> str:
    """Return a number as text, or `?` when it is not known."""
    return "?" if value is None else str(value)


def submission_entry(place: int, source_id: str, one: Submission, now: datetime, *more: str) -> str:
    """Return two lines for a list; `more` are further facts."""
    site = single_line(site_of(one.url))
    facts = [
        f"id {one.id}",
        f"{number(one.points)} points",
        f"{number(one.comments)} comments",
        f"{_tenths(one.points_per_hour(now))} points/h",
        f"{_tenths(one.age_h(now))} h old",
        f"by {single_line(one.author) or '?'}",
        moment(one.time) or "?",
        single_line(one.url) or "text",
        *more,
    ]
    return f"{place}. [{source_id}] {single_line(one.title)}{f' ({site})' if site else ''}\n   {' | '.join(facts)}"


def preview(text: str, most: int) -> str:
    """Return a third line with the beginning of a text; empty without any."""
    words = single_line(text)
    return f"\n   {words if len(words) <= most else f'{words[:most]} ...'}" if words else ""


def submission_draft(one: Submission, via: str, kind: str = "story", where: str = "") -> SourceDraft:
    """Return a submission as a source, with all that is known of it; `where` begins the line of facts."""
    facts = f"{where}{number(one.points)} points, {number(one.comments)} comments, by {one.author or '?'},"
    parts = [
        one.title,
        one.url,
        f"{facts} {moment(one.time) or '?'}",
        one.state,
        *([f"\n{one.text}"] if one.text else []),
    ]
    return SourceDraft(
        url=one.page,
        title=one.title,
        kind=kind,
        via=via,
        author=one.author,
        published=moment(one.time),
        text="\n".join(part for part in parts if part),
    )


def submission_facts(source: Source, one: Submission, now: datetime) -> JsonObject:
    """Return the facts of an entry for programs; null where one is not known."""
    return {
        "source": source.id,
        "id": one.id,
        "page": source.url,
        "title": single_line(one.title),
        "url": single_line(one.url),
        "points": one.points,
        "comments": one.comments,
        "points_per_hour": _rounded(one.points_per_hour(now)),
        "age_hours": _rounded(one.age_h(now)),
        "author": single_line(one.author),
        "time": moment(one.time),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _tenths(value: float | None) -> str:
    return "?" if value is None else f"{value:.1f}"
