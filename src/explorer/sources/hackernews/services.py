"""Hacker News' two public services: Firebase (items, fresh) and Algolia (trees), and searches in Algolia."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, tzinfo
from typing import TypeVar
from urllib.parse import urlencode

from pydantic import TypeAdapter

from explorer.schema.errors import ToolError
from explorer.sources.date_ranges import day_window
from explorer.sources.hackernews.items import AlgoliaAnswer, AlgoliaItem, FirebaseItem, SearchHit, Story
from explorer.sources.http.fetched import API_LIMITS, Fetched
from explorer.sources.http.wire import parse
from explorer.sources.page import Fetcher

API = "Hacker News' API"
SEARCH = "Hacker News search"
ITEM = TypeAdapter[FirebaseItem | None](FirebaseItem | None)

T = TypeVar("T")


class ServiceDownError(ToolError):
    """Hacker News does not answer, whatever is asked."""


class HnServices:
    """Both services, as far as they are more than one address; `api_url` is Firebase's, `search_url` Algolia's."""

    def __init__(self, web: Fetcher, api_url: str, search_url: str) -> None:
        self._web = web
        self._api_url = api_url.rstrip("/")
        self._search_url = search_url.rstrip("/")

    async def firebase(self, kind: TypeAdapter[T], path: str) -> T:
        """One answer of Firebase; `path` without its ending.

        Raises:
            ToolError: There is none, or it is not what was expected.
        """
        fetched = await self._fetch(API, f"{self._api_url}/{path}.json")
        return parse(kind, fetched.body, API)

    async def algolia(self, kind: type[T], path: str) -> T:
        """One answer of Algolia; `path` with its query.

        Raises:
            ToolError: There is none, or it is not what was expected.
        """
        fetched = await self._fetch(SEARCH, f"{self._search_url}/{path}")
        return parse(kind, fetched.body, SEARCH)

    async def item_or_failure(self, item_id: int) -> FirebaseItem | ToolError | None:
        """An item, None for an unknown one, or why it is not there."""
        try:
            return await self.firebase(ITEM, f"item/{item_id}")
        except ToolError as error:
            return error

    async def items(self, ids: Sequence[int]) -> dict[int, FirebaseItem]:
        """Items by id in the order asked, without those that are null or do not answer.

        Raises:
            ToolError: None answers.
        """
        async with asyncio.TaskGroup() as group:
            tasks = {one: group.create_task(self.item_or_failure(one)) for one in ids}
        answers = {one: task.result() for one, task in tasks.items()}
        failures = [answer for answer in answers.values() if isinstance(answer, ToolError)]
        if failures and len(failures) == len(answers):
            raise failures[0]
        return {one: answer for one, answer in answers.items() if isinstance(answer, FirebaseItem)}

    async def tree_or_failure(self, item_id: int) -> AlgoliaItem | ToolError:
        """A whole tree, or why it is not there."""
        try:
            return await self.algolia(AlgoliaItem, f"items/{item_id}")
        except ToolError as error:
            return error

    async def _fetch(self, what: str, url: str) -> Fetched:
        try:
            fetched = await self._web.get(url, accept="application/json", limits=API_LIMITS)
        except ToolError as error:
            raise ServiceDownError(f"{what} is not available: {error.message}", hint=error.hint) from error
        if fetched.problem:
            raise ServiceDownError(f"{what} is not available: {fetched.problem}.")
        return fetched


MAX_RELAXED = 4
"""Words of the longest relaxed query: the search wants all words, and stories have short titles."""
MAX_HITS = 1_000
"""The service shows no more hits of one query, however they are paged."""
SHORTEST_SLICE_S = 60
"""A slice of time this short is taken as it is, whatever it holds."""
FEW_WORDS = re.compile(
    r"an?|about|and|any|are|as|at|been|by|can|could|did|do|does|for|from|has|have|how|i|in|is|its?|of|on|or|should|that"
    r"|the|their|there|these|they|this|to|was|we|were|what|when|where|which|who|why|will|with|would|you|your"
    r"|best|better|current(ly)?|good|hacker|hn|latest|most|new|news|now|opinions?|people|recent(ly)?|say(ing)?|stor(y|ies)"
    r"|think(ing)?|today|us(e|ing)|ways?"
)
"""Words that tell little about a subject: the first to be left out of a query that finds nothing."""
DAY_TAGS = {"ask": "ask_hn", "show": "show_hn", "job": "job"}
"""The search's word for a kind of list; every other is `story`."""


