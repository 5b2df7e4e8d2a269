"""The session of aiohttp that model servers are asked through, guarded against two faults of servers.

One sends interim answers (1xx) without end: they are counted. Another promises to keep a connection and closes it after
the reply: its connections are not used a second time.
"""

import ssl
from typing import Any

import aiohttp
import httpx2
from aiohttp.connector import Connection

from explorer.llm.options import Endpoint, ReplyBounds, oversized

INTERIM = range(100, 200)
SWITCHING = 101
"""The one status of them that is an answer."""


class _Wrapper:
    """Passes every attribute of an object on, for subclasses that replace one of them."""

    def __init__(self, inner: Any) -> None:  # noqa: ANN401 - whatever aiohttp has there
        self._inner = inner

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as above
        return getattr(self._inner, name)


class _CountedAnswers(_Wrapper):
    """A connection's protocol that counts the interim answers to one request."""

    def __init__(self, inner: Any, endpoint: Endpoint, most: int) -> None:  # noqa: ANN401 - as above
        super().__init__(inner)
        self._endpoint = endpoint
        self._left = self._most = most

    async def read(self) -> Any:  # noqa: ANN401 - as above
        """Return the next head.

        Raises:
            ModelError: So many interim answers came that none is expected any more.
        """
        head = await self._inner.read()
        self._left -= head[0].code in INTERIM and head[0].code != SWITCHING
        if self._left < 0:
            raise oversized(self._endpoint, f"{self._most} interim answers")
        return head


class _CountedConnection(_Wrapper):
    """A connection whose protocol counts the interim answers."""

    def __init__(self, inner: Connection, endpoint: Endpoint, most: int) -> None:
        super().__init__(inner)
        self.protocol = _CountedAnswers(inner.protocol, endpoint, most)


def open_session(
    endpoint: Endpoint, bounds: ReplyBounds, limits: httpx2.Limits, context: ssl.SSLContext
) -> aiohttp.ClientSession:
    """Return a session as the SDKs make theirs; more than `bounds.interim_answers` before a reply end its request.

    Once a server without TLS has closed a connection while a request was on its way, no connection to it is used twice:
    a new one costs next to nothing there. With TLS a new one costs a handshake, and a rare failure costs less.
    """
    keeps_connections = True
    is_cheap = endpoint.base_url.startswith("http://")

    class GuardedResponse(aiohttp.ClientResponse):
        """A response that counts the interim answers before its head, and closes a connection that is not kept."""

        async def start(self, connection: Connection) -> aiohttp.ClientResponse:
            """Read heads until one is an answer."""
            nonlocal keeps_connections
            counted: Any = _CountedConnection(connection, endpoint, bounds.interim_answers)
            if not keeps_connections and connection.protocol is not None:
                connection.protocol.force_close()
            try:
                return await super().start(counted)
            except aiohttp.ClientConnectionError:
                # The next turn would meet it again: llama.cpp's server closes a connection some time after each stream.
                keeps_connections = not is_cheap
                raise

    connector = aiohttp.TCPConnector(
        keepalive_timeout=limits.keepalive_expiry, ssl=context, limit=limits.max_connections or 0
    )
    return aiohttp.ClientSession(connector=connector, response_class=GuardedResponse)
