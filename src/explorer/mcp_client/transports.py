"""How messages reach an MCP server: the pipes of a program, confined where a sandbox holds, or guarded HTTP.

The SDK's own pipes read a line of any length, and its HTTP client any body; these do not.
"""

import asyncio
import json
import os
import re
import signal
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCMessage, jsonrpc_message_adapter

from explorer.network.guard import Guard, UrlRefusedError
from explorer.network.transport import GuardedTransport
from explorer.sandbox.confinement import Launch
from explorer.schema.errors import FIRST_ERROR_STATUS, TIMEOUT_STATUSES, ToolError
from explorer.schema.mcp import McpServer
from explorer.schema.network import Network
from explorer.text.rendering import own
from explorer.text.sanitize import single_line

MAX_MESSAGE_BYTES = 8 * 1024 * 1024
MAX_UNASKED_BYTES = 32 * 1024 * 1024
"""What a server may send from one request to the next; a body over HTTP has the same limit."""
MAX_UNASKED_STREAMS = 20
"""How often a stream over HTTP is opened again from one request to the next: the server says how soon that is done."""
MAX_LAST_WORDS = 2_000
LAST_WORDS_S = 0.5
FIRST_REDIRECT_STATUS = 300
FIRST_SERVER_STATUS = 500
END_S = 2.0
"""Seconds that a server has to end by itself once its input is closed."""

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


@dataclass
class TransportState:
    """What a transport saw go wrong, for people; the SDK says only that the connection closed."""

    problem: str = ""
    last_words: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_LAST_WORDS))
    """The end of what a program wrote to stderr."""
    status: int = 0
    """The latest HTTP status."""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when nothing more will come."""

    @contextmanager
    def ended(self) -> Generator[None]:
        """Say at the end that nothing more will come."""
        try:
            yield
        finally:
            self.over.set()

    @property
    def words(self) -> str:
        """What is known; empty: nothing."""
        said = single_line("".join(self.last_words).strip()[-300:])
        if self.problem and said:
            return f"{self.problem}; it said: {said}"
        return self.problem or said

    @property
    def is_refused(self) -> bool:
        """Whether the latest request was not taken: it was sent elsewhere, or is at fault itself."""
        return FIRST_REDIRECT_STATUS <= self.status < FIRST_SERVER_STATUS and self.status not in TIMEOUT_STATUSES

    def explained(self, words: str) -> str:
        """Return an error's words with the HTTP status, of which the SDK says nothing."""
        if self.status in {401, 403}:
            return f"its token is missing or not accepted: HTTP status {self.status}"
        return f"{words} (HTTP status {self.status})" if self.status >= FIRST_ERROR_STATUS else words


@asynccontextmanager
async def program(launch: Launch, state: TransportState) -> AsyncGenerator[tuple[Incoming, Outgoing]]:
    """Start a stdio server and connect to it; at the end nothing of it is left.

    Raises:
        OSError: It cannot be started.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *launch.arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=launch.folder,
            env=dict(launch.environment),
            pass_fds=launch.descriptors,
            start_new_session=True,
            limit=MAX_MESSAGE_BYTES,
        )
        if launch.gate:
            launch.gate.open()
    finally:
        launch.close()
    pipes = Pipes(process, state)
    try:
        async with anyio.create_task_group() as group:
            for task in (pipes.read, pipes.write, pipes.hear):
                group.start_soon(task)
            try:
                yield pipes.incoming, pipes.outgoing
            finally:
                with anyio.CancelScope(shield=True):
                    await pipes.close(launch.ending)
                group.cancel_scope.cancel()
    finally:
        pipes.kill()


class Pipes:
    """The pipes of one program as the SDK's streams."""

    def __init__(self, process: asyncio.subprocess.Process, state: TransportState) -> None:
        self._process = process
        self._state = state
        self._is_closing = False
        self._all_heard = anyio.Event()
        self._unasked = 0
        """Bytes since the latest request."""
        self._arrived, self.incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        self.outgoing, self._leaving = anyio.create_memory_object_stream[SessionMessage](0)

    async def read(self) -> None:
        """Pass messages on, a line each; lines that are none are left out, as some programs print others."""
        assert self._process.stdout is not None
        async with self._arrived:
            # However it ends: whoever owns the connection closes it then.
            with self._state.ended(), suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                while line := await self._line(self._process.stdout):
                    if (message := _message_in(line)) is not None:
                        await self._arrived.send(SessionMessage(message))

    async def _line(self, stdout: asyncio.StreamReader) -> bytes:
        """Return the next line; empty at the end, or where the server floods."""
        try:
            line = await stdout.readline()
        except ValueError:
            self._state.problem = f"it sent a message of more than {MAX_MESSAGE_BYTES:,} bytes"
            return b""
        self._unasked += len(line)
        if self._unasked > MAX_UNASKED_BYTES:
            self._state.problem = f"it sent more than {MAX_UNASKED_BYTES:,} bytes without a request"
            return b""
        if not line and not self._is_closing:
            with suppress(TimeoutError):
                async with asyncio.timeout(END_S):
                    await self._process.wait()
            code = self._process.returncode
            self._state.problem = "it closed its output" if code is None else f"it ended with exit code {code}"
        return line

    async def write(self) -> None:
        """Pass messages to the program."""
        stdin = self._process.stdin
        assert stdin is not None
        async with self._leaving:
            async for one in self._leaving:
                self._unasked = 0
                text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    stdin.write(f"{text}\n".encode())
                    await stdin.drain()
                except OSError:
                    # Closed here, so that requests under way learn of it.
                    await self._arrived.aclose()
                    return

    async def hear(self) -> None:
        """Keep the end of what the program writes to stderr."""
        assert self._process.stderr is not None
        while part := await self._process.stderr.read(4096):
            self._state.last_words.extend(part.decode(errors="replace"))
        self._all_heard.set()

    async def close(self, ending: int) -> None:
        """End the program: by itself once its input is closed, or by the signal that ends its sandbox."""
        self._is_closing = True
        self.incoming.close()
        self.outgoing.close()
        assert self._process.stdin is not None
        self._process.stdin.close()
        for _ in range(2):
            with suppress(TimeoutError):
                async with asyncio.timeout(END_S):
                    await self._process.wait()
            if self._process.returncode is not None:
                with anyio.move_on_after(LAST_WORDS_S):
                    await self._all_heard.wait()
                return
            with suppress(ProcessLookupError):
                self._process.send_signal(ending)

    def kill(self) -> None:
        """Kill what is left of its group of processes."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        # A pipe that nobody reads to its end stays open otherwise.
        self._process._transport.close()  # type: ignore[attr-defined] # noqa: SLF001 # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def _message_in(line: bytes) -> JSONRPCMessage | None:
    """Return the message of a line; None where it is none.

    Without NaN, which JSON does not have: else a call would wait for its answer.
    """
    content = _without_halves(line)
    try:
        return jsonrpc_message_adapter.validate_json(content, by_name=False)
    except ValueError:
        pass
    try:
        value: object = json.loads(content, parse_constant=lambda _name: None)
        return jsonrpc_message_adapter.validate_json(json.dumps(value, allow_nan=False), by_name=False)
    except (ValueError, RecursionError):
        return None


ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u[dD][89a-fA-F]..|.)", re.DOTALL)
"""An escape of JSON; those of a pair of surrogates are one."""
HALF_BYTES = 6


def _without_halves(content: bytes) -> bytes:
    """Return JSON as UTF-8, with `?` for each half of a pair of surrogates, which Python's json writes."""

    def whole(found: re.Match[bytes]) -> bytes:
        return b"?" if len(found[0]) == HALF_BYTES else found[0]

    return ESCAPE.sub(whole, content.decode(errors="replace").encode())


