"""The transport under every fetch: it connects to an address the guard has judged, and to no other.

The name is looked up once, judged, and the same answer is connected to, so that a name server cannot give a
public address to the judge and an internal one to the connection. TLS and the Host header keep the name.

Where the user's network has a proxy, that connects, and looks the name up itself: see `proxied.py`.
"""

import ssl
from collections.abc import AsyncIterator, Iterable
from functools import cached_property

import httpcore2
import httpx2

from explorer.network.client_options import advice, ssl_context
from explorer.network.guard import Guard
from explorer.schema.network import Network
from explorer.sources.http.proxied import ProxiedPools

FAILURES = (
    httpcore2.TimeoutException,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.ProxyError,
    httpcore2.UnsupportedProtocol,
)
MAX_CONNECTIONS = 64
DIRECT = Network()
"""No proxy, and the system's authorities."""


def system_network() -> httpcore2.AsyncNetworkBackend:
    """Return what opens sockets."""
    # The library's fallback class for a missing anyio confuses the type; anyio is a dependency of httpcore2.
    backend: httpcore2.AsyncNetworkBackend = httpcore2.AnyIOBackend()  # pyright: ignore[reportAssignmentType, reportAttributeAccessIssue]
    return backend


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Opens connections for the pool: look up, judge, connect to what was judged.

    `network` stands in for the sockets below; it is asked for judged addresses only, never for a name.
    """

    def __init__(self, guard: Guard, network: httpcore2.AsyncNetworkBackend | None = None) -> None:
        self._guard = guard
        self._inner = network or system_network()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore2's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first judged address that answers.

        Raises:
            UrlRefusedError: The host leads to an address that must not be reached.
        """
        try:
            addresses = await self._guard.addresses(host, port)
        except OSError as error:
            raise httpcore2.ConnectError(f"the name {host} cannot be resolved") from error
        problem: Exception = httpcore2.ConnectError(f"{host} has no address")
        for address in addresses:
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                problem = error
        raise problem

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ARG002, ASYNC109 - httpcore2's signature
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore2.AsyncNetworkStream:
        """Refuse: no page lives behind a socket file."""
        raise httpcore2.ConnectError(f"{path} is not on the network")

    async def sleep(self, seconds: float) -> None:
        """Wait, for the pool's own retries."""
        await self._inner.sleep(seconds)


class GuardedTransport(httpx2.AsyncBaseTransport):
    """An httpx2 transport that only reaches judged hosts.

    Args:
        guard: Judges.
        ssl_context: Whom to trust; None: as the network says.
        network: Stands in for sockets.
        outbound: The proxies and authorities of the user's network.
    """

    def __init__(
        self,
        guard: Guard,
        ssl_context: ssl.SSLContext | None = None,
        network: httpcore2.AsyncNetworkBackend | None = None,
        outbound: Network = DIRECT,
    ) -> None:
        self._guard = guard
        self._given_context = ssl_context
        self._outbound = outbound
        self._backend = GuardedBackend(guard, network)
        self._proxied = ProxiedPools(network or system_network())
        self._pools: dict[bytes, httpcore2.AsyncConnectionPool] = {}

    @cached_property
    def _ssl_context(self) -> ssl.SSLContext:
        return self._given_context or ssl_context(self._outbound)

    def _pool(self, scheme: bytes) -> httpcore2.AsyncConnectionPool:
        """Return the pool for `http` or for all else, made for its first request.

        Loading the certificates takes longer than starting a run that needs none. What a plain pool has instead is
        an empty context, which trusts nobody.
        """
        if scheme not in self._pools:
            is_plain = scheme == b"http"
            self._pools[scheme] = httpcore2.AsyncConnectionPool(
                ssl_context=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else self._ssl_context,
                max_connections=MAX_CONNECTIONS,
                keepalive_expiry=15.0,
                network_backend=self._backend,
            )
        return self._pools[scheme]

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request."""
        inner = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        proxy = self._outbound.proxy_for(str(request.url))
        if proxy is not None:
            await self._guard.check_behind_proxy(request.url.raw_host.decode("ascii"), inner.url.origin.port)
        try:
            if proxy is None:
                response = await self._pool(request.url.raw_scheme).handle_async_request(inner)
            else:
                response = await self._proxied.ask(proxy, inner, self._ssl_context)
        except FAILURES as error:
            raise self._translated(error) from error
        return httpx2.Response(
            status_code=response.status,
            headers=response.headers,
            stream=_Body(response),
        )

    def _translated(self, error: Exception) -> httpx2.TransportError:
        more = advice(self._outbound, str(error))
        return _translated(error, f"{error}; {more}" if more else str(error))

    async def aclose(self) -> None:
        """Close all connections."""
        for pool in self._pools.values():
            await pool.aclose()
        self._pools.clear()
        await self._proxied.aclose()


class _Body(httpx2.AsyncByteStream):
    """A response's body as it arrives, with httpx2's exceptions."""

    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._response.aiter_stream():
                yield part
        except FAILURES as error:
            raise _translated(error, str(error)) from error

    async def aclose(self) -> None:
        await self._response.aclose()


def _translated(error: Exception, words: str) -> httpx2.TransportError:
    """The exception of the same name one library up."""
    kind = getattr(httpx2, type(error).__name__, httpx2.TransportError)
    return kind(words)
