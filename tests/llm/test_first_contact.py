"""What a wrong address, a server that is not started and a page for people lead to, at first contact and later."""

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from pydantic import SecretStr

from explorer.llm.foreign_answers import connection_error
from explorer.llm.model_list import list_models
from explorer.llm.openai.chat import OpenAIClient
from explorer.llm.options import ClientOptions, Endpoint
from explorer.llm.retry import MAX_ATTEMPTS, FailedAttempt, RateGate, RetryingClient
from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.messages import LLMClient, Request, UserText
from llm.fake_time import FakeTime
from model_servers import OpenAIServer, Reply
from sources.loopback import closed_port

REQUEST = Request(
    agent="a",
    role="searcher",
    model="m",
    system="",
    tools=(),
    history=(UserText(text="Go."),),
    max_output_tokens=100,
)
LOGIN = "<!DOCTYPE html><html><head><title>Sign in &amp; go on</title></head><body>Key</body></html>"


@asynccontextmanager
async def asking(base_url: str) -> AsyncGenerator[LLMClient]:
    async with OpenAIClient(ClientOptions(base_url=base_url)) as client:
        yield client


async def failure(base_url: str) -> ModelError:
    async with asking(base_url) as client:
        with pytest.raises(ModelError) as caught:
            await client.generate(REQUEST)
    return caught.value


def test_a_provider_out_of_reach_blames_no_setting_that_is_not_set() -> None:
    """At the provider's own address the network is at fault, or a proxy that nobody named."""
    own = Endpoint("Anthropic", "https://api.anthropic.com", "KEY", "ANTHROPIC_BASE_URL", is_default=True)
    for error in (connection_error(socket.gaierror(-2, "no"), own), connection_error(ConnectionResetError("cut"), own)):
        assert error.hint == "check the network; if it has a proxy, set HTTPS_PROXY"


@pytest.mark.parametrize(
    ("key", "words", "hint"),
    [
        ("", "needs a key, and none is set (status 401)", "set OPENAI_API_KEY"),
        ("sk-of-nobody", "refused the key (status 401)", "check OPENAI_API_KEY"),
    ],
)
async def test_a_missing_key_is_not_called_a_wrong_one(key: str, words: str, hint: str) -> None:
    """What to do differs: to set a key, or to look at the one that is set."""
    with OpenAIServer([Reply(status=401, error="bad_key")]) as server:
        async with OpenAIClient(ClientOptions(base_url=server.url, key=SecretStr(key))) as client:
            with pytest.raises(ModelError) as caught:
                await client.generate(REQUEST)
    assert caught.value.message.endswith(words)
    assert caught.value.hint.startswith(hint)


async def test_an_unknown_host_is_named_with_its_setting() -> None:
    """A host that does not exist is a setup fault, and the line names the host and the setting."""
    for error in (
        await failure("http://no-such-host.invalid/v1"),
        await caught_listing("http://no-such-host.invalid/v1"),
    ):
        assert "the host name no-such-host.invalid cannot be resolved" in error.message
        assert "OPENAI_BASE_URL" in error.hint
        assert (error.fault, error.is_wrong_server) == (ModelFault.TRANSPORT, True)


async def caught_listing(base_url: str) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await list_models(base_url)
    return caught.value


async def test_a_server_that_is_not_started_says_how_to_start_it() -> None:
    """A refused connection names the port; for the ports of known local servers the command is given."""
    port = closed_port()
    error = await failure(f"http://127.0.0.1:{port}/v1")
    assert f"nothing listens at 127.0.0.1, port {port}" in error.message
    assert (error.is_wrong_server, error.hint) == (True, "start the server; or correct OPENAI_BASE_URL")


@pytest.mark.parametrize(("port", "command"), [(11434, "ollama serve"), (1234, "lms server start")])
async def test_the_usual_local_servers_are_known(port: int, command: str) -> None:
    """At the ports of Ollama and LM Studio the hint is the command that starts them."""
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            pytest.skip(f"something listens at port {port}")
    assert command in (await failure(f"http://127.0.0.1:{port}/v1")).hint


async def test_a_web_page_is_named_as_such() -> None:
    """A login page under status 200, and an error page under a path that is none, are named with title and address."""
    with OpenAIServer([Reply(body=LOGIN), Reply(text="Fine."), Reply(body=LOGIN)]) as server:
        async with asking(server.url) as client:
            for answers in (False, True, False):
                if answers:
                    assert (await client.generate(REQUEST)).text == "Fine."
                    continue
                with pytest.raises(ModelError) as caught:
                    await client.generate(REQUEST)
                assert "answered with a web page ('Sign in & go on')" in caught.value.message
                assert (caught.value.fault, caught.value.is_wrong_server) == (ModelFault.TRANSPORT, True)
    with OpenAIServer([Reply(status=404, body=LOGIN)]) as server:
        error = await failure(server.url)
    assert "a web page titled 'Sign in & go on'" in error.message
    assert f"{server.url}/chat/completions" in error.message
    assert error.fault is ModelFault.REJECTED


async def test_a_path_that_is_none_is_named() -> None:
    """Where the base URL lacks its version, the address that was tried is shown, and what it should end in."""
    with OpenAIServer([]) as server:
        error = await failure(server.origin)
        assert f"has nothing at {server.origin}/chat/completions (status 404)" in error.message
        assert error.hint == "check the address in OPENAI_BASE_URL: it should end in /v1"


async def test_a_setup_fault_is_waited_out_only_once_a_server_has_answered() -> None:
    """At first contact there is one attempt; after an answer, or in a resumed run, the same fault is an outage."""
    port = closed_port()
    attempts: list[float | None] = []

    async def note(failed: FailedAttempt) -> None:
        attempts.append(failed.waits_s)

    async def ask(*, has_answered: bool) -> int:
        attempts.clear()
        timing = FakeTime().timing
        gate = RateGate(4, timing, has_answered=has_answered)
        async with asking(f"http://127.0.0.1:{port}/v1") as client:
            with pytest.raises(ModelError):
                await RetryingClient(client, gate, note, timing=timing).generate(REQUEST)
        return len(attempts)

    assert await ask(has_answered=False) == 1
    assert await ask(has_answered=True) > MAX_ATTEMPTS
