import json
from dataclasses import replace
from typing import Any, get_args

import pytest
from openai.types.chat.chat_completion_chunk import Choice
from pydantic import SecretStr

from explorer.llm.history import Histories
from explorer.llm.openai.chat import ChatWriter, OpenAIClient, to_prefix, to_rest
from explorer.llm.openai.dialect import dialect_of
from explorer.llm.openai.reply import STOPS, OpenAIReply
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
from explorer.schema.model_options import Price
from model_servers import OpenAIServer, Reply

PLACE = Endpoint("OpenAI", "http://127.0.0.1", "OPENAI_API_KEY", "OPENAI_BASE_URL")
READ = ToolSchema(name="read_file", description="Read.", parameters={"type": "object", "properties": {}})


def to_body(request: Request, *, official: bool) -> JsonObject:
    """The body as it is sent."""
    dialect = dialect_of("https://api.openai.com/v1" if official else "http://127.0.0.1/v1", request.model)
    heads = EncodedRequests(lambda asked: to_prefix(asked, dialect))
    messages = Histories(lambda model: ChatWriter(model, dialect)).messages(request)
    return json.loads(heads.body(request, messages, to_rest(request, dialect)))


def request_for(*history: Message) -> Request:
    return Request(
        agent="searcher-1",
        role="searcher",
        model="gpt-6-luna",
        system="You search.",
        tools=(READ,),
        history=history,
        max_output_tokens=1000,
    )


