"""The provider's prompt cache: requests of a role begin with the same bytes, and one of them warms the cache for all.

A provider reads from its cache what begins with the same bytes as an earlier request. So tools and system text come
first, the history is only added to, and what may differ from request to request (the limit of the reply) comes last.

A cache entry can be read only once the reply to the request that writes it has begun. Hundreds of helpers that ask at
once would each pay for the whole prefix; so the first request is sent, and the others follow at its first content.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from explorer.llm.history import is_begin_of
from explorer.llm.streaming import FIRST_CONTENT
from explorer.llm.wire_json import encode
from explorer.schema.messages import JsonObject, LLMClient, Request, ToolSchema, Turn

HOLD_S = 10.0
"""The longest time that a request waits for another one to warm the cache."""
STAYS_WARM_S = 240.0
"""Seconds for which an entry counts as warm: it is kept for five minutes after its last use, less a margin."""
MIN_PREFIX_CHARS = 3_000
"""The least length of a prefix that providers cache (1,024 tokens)."""


@dataclass(slots=True)
class _WarmPrefix:
    """The state of one prefix in the provider's cache."""

    is_long: bool
    """Whether providers cache it."""
    warm_until: float = 0.0
    leader: asyncio.Event | None = None
    """Set when the request that warms the cache has its first content, or has failed."""


class CacheWarmingClient:
    """A client that lets one request warm the provider's cache before others with the same prefix are sent.

    Args:
        client: An adapter, which reports the first content through `FIRST_CONTENT`.
        clock: Returns seconds.
        hold_s: The longest time that a request waits; then it is sent, warm or not.
    """

    def __init__(self, client: LLMClient, clock: Callable[[], float] = time.monotonic, hold_s: float = HOLD_S) -> None:
        self._client = client
        self._clock = clock
        self._hold_s = hold_s
        self._prefixes: dict[tuple[str, str], _WarmPrefix] = {}

    async def generate(self, request: Request) -> Turn:
        """Send a request, after another one that warms the cache for it.

        Raises:
            ModelError: No turn came.
        """
        prefix = self._prefixes.get((request.model, request.role))
        if prefix is None:
            prefix = self._prefixes[request.model, request.role] = _WarmPrefix(_is_long(request))
        if not prefix.is_long or await self._is_warm(prefix):
            return await self._ask(request, prefix)
        prefix.leader = done = asyncio.Event()
        try:
            return await self._ask(request, prefix)
        finally:
            # Also when it failed or was cancelled: the next request then warms the cache.
            if prefix.leader is done:
                prefix.leader = None
            done.set()

    async def _is_warm(self, prefix: _WarmPrefix) -> bool:
        """Wait while another request warms the cache; return False when this request has to warm it."""
        held_until = self._clock() + self._hold_s
        while self._clock() >= prefix.warm_until:
            leader, left_s = prefix.leader, held_until - self._clock()
            if leader is None:
                return False
            if left_s <= 0:
                return True
            try:
                async with asyncio.timeout(left_s):
                    await leader.wait()
            except TimeoutError:
                return True
        return True

    async def _ask(self, request: Request, prefix: _WarmPrefix) -> Turn:
        def has_begun() -> None:
            prefix.warm_until = self._clock() + STAYS_WARM_S
            if prefix.leader is not None:
                prefix.leader.set()
                prefix.leader = None

        token = FIRST_CONTENT.set(has_begun)
        try:
            return await self._client.generate(request)
        finally:
            FIRST_CONTENT.reset(token)


def _is_long(request: Request) -> bool:
    chars = len(request.system)
    for tool in request.tools:
        if chars >= MIN_PREFIX_CHARS:
            break
        chars += len(tool.description) + len(str(tool.parameters))
    return chars >= MIN_PREFIX_CHARS


@dataclass(frozen=True, slots=True)
class _EncodedPrefix:
    """The encoded prefix of one role, and what it was made of."""

    model: str
    system: str
    tools: tuple[ToolSchema, ...]
    run: str
    start: bytes
    """The bytes before the history; the list of messages is open."""

    def is_of(self, request: Request) -> bool:
        """Return whether it is the prefix of a request. Tools stay the same objects, so comparing them is cheap."""
        mine = (self.model, self.run, self.system, self.tools)
        return mine == (request.model, request.run, request.system, request.tools)


LATEST_MESSAGES = 4
"""How many messages at the end of a history may still change: the last one can be added to, and cache marks move."""
SETTLED_AT_ONCE = 16
"""The least number of messages that are kept encoded: a short history takes less time to encode than to keep."""


class _EncodedHistory:
    """One agent's history as it was last sent: what does not change any more is encoded once."""

    def __init__(self) -> None:
        self._settled: list[JsonObject] = []
        self._data = bytearray()
        """The settled messages, each with a comma after it."""

    def encode(self, messages: Sequence[JsonObject]) -> tuple[bytearray, bytes]:
        """Return the settled beginning, and the rest with the bracket that closes the list."""
        if not is_begin_of(self._settled, messages):
            self._settled, self._data = [], bytearray()
        known, end = len(self._settled), len(messages) - LATEST_MESSAGES
        if end - known >= SETTLED_AT_ONCE:
            self._data += encode(messages[known:end])[1:-1] + b","
            self._settled += messages[known:end]
        return self._data, encode(messages[len(self._settled) :])[1:]


class EncodedRequests:
    """The encoded prefixes of all roles of one adapter and the histories of its agents: what stays is encoded once.

    Args:
        write: Returns a request without its history, `messages` last: an empty list, or one with the system text.
    """

    def __init__(self, write: Callable[[Request], JsonObject]) -> None:
        self._write = write
        self._prefixes: dict[str, _EncodedPrefix] = {}
        self._histories: defaultdict[tuple[str, str], _EncodedHistory] = defaultdict(_EncodedHistory)

    def body(self, request: Request, messages: Sequence[JsonObject], rest: JsonObject) -> bytes:
        """Return the body of a request: the prefix, the history, and the rest, which may differ each time.

        Args:
            request: The request.
            messages: Its history. A message that is changed is another object, but for the last one.
            rest: The fields after the history.
        """
        start = self._start(request)
        joint = b"," if messages and not start.endswith(b"[") else b""
        history = self._histories[request.run, request.agent].encode(messages)
        return b"".join((start, joint, *history, b",", encode(rest)[1:]))

    def _start(self, request: Request) -> bytes:
        prefix = self._prefixes.get(request.role)
        if prefix is None or not prefix.is_of(request):
            start = encode(self._write(request)).removesuffix(b"]}")
            prefix = _EncodedPrefix(request.model, request.system, request.tools, request.run, start)
            self._prefixes[request.role] = prefix
        return prefix.start
