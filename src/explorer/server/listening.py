"""The server's socket, and uvicorn on it."""

import errno
import socket
from collections.abc import Callable

from starlette.types import ASGIApp

from explorer.network.server_connections import ConnectionBounds, QuietServer, bounded_config
from explorer.schema.errors import ConfigError, PortInUseError

BACKLOG = 256
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - what a browser of this machine opens for it


def open_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        PortInUseError: Another program has the port.
        ConfigError: The address or the port cannot be used.
    """
    try:
        kind, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        found = socket.socket(kind, socket.SOCK_STREAM)
    except OSError as error:
        raise ConfigError(
            f"{host} is not an address of this machine: {error.strerror}", hint="--host 127.0.0.1"
        ) from error
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(BACKLOG)
    except OSError as error:
        found.close()
        if error.errno == errno.EADDRINUSE:
            raise PortInUseError(f"port {port} is in use", hint="choose another: --port N; 0 is a free one") from error
        raise ConfigError(f"{host}:{port} cannot be used: {error.strerror}", hint="--host and --port") from error
    found.setblocking(False)  # noqa: FBT003 - the name of its parameter is not public
    return found


class PageServer:
    """Answers browsers on a socket that is open already."""

    def __init__(
        self, listening: socket.socket, app: ASGIApp, on_end: Callable[[], None], bounds: ConnectionBounds | None = None
    ) -> None:
        self._listening = listening
        self._on_end = on_end
        self._server = QuietServer(bounded_config(app, bounds))

    def address(self, host: str) -> str:
        """Return the address for a browser of this machine."""
        shown = ANY_ADDRESS.get(host, host)
        port = self._listening.getsockname()[1]
        return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"

    def end(self) -> None:
        """Take no more requests; open pages are told, so that they do not keep the server."""
        self._on_end()
        self._server.should_exit = True

    async def serve(self) -> None:
        """Answer until the end."""
        await self._server.serve([self._listening])
