import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from compatible_servers import model_of, speaking
from explorer.llm.anthropic.messages import AnthropicClient
from explorer.llm.openai.chat import OpenAIClient
from explorer.llm.openai.responses import ResponsesClient
from explorer.llm.options import ClientOptions, Timeouts
from explorer.schema.errors import ModelError
from explorer.schema.messages import LLMClient, Message, Request, Results, Turn
from llm.conversations import (
    ANTHROPIC,
    BOTH,
    CHAT,
    CONVERSATIONS,
    QUESTION,
    RESPONSES,
    TOOLS,
    Conversation,
    Expected,
    results,
)
from model_servers import AnthropicServer, ModelServer, OpenAIResponsesServer, OpenAIServer, Reply
from vendor_rules import compatible
from vendor_rules.rule import RuleSet

GOLDEN = Path(__file__).parent / "golden"
FAST = Timeouts(first_content_s=0.3, idle_s=0.3, total_s=5)
KEY = "sk-secret-key"


def request_for(history: tuple[Message, ...], model: str = "model-a") -> Request:
    """A request with a history; without one it asks a question, because vendors refuse a request of nothing."""
    return Request(
        agent="searcher-1",
        role="searcher",
        model=model,
        system="You search.",
        tools=TOOLS,
        history=history or QUESTION,
        max_output_tokens=4096,
    )


SERVERS = {ANTHROPIC: AnthropicServer, CHAT: OpenAIServer, RESPONSES: OpenAIResponsesServer}
CLIENTS = {ANTHROPIC: AnthropicClient, CHAT: OpenAIClient, RESPONSES: ResponsesClient}


def server_for(wire: str, *replies: Reply) -> ModelServer:
    return SERVERS[wire](replies)


@asynccontextmanager
async def client_for(wire: str, url: str, timeouts: Timeouts) -> AsyncGenerator[LLMClient]:
    options = ClientOptions(base_url=url, key=SecretStr(KEY), timeouts=timeouts)
    async with CLIENTS[wire](options) as client:
        yield client


def answering(turn: Turn, given: Results) -> Results:
    """Results with the ids of the calls they answer: some servers give calls ids of their own."""
    pairs = zip(turn.calls, given.results, strict=True)
    return Results(results=tuple(one.model_copy(update={"id": call.id}) for call, one in pairs))


async def stream_reply(conversation: Conversation, wire: str, url: str, model: str = "model-a") -> Turn:
    """Ask once per reply, going on with what was said."""
    timeouts = FAST if conversation.is_fast else Timeouts()
    history = conversation.history
    async with client_for(wire, url, timeouts) as client:
        turn = await client.generate(request_for(history, model))
        for _ in conversation.replies[1:]:
            answers: tuple[Results, ...] = ()
            if turn.calls:
                contents = [call.problem or f"content of {call.arguments}" for call in turn.calls]
                has_problem = any(call.problem for call in turn.calls)
                answers = (answering(turn, results(wire, *contents, is_error=has_problem)),)
            history = (*history, turn, *answers, *conversation.then)
            turn = await client.generate(request_for(history, model))
    return turn


CASES = [
    pytest.param(
        conversation,
        wire,
        id=f"{conversation.name}-{wire}",
        marks=[] if (number + shift) % 4 == 0 else [pytest.mark.slow],
    )
    for number, conversation in enumerate(CONVERSATIONS)
    for shift, wire in enumerate(conversation.wires)
]
"""Each conversation on each wire; half of them every day."""


@pytest.mark.parametrize(("conversation", "wire"), CASES)
async def test_conversation(conversation: Conversation, wire: str, request: pytest.FixtureRequest) -> None:
    """Every conversation ends on every wire as the table says, and its requests are the golden ones."""
    expected = conversation.expected
    with server_for(wire, *conversation.replies) as server:
        if expected.fault is None:
            check_turn(await stream_reply(conversation, wire, server.url), expected)
        else:
            with pytest.raises(ModelError) as caught:
                await stream_reply(conversation, wire, server.url)
            check_error(caught.value, expected)
    if len(conversation.replies) > 1 or conversation.name == "text":
        check_golden(f"{wire}-{conversation.name}", server.requests, request.config)
    assert {headers["content-type"] for headers in server.headers} == {"application/json"}
    assert all(KEY in headers.get("authorization", headers.get("x-api-key", "")) for headers in server.headers)


DIALECT_CASES = [
    pytest.param(conversation, rules, id=f"{conversation.name}-{rules.name}")
    for conversation in CONVERSATIONS
    for rules in compatible.DIALECTS
    if CHAT in conversation.wires
]


@pytest.mark.slow
@pytest.mark.parametrize(("conversation", "rules"), DIALECT_CASES)
async def test_conversation_with_a_compatible_server(conversation: Conversation, rules: RuleSet) -> None:
    """Every conversation ends as the table says with every compatible server, whose rules are broken once at most."""
    expected, model = conversation.expected, model_of(rules)
    with speaking(rules, conversation.replies, expects_refusals=True) as server:
        if expected.fault is None:
            check_turn(await stream_reply(conversation, CHAT, server.url, model), expected)
        else:
            with pytest.raises(ModelError) as caught:
                await stream_reply(conversation, CHAT, server.url, model)
            check_error(caught.value, expected)
    refused = [name for name, _ in server.refused]
    assert len(set(refused)) == len(refused)


def check_turn(turn: Turn, expected: Expected) -> None:
    assert turn.text == expected.text
    assert tuple((call.name, call.arguments) for call in turn.calls) == expected.calls
    assert turn.stop is expected.stop
    assert expected.says in turn.stop_detail
    assert turn.usage == expected.usage
    problems = [call.problem for call in turn.calls]
    assert expected.problem in (problems[-1] if problems else "")
    assert all(bool(call.problem) is (call.arguments is None) for call in turn.calls)
    assert len({call.id for call in turn.calls} - {""}) == len(turn.calls)
    turn.model_dump_json()


def check_error(error: ModelError, expected: Expected) -> None:
    assert error.fault is expected.fault
    assert expected.says in error.message
    assert error.retry_after_s == expected.retry_after_s
    assert KEY not in error.message
    assert "sk-" not in error.message


def check_golden(name: str, bodies: list[dict[str, Any]], config: pytest.Config) -> None:
    path = GOLDEN / f"{name}.json"
    text = json.dumps(bodies, indent=1, ensure_ascii=False) + "\n"
    if config.getoption("--update-golden", default=False):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_every_fault_can_happen_on_both_wires() -> None:
    """A conversation that is left out on a wire is one whose words that wire does not have."""
    left_out = {conversation.name for conversation in CONVERSATIONS if conversation.wires != BOTH}
    assert left_out == {
        "pause",
        "context_window_full",
        "redacted_thinking_goes_back_verbatim",
        "usage_missing",
    }
