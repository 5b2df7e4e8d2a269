"""One request and its streamed reply, read as server-sent events (WHATWG HTML standard, section 9.2.6).

The parser is our own, because a few lines suffice and the SDKs' parsers take ten times as long per event.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from contextvars import ContextVar
from functools import partial
from typing import NamedTuple, Protocol, Self

import httpx2

from explorer.llm.foreign_answers import no_events, stream_error, transport_errors, web_page
from explorer.llm.options import BOUNDS, ClientOptions, Endpoint, ReplyBounds, Timeouts, check_event, oversized
from explorer.network.client_options import client_ways
from explorer.schema.errors import ModelError, ModelFault

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ServerEvent(NamedTuple):
    """One event of a stream."""

    event: str
    """Its type; `message` when the stream does not give one."""
    data: str
    """Its data lines, joined by line feeds."""


class StreamTooLargeError(ValueError):
    """Raised when an event is longer than allowed, or there are too many; the text is the bound."""


class EventParser:
    """Turns chunks of bytes, cut anywhere, into events.

    Args:
        bounds: The limits of an event's length and of the number of events.
    """

    def __init__(self, bounds: ReplyBounds = BOUNDS) -> None:
        self._bounds = bounds
        self._count = 0
        """The number of events so far."""
        self._rest = bytearray()
        """The beginning of a line whose end has not come yet."""
        self._is_after_return = False
        """Whether the last byte was a carriage return whose line feed may still come."""
        self._is_first_line = True
        self._event = ""
        self._data: list[bytes] = []
        self._data_bytes = 0

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Take the next bytes and return the events they complete.

        Raises:
            StreamTooLargeError: An event is too long, or there are too many.
        """
        if not chunk:
            return []
        if self._is_after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._is_after_return = chunk.endswith(b"\r") if chunk else False
        events: list[ServerEvent] = []
        for line in self._lines(chunk):
            # Nearly every line is data or a type, which need no further check.
            if self._is_first_line:
                self._take(line, events)
            elif line.startswith(b"data: "):
                self._data.append(line[6:])
                self._data_bytes += len(line)
            elif line.startswith(b"event: "):
                self._event = line[7:].decode("utf-8", "replace")
            else:
                self._take(line, events)
        self._check(len(events))
        return events

    def close(self) -> list[ServerEvent]:
        """Return the event that the end of the stream completes.

        The standard drops it; it is kept because some servers end with `data: [DONE]` and no blank line.
        """
        events: list[ServerEvent] = []
        line, self._rest = bytes(self._rest), bytearray()
        for last in (line, b"") if line else (b"",):
            self._take(last, events)
        return events

    def _check(self, new_events: int) -> None:
        self._count += new_events
        if len(self._rest) + self._data_bytes > self._bounds.event_bytes:
            raise StreamTooLargeError(f"{self._bounds.event_bytes:,} bytes in one event")
        if self._count > self._bounds.events:
            raise StreamTooLargeError(f"{self._bounds.events:,} events in one reply")

    def _lines(self, chunk: bytes) -> list[bytes]:
        """Return the lines that a chunk completes; a long line in many chunks is not searched again."""
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in chunk:
            self._rest += chunk
            return []
        *lines, rest = (bytes(self._rest) + chunk).split(b"\n")
        self._rest = bytearray(rest)
        return lines

    def _take(self, line: bytes, events: list[ServerEvent]) -> None:
        if self._is_first_line:
            self._is_first_line = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line:
            if self._data:
                data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                events.append(ServerEvent(self._event or "message", data.decode("utf-8", "replace")))
            self._event, self._data, self._data_bytes = "", [], 0
        elif line.startswith((b"data", b"event")):
            self._take_field(line)

    def _take_field(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._keep(value)
        elif field == b"event":
            self._event = value.decode("utf-8", "replace")

    def _keep(self, value: bytes) -> None:
        self._data.append(value)
        self._data_bytes += len(value) + 1


DRAIN_S = 0.5
"""Seconds for a complete stream to end by itself, so that its connection can be used again."""

MAX_CONNECTIONS = 1_000
"""The SDKs' own default, which allows one connection for each of many helpers that ask at once."""

KEEP_ALIVE_S = 30.0
"""Seconds that idle connections are kept: an agent asks again after its tools, often later than the usual 5 s."""

FIRST_CONTENT: ContextVar[Callable[[], None] | None] = ContextVar("FIRST_CONTENT", default=None)
"""A callback for the first content of the reply to the current request."""

Post = Callable[[bytes], Awaitable[httpx2.Response]]
"""Send a body through an SDK, and return the raw response, still open; its errors are `ModelError`."""

EVENT_STREAM = "text/event-stream"
SHOWN_BYTES = 400
"""The size of a body that is not a reply, for the error message."""
PAGE_BYTES = 16_384
"""The size of a web page in place of a reply that is searched for its title."""


class Reply(Protocol):
    """Collects a stream's events."""

    @property
    def is_complete(self) -> bool:
        """Whether the terminal event has come."""
        ...

    def take(self, event: ServerEvent) -> bool:
        """Collect one event; return whether it was content, and not only a ping."""
        ...


def http_client(
    endpoint: Endpoint, options: ClientOptions, over_aiohttp: type[httpx2.AsyncClient]
) -> httpx2.AsyncClient:
    """Make the connection pool for an SDK.

    Reading has no timeout here because `stream_reply` has timeouts for content. The user's proxies are used, except for
    servers on this machine, and nothing is read from the environment.

    Args:
        endpoint: The server.
        options: The network, the bounds of its answers, and the timeout of connecting.
        over_aiohttp: The SDK's client over aiohttp, which opens a fifth of the connections when hundreds of agents
            ask at once, and costs half the CPU.
    """
    limits = httpx2.Limits(
        max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_CONNECTIONS, keepalive_expiry=KEEP_ALIVE_S
    )
    ways = client_ways(options.network, endpoint.base_url)
    context, proxy = ways["verify"], ways["proxy"]
    # Through a proxy without aiohttp: it sends a login to the proxy for https:// addresses only.
    tunnel = httpx2.AsyncHTTPTransport(verify=context, proxy=proxy, limits=limits, trust_env=False) if proxy else None
    client = over_aiohttp(
        timeout=httpx2.Timeout(None, connect=options.timeouts.connect_s),
        limits=limits,
        follow_redirects=True,
        verify=context,
        trust_env=False,
        mounts={"all://": tunnel} if tunnel else None,
    )
    _use_session(client, partial(_open_session, endpoint, options.bounds, limits, context))
    return client


def _open_session(endpoint: Endpoint, bounds: ReplyBounds, limits: httpx2.Limits, context: ssl.SSLContext) -> object:
    from explorer.llm.aiohttp_session import open_session  # noqa: PLC0415 - aiohttp is slow to import

    return open_session(endpoint, bounds, limits, context)


def _use_session(client: httpx2.AsyncClient, session: Callable[[], object]) -> None:
    """Make the SDK's transport connect with our session; one that takes none stays as it is."""
    transport = getattr(client, "_transport", None)
    if getattr(transport, "client", transport) is None:
        setattr(transport, "client", session)  # noqa: B010 - of a class that the SDK does not publish


async def stream_reply(post: Post, body: bytes, reply: Reply, endpoint: Endpoint, timeouts: Timeouts) -> None:
    """Send one request and let `reply` collect its stream, until the terminal event or the stream's end.

    Raises:
        ModelError: The request was refused, the stream broke, or no content came for too long.
    """
    try:
        async with asyncio.timeout(None) as alarm:
            with _Watch(alarm, timeouts) as watch:
                response = await post(body)
                try:
                    await _collect(response, reply, watch, endpoint)
                finally:
                    await response.aclose()
    except TimeoutError as error:
        if not reply.is_complete:
            raise _stalled(endpoint, timeouts) from error
    except transport_errors() as error:
        if not reply.is_complete:
            raise stream_error(error, endpoint) from error
    except StreamTooLargeError as error:
        raise oversized(endpoint, str(error)) from error


class _Watch:
    """Ends a request when no content comes for too long, and in any case after the total time.

    Content comes in hundreds of pieces, so each only moves the deadline; the timer checks the deadline when it is due.
    """

    def __init__(self, alarm: asyncio.Timeout, timeouts: Timeouts) -> None:
        self._alarm = alarm
        self._idle_s = timeouts.idle_s
        self._loop = asyncio.get_running_loop()
        self._now = self._loop.time
        self._ends_at = self._now() + timeouts.total_s
        self._until = min(self._now() + timeouts.first_content_s, self._ends_at)
        self._timer = self._loop.call_at(self._until, self._look)
        self._report_first = FIRST_CONTENT.get()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        now = self._now()
        if now >= self._until:
            self._alarm.reschedule(now)
        else:
            self._timer = self._loop.call_at(self._until, self._look)

    def content_came(self) -> None:
        if self._report_first is not None:
            self._report_first()
            self._report_first = None
        self._until = min(self._now() + self._idle_s, self._ends_at)
        if self._until < self._timer.when():
            self._timer.cancel()
            self._timer = self._loop.call_at(self._until, self._look)

    def reply_is_complete(self) -> None:
        self._timer.cancel()
        self._alarm.reschedule(self._now() + DRAIN_S)


async def _collect(response: httpx2.Response, reply: Reply, watch: _Watch, endpoint: Endpoint) -> None:
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "text/html":
        raise web_page((await _read(response, PAGE_BYTES)).decode("utf-8", "replace"), response.status_code, endpoint)
    if kind == "application/json":
        # A server that does not stream, or an error under a status of 200.
        body = await _read(response, BOUNDS.event_bytes + 1)
        if len(body) > BOUNDS.event_bytes:
            raise oversized(endpoint, f"{BOUNDS.event_bytes:,} bytes in a reply that is not streamed")
        event = ServerEvent("message", body.decode("utf-8", "replace"))
        check_event(event.data, endpoint)
        if not reply.take(event):
            raise no_events(body[:SHOWN_BYTES], kind, response.status_code, endpoint)
        return
    parser = EventParser()
    begin, has_events = b"", False
    async with aclosing(response.aiter_bytes()) as chunks:
        async for chunk in chunks:
            begin = begin or chunk[:SHOWN_BYTES]
            events = parser.feed(chunk)
            has_events = has_events or bool(events)
            _hand_over(events, reply, watch, endpoint)
    events = parser.close()
    _hand_over(events, reply, watch, endpoint)
    if not (has_events or events or (begin and kind == EVENT_STREAM)):
        raise no_events(begin, kind, response.status_code, endpoint)


async def _read(response: httpx2.Response, most: int) -> bytes:
    """Read a body up to a number of bytes."""
    body = bytearray()
    async with aclosing(response.aiter_bytes()) as chunks:
        async for chunk in chunks:
            body += chunk
            if len(body) >= most:
                break
    return bytes(body[:most])


def _hand_over(events: Iterable[ServerEvent], reply: Reply, watch: _Watch, endpoint: Endpoint) -> None:
    """Give a chunk's events to the reply, and read the clock once for all of them."""
    if reply.is_complete:
        return
    has_content = False
    for event in events:
        check_event(event.data, endpoint)
        if reply.take(event):
            has_content = True
            if reply.is_complete:
                break
    if has_content:
        watch.content_came()
    if reply.is_complete:
        watch.reply_is_complete()


def _stalled(endpoint: Endpoint, timeouts: Timeouts) -> ModelError:
    message = (
        f"{endpoint} sent no content for too long (first within {timeouts.first_content_s:g} s, then every "
        f"{timeouts.idle_s:g} s, {timeouts.total_s:g} s in all)"
    )
    return ModelError(ModelFault.STALLED, message, hint="try again later; the run can be resumed")
