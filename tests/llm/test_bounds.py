"""What is read of a reply is bounded, and what lies within the bounds comes through unchanged."""

import gzip
import json
from collections.abc import Iterable

import pytest

from explorer.llm.anthropic.reply import AnthropicReply
from explorer.llm.openai.reply import OpenAIReply
from explorer.llm.openai.responses import ResponsesReply
from explorer.llm.options import Endpoint, ReplyBounds, ReplyMeter, Timeouts
from explorer.llm.streaming import ServerEvent
from explorer.llm.wire_json import MAX_DEPTH, parse_arguments
from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.messages import JsonObject, Turn
from llm.conversations import BOTH, QUESTION
from llm.foreign_servers import WireModel, answering
from llm.test_conversations import client_for, request_for
from llm.test_request_template import HEAD, STREAM

PLACE = Endpoint("Someone", "http://127.0.0.1:9", "SOME_KEY", "SOME_URL")
SMALL = ReplyBounds(least_chars=1_000, most_chars=1_000, parts=5, id_chars=20)


def chat() -> OpenAIReply:
    return OpenAIReply(PLACE, (), ReplyMeter(PLACE, 10, SMALL))


def claude() -> AnthropicReply:
    return AnthropicReply(PLACE, ReplyMeter(PLACE, 10, SMALL))


def delta(index: object = 0, **fields: object) -> JsonObject:
    return {"choices": [{"index": index, "delta": fields}]}


def call(**fields: object) -> JsonObject:
    return delta(tool_calls=[{"index": 0, "id": "c", "function": {"name": "n", "arguments": ""}} | fields])


def begun(number: int = 0, **block: object) -> JsonObject:
    return {"type": "content_block_start", "index": number, "content_block": {"type": "text", "text": ""} | block}


def piece(**fields: object) -> JsonObject:
    return {"type": "content_block_delta", "index": 0, "delta": fields}


def take_all(reply: AnthropicReply | OpenAIReply | ResponsesReply, events: Iterable[JsonObject]) -> None:
    for event in events:
        reply.take(ServerEvent("message", json.dumps(event)))


def responses() -> ResponsesReply:
    return ResponsesReply(PLACE, ReplyMeter(PLACE, 10, SMALL))


def item(number: int = 0, **fields: object) -> JsonObject:
    return {"type": "response.output_item.added", "output_index": number, "item": {"type": "function_call"} | fields}


def made(kind: str, **fields: object) -> JsonObject:
    return {"type": f"response.{kind}.delta", "output_index": 0, **fields}


ENDLESS = {
    "OpenAI's text": ((), [made("output_text", delta="x" * 100)], "1,000 characters"),
    "OpenAI's reasoning": ((), [made("reasoning_text", delta="x" * 100)], "1,000 characters"),
    "OpenAI's arguments": ((), [made("function_call_arguments", delta="x" * 100)], "1,000 characters"),
    "OpenAI's items": ((), [item(n) for n in range(100)], "5 blocks|1,000 characters"),
    "OpenAI's id": ((), [item(call_id="x" * 21)], "20 characters as the id"),
    "OpenAI's done": ((), [item(n) | {"type": "response.output_item.done"} for n in range(100)], "1,000 characters"),
    "text": ((), [delta(content="x" * 100)], "1,000 characters"),
    "reasoning": ((), [delta(reasoning_content="x" * 100)], "1,000 characters"),
    "fields": ((), [delta(**{f"f{n}": "x"}) for n in range(1_000)], "1,000 characters"),
    "lists": ((), [delta(hooks=[{"a": 1}, {}])], "1,000 characters"),
    "arguments": ((), [call(function={"arguments": "x" * 100})], "1,000 characters"),
    "calls": ((), [call(index=n, id=f"c{n}") for n in range(100)], "5 blocks"),
    "id": ((), [call(id="x" * 21)], "20 characters as the id"),
    "name": ((), [call(function={"name": "x" * 21})], "20 characters as the id"),
    "Claude's text": ([begun()], [piece(type="text_delta", text="x" * 100)], "1,000 characters"),
    "Claude's thinking": ([begun()], [piece(type="thinking_delta", thinking="x" * 100)], "1,000 characters"),
    "Claude's arguments": ([begun()], [piece(type="input_json_delta", partial_json="x" * 100)], "1,000 characters"),
    "Claude's citations": ([begun()], [piece(type="citations_delta", citation={"a": "x"})], "1,000 characters"),
    "Claude's blocks": ((), [begun(n) for n in range(100)], "5 blocks|1,000 characters"),
    "Claude's id": ((), [begun(type="tool_use", id="x" * 21, name="n")], "20 characters as the id"),
    "Claude's changes": ((), [{"type": "message_delta", "delta": {f"f{n}": 1}} for n in range(99)], "1,000 char"),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_whatever_is_kept_is_counted(name: str) -> None:
    """Each thing that a reply keeps ends at a bound when it never ends, and the error says which."""
    opening, endless, says = ENDLESS[name]
    reply = claude() if "Claude" in name else responses() if "OpenAI" in name else chat()
    take_all(reply, opening)
    with pytest.raises(ModelError, match=says) as caught:
        take_all(reply, endless * 1_000)
    assert caught.value.fault is ModelFault.OVERSIZED
    assert not caught.value.is_retryable


def test_pieces_of_nothing_keep_nothing() -> None:
    """What is not kept is not counted: usage and pings may come as often as they like."""
    reply, other = chat(), claude()
    for _ in range(2_000):
        reply.take(ServerEvent("message", '{"choices": [], "usage": {"prompt_tokens": 5}}'))
        other.take(ServerEvent("ping", '{"type": "ping"}'))


def test_other_choices_are_never_mixed_with_the_first() -> None:
    """A second choice is ignored, in whatever order and in whichever event it comes."""
    reply = chat()
    second: JsonObject = {"index": 1, "delta": {"content": "no"}, "finish_reason": "length"}
    first: JsonObject = {"index": 0, "delta": {"content": "Yes"}}
    for choices in ([second, first], [second], [first, second], [second] * 10_000):
        reply.take(ServerEvent("message", json.dumps({"choices": choices})))
    reply.take(ServerEvent("message", '{"choices": [{"delta": {"content": "."}, "finish_reason": "stop"}]}'))
    turn = reply.turn("m")
    assert (turn.text, turn.stop) == ("YesYes.", "end")


@pytest.mark.parametrize("depth", [MAX_DEPTH + 2, 1_000, 100_000])
@pytest.mark.parametrize("form", ['{{"a": {0}1{1}}}', '{{"choices": [{{"delta": {{"content": {0}1{1}}}}}]}}'])
def test_an_event_nested_too_deeply_is_refused(form: str, depth: int) -> None:
    """Depth that a journal could not be written with is refused before anything is kept of it."""
    with pytest.raises(ModelError, match="nested deeper") as caught:
        chat().take(ServerEvent("message", form.format("[" * depth, "]" * depth)))
    assert caught.value.fault is ModelFault.OVERSIZED


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 900, 100_000])
def test_arguments_nested_too_deeply_are_told_to_the_model(depth: int) -> None:
    """The call is not run, and the model reads why; what is less deep is run."""
    nested = parse_arguments('{"a": ' + "[" * depth + "]" * depth + "}")
    assert nested.value is None
    assert "nested too deeply" in nested.problem
    many = ", ".join(["{}"] * 1_000)
    assert parse_arguments(f'{{"a": [{many}], "b": {"[" * 50}{"]" * 50}}}').problem == ""