class GuardedMcpTransport(httpx2.AsyncBaseTransport):
    """Sends requests to judged addresses only, and reads bounded answers that are not compressed."""

    def __init__(self, guard: Guard, network: Network, state: TransportState) -> None:
        self._guard = guard
        self._below = GuardedTransport(guard, outbound=network)
        self._state = state
        self._streams = 0
        """Opened since the latest request."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request.

        Raises:
            UrlRefusedError: The guard refuses the address.
            ConnectError: The server ends its streams over and over.
        """
        self._streams = self._streams + 1 if request.method == "GET" else 0
        if self._streams > MAX_UNASKED_STREAMS:
            raise httpx2.ConnectError(f"it ended {MAX_UNASKED_STREAMS} streams without a request", request=request)
        try:
            self._guard.check_url(str(request.url))
            response = await self._below.handle_async_request(request)
        except (UrlRefusedError, httpx2.TransportError) as error:
            self._state.problem = single_line(str(error), 300)
            raise
        if request.method == "POST":
            self._state.status = response.status_code
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            self._state.problem = "it sent a compressed answer, though none was asked for"
            raise httpx2.DecodingError(self._state.problem, request=request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Bounded(response.stream, self._state)
        return response

    async def aclose(self) -> None:
        """Close all connections."""
        await self._below.aclose()


class _Bounded(httpx2.AsyncByteStream):
    """A body that ends with an error where it is too long; passed on by lines, in which no character is cut."""

    def __init__(self, below: httpx2.AsyncByteStream, state: TransportState) -> None:
        self._below = below
        self._state = state

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        begun = bytearray()
        async for part in self._below:
            size += len(part)
            if size > MAX_UNASKED_BYTES:
                self._state.problem = f"it sent more than {MAX_UNASKED_BYTES:,} bytes in one answer"
                raise httpx2.ReadError(self._state.problem)
            end = max(part.rfind(b"\n"), part.rfind(b"\r")) + 1
            begun += part[:end]
            if end:
                yield _without_halves(bytes(begun))
                begun.clear()
            begun += part[end:]
        yield _without_halves(bytes(begun))

    async def aclose(self) -> None:
        await self._below.aclose()


def guard_for(server: McpServer, allowed: tuple[str, ...]) -> Guard:
    """Return the guard for one server: its address may be an internal one only where the user wrote an internal one.

    A public name that leads to an internal address is refused.

    Raises:
        ToolError: A token would be sent without encryption.
    """
    try:
        url = Guard(allowed).check_url(server.url)
    except UrlRefusedError:
        return Guard((*allowed, httpx2.URL(server.url).host))
    if server.headers and url.scheme == "http" and url.host not in allowed:
        raise ToolError(own("its token would be sent without encryption: give its address with https"))
    return Guard(allowed)


@asynccontextmanager
async def over_http(
    server: McpServer, allowed: tuple[str, ...], network: Network, state: TransportState
) -> AsyncGenerator[tuple[object, object]]:
    """Connect to a server over streamable HTTP."""
    guard = guard_for(server, allowed)
    headers = {name: value.get_secret_value() for name, value in server.headers.items()}
    async with (
        httpx2.AsyncClient(
            transport=GuardedMcpTransport(guard, network, state),
            trust_env=False,
            headers={**headers, "Accept-Encoding": "identity"},
            timeout=httpx2.Timeout(server.start_s, read=server.timeout_s + server.start_s),
        ) as client,
        streamable_http_client(server.url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as streams,
    ):
        yield streams
