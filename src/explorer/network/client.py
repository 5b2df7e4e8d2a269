"""The HTTP client for everything but models: judged addresses, bounded answers, no cookies.

Redirects are not followed here, because a key would be sent along: a caller that follows them has each address judged.
What an answer or a failure means is the caller's matter.
"""

from contextlib import aclosing
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx2

from explorer.network.exchange import DamagedAnswerError, ExchangeError, HttpRequest, HttpResponse
from explorer.network.guard import Guard
from explorer.schema.network import Network


class GuardedClient:
    """Sends requests to judged addresses only; connections are opened with the first request.

    Args:
        guard: Judges each host by its name and by every address it resolves to, when a connection is made.
        user_agent: Sent with each request.
        network: The proxies and authorities of the user's network.
        seconds: For each operation on a connection; callers bound the whole.
        transport: Stands in for the network.
    """

    def __init__(
        self,
        guard: Guard,
        user_agent: str,
        network: Network,
        *,
        seconds: float,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._guard = guard
        self._network = network
        self._transport = transport
        self._options = {"User-Agent": user_agent, "Accept-Encoding": "gzip, deflate"}
        self._timeout = httpx2.Timeout(seconds, pool=None)
        self._client: httpx2.AsyncClient | None = None

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send once and read the answer.

        Raises:
            UrlRefusedError: The guard refuses the address.
            NoSuchSiteError: The host's name is not known.
            ExchangeError: There is no answer.
            DamagedAnswerError: There is one that cannot be read.
        """
        self._guard.check_url(request.url)
        try:
            return await self._sent(request)
        except httpx2.TransportError as error:
            raise ExchangeError(str(error), type(error).__name__) from error
        except httpx2.RequestError as error:
            raise DamagedAnswerError(str(error), type(error).__name__) from error

    async def _sent(self, request: HttpRequest) -> HttpResponse:
        client = self._opened()
        built = client.build_request(request.method, request.url, headers=request.headers, content=request.content)
        response = await client.send(built, stream=True)
        try:
            answer = HttpResponse(response.status_code, response.headers)
            if answer.redirect or answer.unread_encoding:
                return answer
            is_error = response.status_code >= httpx2.codes.BAD_REQUEST and request.error_bytes is not None
            limit = (request.error_bytes if is_error else None) or request.body_bytes
            body, is_truncated = await _read(response, limit)
            return HttpResponse(response.status_code, response.headers, body, is_truncated)
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        """Close all connections; harmless when there are none."""
        if self._client:
            await self._client.aclose()
            self._client = None

    def _opened(self) -> httpx2.AsyncClient:
        if self._client is None:
            from explorer.network.transport import GuardedTransport  # noqa: PLC0415 - slow to import

            self._client = httpx2.AsyncClient(
                transport=self._transport or GuardedTransport(self._guard, outbound=self._network),
                trust_env=False,
                follow_redirects=False,
                timeout=self._timeout,
                headers=self._options,
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            )
        return self._client


async def _read(response: httpx2.Response, limit: int) -> tuple[bytes, bool]:
    """Return the decompressed body up to a limit; it arrives in pieces of at most 1 MiB, also out of a gzip bomb."""
    body = bytearray()
    async with aclosing(response.aiter_bytes()) as parts:
        async for part in parts:
            body += part
            if len(body) > limit:
                return bytes(body[:limit]), True
    return bytes(body), False
