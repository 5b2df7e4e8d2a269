"""Guards of an HTTP client: it sends no request to another origin, and reads no answer beyond its bounds.

Both are hooks of the client, so they apply to whatever sends over it: the SDK, `RequestTemplate`, a redirect.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import httpx2

from explorer.llm.options import Endpoint, ReplyBounds, oversized, public_url
from explorer.schema.errors import ModelError, ModelFault


def guards(
    endpoint: Endpoint, bounds: ReplyBounds, body_bytes: int = 0
) -> dict[str, list[Callable[..., Awaitable[Any]]]]:
    """Make the hooks of a client for one server.

    Args:
        endpoint: The server; requests to another origin are refused.
        bounds: The limits of headers and bodies.
        body_bytes: The limit of a body that is not an error; 0: the limit of a reply.
    """
    origin = _origin(httpx2.URL(endpoint.base_url))

    async def check_request(request: httpx2.Request) -> None:
        if _origin(request.url) != origin:
            raise _led_elsewhere(endpoint, str(request.url))

    async def bound_response(response: httpx2.Response) -> None:
        _check_headers(response, endpoint, bounds)
        chunks = _decoded(response)
        if response.is_success:
            response.stream = _Body(response.stream, _bounded(chunks, endpoint, body_bytes or bounds.body_bytes))
        else:
            response.stream = _Body(response.stream, _beginning(chunks, bounds))

    return {"request": [check_request], "response": [bound_response]}


class _Body(httpx2.AsyncByteStream):
    """A response's stream with other chunks; closing it closes the original stream."""

    def __init__(self, below: Any, chunks: AsyncIterator[bytes]) -> None:  # noqa: ANN401 - the client's own stream
        self._below = below
        self._chunks = chunks

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def aclose(self) -> None:
        await self._below.aclose()


def _decoded(response: httpx2.Response) -> AsyncIterable[bytes]:
    """Return a response's chunks decompressed, piece by piece; the response then has no encoding."""
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)
    if "content-encoding" not in response.headers:
        return stream
    coded = httpx2.Response(response.status_code, headers=response.headers, stream=stream, request=response.request)
    del response.headers["content-encoding"]
    return coded.aiter_bytes()


async def _bounded(chunks: AsyncIterable[bytes], endpoint: Endpoint, most: int) -> AsyncIterator[bytes]:
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise oversized(endpoint, f"{most:,} bytes in one answer")
        yield chunk


async def _beginning(chunks: AsyncIterable[bytes], bounds: ReplyBounds) -> AsyncIterator[bytes]:
    """Yield the beginning of an error's body; its end matters less than its status."""
    until = asyncio.get_running_loop().time() + bounds.error_s
    left, source = bounds.error_bytes, aiter(chunks)
    while left > 0:
        try:
            async with asyncio.timeout_at(until):
                chunk = await anext(source, b"")
        except (TimeoutError, httpx2.HTTPError):
            return
        if not chunk:
            return
        yield chunk[:left]
        left -= len(chunk)


def _check_headers(response: httpx2.Response, endpoint: Endpoint, bounds: ReplyBounds) -> None:
    raw = response.headers.raw
    if len(raw) > bounds.header_count:
        raise oversized(endpoint, f"{bounds.header_count} headers")
    if sum(len(name) + len(value) for name, value in raw) > bounds.header_bytes:
        raise oversized(endpoint, f"{bounds.header_bytes:,} bytes of headers")
    if response.headers.get("content-encoding", "").count(",") >= bounds.encodings:
        raise oversized(endpoint, f"{bounds.encodings} content encodings")


def _led_elsewhere(endpoint: Endpoint, url: str) -> ModelError:
    here, there = urlsplit(endpoint.base_url), urlsplit(url)
    target = public_url(f"{there.scheme}://{there.netloc}")
    message = (
        f"{public_url(f'{here.scheme}://{here.netloc}')} redirects to another server, {target}; nothing was sent there"
    )
    hint = f"if that is the right server, name it: {endpoint.url_setting}={target}{there.path and '/...'}"
    return ModelError(ModelFault.TRANSPORT, message, hint=hint, is_wrong_server=True)


def _origin(url: httpx2.URL) -> tuple[str, bytes, int | None]:
    """Return scheme, host and port; the usual port of the scheme is None."""
    return url.scheme, url.raw_host, url.port
