"""Sends spans of a run's records to a collector, for the command line and for programs that embed the engine."""

import asyncio
import struct
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from urllib.parse import urlsplit

from explorer.network.exchange import ExchangeError, HttpRequest
from explorer.observe.spans import Span, Spans, Value
from explorer.schema.errors import ExplorerError
from explorer.schema.events import JournalRecord
from explorer.schema.network import Network
from explorer.schema.version import __version__

CONTENT_TYPE = "application/x-protobuf"
STATUS_ERROR = 2
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MORE = 0x80
"""The bit that shows that another byte of the same number follows."""
_VARINT, _FIXED64, _BYTES = 0, 1, 2
"""The wire types: how a field's value is written, in the low bits of its tag."""


def export_request(spans: Iterable[Span], service: Mapping[str, Value], version: str) -> bytes:
    """Return the body of `POST /v1/traces`.

    Args:
        spans: The spans to send.
        service: The sender, as attributes of a resource: `service.name`, ...
        version: The version of explorer.
    """
    scope = _text(1, "explorer") + _text(2, version)
    of_scope = _bytes(1, scope) + b"".join(_bytes(2, _span(span)) for span in spans)
    return _bytes(1, _bytes(1, _attributes(1, service)) + _bytes(2, of_scope))


def _span(span: Span) -> bytes:
    parts = [
        _bytes(1, span.trace_id),
        _bytes(2, span.span_id),
        _bytes(4, span.parent_id) if span.parent_id else b"",
        _text(5, span.name),
        _number(6, span.kind),
        _moment(7, span.start),
        _moment(8, span.end),
        _attributes(9, span.attributes),
    ]
    if span.error:
        parts += [
            _attributes(9, {"error.type": span.error}),
            _bytes(15, _text(2, span.error) + _number(3, STATUS_ERROR)),
        ]
    return b"".join(parts)


def _attributes(field: int, attributes: Mapping[str, Value]) -> bytes:
    pairs = (_text(1, name) + _bytes(2, _value(value)) for name, value in attributes.items())
    return b"".join(_bytes(field, pair) for pair in pairs)


def _value(value: Value) -> bytes:
    match value:
        case str():
            return _text(1, value)
        # Before the numbers: a bool is an int too.
        case bool():
            return _number(2, int(value))
        case int():
            return _number(3, value)
        case float():
            return _tag(4, _FIXED64) + struct.pack("<d", value)
        case _:
            return _bytes(5, b"".join(_bytes(1, _text(1, one)) for one in value))


