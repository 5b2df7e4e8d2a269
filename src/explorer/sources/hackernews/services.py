"""Hacker News' two public services: Firebase, item by item and fresh, and Algolia, whole trees and search."""

import asyncio
from collections.abc import Sequence
from typing import TypeVar

from pydantic import TypeAdapter

from explorer.schema.errors import ToolError
from explorer.sources.hackernews.items import AlgoliaItem, FirebaseItem
from explorer.sources.http.fetch import Web
from explorer.sources.http.fetched import API_LIMITS, Fetched
from explorer.sources.http.wire import parse

API = "Hacker News' API"
SEARCH = "Hacker News search"
ITEM = TypeAdapter[FirebaseItem | None](FirebaseItem | None)

T = TypeVar("T")


class ServiceDownError(ToolError):
    """Hacker News does not answer, whatever is asked."""


class HnServices:
    """Both services, as far as they are more than one address; `api_url` is Firebase's, `search_url` Algolia's."""

    def __init__(self, web: Web, api_url: str, search_url: str) -> None:
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
