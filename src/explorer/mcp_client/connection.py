"""The connection to one MCP server: opened and closed by one task, lost and opened once more, bounded in time.

The SDK's client has to be closed by the task that opened it. So a task of its own does both, and whoever calls a tool
waits for what it opened.
"""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client.session import ClientSession, IncomingMessage
from mcp.types import (
    CONNECTION_CLOSED,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    AudioContent,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    Implementation,
    PaginatedRequestParams,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
    ToolListChangedNotification,
)
from pydantic import ValidationError

from explorer.mcp_client.listing import digest
from explorer.mcp_client.transports import TransportState
from explorer.schema.errors import ExplorerError, ToolError
from explorer.schema.mcp import McpServer
from explorer.schema.version import __version__
from explorer.text.rendering import code, own
from explorer.text.sanitize import Redactor, single_line

MAX_TOOLS = 2_000
"""The number of tools of one server that are known; further ones are left out."""
MAX_PAGES = 100
CLOSE_S = 10.0
SILENT = logging.NullHandler()
MAX_TEXT_CHARS = 1_000_000
"""The length of a result that is kept."""
MOST_LOSSES = 1
"""How often a connection is opened again before a call succeeds."""
MOST_TIMEOUTS = 2
"""Calls in a row without an answer, after which the server counts as hanging."""
UNDONE = frozenset({INVALID_PARAMS, METHOD_NOT_FOUND})
"""Errors after which a server did nothing. After any other it may have: also where a proxy answers for it, or its words
are not the protocol's."""
SESSION_OVER = "Session terminated"
"""The SDK's words where a server over HTTP does not know the session any more; it did nothing then."""
FAILURES = (
    MCPError,
    OSError,
    httpx2.HTTPError,
    httpx2.InvalidURL,
    ValidationError,
    ExplorerError,
    ExceptionGroup,
    RuntimeError,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
)
"""What opening or using a connection can raise."""
Open = Callable[[TransportState], AbstractAsyncContextManager[Any]]
"""Opens the streams to the server."""
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Answer:
    """What a tool of a server returned."""

    text: str
    is_error: bool


@dataclass
class Opened:
    """A connection at work."""

    session: ClientSession
    tools: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    """What the server listed, by its names."""


@dataclass
class ConnectionAttempt:
    """One attempt to have a connection, from the wish for it until it is closed."""

    ready: asyncio.Future[Opened]
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    state: TransportState = field(default_factory=TransportState)
    """What its transport saw; `state.over` is set when it is to be closed."""
    is_stale: bool = False
    """Whether the server said that its list has changed since it was read."""


class ServerError(ToolError):
    """A server that cannot be used, or did not answer."""


