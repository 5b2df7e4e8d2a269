"""Hacker News through its two public APIs: Firebase (rank order, fresh numbers) and Algolia (whole trees, search).

Each stands in for the other where it can: Firebase gives a thread item by item when Algolia is down, Algolia gives
it whole when Firebase is.
"""

import asyncio
import heapq
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeVar
from urllib.parse import urlencode

from pydantic import TypeAdapter

from explorer.errors import ToolError
from explorer.net.fetch import API_LIMITS, Fetched, Web
from explorer.net.hn_items import (
    ITEM_URL,
    AlgoliaAnswer,
    AlgoliaItem,
    Comment,
    FirebaseItem,
    SearchHit,
    Story,
    choose,
    parse,
    ranked,
    walk,
)

BATCH = 16
"""Firebase items asked for at a time; the host's gate lets as many through."""
MAX_FILL = 20
"""Firebase requests for top comments that Algolia's tree lacks (too new, or removed)."""
MAX_RELAXED = 4
"""Words of the longest relaxed query: the search wants all words, and stories have short titles."""
FEW_WORDS = re.compile(
    r"an?|about|and|any|are|as|at|been|by|can|could|did|do|does|for|from|has|have|how|i|in|is|its?|of|on|or|should|that"
    r"|the|their|there|these|they|this|to|was|we|were|what|when|where|which|who|why|will|with|would|you|your"
    r"|best|better|current(ly)?|good|hacker|hn|latest|most|new|news|now|opinions?|people|recent(ly)?|say(ing)?|stor(y|ies)"
    r"|think(ing)?|today|us(e|ing)|ways?"
)
"""Words that tell little about a subject: the first to be left out of a query that finds nothing."""

LISTS = TypeAdapter[list[int] | None](list[int] | None)
ITEM = TypeAdapter[FirebaseItem | None](FirebaseItem | None)

T = TypeVar("T")


class ServiceDownError(ToolError):
    """Hacker News does not answer, whatever is asked."""


@dataclass(frozen=True)
class StoryList:
    """A ranked list, as far as it was asked for."""

    stories: tuple[Story, ...]
    total: int
    """Ids in the whole list."""


@dataclass(frozen=True)
class Thread:
    """A story with the most prominent of its comments."""

    story: Story
    comments: tuple[Comment, ...]
    total: int
    """Comments it has, as the services count them."""

    @property
    def shown(self) -> int:
        """Comments in `comments`, on all levels."""
        return sum(1 for _ in walk(self.comments))


@dataclass(frozen=True)
class HnQuery:
    """What to search for."""

    words: str
    after: int | None = None
    """Unix seconds; nothing older."""
    is_by_date: bool = False
    """Newest first, else by relevance."""
    tags: str = "story"
    limit: int = 20


@dataclass(frozen=True)
class HnFound:
    """What a search gave."""

    words: str
    """The words that gave it: fewer than asked for when all together gave nothing."""
    hits: tuple[SearchHit, ...]
    total: int


