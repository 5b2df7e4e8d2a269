"""Servers on loopback that speak the models' wire protocols, scripted by plain data.

    with AnthropicServer([Reply(text="Hello.")]) as server:
        ...ask server.url...
    with OpenAIResponsesServer([Reply(thinking="Let me see.", text="Hello.")]) as server:
        ...ask server.url through the Responses API...
    with OpenAIServer(lambda asked: Reply(calls=[("finish", {})]) if asked.results else Reply(text="?")) as server:
        ...

A script is a list with one reply per request, or a function of the request. A list complains of a request too
many (at once, with status 500) and of a reply too few (at the end). A request that breaks a rule of the vendor
(`vendor_rules/`) is refused as the vendor refuses it, and complained of at the end.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Self

from vendor_rules import (
    anthropic,
    anthropic_cache,
    anthropic_thinking,
    openai_chat,
    openai_responses,
    responses_reasoning,
    rule,
)

JsonObject = dict[str, Any]

PIECE_CHARS = 9
"""Texts and arguments are streamed in pieces of this size; long ones in larger pieces."""
MOST_PIECES = 200
"""Of one text, or else a long run spends its time on the envelopes of pieces."""
PATIENCE_S = 10
PING_EVERY_S = 0.02


@dataclass(frozen=True)
class Reply:
    """One answer of a model, or a fault in its place."""

    text: str = ""
    calls: Sequence[tuple[str, Any]] = ()
    """Name and arguments; arguments given as text are sent as they are, broken or not."""
    stop: str = ""
    """`end`, `tool_use`, `max_tokens`, `refusal`, `pause`, `context` or a vendor's word; empty: what fits."""
    thinking: str = ""
    """In words; on Anthropic's wire signed, and before each call but the first there is some without words, too."""
    redacted: str = ""
    """Encrypted thinking (Anthropic only)."""
    explanation: str = ""
    """Of a refusal."""
    ids: Sequence[str] | None = None
    """The calls' ids; None: unique ones."""
    usage: Mapping[str, int] = field(default_factory=lambda: {"input": 100, "output": 20})
    """`input` (not cached), `output`, `cache_read`, `cache_write`, `reasoning`."""
    error: str = ""
    """A word of `ERRORS`: instead of an answer, or in the middle of the stream when the status is 200."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: str = ""
    """Sent instead of anything else."""
    cut: str = ""
    """Where the stream ends: in the middle of the second piece of `text` or of a `call`, before `terminal`, or
    with its `json` broken."""
    is_dropped: bool = False
    """Whether a cut stream's connection is reset; it ends cleanly otherwise."""
    stalls: str = ""
    """`silent` or `pings`: after what is sent, keep the connection open without content."""


@dataclass(frozen=True)
class Asked:
    """What a request says, on any wire."""

    body: JsonObject
    system: str
    tools: tuple[str, ...]
    said: tuple[str, ...]
    """All words of the user's side, oldest first."""
    results: tuple[str, ...]
    """All results of tools, oldest first."""
    calls: tuple[tuple[str, JsonObject], ...]
    """All calls the model has made."""

    @property
    def task(self) -> str:
        """The first words, without what the engine states with them."""
        return self.said[0].partition("\n\nContext, stated by the engine:")[0]


Script = Sequence[Reply] | Callable[[Asked], Reply]

ERRORS: Mapping[str, tuple[str, str, str]] = {
    "rate_limit": ("rate_limit_error", "rate_limit_exceeded", "Too many requests."),
    "overloaded": ("overloaded_error", "server_error", "Overloaded."),
    "bad_key": ("authentication_error", "invalid_api_key", "Incorrect API key provided: sk-wrong-1234."),
    "no_model": ("not_found_error", "model_not_found", "The model does not exist: model: x."),
    "too_long": (
        "invalid_request_error",
        "context_length_exceeded",
        "prompt is too long: 250000 tokens > 200000 maximum",
    ),
    "invalid": ("invalid_request_error", "invalid_value", "tools.0.name: wrong pattern."),
}
"""Anthropic's type, OpenAI's code, the words."""


class _Http(ThreadingHTTPServer):
    """One thread a connection."""

    daemon_threads = True
    request_queue_size = 512
    """Connections that wait to be accepted; one too many is silently let drop, and tries again after a second."""


