import json
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from openai.types.responses.response import IncompleteDetails
from openai.types.responses.response_error import ResponseError
from openai.types.responses.response_status import ResponseStatus
from pydantic import SecretStr

from explorer.llm.clients import Clients
from explorer.llm.faults import KINDS
from explorer.llm.history import BoundReasoning, Histories
from explorer.llm.models import ModelRef
from explorer.llm.openai.responses import (
    REASONS,
    STATUSES,
    InputWriter,
    ResponsesClient,
    ResponsesReply,
    to_prefix,
    to_rest,
)
from explorer.llm.options import ClientOptions, Endpoint, ReplyMeter
from explorer.llm.streaming import ServerEvent
from explorer.run.run import start
from explorer.run.settings_parts import model_setup
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
from explorer.schema.settings import Secrets, Services, Settings
from model_servers import ModelServer, OpenAIResponsesServer, OpenAIServer, Reply

PLACE = Endpoint("OpenAI", "http://127.0.0.1", "OPENAI_API_KEY", "OPENAI_BASE_URL")
READ = ToolSchema(name="read_file", description="Read.", parameters={"type": "object", "properties": {}})
GO = UserText(text="Go.")
ANSWER = Results(results=(CallResult(id="call_0_0", name="read_file", content="x"),))
REASONING: JsonObject = {"type": "reasoning", "id": "rs_1r", "summary": [], "encrypted_content": "gAAAA"}
CALL: JsonObject = {"type": "function_call", "id": "fc_1r_1", "call_id": "c", "name": "read_file", "arguments": "{}"}
TEXT: JsonObject = {
    "type": "message",
    "id": "msg_1r_0",
    "role": "assistant",
    "status": "completed",
    "phase": "commentary",
    "content": [{"type": "output_text", "text": "Look.", "annotations": []}],
}


def request_for(*history: Message, **fields: Any) -> Request:
    request = Request(
        agent="searcher-1",
        role="searcher",
        model="gpt-6-luna",
        system="You search.",
        tools=(READ,),
        history=history,
        max_output_tokens=1000,
    )
    return replace(request, **fields)


def written(request: Request, kept: Collection[int] = ()) -> list[JsonObject]:
    """The history as it is sent."""
    return Histories(InputWriter).messages(request, kept)


def own_turn(*blocks: JsonObject, model: str = "gpt-6-luna", stop: StopKind = StopKind.END) -> Turn:
    return Turn(provider="openai-responses", model=model, blocks=blocks, stop=stop)


def collect(*events: JsonObject, status: str = "completed", **response: Any) -> Turn:
    """Stream some events, then the end."""
    reply = ResponsesReply(PLACE, ReplyMeter(PLACE, 4096))
    end: JsonObject = {"type": f"response.{status}", "response": {"status": status, "output": [], **response}}
    for event in (*events, end):
        reply.take(ServerEvent("message", json.dumps(event)))
    return reply.turn("gpt-6-luna")


def done(index: int, **item: Any) -> JsonObject:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def delta(index: int, text: str) -> JsonObject:
    return {"type": "response.function_call_arguments.delta", "output_index": index, "delta": text}


def client_for(server: ModelServer, key: str = "sk-test") -> ResponsesClient:
    return ResponsesClient(ClientOptions(base_url=server.url, key=SecretStr(key)))


def test_every_state_of_the_sdk_is_known() -> None:
    """The tables of statuses, of reasons and of errors are total: a new word in the SDK breaks this test."""
    assert STATUSES.keys() == set(get_args(ResponseStatus))
    reasons = get_args(IncompleteDetails.model_fields["reason"].annotation)[0]
    assert REASONS.keys() == set(get_args(reasons))
    codes = set(get_args(ResponseError.model_fields["code"].annotation))
    assert {code for code in codes if "image" not in code} <= KINDS.keys()


def test_items_are_those_that_are_done() -> None:
    """Nothing of an item's beginning is kept, and items stand in their order, whatever their fields."""
    turn = collect(
        {"type": "response.output_item.added", "output_index": 1, "item": {**REASONING, "encrypted_content": "gA"}},
        done(2, **CALL, status="completed", novelty={"a": [1]}),
        done(1, **REASONING),
    )
    assert turn.blocks == (REASONING, {**CALL, "status": "completed", "novelty": {"a": [1]}})
    assert (turn.calls[0].id, turn.stop) == ("c", StopKind.TOOL_USE)


def test_pieces_that_come_to_something_else_are_no_arguments() -> None:
    """Arguments are checked against the pieces they came in: a call that lost one is never run."""
    with pytest.raises(ModelError, match="not what their pieces come to") as caught:
        collect(delta(0, '{"filepath": '), done(0, **{**CALL, "arguments": '{"filepath": "a.md"}'}))
    assert caught.value.fault is ModelFault.TRANSPORT


