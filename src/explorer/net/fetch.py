"""Fetching from the web: guarded, bounded in bytes and seconds, polite, and each URL only once at a time.

Redirects are followed by hand, so that every hop passes the guard. Whatever goes wrong becomes a `ToolError` that
tells the model what happened; an answer with an error status is an answer, and the caller judges it.
"""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import TracebackType
from typing import Self

import httpx2

from explorer.errors import ToolError
from explorer.net.cache import ResponseCache
from explorer.net.guard import Guard
from explorer.net.transport import GuardedTransport

USER_AGENT = "explorer/0.1"
MAX_REDIRECTS = 5
MAX_RETRY_AFTER_S = 5.0
FIRST_WAIT_S = 0.5
IO_TIMEOUT_S = 15.0
REDIRECTS = frozenset({301, 302, 303, 307, 308})
RETRYABLE = frozenset({429, 500, 502, 503, 504})
DECODABLE = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})


@dataclass(frozen=True)
class FetchLimits:
    """What one fetch may use."""

    seconds: float = 30.0
    """Of work: connecting, redirects and retries together, without the wait for a turn at the host."""
    body_bytes: int = 5_000_000
    """After decompression; what lies beyond is left out."""
    in_flight: int = 2
    """Requests to the same host at a time."""
    retries: int = 2
    """Further attempts after a broken connection, 429 or 5xx."""


PAGE_LIMITS = FetchLimits()
API_LIMITS = FetchLimits(seconds=20.0, body_bytes=32_000_000, in_flight=16)


@dataclass(frozen=True)
class Fetched:
    """An answer, whatever its status."""

    url: str
    """After redirects."""
    status: int
    content_type: str
    """As the server said it, parameters included; may be empty."""
    body: bytes
    is_truncated: bool = False
    """Whether the byte limit cut the body."""
    retry_after_s: float | None = None
    """Seconds the server asked to wait, if it did."""

    @property
    def problem(self) -> str:
        """What the status says went wrong, in words; empty below 400."""
        if self.status < httpx2.codes.BAD_REQUEST:
            return ""
        if self.status in STATUS_WORDS:
            return f"{STATUS_WORDS[self.status]} (status {self.status})"
        kind = "the server failed" if self.status >= httpx2.codes.INTERNAL_SERVER_ERROR else "it was refused"
        return f"{kind} (status {self.status})"


STATUS_WORDS = {
    401: "it asks for a login",
    402: "it asks for payment",
    403: "access is refused",
    404: "there is no such page",
    410: "the page is gone",
    429: "it asks to send fewer requests",
    451: "it is blocked for legal reasons",
}


