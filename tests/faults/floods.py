"""Servers that send without end, or what swells: as heads and endless chunks on a loopback port."""

import json
import socket
import threading
import time
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import count, repeat
from typing import Any, Protocol

from llm.conversations import ANTHROPIC, CHAT, RESPONSES
from model_servers import JsonObject

MIB = 1024 * 1024
DRIP_S = 0.1

Chunks = Callable[[str], Iterator[bytes]]
"""What is sent, on a wire."""

EVENTS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n"
WHOLE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n"
FAILED = b"HTTP/1.1 500 Oops\r\ncontent-type: text/plain\r\nconnection: close\r\n"


@dataclass(frozen=True)
class Flood:
    """One way to send too much."""

    chunks: Chunks
    says: str
    """A pattern that the error must match; empty where a reply comes all the same."""
    head: bytes = EVENTS
    coding: str = ""
    """The content encoding: `gzip`, `deflate` or `br`."""
    is_head_open: bool = False
    """Whether what is sent belongs to the headers."""
    is_slow: bool = False
    """Whether it drips, and patience must be short."""


def event(data: object) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def text_piece(wire: str, text: str) -> bytes:
    if wire == ANTHROPIC:
        return event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})
    if wire == CHAT:
        return event({"choices": [{"index": 0, "delta": {"content": text}}]})
    assert wire == RESPONSES
    return event({"type": "response.output_text.delta", "output_index": 0, "delta": text})


