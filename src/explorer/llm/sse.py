"""Reads server-sent events from a stream of bytes, after the WHATWG HTML standard, section 9.2.6.

Own code, because a few lines suffice and the SDKs' readers build typed objects at ten times the cost per event.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from typing import NamedTuple

MAX_EVENT_BYTES = 32 * 1024 * 1024
"""More than any provider's longest reply; a stream beyond it is broken or hostile."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ServerEvent(NamedTuple):
    """One event of a stream."""

    event: str
    """Its type; `message` when the stream names none."""
    data: str
    """Its data lines, joined by line feeds."""


class EventTooLargeError(ValueError):
    """An event, or a line of one, is longer than allowed."""


class EventParser:
    """Turns chunks of bytes, cut anywhere, into events."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._buffer = bytearray()
        self._searched = 0
        """Bytes of the buffer known to hold no line end, so that a long line is searched once."""
        self._is_after_return = False
        """Whether the last byte was a carriage return whose line feed may still come."""
        self._is_first_line = True
        self._event = ""
        self._data: list[bytes] = []
        self._data_bytes = 0

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Take the next bytes and return the events they complete.

        Raises:
            EventTooLargeError: An event grew beyond the limit.
        """
        if not chunk:
            return []
        if self._is_after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._is_after_return = chunk.endswith(b"\r") if chunk else False
        self._buffer += chunk
        events = [event for line in self._lines() if (event := self._take(line)) is not None]
        if len(self._buffer) + self._data_bytes > self._max_event_bytes:
            raise EventTooLargeError(f"an event is longer than {self._max_event_bytes} bytes")
        return events

    def close(self) -> list[ServerEvent]:
        """Return the event that the end of the stream completes.

        The standard drops it; servers that end with `data: [DONE]` and no blank line make keeping it wiser.
        """
        line, self._buffer, self._searched = bytes(self._buffer), bytearray(), 0
        events = [self._take(line)] if line else []
        events.append(self._take(b""))
        return [event for event in events if event is not None]

    def _lines(self) -> Iterator[bytes]:
        start = 0
        for found in _LINE_END.finditer(self._buffer, self._searched):
            yield bytes(self._buffer[start : found.start()])
            start = found.end()
        del self._buffer[:start]
        self._searched = len(self._buffer)

    def _take(self, line: bytes) -> ServerEvent | None:
        if self._is_first_line:
            self._is_first_line = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._data_bytes += len(value) + 1
        elif field == b"event":
            self._event = value.decode("utf-8", "replace")
        return None

    def _dispatch(self) -> ServerEvent | None:
        event, data = self._event, self._data
        self._event, self._data, self._data_bytes = "", [], 0
        if not data:
            return None
        return ServerEvent(event or "message", b"\n".join(data).decode("utf-8", "replace"))


async def read_events(
    chunks: AsyncIterable[bytes], max_event_bytes: int = MAX_EVENT_BYTES
) -> AsyncGenerator[ServerEvent]:
    """Yield the events of a byte stream as they become complete.

    Raises:
        EventTooLargeError: An event grew beyond the limit.
    """
    parser = EventParser(max_event_bytes)
    async for chunk in chunks:
        for event in parser.feed(chunk):
            yield event
    for event in parser.close():
        yield event