class ModelServer:
    """What both servers share; as a context manager it serves from a thread of its own."""

    path = ""
    models: tuple[str, ...] = ("model-a",)
    """What `GET /v1/models` lists."""
    first_number = 0
    """Of the first request. Ids of calls are made of it; a server that follows another needs others than that one."""
    rules: rule.RuleSet = rule.NO_RULES
    """What every request is checked against; another set by argument, e.g. a compatible server's dialect."""

    def __init__(self, script: Script, *, rules: rule.RuleSet | None = None, expects_refusals: bool = False) -> None:
        self._script = script
        self.rules = self.rules if rules is None else rules
        self._expects_refusals = expects_refusals
        self.refused: list[tuple[str, str]] = []
        """Id of the rule and message of each request that broke one."""
        self.kept: Counter[str] = Counter()
        """By rule, how many requests could have broken it and did not."""
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self.requests: list[JsonObject] = []
        """Bodies as they came."""
        self.headers: list[dict[str, str]] = []
        """Headers as they came, names in lower case."""
        self.too_many = 0
        """Requests beyond the script."""
        handler = type("Handler", (_Handler,), {"model_server": self})
        self._http = _Http(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def url(self) -> str:
        """The base URL for the SDK."""
        return self.origin

    def __enter__(self) -> Self:
        """Start to serve."""
        self._thread.start()
        return self

    def __exit__(self, exception_type: type[BaseException] | None, *_rest: object) -> None:
        """Stop; complain when the script was not what happened."""
        if exception_type is None and not callable(self._script):
            self._read_what_was_sent(len(self._script))
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        if exception_type is None and not self._expects_refusals:
            assert not self.refused, f"refused by the vendor's rules: {self.refused}"
        if exception_type is None and not callable(self._script):
            assert not self.too_many, f"{self.too_many} requests more than scripted"
            assert len(self.requests) == len(self._script), "fewer requests than scripted"

    def _read_what_was_sent(self, count: int) -> None:
        """Let requests arrive that their clients have sent and given up, which may take a moment on a busy machine."""
        deadline = time.monotonic() + PATIENCE_S
        while len(self.requests) < count and time.monotonic() < deadline:
            time.sleep(0.01)

    def reply_to(self, body: JsonObject, headers: dict[str, str]) -> tuple[int, Reply]:
        """Record a request and look its reply up."""
        with self._lock:
            place = len(self.requests)
            number = place + self.first_number
            refusal = self._check(rule.Asked(body, headers))
            if refusal is not None:
                return number, Reply(status=refusal.status, body=json.dumps(self.refusal_body(refusal)))
            self.requests.append(body)
            self.headers.append(headers)
            if callable(self._script):
                return number, self._script(self.read(body))
            if place < len(self._script):
                return number, self._script[place]
            self.too_many += 1
            return number, Reply(status=500, body="a request more than scripted")

    def _check(self, asked: rule.Asked) -> rule.Refusal | None:
        """Count the rules that a request keeps, or note the first one it breaks."""
        broken = self.rules.first_broken(asked)
        if broken is None:
            self.kept.update(one.id for one in self.rules.rules if one.applies(asked))
            return None
        self.refused.append((broken[0].id, broken[1].message))
        return broken[1]

    def wait_until_closed(self, seconds: float | None = None) -> bool:
        """Wait for the end of the test; say whether it has come."""
        return self._closing.wait(seconds)

    def read(self, body: JsonObject) -> Asked:
        """Read a request of this wire."""
        raise NotImplementedError

    def render(self, reply: Reply, number: int) -> list[tuple[str, bytes]]:
        """Write a reply as tagged stream events: `start`, `text`, `call`, `end`, `terminal`."""
        raise NotImplementedError

    def error_body(self, word: str) -> JsonObject:
        """Write an error's body."""
        raise NotImplementedError

    def error_event(self, word: str) -> bytes:
        """Write an error as a stream event."""
        raise NotImplementedError

    def refusal_body(self, refusal: rule.Refusal) -> JsonObject:
        """Write the body for a request that broke a rule."""
        raise NotImplementedError


class _Handler(BaseHTTPRequestHandler):
    disable_nagle_algorithm = True
    """Else every piece after the first waits up to 40 ms for the receipt of the one before."""
    protocol_version = "HTTP/1.1"
    model_server: ClassVar[ModelServer]

    def do_GET(self) -> None:
        listing = {"data": [{"id": name} for name in self.model_server.models]}
        is_known = self.path.endswith("/models")
        self._send_whole(200 if is_known else 404, json.dumps(listing if is_known else {}), {})

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", "0"))
        raw = self.rfile.read(length)
        if self.path != self.model_server.path:
            self._send_whole(404, '{"error": {"message": "no such route"}}', {})
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        number, reply = self.model_server.reply_to(json.loads(raw), headers)
        try:
            self._answer(reply, number)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, format: str, *_arguments: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""

    def _answer(self, reply: Reply, number: int) -> None:
        if reply.body or reply.status != 200:
            text = reply.body or json.dumps(self.model_server.error_body(reply.error))
            self._send_whole(reply.status, text, reply.headers)
            return
        self.send_response(200)
        headers = {"content-type": "text/event-stream; charset=utf-8", "transfer-encoding": "chunked"}
        for name, value in (headers | dict(reply.headers)).items():
            self.send_header(name, value)
        self.end_headers()
        for chunk in _cut(self._stream(reply, number), reply.cut):
            self._send_chunk(chunk)
        if reply.stalls:
            self._stall(reply.stalls)
        if reply.is_dropped:
            self.close_connection = True
            return
        self.wfile.write(b"0\r\n\r\n")

    def _stream(self, reply: Reply, number: int) -> list[tuple[str, bytes]]:
        events = self.model_server.render(reply, number)
        if reply.error or reply.stalls:
            events = [event for event in events if event[0] not in {"end", "terminal"}]
        if reply.error:
            events.append(("error", self.model_server.error_event(reply.error)))
        return events

    def _stall(self, kind: str) -> None:
        self.close_connection = True
        while not self.model_server.wait_until_closed(PING_EVERY_S):
            if kind == "pings":
                self._send_chunk(b': comment\n\nevent: ping\ndata: {"type": "ping"}\n\n')

    def _send_chunk(self, chunk: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        self.wfile.flush()

    def _send_whole(self, status: int, text: str, headers: Mapping[str, str]) -> None:
        body = text.encode()
        self.send_response(status)
        kind = "text/html" if text.startswith("<") else "application/json"
        for name, value in ({"content-type": kind, "content-length": str(len(body))} | dict(headers)).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _cut(events: list[tuple[str, bytes]], where: str) -> Iterator[bytes]:
    """Yield the events' bytes up to the cut."""
    seen = 0
    for tag, event in events:
        seen += tag == where
        if where == "terminal" == tag:
            return
        if where == "json" and tag == "terminal":
            yield event.rstrip()[: len(event.rstrip()) // 2] + b'{"\n\n'
            return
        if tag == where and seen == 2:
            yield event[: len(event) // 2]
            return
        yield event


def _pieces(text: str) -> list[str]:
    size = max(PIECE_CHARS, -(-len(text) // MOST_PIECES))
    return [text[start : start + size] for start in range(0, len(text), size)]


def _arguments_text(arguments: Any) -> str:  # noqa: ANN401 - JSON
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _sse(data: JsonObject | str, event: str = "") -> bytes:
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {event}\n" if event else "").encode() + f"data: {text}\n\n".encode()


class AnthropicServer(ModelServer):
    """Speaks Anthropic's Messages API."""

    path = "/v1/messages"
    rules = anthropic.RULES
    thinks = False
    """Whether every reply has reasoning, as those of current models do."""

    def __init__(self, script: Script, *, rules: rule.RuleSet | None = None, expects_refusals: bool = False) -> None:
        super().__init__(script, rules=rules, expects_refusals=expects_refusals)
        self.cache = anthropic_cache.PromptCache()

    stops: ClassVar[Mapping[str, str]] = {
        "end": "end_turn",
        "pause": "pause_turn",
        "context": "model_context_window_exceeded",
    }

    def read(self, body: JsonObject) -> Asked:
        """Read a request of this wire."""
        blocks = [block for message in body["messages"] for block in _blocks_of(message)]
        return Asked(
            body=body,
            system="".join(block["text"] for block in body.get("system", [])),
            tools=tuple(tool["name"] for tool in body.get("tools", [])),
            said=tuple(
                block["text"]
                for message in body["messages"]
                if message["role"] == "user"
                for block in _blocks_of(message)
                if block["type"] == "text"
            ),
            results=tuple(block.get("content", "") for block in blocks if block["type"] == "tool_result"),
            calls=tuple((block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"),
        )

    def render(self, reply: Reply, number: int) -> list[tuple[str, bytes]]:
        """Write a reply as tagged stream events."""
        self.cache.take(self.requests[number - self.first_number])
        read, written = reply.usage.get("cache_read", 0), reply.usage.get("cache_write", 0)
        usage = {
            "input_tokens": reply.usage.get("input", 0),
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "output_tokens": 1,
        }
        message: JsonObject = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "content": [],
            "usage": usage,
        }
        events = [self._event("start", "message_start", message=message)]
        events.append(self._event("start", "ping"))
        for index, (block, deltas) in enumerate(self._signed_blocks(reply, number)):
            tag = {"text": "text", "tool_use": "call"}.get(block["type"], "start")
            events.append(self._event("start", "content_block_start", index=index, content_block=block))
            events += [self._event(tag, "content_block_delta", index=index, delta=delta) for delta in deltas]
            events.append(self._event("end", "content_block_stop", index=index))
        stop = self.stops.get(reply.stop, reply.stop) or ("tool_use" if reply.calls else "end_turn")
        delta: JsonObject = {"stop_reason": stop, "stop_sequence": None}
        if reply.explanation:
            delta["stop_details"] = {"type": "refusal", "category": "cyber", "explanation": reply.explanation}
        final: JsonObject = {"output_tokens": reply.usage.get("output", 0), "input_tokens": None}
        if "reasoning" in reply.usage:
            final["output_tokens_details"] = {"thinking_tokens": reply.usage["reasoning"]}
        events.append(self._event("end", "message_delta", delta=delta, usage=final))
        events.append(self._event("terminal", "message_stop"))
        return events

    def error_body(self, word: str) -> JsonObject:
        """Write an error's body."""
        kind, _, message = ERRORS[word]
        return {"type": "error", "error": {"type": kind, "message": message}}

    def error_event(self, word: str) -> bytes:
        """Write an error as a stream event."""
        return _sse(self.error_body(word), "error")

    def refusal_body(self, refusal: rule.Refusal) -> JsonObject:
        """Write the body for a request that broke a rule."""
        return {"type": "error", "error": {"type": refusal.kind, "message": refusal.message}}

    def _signed_blocks(self, reply: Reply, number: int) -> Iterator[tuple[JsonObject, list[JsonObject]]]:
        """The reply's blocks with its reasoning before them, and between its calls, signed for where it stands."""
        signer = anthropic_thinking.Signer(self.requests[number - self.first_number])
        has_reasoning = bool(reply.thinking) or self.thinks
        if has_reasoning:
            yield _thinking(reply.thinking, signer.sign())
        if reply.redacted:
            yield {"type": "redacted_thinking", "data": signer.sign()}, []
        if reply.stop == "pause":
            # Only a tool on the vendor's side makes a turn pause.
            yield {"type": "server_tool_use", "id": f"srvtoolu_{number}", "name": "web_search", "input": {}}, []
        calls = 0
        for block, deltas in self._blocks(reply, number):
            calls += block["type"] == "tool_use"
            if has_reasoning and block["type"] == "tool_use" and calls > 1:
                yield _thinking("", signer.sign())
            yield block, deltas
            signer.say(_whole(block, deltas))

    def _blocks(self, reply: Reply, number: int) -> Iterator[tuple[JsonObject, list[JsonObject]]]:
        if reply.text:
            pieces = _pieces(reply.text)
            yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces]
        for position, (name, arguments) in enumerate(reply.calls):
            call_id = f"toolu_{number}_{position}" if reply.ids is None else reply.ids[position]
            deltas: list[JsonObject] = [{"type": "input_json_delta", "partial_json": ""}]
            deltas += [
                {"type": "input_json_delta", "partial_json": piece} for piece in _pieces(_arguments_text(arguments))
            ]
            yield {"type": "tool_use", "id": call_id, "name": name, "input": {}}, deltas

    @staticmethod
    def _event(tag: str, kind: str, **fields: Any) -> tuple[str, bytes]:
        return tag, _sse({"type": kind, **fields}, kind)


def _thinking(words: str, signature: str) -> tuple[JsonObject, list[JsonObject]]:
    deltas: list[JsonObject] = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(words)]
    deltas.append({"type": "signature_delta", "signature": signature})
    return {"type": "thinking", "thinking": "", "signature": ""}, deltas


def _whole(block: JsonObject, deltas: list[JsonObject]) -> JsonObject:
    """A block as it is when all its pieces have come; broken arguments count as none."""
    if block["type"] == "text":
        return {**block, "text": "".join(delta["text"] for delta in deltas)}
    try:
        arguments = json.loads("".join(delta["partial_json"] for delta in deltas) or "{}")
    except ValueError:
        arguments = {}
    return {**block, "input": arguments if isinstance(arguments, dict) else {}}


class ThinkingServer(AnthropicServer):
    """Anthropic's API with a model that always thinks: each reply's reasoning is bound to all that stands before it."""

    thinks = True


def _blocks_of(message: JsonObject) -> list[JsonObject]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


class OpenAIServer(ModelServer):
    """Speaks OpenAI's Chat Completions."""

    path = "/v1/chat/completions"
    rules = openai_chat.COMMON
    stops: ClassVar[Mapping[str, str]] = {
        "end": "stop",
        "tool_use": "tool_calls",
        "max_tokens": "length",
        "refusal": "content_filter",
    }

    @property
    def url(self) -> str:
        """The base URL for the SDK."""
        return f"{self.origin}/v1"

    def read(self, body: JsonObject) -> Asked:
        """Read a request of this wire."""
        messages: list[JsonObject] = body["messages"]
        made: list[JsonObject] = [call for message in messages for call in message.get("tool_calls", [])]
        functions: list[JsonObject] = [call["function"] for call in made]
        return Asked(
            body=body,
            system="".join(message["content"] for message in messages if message["role"] == "system"),
            tools=tuple(tool["function"]["name"] for tool in body.get("tools", [])),
            said=tuple(message["content"] for message in messages if message["role"] == "user"),
            results=tuple(message["content"] for message in messages if message["role"] == "tool"),
            calls=tuple((function["name"], json.loads(function["arguments"])) for function in functions),
        )

    def render(self, reply: Reply, number: int) -> list[tuple[str, bytes]]:
        """Write a reply as tagged stream events."""
        events = [self._chunk("start", {"role": "assistant", "content": ""})]
        events += [self._chunk("start", {"reasoning_content": piece}) for piece in _pieces(reply.thinking)]
        events += [self._chunk("text", {"content": piece}) for piece in _pieces(reply.text)]
        events += [self._chunk("start", {"refusal": piece}) for piece in _pieces(reply.explanation)]
        for index, (name, arguments) in enumerate(reply.calls):
            call_id = f"call_{number}_{index}" if reply.ids is None else reply.ids[index]
            first = {"index": index, "type": "function", "function": {"name": name, "arguments": ""}}
            events.append(self._chunk("start", {"tool_calls": [first | ({"id": call_id} if call_id else {})]}))
            events += [
                self._chunk("call", {"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
                for piece in _pieces(_arguments_text(arguments))
            ]
        stop = self.stops.get(reply.stop, reply.stop) or ("tool_calls" if reply.calls else "stop")
        events.append(self._chunk("terminal", {}, stop))
        if reply.usage:
            events.append(("terminal", _sse({"choices": [], "usage": self._usage(reply.usage)})))
        events.append(("terminal", _sse("[DONE]")))
        return events

    def error_body(self, word: str) -> JsonObject:
        """Write an error's body."""
        _, code, message = ERRORS[word]
        return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}

    def error_event(self, word: str) -> bytes:
        """Write an error as a stream event."""
        return _sse(self.error_body(word))

    def refusal_body(self, refusal: rule.Refusal) -> JsonObject:
        """Write the body for a request that broke a rule."""
        fields = {"type": refusal.kind, "param": refusal.param, "code": refusal.code}
        return {"error": {"message": refusal.message, **fields}}

    @staticmethod
    def _chunk(tag: str, delta: JsonObject, finish_reason: str | None = None) -> tuple[str, bytes]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return tag, _sse({"object": "chat.completion.chunk", "choices": [choice], "usage": None})

    @staticmethod
    def _usage(usage: Mapping[str, int]) -> JsonObject:
        read, written = usage.get("cache_read", 0), usage.get("cache_write", 0)
        prompt, completion = usage.get("input", 0) + read + written, usage.get("output", 0)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
            "completion_tokens_details": {"reasoning_tokens": usage.get("reasoning", 0)},
        }


class OpenAIResponsesServer(ModelServer):
    """Speaks OpenAI's Responses API: items that begin, grow and are done, in events that are numbered."""

    path = "/v1/responses"
    rules = openai_responses.RULES

    def __init__(self, script: Script, *, rules: rule.RuleSet | None = None, expects_refusals: bool = False) -> None:
        super().__init__(script, rules=rules, expects_refusals=expects_refusals)
        self.withheld: list[list[JsonObject]] = []
        """By request, the reasoning that the model would not be shown, because what stood before it has changed."""

    @property
    def url(self) -> str:
        """The base URL for the SDK."""
        return f"{self.origin}/v1"

    def read(self, body: JsonObject) -> Asked:
        """Read a request of this wire."""
        items: list[JsonObject] = body["input"]
        return Asked(
            body=body,
            system=body.get("instructions", ""),
            tools=tuple(tool["name"] for tool in body.get("tools", [])),
            said=tuple(item["content"] for item in items if item.get("role") == "user"),
            results=tuple(item["output"] for item in items if item.get("type") == "function_call_output"),
            calls=tuple(
                (item["name"], json.loads(item["arguments"])) for item in items if item.get("type") == "function_call"
            ),
        )

    def render(self, reply: Reply, number: int) -> list[tuple[str, bytes]]:
        """Write a reply as tagged stream events."""
        place = number - self.first_number
        asked = self.requests[place] if place < len(self.requests) else {}
        self.withheld.append(responses_reasoning.withheld(asked))
        items = list(self._items(reply, number, asked))
        response: JsonObject = {"id": f"resp_{number}", "object": "response", "model": asked.get("model")}
        events: list[tuple[str, JsonObject]] = [
            ("start", {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}),
            ("start", {"type": "response.in_progress", "response": {**response, "status": "in_progress"}}),
        ]
        for index, (item, grown) in enumerate(items):
            begun = {**item, "status": "in_progress", **_begin_of(item)}
            events.append(("start", {"type": "response.output_item.added", "output_index": index, "item": begun}))
            events += [(tag, {**event, "output_index": index, "item_id": item["id"]}) for tag, event in grown]
            events.append(("end", {"type": "response.output_item.done", "output_index": index, "item": item}))
        events.append(("terminal", self._end(reply, response, [item for item, _ in items])))
        return [
            (tag, _sse({**event, "sequence_number": place}, event["type"])) for place, (tag, event) in enumerate(events)
        ]

    def error_body(self, word: str) -> JsonObject:
        """Write an error's body."""
        _, code, message = ERRORS[word]
        return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}

    def error_event(self, word: str) -> bytes:
        """Write an error as a stream event, as the API has it."""
        return _sse({"type": "error", **self.error_body(word), "sequence_number": 2}, "error")

    def refusal_body(self, refusal: rule.Refusal) -> JsonObject:
        """Write the body for a request that broke a rule."""
        fields = {"type": refusal.kind, "param": refusal.param, "code": refusal.code}
        return {"error": {"message": refusal.message, **fields}}

    def _end(self, reply: Reply, response: JsonObject, output: list[JsonObject]) -> JsonObject:
        """The terminal event, with the response as it came to be."""
        reasons = {"max_tokens": "max_output_tokens", "refusal": "content_filter"}
        is_whole = reply.stop in {"", "end", "tool_use"} or bool(reply.explanation)
        status = "completed" if is_whole else "incomplete"
        details = None if is_whole else {"reason": reasons.get(reply.stop, reply.stop)}
        whole: JsonObject = {**response, "status": status, "error": None, "incomplete_details": details}
        more = {"output": output, "usage": self._usage(reply.usage), "input_transformations": self.withheld[-1]}
        return {"type": f"response.{status}", "response": {**whole, **more}}

    def _items(
        self, reply: Reply, number: int, asked: JsonObject
    ) -> Iterator[tuple[JsonObject, list[tuple[str, JsonObject]]]]:
        """The items of a reply, done, each with the events it grows by."""
        name = f"{number}r" if reply.thinking else f"{number}"
        status = "completed" if reply.stop in {"", "end", "tool_use"} else "incomplete"
        if reply.thinking:
            secret = responses_reasoning.prefix_of(asked)
            summary = {"type": "summary_text", "text": reply.thinking}
            sealed = openai_responses.seal(asked.get("model", ""), secret)
            item: JsonObject = {"id": f"rs_{name}", "type": "reasoning", "summary": [summary]}
            yield {**item, "encrypted_content": sealed}, _summary_events(reply.thinking)
        if reply.text or reply.explanation:
            parts: list[JsonObject] = []
            if reply.text:
                parts.append({"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []})
            if reply.explanation:
                parts.append({"type": "refusal", "refusal": reply.explanation})
            item = {"id": f"msg_{name}_0", "type": "message", "role": "assistant", "content": parts}
            phase = "commentary" if reply.calls else "final_answer"
            is_last = not reply.calls
            yield {**item, "phase": phase, "status": status if is_last else "completed"}, _part_events(parts)
        for position, (called, arguments) in enumerate(reply.calls):
            call_id = f"call_{number}_{position}" if reply.ids is None else reply.ids[position]
            text = _arguments_text(arguments)
            item = {"id": f"fc_{name}_{position + 1}", "type": "function_call", "call_id": call_id, "name": called}
            is_last = position == len(reply.calls) - 1
            grown = [
                ("call", {"type": "response.function_call_arguments.delta", "delta": piece}) for piece in _pieces(text)
            ]
            grown.append(("start", {"type": "response.function_call_arguments.done", "arguments": text}))
            yield {**item, "arguments": text, "status": status if is_last else "completed"}, grown

    @staticmethod
    def _usage(usage: Mapping[str, int]) -> JsonObject | None:
        if not usage:
            return None
        read, written = usage.get("cache_read", 0), usage.get("cache_write", 0)
        inward, outward = usage.get("input", 0) + read + written, usage.get("output", 0)
        return {
            "input_tokens": inward,
            "input_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
            "output_tokens": outward,
            "output_tokens_details": {"reasoning_tokens": usage.get("reasoning", 0)},
            "total_tokens": inward + outward,
        }


def _begin_of(item: JsonObject) -> JsonObject:
    """What an item has not yet, or has otherwise, when it begins; what is encrypted is another text then, and cut."""
    if item["type"] == "reasoning":
        return {"summary": [], "encrypted_content": item["encrypted_content"][:-9]}
    return {"arguments": ""} if item["type"] == "function_call" else {"content": []}


def _summary_events(text: str) -> list[tuple[str, JsonObject]]:
    at = {"summary_index": 0}
    name = "response.reasoning_summary"
    part = {"type": "summary_text", "text": text}
    deltas = [("start", {"type": f"{name}_text.delta", **at, "delta": piece}) for piece in _pieces(text)]
    return [
        ("start", {"type": f"{name}_part.added", **at, "part": {**part, "text": ""}}),
        *deltas,
        ("start", {"type": f"{name}_text.done", **at, "text": text}),
        ("start", {"type": f"{name}_part.done", **at, "part": part}),
    ]


def _part_events(parts: Sequence[JsonObject]) -> list[tuple[str, JsonObject]]:
    events: list[tuple[str, JsonObject]] = []
    for index, part in enumerate(parts):
        field = "text" if part["type"] == "output_text" else "refusal"
        at = {"content_index": index}
        name = f"response.{part['type']}"
        events.append(("start", {"type": "response.content_part.added", **at, "part": {**part, field: ""}}))
        events += [(field, {"type": f"{name}.delta", **at, "delta": piece}) for piece in _pieces(part[field])]
        events.append(("start", {"type": f"{name}.done", **at, field: part[field]}))
        events.append(("start", {"type": "response.content_part.done", **at, "part": part}))
    return events


SERVERS = (AnthropicServer, OpenAIServer, OpenAIResponsesServer)
"""Every wire's server."""