def arguments_piece(wire: str, text: str) -> bytes:
    if wire == ANTHROPIC:
        return event({"type": "content_block_delta", "index": 0, "delta": {"partial_json": text}})
    if wire == CHAT:
        return event({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}}]})
    return event({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": text})


def new_call(wire: str, number: int) -> bytes:
    if wire == ANTHROPIC:
        block: JsonObject = {"type": "tool_use", "id": f"c{number}", "name": "list_files", "input": {}}
        return event({"type": "content_block_start", "index": number, "content_block": block})
    if wire == CHAT:
        call = {"index": number, "id": f"c{number}", "function": {"name": "list_files", "arguments": "{}"}}
        return event({"choices": [{"delta": {"tool_calls": [call]}}]})
    item = {"type": "function_call", "call_id": f"c{number}", "name": "list_files", "arguments": ""}
    return event({"type": "response.output_item.added", "output_index": number, "item": item})


def opening(wire: str) -> bytes:
    """Begin a reply whose first block is text and whose first call is open."""
    if wire == ANTHROPIC:
        block = {"type": "text", "text": ""}
        return event({"type": "content_block_start", "index": 0, "content_block": block})
    return new_call(wire, 0)


def whole_begin(wire: str) -> bytes:
    """Begin a reply that is not streamed, within its text."""
    if wire == ANTHROPIC:
        return b'{"type": "message", "content": [{"type": "text", "text": "'
    return (
        b'{"choices": [{"message": {"content": "' if wire == CHAT else b'{"object": "response", "output": [{"text": "'
    )


def endless(piece: Callable[[str, str], bytes], text: str = "many words " * 100) -> Chunks:
    def chunks(wire: str) -> Iterator[bytes]:
        yield opening(wire)
        yield from repeat(piece(wire, text) * 16)

    return chunks


def many_calls(wire: str) -> Iterator[bytes]:
    yield from (new_call(wire, number) for number in count())


def many_choices(wire: str) -> Iterator[bytes]:
    choices = [{"index": number, "delta": {"content": "many words " * 10}} for number in range(1, 10_001)]
    yield opening(wire)
    for _ in range(20):
        yield event({"choices": choices})


def one_line(_wire: str) -> Iterator[bytes]:
    yield b"data: "
    yield from repeat(b"x" * MIB, 100)


def values(begin: bytes) -> Chunks:
    """A few bytes each that take many times as much once parsed."""

    def chunks(_wire: str) -> Iterator[bytes]:
        yield begin
        yield from repeat(b'{"":1},' * 40_000)

    return chunks


def nested(_wire: str) -> Iterator[bytes]:
    yield b'data: {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n\n"


def many_bytes(begin: bytes = b"", piece: bytes = b"x" * MIB) -> Chunks:
    def chunks(_wire: str) -> Iterator[bytes]:
        yield begin
        yield from repeat(piece)

    return chunks


def drip(piece: bytes) -> Chunks:
    def chunks(_wire: str) -> Iterator[bytes]:
        while True:
            yield piece
            time.sleep(DRIP_S)

    return chunks


def bomb(begin: Chunks, mib: int) -> Chunks:
    """Something that is a thousand times smaller on its way."""

    def chunks(wire: str) -> Iterator[bytes]:
        yield from begin(wire)
        yield from repeat(b" " * MIB, mib)

    return chunks


def begin_event(_wire: str) -> Iterator[bytes]:
    yield b"data: "


def begin_comments(_wire: str) -> Iterator[bytes]:
    yield from repeat(b": a comment that is no content and is not kept\n\n" * 20_000, 1_100)


def begin_whole(wire: str) -> Iterator[bytes]:
    yield whole_begin(wire)


def begin_nothing(_wire: str) -> Iterator[bytes]:
    yield b""


def bombs() -> Iterator[tuple[str, Flood]]:
    bodies = {
        "event": (begin_event, EVENTS, "in one event"),
        "comments": (begin_comments, EVENTS, "bytes in one answer"),
        "JSON": (begin_whole, WHOLE, "in a reply that is not streamed"),
        "error": (begin_nothing, FAILED, "status 500"),
    }
    for coding in ("gzip", "deflate", *(["br"] if find_spec("brotli") else [])):
        for name, (begin, head, says) in bodies.items():
            yield f"1 GB of {name} as {coding}", Flood(bomb(begin, 1024), says, head, coding)


ENDED = "text and arguments in one reply"
FLOODS: Mapping[str, Flood] = {
    "endless text": Flood(endless(text_piece), ENDED),
    "endless wide text": Flood(endless(text_piece, "\U0001f600" + "a" * 1_000), ENDED),
    "endless arguments": Flood(endless(arguments_piece), ENDED),
    "endless JSON body": Flood(
        lambda wire: iter((whole_begin(wire), *repeat(b"x" * MIB, 1_000))), "not streamed", WHOLE
    ),
    "endless small values": Flood(values(b'data: {"choices": ['), "in one event"),
    "endless small values in JSON": Flood(values(b'{"choices": ['), "not streamed", WHOLE),
    "millions of tiny events": Flood(many_bytes(piece=b"data:{}\n\n" * 4_000), "1,000,000 events"),
    "millions of pieces of one letter": Flood(endless(text_piece, "a"), f"1,000,000 events|{ENDED}"),
    "millions of calls": Flood(many_calls, "blocks and calls in one reply|text and arguments"),
    "20 times 10,000 choices": Flood(many_choices, "before the reply was complete"),
    "one line of 100 MB": Flood(one_line, "in one event"),
    "100,000 levels": Flood(nested, "nested deeper"),
    "endless comments": Flood(many_bytes(piece=b": nothing is here that is kept\n\n" * 2_000), "bytes in one answer"),
    "an endless header": Flood(many_bytes(b"x-big: "), "broken HTTP answer", EVENTS, is_head_open=True),
    "endless headers": Flood(many_bytes(piece=b"x-one: 1\r\n" * 4_000), "headers", EVENTS, is_head_open=True),
    "an endless error": Flood(many_bytes(), "status 500", FAILED),
    "an endless page": Flood(many_bytes(b"<title>Hi</title>"), "a web page", EVENTS.replace(b"event-stream", b"html")),
    "a dripping event": Flood(drip(b"x"), "no content", is_slow=True),
    "a dripping error": Flood(drip(b"x"), "status 500|no content", FAILED, is_slow=True),
    "a dripping header": Flood(drip(b"x: y\r\n"), "no content", EVENTS, is_head_open=True, is_slow=True),
    "pings only": Flood(drip(b'event: ping\ndata: {"type": "ping"}\n\n'), "no content", is_slow=True),
    **dict(bombs()),
}


class _Compressor(Protocol):
    """What zlib's compressors do."""

    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


class _Plain:
    """No compression, with the methods of a compressor."""

    def compress(self, data: bytes) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


class _Brotli:
    """Brotli's compressor under zlib's names."""

    def __init__(self) -> None:
        brotli: Any = import_module("brotli")  # Not everyone has it.
        self._compressor = brotli.Compressor(quality=1)

    def compress(self, data: bytes) -> bytes:
        return self._compressor.process(data)

    def flush(self) -> bytes:
        return self._compressor.finish()


def _coded(chunks: Iterator[bytes], coding: str) -> Iterator[bytes]:
    makers: Mapping[str, Callable[[], _Compressor]] = {
        "": _Plain,
        "gzip": lambda: zlib.compressobj(9, zlib.DEFLATED, 31),
        "deflate": lambda: zlib.compressobj(9),
        "br": _Brotli,
    }
    compressor = makers[coding]()
    for chunk in chunks:
        yield compressor.compress(chunk)
    yield compressor.flush()


@contextmanager
def flooding(flood: Flood, wire: str) -> Generator[str]:
    """Send a flood to whoever connects; yield the base URL."""
    listening = socket.create_server(("127.0.0.1", 0))
    closing = threading.Event()
    thread = threading.Thread(target=_serve, args=(listening, flood, wire, closing), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}" + ("" if wire == ANTHROPIC else "/v1")
    finally:
        closing.set()
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(10)


def _serve(listening: socket.socket, flood: Flood, wire: str, closing: threading.Event) -> None:
    while not closing.is_set():
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with connection, suppress(OSError):
            connection.recv(65_536)
            connection.sendall(flood.head)
            _send(connection, flood, wire, closing)


def _send(connection: socket.socket, flood: Flood, wire: str, closing: threading.Event) -> None:
    if not flood.is_head_open:
        coding = f"content-encoding: {flood.coding}\r\n" if flood.coding else ""
        connection.sendall(f"{coding}\r\n".encode())
    for chunk in _coded(flood.chunks(wire), flood.coding):
        if closing.is_set():
            return
        if chunk:
            connection.sendall(chunk)
