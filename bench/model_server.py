"""A fast model server on loopback, in a process of its own: both wire protocols, scripted by what it is asked.

    python bench/model_server.py [--latency SECONDS]

It prints its port, answers until its standard input ends, and tells what came at `GET /stats`. It keeps no state that
an answer depends on: who asks, and after how many turns, is read off the request's own bytes.
"""

import argparse
import asyncio
import json
import sys
import time
from functools import lru_cache
from typing import cast

from cache_simulator import Simulator
from recording import Recorded, shares
from scenarios import MARKER, scenario_named
from wires import ANTHROPIC, OPENAI, compact, render

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
ASSISTANT = (b'"role":"assistant"', b'"role": "assistant"')


@lru_cache(maxsize=20_000)
def answer(wire: str, name: str, role: str, number: int, turn: int) -> bytes:
    """A whole HTTP response, one chunk an event, as servers flush them."""
    events = render(wire, scenario_named(name).reply(role, number, turn), turn)
    return b"".join([HEAD, *(b"%x\r\n%s\r\n" % (len(event), event) for event in events), b"0\r\n\r\n"])


class Counts:
    """What has come so far."""

    def __init__(self, latency_s: float) -> None:
        self.latency_s = latency_s
        self.connections = 0
        """On which something was asked."""
        self.recorded: list[Recorded] = []
        self.since = 0
        """How often everything was forgotten."""

    def forget(self) -> None:
        """Begin anew: what came so far was for warming up."""
        self.connections, self.recorded, self.since = 0, [], self.since + 1

    def stats(self) -> bytes:
        """As JSON; worked out only when asked, so that it costs nothing while a contestant runs."""
        found = shares(self.recorded)
        simulator = Simulator()
        for one in self.recorded:
            if one.wire == ANTHROPIC:
                simulator.take(one.body, one.at)
        served = simulator.share if any(one.wire == ANTHROPIC for one in self.recorded) else None
        total = {"requests": len(self.recorded), "bytes": sum(len(one.body) for one in self.recorded)}
        return compact({**total, "connections": self.connections, "cache_share": served, **found})


class Connection(asyncio.Protocol):
    """One client's connection: requests one after another."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._buffer = bytearray()
        self._needed = 0
        self._counted_in = -1
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep it."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Collect a request; answer it when it is whole."""
        self._buffer += data
        if len(self._buffer) < self._needed:
            return
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._buffer[:end]).lower()
        at = head.find(b"content-length:")
        length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        self._needed = end + 4 + length
        if len(self._buffer) >= self._needed:
            body = bytes(self._buffer[end + 4 : self._needed])
            del self._buffer[: self._needed]
            self._needed = 0
            self._answer(head, body)

    def _answer(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"get"):
            self._print_result(head.split(b" ", 2)[1])
            return
        if self._counted_in != self._counts.since:
            self._counted_in = self._counts.since
            self._counts.connections += 1
        wire = ANTHROPIC if b"/messages" in head[: head.index(b"\r\n")] else OPENAI
        found = MARKER.search(body)
        if found is None:
            self._write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
            return
        name, role, number = found[1].decode(), found[2].decode(), int(found[3])
        turn = sum(body.count(words) for words in ASSISTANT)
        self._counts.recorded.append(Recorded(wire, f"{name}:{role}:{number}", body, time.monotonic()))
        ready = answer(wire, name, role, number, turn)
        if self._counts.latency_s:
            asyncio.get_running_loop().call_later(self._counts.latency_s, self._write, ready)
        else:
            self._write(ready)

    def _print_result(self, path: bytes) -> None:
        if path == b"/reset":
            self._counts.forget()
        found = self._counts.stats() if path == b"/stats" else b'{"data":[{"id":"bench"}]}'
        kind = b"content-type: application/json\r\n"
        self._write(b"HTTP/1.1 200 OK\r\n%scontent-length: %d\r\n\r\n%s" % (kind, len(found), found))

    def _write(self, content: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(content)


async def serve(latency_s: float) -> None:
    """Serve until standard input ends."""
    loop = asyncio.get_running_loop()
    counts = Counts(latency_s)
    server = await loop.create_server(lambda: Connection(counts), "127.0.0.1", 0, backlog=2048)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.0, metavar="SECONDS")
    try:
        from uvloop import run  # noqa: PLC0415 - faster where it is there
    except ImportError:
        from asyncio import run  # noqa: PLC0415 - the fallback
    run(serve(parser.parse_args().latency))


if __name__ == "__main__":
    main()
