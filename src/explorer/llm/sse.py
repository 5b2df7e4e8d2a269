"""Reads server-sent events from a stream of bytes, after the WHATWG HTML standard, section 9.2.6.

Own code, because a few lines suffice and the SDKs' readers build typed objects at ten times the cost per event.
"""

from typing import NamedTuple

from explorer.llm.bounds import BOUNDS, ReplyBounds

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ServerEvent(NamedTuple):
    """One event of a stream."""

    event: str
    """Its type; `message` when the stream names none."""
    data: str
    """Its data lines, joined by line feeds."""


class StreamTooLargeError(ValueError):
    """An event, or a line of one, is longer than allowed, or there are too many; says more than what was sent."""


class EventParser:
    """Turns chunks of bytes, cut anywhere, into events.

    Args:
        bounds: How long an event may be, and how many there may be.
    """

    def __init__(self, bounds: ReplyBounds = BOUNDS) -> None:
        self._bounds = bounds
        self._count = 0
        """Of all events so far."""
        self._rest = bytearray()
        """A line whose end has not come yet."""
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
            # Nearly every line is one of data, and many a one of its type: these need no further look.
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

        The standard drops it; servers that end with `data: [DONE]` and no blank line make keeping it wiser.
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
        """The lines that a chunk completes; a long line in many chunks is not searched again."""
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
