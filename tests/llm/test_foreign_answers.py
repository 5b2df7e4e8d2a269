"""What answers in place of a model server is named: at the first request at once, later after patient attempts."""

import asyncio
import re
from pathlib import Path

import pytest

from explorer.llm.model_list import list_models
from explorer.llm.options import Timeouts
from explorer.llm.retry import FIRST_CLOSED, MAX_ATTEMPTS, FailedAttempt, RateGate, RetryingClient
from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.messages import LLMClient
from llm.conversations import BOTH, QUESTION
from llm.fake_time import FakeTime
from llm.foreign_servers import EVENTS, FOREIGN, WireModel, answering, tls_context
from llm.test_conversations import KEY, client_for, request_for
from thoroughness import each_slow_but

PATIENCE = Timeouts(connect_s=10, first_content_s=20, idle_s=20, total_s=30)


async def ask(wire: str, url: str) -> ModelError:
    """Return what a first request to a server ends with."""
    async with client_for(wire, url, PATIENCE) as client:
        with pytest.raises(ModelError) as caught:
            await client.generate(request_for(QUESTION))
    return caught.value


def check(error: ModelError, says: str) -> None:
    """Compare an error with what all of this kind promise: the host, what it sent, one line, a setting, no key."""
    assert re.search(says, error.message), error.message
    assert error.is_wrong_server
    assert error.fault is ModelFault.TRANSPORT
    assert "127.0.0.1" in error.message
    assert "\n" not in error.message
    assert len(error.message) < 400
    assert "_BASE_URL" in error.hint
    assert KEY not in error.message + error.hint


@pytest.mark.parametrize("wire", BOTH)
@pytest.mark.parametrize("name", each_slow_but(3, zip(FOREIGN)))
async def test_a_first_answer_is_reported_as_what_it_is(name: str, wire: str) -> None:
    """Another protocol, a web page, a broken answer or none: the error names the host and what it sent."""
    foreign = FOREIGN[name]
    with answering(foreign) as server:
        check(await ask(wire, f"http://127.0.0.1:{server.port}/v1"), foreign.says)


@pytest.mark.slow
@pytest.mark.parametrize("wire", BOTH)
async def test_the_wrong_scheme_is_reported_as_that(wire: str, tmp_path: Path) -> None:
    """TLS spoken to a plain port, plain HTTP spoken to a TLS port, and a certificate that nobody trusts."""
    with answering(WireModel(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n", "")) as plain:
        error = await ask(wire, f"https://127.0.0.1:{plain.port}/v1")
        check(error, "does not speak TLS")
        assert "http://" in error.hint
    with answering(FOREIGN["nothing"], tls_context(tmp_path)) as secure:
        error = await ask(wire, f"http://127.0.0.1:{secure.port}/v1")
        check(error, "closed the connection without an answer|speaks TLS")
        assert "https://" in error.hint
        check(await ask(wire, f"https://127.0.0.1:{secure.port}/v1"), "certificate of 127.0.0.1.* is not trusted")


@pytest.mark.parametrize("name", ["SSH", "a web page", "nothing"])
async def test_the_list_of_models_reports_it_too(name: str) -> None:
    """The question for a server's models comes before the first request, and says the same."""
    foreign = FOREIGN[name]
    with answering(foreign) as server:
        with pytest.raises(ModelError) as caught:
            await list_models(f"http://127.0.0.1:{server.port}/v1")
        # The loop closes the connection in a turn of its own; the server waits for that.
        await asyncio.sleep(0.01)
    check(caught.value, foreign.says)


def retrying(client: LLMClient, failures: list[ModelError], *, has_answered: bool = False) -> RetryingClient:
    """Wrap a client so that it asks again without waiting."""
    timing = FakeTime().timing

    async def on_failure(failed: FailedAttempt) -> None:
        failures.append(failed.error)

    gate = RateGate(4, timing, has_answered=has_answered)
    return RetryingClient(client, gate, on_failure, timing=timing)


@pytest.mark.parametrize("wire", BOTH)
@pytest.mark.parametrize("name", ["SSH", "a web page", "no gzip"])
async def test_a_wrong_first_contact_is_not_repeated(name: str, wire: str) -> None:
    """One connection, one failure: the address is wrong, and asking again would not change that."""
    failures: list[ModelError] = []
    with answering(FOREIGN[name]) as server:
        async with client_for(wire, f"http://127.0.0.1:{server.port}/v1", PATIENCE) as client:
            with pytest.raises(ModelError):
                await retrying(client, failures).generate(request_for(QUESTION))
    assert (server.connections, len(failures)) == (1, 1)


@pytest.mark.parametrize("wire", BOTH)
async def test_a_first_connection_that_is_closed_is_tried_three_times(wire: str) -> None:
    """A server that restarts closes it, too; after the third the address counts as wrong."""
    failures: list[ModelError] = []
    with answering(FOREIGN["nothing"]) as server:
        async with client_for(wire, f"http://127.0.0.1:{server.port}/v1", PATIENCE) as client:
            with pytest.raises(ModelError) as caught:
                await retrying(client, failures).generate(request_for(QUESTION))
    check(caught.value, FOREIGN["nothing"].says)
    assert (server.connections, len(failures)) == (FIRST_CLOSED, FIRST_CLOSED)


@pytest.mark.parametrize("wire", each_slow_but(3, zip(BOTH)))
async def test_the_same_from_a_server_that_has_answered_before_is_repeated(wire: str) -> None:
    """A proxy's page or a broken connection in the middle of a run passes, so it is asked again."""
    failures: list[ModelError] = []
    with answering(FOREIGN["a web page"]) as server:
        async with client_for(wire, f"http://127.0.0.1:{server.port}/v1", PATIENCE) as client:
            with pytest.raises(ModelError, match="Router login"):
                await retrying(client, failures, has_answered=True).generate(request_for(QUESTION))
    assert server.connections == len(failures) > MAX_ATTEMPTS


@pytest.mark.parametrize("wire", BOTH)
@pytest.mark.parametrize(
    "framing", ["transfer-encoding: chunked\r\n\r\n5\r\ndata:\r\n", "content-length: 99\r\n\r\ndata:"]
)
async def test_a_first_reply_that_is_cut_is_repeated(wire: str, framing: str) -> None:
    """A stream that began is a model server's, even where it breaks off before its first event is whole."""
    failures: list[ModelError] = []
    with answering(WireModel(EVENTS + framing.encode(), "")) as server:
        async with client_for(wire, f"http://127.0.0.1:{server.port}/v1", PATIENCE) as client:
            with pytest.raises(ModelError, match="the stream broke"):
                await retrying(client, failures).generate(request_for(QUESTION))
    assert (server.connections, len(failures)) == (MAX_ATTEMPTS, MAX_ATTEMPTS)
