"""Connections that end when an answer does not begin: a server may send interim responses (1xx) without end."""

import ssl
from collections.abc import Iterable, Mapping
from typing import cast

import httpcore2

MAX_HEAD_BYTES = 256 * 1024
"""What may come before an answer's body begins, with the first of the body: of its headers the library takes 100 kB."""


class BoundedStream(httpcore2.AsyncNetworkStream):
    """A connection that counts what comes from a request on until its answer has begun."""

    def __init__(self, inner: httpcore2.AsyncNetworkStream) -> None:
        self._inner = inner
        self._left: int | None = MAX_HEAD_BYTES

    def head_is_over(self) -> None:
        """Count no more until the next request: the body has limits of its own."""
        self._left = None

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - httpcore2's signature
        """Read what there is.

        Raises:
            httpcore2.RemoteProtocolError: So much came before an answer began that none is expected any more.
        """
        if self._left is not None and self._left <= 0:
            raise httpcore2.RemoteProtocolError(f"over {MAX_HEAD_BYTES:,} bytes came before an answer began")
        part = await self._inner.read(max_bytes, timeout)
        if self._left is not None:
            self._left -= len(part)
        return part

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as above
        """Send a part of a request."""
        self._left = MAX_HEAD_BYTES
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
    ) -> httpcore2.AsyncNetworkStream:
        """Return the connection within TLS, which counts what it decrypts."""
        return BoundedStream(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> object:
        """Return what the connection knows about itself."""
        return self._inner.get_extra_info(info)


class BoundedNetwork(httpcore2.AsyncNetworkBackend):
    """Opens such connections."""

    def __init__(self, inner: httpcore2.AsyncNetworkBackend) -> None:
        self._inner = inner

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect."""
        return BoundedStream(await self._inner.connect_tcp(host, port, timeout, local_address, socket_options))

    async def sleep(self, seconds: float) -> None:
        """Wait, for the pool's own retries."""
        await self._inner.sleep(seconds)


def body_begins(response: httpcore2.Response) -> None:
    """Tell the connection of an answer that its headers have been read."""
    extensions = cast("Mapping[str, object]", response.extensions)  # pyright: ignore[reportUnknownMemberType]
    stream = extensions.get("network_stream")
    if isinstance(stream, BoundedStream):
        stream.head_is_over()
