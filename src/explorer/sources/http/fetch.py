"""Fetches from the web: guarded, bounded in bytes and seconds, polite, and each URL only once at a time.

Redirects are followed here and not by the client, so that the guard and the host's politeness apply to each address.
A failure becomes a `ToolError` that says what happened. An answer with an error status is an answer, which the caller
judges. The log gets the host of a fetch, never the rest of an address, and nothing of a page.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Self
from urllib.parse import urlsplit

import httpx2
from loguru import logger

from explorer.network.client import GuardedClient
from explorer.network.exchange import Attempt, DamagedAnswerError, ExchangeError, HttpRequest, with_retries
from explorer.network.guard import Guard
from explorer.schema.errors import ToolError
from explorer.sources.http.cache import CacheKey, DiskCache, ResponseCache
from explorer.sources.http.caller import Caller
from explorer.sources.http.fetched import PAGE_LIMITS, Fetched, FetchLimits, keep_s
from explorer.sources.http.robots import Politeness, Robots, TooManyRedirectsError
from explorer.text.rendering import own


def logged(fetched: Fetched) -> Fetched:
    """Log an answer and return it; one with an error status is a warning."""
    way = ", from the cache" if fetched.from_cache else ""
    level = "WARNING" if fetched.problem else "INFO"
    host = urlsplit(fetched.url).hostname
    logger.log(level, "source fetched: {} status {}, {} bytes{}", host, fetched.status, len(fetched.body), way)
    return fetched


def logged_failure(host: str, error: ToolError) -> ToolError:
    """Log a failure and return the error. Its message is not logged, because it has the whole address."""
    logger.warning("source not fetched: {} ({})", host, type(error.__cause__ or error).__name__)
    return error


MAX_REDIRECTS = 5
IO_TIMEOUT_S = 15.0
RETRYABLE = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True)
class FetchPolicy:
    """How a `Web` treats hosts, and what it keeps on disk."""

    politeness: Politeness | None = None
    """None: the usual politeness on the real network, and none with a replaced network."""
    disk: DiskCache | None = None
    """None: answers are kept in memory only."""
    caller: Caller = field(default_factory=Caller)
    """The user's network and name."""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


@dataclass(frozen=True)
class _FetchRequest:
    """A request to fetch."""

    url: httpx2.URL
    accept: str
    limits: FetchLimits
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def headers_for(self, url: httpx2.URL) -> dict[str, str]:
        """Return the caller's headers for the origin that they are for, and none for others."""
        is_meant = (url.scheme, url.netloc) == (self.url.scheme, self.url.netloc)
        return {"Accept": self.accept, **(self.headers if is_meant else {})}


_Key = tuple[str, str, tuple[tuple[str, str], ...]]