def test_an_item_that_never_ends() -> None:
    """A reply that says it is complete with an item still open is none; a cut one has the call that was cut."""
    begun = {"type": "response.output_item.added", "output_index": 0, "item": {**CALL, "arguments": ""}}
    with pytest.raises(ModelError, match="within one of its items"):
        collect(begun, delta(0, '{"filepa'))
    reason = {"reason": "max_output_tokens"}
    turn = collect(begun, delta(0, '{"filepa'), status="incomplete", incomplete_details=reason)
    assert (turn.stop, turn.calls[0].arguments) == (StopKind.MAX_TOKENS, None)
    assert "cut off by the output limit after 8 characters" in turn.calls[0].problem


@pytest.mark.parametrize("is_failed", [True, False])
@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("rate_limit_exceeded", ModelFault.RATE_LIMITED),
        ("server_error", ModelFault.OVERLOADED),
        ("server_is_overloaded", ModelFault.OVERLOADED),
        ("slow_down", ModelFault.OVERLOADED),
        ("insufficient_quota", ModelFault.CREDENTIALS),
        ("invalid_prompt", ModelFault.REJECTED),
        ("invalid_encrypted_content", ModelFault.STALE_REASONING),
        ("bio_policy", ModelFault.REJECTED),
        ("context_length_exceeded", ModelFault.CONTEXT_EXCEEDED),
        ("never_heard_of", ModelFault.TRANSPORT),
    ],
)
def test_errors_in_a_stream_are_sorted_by_code(code: str, fault: ModelFault, *, is_failed: bool) -> None:
    """A failed response and both shapes of an error event lead to the same fault, though the status was 200."""
    error = {"code": code, "message": "no"}
    if is_failed:
        failed: JsonObject = {"status": "failed", "error": error, "output": []}
        events: list[JsonObject] = [{"type": "response.failed", "response": failed}]
    else:
        events = [{"type": "error", "error": {"type": "x", **error}}, {"type": "error", **error}]
    for event in events:
        with pytest.raises(ModelError) as caught:
            ResponsesReply(PLACE, ReplyMeter(PLACE, 4096)).take(ServerEvent("message", json.dumps(event)))
        assert caught.value.fault is fault


def test_a_response_in_one_piece_is_understood() -> None:
    """A server that does not stream sends the response itself; one that is failed, or an error, is none."""
    reply = ResponsesReply(PLACE, ReplyMeter(PLACE, 4096))
    whole = {"object": "response", "status": "completed", "error": None, "output": [TEXT]}
    assert reply.take(ServerEvent("message", json.dumps(whole)))
    assert reply.turn("m").text == "Look."
    for body in ({**whole, "status": "failed", "error": {"code": "server_error"}}, {"error": {"code": "server_error"}}):
        with pytest.raises(ModelError) as caught:
            ResponsesReply(PLACE, ReplyMeter(PLACE, 4096)).take(ServerEvent("message", json.dumps(body)))
        assert caught.value.fault is ModelFault.OVERLOADED


def test_signs_of_life_are_no_content() -> None:
    """A response that was only created, keep-alives and an end mark of other servers say nothing."""
    reply = ResponsesReply(PLACE, ReplyMeter(PLACE, 4096))
    events = ['{"type": "response.created"}', '{"type": "response.in_progress"}', '{"type": "keepalive"}', "[DONE]"]
    assert [reply.take(ServerEvent("message", data)) for data in events] == [False] * 4
    assert reply.take(ServerEvent("message", '{"type": "response.output_text.delta", "delta": "a"}'))
    assert not reply.is_complete


def test_a_turn_goes_back_as_it_came() -> None:
    """Reasoning, ids, phases and what is not known here yet go back with the items they belong to, untouched."""
    turn = own_turn(REASONING, TEXT, {**CALL, "status": "completed", "novelty": 1})
    assert written(request_for(GO, turn), {1})[1:] == list(turn.blocks)


@pytest.mark.parametrize(
    "blocks",
    [
        (REASONING,),
        (TEXT, REASONING),
        ({**REASONING, "encrypted_content": None}, TEXT, CALL),
        ({**REASONING, "status": "incomplete"}, TEXT),
        (REASONING, {**TEXT, "content": []}, CALL),
        (REASONING, TEXT, {**CALL, "status": "incomplete"}),
    ],
)
def test_a_turn_that_cannot_go_back_whole_goes_back_bare(blocks: tuple[JsonObject, ...]) -> None:
    """Reasoning that is cut, or that nothing follows, is left out with the ids that would ask for it."""
    items = written(request_for(GO, own_turn(*blocks)), {1})[1:]
    assert all("id" not in item and item["type"] != "reasoning" for item in items)
    assert [item["type"] for item in items] == [
        block["type"] for block in blocks if block["type"] != "reasoning" and block.get("content") != []
    ]


