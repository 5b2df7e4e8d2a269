"""Hacker News' two public services, Firebase (items, fresh) and Algolia (trees, search), and threads out of both."""

import asyncio
import heapq
import re
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, tzinfo
from itertools import count
from typing import LiteralString, TypeVar
from urllib.parse import urlencode

from pydantic import ConfigDict, TypeAdapter

from explorer.documents.parsing.kinds import COMMENTS
from explorer.documents.parsing.parser import DocumentParser
from explorer.schema.errors import NoSuchThingError, RefusedCallError, ToolError, or_error
from explorer.sources.date_ranges import day_window
from explorer.sources.hackernews.items import (
    STORY_TYPES,
    AlgoliaAnswer,
    AlgoliaItem,
    FirebaseItem,
    FirebaseUser,
    SearchHit,
    Story,
    in_plain_text,
)
from explorer.sources.http.fetched import API_LIMITS, Fetched
from explorer.sources.http.wire import WireModel, parse
from explorer.sources.page import Fetcher
from explorer.sources.threads import Comment, CommentPage, CommentRange, Thread, page_of, size, thread_under
from explorer.text.rendering import own

API = own("Hacker News' API")
SEARCH = own("Hacker News search")
AT_FIRST_USE = ConfigDict(defer_build=True)
ITEM = TypeAdapter[FirebaseItem | None](FirebaseItem | None, config=AT_FIRST_USE)
LISTS = TypeAdapter[list[int] | None](list[int] | None, config=AT_FIRST_USE)
USER = TypeAdapter[FirebaseUser | None](FirebaseUser | None, config=AT_FIRST_USE)

T = TypeVar("T")
R = TypeVar("R", bound=WireModel)


class ServiceDownError(ToolError):
    """Hacker News does not answer any request."""


async def or_advise(answer: Awaitable[T], advice: LiteralString) -> T:
    """Return the answer; when the service is down, add advice to the error."""
    try:
        return await answer
    except ServiceDownError as error:
        raise ToolError(own("{why} {advice}", why=error.words, advice=own(advice)), hint=error.hint) from error


class HnServices:
    """Sends requests to both services; `api_url` is Firebase's address, `search_url` Algolia's.

    `parser` reads the HTML in their answers, in a confined process: what is returned has plain text instead.
    """

    def __init__(self, web: Fetcher, parser: DocumentParser, api_url: str, search_url: str) -> None:
        self._web = web
        self._parser = parser
        self._api_url = api_url.rstrip("/")
        self._search_url = search_url.rstrip("/")

    async def ids(self, kind: str) -> list[int] | None:
        """Return the ids of a list of stories; None where there is no such list.

        Raises:
            ToolError: There is no answer, or it is not what was expected.
        """
        return await self._firebase(LISTS, f"{kind}stories")

    async def user(self, name: str) -> FirebaseUser | None:
        """Return a user; None for an unknown one.

        Raises:
            ToolError: There is no answer, or it is not what was expected.
        """
        found = await self._firebase(USER, f"user/{name}")
        return (await in_plain_text(self._parser, [found]))[0] if found else None

    async def algolia(self, kind: type[R], path: str) -> R:
        """Return an answer of Algolia; `path` includes the query.

        Raises:
            ToolError: There is none, or it is not what was expected.
        """
        fetched = await self._fetch(SEARCH, f"{self._search_url}/{path}")
        return (await in_plain_text(self._parser, [parse(kind, fetched.body, SEARCH)]))[0]

    async def item(self, item_id: int) -> FirebaseItem | None:
        """Return an item; None for an unknown one.

        Raises:
            ToolError: There is no answer, or it is not what was expected.
        """
        return (await self.items([item_id])).get(item_id)

    async def items(self, ids: Sequence[int]) -> dict[int, FirebaseItem]:
        """Return items by id in the requested order, without those that are null or missing.

        Raises:
            ToolError: None answers.
        """
        async with asyncio.TaskGroup() as group:
            tasks = {one: group.create_task(or_error(self._firebase(ITEM, f"item/{one}"))) for one in ids}
        answers = {one: task.result() for one, task in tasks.items()}
        failures = [answer for answer in answers.values() if isinstance(answer, ToolError)]
        if failures and len(failures) == len(answers):
            raise failures[0]
        found = {one: answer for one, answer in answers.items() if isinstance(answer, FirebaseItem)}
        return dict(zip(found, await in_plain_text(self._parser, list(found.values())), strict=True))

    async def tree(self, item_id: int) -> AlgoliaItem:
        """Return a whole tree.

        Raises:
            ToolError: There is none, or it is not what was expected.
        """
        return await self.algolia(AlgoliaItem, f"items/{item_id}")

    async def _firebase(self, kind: TypeAdapter[T], path: str) -> T:
        """Return an answer of Firebase with its HTML as it is; `path` has no ending."""
        fetched = await self._fetch(API, f"{self._api_url}/{path}.json")
        return parse(kind, fetched.body, API)

    async def _fetch(self, what: str, url: str) -> Fetched:
        await self._parser.prepare(COMMENTS)
        try:
            fetched = await self._web.get(url, accept="application/json", limits=API_LIMITS)
        except ToolError as error:
            raise ServiceDownError(
                own("{what} is not available: {why}", what=what, why=error.words), hint=error.hint
            ) from error
        if fetched.problem:
            raise ServiceDownError.of("{what} is not available: {problem}.", what=what, problem=fetched.problem)
        return fetched


