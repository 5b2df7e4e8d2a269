import json
from collections.abc import Collection
from typing import Any, get_args

import pytest
from anthropic.types import StopReason
from pydantic import SecretStr

from explorer.llm.anthropic.messages import AnthropicClient, MessagesWriter, to_prefix, to_rest, with_cache_marks
from explorer.llm.anthropic.reply import STOPS, AnthropicReply
from explorer.llm.history import Histories
from explorer.llm.options import ClientOptions, Endpoint, ReplyMeter
from explorer.llm.prompt_cache import EncodedRequests
from explorer.llm.streaming import ServerEvent
from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.messages import (
    CallResult,
    JsonObject,
    Message,
    Request,
    Results,
    StopKind,
    ToolCall,
    ToolSchema,
    Turn,
    UserText,
)
from model_servers import AnthropicServer, Reply

PLACE = Endpoint("Anthropic", "http://127.0.0.1", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")
READ = ToolSchema(name="read_file", description="Read.", parameters={"type": "object", "properties": {}})


def written(request: Request, kept: Collection[int] = ()) -> list[JsonObject]:
    """The history as it is sent."""
    return with_cache_marks(Histories(MessagesWriter).messages(request, kept))


def to_body(request: Request) -> JsonObject:
    """The body as it is sent, with all reasoning that may go back at all."""
    messages = written(request, range(len(request.history)))
    return json.loads(EncodedRequests(to_prefix).body(request, messages, to_rest(request)))


def request_for(*history: Message, system: str = "You search.") -> Request:
    return Request(
        agent="searcher-1",
        role="searcher",
        model="claude-opus-5-5",
        system=system,
        tools=(READ,),
        history=history,
        max_output_tokens=1000,
    )


def foreign_turn(*ids: str) -> Turn:
    return Turn(
        provider="openai-chat",
        model="gpt-6-luna",
        blocks=({"role": "assistant", "content": "Look."},),
        text="Look.",
        calls=tuple(ToolCall(id=call_id, name="read file!", arguments={"n": 1}) for call_id in ids),
        stop=StopKind.TOOL_USE,
    )


def test_every_stop_of_the_sdk_is_known() -> None:
    """The table of stops is total: a new word in the SDK breaks this test."""
    assert STOPS.keys() == set(get_args(StopReason))


def test_a_foreign_turn_is_rebuilt() -> None:
    """Another provider's turn goes out as text and calls, with ids and names that are valid and unique."""
    result = CallResult(id="call_1", name="read file!", content="")
    history = (
        UserText(text="Go."),
        foreign_turn("call_1"),
        Results(results=(result,)),
        foreign_turn("call_1"),
        Results(results=(result,)),
    )
    messages = to_body(request_for(*history))["messages"]
    assert messages[1]["content"] == [
        {"type": "text", "text": "Look."},
        {"type": "tool_use", "id": "c00001000", "name": "read_file_", "input": {"n": 1}},
    ]
    mark = {"type": "ephemeral"}
    assert messages[2]["content"] == [{"type": "tool_result", "tool_use_id": "c00001000", "cache_control": mark}]
    assert messages[3]["content"][1]["id"] == "c00003000"
    assert messages[4]["content"][0]["tool_use_id"] == "c00003000"


def test_results_stand_before_words() -> None:
    """Words that come before the results of a turn are moved behind them, into one message."""
    result = Results(results=(CallResult(id="a", name="read_file", content="x", is_error=True),))
    body = to_body(request_for(UserText(text="Go."), foreign_turn("a"), UserText(text="Note."), result))
    kinds = [block["type"] for block in body["messages"][2]["content"]]
    assert kinds == ["tool_result", "text"]
    assert body["messages"][2]["content"][0]["is_error"] is True


def test_empty_texts_are_never_sent() -> None:
    """Empty words, empty system text and the model's own empty blocks are left out: the API rejects them."""
    own = Turn(
        provider="anthropic",
        model="claude-opus-5-5",
        blocks=({"type": "text", "text": "\n"}, {"type": "text", "text": "Yes."}),
        stop=StopKind.END,
    )
    body = to_body(request_for(UserText(text="Go."), own, UserText(text=" "), UserText(text="On."), system=" "))
    assert "system" not in body
    assert [[block["text"] for block in message["content"]] for message in body["messages"]] == [
        ["Go."],
        ["Yes."],
        ["On."],
    ]


THINKING: JsonObject = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
REDACTED: JsonObject = {"type": "redacted_thinking", "data": "RW5j"}
USED: JsonObject = {"type": "tool_use", "id": "a", "name": "read_file", "input": {}}
SAID: JsonObject = {"type": "text", "text": "Look."}


@pytest.mark.parametrize(
    ("blocks", "stop", "sent"),
    [
        ((THINKING, REDACTED, SAID, THINKING, USED), StopKind.TOOL_USE, [0, 1, 2, 3, 4]),
        (({**THINKING, "thinking": ""}, USED), StopKind.TOOL_USE, [0, 1]),
        ((THINKING, {"type": "text", "text": " "}, USED), StopKind.TOOL_USE, [0, 2]),
        ((THINKING, {"type": "text", "text": " "}, THINKING, USED), StopKind.TOOL_USE, [3]),
        ((THINKING, SAID, {"type": "thinking", "thinking": "And", "signature": ""}), StopKind.MAX_TOKENS, [1]),
        ((THINKING, SAID, THINKING), StopKind.END, [1]),
        ((THINKING, SAID, THINKING), StopKind.PAUSE, [0, 1, 2]),
        ((THINKING,), StopKind.END, []),
        ((), StopKind.END, []),
    ],
    ids=["interleaved", "signature only", "gap behind", "gap before", "cut", "last", "paused", "alone", "nothing"],
)
def test_a_turns_reasoning_goes_back_whole_or_not_at_all(
    blocks: tuple[JsonObject, ...], stop: StopKind, sent: list[int]
) -> None:
    """Where a part of it cannot stand where it was made, the API would refuse the rest."""
    turn = Turn(provider="anthropic", model="claude-opus-5-5", blocks=blocks, stop=stop)
    messages = written(request_for(UserText(text="Go."), turn), {1})
    assert messages[1:] == ([{"role": "assistant", "content": [blocks[at] for at in sent]}] if sent else [])
    without = written(request_for(turn))
    assert not any(block in (THINKING, REDACTED) for one in without for block in one["content"])


def marked_places(request: Request) -> list[tuple[str, int, int]]:
    """Where a request's marks stand: `system`, or a message and a block of it."""
    body = to_body(request)
    places = [("tools", 0, at) for at, tool in enumerate(body.get("tools", ())) if "cache_control" in tool]
    places += [("system", 0, at) for at, block in enumerate(body.get("system", ())) if "cache_control" in block]
    return places + [
        (message["role"], number, at)
        for number, message in enumerate(body["messages"])
        for at, block in enumerate(message["content"])
        if "cache_control" in block
    ]


def busy_turn(calls: int, *, thinks: bool = True) -> tuple[Turn, Results]:
    """A turn of so many calls, and its results."""
    thinking = [{"type": "thinking", "thinking": "Hm.", "signature": "s"}] * (2 * calls if thinks else 0)
    ids = [f"toolu_{number}" for number in range(calls)]
    used: list[dict[str, Any]] = [{"type": "tool_use", "id": one, "name": "read_file", "input": {}} for one in ids]
    turn = Turn(
        provider="anthropic",
        model="claude-opus-5-5",
        blocks=(*thinking, *used),
        calls=tuple(ToolCall(id=one, name="read_file", arguments={}) for one in ids),
        stop=StopKind.TOOL_USE,
    )
    return turn, Results(results=tuple(CallResult(id=one, name="read_file", content="x") for one in ids))


def test_cache_marks_stand_at_the_head_and_at_the_last_two_tails() -> None:
    """The end of the system text, what was said last, and what was said last in the request before."""
    first, second = busy_turn(1), busy_turn(2)
    assert marked_places(request_for(UserText(text="Go."))) == [("system", 0, 0), ("user", 0, 0)]
    assert marked_places(request_for(UserText(text="Go."), *first, *second, UserText(text="Note."))) == [
        ("system", 0, 0),
        ("user", 2, 0),
        ("user", 4, 2),
    ]


def test_without_system_text_the_tools_are_marked() -> None:
    """The head has its mark, whatever it consists of."""
    assert marked_places(request_for(UserText(text="Go."), system=" ")) == [("tools", 0, 0), ("user", 0, 0)]


@pytest.mark.parametrize(("calls", "marks"), [(3, 3), (7, 4), (60, 4)])
def test_a_long_turn_is_marked_in_its_middle(calls: int, marks: int) -> None:
    """At most four marks, and none on thinking, however many blocks a turn adds."""
    request = request_for(UserText(text="Go."), *busy_turn(calls))
    places = marked_places(request)
    assert len(places) == marks
    messages = to_body(request)["messages"]
    blocks = [messages[number]["content"][at] for role, number, at in places if role in {"user", "assistant"}]
    assert all(block["type"] != "thinking" for block in blocks)


def test_marking_leaves_the_turns_blocks_alone() -> None:
    """A mark is put on a copy: the blocks of a turn go back as they came in every later request."""
    turn, results = busy_turn(20, thinks=False)
    to_body(request_for(UserText(text="Go."), turn, results))
    assert "cache_control" not in turn.model_dump_json()


def collect(*payloads: dict[str, Any]) -> Turn:
    reply = AnthropicReply(PLACE, ReplyMeter(PLACE, 4096))
    for payload in payloads:
        reply.take(ServerEvent("message", json.dumps(payload)))
    return reply.turn("claude-opus-5-5")


def block(index: int, content: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    start = {"type": "content_block_start", "index": index, "content_block": content}
    return [start, *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)]


STOP = [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}]


