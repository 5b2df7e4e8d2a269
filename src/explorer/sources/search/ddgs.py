"""Searches the pages of public search engines with the package `ddgs`: no key, best effort.

The package has its own HTTP client, which imitates browsers and does not use the guard. It gets only words, and
contacts the engines named here but no address of a result.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Protocol

from pydantic import TypeAdapter, ValidationError

from explorer.schema.network import Network
from explorer.schema.setting import NoSettings
from explorer.sources.http.wire import WireModel
from explorer.sources.search.port import (
    LONG_REST_S,
    SHORT_REST_S,
    SearchAccess,
    SearchEngine,
    SearchFailedError,
    WebAnswer,
    WebHit,
    WebQuery,
    WebSearch,
    Window,
    answered,
    window,
    with_sites,
)
from explorer.text.rendering import own
from explorer.text.sanitize import single_line

ENGINES = ("duckduckgo", "brave", "mojeek", "startpage", "yahoo")
"""The engines that are asked, without the encyclopedias, which the package would put first."""
ADDRESS = "https://html.duckduckgo.com/html/"
"""The address of the first engine; its entry in NO_PROXY applies to all engines."""
IGNORE_DATES = frozenset({"mojeek"})
TIMELIMIT: dict[Window, str] = {"day": "d", "week": "w", "month": "m", "year": "y"}
REQUEST_S = 8
SEARCH_S = 45.0
NOTHING = "No results found"


class DdgsResult(WireModel):
    """A result of the package."""

    title: str = ""
    href: str = ""
    body: str = ""


RESULTS: TypeAdapter[list[DdgsResult]] = TypeAdapter(list[DdgsResult])


class TextSearch(Protocol):
    """The part of `ddgs.DDGS` that is used."""

    def text(self, query: str, *, timelimit: str | None, max_results: int, backend: str) -> Sequence[object]:
        """Search, blocking."""
        ...


class DdgsSearch(WebSearch):
    """Searches with the package `ddgs`; `make` replaces its class."""

    name = "ddgs"

    def __init__(
        self,
        *,
        make: Callable[[], TextSearch] | None = None,
        network: Network | None = None,
        seconds: float = SEARCH_S,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._make = make
        self._network = network or Network()
        self._seconds = seconds
        self._now = now

    async def search(self, query: WebQuery) -> WebAnswer:
        """Search in a thread; the results have no dates.

        Raises:
            SearchFailedError: No answer came.
        """
        try:
            async with asyncio.timeout(self._seconds):
                found = await asyncio.to_thread(self._found, query)
        except TimeoutError as error:
            raise SearchFailedError(
                self.name, own("did not answer within {seconds:g} s", seconds=self._seconds)
            ) from error
        return answered(query, self.name, (WebHit(one.title or one.href, one.href, one.body) for one in found))

    def _found(self, query: WebQuery) -> list[DdgsResult]:
        from ddgs.exceptions import DDGSException, RatelimitException, TimeoutException  # noqa: PLC0415 - an extra

        from explorer.network.client_options import authorities_file  # noqa: PLC0415 - the network's libraries are slow

        reach = window(query.since, self._now())
        engines = [name for name in ENGINES if not (query.since and name in IGNORE_DATES)]
        try:
            with authorities_file(self._network) as authorities:
                package = self._make() if self._make else _installed(self._network, authorities)
                answer = package.text(
                    with_sites(query),
                    timelimit=TIMELIMIT[reach] if reach else None,
                    max_results=query.max_results,
                    backend=",".join(engines),
                )
            return RESULTS.validate_python(answer)
        except RatelimitException as error:
            raise SearchFailedError(self.name, own("is over its rate limit"), rest_s=LONG_REST_S) from error
        except TimeoutException as error:
            raise SearchFailedError(self.name, own("did not answer in time")) from error
        except DDGSException as error:
            if NOTHING in str(error):
                return []
            words = single_line(str(error), 200)
            raise SearchFailedError(
                self.name, own("got nothing from its engines"), stated=words, rest_s=SHORT_REST_S
            ) from error
        except ValidationError as error:
            raise SearchFailedError(self.name, own("sent something unexpected")) from error


def _installed(network: Network, authorities: str | None) -> TextSearch:
    """Make the package's class; it has one proxy for all its engines.

    Args:
        network: Names the proxy.
        authorities: A file of certificates in place of the system's.
    """
    from ddgs import DDGS  # noqa: PLC0415 # pyright: ignore[reportUnknownVariableType] - an extra; half typed

    proxy = network.proxy_for(ADDRESS)
    return DDGS(proxy=proxy and proxy.url.get_secret_value(), timeout=REQUEST_S, verify=authorities or True)


def _open(_settings: NoSettings, access: SearchAccess) -> WebSearch:
    return DdgsSearch(network=access.caller.network)


ENGINE = SearchEngine("ddgs", NoSettings, _open, package="ddgs")
