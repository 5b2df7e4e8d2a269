"""Open pages kept current: server-sent events with what changed, and look-ups that many pages share."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable
from typing import Any

from fastapi.responses import Response, StreamingResponse

LIVE = "text/event-stream"
KEEP_ALIVE_S = 15.0
"""Seconds after which an open stream is sent a comment."""


def event(number: object, html: str) -> str:
    """Return an event with its id."""
    lines = "".join(f"data: {line}\n" for line in html.splitlines())
    return f"id: {number}\n{lines}\n"


def event_stream(events: AsyncIterator[str | bytes]) -> StreamingResponse:
    """Return the answer that sends events as they come; no proxy on the way collects them."""
    return StreamingResponse(events, media_type=LIVE, headers={"x-accel-buffering": "no"})


def replacing(element: str, html: str) -> str:
    """Return HTML that replaces an element of a page; folds, focus and what is typed stay."""
    return f'<hx-partial hx-target="#{element}" hx-swap="outerMorph">{html}</hx-partial>\n'


LOOK_EVERY_S = 1.0
MAX_LISTS = 16


class KeptLists:
    """The latest result of each look-up: one a second is enough, however many pages show it."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[float, Any]] = OrderedDict()
        self._lock = asyncio.Lock()

    async def of(self, name: Hashable, look_up: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever is looked up
        """Return what a look-up of this name found in the last second; look it up if none did."""
        async with self._lock:
            known = self._kept.get(name)
            if known is None or known[0] + LOOK_EVERY_S / 2 < time.monotonic():
                known = self._kept[name] = time.monotonic(), await asyncio.to_thread(look_up)
            self._kept.move_to_end(name)
            while len(self._kept) > MAX_LISTS:
                self._kept.popitem(last=False)
            return known[1]


def looked(*, is_new: bool) -> Response:
    """Answer a page without a stream, which asks whether there is something new."""
    return Response(status_code=200 if is_new else 204)
