"""The connections of a server on this machine: how many, how long each may take to ask and to read, how long a head is.

Whoever reaches the port may connect before a token is looked at, and each connection is an open file of the process
that works on runs. So those that ask nothing end, and make place for others.
"""

import asyncio
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

MOST_CONNECTIONS = 256
END_WAIT_S = 2
"""Seconds that open connections have when a server ends; runs are saved either way."""


def most_connections() -> int:
    """Return how many connections leave the process half of the files that it may open."""
    if sys.platform == "win32":
        return MOST_CONNECTIONS
    import resource  # noqa: PLC0415 - it is not on every system

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if limit == resource.RLIM_INFINITY else max(1, min(MOST_CONNECTIONS, limit // 2))


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """What the connections of a server may take."""

    connections: int
    """Most of them at the same time."""
    ask_s: float = 15.0
    """Seconds in which the head of a request has to be complete, once a connection is open or has its last answer."""
    read_s: float = 60.0
    """Seconds in which a client has to read something of an answer that waits for it."""
    head_bytes: int = 64 * 1024
    """The longest head of a request."""

    @property
    def backlog(self) -> int:
        """Connections that are accepted at once: those that are too many end before the next are accepted."""
        return max(1, self.connections // 4)


class BoundedConnection(H11Protocol):
    """A connection that ends when its client asks nothing, or reads nothing, for too long."""

    bounds: ConnectionBounds

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._idle: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self.idle_since = 0.0
        """Since when nothing is asked of the server."""

    @property
    def is_asked(self) -> bool:
        """Whether a request of it is at work."""
        # None before the first one, which the type does not say.
        cycle = cast("object", self.cycle)
        return cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin to wait for a request; where there are too many, the one that waits longest makes place."""
        super().connection_made(transport)
        self._note()
        if len(self.connections) > self.bounds.connections:
            oldest = min(self._waiting(), key=lambda one: one.idle_since, default=self)
            oldest.transport.abort()

    def _waiting(self) -> Iterator["BoundedConnection"]:
        for one in self.connections:
            if isinstance(one, BoundedConnection) and not one.is_asked and not one.transport.is_closing():
                yield one

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        super().data_received(data)
        self._note()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        super().on_response_complete()
        self._note()

    def _note(self) -> None:
        """Wait while nothing is asked; bytes that are no whole head do not make the wait longer."""
        if self.is_asked:
            self._idle = _cancelled(self._idle)
        elif self._idle is None and not self.transport.is_closing():
            self.idle_since = time.monotonic()
            self._idle = self.loop.call_later(self.bounds.ask_s, self.transport.abort)

    def pause_writing(self) -> None:
        """Begin to wait for a client that reads too slowly."""
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(self.bounds.read_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Continue with a client that reads."""
        super().resume_writing()
        self._unread = _cancelled(self._unread)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the waits."""
        self._idle, self._unread = _cancelled(self._idle), _cancelled(self._unread)
        super().connection_lost(exc)


def _cancelled(handle: asyncio.TimerHandle | None) -> None:
    """End a wait, if there is one."""
    if handle is not None:
        handle.cancel()


def bounded_config(app: ASGIApp, bounds: ConnectionBounds | None = None) -> Config:
    """Return how a server with an application runs within bounds; by default those that fit this process."""
    chosen = bounds or ConnectionBounds(most_connections())

    class Bounded(BoundedConnection):
        """A connection within these bounds: uvicorn takes a class, and makes one of it for each."""

        bounds = chosen

    return Config(
        app,
        http=Bounded,
        backlog=chosen.backlog,
        h11_max_incomplete_event_size=chosen.head_bytes,
        log_config=None,
        access_log=False,
        lifespan="on",
        ws="none",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=END_WAIT_S,
    )


class QuietServer(uvicorn.Server):
    """A server that leaves the process's signals to the command."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Capture none."""
        yield
