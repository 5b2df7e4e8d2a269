"""One request and its streamed reply: the part that does not depend on a vendor's words."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from contextvars import ContextVar
from importlib.util import find_spec
from typing import Protocol
from urllib.parse import urlsplit

import httpx2

from explorer.errors import ModelError, ModelFault
from explorer.llm.faults import unreachable
from explorer.llm.options import Place, Timeouts
from explorer.llm.sse import EventParser, EventTooLargeError, ServerEvent

DRAIN_S = 0.5
"""Given to a complete stream to end by itself, so that its connection can be used again."""

MAX_CONNECTIONS = 1_000
"""As many as the SDKs' own default: one for each of many helpers that ask at once."""

KEEP_ALIVE_S = 30.0
"""An agent asks again when its tools have answered, often after more than the usual 5 s."""

FIRST_CONTENT: ContextVar[Callable[[], None] | None] = ContextVar("FIRST_CONTENT", default=None)
"""Called when the first content of the reply to the request being made has come."""

Post = Callable[[bytes], Awaitable[httpx2.Response]]
"""Sends a body through an SDK and returns the raw response, still open; its errors are `ModelError`."""

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Reply(Protocol):
    """What collects a stream's events."""

    @property
    def is_complete(self) -> bool:
        """Whether the terminal event has come."""
        ...

    def take(self, event: ServerEvent) -> bool:
        """Collect one event; say whether it was content, not just a sign of life."""
        ...


def http_client(base_url: str, timeouts: Timeouts, over_aiohttp: type[httpx2.AsyncClient]) -> httpx2.AsyncClient:
    """Make the connection pool for an SDK.

    Reading has no timeout here because `converse` watches over content. Proxies of the environment are used,
    except for servers on this machine, which a proxy would not find.

    Args:
        base_url: Where requests go.
        timeouts: Only the one for connecting is used here.
        over_aiohttp: The SDK's client over aiohttp, which opens a fifth of the connections when hundreds of agents
            ask at once, and costs half the CPU; httpx2's own pool stands in where aiohttp is not installed.
    """
    kind = over_aiohttp if find_spec("aiohttp") else httpx2.AsyncClient
    return kind(
        timeout=httpx2.Timeout(None, connect=timeouts.connect_s),
        limits=httpx2.Limits(
            max_connections=MAX_CONNECTIONS,
            max_keepalive_connections=MAX_CONNECTIONS,
            keepalive_expiry=KEEP_ALIVE_S,
        ),
        follow_redirects=True,
        trust_env=not is_loopback(base_url),
    )


def is_loopback(url: str) -> bool:
    """Say whether a URL means this machine."""
    return urlsplit(url).hostname in _LOOPBACK


async def converse(post: Post, body: bytes, reply: Reply, place: Place, timeouts: Timeouts) -> None:
    """Send one request and let `reply` collect its stream, until the terminal event or the stream's end.

    Raises:
        ModelError: The request was refused, the stream broke, or no content came for too long.
    """
    try:
        async with asyncio.timeout(min(timeouts.first_content_s, timeouts.total_s)) as alarm:
            watch = _Watch(alarm, timeouts)
            response = await post(body)
            try:
                await _collect(response, reply, watch)
            finally:
                await response.aclose()
    except TimeoutError as error:
        if not reply.is_complete:
            raise _stalled(place, timeouts) from error
    except httpx2.HTTPError as error:
        if not reply.is_complete:
            raise unreachable(place, f"the stream broke ({_words(error)})") from error
    except EventTooLargeError as error:
        raise ModelError(ModelFault.TRANSPORT, f"{place}: {error}") from error


class _Watch:
    """Moves an alarm on whenever content comes, never beyond the turn's end."""

    def __init__(self, alarm: asyncio.Timeout, timeouts: Timeouts) -> None:
        self._alarm = alarm
        self._idle_s = timeouts.idle_s
        self._now = asyncio.get_running_loop().time
        self._ends_at = self._now() + timeouts.total_s
        self._tell_of_first = FIRST_CONTENT.get()

    def content_came(self) -> None:
        if self._tell_of_first is not None:
            self._tell_of_first()
            self._tell_of_first = None
        self._alarm.reschedule(min(self._now() + self._idle_s, self._ends_at))

    def reply_is_complete(self) -> None:
        self._alarm.reschedule(self._now() + DRAIN_S)


async def _collect(response: httpx2.Response, reply: Reply, watch: _Watch) -> None:
    if response.headers.get("content-type", "").startswith("application/json"):
        # A server that does not stream, or an error under a status of 200.
        reply.take(ServerEvent("message", (await response.aread()).decode("utf-8", "replace")))
        return
    parser = EventParser()
    async with aclosing(response.aiter_bytes()) as chunks:
        async for chunk in chunks:
            _hand_over(parser.feed(chunk), reply, watch)
    _hand_over(parser.close(), reply, watch)


def _hand_over(events: Iterable[ServerEvent], reply: Reply, watch: _Watch) -> None:
    """Give a chunk's events to the reply, and look at the clock once for all of them."""
    if reply.is_complete:
        return
    has_content = False
    for event in events:
        has_content = reply.take(event) or has_content
        if reply.is_complete:
            break
    if has_content:
        watch.content_came()
    if reply.is_complete:
        watch.reply_is_complete()


def _stalled(place: Place, timeouts: Timeouts) -> ModelError:
    message = (
        f"{place} sent no content for too long (first within {timeouts.first_content_s:g} s, then every "
        f"{timeouts.idle_s:g} s, {timeouts.total_s:g} s in all)"
    )
    return ModelError(ModelFault.STALLED, message, hint="try again later; the run can be resumed")


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
