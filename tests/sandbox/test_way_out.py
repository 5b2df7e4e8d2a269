"""The sandbox's one way out, when it is opened: exactly the listed hosts, by exactly their names."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from explorer.network.guard import Guard
from explorer.sandbox.egress_proxy import EgressProxy
from sandbox.cages import Room, room

SECRET = "what the server says"


class Server:
    """A loopback web server that notes who asks for what."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.port = 0

    @asynccontextmanager
    async def open(self) -> AsyncGenerator["Server"]:
        """Listen."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked.append((await reader.readuntil(b"\r\n\r\n")).decode("latin-1"))
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(SECRET)}\r\n\r\n{SECRET}".encode())
        await writer.drain()
        writer.close()


async def _to_loopback(_host: str, _port: int) -> list[str]:
    return ["127.0.0.1"]


@asynccontextmanager
async def way_out(folder: Path, server: Server) -> AsyncGenerator[tuple[Room, EgressProxy]]:
    """A confined room whose way out knows `pub.test` and `inside.test`; only the former may resolve to loopback."""
    guard = Guard(("pub.test",), resolve=_to_loopback)
    path = folder / "proxy.sock"
    async with (
        EgressProxy(guard, ("pub.test", "inside.test"), path, ports=(server.port,)) as proxy,
        room("bubblewrap", folder) as cell,
    ):
        cell.shell.place = replace(cell.shell.place, proxy=path)
        yield cell, proxy


ASK = """
import sys, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())
except Exception as error:
    print("refused", error)
"""


async def test_a_listed_host_is_reached(tmp_path: Path) -> None:
    """A program that knows proxies from its environment gets the page, and the server sees the right host."""
    async with Server().open() as server, way_out(tmp_path, server) as (cell, proxy):
        (cell.folder / "ask.py").write_text(ASK, encoding="utf-8")
        _, output = await cell.run(f"python3 ask.py http://pub.test:{server.port}/page")
    assert SECRET in output
    assert server.asked[0].startswith("GET /page HTTP/1.1\r\nHost: pub.test")
    assert proxy.refused == 0


async def test_everything_else_is_refused(tmp_path: Path) -> None:
    """Other hosts, addresses, names that lead inside, and the direct route bring nothing; the server sees nobody."""
    async with Server().open() as server, way_out(tmp_path, server) as (cell, proxy):
        (cell.folder / "ask.py").write_text(ASK, encoding="utf-8")
        urls = [f"http://{host}:{server.port}/" for host in ("evil.test", "127.0.0.1", "pub.test.", "inside.test")]
        _, output = await cell.run("\n".join(f"python3 ask.py {url}" for url in [*urls, "http://pub.test:22/"]))
        _, direct = await cell.run(f"env -u http_proxy -u HTTP_PROXY python3 ask.py http://127.0.0.1:{server.port}/")
    assert output.count("refused") == 5
    assert "refused" in direct
    assert SECRET not in output + direct
    assert server.asked == []
    assert proxy.refused == 4


TRICKS = [
    b"CONNECT evil\0.pub.test:%d HTTP/1.1\r\n\r\n",
    b"CONNECT PUB.test.:%d HTTP/1.1\r\n\r\n",
    b"CONNECT pub.test@evil.test:%d HTTP/1.1\r\n\r\n",
    b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n",
    b"CONNECT [::1]:%d HTTP/1.1\r\n\r\n",
    b"CONNECT pub.test:22 HTTP/1.1\r\n\r\n%.0d",
    b"GET / HTTP/1.1\r\nHost: pub.test:%d\r\n\r\n",
    b"GET http://pub.test:%d/ HTTP/1.1\r\nHost: pub.test\r\nHost: evil.test\r\n\r\n",
    b"GET ftp://pub.test:%d/ HTTP/1.1\r\nHost: pub.test\r\n\r\n",
    b"GET http://user@pub.test:%d/ HTTP/1.1\r\nHost: pub.test\r\n\r\n",
    b"nonsense %d\r\n\r\n",
]


@pytest.mark.parametrize("trick", TRICKS)
async def test_tricks_with_names_are_refused(trick: bytes, tmp_path: Path) -> None:
    """NUL bytes, trailing dots, users, addresses, two hosts and other ports get 403, and nothing is connected."""
    async with Server().open() as server:
        guard = Guard(("pub.test",), resolve=_to_loopback)
        async with EgressProxy(guard, ("pub.test",), tmp_path / "p", ports=(server.port,)) as proxy:
            reader, writer = await asyncio.open_unix_connection(tmp_path / "p")
            writer.write(trick % server.port)
            answer = await reader.read()
            writer.close()
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert proxy.refused == 1
    assert server.asked == []


async def test_the_tricks_have_teeth(tmp_path: Path) -> None:
    """The control: asked properly, the same proxy connects."""
    async with Server().open() as server:
        guard = Guard(("pub.test",), resolve=_to_loopback)
        async with EgressProxy(guard, ("pub.test",), tmp_path / "p", ports=(server.port,)):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "p")
            writer.write(b"CONNECT pub.test:%d HTTP/1.1\r\n\r\n" % server.port)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            assert SECRET.encode() in await reader.read()
            writer.close()