def test_a_turn_of_another_model_is_rebuilt() -> None:
    """Turns of Chat Completions, of another vendor or of another model go out as text and calls, without reasoning."""
    chat = Turn(
        provider="openai-chat",
        model="gpt-6-luna",
        blocks=({"role": "assistant", "content": "Look.", "reasoning_content": "Hm."},),
        text="Look.",
        calls=(ToolCall(id="call_0_0", name="read file!", arguments={"n": 1}),),
        stop=StopKind.TOOL_USE,
    )
    other = own_turn(REASONING, TEXT, model="gpt-6.1-sol").model_copy(update={"text": "Look."})
    assert written(request_for(GO, chat, ANSWER, other))[1:] == [
        {"role": "assistant", "content": "Look."},
        {"type": "function_call", "call_id": "c00001000", "name": "read_file_", "arguments": '{"n": 1}'},
        {"type": "function_call_output", "call_id": "c00001000", "output": "x"},
        {"role": "assistant", "content": "Look."},
    ]


def test_what_a_request_asks_for() -> None:
    """Nothing is stored, the reasoning comes encrypted, schemas are not strict, and the effort stands behind it all."""
    request = request_for(GO, run="run", effort="low", max_output_tokens=7)
    head = to_prefix(request)
    assert (head["store"], head["tools"][0]["strict"], head["prompt_cache_key"]) == (False, False, "run:searcher")
    assert list(head)[-1] == "input"
    assert to_rest(request) == {
        "max_output_tokens": 16,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low"},
    }
    assert "reasoning" not in to_rest(request_for(GO))
    assert "prompt_cache_key" not in to_prefix(request_for(GO, system=" ", tools=()))
    assert to_prefix(request_for(GO, system=" ", tools=())).keys().isdisjoint({"instructions", "tools"})


async def test_a_model_without_reasoning_is_asked_without_it() -> None:
    """A model that has nothing encrypted refuses to include it: it is asked again without, and so from then on."""
    with OpenAIResponsesServer([Reply(text="a"), Reply(text="b")], expects_refusals=True) as server:
        async with client_for(server) as client:
            texts = [(await client.generate(request_for(GO, model="gpt-4.1"))).text for _ in range(2)]
    assert texts == ["a", "b"]
    assert [name for name, _ in server.refused] == ["R6"]
    assert all("include" not in body for body in server.requests)


THINKING = Reply(thinking="Hm.", text="Let me look.", calls=[("read_file", {})])


async def talk(client: ResponsesClient, history: tuple[Message, ...], turns: int) -> tuple[Message, ...]:
    """Ask some times, and answer each call at length."""
    for _ in range(turns):
        turn = await client.generate(request_for(*history))
        results = tuple(CallResult(id=call.id, name=call.name, content="page " * 200) for call in turn.calls)
        history = (*history, turn, Results(results=results))
    return history


def reasoning_in(server: ModelServer) -> list[int]:
    """How many pieces of reasoning each request held."""
    return [[item.get("type") for item in body["input"]].count("reasoning") for body in server.requests]


async def test_reasoning_goes_back_only_behind_what_it_was_made_behind() -> None:
    """After old results are cleared the API would ignore what was reasoned on them: it is not sent, what is new is."""
    with OpenAIResponsesServer([THINKING] * 6) as server:
        async with client_for(server) as client:
            history = await talk(client, (GO,), 3)
            first = history[2]
            assert isinstance(first, Results)
            gone = Results(results=tuple(one.model_copy(update={"content": "Cleared."}) for one in first.results))
            await talk(client, (*history[:2], gone, *history[3:]), 3)
    assert reasoning_in(server) == [0, 1, 2, 1, 2, 3]
    assert server.withheld == [[]] * 6


async def test_the_server_would_tell_of_reasoning_behind_something_else() -> None:
    """The strict server sees a changed prefix, or the test above could not fail."""
    with OpenAIResponsesServer([THINKING] * 2) as server:
        async with client_for(server) as client:
            history = await talk(client, (GO,), 1)
            turn = history[1]
            assert isinstance(turn, Turn)
            bound = BoundReasoning("openai-responses").before(request_for(UserText(text="Stop.")))
            changed = turn.model_copy(update={"bound_to": bound.digest})
            await client.generate(request_for(UserText(text="Stop."), changed, *history[2:]))
    assert [[one["reason"] for one in withheld] for withheld in server.withheld] == [[], ["prefix_mismatch"]]


UNREADABLE = {"code": "invalid_encrypted_content", "message": "The encrypted content gAAA could not be verified."}
ALONE = {"code": None, "message": "Item 'rs_1' of type 'reasoning' was provided without its required following item."}


