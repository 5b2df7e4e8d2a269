"""Web search: the port, and Tavily behind it, with a key or keyless."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Protocol, Self

from explorer.errors import ToolError
from explorer.evidence import canonical_url
from explorer.messages import JsonObject
from explorer.net.tavily_session import (
    MAX_RETRY_AFTER_S,
    TOO_MANY,
    RefusedError,
    TavilyAnswer,
    TavilyResult,
    TavilySession,
    UnreachableError,
)

TIMEOUT_S = 60.0
RETRIES = 2
FIRST_WAIT_S = 0.5
OTHER_TOOLS = "Go on with search_hn, get_hn_stories and read_webpage."


@dataclass(frozen=True)
class WebQuery:
    """What to search for."""

    words: str
    max_results: int = 8
    depth: str = "basic"
    """`basic` or `advanced`."""
    include_domains: Sequence[str] = ()
    exclude_domains: Sequence[str] = ()
    since: str = ""
    """ISO date; nothing older."""


@dataclass(frozen=True)
class WebHit:
    """One result, in the same shape for every engine."""

    title: str
    url: str
    snippet: str
    engine: str
    rank: int
    published: str = ""
    """As the engine tells it; often empty."""
    score: float | None = None


class WebSearch(Protocol):
    """The port to a search engine."""

    @property
    def name(self) -> str:
        """What the results are labelled with."""
        ...

    async def search(self, query: WebQuery) -> list[WebHit]:
        """Search once.

        Raises:
            ToolError: No results came; the text says why and what else to try.
        """
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


class TavilySearch:
    """Tavily through its SDK; without a key in its keyless mode, which has a cap of its own."""

    def __init__(
        self,
        key: str,
        url: str,
        *,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._key = key
        self._url = url.rstrip("/")
        self._pause = pause
        self._timeout_s = timeout_s
        self._session: TavilySession | None = None

    @property
    def name(self) -> str:
        """`tavily`, or `tavily-keyless`, so that results tell how they were come by."""
        return "tavily" if self._key else "tavily-keyless"

    async def __aenter__(self) -> Self:
        """Open; nothing is sent before the first search."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session:
            await self._session.aclose()
            self._session = None

    async def search(self, query: WebQuery) -> list[WebHit]:
        """Search; broken connections, 5xx and short waits are tried again.

        Raises:
            ToolError: No results came.
        """
        for attempt in range(RETRIES + 1):
            try:
                return self._hits(await self._opened().ask(query.words, _parameters(query), self._timeout_s))
            except RefusedError as error:
                if attempt == RETRIES or not error.is_retryable:
                    raise self._refused(error) from error
                wait = error.retry_after_s
            except UnreachableError as error:
                if attempt == RETRIES or not error.is_retryable:
                    raise ToolError(f"Web search ({self.name}) {error}. {OTHER_TOOLS}") from error
                wait = None
            spread = random.uniform(0, FIRST_WAIT_S * 2**attempt)  # noqa: S311 - not a secret
            await self._pause(spread if wait is None else min(wait, MAX_RETRY_AFTER_S))
        raise AssertionError("the last attempt returns or raises")

    def _opened(self) -> TavilySession:
        if self._session is None:
            self._session = TavilySession(self._key, self._url)
        return self._session

    def _hits(self, answer: TavilyAnswer) -> list[WebHit]:
        """Results of ours, one per address."""
        seen: dict[str, TavilyResult] = {}
        for result in answer.results:
            if key := _key(result.url):
                seen.setdefault(key, result)
        return [
            WebHit(
                title=" ".join((result.title or result.url).split()),
                url=result.url,
                snippet=(result.content or "").strip(),
                engine=self.name,
                rank=rank,
                published=_date(result.published_date or ""),
                score=result.score,
            )
            for rank, result in enumerate(seen.values(), start=1)
        ]

    def _refused(self, error: RefusedError) -> ToolError:
        said = f" It says: {error.words}" if error.words else ""
        again = f" It opens again in {error.retry_after_s:g} s." if error.retry_after_s else ""
        if error.status == TOO_MANY and not self._key:
            window = f" ({error.window} window)" if error.window else ""
            return ToolError(
                f"Web search ({self.name}) is over its keyless cap{window}.{again}{said} {OTHER_TOOLS}",
                hint="set TAVILY_API_KEY (a free key has 1,000 credits a month)",
            )
        known = {
            400: "did not accept the query: change its words or filters",
            401: "did not accept its key (TAVILY_API_KEY)",
            403: "refused access",
            429: "is over its rate limit",
            432: "is over its plan's limit",
            433: "is over its pay-as-you-go limit",
        }
        what = known.get(error.status, "failed")
        return ToolError(f"Web search ({self.name}) {what} (status {error.status}).{again}{said} {OTHER_TOOLS}")


def _parameters(query: WebQuery) -> JsonObject:
    """The fields of Tavily's own interface; absent ones are left to its defaults."""
    parameters: JsonObject = {
        "search_depth": "advanced" if query.depth == "advanced" else "basic",
        "max_results": query.max_results,
        "include_domains": list(query.include_domains),
        "exclude_domains": list(query.exclude_domains),
        "start_date": query.since,
    }
    return {name: value for name, value in parameters.items() if value}


def _key(url: str) -> str:
    """The form under which equal addresses are equal; empty for what is no web address."""
    try:
        return canonical_url(url) if url.startswith(("http://", "https://")) else ""
    except ValueError:
        return ""


def _date(text: str) -> str:
    """An ISO date of the mail-like dates that news results carry; other forms stay as they are."""
    try:
        return parsedate_to_datetime(text).date().isoformat()
    except ValueError:
        return text