def test_unknown_blocks_and_deltas_are_kept() -> None:
    """A block type of the future passes through whole, with citations and other additions in their fields."""
    turn = collect(
        {"type": "event_of_the_future"},
        *block(0, {"type": "compaction", "content": None}, {"type": "compaction_delta", "content": "short"}),
        *block(
            1,
            {"type": "text", "text": ""},
            {"type": "text_delta", "text": "As said"},
            {"type": "citations_delta", "citation": {"url": "u"}},
            {"type": "weight_delta", "weight": 3},
        ),
        *STOP,
    )
    assert turn.blocks == (
        {"type": "compaction", "content": "short"},
        {"type": "text", "text": "As said", "citations": [{"url": "u"}], "weight": 3},
    )
    assert turn.text == "As said"


@pytest.mark.parametrize(
    ("given", "arguments", "problem"),
    [({"a": 1}, {"a": 1}, ""), ([1], None, "a JSON array"), ("x", None, "a JSON string"), ({}, {}, "")],
)
def test_arguments_sent_whole(given: object, arguments: object, problem: str) -> None:
    """Servers that put the arguments into the block's start are understood as strictly."""
    turn = collect(*block(0, {"type": "tool_use", "id": "", "name": "read_file", "input": given}), *STOP)
    assert turn.calls[0].id == "call00001"
    assert turn.calls[0].arguments == arguments
    assert problem in turn.calls[0].problem
    assert turn.blocks[0]["input"] == (arguments or {})


