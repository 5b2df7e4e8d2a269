"""The one HTTP client of all sources: judged addresses, bounded answers, no cookies, one retry loop.

Redirects are not followed here: a caller that follows them has each address judged, and a key would travel along.

Callers differ in what an answer or a failure means to them; how a request is sent and an answer read is here.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Generic, TypeVar

import httpx2

from explorer.network.guard import Guard
from explorer.schema.network import Network
from explorer.sources.http.headers import retry_after_s
from explorer.sources.http.transport import GuardedTransport

MAX_RETRY_AFTER_S = 5.0
"""A server that asks for a longer wait is not asked again."""
FIRST_WAIT_S = 0.5
REDIRECTS = frozenset({301, 302, 303, 307, 308})
DECODABLE = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})

Pause = Callable[[float], Awaitable[object]]
"""Waits between attempts."""
T = TypeVar("T")


@dataclass(frozen=True)
class HttpRequest:
    """One request, complete."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """They may hold a key."""
    content: bytes | None = field(default=None, repr=False)
    body_bytes: int = 5_000_000
    """The most that is read of an answer, after decompression."""
    error_bytes: int | None = None
    """The same for answers with an error status, where that is less."""


@dataclass(frozen=True)
class HttpResponse:
    """One answer, read up to its bound."""

    status: int
    headers: httpx2.Headers
    body: bytes = b""
    """Empty for a redirect and for an encoding that is not read."""
    is_truncated: bool = False
    """Whether the bound cut the body."""

    @property
    def redirect(self) -> str:
        """Where a redirect leads; empty for every other answer."""
        return self.headers.get("location", "") if self.status in REDIRECTS else ""

    @property
    def unread_encoding(self) -> str:
        """The content encoding, if it is one that is not read."""
        encoding = self.headers.get("content-encoding", "").strip().lower()
        return "" if encoding in DECODABLE else encoding

    @property
    def retry_after_s(self) -> float | None:
        """Seconds that the server asked to wait, if it did."""
        return retry_after_s(self.headers.get("retry-after", "").strip())


class GuardedClient:
    """Sends requests to judged addresses only; connections are opened with the first request.

    Args:
        guard: Judges each host by its name and by every address it resolves to, when a connection is made.
        user_agent: Sent with each request.
        network: The proxies and authorities of the user's network.
        seconds: For each operation on a connection; callers bound the whole.
        transport: Stands in for the network.
    """

    def __init__(
        self,
        guard: Guard,
        user_agent: str,
        network: Network,
        *,
        seconds: float,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._guard = guard
        self._transport = transport or GuardedTransport(guard, outbound=network)
        self._options = {"User-Agent": user_agent, "Accept-Encoding": "gzip, deflate"}
        self._timeout = httpx2.Timeout(seconds, pool=None)
        self._client: httpx2.AsyncClient | None = None

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send once and read the answer.

        Raises:
            UrlRefusedError: The guard refuses the address.
            httpx2.RequestError: There is no answer, or a damaged one.
        """
        self._guard.check_url(request.url)
        client = self._opened()
        built = client.build_request(request.method, request.url, headers=request.headers, content=request.content)
        response = await client.send(built, stream=True)
        try:
            answer = HttpResponse(response.status_code, response.headers)
            if answer.redirect or answer.unread_encoding:
                return answer
            is_error = response.status_code >= httpx2.codes.BAD_REQUEST and request.error_bytes is not None
            limit = (request.error_bytes if is_error else None) or request.body_bytes
            body, is_truncated = await _read(response, limit)
            return HttpResponse(response.status_code, response.headers, body, is_truncated)
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        """Close all connections; harmless when there are none."""
        if self._client:
            await self._client.aclose()
            self._client = None

    def _opened(self) -> httpx2.AsyncClient:
        if self._client is None:
            self._client = httpx2.AsyncClient(
                transport=self._transport,
                trust_env=False,
                follow_redirects=False,
                timeout=self._timeout,
                headers=self._options,
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            )
        return self._client


async def _read(response: httpx2.Response, limit: int) -> tuple[bytes, bool]:
    """Return the decompressed body up to a limit; it arrives in pieces of at most 1 MiB, also out of a gzip bomb."""
    body = bytearray()
    async with aclosing(response.aiter_bytes()) as parts:
        async for part in parts:
            body += part
            if len(body) > limit:
                return bytes(body[:limit]), True
    return bytes(body), False


@dataclass(frozen=True)
class Attempt(Generic[T]):
    """What one attempt brought, and whether another may bring something better."""

    outcome: T | Exception
    may_repeat: bool = False
    wait_s: float | None = None
    """Before the next: what the server asked for; None: a short random time."""

    def result(self) -> T:
        """Return the outcome, or raise it."""
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


async def with_retries(attempt: Callable[[], Awaitable[Attempt[T]]], retries: int, pause: Pause = asyncio.sleep) -> T:
    """Try, and try again where that can help: after a short wait, never sooner than the server asked.

    Raises:
        Exception: The outcome of the last attempt, if it is one.
    """
    for number in range(retries + 1):
        tried = await attempt()
        is_hopeless = tried.wait_s is not None and tried.wait_s > MAX_RETRY_AFTER_S
        if number == retries or is_hopeless or not tried.may_repeat:
            return tried.result()
        # Full jitter: many callers that failed together must not come back together.
        spread = random.uniform(0, FIRST_WAIT_S * 2**number)  # noqa: S311 - not a secret
        wait_s = spread if tried.wait_s is None else tried.wait_s
        if wait_s > 0:
            await pause(wait_s)
    raise AssertionError("the last attempt returns or raises")
