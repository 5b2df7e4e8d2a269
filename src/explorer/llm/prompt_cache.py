"""The provider's prompt cache: requests of a role begin with the same bytes, and one of them warms the cache for all.

A provider reads from its cache what begins with the same bytes as a request before. So what stays stands first, the
history is only added to, and what may differ from request to request (the length of the reply) stands last.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from explorer.llm.streaming import FIRST_CONTENT
from explorer.llm.wire_json import encode
from explorer.schema.messages import JsonObject, LLMClient, Request, ToolSchema, Turn

HOLD_S = 10.0
STAYS_WARM_S = 240.0
"""An entry lives for five minutes after its last use; the other minute is the request's way."""
MIN_PREFIX_CHARS = 3_000
"""A shorter head is under the least that providers cache (1,024 tokens)."""


@dataclass(slots=True)
class _WarmPrefix:
    """What is known of one head."""

    is_long: bool
    """Whether it is one that providers keep."""
    warm_until: float = 0.0
    leader: asyncio.Event | None = None
    """Set when whoever goes ahead has heard its first content, or has failed."""


class CacheWarmingClient:
    """A client in whose hands requests with one head do not all go out cold.

    Args:
        client: Asks the provider; an adapter that tells of the first content through `FIRST_CONTENT`.
        clock: Seconds.
        hold_s: The longest that a request is held back; after that it goes, warm or not.
    """

    def __init__(self, client: LLMClient, clock: Callable[[], float] = time.monotonic, hold_s: float = HOLD_S) -> None:
        self._client = client
        self._clock = clock
        self._hold_s = hold_s
        self._prefixes: dict[tuple[str, str], _WarmPrefix] = {}

    async def generate(self, request: Request) -> Turn:
        """Ask, after whoever warms the cache for this request.

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
            # Also when it failed or was cancelled: the next one then goes ahead.
            if prefix.leader is done:
                prefix.leader = None
            done.set()

    async def _is_warm(self, prefix: _WarmPrefix) -> bool:
        """Whether a request may go with the others; False when it is to go ahead of them. Waits while another does."""
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
    """One role's, and what it was made of."""

    model: str
    system: str
    tools: tuple[ToolSchema, ...]
    run: str
    start: bytes
    """Everything up to the first word of the history; the list of messages is open."""

    def is_of(self, request: Request) -> bool:
        """Whether it begins this request. The tools are the same objects all along, so comparing them costs nothing."""
        mine = (self.model, self.run, self.system, self.tools)
        return mine == (request.model, request.run, request.system, request.tools)


class PromptPrefixes:
    """The heads of all roles that ask through one adapter.

    Args:
        write: Writes a request without its history, `messages` last: an empty list, or one with the system text.
    """

    def __init__(self, write: Callable[[Request], JsonObject]) -> None:
        self._write = write
        self._prefixes: dict[str, _EncodedPrefix] = {}

    def body(self, request: Request, messages: Sequence[JsonObject], rest: JsonObject) -> bytes:
        """A whole request: the head, the history, and the rest, which may differ each time."""
        start = self._start(request)
        joint = b"," if messages and not start.endswith(b"[") else b""
        return b"".join((start, joint, encode(messages)[1:], b",", encode(rest)[1:]))

    def _start(self, request: Request) -> bytes:
        prefix = self._prefixes.get(request.role)
        if prefix is None or not prefix.is_of(request):
            start = encode(self._write(request)).removesuffix(b"]}")
            prefix = _EncodedPrefix(request.model, request.system, request.tools, request.run, start)
            self._prefixes[request.role] = prefix
        return prefix.start
