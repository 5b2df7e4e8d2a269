"""Hacker News through its two public APIs: Firebase (rank order, fresh numbers) and Algolia (whole trees, search).

Each replaces the other where it can: Firebase gives a thread item by item when Algolia is down, Algolia gives it whole
when Firebase is down. Item pages are read through them, too.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, tzinfo
from urllib.parse import parse_qs, quote, urlsplit

from explorer.documents.parsing.parser import DocumentParser
from explorer.schema.errors import NoSuchThingError, ToolError
from explorer.sources.hackernews.items import AlgoliaUser, HnUser, Story
from explorer.sources.hackernews.services import (
    BATCH,
    DayOfStories,
    HnFound,
    HnQuery,
    HnServices,
    HnThreads,
    ServiceDownError,
    Thread,
    day_of_stories,
    search,
)
from explorer.sources.hackernews.text import hn_thread_text
from explorer.sources.page import Fetcher, WebPage
from explorer.sources.threads import CommentRange
from explorer.text.rendering import code, own

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
            raise ToolError(
                own("Hacker News has no list of {kind} stories just now. Use search_hn instead.", kind=code(kind))
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

        async def one(day: date) -> DayOfStories | ToolError:
            async with gate:
                try:
                    return await day_of_stories(self._services, kind, day, zone, limit)
                except ToolError as error:
                    return error

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(day)) for day in days]
        found = [task.result() for task in tasks]
        if failures := [answer for answer in found if isinstance(answer, ToolError)]:
            raise failures[0]
        return tuple(answer for answer in found if isinstance(answer, DayOfStories))

    async def thread(self, item_id: int, part: CommentRange) -> Thread:
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
                raise ServiceDownError(own("{why} {why2}", why=failure.words, why2=error.words)) from error
        if found is None:
            raise NoSuchThingError(
                own("Hacker News has no user {name}; upper and lower case matter in names.", name=repr(name))
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
        draft = written.draft
        more = tuple(
            own("Not all is shown, see get_comments with platform=hackernews. {note}", note=note)
            for note in written.notes
        )
        return WebPage(
            url=draft.url,
            title=draft.title,
            text=draft.text,
            via=draft.via,
            author=draft.author,
            published=draft.published,
            kind=draft.kind,
            notes=more,
        )
