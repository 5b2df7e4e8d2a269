"""Connections through the proxy of the user's network.

The proxy looks names up itself, so an address cannot be judged and pinned as it is for direct connections. What is
left: the guard judges the address as it is written, and everything the name resolves to here, before the proxy hears
of it. A name that only the proxy can resolve is passed on if it is the full name of a public site.
"""

import ssl
from collections.abc import Iterable

import httpcore2

from explorer.network.client_options import PROXY_LOGIN_REQUIRED, login_problem
from explorer.schema.network import Proxy

MAX_CONNECTIONS = 64
KEEP_ALIVE_S = 15.0


class ToProxy(httpcore2.AsyncNetworkBackend):
    """Opens connections to one proxy, which may be at a private address, and says by name when it cannot."""

    def __init__(self, proxy: Proxy, inner: httpcore2.AsyncNetworkBackend) -> None:
        self._proxy = proxy
        self._inner = inner

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore2's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the proxy."""
        try:
            return await self._inner.connect_tcp(host, port, timeout, local_address, socket_options)
        except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
            raise httpcore2.ProxyError(f"{self._proxy} cannot be reached: {error}") from error

    async def sleep(self, seconds: float) -> None:
        """Wait, for the pool's own retries."""
        await self._inner.sleep(seconds)


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