def collect(*deltas: dict[str, Any], finish: str = "stop", extra: dict[str, Any] | None = None) -> Turn:
    """Stream some deltas, then the finish."""
    reply = OpenAIReply(PLACE, ["read_file"], ReplyMeter(PLACE, 4096))
    chunks: list[dict[str, Any]] = [{"choices": [{"delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"delta": {}, "finish_reason": finish}], **(extra or {})})
    for chunk in chunks:
        reply.take(ServerEvent("message", json.dumps(chunk)))
    return reply.turn("gpt-6-luna")


def entry(**fields: Any) -> dict[str, Any]:
    """Write a delta with one piece of a call."""
    function = {name: fields.pop(name) for name in ("name", "arguments") if name in fields}
    return {"tool_calls": [{**fields, "function": function}]}


def calls_of(turn: Turn) -> list[tuple[str, object]]:
    return [(call.id, call.arguments) for call in turn.calls]


def test_every_stop_of_the_sdk_is_known() -> None:
    """The table of stops is total: a new word in the SDK breaks this test."""
    literal = get_args(Choice.model_fields["finish_reason"].annotation)[0]
    assert STOPS.keys() == set(get_args(literal))


def test_calls_without_ids_get_some() -> None:
    """Missing and empty ids are made up, unlike any other of the turn."""
    turn = collect(
        entry(index=0, name="read_file", arguments='{"n": 1}'),
        entry(index=1, id="call_1", name="read_file", arguments='{"n": 2}'),
        entry(index=2, id="", name="read_file", arguments=""),
    )
    assert calls_of(turn) == [("call00001", {"n": 1}), ("call_1", {"n": 2}), ("call00002", {})]
    assert [call["id"] for call in turn.blocks[0]["tool_calls"]] == ["call00001", "call_1", "call00002"]
    assert turn.stop is StopKind.TOOL_USE


def test_calls_without_an_index() -> None:
    """Without an index a name starts a call, and what has none continues the last."""
    turn = collect(
        entry(id="a", name="read_file", arguments='{"n": '),
        entry(arguments="1}"),
        entry(id="b", name="read_file", arguments='{"n": 2}'),
    )
    assert calls_of(turn) == [("a", {"n": 1}), ("b", {"n": 2})]


def test_calls_that_share_an_index() -> None:
    """Some servers number every call 0: another id with a name of its own is another call."""
    turn = collect(
        entry(index=0, id="a", name="read_file", arguments='{"n": 1}'),
        entry(index=0, id="b", name="read_file", arguments='{"n": 2}'),
        entry(index=0, id="b", arguments=""),
    )
    assert calls_of(turn) == [("a", {"n": 1}), ("b", {"n": 2})]


def test_arguments_given_as_an_object() -> None:
    """An object where its text belongs is taken as it is."""
    turn = collect(entry(index=0, id="a", name="read_file", arguments={"n": 1}))
    assert calls_of(turn) == [("a", {"n": 1})]
    assert turn.blocks[0]["tool_calls"][0]["function"]["arguments"] == '{"n": 1}'


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_but_is_no_text(field: str) -> None:
    """What servers add to the standard stays in the block."""
    turn = collect({field: "Let me "}, {field: "think.", "content": None}, {"content": "Yes."}, {"details": [1]})
    assert turn.text == "Yes."
    assert turn.blocks == ({"role": "assistant", "content": "Yes.", field: "Let me think.", "details": [1]},)


def test_a_call_written_as_text_is_a_call() -> None:
    """A repaired call stands in the block as a real one, so that its result can answer it."""
    turn = collect({"content": '{"name": "read_file", '}, {"content": '"arguments": {"n": 1}}'})
    assert calls_of(turn) == [("call00001", {"n": 1})]
    assert (turn.text, turn.stop) == ("", StopKind.TOOL_USE)
    assert "written as text" in turn.stop_detail
    body = to_body(
        request_for(turn, Results(results=(CallResult(id="call00001", name="read_file", content="x"),))), official=False
    )
    assert body["messages"][1:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call00001",
                    "type": "function",
                    "function": {"name": "read_file", "arguments": '{"n": 1}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call00001", "content": "x"},
    ]


def test_a_cut_off_written_call_stays_text() -> None:
    """Nothing that the output limit may have cut is made a call."""
    text = '{"name": "read_file", "arguments": {}}'
    turn = collect({"content": text}, finish="length")
    assert (turn.text, turn.calls, turn.stop) == (text, (), StopKind.MAX_TOKENS)


def test_usage_anywhere() -> None:
    """Usage on the last chunk with a choice counts as well; odd numbers count nothing."""
    usage = {"prompt_tokens": 7, "completion_tokens": -2, "prompt_tokens_details": None}
    turn = collect({"content": "a"}, extra={"usage": usage})
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (7, 0)


def test_a_whole_completion_is_understood() -> None:
    """A server that does not stream answers with one completion."""
    reply = OpenAIReply(PLACE, (), ReplyMeter(PLACE, 4096))
    message = {"role": "assistant", "content": "Yes."}
    reply.take(ServerEvent("message", json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]})))
    assert reply.turn("m").text == "Yes."


def test_the_output_limit_has_two_names() -> None:
    """OpenAI takes only the new name of the output limit, other servers the old one."""
    request = request_for(UserText(text="Go."))
    assert to_body(request, official=True)["max_completion_tokens"] == 1000
    assert to_body(replace(request, model="qwen3"), official=False)["max_tokens"] == 1000


def test_a_foreign_turn_is_rebuilt() -> None:
    """Another provider's turn goes out as text and calls; broken arguments as an empty object."""
    turn = Turn(
        provider="anthropic",
        model="claude-opus-5-5",
        blocks=({"type": "thinking", "thinking": "x", "signature": "y"},),
        text="",
        calls=(ToolCall(id="toolu_1", name="read_file", problem="broken"),),
        stop=StopKind.TOOL_USE,
    )
    results = Results(results=(CallResult(id="toolu_1", name="read_file", content="broken", is_error=True),))
    body = to_body(request_for(UserText(text="Go."), turn, results, UserText(text="On.")), official=True)
    assert body["messages"][2:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c00001000", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "c00001000", "content": "broken"},
        {"role": "user", "content": "On."},
    ]


async def test_a_server_that_does_not_stream() -> None:
    """A completion in one piece of JSON is a turn; an error in JSON under status 200 is an error."""
    completion = '{"choices": [{"message": {"content": "Yes."}, "finish_reason": "stop"}]}'
    with OpenAIServer([Reply(body=completion), Reply(body='{"error": {"code": 503, "message": "x"}}')]) as server:
        async with OpenAIClient(ClientOptions(base_url=server.url, price=Price(input_usd=1, output_usd=1))) as client:
            turn = await client.generate(request_for(UserText(text="Go.")))
            with pytest.raises(ModelError) as caught:
                await client.generate(request_for(UserText(text="Go.")))
    assert (turn.text, turn.cost_usd) == ("Yes.", 0)
    assert caught.value.fault is ModelFault.OVERLOADED


async def test_the_environment_does_not_interfere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another server learns neither key nor organisation from the environment, and no proxy stands before it."""
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, "from-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with OpenAIServer([Reply(text="Yes.")]) as server:
        async with OpenAIClient(ClientOptions(base_url=server.url)) as client:
            turn = await client.generate(request_for(UserText(text="Go.")))
    assert (turn.text, turn.cost_usd) == ("Yes.", None)
    assert "from-environment" not in json.dumps(server.headers)


async def test_connections_are_used_again_and_keys_stay_secret() -> None:
    """A turn leaves its connection in order for the next, and a refused key is not quoted."""
    with OpenAIServer([Reply(text="a"), Reply(text="b"), Reply(status=401, error="bad_key")]) as server:
        async with OpenAIClient(ClientOptions(base_url=server.url, key=SecretStr(" sk-wrong-1234\n"))) as client:
            for text in ("a", "b"):
                assert (await client.generate(request_for(UserText(text="Go.")))).text == text
            with pytest.raises(ModelError) as caught:
                await client.generate(request_for(UserText(text="Go.")))
    assert "sk-wrong" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.exit_code == 4
