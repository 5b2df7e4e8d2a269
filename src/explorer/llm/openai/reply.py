"""A streamed reply of Chat Completions and its tool calls, collected into a turn."""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from explorer.llm.faults import model_error, refusal_of
from explorer.llm.history import made_up_id, require_unique_ids, settled_stop, with_ids
from explorer.llm.openai.compatible import find_written_calls
from explorer.llm.openai.dialect import REASONING_FIELD
from explorer.llm.options import Endpoint, ReplyMeter
from explorer.llm.streaming import ServerEvent
from explorer.llm.vendors import OPENAI_CHAT
from explorer.llm.wire_json import (
    ParsedArguments,
    as_count,
    as_object,
    as_objects,
    as_text,
    cut_problem,
    encode,
    parse_arguments,
    parse_payload,
    repair_object,
)
from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.messages import JsonObject, StopKind, ToolCall, Turn, Usage, place_of

STANDARD_FIELDS = frozenset({"index", "id", "type", "function"})


@dataclass(slots=True)
class _StreamedCall:
    """A call during the stream."""

    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])
    added: JsonObject = field(default_factory=dict[str, Any])
    """Fields that the server adds to the standard, such as Google's thought signature; they are sent back unchanged."""

    def take(self, entry: JsonObject, function: JsonObject) -> str:
        """Add an entry; return the piece of arguments that it brought."""
        self.id = self.id or as_text(entry.get("id"))
        self.name = self.name or as_text(function.get("name"))
        self.added |= {name: value for name, value in entry.items() if name not in STANDARD_FIELDS and value}
        arguments = function.get("arguments")
        if arguments is None:
            return ""
        # Some servers send the object itself in place of its text.
        piece = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        self.pieces.append(piece)
        return piece


class StreamedCalls:
    """All calls of one stream."""

    def __init__(self, meter: ReplyMeter) -> None:
        self._meter = meter
        self._calls: list[_StreamedCall] = []
        self._latest: dict[int, _StreamedCall] = {}
        """The call of each index, to which its next piece belongs."""

    def __bool__(self) -> bool:
        """Return whether any call came."""
        return bool(self._calls)

    def take(self, entry: JsonObject) -> None:
        """Add one entry of `delta.tool_calls` to the call it belongs to."""
        function = as_object(entry.get("function"))
        call = self._open_call(entry, function)
        if call is None:
            self._meter.add_part()
            call = _StreamedCall()
            self._calls.append(call)
            index = entry.get("index")
            if isinstance(index, int):
                self._latest[index] = call
        self._meter.keep_text(call.take(entry, function))
        self._meter.check_id(call.id)
        self._meter.check_id(call.name)

    def finish(self, *, is_cut: bool) -> tuple[list[JsonObject], tuple[ToolCall, ...]]:
        """Return the calls in the API's form and in the neutral one.

        Broken arguments are sent back as `{}`: servers that parse them for their templates would refuse the request.

        Args:
            is_cut: Whether the output limit fell into the last call.

        Raises:
            ModelError: Two calls have one id.
        """
        require_unique_ids(call.id for call in self._calls if call.id)
        ids = with_ids([call.id for call in self._calls])
        wire: list[JsonObject] = []
        neutral: list[ToolCall] = []
        for index, (call_id, call) in enumerate(zip(ids, self._calls, strict=True)):
            raw = "".join(call.pieces)
            arguments = parse_arguments(raw)
            if is_cut and call is self._calls[-1]:
                arguments = ParsedArguments(None, cut_problem(raw))
            text = "{}" if arguments.value is None or not raw.strip() else raw
            wire.append({**wire_call(call_id, call.name, text), **call.added})
            value, problem = arguments
            at = place_of(value, 0, "tool_calls", index, "function", "arguments")
            neutral.append(ToolCall(id=call_id, name=call.name, arguments=value, problem=problem, at=at))
        return wire, tuple(neutral)

    def _open_call(self, entry: JsonObject, function: JsonObject) -> _StreamedCall | None:
        """Find the call that an entry continues; None when it starts one.

        The index decides where there is one, unless it comes with another call's id and a name of its own:
        some servers number every call 0. Without an index, a name starts a call.
        """
        index, call_id, name = entry.get("index"), as_text(entry.get("id")), as_text(function.get("name"))
        is_numbered = isinstance(index, int)
        latest = self._latest.get(index) if is_numbered else (self._calls[-1] if self._calls else None)
        if latest is None:
            return None
        is_other = bool(call_id and latest.id and call_id != latest.id)
        if name and (is_other or not is_numbered):
            return None
        return latest