class HackerNews:
    """A reader of Hacker News; `api_url` is Firebase's form, `search_url` Algolia's."""

    def __init__(self, web: Web, api_url: str, search_url: str) -> None:
        self._web = web
        self._api_url = api_url.rstrip("/")
        self._search_url = search_url.rstrip("/")

    async def stories(self, kind: str, limit: int) -> StoryList:
        """The first live stories of a list (`top`, `new`, `best`, `ask`, `show`, `job`), in rank order.

        Raises:
            ToolError: The API gave no list, or none of its items.
        """
        ids = await self._firebase(LISTS, f"{kind}stories")
        if ids is None:
            raise ToolError(f"Hacker News has no list of {kind} stories just now. Use search_hn instead.")
        found: list[Story] = []
        start = 0
        while len(found) < limit and start < len(ids):
            batch = ids[start : start + max(limit - len(found), BATCH)]
            start += len(batch)
            items = await self._items(batch)
            found += [item.story() for item in items.values() if item.is_live_story]
        return StoryList(tuple(found[:limit]), len(ids))

    async def thread(self, story_id: int, limit: int, depth: int) -> Thread:
        """A story and up to `limit` of its comments, at most `depth` levels deep.

        Raises:
            ToolError: There is no such story, or no service answers.
        """
        async with asyncio.TaskGroup() as group:
            item_task = group.create_task(self._item_or_failure(story_id))
            tree_task = group.create_task(self._tree_or_failure(story_id))
        item, tree = item_task.result(), tree_task.result()
        story = await self._story(story_id, item, tree)
        comments = tree.replies() if isinstance(tree, AlgoliaItem) else ()
        known = {comment.id for comment in comments}
        missing = [kid for kid in story.kids[:limit] if kid not in known]
        if missing:
            budget = MAX_FILL if comments else 2 * limit
            comments += await self._grown(missing, budget, depth, is_optional=bool(comments))
        counted = sum(1 for _ in walk(comments))
        chosen = choose(ranked(comments, story.kids), limit, depth)
        return Thread(story, chosen, max(story.comments or 0, counted))

    async def search(self, query: HnQuery) -> HnFound:
        """Search; a query without hits is tried again with fewer and fewer words.

        Raises:
            ToolError: The search does not answer.
        """
        for words in _relaxed(query.words):
            answer = await self._search(replace(query, words=words))
            if answer.hits:
                return HnFound(words, tuple(hit.hit() for hit in answer.hits), answer.nbHits or len(answer.hits))
        return HnFound(query.words, (), 0)

    async def _search(self, query: HnQuery) -> AlgoliaAnswer:
        parameters: dict[str, str | int] = {"query": query.words, "hitsPerPage": query.limit}
        if query.tags:
            parameters["tags"] = query.tags
        if query.after is not None:
            parameters["numericFilters"] = f"created_at_i>={query.after}"
        path = "search_by_date" if query.is_by_date else "search"
        fetched = await self._fetch("Hacker News search", f"{self._search_url}/{path}?{urlencode(parameters)}")
        return parse(AlgoliaAnswer, fetched.body, "Hacker News search")

    async def _firebase(self, kind: TypeAdapter[T], path: str) -> T:
        what = "Hacker News' API"
        fetched = await self._fetch(what, f"{self._api_url}/{path}.json")
        return parse(kind, fetched.body, what)

    async def _fetch(self, what: str, url: str) -> Fetched:
        try:
            fetched = await self._web.get(url, accept="application/json", limits=API_LIMITS)
        except ToolError as error:
            raise ServiceDownError(f"{what} is not available: {error.message}", hint=error.hint) from error
        if fetched.problem:
            raise ServiceDownError(f"{what} is not available: {fetched.problem}.")
        return fetched

    async def _item_or_failure(self, item_id: int) -> FirebaseItem | ToolError | None:
        try:
            return await self._firebase(ITEM, f"item/{item_id}")
        except ToolError as error:
            return error

    async def _items(self, ids: Sequence[int]) -> dict[int, FirebaseItem]:
        """Items by id in the order asked, without those that are null or do not answer.

        Raises:
            ToolError: None answers.
        """
        async with asyncio.TaskGroup() as group:
            tasks = {one: group.create_task(self._item_or_failure(one)) for one in ids}
        answers = {one: task.result() for one, task in tasks.items()}
        failures = [answer for answer in answers.values() if isinstance(answer, ToolError)]
        if failures and len(failures) == len(answers):
            raise failures[0]
        return {one: answer for one, answer in answers.items() if isinstance(answer, FirebaseItem)}

    async def _tree_or_failure(self, story_id: int) -> AlgoliaItem | ToolError:
        what = "Hacker News search"
        try:
            fetched = await self._fetch(what, f"{self._search_url}/items/{story_id}")
            return parse(AlgoliaItem, fetched.body, what)
        except ToolError as error:
            return error

    async def _story(
        self, story_id: int, item: FirebaseItem | ToolError | None, tree: AlgoliaItem | ToolError
    ) -> Story:
        if isinstance(item, FirebaseItem):
            _refuse_comment(item.type, story_id, item.parent)
            return item.story(await self._poll_options(item, tree))
        if isinstance(tree, AlgoliaItem):
            _refuse_comment(tree.type, story_id, tree.story_id)
            return tree.story()
        if item is None:
            raise ToolError(f"Hacker News has no item {story_id}. Take ids from get_hn_stories or search_hn.")
        raise ServiceDownError(f"{item.message} {tree.message}") from item

    async def _poll_options(self, item: FirebaseItem, tree: AlgoliaItem | ToolError) -> Sequence[str]:
        """A poll's options: Algolia's tree has them, or Firebase as items of their own."""
        if isinstance(tree, AlgoliaItem) and tree.options:
            return tree.story().options
        if not item.parts:
            return ()
        try:
            parts = (await self._items(item.parts)).values()
        except ToolError:
            return ()
        shape = AlgoliaItem(id=item.id, options=[AlgoliaItem(id=p.id, text=p.text, points=p.score) for p in parts])
        return shape.story().options

    async def _grown(self, roots: Sequence[int], budget: int, depth: int, *, is_optional: bool) -> tuple[Comment, ...]:
        """Comments item by item from Firebase, the most prominent first (see `choose`), until the budget is spent."""
        known: dict[int, FirebaseItem] = {}
        tie = count()
        waiting = [(rank, next(tie), 1, kid) for rank, kid in enumerate(roots, start=1)]
        while waiting and budget > 0:
            batch = [heapq.heappop(waiting) for _ in range(min(BATCH, budget, len(waiting)))]
            budget -= len(batch)
            try:
                found = await self._items([kid for *_, kid in batch])
            except ToolError:
                if is_optional or known:
                    break
                raise
            known.update(found)
            for place, _, level, kid in batch:
                if kid in found and level < depth:
                    for rank, reply in enumerate(found[kid].kids, start=1):
                        heapq.heappush(waiting, (place + rank, next(tie), level + 1, reply))
        return tuple(_tree(roots, known))


def _tree(ids: Sequence[int], known: dict[int, FirebaseItem]) -> Iterator[Comment]:
    for one in ids:
        if item := known.pop(one, None):  # taken out: a child is shown once, whatever the ids say
            yield replace(item.comment(), replies=tuple(_tree(item.kids, known)))


def _refuse_comment(kind: str | None, item_id: int, above: int | None) -> None:
    if kind in {"comment", "pollopt"}:
        where = f" It stands under item {above}: ask for that one." if above else ""
        raise ToolError(f"Item {item_id} is a {kind}, not a story.{where} Its page: {ITEM_URL.format(item_id)}")


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