def _tag(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _varint(number: int) -> bytes:
    """Encode a number: seven bits a byte, the lowest first; negative numbers as 64-bit two's complement."""
    number &= (1 << 64) - 1
    found = bytearray()
    while number >= MORE:
        found.append(number % MORE | MORE)
        number >>= 7
    found.append(number)
    return bytes(found)


def _number(field: int, number: int) -> bytes:
    return _tag(field, _VARINT) + _varint(number)


def _bytes(field: int, content: bytes) -> bytes:
    return _tag(field, _BYTES) + _varint(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode("utf-8", "replace"))


def _moment(field: int, moment: datetime) -> bytes:
    """Encode the nanoseconds since 1970; from whole microseconds, because a float is not precise enough."""
    since = moment - EPOCH
    nanoseconds = ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1_000
    return _tag(field, _FIXED64) + struct.pack("<Q", nanoseconds)


MAX_WAITING = 10_000
"""The number of spans that may wait to be sent; further ones are dropped."""
BATCH = 512
EVERY_S = 2.0
SEND_S = 5.0
"""Seconds that a collector may take for one batch."""
LAST_S = 2.0
"""Seconds that a collector may take for all remaining spans at the end."""
HTTP_ERROR = 400
ANSWER_BYTES = 10_000
"""The most that is read of a collector's answer."""
Post = Callable[[bytes], Awaitable[str]]
"""Send a body; return what went wrong, or an empty text."""


@dataclass(frozen=True)
class Collector:
    """The address of a collector, and how to connect to it."""

    url: str
    """The whole URL, with `/v1/traces` where the collector has that."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Headers with keys, for collectors that require them."""
    network: Network = field(default_factory=Network)
    """The proxies and authorities of the user's network."""


class SpanExporter:
    """Takes spans at once and sends them later. Spans that the collector does not accept are dropped, with one warning.

    Args:
        collector: The collector.
        warn: Gets the warning, one line.
    """

    def __init__(self, collector: Collector, warn: Callable[[str], None]) -> None:
        self._collector = collector
        self._warn_user = warn
        self._waiting: deque[Span] = deque()
        self._awake = asyncio.Event()
        self._is_ending = False
        self._has_warned = False

    def take(self, span: Span) -> None:
        """Keep a span for sending; never waits."""
        if len(self._waiting) >= MAX_WAITING:
            self._warn("it takes them slower than they come")
            return
        self._waiting.append(span)
        if len(self._waiting) >= BATCH:
            self._awake.set()

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Send within the context, and at its end the remaining spans, for at most `LAST_S`."""
        from explorer.network.client import GuardedClient  # noqa: PLC0415 - slow to import, and seldom needed
        from explorer.network.guard import Guard  # noqa: PLC0415 - the same

        url = self._collector.url
        # The user chose the collector, which may be at a private address.
        guard = Guard([urlsplit(url).hostname or ""])
        client = GuardedClient(guard, f"explorer/{__version__}", self._collector.network, seconds=SEND_S)
        headers = {**self._collector.headers, "Content-Type": CONTENT_TYPE}

        async def post(body: bytes) -> str:
            try:
                answer = await client.send(HttpRequest("POST", url, headers, body, ANSWER_BYTES))
            except (ExchangeError, ExplorerError) as error:
                return str(error) or type(error).__name__
            return f"it answers {answer.status}" if answer.status >= HTTP_ERROR else ""

        try:
            async with asyncio.TaskGroup() as group:
                sending = group.create_task(self._keep_sending(post))
                try:
                    yield
                finally:
                    await self._end(sending)
        finally:
            await client.aclose()

    async def _end(self, sending: asyncio.Task[None]) -> None:
        self._is_ending = True
        self._awake.set()
        await asyncio.wait([sending], timeout=LAST_S)
        if not sending.done():
            sending.cancel()
            self._warn(f"it takes longer than {LAST_S:g} s")

    async def _keep_sending(self, post: Post) -> None:
        while not self._is_ending:
            with suppress(TimeoutError):
                async with asyncio.timeout(EVERY_S):
                    await self._awake.wait()
            self._awake.clear()
            await self._send(post)
        await self._send(post)

    async def _send(self, post: Post) -> None:
        while self._waiting:
            batch = tuple(islice(self._waiting, BATCH))
            problem = await post(export_request(batch, {"service.name": "explorer"}, __version__))
            if problem:
                self._warn(problem)
            for _ in batch:
                self._waiting.popleft()

    def _warn(self, problem: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            parts = urlsplit(self._collector.url)
            # Only the parts of the address that contain no key.
            self._warn_user(f"spans are lost at {parts.scheme}://{parts.hostname}: {problem}; the run continues")


class Tracing:
    """Makes spans of a run's records, and sends them while it is open.

    Args:
        collector: The collector.
        warn: Gets one line when spans are lost.
    """

    def __init__(self, collector: Collector, warn: Callable[[str], None]) -> None:
        self._sender = SpanExporter(collector, warn)
        self._spans = Spans(self._sender.take)

    def catch_up(self, records: Iterable[JournalRecord]) -> None:
        """Read the records of earlier sessions of the run."""
        self._spans.catch_up(records)

    def observe(self, record: JournalRecord) -> None:
        """Add a record of this session; pass this method as `Extras.observe`."""
        self._spans.observe(record)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Send within the context; at its end, send spans that are not over, too."""
        async with self._sender.open():
            try:
                yield
            finally:
                self._spans.end()
