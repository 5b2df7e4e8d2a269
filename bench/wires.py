"""Both wire protocols, as plain as can be: replies into stream events, stream events into an assistant's message.

For the bench's own server and for the loops that the engine is compared with; the engine has adapters of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import orjson
from scenarios import JsonObject, Reply

OPENAI, ANTHROPIC = "openai", "anthropic"
PATHS = {OPENAI: "/v1/chat/completions", ANTHROPIC: "/v1/messages"}
PIECE_CHARS = 24
"""About five tokens, as servers send them."""


def compact(value: object) -> bytes:
    """JSON without blanks."""
    return orjson.dumps(value)


def render(wire: str, reply: Reply, turn: int) -> list[bytes]:
    """A reply as stream events."""
    return _anthropic_events(reply, turn) if wire == ANTHROPIC else _openai_events(reply, turn)


def _pieces(text: str) -> list[str]:
    return [text[start : start + PIECE_CHARS] for start in range(0, len(text), PIECE_CHARS)]


def _openai_events(reply: Reply, turn: int) -> list[bytes]:
    deltas: list[JsonObject] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in _pieces(reply.text)]
    for index, (name, arguments) in enumerate(reply.calls):
        head = {"index": index, "id": f"call_{turn}_{index}", "type": "function"}
        deltas.append({"tool_calls": [{**head, "function": {"name": name, "arguments": ""}}]})
        pieces = _pieces(compact(arguments).decode())
        deltas += [{"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in pieces]
    chunks = [_chunk([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    chunks.append(_chunk([{"index": 0, "delta": {}, "finish_reason": "tool_calls" if reply.calls else "stop"}]))
    usage = {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050}
    chunks.append(_chunk([], usage))
    return [*(b"data: %s\n\n" % compact(chunk) for chunk in chunks), b"data: [DONE]\n\n"]


def _chunk(choices: list[JsonObject], usage: JsonObject | None = None) -> JsonObject:
    head = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1, "model": "bench"}
    return {**head, "choices": choices, "usage": usage}


def _anthropic_events(reply: Reply, turn: int) -> list[bytes]:
    usage = {"input_tokens": 1000, "output_tokens": 1}
    message: JsonObject = {"id": f"msg_{turn}", "type": "message", "role": "assistant", "model": "bench", "content": []}
    start: JsonObject = {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}
    events: list[JsonObject] = [{"type": "message_start", "message": start}]
    for index, (block, deltas) in enumerate(_blocks(reply, turn)):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    stop = {"stop_reason": "tool_use" if reply.calls else "end_turn", "stop_sequence": None}
    events += [{"type": "message_delta", "delta": stop, "usage": {"output_tokens": 50}}, {"type": "message_stop"}]
    return [b"event: %s\ndata: %s\n\n" % (event["type"].encode(), compact(event)) for event in events]


def _blocks(reply: Reply, turn: int) -> list[tuple[JsonObject, list[JsonObject]]]:
    blocks: list[tuple[JsonObject, list[JsonObject]]] = []
    if reply.text:
        deltas: list[JsonObject] = [{"type": "text_delta", "text": piece} for piece in _pieces(reply.text)]
        blocks.append(({"type": "text", "text": ""}, deltas))
    for index, (name, arguments) in enumerate(reply.calls):
        pieces = _pieces(compact(arguments).decode())
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        blocks.append(({"type": "tool_use", "id": f"toolu_{turn}_{index}", "name": name, "input": {}}, deltas))
    return blocks


@dataclass(frozen=True)
class Call:
    """One call as the loops run it."""

    id: str
    name: str
    arguments: JsonObject


@dataclass
class Heard:
    """An assistant's message while its events come in, and after."""

    wire: str
    text: list[str] = field(default_factory=list[str])
    heads: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    pieces: list[list[str]] = field(default_factory=list[list[str]])
    is_complete: bool = False

    def take(self, event: bytes) -> None:
        """Collect one event."""
        data = event[event.index(b"data: ") + 6 :]
        if data == b"[DONE]":
            self.is_complete = True
        elif self.wire == ANTHROPIC:
            self._take_anthropic(orjson.loads(data))
        else:
            self._take_openai(orjson.loads(data))

    def _take_openai(self, chunk: JsonObject) -> None:
        for choice in chunk["choices"]:
            delta = choice["delta"]
            self.text.append(delta.get("content") or "")
            for call in delta.get("tool_calls", ()):
                if "id" in call:
                    self._open(call["id"], call["function"]["name"])
                self.pieces[-1].append(call["function"]["arguments"])

    def _take_anthropic(self, event: JsonObject) -> None:
        kind = event["type"]
        if kind == "content_block_delta":
            delta = event["delta"]
            if "text" in delta:
                self.text.append(delta["text"])
            else:
                self.pieces[-1].append(delta["partial_json"])
        elif kind == "content_block_start" and event["content_block"]["type"] == "tool_use":
            self._open(event["content_block"]["id"], event["content_block"]["name"])
        elif kind == "message_stop":
            self.is_complete = True

    def _open(self, call_id: str, name: str) -> None:
        self.heads.append((call_id, name))
        self.pieces.append([])

    @property
    def calls(self) -> list[Call]:
        """The calls, with their arguments parsed."""
        pairs = zip(self.heads, self.pieces, strict=True)
        return [Call(call_id, name, orjson.loads("".join(pieces) or "{}")) for (call_id, name), pieces in pairs]

    def message(self) -> JsonObject:
        """As it goes back to the model."""
        text, calls = "".join(self.text), self.calls
        if self.wire == ANTHROPIC:
            blocks: list[JsonObject] = [{"type": "text", "text": text}] if text else []
            blocks += [{"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments} for c in calls]
            return {"role": "assistant", "content": blocks}
        message: JsonObject = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": "".join(pieces)}}
                for c, pieces in zip(calls, self.pieces, strict=True)
            ]
        return message


def result_messages(wire: str, results: Sequence[tuple[str, str]]) -> list[JsonObject]:
    """The results of a turn's calls, by id, as they go back to the model."""
    if wire == ANTHROPIC:
        blocks = [{"type": "tool_result", "tool_use_id": call_id, "content": text} for call_id, text in results]
        return [{"role": "user", "content": blocks}]
    return [{"role": "tool", "tool_call_id": call_id, "content": text} for call_id, text in results]


def tool_schema(wire: str, name: str, description: str, parameters: JsonObject) -> JsonObject:
    """A tool as the loops declare it."""
    if wire == ANTHROPIC:
        return {"name": name, "description": description, "input_schema": parameters}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}