def wire_call(call_id: str, name: str, arguments: str) -> JsonObject:
    """Return a call in the form of an assistant message."""
    return {"id": call_id, "type": "function", "function": {"name": name or "unknown", "arguments": arguments}}


STOPS: Mapping[str, StopKind] = {
    "stop": StopKind.END,
    "length": StopKind.MAX_TOKENS,
    "tool_calls": StopKind.TOOL_USE,
    "content_filter": StopKind.REFUSAL,
    "function_call": StopKind.TOOL_USE,
}
"""Every finish reason that the SDK knows; a test compares the two."""

END_OF_STREAM = "[DONE]"
SHORT = 20
"""Limit of the event at the end of a stream."""

_NOT_KEPT = frozenset({"role", "tool_calls", "function_call"})
"""Fields of a delta that are not joined."""


class OpenAIReply:
    """Collects one stream. Fields that servers add to the standard, such as reasoning, are kept and sent back."""

    def __init__(self, endpoint: Endpoint, known_tools: Collection[str], meter: ReplyMeter) -> None:
        self._endpoint = endpoint
        self._meter = meter
        self._known_tools = known_tools
        self._pieces: defaultdict[str, list[str]] = defaultdict(list)
        self._extras: JsonObject = {}
        self._lists: defaultdict[str, list[object]] = defaultdict(list)
        self._calls = StreamedCalls(meter)
        self._finish_reason = ""
        self._usage: JsonObject = {}
        self._is_complete = False

    @property
    def is_complete(self) -> bool:
        """Whether `[DONE]` has come after a finish reason."""
        return self._is_complete

    def take(self, event: ServerEvent) -> bool:
        """Collect one event; return whether it was content: empty chunks are not.

        Raises:
            ModelError: The chunk is broken, or is itself an error.
        """
        if len(event.data) < SHORT and event.data.strip() == END_OF_STREAM:
            self._is_complete = bool(self._finish_reason)
            return True
        chunk = parse_payload(event.data)
        if event.event == "error" or chunk.get("error"):
            raise model_error(refusal_of(chunk), self._endpoint)
        return self.take_chunk(chunk)

    def take_chunk(self, chunk: JsonObject) -> bool:
        """Collect one chunk, or a whole completion from a server that does not stream."""
        usage = as_object(chunk.get("usage"))
        self._usage = usage or self._usage
        choice = next(filter(_is_first, as_objects(chunk.get("choices"))), None)
        is_content = self._take_choice(choice) if choice is not None else False
        return is_content or bool(usage)

    def turn(self, model: str) -> Turn:
        """Make the turn.

        Raises:
            ModelError: The stream had no finish reason, or two of its calls have one id.
        """
        if not self._finish_reason:
            message = f"{self._endpoint} ended the stream before the reply was complete"
            raise ModelError(ModelFault.TRANSPORT, message)
        stop = STOPS.get(self._finish_reason, StopKind.UNKNOWN)
        message, calls, is_written = self._message(stop)
        refusal = as_text(message.get("refusal"))
        words = (self._finish_reason, refusal, "call written as text" if is_written else "")
        return Turn(
            provider=OPENAI_CHAT,
            model=model,
            blocks=(message,),
            text=as_text(message.get("content")),
            calls=calls,
            stop=StopKind.REFUSAL if refusal else settled_stop(stop, has_calls=bool(calls)),
            stop_detail=": ".join(word for word in words if word),
            has_written_calls=is_written,
            usage=to_usage(self._usage),
        )

    def _take_choice(self, choice: JsonObject) -> bool:
        reason = choice.get("finish_reason")
        if reason:
            self._finish_reason = as_text(reason) or self._finish_reason
        delta = as_object(choice.get("delta")) or as_object(choice.get("message"))
        return self._take_delta(delta) or bool(reason)

    def _take_delta(self, delta: JsonObject) -> bool:
        is_content = False
        entries = as_objects(delta.get("tool_calls")) if "tool_calls" in delta else ()
        for entry in entries:
            self._calls.take(entry)
        for name, value in delta.items():
            if name in _NOT_KEPT or not value:
                continue
            is_content = True
            if isinstance(value, str):
                self._meter.keep_text(value if name in self._pieces else name + value)
                self._pieces[name].append(value)
                continue
            self._meter.keep_json(name + encode(value).decode())
            if name == "content":
                self._take_parts(as_objects(value))
            elif isinstance(value, list):
                self._lists[name] += value
            else:
                self._extras[name] = value
        return is_content or bool(entries)

    def _take_parts(self, parts: Sequence[JsonObject]) -> None:
        """Collect content that comes in parts, as text and reasoning of Mistral's models do."""
        for part in parts:
            thoughts = as_objects(part.get("thinking"))
            self._pieces["content"].append(as_text(part.get("text")))
            self._pieces[REASONING_FIELD] += [as_text(thought.get("text")) for thought in thoughts]

    def _message(self, stop: StopKind) -> tuple[JsonObject, tuple[ToolCall, ...], bool]:
        """Return the assistant message, its calls, and whether they were written as text."""
        joined = {field: "".join(pieces) for field, pieces in self._pieces.items()}
        texts = {field: text for field, text in joined.items() if text}
        lists = {field: join_parts(parts) for field, parts in self._lists.items()}
        message: JsonObject = {"role": "assistant", "content": None, **self._extras, **lists, **texts}
        entries, calls = self._calls.finish(is_cut=stop is StopKind.MAX_TOKENS)
        is_written = False
        if not calls and stop in {StopKind.END, StopKind.TOOL_USE}:
            entries, calls = _written(as_text(message["content"]), self._known_tools)
            is_written = bool(calls)
        if is_written:
            message["content"] = None
        if entries:
            message["tool_calls"] = entries
        return _repaired(message, calls, is_written=is_written)