@pytest.mark.parametrize("error", [UNREADABLE, ALONE])
async def test_reasoning_that_the_server_refuses_is_a_fault_of_its_own(error: JsonObject) -> None:
    """With another organisation's key old reasoning is unreadable: the loop then goes on without it."""
    with OpenAIResponsesServer([THINKING, Reply(status=400, body=json.dumps({"error": error}))]) as server:
        async with client_for(server) as client:
            with pytest.raises(ModelError) as caught:
                await talk(client, (GO,), 2)
    assert caught.value.fault is ModelFault.STALE_REASONING


@pytest.mark.slow
async def test_a_run_goes_on_without_reasoning_that_is_refused(tmp_path: Path) -> None:
    """What was refused is sent bare from then on, without the ids that would ask for it; what is new goes back."""
    replies = [
        Reply(thinking="Hm.", text="I look.", calls=[("list_files", {})]),
        Reply(status=400, body=json.dumps({"error": UNREADABLE})),
        Reply(thinking="So.", calls=[("list_files", {"glob": "*.md"})]),
        Reply(thinking="No.", calls=[("finish_exploration", {"summary": "Nothing."})]),
    ]
    # An end without a report is asked about again; that is another test's matter.
    with OpenAIResponsesServer(lambda _asked: replies.pop(0) if replies else Reply(text="No.")) as server:
        settings = Settings(
            workspace=tmp_path,
            model="openai-responses:model-a",
            services=Services(openai_url=server.url),
            shell="off",
        )
        await start("What is new?", settings)
    assert reasoning_in(server)[:4] == [0, 1, 0, 1]
    assert server.withheld == [[]] * len(server.withheld)


@pytest.mark.parametrize(
    ("provider", "url", "is_asked_for"),
    [
        ("openai", "https://api.openai.com/v1", "Responses"),
        ("openai", "https://eu.api.openai.com/v1", "Responses"),
        ("openai", "", "Responses"),
        ("openai", "http://127.0.0.1:9/v1", "Chat"),
        ("openai-chat", "", "Chat"),
        ("openai-responses", "http://127.0.0.1:9/v1", "Responses"),
    ],
)
async def test_which_api_a_server_is_asked_through(provider: str, url: str, is_asked_for: str) -> None:
    """OpenAI's own hosts are asked through Responses, other servers through Chat, unless a prefix says otherwise."""
    settings = Settings(services=Services(openai_url=url), secrets=Secrets(openai_key=SecretStr("k")))
    async with Clients(model_setup(settings)) as clients:
        await clients.open([ModelRef(provider, "m")])
        client: Any = clients.client_for(ModelRef(provider, "m"))
        while hasattr(client, "_client"):
            client = client._client
        adapter = client._make()
        await adapter.aclose()
    assert type(adapter).__name__ == {"Responses": "ResponsesClient", "Chat": "OpenAIClient"}[is_asked_for]


async def refusal_of(provider: str, server: ModelServer, **fields: Any) -> ModelError:
    """What comes of asking a server that refuses."""
    settings = Settings(services=Services(openai_url=server.url))
    async with Clients(model_setup(settings)) as clients:
        await clients.open([ModelRef(provider, "gpt-6-astra")])
        with pytest.raises(ModelError) as caught:
            await clients.client_for(ModelRef(provider, "gpt-6-astra")).generate(
                request_for(GO, model="gpt-6-astra", **fields)
            )
    return caught.value


async def test_the_api_that_works_is_named() -> None:
    """A server that refuses one of the two APIs is told of in one line, with the prefix of the other, and not paid."""
    only_responses = (
        "Function tools with reasoning_effort are not supported for gpt-6-astra in /v1/chat/completions. "
        "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
    )
    body = json.dumps({"error": {"message": only_responses, "type": "invalid_request_error"}})
    with OpenAIServer([Reply(status=400, body=body)]) as server:
        refused = await refusal_of("openai", server)
        missing = await refusal_of("openai-responses", server)
    for error, works in ((refused, "openai-responses:gpt-6-astra"), (missing, "openai-chat:gpt-6-astra")):
        assert error.fault is ModelFault.UNSUPPORTED
        assert f"use --model {works}" in error.message
        assert "\n" not in error.message
        assert (error.exit_code, error.is_retryable, error.is_billed) == (2, False, False)


async def test_an_effort_that_a_model_refuses_is_told() -> None:
    """The value, the model and the values it does take stand in one line."""
    with OpenAIResponsesServer([], expects_refusals=True) as server:
        error = await refusal_of("openai-responses", server, effort="none")
    assert [name for name, _ in server.refused] == ["R4"]
    assert error.fault is ModelFault.UNSUPPORTED
    assert "gpt-6-astra does not take the effort 'none'" in error.message
    assert "'low', 'medium'" in error.message
    assert "--effort" in error.hint
