"""Sends spans to a collector over OTLP/HTTP: beside the run, never in its way, and not at any price."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from urllib.parse import urlsplit

from explorer import __version__
from explorer.observe.tracing.otlp import CONTENT_TYPE, export_request
from explorer.observe.tracing.spans import Span
from explorer.schema.network import Network

MAX_WAITING = 10_000
"""Spans that wait to be sent; further ones are dropped."""
BATCH = 512
EVERY_S = 2.0
SEND_S = 5.0
"""What a collector may take for one batch."""
LAST_S = 2.0
"""What it may take for all that is left at the end: nobody waits longer for a collector."""
HTTP_ERROR = 400
Post = Callable[[bytes], Awaitable[str]]
"""Sends a body; what went wrong, or nothing."""


@dataclass(frozen=True)
class Collector:
    """Where spans go."""

    url: str
    """All of it, with `/v1/traces` where the collector has that."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Keys, for collectors that ask for them."""
    network: Network = field(default_factory=Network)
    """The proxies and authorities of the user's network."""


class SpanExporter:
    """Takes spans at once and sends them later. What a collector does not take is dropped; that is said once.

    Args:
        collector: Where they go.
        tell: Given the one line that says so.
    """

    def __init__(self, collector: Collector, tell: Callable[[str], None]) -> None:
        self._collector = collector
        self._print_result = tell
        self._waiting: deque[Span] = deque()
        self._awake = asyncio.Event()
        self._is_ending = False
        self._has_told = False

    def take(self, span: Span) -> None:
        """Keep a span for sending; never waits."""
        if len(self._waiting) >= MAX_WAITING:
            self._say("it takes them slower than they come")
            return
        self._waiting.append(span)
        if len(self._waiting) >= BATCH:
            self._awake.set()

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Send while inside, and on leaving what is left, as far as the collector is quick."""
        import httpx2  # noqa: PLC0415 - slow to import, and only needed where a collector is configured

        from explorer.network.client_options import client_ways  # noqa: PLC0415 - the same

        ways = client_ways(self._collector.network, self._collector.url)
        async with httpx2.AsyncClient(headers=self._headers(), timeout=SEND_S, **ways) as client:

            async def post(body: bytes) -> str:
                try:
                    answer = await client.post(self._collector.url, content=body)
                except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                    return str(error) or type(error).__name__
                return f"it answers {answer.status_code}" if answer.status_code >= HTTP_ERROR else ""

            async with asyncio.TaskGroup() as group:
                sending = group.create_task(self._keep_sending(post))
                try:
                    yield
                finally:
                    await self._end(sending)

    async def _end(self, sending: asyncio.Task[None]) -> None:
        self._is_ending = True
        self._awake.set()
        await asyncio.wait([sending], timeout=LAST_S)
        if not sending.done():
            sending.cancel()
            self._say(f"it takes longer than {LAST_S:g} s")

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
                self._say(problem)
            for _ in batch:
                self._waiting.popleft()

    def _say(self, problem: str) -> None:
        if not self._has_told:
            self._has_told = True
            parts = urlsplit(self._collector.url)
            # Of the address only so much as holds no key.
            self._print_result(f"spans are lost at {parts.scheme}://{parts.hostname}: {problem}; the run goes on")

    def _headers(self) -> dict[str, str]:
        return {**self._collector.headers, "Content-Type": CONTENT_TYPE, "User-Agent": f"explorer/{__version__}"}
