"""A thread as text: for a model to read, and as the source it is stored as."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from explorer.sources.threads import Comment, walk
from explorer.sources.timestamps import moment
from explorer.text.sanitize import fence, single_line
from explorer.workspace.source_store import SourceDraft, Store

MAX_WAYS = 5
"""Comments named as places to read on."""
FORGED = re.compile(r"^(\s*)- (?=.*\bid \w+\))", re.MULTILINE)
"""A line within a comment that looks like the beginning of another one."""


@dataclass(frozen=True)
class ThreadText:
    """A thread, written down."""

    draft: SourceDraft
    head: str
    """The first line behind `Comments on [S1] `."""
    notes: tuple[str, ...]
    """Lines of ours behind the head: what the thread lacks, and how to read on."""
    body: str


async def stored(text: ThreadText, store: Store) -> tuple[str, str]:
    """Store a thread as one source; what the model reads, and the source's id."""
    (source,) = await store([text.draft])
    lines = [f"Comments on [{source.id}] {text.head}", *text.notes]
    if text.body:
        lines.append(fence(text.body))
    return "\n".join(lines), source.id


def shown_of(shown: int, total: int) -> str:
    """How much of a thread is there."""
    words = f"{shown} of {total} shown"
    return f"{words} (their text is not available)" if total and not shown else words


def ways_on(comments: Sequence[Comment], next_offset: int | None, name: Callable[[str], str]) -> tuple[str, ...]:
    """A line that says how to read what is left out; none when nothing is.

    `name` is how a comment is asked for: `story_id=555`.
    """
    ways = [] if next_offset is None else [f"offset={next_offset} (further top-level comments)"]
    cut = sorted((comment for _, comment in walk(comments) if comment.more), key=lambda comment: -comment.more)
    for number, comment in enumerate(cut[:MAX_WAYS]):
        what = "more replies" if number == 0 else "more"
        ways.append(f"{name(comment.id)} ({comment.more} {what})")
    return (f"Read on with {', or '.join(ways)}.",) if ways else ()


def comment_lines(comments: Sequence[Comment]) -> list[str]:
    """One entry a comment, replies indented."""
    return [_comment_line(level, comment) for level, comment in walk(comments)]


def _comment_line(level: int, comment: Comment) -> str:
    indent = "  " * level
    if comment.state:
        return f"{indent}- [{comment.state}] (id {comment.id})"
    points = "" if comment.points is None else f"{comment.points} points, "
    who = f"{single_line(comment.author) or '?'} ({moment(comment.time) or '?'}, {points}id {comment.id})"
    return f"{indent}- {who}: {hanging(comment.text, indent + '  ')}"


def hanging(text: str, indent: str) -> str:
    """Paragraphs on lines of their own, all but the first indented; none can pass for somebody else's comment."""
    return FORGED.sub(r"\1\- ", re.sub(r"\n{2,}", "\n", text)).replace("\n", f"\n{indent}")


def number(value: int | None) -> str:
    """A number, or `?` where it is not known."""
    return "?" if value is None else str(value)