@pytest.mark.parametrize(
    "payloads",
    [
        [{"type": "content_block_delta", "index": 4, "delta": {"type": "text_delta", "text": "x"}}],
        [{"type": "message_stop"}],
        [[1]],
        [],
    ],
)
def test_a_broken_stream_is_no_turn(payloads: list[Any]) -> None:
    """Pieces without a block, an end without a stop, and JSON that is no object are faults of the transport."""
    with pytest.raises(ModelError) as caught:
        collect(*payloads)
    assert caught.value.fault is ModelFault.TRANSPORT


async def test_a_server_that_is_not_there() -> None:
    """A refused connection names the address and what to check."""
    with AnthropicServer([]) as server:
        url = server.url
    async with AnthropicClient(ClientOptions(base_url=url)) as client:
        with pytest.raises(ModelError) as caught:
            await client.generate(request_for(UserText(text="Go.")))
    assert caught.value.fault is ModelFault.TRANSPORT
    assert url in caught.value.message
    assert "ANTHROPIC_BASE_URL" in caught.value.hint


async def test_the_environment_does_not_interfere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys, addresses and proxies of the environment are not used for a server that was named, here without key."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-from-environment")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token-from-environment")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with AnthropicServer([Reply(text="Yes.")]) as server:
        async with AnthropicClient(ClientOptions(base_url=server.url)) as client:
            turn = await client.generate(request_for(UserText(text="Go.")))
    assert turn.text == "Yes."
    assert "from-environment" not in json.dumps(server.headers)


async def test_a_turn_has_its_price() -> None:
    """The cost of a known model is on the turn."""
    with AnthropicServer([Reply(text="Yes.", usage={"input": 1000, "output": 0})]) as server:
        async with AnthropicClient(ClientOptions(base_url=server.url, key=SecretStr("k"))) as client:
            turn = await client.generate(request_for(UserText(text="Go.")))
    assert turn.cost_usd is not None
    assert turn.cost_usd > 0
