"""The port of sites that are searched through their own services, such as arXiv's or GitHub's.

Each is a file next to this one, registered as a site: the tool `search_site` offers all that a run has.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import LiteralString, TypeVar

from loguru import logger
from pydantic import BaseModel

from explorer.schema.errors import ToolError
from explorer.sources.http.api_client import ApiClient, CallError, ServiceRefusedError, parsed
from explorer.sources.page import WebPage
from explorer.sources.search.port import WebAnswer, WebHit, WebQuery
from explorer.text.rendering import code, own

T = TypeVar("T", bound=BaseModel)
MAX_KEPT = 200
REFUSALS: Mapping[int, LiteralString] = {
    400: "did not accept the query: change it",
    401: "did not accept its key",
    403: "refused access, or its limit for callers without a key is used up",
    404: "has no such thing",
    409: "refused the query",
    422: "did not accept the query: change it",
    429: "asks to send fewer requests",
}


class SearchableSite(ABC):
    """A site with a search of its own; the same question is asked once a run.

    `call` sends requests to its service.
    """

    name: str
    """The value of `site` in `search_site`."""
    finds: LiteralString
    """What its search finds, for models: a few words."""
    remedy: LiteralString = ""
    """What the user can set to raise its limits."""

    def __init__(self, call: ApiClient) -> None:
        self._call = call
        self._kept: dict[WebQuery, WebAnswer] = {}
        self._locks: dict[WebQuery, asyncio.Lock] = {}

    async def search(self, query: WebQuery) -> WebAnswer:
        """Search once, or return what was found before.

        Raises:
            ToolError: The service gave no answer; the text says why, and what else to try.
        """
        async with self._locks.setdefault(query, asyncio.Lock()):
            if query not in self._kept:
                if len(self._kept) >= MAX_KEPT:
                    del self._kept[next(iter(self._kept))]
                self._kept[query] = await self._found(query)
            return self._kept[query]

    @abstractmethod
    async def _found(self, query: WebQuery) -> WebAnswer:
        """Ask the service."""

    async def read(self, url: str) -> WebPage | None:
        """Return what is at an address of the site; None when it is read like any other page.

        A page that the service does not give, for whatever reason, is read like any other.
        """
        try:
            return await self._item(url)
        except ToolError as error:
            logger.warning("{}'s service did not give a page, which is read directly: {}", self.name, error)
            return None

    async def _item(self, url: str) -> WebPage | None:
        """Ask the service for the item at an address; None where it is no item."""
        del url
        return None

    async def _body(self, path: str, parameters: Mapping[str, str], call: ApiClient | None = None) -> bytes:
        """Return the body of an answer.

        Raises:
            ToolError: There is none.
        """
        try:
            return await (call or self._call).get(path, {name: value for name, value in parameters.items() if value})
        except CallError as error:
            raise self._failure(error) from error

    async def _asked(self, kind: type[T], path: str, parameters: Mapping[str, str], call: ApiClient | None = None) -> T:
        """Return an answer in JSON as a value.

        Raises:
            ToolError: There is none, or it is something else.
        """
        try:
            return parsed(kind, await self._body(path, parameters, call))
        except CallError as error:
            raise self._failure(error) from error

    def _failure(self, error: CallError) -> ToolError:
        if not isinstance(error, ServiceRefusedError):
            return self.refusal(str(error))
        why = REFUSALS.get(error.status, "failed")
        return self.refusal(own("{why} (status {status})", why=own(why), status=error.status), error.stated)

    def refusal(self, problem: str, stated: str = "") -> ToolError:
        """Return a failure as text for a model; `problem` is a clause with the service as its subject."""
        theirs = own(" It says: {words}.", words=stated.rstrip(".")) if stated else own("")
        words = own(
            "{site} {problem}.{theirs} Try web_search, or another site.",
            site=code(self.name),
            problem=problem,
            theirs=theirs,
        )
        return ToolError(words, hint=self.remedy)

    def answer(self, hits: Iterable[WebHit], notes: Sequence[str] = ()) -> WebAnswer:
        """Return hits, the best first, as this site's answer."""
        ranked = (replace(hit, engine=self.name, rank=rank) for rank, hit in enumerate(hits, start=1))
        return WebAnswer(self.name, tuple(ranked), tuple(notes))

    async def aclose(self) -> None:
        """Close all connections."""
        await self._call.aclose()
