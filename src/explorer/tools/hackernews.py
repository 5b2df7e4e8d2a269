"""Tools that read Hacker News: ranked lists, comment threads, search."""

import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import Field

from explorer.errors import ToolError
from explorer.evidence import SourceDraft, Store, fence, visible
from explorer.net.hackernews import HackerNews, HnFound, HnQuery, ServiceDownError, Thread
from explorer.net.hn_items import Comment, SearchHit, Story, walk
from explorer.net.since import since_time
from explorer.tool import Arguments, Tool, ToolResult

VIA = "hackernews"
MAX_STORIES = 200
MAX_COMMENTS = 500
COMMENT_PREVIEW_CHARS = 500
TAGS = re.compile(r"[\w(),-]+")

T = TypeVar("T")


class StoriesArguments(Arguments):
    """Arguments of `get_hn_stories`."""

    story_type: Literal["top", "new", "best", "ask", "show", "job"] = Field(
        default="top",
        description="Which list: top (front page), new, best (of the last days), ask (Ask HN), show (Show HN), job.",
    )
    limit: int = Field(default=30, ge=1, le=MAX_STORIES, description="How many stories, from the first rank on.")


class CommentsArguments(Arguments):
    """Arguments of `get_hn_comments`."""

    story_id: int = Field(ge=1, description="The story's id, as lists and searches show it.")
    limit: int = Field(default=50, ge=1, le=MAX_COMMENTS, description="How many comments at most, best ranked first.")
    depth: int = Field(default=6, ge=1, le=30, description="How many levels of replies; 1 = top-level comments only.")


class SearchArguments(Arguments):
    """Arguments of `search_hn`."""

    query: str = Field(min_length=1, max_length=300, description="One to four keywords. All must occur.")
    since: str = Field(default="", description="Nothing older: a date (2026-08-01) or a span (24h, 7d). Empty: all.")
    sort: Literal["relevance", "date"] = Field(default="relevance", description="Best match first, or newest first.")
    tags: str = Field(
        default="story",
        description="What to search: story, comment, ask_hn, show_hn, poll, job, author_<name>, story_<id>;"
        " a comma means and, (a,b) means or.",
    )


class _HackerNewsTool(Tool):
    """What the three share."""

    def __init__(self, client: HackerNews, store: Store, now: Callable[[], datetime]) -> None:
        self._client = client
        self._store = store
        self._now = now

    async def _listed(self, first_line: str, hits: Sequence[SearchHit]) -> ToolResult:
        """Store stories as sources and list them."""
        sources = await self._store([_draft(hit.story) for hit in hits])
        now = self._now()
        entries = [
            _entry(number, source.id, hit, now)
            for number, (source, hit) in enumerate(zip(sources, hits, strict=True), start=1)
        ]
        content = "\n".join([first_line, fence("\n".join(entries))]) if entries else first_line
        return ToolResult(success=True, content=content, metadata={"sources": [source.id for source in sources]})


class HnStoriesTool(_HackerNewsTool):
    """`get_hn_stories`."""

    name: ClassVar[str] = "get_hn_stories"
    description = (
        "List Hacker News stories in rank order, with points, number of comments, points per hour and age. "
        "Use it for what is being discussed now; for older stories or a subject use search_hn. "
        "Each story is stored as a source you can cite by its id in brackets. It shows no article texts: "
        "read the linked page with read_webpage, the discussion with get_hn_comments."
    )
    arguments: ClassVar[type[Arguments]] = StoriesArguments

    async def execute(self, **arguments: Any) -> ToolResult:
        """List the stories."""
        asked = StoriesArguments(**arguments)
        found = await _or_advise(
            self._client.stories(asked.story_type, asked.limit), "Try search_hn or web_search, or this later."
        )
        shown = f"1-{len(found.stories)}" if found.stories else "0"
        first_line = f"Hacker News {asked.story_type} stories, {shown} of {found.total}."
        return await self._listed(first_line, [SearchHit(story) for story in found.stories])


class HnSearchTool(_HackerNewsTool):
    """`search_hn`."""

    name: ClassVar[str] = "search_hn"
    description = (
        "Search all of Hacker News, back to 2006: stories by default, comments with tags=comment. "
        "Send a few keywords, not a sentence: all words must occur; when nothing is found, words are left out "
        "and the answer says so. Returns up to 20 hits, each stored as a source."
    )
    arguments: ClassVar[type[Arguments]] = SearchArguments

    async def execute(self, **arguments: Any) -> ToolResult:
        """Search and list the hits."""
        asked = SearchArguments(**arguments)
        tags = asked.tags.replace(" ", "")
        if tags and not TAGS.fullmatch(tags):
            raise ToolError(f'tags="{asked.tags[:60]}" is not understood: write e.g. story, comment or author_<name>.')
        after = since_time(asked.since, self._now())
        query = HnQuery(
            asked.query, int(after.timestamp()) if after else None, is_by_date=asked.sort == "date", tags=tags
        )
        found = await _or_advise(
            self._client.search(query), "Try get_hn_stories for current stories, or web_search with site names."
        )
        return await self._listed(_search_head(asked.query, found), found.hits)


