import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx2
import pytest

from explorer.llm.options import BOUNDS, Endpoint, Timeouts
from explorer.llm.streaming import ServerEvent, stream_reply
from explorer.schema.errors import ModelError, ModelFault

PLACE = Endpoint("Someone", "http://127.0.0.1:9", "SOME_KEY", "SOME_URL")
SHORT = Timeouts(first_content_s=0.2, idle_s=0.2, total_s=0.5)


class Collected:
    """A reply whose events are content unless they say `ping`, complete at `end`."""

    def __init__(self) -> None:
        self.data: list[str] = []

    @property
    def is_complete(self) -> bool:
        """Whether `end` has come."""
        return "end" in self.data

    def take(self, event: ServerEvent) -> bool:
        """Keep an event."""
        self.data.append(event.data)
        return event.data != "ping"


Post = Callable[[bytes], Awaitable[httpx2.Response]]


def post(chunks: AsyncIterator[bytes]) -> Post:
    async def send(_body: bytes) -> httpx2.Response:
        return httpx2.Response(200, content=chunks, request=httpx2.Request("POST", "http://127.0.0.1:9"))

    return send


async def drip(data: str, *, every_s: float = 0.02) -> AsyncIterator[bytes]:
    while True:
        yield f"data: {data}\n\n".encode()
        await asyncio.sleep(every_s)


async def then_silence(*data: str) -> AsyncIterator[bytes]:
    for text in data:
        yield f"data: {text}\n\n".encode()
    await asyncio.Event().wait()


async def then_error(*data: str) -> AsyncIterator[bytes]:
    for text in data:
        yield f"data: {text}\n\n".encode()
    raise httpx2.ReadError("reset")


async def endless_line() -> AsyncIterator[bytes]:
    yield b"data: "
    while True:
        yield b"x" * (BOUNDS.event_bytes // 4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chunks", "fault"),
    [
        (lambda: drip("content"), ModelFault.STALLED),
        (lambda: drip("ping"), ModelFault.STALLED),
        (then_silence, ModelFault.STALLED),
        (lambda: then_silence("content"), ModelFault.STALLED),
        (lambda: then_error("content"), ModelFault.TRANSPORT),
        (endless_line, ModelFault.OVERSIZED),
    ],
    ids=["endless content", "endless pings", "silence", "silence after content", "reset", "endless line"],
)
async def test_a_stream_that_never_ends_well(chunks: Callable[[], AsyncIterator[bytes]], fault: ModelFault) -> None:
    """Whatever a server does instead of ending its reply, the wait is bounded and the error is sorted."""
    with pytest.raises(ModelError) as caught:
        await stream_reply(post(chunks()), b"", Collected(), PLACE, SHORT)
    assert caught.value.fault is fault


@pytest.mark.slow
@pytest.mark.parametrize("chunks", [then_silence, then_error])
async def test_a_complete_reply_needs_no_end_of_stream(chunks: Callable[..., AsyncIterator[bytes]]) -> None:
    """After the terminal event neither silence nor a reset takes the reply back."""
    reply = Collected()
    await stream_reply(post(chunks("content", "end", "late")), b"", reply, PLACE, Timeouts())
    assert reply.data == ["content", "end"]


@pytest.mark.slow
async def test_pings_do_not_count_but_content_does() -> None:
    """Content that keeps coming outlives the wait for the next piece."""

    async def slow() -> AsyncIterator[bytes]:
        for _ in range(9):
            await asyncio.sleep(0.4)
            yield b"data: content\n\n"
        yield b"data: end\n\n"

    reply = Collected()
    await stream_reply(post(slow()), b"", reply, PLACE, Timeouts(first_content_s=3, idle_s=3, total_s=60))
    assert reply.is_complete


async def test_cancelling_is_not_an_error_of_the_model() -> None:
    """A cancelled request is cancelled, and an outer time limit stays the outer one's."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await stream_reply(post(drip("content")), b"", Collected(), PLACE, Timeouts())