@pytest.mark.slow
@pytest.mark.parametrize("wire", BOTH)
async def test_an_error_is_told_by_its_status_however_long_its_body(wire: str) -> None:
    """Of an error's body the beginning is read, compressed or not, and the status decides."""
    body = b'{"error": {"message": "the disk is full"}}' + b" " * 50_000_000
    coded = gzip.compress(body, 1)
    head = b"HTTP/1.1 500 Oops\r\ncontent-type: text/plain\r\n"
    for sent in (
        head + b"content-length: %d\r\n\r\n" % len(body) + body,
        head + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(coded) + coded,
        head + b"content-encoding: gzip\r\ncontent-length: 900\r\n\r\nno gzip",
    ):
        with answering(WireModel(sent, "")) as server:
            async with client_for(wire, f"http://127.0.0.1:{server.port}/v1", Timeouts()) as client:
                with pytest.raises(ModelError, match="status 500") as caught:
                    await client.generate(request_for(QUESTION))
        assert caught.value.fault is ModelFault.OVERLOADED


@pytest.mark.parametrize("wire", BOTH)
async def test_a_compressed_reply_is_read_as_ever(wire: str) -> None:
    """Guarding the answer does not change what it says."""
    coded = gzip.compress(STREAM[wire])
    with answering(WireModel(HEAD.replace(b"\r\n\r\n", b"\r\ncontent-encoding: gzip\r\n\r\n") + coded, "")) as server:
        async with client_for(wire, f"http://127.0.0.1:{server.port}/v1", Timeouts()) as client:
            assert isinstance(await client.generate(request_for(QUESTION)), Turn)


@pytest.mark.slow
@pytest.mark.parametrize("wire", BOTH)
async def test_interim_answers_are_bounded(wire: str) -> None:
    """A server may say a few times that its answer will come, and not without end; both on a new and a used client."""
    hint = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    with answering(WireModel(hint * 50 + HEAD + STREAM[wire], "")) as server:
        async with client_for(wire, f"http://127.0.0.1:{server.port}/v1", Timeouts()) as client:
            for _ in range(2):
                assert isinstance(await client.generate(request_for(QUESTION)), Turn)
    with answering(WireModel(hint * 50_000 + HEAD + STREAM[wire], "")) as server:
        async with client_for(wire, f"http://127.0.0.1:{server.port}/v1", Timeouts()) as client:
            for _ in range(2):
                with pytest.raises(ModelError, match="100 interim answers") as caught:
                    await client.generate(request_for(QUESTION))
                assert caught.value.fault is ModelFault.OVERSIZED


@pytest.mark.parametrize("wire", BOTH)
@pytest.mark.parametrize(
    ("headers", "says"),
    [
        (b"x-a: " + b"x" * 8_000 + b"\r\n", "bytes of headers"),
        (b"content-encoding: gzip, gzip, gzip\r\n", "2 content encodings"),
    ],
    ids=["bytes", "encodings"],
)
async def test_headers_are_bounded(wire: str, headers: bytes, says: str) -> None:
    """More than any server needs to say before its answer is refused before the answer is read."""
    many = headers if b"encoding" in headers else b"".join(headers.replace(b"x-a", b"x-%d" % n) for n in range(12))
    with answering(WireModel(HEAD.removesuffix(b"\r\n") + many + b"\r\n" + STREAM[wire], "")) as server:
        async with client_for(wire, f"http://127.0.0.1:{server.port}/v1", Timeouts()) as client:
            with pytest.raises(ModelError, match=says) as caught:
                await client.generate(request_for(QUESTION))
    assert caught.value.fault is ModelFault.OVERSIZED
