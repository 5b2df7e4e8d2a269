"""The first request is the SDK's own; the later ones are the same request with another body."""

import asyncio
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

import pytest

from explorer.llm.options import Timeouts
from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.messages import Turn
from llm.conversations import ANTHROPIC, BOTH, QUESTION
from llm.test_conversations import KEY, client_for, request_for, server_for
from model_servers import Reply

DIFFERENT = {"content-length", "idempotency-key", "x-stainless-idempotency-key"}


@pytest.mark.parametrize("wire", BOTH)
async def test_later_requests_have_the_headers_of_the_first(wire: str) -> None:
    """Credentials, version and whatever else the SDK sends; only what belongs to one body is its own."""
    with server_for(wire, *(Reply(text=f"{n}" * (n + 1)) for n in range(3))) as server:
        async with client_for(wire, server.url, Timeouts()) as client:
            for _ in range(3):
                await client.generate(request_for(QUESTION))
    first, *later = [{k: v for k, v in headers.items() if k not in DIFFERENT} for headers in server.headers]
    assert later == [first, first]
    assert any(KEY in value for value in first.values())
    lengths = [int(headers["content-length"]) for headers in server.headers]
    assert len(server.requests) == len(lengths) == 3
    keys = [headers.get("idempotency-key") for headers in server.headers]
    assert keys[1:] == [None, None]


@pytest.mark.parametrize("wire", BOTH)
@pytest.mark.parametrize(
    ("refusal", "fault"),
    [
        (Reply(status=401, error="bad_key"), ModelFault.CREDENTIALS),
        (Reply(status=429, error="rate_limit", headers={"retry-after": "7"}), ModelFault.RATE_LIMITED),
        (Reply(status=502, body="<html>Bad gateway</html>"), ModelFault.OVERLOADED),
    ],
)
async def test_a_later_refusal_is_told_as_the_first_would_be(wire: str, refusal: Reply, fault: ModelFault) -> None:
    """Fault, words and wait are the same whether the SDK sent the request or we did."""
    shown: list[tuple[ModelFault, str, float | None]] = []
    for replies in ((refusal,), (Reply(text="Yes."), refusal)):
        with server_for(wire, *replies) as server:
            async with client_for(wire, server.url, Timeouts()) as client:
                for _ in replies[1:]:
                    assert isinstance(await client.generate(request_for(QUESTION)), Turn)
                with pytest.raises(ModelError) as refused:
                    await client.generate(request_for(QUESTION))
                error = refused.value
                shown.append((error.fault, error.message.replace(server.url, ""), error.retry_after_s))
    assert shown[0] == shown[1]
    assert shown[1][0] is fault


