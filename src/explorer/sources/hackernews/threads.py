"""Threads of Hacker News, whole or from one comment down, put together from both services."""

import asyncio
import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from explorer.schema.errors import NoSuchThingError, RefusedCallError, ToolError
from explorer.sources.hackernews.items import STORY_TYPES, AlgoliaItem, FirebaseItem, Story
from explorer.sources.hackernews.services import HnServices, ServiceDownError
from explorer.sources.threads import Comment, CommentPage, CommentRange, page_of, size, walk

BATCH = 16
"""Firebase items asked for at a time; the host's gate lets as many through."""
MAX_FILL = 20
"""Firebase requests for top comments that Algolia's tree lacks (too new, or removed)."""
NO_OPTION = "(an option whose text is not available)"
MAX_LEVELS = 60
"""Parents asked for on the way from a comment up to its story."""


@dataclass(frozen=True)
class Thread:
    """A story, or one comment of it, with the most prominent of the comments below."""

    story: Story
    comments: tuple[Comment, ...]
    """Below a root, the root alone, with what is shown of its replies."""
    total: int
    """Comments it has, as the services count them; below a root, the replies known of."""
    next_offset: int | None = None
    """Where further comments of the first level begin; None when there are none."""
    root: str = ""
    """Id of the comment that was asked for instead of a story."""

    @property
    def shown(self) -> int:
        """Comments in `comments`, on all levels, without the root."""
        return sum(1 for _ in walk(self.comments)) - bool(self.root)


@dataclass(frozen=True)
class _Found:
    """What the two services said of one item."""

    item: FirebaseItem | ToolError | None
    tree: AlgoliaItem | ToolError

    @property
    def kind(self) -> str:
        """`story`, `comment` and the like; empty when neither answers."""
        kinds = [one.type or "story" for one in (self.item, self.tree) if isinstance(one, FirebaseItem | AlgoliaItem)]
        return kinds[0] if kinds else ""

    @property
    def above(self) -> int | None:
        """The item it stands under; the story itself where that is known."""
        if isinstance(self.tree, AlgoliaItem) and self.tree.story_id not in {None, self.tree.id}:
            return self.tree.story_id
        if isinstance(self.item, FirebaseItem):
            return self.item.parent
        return self.tree.parent_id if isinstance(self.tree, AlgoliaItem) else None

    @property
    def kids(self) -> Sequence[int]:
        """Direct replies in rank order; only Firebase has them."""
        return self.item.kids if isinstance(self.item, FirebaseItem) else ()

    @property
    def comment(self) -> Comment | None:
        """As a comment without replies."""
        if isinstance(self.item, FirebaseItem):
            return replace(self.item.comment(), more=0)
        return replace(self.tree.comment(), replies=()) if isinstance(self.tree, AlgoliaItem) else None


class HnThreads:
    """A reader of threads."""

    def __init__(self, services: HnServices) -> None:
        self._services = services

    async def read(self, item_id: int, part: CommentRange) -> Thread:
        """A story's thread, or what stands under one comment, as far as asked for.

        Raises:
            ToolError: There is no such item, or no service answers.
        """
        found = await self._found(item_id)
        if found.kind == "pollopt":
            above = f" It belongs to poll {found.above}: ask for that one." if found.above else ""
            raise RefusedCallError(f"Item {item_id} is an option of a poll, not a story.{above}")
        if found.kind == "comment":
            return await self._below(found, part)
        story = await self._story(item_id, found)
        page, total = await self._comments(found, part)
        return Thread(story, page.comments, max(story.comments or 0, total), page.next_offset)

    async def _below(self, found: _Found, part: CommentRange) -> Thread:
        """A comment with its replies, under the title of its story."""
        root = found.comment
        assert root  # a comment's kind is known from one of the two answers
        story, (page, total) = await self._story_above(found), await self._comments(found, part)
        return Thread(story, (replace(root, replies=page.comments),), total, page.next_offset, root.id)

    async def _found(self, item_id: int) -> _Found:
        async with asyncio.TaskGroup() as group:
            item = group.create_task(self._services.item_or_failure(item_id))
            tree = group.create_task(self._services.tree_or_failure(item_id))
        return _Found(item.result(), tree.result())

    async def _comments(self, found: _Found, part: CommentRange) -> tuple[CommentPage, int]:
        """What is shown, and how many comments there are as far as is known."""
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
            raise NoSuchThingError(f"Hacker News has no item {story_id}. Take ids from get_hn_stories or search_hn.")
        raise ServiceDownError(f"{found.item.message} {found.tree.message}") from found.item

    async def _story_above(self, found: _Found) -> Story:
        """The story a comment stands under; a nameless one when the way up is lost."""
        above = found.above
        for _ in range(MAX_LEVELS):
            if above is None:
                break
            item = await self._services.item_or_failure(above)
            if not isinstance(item, FirebaseItem):
                tree = await self._services.tree_or_failure(above)
                return tree.story() if isinstance(tree, AlgoliaItem) else Story(above, "(story unknown)")
            if item.type in STORY_TYPES:
                return item.story()
            above = item.parent
        return Story(above or 0, "(story unknown)")

    async def _poll_options(self, item: FirebaseItem, tree: AlgoliaItem | ToolError) -> Sequence[str]:
        """A poll's options: Algolia's tree has them, or Firebase as items of their own."""
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
        """Comments item by item from Firebase, the most prominent first, until the budget is spent."""
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
