"""Connects HTTP requests to addresses that the guard has judged, and to no others, directly or through a proxy.

A name is looked up once, and the connection goes to the judged answer, so that a name server cannot give a public
address to the guard and an internal one to the connection. TLS and the Host header keep the name.

The user's proxy looks names up itself, so its connections cannot be pinned. The guard judges the address as it is
written, and everything that the name resolves to here, before the proxy gets it. A name that only the proxy can resolve
is passed on if it is the full name of a public site.
"""

import ssl
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from functools import cached_property
from typing import cast

import httpcore2
import httpx2

from explorer.network.client_options import PROXY_LOGIN_REQUIRED, advice, login_problem, ssl_context
from explorer.network.guard import Guard
from explorer.schema.network import Network, Proxy

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


Connect = Callable[[str], Awaitable[httpcore2.AsyncNetworkStream]]
"""Connects to a host or an address, at the port that is asked for."""


class _Backend(httpcore2.AsyncNetworkBackend):
    """Opens connections through another backend, each in its own way."""

    def __init__(self, inner: httpcore2.AsyncNetworkBackend) -> None:
        self._inner = inner

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore2's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect."""
        return await self._connected(
            host, port, lambda to: self._inner.connect_tcp(to, port, timeout, local_address, socket_options)
        )

    @abstractmethod
    async def _connected(self, host: str, port: int, connect: Connect) -> httpcore2.AsyncNetworkStream:
        """Connect by `connect`."""

    async def sleep(self, seconds: float) -> None:
        """Wait, for the pool's own retries."""
        await self._inner.sleep(seconds)


class BoundedNetwork(_Backend):
    """Opens such connections."""

    async def _connected(self, host: str, port: int, connect: Connect) -> httpcore2.AsyncNetworkStream:  # noqa: ARG002 - for a guard
        return BoundedStream(await connect(host))


def body_begins(response: httpcore2.Response) -> None:
    """Tell the connection of an answer that its headers have been read."""
    extensions = cast("Mapping[str, object]", response.extensions)  # pyright: ignore[reportUnknownMemberType]
    stream = extensions.get("network_stream")
    if isinstance(stream, BoundedStream):
        stream.head_is_over()


KEEP_ALIVE_S = 15.0


class ToProxy(_Backend):
    """Opens connections to one proxy, which may be at a private address, and says by name when it cannot."""

    def __init__(self, proxy: Proxy, inner: httpcore2.AsyncNetworkBackend) -> None:
        super().__init__(inner)
        self._proxy = proxy

    async def _connected(self, host: str, port: int, connect: Connect) -> httpcore2.AsyncNetworkStream:  # noqa: ARG002 - as above
        try:
            return await connect(host)
        except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
            raise httpcore2.ProxyError(f"{self._proxy} cannot be reached: {error}") from error


class ProxiedPools:
    """One pool of connections for each proxy, made when it is first needed."""

    def __init__(self, network: httpcore2.AsyncNetworkBackend) -> None:
        self._network = network
        self._pools: dict[str, httpcore2.AsyncHTTPProxy] = {}

    async def ask(self, proxy: Proxy, request: httpcore2.Request, context: ssl.SSLContext) -> httpcore2.Response:
        """Send a request through a proxy.

        Raises:
            httpcore2.ProxyError: The proxy cannot be reached, wants a login, or does not connect; names its variable.
        """
        try:
            response = await self._pool(proxy, context).handle_async_request(request)
        except httpcore2.ProxyError as error:
            raise httpcore2.ProxyError(_words(proxy, request, str(error))) from error
        if response.status == PROXY_LOGIN_REQUIRED:
            await response.aclose()
            raise httpcore2.ProxyError(login_problem(proxy))
        return response

    async def aclose(self) -> None:
        """Close all connections."""
        for pool in self._pools.values():
            await pool.aclose()
        self._pools.clear()

    def _pool(self, proxy: Proxy, context: ssl.SSLContext) -> httpcore2.AsyncHTTPProxy:
        if proxy.address not in self._pools:
            login = proxy.login
            self._pools[proxy.address] = httpcore2.AsyncHTTPProxy(
                proxy.address,
                proxy_auth=(login[0].encode(), login[1].encode()) if login else None,
                ssl_context=context,
                proxy_ssl_context=context if proxy.address.startswith("https:") else None,
                max_connections=MAX_CONNECTIONS,
                keepalive_expiry=KEEP_ALIVE_S,
                network_backend=ToProxy(proxy, self._network),
            )
        return self._pools[proxy.address]


def _words(proxy: Proxy, request: httpcore2.Request, reason_phrase: str) -> str:
    """Return what a proxy's refusal to connect means."""
    if reason_phrase.startswith(str(proxy)):
        return reason_phrase
    if reason_phrase.startswith(str(PROXY_LOGIN_REQUIRED)):
        return login_problem(proxy)
    host = request.url.host.decode("ascii", "replace")
    return f"{proxy} does not connect to {host}: it answers {' '.join(reason_phrase.split())[:100]}"


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


class GuardedBackend(_Backend):
    """Opens connections for the pool: looks up a host, checks its addresses, connects to a checked one.

    `network` replaces the sockets in tests; it gets only checked addresses, never a name.
    """

    def __init__(self, guard: Guard, network: httpcore2.AsyncNetworkBackend | None = None) -> None:
        super().__init__(network or system_network())
        self._guard = guard

    async def _connected(self, host: str, port: int, connect: Connect) -> httpcore2.AsyncNetworkStream:
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
                return await connect(address)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                problem = error
        raise problem

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ARG002, ASYNC109 - httpcore2's signature
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore2.AsyncNetworkStream:
        """Refuse: a socket file is not a web server."""
        raise httpcore2.ConnectError(f"{path} is not on the network")


class GuardedTransport(httpx2.AsyncBaseTransport):
    """An httpx2 transport that only reaches checked hosts.

    Args:
        guard: Checks hosts and addresses.
        ssl_context: The trusted authorities; None: those of `outbound`.
        network: Replaces the sockets in tests.
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
        bounded = BoundedNetwork(network or system_network())
        self._backend = GuardedBackend(guard, bounded)
        self._proxied = ProxiedPools(bounded)
        self._pools: dict[bytes, httpcore2.AsyncConnectionPool] = {}

    @cached_property
    def _ssl_context(self) -> ssl.SSLContext:
        return self._given_context or ssl_context(self._outbound)

    def _pool(self, scheme: bytes) -> httpcore2.AsyncConnectionPool:
        """Return the pool for `http` or for all else, made for its first request.

        Loading the certificates takes longer than starting a run that needs none. What a plain pool has instead is
        an empty context, which trusts no authority.
        """
        if scheme not in self._pools:
            is_plain = scheme == b"http"
            self._pools[scheme] = httpcore2.AsyncConnectionPool(
                ssl_context=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else self._ssl_context,
                max_connections=MAX_CONNECTIONS,
                keepalive_expiry=KEEP_ALIVE_S,
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
        body_begins(response)
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
    """Return httpx2's exception of the same name."""
    kind = getattr(httpx2, type(error).__name__, httpx2.TransportError)
    return kind(words)