class HnCommentsTool(_HackerNewsTool):
    """`get_hn_comments`."""

    name: ClassVar[str] = "get_hn_comments"
    description = (
        "Read the discussion under a Hacker News story as a threaded list, best ranked comments first, replies "
        "indented. The shown thread is stored as one source. The first line says how many of all comments are shown; "
        "ask again with a higher limit for more. Also use it for any news.ycombinator.com/item page."
    )
    arguments: ClassVar[type[Arguments]] = CommentsArguments

    async def execute(self, **arguments: Any) -> ToolResult:
        """Show the thread."""
        asked = CommentsArguments(**arguments)
        thread = await _or_advise(
            self._client.thread(asked.story_id, asked.limit, asked.depth),
            "Try this later, or look for the discussion with web_search.",
        )
        story = thread.story
        body = "\n".join([*_story_lines(story), *_comment_lines(thread.comments)])
        draft = SourceDraft(
            url=story.item_url,
            title=story.title,
            kind="comments",
            via=VIA,
            author=story.author,
            published=_moment(story.time),
            text=f"{story.title}\n{story.url or story.item_url}\n\n{body}",
        )
        (source,) = await self._store([draft])
        head = _comments_head(source.id, thread)
        content = f"{head}\n{fence(body)}" if body else head
        return ToolResult(success=True, content=content, metadata={"sources": [source.id]})


async def _or_advise(answer: Awaitable[T], advice: str) -> T:
    """Add what else can be done when the service is down."""
    try:
        return await answer
    except ServiceDownError as error:
        raise ToolError(f"{error.message} {advice}", hint=error.hint) from error


def _search_head(asked: str, found: HnFound) -> str:
    line = f'Hacker News search for "{_one_line(found.words)}": {len(found.hits)} of {found.total} hits.'
    if not found.hits:
        return f"{line}\nTry other or fewer words, or a longer time."
    if found.words != " ".join(asked.split()):
        return f'{line}\nNothing was found for "{_one_line(asked)}", so words were left out.'
    return line


def _comments_head(source_id: str, thread: Thread) -> str:
    shown = f"{thread.shown} of {thread.total} shown"
    if thread.total and not thread.shown:
        shown += " (their text is not available)"
    return f'Comments on [{source_id}] "{_one_line(thread.story.title)}" (story id {thread.story.id}): {shown}.'


def _entry(number: int, source_id: str, hit: SearchHit, now: datetime) -> str:
    """Two lines for a story; a third with the text for a comment."""
    story = hit.story
    site = urlsplit(story.url).netloc.removeprefix("www.")
    title = f"{number}. [{source_id}] {_one_line(story.title)}" + (f" ({site})" if site else "")
    age_h = None if story.time is None else max(now.timestamp() - story.time, 0.0) / 3600
    known = age_h is not None and story.points is not None
    velocity = f"{(story.points or 0) / max(age_h or 0.0, 1.0):.1f}" if known else "?"
    facts = [
        f"id {story.id}",
        f"{_number(story.points)} points",
        f"{_number(story.comments)} comments",
        f"{velocity} points/h",
        f"{'?' if age_h is None else f'{age_h:.1f}'} h old",
        f"by {story.author or '?'}",
        _moment(story.time) or "?",
        _one_line(story.url) or "text",
    ]
    lines = [title, "   " + " | ".join(facts)]
    if hit.comment:
        text = _one_line(hit.comment)
        lines.append("   " + (text if len(text) <= COMMENT_PREVIEW_CHARS else text[:COMMENT_PREVIEW_CHARS] + " ..."))
    return "\n".join(lines)


def _draft(story: Story) -> SourceDraft:
    facts = (
        f"{_number(story.points)} points, {_number(story.comments)} comments, by {story.author or '?'},"
        f" {_moment(story.time) or '?'}"
    )
    parts = [story.title, story.url, facts, *([f"\n{story.text}"] if story.text else [])]
    return SourceDraft(
        url=story.item_url,
        title=story.title,
        kind=story.kind if story.kind == "comment" else "story",
        via=VIA,
        author=story.author,
        published=_moment(story.time),
        text="\n".join(part for part in parts if part),
    )


def _story_lines(story: Story) -> list[str]:
    """The story's own text and a poll's options, before the comments that answer them."""
    lines: list[str] = []
    if story.text:
        lines.append("Text of the story: " + _hanging(story.text, "  "))
    if story.options:
        lines.append("Options of the poll: " + "; ".join(_one_line(option) for option in story.options))
    return lines


def _comment_lines(comments: Sequence[Comment]) -> list[str]:
    return [_comment_line(level, comment) for level, comment in walk(comments)]


def _comment_line(level: int, comment: Comment) -> str:
    indent = "  " * level
    if comment.state:
        return f"{indent}- [{comment.state}] (id {comment.id})"
    who = f"{comment.author or '?'} ({_moment(comment.time) or '?'}, id {comment.id})"
    return f"{indent}- {who}: {_hanging(comment.text, indent + '  ')}"


def _hanging(text: str, indent: str) -> str:
    """Paragraphs on lines of their own, all but the first indented."""
    return re.sub(r"\n{2,}", "\n", text).replace("\n", f"\n{indent}")


def _moment(seconds: int | None) -> str:
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _number(value: int | None) -> str:
    return "?" if value is None else str(value)


def _one_line(text: str) -> str:
    """Without line breaks, so that text from outside stays on the line it is given."""
    return " ".join(visible(text).split())