class Web:
    """Fetches pages and public APIs for a run.

    `transport` replaces the network (nothing is resolved then, but URLs are still judged as written); `pause`
    waits between attempts.
    """

    def __init__(
        self,
        guard: Guard,
        *,
        transport: httpx2.AsyncBaseTransport | None = None,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        fetch_policy: FetchPolicy | None = None,
    ) -> None:
        self.guard = guard
        self._fetch_policy = fetch_policy or FetchPolicy()
        caller = self._fetch_policy.caller
        self._client = GuardedClient(
            guard, caller.user_agent, caller.network, seconds=IO_TIMEOUT_S, transport=transport
        )
        self._pause = pause
        self._clock = clock
        usual = None if transport else Politeness(clock=clock, pause=pause)
        self._politeness = self._fetch_policy.politeness or usual
        self._robots = Robots(lambda url, limits: self.get(url, limits=limits), clock)
        self._cache = ResponseCache[Fetched](clock)
        self._failures: dict[_Key, tuple[float, ToolError]] = {}
        self._locks: dict[_Key, asyncio.Lock] = {}
        self._gates: dict[tuple[str, int], asyncio.Semaphore] = {}

    async def __aenter__(self) -> Self:
        """Return the open fetcher."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all connections."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def get(
        self,
        url: str,
        *,
        accept: str = "*/*",
        limits: FetchLimits = PAGE_LIMITS,
        headers: Mapping[str, str] | None = None,
    ) -> Fetched:
        """Fetch a URL, or give the answer fetched a short while ago.

        Callers who ask for a URL that is being fetched wait for that answer, and share its failure. `headers`, such
        as a key, are sent to the URL's own origin only, and an answer to them is not kept on disk.

        Raises:
            ToolError: No answer came: refused by the guard or by the site's robots.txt, not reachable, too slow,
                too many redirects, damaged.
        """
        order = _FetchRequest(self.guard.check_url(url.strip()).copy_with(fragment=None), accept, limits, headers or {})
        key = (str(order.url), accept, tuple(sorted(order.headers.items())))
        asked = self._clock()
        async with self._locks.setdefault(key, asyncio.Lock()):
            kept = self._cache.get(key)
            if kept and kept.serves(limits):
                return logged(kept)
            failed_at, failure = self._failures.get(key, (-1.0, None))
            if failure and failed_at >= asked:
                raise type(failure)(failure.message, hint=failure.hint) from failure
            try:
                fetched = await self._brought(order)
            except ToolError as error:
                self._failures[key] = (self._clock(), logged_failure(order.url.host, error))
                raise
            if not fetched.problem:
                self._cache.put(key, replace(fetched, from_cache=True), size=len(fetched.body))
            return logged(fetched)

    async def _brought(self, order: _FetchRequest) -> Fetched:
        """Return the answer from the workspace's cache, else from the network."""
        disk = self._fetch_policy.disk
        if disk is None or order.headers:
            return await self._persistently(order)
        key = CacheKey(str(order.url), order.accept, self._is_opened(order.url))
        if kept := await disk.get(key, order.limits):
            return kept
        if order.limits.is_service:  # many and small: two processes that ask the same do no harm
            return await self._kept(disk, key, order)
        async with disk.alone(key):
            return await disk.get(key, order.limits) or await self._kept(disk, key, order)

    async def _kept(self, disk: DiskCache, key: CacheKey, order: _FetchRequest) -> Fetched:
        """Fetch and keep the answer, unless a redirect led from a public host to one that the user allowed."""
        fetched = await self._persistently(order)
        if not fetched.problem and self._is_opened(httpx2.URL(fetched.url)) == key.is_opened:
            await disk.put(key, fetched)
        return fetched

    async def _persistently(self, order: _FetchRequest) -> Fetched:
        """Fetch, and repeat where that can help."""
        allowance = _Allowance(order.limits.seconds)
        return await with_retries(lambda: self._attempt(order, allowance), order.limits.retries, self._pause)

    async def _attempt(self, order: _FetchRequest, allowance: "_Allowance") -> Attempt[Fetched]:
        url, seconds = order.url, order.limits.seconds
        try:
            fetched = await self._following(order, allowance)
        except DamagedAnswerError as error:
            raise ToolError.of(
                "{url} sent a damaged answer ({error}). Use another source.", url=str(url), error=error
            ) from error
        except ExchangeError as error:
            failure = _unreachable(url, error)
            failure.__cause__ = error
            return Attempt(failure, may_repeat=True)
        except TimeoutError as error:
            raise ToolError.of(
                "{url} did not answer completely within {seconds:g} s. Use another source.",
                url=str(url),
                seconds=seconds,
            ) from error
        return Attempt(fetched, fetched.status in RETRYABLE, fetched.retry_after_s)

    async def _following(self, order: _FetchRequest, allowance: "_Allowance") -> Fetched:
        """Make one attempt, and follow redirects."""
        target = order.url
        for _ in range(MAX_REDIRECTS + 1):
            async with await self._turn(target, order.limits), allowance.spending():
                answer = await self._once(target, order)
            if isinstance(answer, Fetched):
                return answer
            target = self.guard.check_url(answer)
        raise TooManyRedirectsError.of(
            "{url} redirects more than {max_redirects} times. Use another source.",
            url=str(order.url),
            max_redirects=MAX_REDIRECTS,
        )

    async def _once(self, url: httpx2.URL, order: _FetchRequest) -> Fetched | str:
        """Send one request, and return the answer or the address that it redirects to."""
        limits = order.limits
        answer = await self._client.send(
            HttpRequest("GET", str(url), order.headers_for(url), body_bytes=limits.body_bytes)
        )
        if answer.redirect:
            return _joined(url, answer.redirect)
        if answer.unread_encoding:
            raise ToolError.of(
                "{url} answered in an encoding that is not read ({unread_encoding}).",
                url=str(url),
                unread_encoding=answer.unread_encoding[:50],
            )
        return Fetched(
            url=str(url),
            status=answer.status,
            content_type=answer.headers.get("content-type", ""),
            body=answer.body,
            is_truncated=answer.is_truncated,
            retry_after_s=answer.retry_after_s,
            fetched_at=self._fetch_policy.now(),
            keep_s=keep_s(answer.headers.get("cache-control", ""), limits),
        )

    async def _turn(self, url: httpx2.URL, limits: FetchLimits) -> AbstractAsyncContextManager[object]:
        """Wait for this host: politely for public pages, with a limit of parallel requests alone for all else."""
        politeness = self._politeness
        if politeness is None or limits.is_service:
            return self._gate(url, limits)
        if self._is_opened(url) and not politeness.spares_all_hosts:
            return self._gate(url, limits)
        return politeness.turn(url.host, await self._robots.delay_s(url))

    def _gate(self, url: httpx2.URL, limits: FetchLimits) -> asyncio.Semaphore:
        key = (url.netloc.decode("ascii"), limits.in_flight)
        return self._gates.setdefault(key, asyncio.Semaphore(limits.in_flight))

    def _is_opened(self, url: httpx2.URL) -> bool:
        return self.guard.is_allowed_host(url.host)


class _Allowance:
    """The seconds that remain of one fetch."""

    def __init__(self, seconds: float) -> None:
        self._left_s = seconds

    @asynccontextmanager
    async def spending(self) -> AsyncGenerator[None]:
        """Count the seconds inside; raise TimeoutError when they are used up."""
        started = time.monotonic()
        try:
            async with asyncio.timeout(max(self._left_s, 0.0)):
                yield
        finally:
            self._left_s -= time.monotonic() - started


def _joined(url: httpx2.URL, location: str) -> str:
    try:
        return str(url.join(location))
    except (httpx2.InvalidURL, ValueError) as error:
        raise ToolError.of(
            "{url} redirects to something that is not a URL. Use another source.", url=str(url)
        ) from error


def _unreachable(url: httpx2.URL, error: ExchangeError) -> ToolError:
    words = own("no answer in time" if error.is_timeout else "the connection failed")
    detail = error if str(error) else error.kind
    return ToolError.of(
        "Could not reach {url}: {words} ({detail}). Try another source, or this one later.",
        url=str(url),
        words=words,
        detail=detail,
    )
