"""Sparing the sites that are read: one request at a time, a pause in between, and a queue that does not grow long."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from explorer.schema.errors import ToolError

GAP_S = 1.0
"""Between the starts of two requests to one host."""
LONGEST_GAP_S = 10.0
"""A host that asks for more is not read at all: agents do not wait so long for a page."""
LONGEST_QUEUE_S = 60.0
"""Within a tool's own time, with room for the page itself."""


class Politeness:
    """Gives turns at hosts. `clock` and `pause` are a clock in seconds and the wait it measures.

    Interfaces made for programs and hosts the user opened for this machine are not spared: they are the user's own,
    or say themselves what they bear. `spares_all_hosts` spares opened hosts too.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
        gap_s: float = GAP_S,
        spares_all_hosts: bool = False,
    ) -> None:
        self.spares_all_hosts = spares_all_hosts
        self._clock = clock
        self._pause = pause
        self._gap_s = gap_s
        self._places: dict[str, _HostSlot] = {}

    @asynccontextmanager
    async def turn(self, host: str, delay_s: float = 0.0) -> AsyncGenerator[None]:
        """Wait for a turn at a host and have it alone; `delay_s` is the pause its robots.txt asks for.

        Raises:
            ToolError: The pause asked for is too long, or too many wait already.
        """
        gap_s = max(delay_s, self._gap_s)
        place = self._places.setdefault(host, _HostSlot())
        if gap_s > LONGEST_GAP_S:
            raise ToolError(
                f"robots.txt of {host} asks for a pause of {delay_s:g} s between pages, which is too long; "
                "use another source."
            )
        if place.waiting * gap_s > LONGEST_QUEUE_S:
            raise ToolError(
                f"{place.waiting} requests wait for {host} already, which gets one every {gap_s:g} s; "
                "use another source, or this one later."
            )
        place.waiting += 1
        try:
            async with place.lock:
                wait_s = 0.0 if place.last is None else place.last + gap_s - self._clock()
                if wait_s > 0:
                    await self._pause(wait_s)
                place.last = self._clock()
                yield
        finally:
            place.waiting -= 1


class _HostSlot:
    """A host, the one who has its turn, and those who wait."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.last: float | None = None
        self.waiting = 0
