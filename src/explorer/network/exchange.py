"""What is sent and what comes back over HTTP, what failed, and the one retry loop: without a library of the network."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Generic, Protocol, TypeVar

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
    """The headers, which may contain a key."""
    content: bytes | None = field(default=None, repr=False)
    body_bytes: int = 5_000_000
    """The most that is read of an answer, after decompression."""
    error_bytes: int | None = None
    """The same for answers with an error status, where that is less."""


@dataclass(frozen=True)
class HttpResponse:
    """One answer, read up to its bound."""

    status: int
    headers: Mapping[str, str]
    """Names are found in any case."""
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


class Sender(Protocol):
    """What sends requests: `GuardedClient`."""

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send once and read the answer."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


class ExchangeError(Exception):
    """A request that brought no answer; `str` of it is the library's words, which may repeat what was sent."""

    def __init__(self, words: str, kind: str) -> None:
        super().__init__(words)
        self.kind = kind
        """The name of the library's error."""

    @property
    def is_timeout(self) -> bool:
        """Whether an answer, or a part of it, came too late."""
        return self.kind.endswith("Timeout")

    @property
    def is_proxy(self) -> bool:
        """Whether the user's proxy failed; the words are ours."""
        return self.kind == "ProxyError"

    @property
    def is_unsent(self) -> bool:
        """Whether it failed before the request left this machine."""
        return self.kind in {"ConnectError", "ProxyError", "ConnectTimeout", "PoolTimeout"}


class DamagedAnswerError(ExchangeError):
    """An answer that cannot be read, however often it is asked for."""


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


def retry_after_s(value: str) -> float | None:
    """Return the seconds in a Retry-After header, in either of its two forms."""
    if not value or value.isdecimal():
        return float(value) if value else None
    try:
        return max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except ValueError:
        return None