class ServerConnection:
    """The connection to one server; `connected` makes it and its owner."""

    def __init__(self, server: McpServer, open_streams: Open) -> None:
        self.server = server
        self._open_streams = open_streams
        self._wishes: asyncio.Queue[ConnectionAttempt | None] = asyncio.Queue()
        """None: there will be no further one."""
        self._current: ConnectionAttempt | None = None
        self._gone = ""
        """Why it is not opened again in this session."""
        self._losses = 0
        self._timeouts = 0

    async def own(self) -> None:
        """Open the connection whenever it is wanted, and close it; the one task that does."""
        try:
            while (attempt := await self._wishes.get()) is not None:
                try:
                    await self._hold(attempt)
                except FAILURES as error:
                    attempt.state.problem = attempt.state.problem or attempt.state.explained(_words(error))
                finally:
                    self._settle(attempt)
        finally:
            # Whatever ended the owner: nobody waits for a connection that none opens.
            self._gone = self._gone or "its connection has ended"

    def _settle(self, attempt: ConnectionAttempt) -> None:
        """Record that a connection is over, and end all waits for it."""
        words = attempt.state.words
        attempt.state.over.set()
        self._current = None
        self._losses += 1
        if self._losses > MOST_LOSSES and not self._gone:
            self._gone = f"{words or 'it was lost'}; it was tried twice and is left alone now"
        if not attempt.ready.done():
            attempt.ready.set_exception(self._error(words or "it does not answer"))
            attempt.ready.exception()  # looked at, in case nobody waits for it any more
        attempt.closed.set()

    async def _hold(self, attempt: ConnectionAttempt) -> None:
        """Open it, and keep it open until it is lost or closed."""

        async def heard(message: IncomingMessage) -> None:
            if isinstance(message, ToolListChangedNotification):
                attempt.is_stale = True

        # The SDK logs what goes wrong with a traceback; what matters of it is in our own messages.
        logging.getLogger("mcp").addHandler(SILENT)
        about = Implementation(name="explorer", version=__version__)
        streams = self._open_streams(attempt.state)
        start = asyncio.timeout(self.server.start_s)
        try:
            async with start, Client(streams, message_handler=heard, client_info=about, cache=None) as client:
                opened = Opened(client.session)
                opened.tools = await _all_tools(client.session)
                start.reschedule(None)
                attempt.ready.set_result(opened)
                await attempt.state.over.wait()
        except TimeoutError:
            if not start.expired():
                raise
            attempt.state.problem = f"it did not list its tools within {self.server.start_s:g} s"

    async def tools(self) -> Mapping[str, Tool]:
        """Return what the server lists now, by its own names; opens the connection where it is not open.

        Raises:
            ServerError: It cannot be reached.
        """
        attempt, opened = await self._connected()
        if attempt.is_stale:
            attempt.is_stale = False
            try:
                async with asyncio.timeout(self.server.start_s):
                    opened.tools = await _all_tools(opened.session)
            except (*FAILURES, TimeoutError) as error:
                raise self._error(_words(error)) from error
        return opened.tools

    async def call(self, tool: str, arguments: Mapping[str, Any], progress: Progress, *, may_repeat: bool) -> Answer:
        """Call a tool; once more after a lost connection, where that can do no harm.

        Raises:
            ServerError: There is no answer; says whether the call may have taken effect.
        """
        for _ in range(2):
            attempt, opened = await self._connected()
            try:
                answer = await self._asked(opened.session, tool, arguments, progress)
            except TimeoutError as error:
                self._count_timeout(attempt)
                why = f"it did not answer within {self.server.timeout_s:g} s"
                raise self._unanswered(why, may_repeat=may_repeat) from error
            except ValidationError as error:
                raise self._unanswered("its answer is not one of the protocol", may_repeat=may_repeat) from error
            except FAILURES as error:
                await self._check_lost(attempt, error, may_repeat=may_repeat)
                continue
            self._losses = self._timeouts = 0
            return answer
        raise self._error(self._gone or "it was lost twice")

    def _count_timeout(self, attempt: ConnectionAttempt) -> None:
        self._timeouts += 1
        if self._timeouts >= MOST_TIMEOUTS:
            self._gone = f"it did not answer {MOST_TIMEOUTS} calls in a row"
            attempt.state.over.set()

    async def _check_lost(self, attempt: ConnectionAttempt, error: BaseException, *, may_repeat: bool) -> None:
        """Return where the connection was lost and the call can be made again.

        Raises:
            ServerError: It was not lost, or the call cannot be repeated.
        """
        is_over = isinstance(error, MCPError) and error.message == SESSION_OVER
        if isinstance(error, MCPError) and error.code != CONNECTION_CLOSED and not is_over:
            why = attempt.state.explained(single_line(error.message, 2_000))
            if not may_repeat and not attempt.state.is_refused and error.code not in UNDONE:
                raise self._unanswered(why, may_repeat=may_repeat) from error
            words = "The MCP server {name} refused: {why}"
            raise ServerError(own(words, name=code(self.server.name), why=why)) from error
        attempt.state.over.set()
        await attempt.closed.wait()  # then all is known of what went wrong
        if not may_repeat and not is_over:
            why = attempt.state.words or _words(error)
            raise self._unanswered(f"the connection was lost ({why})", may_repeat=may_repeat) from error

    async def _asked(self, session: ClientSession, tool: str, arguments: Mapping[str, Any], show: Progress) -> Answer:
        async def heard(progress: float, total: float | None, message: str | None) -> None:
            show(message or (f"{progress:g} of {total:g}" if total else f"{progress:g}"))

        # Not by `call_tool`, which checks what comes back against a schema of the server's.
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=dict(arguments)))
        async with asyncio.timeout(self.server.timeout_s):
            result = await session.send_request(request, CallToolResult, progress_callback=heard)
        # A key that the server was given, and repeats, is stored nowhere.
        return Answer(Redactor(self.server.secret_texts()).clean(_text_of(result)), result.is_error)

    async def _connected(self) -> tuple[ConnectionAttempt, Opened]:
        """Return the open connection, after opening it where there is none.

        Raises:
            ServerError: It cannot be opened, or was lost too often.
        """
        while self._current is not None and self._current.state.over.is_set():
            await self._current.closed.wait()
        if self._gone:
            raise self._error(self._gone)
        if self._current is None:
            self._current = ConnectionAttempt(asyncio.get_running_loop().create_future())
            self._wishes.put_nowait(self._current)
        attempt = self._current
        return attempt, await asyncio.shield(attempt.ready)

    def _unanswered(self, why: str, *, may_repeat: bool) -> ServerError:
        return ServerError(
            own(
                "No result of the MCP server {name}: {why}. {consequence}",
                name=code(self.server.name),
                why=why,
                consequence=own("Nothing was changed.")
                if may_repeat
                else own("Whether the call took effect is unknown; it is not repeated. Look before you continue."),
            )
        )

    def _error(self, why: str) -> ServerError:
        return ServerError(own("The MCP server {name} cannot be used: {why}", name=code(self.server.name), why=why))

    def close(self) -> None:
        """Ask the owner to close it and to end."""
        self._gone = self._gone or "this session is over"
        if self._current is not None:
            self._current.state.over.set()
        self._wishes.put_nowait(None)