MAX_RELAXED = 4
"""The number of words in the longest shortened query: the search requires all words, and titles of stories are short.
"""
MAX_HITS = 1_000
"""The largest number of hits that the service shows for one query, on all its pages."""
SHORTEST_SLICE_S = 60
"""The length in seconds of a range of time that is not divided further, however many stories it has."""
FEW_WORDS = re.compile(
    r"an?|about|and|any|are|as|at|been|by|can|could|did|do|does|for|from|has|have|how|i|in|is|its?|of|on|or|should|that"
    r"|the|their|there|these|they|this|to|was|we|were|what|when|where|which|who|why|will|with|would|you|your"
    r"|best|better|current(ly)?|good|hacker|hn|latest|most|new|news|now|opinions?|people|recent(ly)?|say(ing)?|stor(y|ies)"
    r"|think(ing)?|today|us(e|ing)|ways?"
)
"""Words without much meaning: a query that finds nothing is repeated without them first."""
DAY_TAGS = {"ask": "ask_hn", "show": "show_hn", "job": "job"}
"""The search's tag for a kind of list; the tag of all others is `story`."""


@dataclass(frozen=True)
class HnQuery:
    """A search for stories or comments."""

    words: str
    after: int | None = None
    """Unix seconds; hits are not older."""
    before: int | None = None
    """Unix seconds; hits are older."""
    is_by_date: bool = False
    """Whether the newest are first; else the most relevant."""
    tags: str = "story"
    limit: int = 20

    @property
    def path(self) -> str:
        """The path and query of the request."""
        parameters: dict[str, str | int] = {"query": self.words, "hitsPerPage": self.limit}
        if self.tags:
            parameters["tags"] = self.tags
        bounds = [("created_at_i>=", self.after), ("created_at_i<", self.before)]
        if filters := ",".join(f"{name}{value}" for name, value in bounds if value is not None):
            parameters["numericFilters"] = filters
        return f"{'search_by_date' if self.is_by_date else 'search'}?{urlencode(parameters)}"


@dataclass(frozen=True)
class HnFound:
    """The hits of a search."""

    words: str
    """The words that gave the hits: fewer than requested if all words together gave none."""
    hits: tuple[SearchHit, ...]
    total: int


@dataclass(frozen=True)
class DayOfStories:
    """The stories submitted on one day in the user's zone."""

    day: date
    stories: tuple[Story, ...]
    """The first stories of the ranking, as many as requested."""
    total: int
    """The number of all stories submitted."""


