"""Hacker News through its two public APIs, Firebase and Algolia; its stories and threads as text, and as sources.

Each replaces the other where it can: Firebase gives a thread item by item when Algolia is down, Algolia gives it whole
when Firebase is down. Item pages are read through them, too.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from urllib.parse import parse_qs, quote, urlsplit

from explorer.documents.parsing.parser import DocumentParser
from explorer.schema.errors import NoSuchThingError, ToolError, or_error
from explorer.schema.tool import SourceDraft
from explorer.sources.hackernews.items import ITEM_URL, AlgoliaUser, HnUser, SearchHit, Story
from explorer.sources.hackernews.services import (
    BATCH,
    DayOfStories,
    HnFound,
    HnQuery,
    HnServices,
    HnThreads,
    ServiceDownError,
    day_of_stories,
    search,
)
from explorer.sources.page import Fetcher, WebPage
from explorer.sources.threads import (
    CommentRange,
    LeadLine,
    Thread,
    ThreadText,
    hanging,
    preview,
    submission_draft,
    submission_entry,
    ways_on,
)
from explorer.text.rendering import MAX_ID_CHARS, code, own
from explorer.text.sanitize import single_line

VIA = "hackernews"
COMMENT_PREVIEW_CHARS = 500


def hn_entry(place: int, source_id: str, hit: SearchHit, now: datetime) -> str:
    """Return two lines for a story; for a comment, a third line with its text."""
    return submission_entry(place, source_id, hit.story, now) + preview(hit.comment, COMMENT_PREVIEW_CHARS)


def hn_draft(story: Story) -> SourceDraft:
    """Return a story as a source, with all that is known of it."""
    return submission_draft(story, VIA, "comment" if story.kind == "comment" else "story")


def hn_thread_text(thread: Thread[Story], argument: str) -> ThreadText:
    """Return a thread as text; `argument` is the name of the argument for its id in the tool that shows it."""
    story = thread.post
    return ThreadText(
        thread,
        url=ITEM_URL.format(thread.root) if thread.root else story.page,
        via=VIA,
        about=own('"{title}" (story id {id})', title=story.title, id=story.id),
        lead=() if thread.root else tuple(_story_lines(story)),
        notes=ways_on(thread, lambda one: own("{name}={id}", name=code(argument), id=code(one, MAX_ID_CHARS))),
    )


def _story_lines(story: Story) -> list[LeadLine]:
    """Return the lines of the story's own text and a poll's options, before the comments on them."""
    lines: list[LeadLine] = []
    if story.state:
        lines.append(LeadLine(f"The story is {story.state}."))
    if story.text:
        lines.append(LeadLine(hanging(story.text, "  "), "Text of the story: ", is_of_author=True))
    if story.options:
        lines.append(LeadLine("; ".join(single_line(option) for option in story.options), "Options of the poll: "))
    return lines


SHOWN = CommentRange(limit=100, depth=8)
"""The part of a thread that is read as a page."""
ARGUMENT = "post_id"
"""The argument of `get_comments` for the id of a thread or a comment."""
DAYS_AT_ONCE = 4
"""The number of days that are requested at a time: whole days are large answers."""


@dataclass(frozen=True)
class StoryList:
    """The beginning of a ranked list."""

    stories: tuple[Story, ...]
    total: int
    """The number of ids in the whole list."""


class HackerNews:
    """Reads Hacker News; `api_url` is the address of Firebase's form, `search_url` of Algolia's.

    `parser` reads the HTML of comments, in a confined process.
    """

    def __init__(self, web: Fetcher, parser: DocumentParser, api_url: str, search_url: str) -> None:
        self._services = HnServices(web, parser, api_url, search_url)
        self._threads = HnThreads(self._services)

    async def stories(self, kind: str, limit: int) -> StoryList:
        """Return the first live stories of a list (`top`, `new`, `best`, `ask`, `show`, `job`), in rank order.

        Raises:
            ToolError: The API gave no list, or none of its items.
        """
        ids = await self._services.ids(kind)
        if ids is None:
            raise ToolError.of(
                "Hacker News has no list of {kind} stories just now. Use search_hn instead.", kind=code(kind)
            )
        found: list[Story] = []
        start = 0
        while len(found) < limit and start < len(ids):
            batch = ids[start : start + max(limit - len(found), BATCH)]
            start += len(batch)
            items = await self._services.items(batch)
            found += [item.story() for item in items.values() if item.is_live_story]
        return StoryList(tuple(found[:limit]), len(ids))

    async def stories_of_days(
        self, kind: str, days: Sequence[date], zone: tzinfo, limit: int
    ) -> tuple[DayOfStories, ...]:
        """Return the stories submitted on each of several days in the user's zone, at most `limit` a day, by points.

        Raises:
            ToolError: The search does not answer.
        """
        gate = asyncio.Semaphore(DAYS_AT_ONCE)

        async def one(day: date) -> DayOfStories:
            async with gate:
                return await day_of_stories(self._services, kind, day, zone, limit)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(or_error(one(day))) for day in days]
        found = [task.result() for task in tasks]
        if failures := [answer for answer in found if isinstance(answer, ToolError)]:
            raise failures[0]
        return tuple(answer for answer in found if isinstance(answer, DayOfStories))

    async def thread(self, item_id: int, part: CommentRange) -> Thread[Story]:
        """Return a part of a story's thread, or of the replies to one comment.

        Raises:
            ToolError: There is no such item, or no service answers.
        """
        return await self._threads.read(item_id, part)

    async def search(self, query: HnQuery) -> HnFound:
        """Search; a query without hits is repeated with fewer and fewer words.

        Raises:
            ToolError: The search does not answer.
        """
        return await search(self._services, query)

    async def user(self, name: str) -> HnUser:
        """Return a user's public profile.

        Raises:
            ToolError: There is no such user, or no service answers.
        """
        try:
            found = await self._services.user(quote(name, safe=""))
        except ToolError as failure:
            try:
                return (await self._services.algolia(AlgoliaUser, f"users/{quote(name, safe='')}")).user()
            except ToolError as error:
                raise ServiceDownError.of("{why} {why2}", why=failure.words, why2=error.words) from error
        if found is None:
            raise NoSuchThingError.of(
                "Hacker News has no user {name}; upper and lower case matter in names.", name=repr(name)
            )
        return found.user()

    async def read(self, url: str) -> WebPage | None:
        """Read the thread at an item's address; None for the site's other pages.

        Raises:
            ToolError: There is no such item, or no service answers.
        """
        parts = urlsplit(url)
        item = "".join(parse_qs(parts.query).get("id", [])[:1])
        if parts.path != "/item" or not (item.isascii() and item.isdecimal()):
            return None
        written = hn_thread_text(await self.thread(int(item), SHOWN), ARGUMENT)
        words = "Not all is shown, see get_comments with platform=hackernews. {note}"
        return written.as_page(own(words, note=note) for note in written.notes)