@asynccontextmanager
async def connected(server: McpServer, open_streams: Open) -> AsyncGenerator[ServerConnection]:
    """Provide a connection that is opened when it is first needed; at the end it is closed by the task that opened it.

    Not a group of tasks, which would wrap every error of the run.
    """
    connection = ServerConnection(server, open_streams)
    owner = asyncio.ensure_future(connection.own())
    try:
        yield connection
    finally:
        connection.close()
        await asyncio.wait([owner], timeout=CLOSE_S)
        if not owner.done():
            owner.cancel()
            await asyncio.wait([owner], timeout=CLOSE_S)
        if owner.done() and not owner.cancelled():
            owner.result()


async def _all_tools(session: ClientSession) -> dict[str, Tool]:
    """Return what a server lists, page by page, up to a bound.

    Raises:
        ServerError: It lists a name twice with different descriptions, or more pages than any list has.
    """
    found: dict[str, Tool] = {}
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        for tool in page.tools[: MAX_TOOLS - len(found)]:
            if tool.name in found and digest(found[tool.name]) != digest(tool):
                raise ServerError(own("it lists {name} twice", name=tool.name))
            found[tool.name] = tool
        cursor = page.next_cursor
        if not cursor or len(found) >= MAX_TOOLS:
            break
    return found


def _words(error: BaseException) -> str:
    """Return an error, or the first of a group, on one line."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return single_line(f"its answer is not one of the protocol: {place}: {first['msg']}", 300)
    return single_line(str(error) or type(error).__name__, 300)


def _text_of(result: CallToolResult) -> str:
    """Return the text of a result; what is no text is named."""
    parts = [_text_of_block(block) for block in result.content]
    text = "\n".join(part for part in parts if part)
    if not text and result.structured_content is not None:
        text = json.dumps(result.structured_content, ensure_ascii=False, indent=1)
    if len(text) > MAX_TEXT_CHARS:
        return f"{text[:MAX_TEXT_CHARS]}\n[cut here, at {MAX_TEXT_CHARS:,} of {len(text):,} characters]"
    return text


def _text_of_block(block: ContentBlock) -> str:
    match block:
        case TextContent():
            return block.text
        case EmbeddedResource(resource=TextResourceContents() as inner):
            return inner.text
        case ResourceLink():
            return f"{block.title or block.name}: {block.uri}"
        case ImageContent() | AudioContent():
            return f"[{block.mime_type}, {len(block.data) * 3 // 4:,} bytes: not shown]"
        case _:
            return "[data, not text: not shown]"