async def search(services: HnServices, query: HnQuery) -> HnFound:
    """Search; a query without hits is repeated with fewer and fewer words.

    Raises:
        ToolError: The search does not answer.
    """
    for words in _relaxed(query.words):
        answer = await services.algolia(AlgoliaAnswer, replace(query, words=words).path)
        if answer.hits:
            return HnFound(words, tuple(hit.hit() for hit in answer.hits), answer.nbHits or len(answer.hits))
    return HnFound(query.words, (), 0)


async def day_of_stories(services: HnServices, kind: str, day: date, zone: tzinfo, limit: int) -> DayOfStories:
    """Return a day's stories by points; for the kind `new`, the newest first.

    Raises:
        ToolError: The search does not answer.
    """
    start, end = (int(moment.timestamp()) for moment in day_window(day, zone))
    query = HnQuery("", start, end, tags=DAY_TAGS.get(kind, "story"), limit=MAX_HITS)
    by_id = {story.id: story for story in await _all(services, query)}
    stories = sorted(by_id.values(), key=_newest_first if kind == "new" else _most_points_first)
    return DayOfStories(day, tuple(stories[:limit]), len(stories))


async def _all(services: HnServices, query: HnQuery) -> Sequence[Story]:
    """Return every story in a range of time; where the service would cut the list, each half is requested."""
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
    """Yield the words, then without those of little meaning, then fewer and fewer; at most six queries."""
    tried = " ".join(words.split())
    yield tried
    telling = [word for word in tried.split() if not FEW_WORDS.fullmatch(re.sub(r"\W", "", word).lower())]
    shorter = " ".join(telling)
    if shorter and shorter != tried:
        yield shorter
    for length in range(min(len(telling) - 1, MAX_RELAXED), 0, -1):
        yield " ".join(telling[:length])


BATCH = 16
"""The number of Firebase items requested at a time, which the limit of the host allows."""
MAX_FILL = 20
"""The number of Firebase requests for top comments that Algolia's tree lacks (too new, or removed)."""
NO_OPTION = "(an option whose text is not available)"
MAX_LEVELS = 60
"""The number of parents requested on the way from a comment up to its story."""


@dataclass(frozen=True)
class _Found:
    """The answers of the two services about one item."""

    item: FirebaseItem | ToolError | None
    tree: AlgoliaItem | ToolError

    @property
    def kind(self) -> str:
        """`story`, `comment` or another kind; empty when neither service answers."""
        kinds = [one.type or "story" for one in (self.item, self.tree) if isinstance(one, FirebaseItem | AlgoliaItem)]
        return kinds[0] if kinds else ""

    @property
    def above(self) -> int | None:
        """The id of the item above; the id of the story where that is known."""
        if isinstance(self.tree, AlgoliaItem) and self.tree.story_id not in {None, self.tree.id}:
            return self.tree.story_id
        if isinstance(self.item, FirebaseItem):
            return self.item.parent
        return self.tree.parent_id if isinstance(self.tree, AlgoliaItem) else None

    @property
    def kids(self) -> Sequence[int]:
        """The ids of direct replies in rank order, which only Firebase has."""
        return self.item.kids if isinstance(self.item, FirebaseItem) else ()

    @property
    def comment(self) -> Comment | None:
        """Return the item as a comment without replies."""
        if isinstance(self.item, FirebaseItem):
            return replace(self.item.comment(), more=0)
        return replace(self.tree.comment(), replies=()) if isinstance(self.tree, AlgoliaItem) else None