class Web:
    """The one door to the network for pages and public APIs; opened once a run.

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
    ) -> None:
        self.guard = guard
        self._client = httpx2.AsyncClient(
            transport=transport or GuardedTransport(guard),
            trust_env=False,
            follow_redirects=False,
            timeout=httpx2.Timeout(IO_TIMEOUT_S, pool=None),
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "gzip, deflate"},
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        )
        self._pause = pause
        self._clock = clock
        self._cache = ResponseCache[Fetched](clock)
        self._failures: dict[tuple[str, str], tuple[float, ToolError]] = {}
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}
        self._gates: dict[tuple[str, int], asyncio.Semaphore] = {}

    async def __aenter__(self) -> Self:
        """Open."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all connections."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def get(self, url: str, *, accept: str = "*/*", limits: FetchLimits = PAGE_LIMITS) -> Fetched:
        """Fetch a URL, or give the answer fetched a short while ago.

        Callers who ask for a URL that is being fetched wait for that answer, and share its failure.

        Raises:
            ToolError: No answer came: refused by the guard, not reachable, too slow, too many redirects, damaged.
        """
        key = (url, accept)
        asked = self._clock()
        async with self._locks.setdefault(key, asyncio.Lock()):
            if kept := self._cache.get(key):
                return kept
            failed_at, failure = self._failures.get(key, (-1.0, None))
            if failure and failed_at >= asked:
                raise ToolError(failure.message, hint=failure.hint) from failure
            try:
                fetched = await self._persistently(url, accept, limits)
            except ToolError as error:
                self._failures[key] = (self._clock(), error)
                raise
            if not fetched.problem:
                self._cache.put(key, fetched, size=len(fetched.body))
            return fetched

    async def _persistently(self, url: str, accept: str, limits: FetchLimits) -> Fetched:
        """Try, and try again where that can help."""
        allowance = _Allowance(limits.seconds)
        for attempt in range(limits.retries + 1):
            is_last = attempt == limits.retries
            try:
                fetched = await self._following(url, accept, limits, allowance)
            except httpx2.TransportError as error:
                if is_last:
                    raise _unreachable(url, error) from error
                wait = None
            except TimeoutError as error:
                raise ToolError(
                    f"{url} did not answer completely within {limits.seconds:g} s. Use another source."
                ) from error
            except httpx2.RequestError as error:
                raise ToolError(f"{url} sent a damaged answer ({error}). Use another source.") from error
            else:
                wait = fetched.retry_after_s
                is_hopeless = wait is not None and wait > MAX_RETRY_AFTER_S
                if is_last or is_hopeless or fetched.status not in RETRYABLE:
                    return fetched
            await self._pause(_wait(attempt) if wait is None else wait)
        raise AssertionError("the last attempt returns or raises")

    async def _following(self, url: str, accept: str, limits: FetchLimits, allowance: "_Allowance") -> Fetched:
        """One attempt, redirects followed."""
        target = self.guard.check_url(url.strip())
        for _ in range(MAX_REDIRECTS + 1):
            async with self._gate(target, limits), allowance.spending():
                answer = await self._once(target, accept, limits.body_bytes)
            if isinstance(answer, Fetched):
                return answer
            target = self.guard.check_url(answer)
        raise ToolError(f"{url} redirects more than {MAX_REDIRECTS} times. Use another source.")

    async def _once(self, url: httpx2.URL, accept: str, body_bytes: int) -> Fetched | str:
        """One request: the answer, or where it redirects to."""
        async with self._client.stream("GET", url, headers={"Accept": accept}) as response:
            location = response.headers.get("location", "")
            if response.status_code in REDIRECTS and location:
                return _joined(url, location)
            encoding = response.headers.get("content-encoding", "").strip().lower()
            if encoding not in DECODABLE:
                raise ToolError(f"{url} answered in an encoding that is not read ({encoding[:50]}).")
            body, is_truncated = await _read(response, body_bytes)
            return Fetched(
                url=str(url),
                status=response.status_code,
                content_type=response.headers.get("content-type", ""),
                body=body,
                is_truncated=is_truncated,
                retry_after_s=_retry_after(response.headers.get("retry-after", "")),
            )

    def _gate(self, url: httpx2.URL, limits: FetchLimits) -> asyncio.Semaphore:
        key = (url.netloc.decode("ascii"), limits.in_flight)
        return self._gates.setdefault(key, asyncio.Semaphore(limits.in_flight))


class _Allowance:
    """The seconds of work left to one fetch."""

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


async def _read(response: httpx2.Response, limit: int) -> tuple[bytes, bool]:
    """The decompressed body up to a limit; it arrives in pieces of at most 1 MiB, also out of a gzip bomb."""
    body = bytearray()
    async with aclosing(response.aiter_bytes()) as parts:
        async for part in parts:
            body += part
            if len(body) > limit:
                return bytes(body[:limit]), True
    return bytes(body), False


def _joined(url: httpx2.URL, location: str) -> str:
    try:
        return str(url.join(location))
    except (httpx2.InvalidURL, ValueError) as error:
        raise ToolError(f"{url} redirects to something that is no URL. Use another source.") from error


def _wait(attempt: int) -> float:
    """Full jitter: many callers that failed together must not come back together."""
    return random.uniform(0, FIRST_WAIT_S * 2**attempt)  # noqa: S311 - not a secret


def _retry_after(value: str) -> float | None:
    """Seconds from a Retry-After header in either of its two forms."""
    if not value or value.isdecimal():
        return float(value) if value else None
    try:
        return max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except ValueError:
        return None


def _unreachable(url: str, error: httpx2.TransportError) -> ToolError:
    words = "no answer in time" if isinstance(error, httpx2.TimeoutException) else "the connection failed"
    detail = f" ({error})" if str(error) else f" ({type(error).__name__})"
    return ToolError(f"Could not reach {url}: {words}{detail}. Try another source, or this one later.")