@dataclass(frozen=True)
class HnQuery:
    """What to search for."""

    words: str
    after: int | None = None
    """Unix seconds; nothing older."""
    before: int | None = None
    """Unix seconds; older than this."""
    is_by_date: bool = False
    """Newest first, else by relevance."""
    tags: str = "story"
    limit: int = 20

    @property
    def path(self) -> str:
        """As the service is asked."""
        parameters: dict[str, str | int] = {"query": self.words, "hitsPerPage": self.limit}
        if self.tags:
            parameters["tags"] = self.tags
        bounds = [("created_at_i>=", self.after), ("created_at_i<", self.before)]
        if filters := ",".join(f"{name}{value}" for name, value in bounds if value is not None):
            parameters["numericFilters"] = filters
        return f"{'search_by_date' if self.is_by_date else 'search'}?{urlencode(parameters)}"


@dataclass(frozen=True)
class HnFound:
    """What a search gave."""

    words: str
    """The words that gave it: fewer than asked for when all together gave nothing."""
    hits: tuple[SearchHit, ...]
    total: int


@dataclass(frozen=True)
class DayOfStories:
    """The stories submitted on one day of the asker's."""

    day: date
    stories: tuple[Story, ...]
    """As many as were asked for, the first of the ranking."""
    total: int
    """All that were submitted."""


async def search(services: HnServices, query: HnQuery) -> HnFound:
    """Search; a query without hits is tried again with fewer and fewer words.

    Raises:
        ToolError: The search does not answer.
    """
    for words in _relaxed(query.words):
        answer = await services.algolia(AlgoliaAnswer, replace(query, words=words).path)
        if answer.hits:
            return HnFound(words, tuple(hit.hit() for hit in answer.hits), answer.nbHits or len(answer.hits))
    return HnFound(query.words, (), 0)


async def day_of_stories(services: HnServices, kind: str, day: date, zone: tzinfo, limit: int) -> DayOfStories:
    """A day's stories by points, or the newest first for the kind `new`.

    Raises:
        ToolError: The search does not answer.
    """
    start, end = (int(moment.timestamp()) for moment in day_window(day, zone))
    query = HnQuery("", start, end, tags=DAY_TAGS.get(kind, "story"), limit=MAX_HITS)
    by_id = {story.id: story for story in await _all(services, query)}
    stories = sorted(by_id.values(), key=_newest_first if kind == "new" else _most_points_first)
    return DayOfStories(day, tuple(stories[:limit]), len(stories))


async def _all(services: HnServices, query: HnQuery) -> Sequence[Story]:
    """Every story of a stretch of time: where the service would cut, it is asked for the two halves."""
    answer = await services.algolia(AlgoliaAnswer, query.path)
    stories = [hit.hit().story for hit in answer.hits]
    start, end = query.after or 0, query.before or 0
    if (answer.nbHits or 0) <= len(stories) or end - start <= SHORTEST_SLICE_S:
        return stories
    middle = (start + end) // 2
    return [
        *stories,
        *await _all(services, replace(query, before=middle)),
        *await _all(services, replace(query, after=middle)),
    ]


def _most_points_first(story: Story) -> tuple[int, int, int]:
    return -(story.points or 0), -(story.comments or 0), story.id


def _newest_first(story: Story) -> tuple[int, int]:
    return -(story.time or 0), -story.id


def _relaxed(words: str) -> Iterator[str]:
    """The words, then without little ones, then fewer and fewer of the first; at most six queries."""
    tried = " ".join(words.split())
    yield tried
    telling = [word for word in tried.split() if not FEW_WORDS.fullmatch(re.sub(r"\W", "", word).lower())]
    shorter = " ".join(telling)
    if shorter and shorter != tried:
        yield shorter
    for length in range(min(len(telling) - 1, MAX_RELAXED), 0, -1):
        yield " ".join(telling[:length])
