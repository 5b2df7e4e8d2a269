"""Sends bodies over an SDK's client as the SDK itself would, without having the same request made anew each time.

An SDK makes each request out of options, defaults and an address that are the same all along; that takes longer than
all of the engine's own work on a turn. So the first body is sent by the SDK, and each later one in the request that
the SDK made for the first: the same address, headers and credentials, over the same connections.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable

import httpx2

from explorer.llm.bounds import BOUNDS, ReplyBounds
from explorer.llm.faults import model_error, read_refusal
from explorer.llm.foreign_answers import connection_error, transport_errors, was_unsent
from explorer.llm.guards import guards
from explorer.llm.options import Endpoint

OWN_TO_EACH = frozenset({b"content-length", b"idempotency-key"})
"""Headers that another body must not have: its length is another, and it is no repetition."""

LARGE_BODY_BYTES = 1024 * 1024
"""From here on aiohttp warns that a body sent at once may hold up the event loop."""
PIECE_BYTES = 256 * 1024


async def _pieces(body: bytes) -> AsyncGenerator[bytes]:
    view = memoryview(body)
    for start in range(0, len(body), PIECE_BYTES):
        yield bytes(view[start : start + PIECE_BYTES])


class RequestTemplate:
    """Sends one adapter's requests.

    Args:
        first: Sends a body through the SDK and returns the raw response; its errors are `ModelError`.
        client: The client that the SDK sends over.
        endpoint: Where requests go; the client is kept from leading them elsewhere.
        bounds: The most that is read of an answer.
    """

    def __init__(
        self,
        first: Callable[[bytes], Awaitable[httpx2.Response]],
        client: httpx2.AsyncClient,
        endpoint: Endpoint,
        bounds: ReplyBounds = BOUNDS,
    ) -> None:
        client.event_hooks = guards(endpoint, bounds)
        self._first = first
        self._client = client
        self._endpoint = endpoint
        self._made: httpx2.Request | None = None
        self._headers: list[tuple[bytes, bytes]] = []
        self._failures = transport_errors()

    async def post(self, body: bytes) -> httpx2.Response:
        """Send a body; the response is still to be read, and to be closed.

        Raises:
            ModelError: No connection, or the answer has an error status.
        """
        if self._made is None:
            return await self._post_first(body)
        try:
            response = await self._send(self._made, body)
            if response.is_error:
                await response.aread()
        except self._failures as error:
            raise connection_error(error, self._endpoint) from error
        if response.is_error:
            raise model_error(read_refusal(response), self._endpoint)
        return response

    async def _send(self, made: httpx2.Request, body: bytes) -> httpx2.Response:
        """Send a body as the made request; once more when it could not be sent.

        llama.cpp's server promises to keep a connection and closes it after each stream: nothing was sent then.
        """
        try:
            return await self._client.send(self._request(made, body), stream=True)
        except self._failures as error:
            if not was_unsent(error):
                raise
        return await self._client.send(self._request(made, body), stream=True)

    def _request(self, made: httpx2.Request, body: bytes) -> httpx2.Request:
        """Make the request for a body; a large one is handed over in pieces, so that the event loop is not held up."""
        if len(body) <= LARGE_BODY_BYTES:
            return httpx2.Request("POST", made.url, headers=self._headers, content=body, extensions=made.extensions)
        headers = [*self._headers, (b"content-length", str(len(body)).encode())]
        return httpx2.Request("POST", made.url, headers=headers, content=_pieces(body), extensions=made.extensions)

    async def _post_first(self, body: bytes) -> httpx2.Response:
        try:
            response = await self._first(body)
        except self._failures as error:
            raise connection_error(error, self._endpoint) from error
        self._keep(response)
        return response

    def _keep(self, response: httpx2.Response) -> None:
        if response.history:
            return  # It was led elsewhere: where to, the SDK's client finds out each time.
        made = response.request
        self._headers = [(name, value) for name, value in made.headers.raw if name.lower() not in OWN_TO_EACH]
        self._made = made
