from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.llm.options import ReplyBounds
from explorer.llm.streaming import EventParser, ServerEvent, StreamTooLargeError

STREAM = (
    "\ufeff: a comment\n\n"
    "event: greeting\ndata: Grüße, 世界 👩‍🚀\n\n"
    "data:no space\r\ndata:  two spaces\r\nid: 7\r\nretry: 10\r\n\r\n"
    "data\rdata: after an empty line of data\r\r"
    "event: without_data\n\n"
    "unknown: field\ndata: {}\n\n"
    ": ping\n\n"
    "data: [DONE]"
).encode()

EVENTS = [
    ServerEvent("greeting", "Grüße, 世界 👩‍🚀"),
    ServerEvent("message", "no space\n two spaces"),
    ServerEvent("message", "\nafter an empty line of data"),
    ServerEvent("message", "{}"),
    ServerEvent("message", "[DONE]"),
]


def parse(chunks: list[bytes]) -> list[ServerEvent]:
    parser = EventParser()
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return events + parser.close()


def test_the_whole_stream_at_once() -> None:
    """Comments, the three line ends, several lines of data and unknown fields are read as the standard says."""
    assert parse([STREAM]) == EVENTS


def test_byte_by_byte() -> None:
    """A stream cut after every byte, within characters and line ends, gives the same events."""
    assert parse([STREAM[index : index + 1] for index in range(len(STREAM))]) == EVENTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_any_chunking_gives_the_same_events(cuts: list[int]) -> None:
    """However the network cuts a stream, its events are the same."""
    edges = [0, *sorted(cuts), len(STREAM)]
    assert parse([STREAM[start:end] for start, end in pairwise(edges)]) == EVENTS


def test_an_event_is_given_as_soon_as_it_is_complete() -> None:
    """No event waits for the next one to come."""
    parser = EventParser()
    assert parser.feed(b"data: a\r\n\r") == [ServerEvent("message", "a")]
    assert parser.feed(b"\n") == []
    assert parser.feed(b"data: b\n\n") == [ServerEvent("message", "b")]


@pytest.mark.parametrize("chunk", [b"data: " + b"x" * 200, b"data: x\n" * 40])
def test_an_endless_event_is_refused(chunk: bytes) -> None:
    """An event beyond the limit, in one line or in many, is an error and not memory."""
    with pytest.raises(StreamTooLargeError):
        EventParser(ReplyBounds(event_bytes=64)).feed(chunk)


def test_broken_utf8_is_replaced() -> None:
    """Bytes that are no UTF-8 become replacement characters."""
    assert parse([b"data: \xff\n\n"]) == [ServerEvent("message", "\ufffd")]


def test_endless_events_are_refused() -> None:
    """More events than a reply can have are an error, however small they are."""
    parser = EventParser(ReplyBounds(events=10))
    assert len(parser.feed(b"data:1\n\n" * 10)) == 10
    with pytest.raises(StreamTooLargeError, match="10 events"):
        parser.feed(b"data:1\n\n")
