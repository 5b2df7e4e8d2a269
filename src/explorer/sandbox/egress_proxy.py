"""The one way out of a sandbox, when the user opens it: a proxy that knows a list of hosts, and refuses all others."""

import asyncio
import re
from collections.abc import Collection
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from explorer.network.guard import Guard
from explorer.schema.errors import ToolError

MAX_HEAD_BYTES = 16_384
HEAD_S = 10.0
CONNECT_S = 15.0
CHUNK_BYTES = 65_536
REQUEST = re.compile(rb"^([A-Z]{3,10}) (\S{1,8000}) HTTP/1\.[01]\r\n")
AUTHORITY = re.compile(r"^([a-z0-9.-]{1,253}):(\d{1,5})$")
WEB_PORTS = (80, 443)
CONNECTED = b"HTTP/1.1 200 Connection established\r\n\r\n"
ONE_ANSWER = re.compile(rb"\r\n(?:proxy-)?connection:[^\r\n]*", re.IGNORECASE)


@dataclass(frozen=True)
class _Wanted:
    """Where a request is to go, and what is to be sent there first."""

    host: str
    port: int
    first: bytes
    is_tunnel: bool


class EgressProxy:
    """An HTTP proxy on a socket file. Names are looked up here and judged; only listed hosts are ever looked up."""

    def __init__(self, guard: Guard, hosts: Collection[str], path: Path, ports: Collection[int] = WEB_PORTS) -> None:
        self._guard = guard
        self._ports = frozenset(ports)
        self._hosts = frozenset(host.lower() for host in hosts)
        self._path = path
        self._stack = AsyncExitStack()
        self.refused = 0
        """Requests turned away so far."""

    async def __aenter__(self) -> Self:
        """Listen."""
        self._path.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(self._serve, self._path, limit=MAX_HEAD_BYTES)
        self._stack.callback(self._path.unlink, missing_ok=True)
        await self._stack.enter_async_context(server)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop listening."""
        await self._stack.aclose()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HEAD_S):
                head = await reader.readuntil(b"\r\n\r\n")
            wanted = self._admitted(head)
            if wanted is None:
                self.refused += 1
                writer.write(_answer(403, "this host is not on the list of EXPLORER_SHELL_HOSTS"))
                return
            await self._forward(wanted, reader, writer)
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError, ToolError):
            with suppress(OSError):
                writer.write(_answer(502, "the host cannot be reached"))
        finally:
            with suppress(OSError):
                await writer.drain()
                writer.close()

    def _admitted(self, head: bytes) -> _Wanted | None:
        """Return where a request may go; None when it may not."""
        match = REQUEST.match(head)
        if match is None or b"\0" in head or not head.isascii():
            return None
        method, target = match[1].decode(), match[2].decode()
        wanted = _tunnel(target) if method == "CONNECT" else _plain(method, target, head[match.end() :])
        return wanted if wanted and wanted.host in self._hosts and wanted.port in self._ports else None

    async def _forward(self, wanted: _Wanted, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(CONNECT_S):
            address = (await self._guard.addresses(wanted.host, wanted.port))[0]
            there_reader, there_writer = await asyncio.open_connection(address, wanted.port)
        try:
            if wanted.is_tunnel:
                writer.write(CONNECTED)
            there_writer.write(wanted.first)
            async with asyncio.TaskGroup() as group:
                group.create_task(_pump(reader, there_writer))
                group.create_task(_pump(there_reader, writer))
        finally:
            there_writer.close()


def _tunnel(target: str) -> _Wanted | None:
    match = AUTHORITY.match(target.lower())
    return _Wanted(match[1], int(match[2]), b"", is_tunnel=True) if match else None


def _plain(method: str, target: str, rest: bytes) -> _Wanted | None:
    """Return an absolute URL of the plain web; one request a connection, so that no second one slips past the list."""
    try:
        parts = urlsplit(target)
        port = parts.port or 80
    except ValueError:
        return None
    authority = f"{parts.netloc.lower()}" if ":" in parts.netloc else f"{parts.netloc.lower()}:80"
    if parts.scheme != "http" or not AUTHORITY.match(authority) or rest.lower().count(b"host:") != 1:
        return None
    path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
    headers = ONE_ANSWER.sub(b"", b"\r\n" + rest)[2:]
    # The list was asked for the URL's host, so that one is named to the server too.
    lines = [line for line in headers.split(b"\r\n") if not line.lower().startswith(b"host:")]
    first = [f"{method} {path} HTTP/1.1".encode(), f"Host: {parts.netloc}".encode(), b"Connection: close", *lines]
    return _Wanted(authority.partition(":")[0], port, b"\r\n".join(first), is_tunnel=False)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on until one side ends."""
    with suppress(OSError):
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


def _answer(status: int, words: str) -> bytes:
    body = f"{words}\n".encode()
    kind = {403: "Forbidden", 502: "Bad Gateway"}[status]
    return f"HTTP/1.1 {status} {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