@contextmanager
def answering(wire: str, *answers: bytes, closed: threading.Semaphore | None = None) -> Generator[str]:
    """A server that answers each connection with given bytes and closes it; `closed` counts the closed ones."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for answer in answers:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(answer)
                connection.shutdown(socket.SHUT_WR)
                if closed is not None:
                    closed.release()
                while connection.recv(65_536):
                    pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}" + ("" if wire == ANTHROPIC else "/v1")
    finally:
        listening.close()
        thread.join(5)


STREAM = {
    "anthropic": b'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":1}}}\n\n'
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n'
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    "responses": b'data: {"type":"response.completed","response":{"status":"completed","output":[]}}\n\n',
    "chat": b'data: {"choices":[{"delta":{"content":"Yes."},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
}
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


@pytest.mark.parametrize("wire", BOTH)
@pytest.mark.parametrize("garbage", [b"", b"\x16\x03\x01 no http at all\r\n\r\n", b"HTTP/9.9 banana\r\n\r\n"])
async def test_a_later_answer_that_is_no_http_is_a_broken_connection(wire: str, garbage: bytes) -> None:
    """Whatever the transport makes of it: it can be tried again, and names the server."""
    with answering(wire, HEAD + STREAM[wire], garbage) as url:
        async with client_for(wire, url, Timeouts()) as client:
            await client.generate(request_for(QUESTION))
            with pytest.raises(ModelError, match=r"127\.0\.0\.1") as broken:
                await client.generate(request_for(QUESTION))
    assert broken.value.fault is ModelFault.TRANSPORT


MOVED = "HTTP/1.1 307 Moved\r\nlocation: {}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


@pytest.mark.parametrize("wire", BOTH)
async def test_a_server_that_leads_to_another_path_is_followed_each_time(wire: str) -> None:
    """A redirect holds for the request it was given to, and for no other."""
    moved, reply = MOVED.format("/elsewhere").encode(), HEAD + STREAM[wire]
    with answering(wire, moved, reply, moved, reply) as url:
        async with client_for(wire, url, Timeouts()) as client:
            turns = [await client.generate(request_for(QUESTION)) for _ in range(2)]
    assert [turn.usage.input_tokens or turn.text for turn in turns] == [
        {"anthropic": 1, "chat": "Yes.", "responses": ""}[wire]
    ] * 2


@pytest.mark.parametrize("wire", BOTH)
@pytest.mark.parametrize("is_first", [True, False])
async def test_nothing_is_sent_to_another_server(wire: str, *, is_first: bool) -> None:
    """A redirect to another origin is an error that names both, and neither the question nor the key goes there."""
    with server_for(wire) as other:
        moved = MOVED.format(f"{other.origin}/v1/messages").encode()
        answers = (moved,) if is_first else (HEAD + STREAM[wire], moved)
        with answering(wire, *answers) as url:
            async with client_for(wire, url, Timeouts()) as client:
                for _ in answers[1:]:
                    await client.generate(request_for(QUESTION))
                with pytest.raises(ModelError, match="redirects to another server") as refused:
                    await client.generate(request_for(QUESTION))
    assert other.origin in refused.value.message
    assert url.removesuffix("/v1") in refused.value.message
    assert refused.value.is_wrong_server
    assert other.headers == []


async def test_pieces_are_waited_for_less_long_than_the_first_one() -> None:
    """Silence after the first piece ends a turn when that patience is over, not when the longer first one is."""
    retry_settings = Timeouts(first_content_s=40, idle_s=0.3, total_s=50)
    with server_for(ANTHROPIC, Reply(text="Well, let me", stalls="silent")) as server:
        async with client_for(ANTHROPIC, server.url, retry_settings) as client:
            with pytest.raises(ModelError) as stalled:
                await client.generate(request_for(QUESTION))
    assert stalled.value.fault is ModelFault.STALLED


KEPT_OPEN = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"
)


@pytest.mark.parametrize("wire", BOTH)
async def test_a_connection_that_was_closed_against_its_word_is_replaced(wire: str) -> None:
    """A server that promises to keep a connection and closes it after each stream is asked anew without a failure."""
    answer = KEPT_OPEN % (len(STREAM[wire]), STREAM[wire])
    closed = threading.Semaphore(0)
    with answering(wire, answer, answer, answer, answer, closed=closed) as url:
        async with client_for(wire, url, Timeouts()) as client:
            for _ in range(4):
                assert isinstance(await client.generate(request_for(QUESTION)), Turn)
                # A request on its way while the server closes is another fault, and may have been answered.
                await asyncio.to_thread(closed.acquire)


@contextmanager
def closing_on_the_way(answer: bytes) -> Generator[tuple[str, list[int]]]:
    """A server that answers a connection's first request, and closes the connection when the next one is on its way.

    It yields its address, and the number of requests that each connection brought.
    """
    listening = socket.create_server(("127.0.0.1", 0))
    brought: list[int] = []

    def serve(connection: socket.socket, number: int) -> None:
        with connection:
            while connection.recv(65_536):
                brought[number] += 1
                if brought[number] > 1:
                    return
                connection.sendall(answer)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                brought.append(0)
                threading.Thread(target=serve, args=(connection, len(brought) - 1), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", brought
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(5)


@pytest.mark.parametrize("wire", BOTH)
async def test_a_server_that_closes_what_it_promised_to_keep_is_trusted_once(wire: str) -> None:
    """One request fails, and may be sent again; each later one has a connection of its own."""
    with closing_on_the_way(KEPT_OPEN % (len(STREAM[wire]), STREAM[wire])) as (url, brought):
        async with client_for(wire, url + ("" if wire == ANTHROPIC else "/v1"), Timeouts()) as client:
            await client.generate(request_for(QUESTION))
            with pytest.raises(ModelError) as broken:
                await client.generate(request_for(QUESTION))
            assert broken.value.fault is ModelFault.TRANSPORT
            for _ in range(4):
                await client.generate(request_for(QUESTION))
    assert brought == [2, 1, 1, 1, 1]
