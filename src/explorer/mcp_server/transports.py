"""How clients reach the server: stdin and stdout of its process, or HTTP on loopback with a token."""

import hmac
import io
import os
import select
import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Protocol

import anyio
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from explorer.network.server_connections import QuietServer, bounded_config
from explorer.schema.errors import ConfigError

LOOPBACK = "127.0.0.1"
PATH = "/mcp"
STDIN, STDOUT, STDERR = 0, 1, 2


class Transport(Protocol):
    """What carries the protocol."""

    async def serve(self, server: Server[Any]) -> None:
        """Serve until the client or `end` ends it."""
        ...

    def end(self) -> None:
        """End the serving; a signal handler calls it."""
        ...


class _Input(io.RawIOBase):
    """Reads a descriptor until its end, or until `end` is called: reading stdin alone could not be interrupted."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._woken, self._waker = os.pipe()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:  # noqa: ANN401 - any buffer
        ready, _, _ = select.select([self._descriptor, self._woken], [], [])
        content = b"" if self._woken in ready else os.read(self._descriptor, len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def end(self) -> None:
        os.write(self._waker, b".")


class _Output(io.RawIOBase):
    """Writes to a descriptor; when its reader has gone away, the input ends."""

    def __init__(self, descriptor: int, source: _Input) -> None:
        self._descriptor = descriptor
        self._source = source

    def writable(self) -> bool:
        return True

    def write(self, content: Any, /) -> int:  # noqa: ANN401 - any buffer
        try:
            return os.write(self._descriptor, content)
        except BrokenPipeError:
            self._source.end()
            return len(content)


class StdioTransport:
    """Serves the one client that started this process, until it closes stdin."""

    def __init__(self) -> None:
        self._source: _Input | None = None

    async def serve(self, server: Server[Any]) -> None:
        """Serve; meanwhile nothing else can write to stdout or read stdin, also no program that is started."""
        with _own_streams() as (wire_in, wire_out):
            self._source = source = _Input(wire_in)
            target = io.BufferedWriter(_Output(wire_out, source))
            stdin = anyio.wrap_file(io.TextIOWrapper(io.BufferedReader(source), encoding="utf-8", errors="replace"))
            stdout = anyio.wrap_file(io.TextIOWrapper(target, encoding="utf-8"))
            async with stdio_server(stdin, stdout) as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())

    def end(self) -> None:
        """End the input, as the client does."""
        if self._source is not None:
            self._source.end()


@contextmanager
def _own_streams() -> Generator[tuple[int, int]]:
    """Take over stdin and stdout: others read nothing from stdin, and what they print goes to stderr."""
    wire_in, wire_out = os.dup(STDIN), os.dup(STDOUT)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, STDIN)
    os.close(nothing)
    os.dup2(STDERR, STDOUT)
    try:
        yield wire_in, wire_out
    finally:
        os.dup2(wire_in, STDIN)
        os.dup2(wire_out, STDOUT)
        os.close(wire_in)
        os.close(wire_out)


class HttpTransport:
    """Serves clients on this machine that have the token.

    Raises:
        ConfigError: The port is in use.
    """

    def __init__(self, port: int, token: str) -> None:
        try:
            self._socket = socket.create_server((LOOPBACK, port))
        except OSError as error:
            hint = "choose another one: --port N; 0 takes a free one"
            raise ConfigError(f"port {port} cannot be used: {error.strerror}", hint=hint) from error
        self._port: int = self._socket.getsockname()[1]
        self._token = token
        self._server: QuietServer | None = None

    @property
    def url(self) -> str:
        """Where clients reach it."""
        return f"http://{LOOPBACK}:{self._port}{PATH}"

    async def serve(self, server: Server[Any]) -> None:
        """Serve; a page in a browser that names this address by a name of its own is refused, token or not."""
        hosts = [f"{LOOPBACK}:{self._port}", f"localhost:{self._port}"]
        security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts])
        app = server.streamable_http_app(streamable_http_path=PATH, transport_security=security)
        self._server = QuietServer(bounded_config(TokenGuard(app, self._token)))
        await self._server.serve(sockets=[self._socket])

    def end(self) -> None:
        """Take no more requests."""
        if self._server is not None:
            self._server.should_exit = True


class TokenGuard:
    """Lets requests with the token through, and reads nothing of others."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Compare in constant time."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("authorization", "").encode("latin-1", "replace")
        if hmac.compare_digest(given, self._expected):
            await self._app(scope, receive, send)
            return
        words = "the token is missing or wrong; explorer mcp token prints it\n"
        refusal = PlainTextResponse(words, 401, {"WWW-Authenticate": "Bearer"})
        await refusal(scope, receive, send)