def join_parts(parts: Sequence[Any]) -> list[Any]:
    """Join the pieces in which a gateway streams one part of its reasoning: same index, same type.

    Separate pieces are refused when they are sent back: the last one's signature is that of the whole text.
    """
    joined: list[Any] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, dict) and isinstance(last, dict) and _is_one_part(as_object(last), as_object(part)):
            joined[-1] = _joined(as_object(last), as_object(part))
        else:
            joined.append(part)
    return joined


def _is_one_part(last: JsonObject, part: JsonObject) -> bool:
    has_index = isinstance(part.get("index"), int)
    return has_index and (last.get("index"), last.get("type")) == (part["index"], part.get("type"))


def _joined(last: JsonObject, part: JsonObject) -> JsonObject:
    whole = dict(last)
    for name, value in part.items():
        if name in {"text", "summary", "data"} and isinstance(value, str):
            whole[name] = as_text(last.get(name)) + value
        elif value is not None:
            whole[name] = value
    return whole


def to_usage(usage: JsonObject) -> Usage:
    """Return normalised usage; prompt tokens already include cached ones."""
    prompt = as_object(usage.get("prompt_tokens_details"))
    completion = as_object(usage.get("completion_tokens_details"))
    return Usage(
        input_tokens=as_count(usage.get("prompt_tokens")),
        output_tokens=as_count(usage.get("completion_tokens")),
        cache_read_tokens=as_count(prompt.get("cached_tokens")),
        cache_write_tokens=as_count(prompt.get("cache_write_tokens")),
        reasoning_tokens=as_count(completion.get("reasoning_tokens")),
    )


def _is_first(choice: JsonObject) -> bool:
    """Return whether a choice is the first one; others are ignored."""
    return choice.get("index") in {None, 0}


def _written(text: str, known_tools: Collection[str]) -> tuple[list[JsonObject], tuple[ToolCall, ...]]:
    """Make real calls of calls that a model wrote as text, so that their results can answer them."""
    calls = tuple(
        ToolCall(id=made_up_id(number), name=written.name, arguments=written.arguments)
        for number, written in enumerate(find_written_calls(text, known_tools), 1)
    )
    return [wire_call(call.id, call.name, json.dumps(call.arguments, ensure_ascii=False)) for call in calls], calls


def _repaired(
    message: JsonObject, calls: tuple[ToolCall, ...], *, is_written: bool
) -> tuple[JsonObject, tuple[ToolCall, ...], bool]:
    """Fix half surrogate pairs in both views."""
    return repair_object(message), tuple(_repaired_call(call) for call in calls), is_written


def _repaired_call(call: ToolCall) -> ToolCall:
    if call.arguments is None:
        return call
    arguments = repair_object(call.arguments)
    return call if arguments is call.arguments else call.model_copy(update={"arguments": arguments, "at": ()})