class HnThreads:
    """Reads threads."""

    def __init__(self, services: HnServices) -> None:
        self._services = services

    async def read(self, item_id: int, part: CommentRange) -> Thread[Story]:
        """Return a part of a story's thread, or of the replies to one comment.

        Raises:
            ToolError: There is no such item, or no service answers.
        """
        found = await self._found(item_id)
        if found.kind == "pollopt":
            above = own(" It belongs to poll {id}: ask for that one.", id=found.above) if found.above else own("")
            raise RefusedCallError.of(
                "Item {item_id} is an option of a poll, not a story.{above}", item_id=item_id, above=above
            )
        if found.kind == "comment":
            return await self._below(found, part)
        story = await self._story(item_id, found)
        page, total = await self._comments(found, part)
        return Thread(story, page.comments, max(story.comments or 0, total), page.next_offset)

    async def _below(self, found: _Found, part: CommentRange) -> Thread[Story]:
        """Return a comment with its replies, under the title of its story."""
        root = found.comment
        assert root  # a comment's kind is known from one of the two answers
        story, (page, total) = await self._story_above(found), await self._comments(found, part)
        return thread_under(root, story, page, total)

    async def _found(self, item_id: int) -> _Found:
        async with asyncio.TaskGroup() as group:
            item = group.create_task(or_error(self._services.item(item_id)))
            tree = group.create_task(or_error(self._services.tree(item_id)))
        return _Found(item.result(), tree.result())

    async def _comments(self, found: _Found, part: CommentRange) -> tuple[CommentPage, int]:
        """Return the comments to show, and the number of comments as far as it is known."""
        comments = found.tree.replies() if isinstance(found.tree, AlgoliaItem) else ()
        known = {comment.id for comment in comments}
        wanted = found.kids[part.offset : part.offset + part.limit]
        missing = [kid for kid in wanted if str(kid) not in known]
        if missing:
            budget = MAX_FILL if comments else 2 * part.limit
            comments += await self._grown(missing, budget, part.depth, is_optional=bool(comments))
        held = {comment.id for comment in comments}
        order = list(dict.fromkeys([*map(str, found.kids), *(comment.id for comment in comments)]))
        gone = {str(kid) for kid in missing} - held
        total = size(comments) + sum(1 for one in order if one not in held and one not in gone)
        return page_of(comments, order, part, gone), total

    async def _story(self, story_id: int, found: _Found) -> Story:
        if isinstance(found.item, FirebaseItem):
            return found.item.story(await self._poll_options(found.item, found.tree))
        if isinstance(found.tree, AlgoliaItem):
            return found.tree.story()
        if found.item is None:
            raise NoSuchThingError.of(
                "Hacker News has no item {story_id}. Take ids from get_hn_stories or search_hn.", story_id=story_id
            )
        raise ServiceDownError.of("{why} {why2}", why=found.item.words, why2=found.tree.words) from found.item

    async def _story_above(self, found: _Found) -> Story:
        """Return the story above a comment; one without a title if the way up is not known."""
        above = found.above
        for _ in range(MAX_LEVELS):
            if above is None:
                break
            item = await or_error(self._services.item(above))
            if not isinstance(item, FirebaseItem):
                tree = await or_error(self._services.tree(above))
                return tree.story() if isinstance(tree, AlgoliaItem) else Story(above, "(story unknown)")
            if item.type in STORY_TYPES:
                return item.story()
            above = item.parent
        return Story(above or 0, "(story unknown)")

    async def _poll_options(self, item: FirebaseItem, tree: AlgoliaItem | ToolError) -> Sequence[str]:
        """Return the options of a poll: Algolia's tree has them, or Firebase as items."""
        if isinstance(tree, AlgoliaItem) and tree.options:
            return tree.story().options
        try:
            parts = await self._services.items(item.parts)
        except ToolError:
            parts = dict[int, FirebaseItem]()
        named = [
            AlgoliaItem(id=one, text=parts[one].text, points=parts[one].score)
            if one in parts
            else AlgoliaItem(id=one, text=NO_OPTION)
            for one in item.parts
        ]
        return AlgoliaItem(id=item.id, options=tuple(named)).story().options

    async def _grown(self, roots: Sequence[int], budget: int, depth: int, *, is_optional: bool) -> tuple[Comment, ...]:
        """Return comments, requested one by one from Firebase, the most prominent first, within the budget."""
        known: dict[int, FirebaseItem] = {}
        tie = count()
        waiting = [(rank, next(tie), 1, kid) for rank, kid in enumerate(roots, start=1)]
        while waiting and budget > 0:
            batch = [heapq.heappop(waiting) for _ in range(min(BATCH, budget, len(waiting)))]
            budget -= len(batch)
            try:
                found = await self._services.items([kid for *_, kid in batch])
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
            yield item.comment(tuple(_tree(item.kids, known)))
