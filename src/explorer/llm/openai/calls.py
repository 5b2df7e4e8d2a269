"""Collects the tool calls of a Chat Completions stream, as regular and as odd as servers send them."""

import json
from dataclasses import dataclass, field
from typing import Any

from explorer.llm.bounds import ReplyMeter
from explorer.llm.projection import require_unique_ids, with_ids
from explorer.llm.wire_json import ParsedArguments, as_object, as_text, cut_problem, parse_arguments
from explorer.schema.messages import JsonObject, ToolCall, place_of

STANDARD_FIELDS = frozenset({"index", "id", "type", "function"})


@dataclass(slots=True)
class _StreamedCall:
    """One call while it comes in."""

    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])
    added: JsonObject = field(default_factory=dict[str, Any])
    """What the server adds to the standard, such as Google's thought signature; it goes back as it came."""

    def take(self, entry: JsonObject, function: JsonObject) -> str:
        """Add an entry; return the piece of arguments that it brought."""
        self.id = self.id or as_text(entry.get("id"))
        self.name = self.name or as_text(function.get("name"))
        self.added |= {name: value for name, value in entry.items() if name not in STANDARD_FIELDS and value}
        arguments = function.get("arguments")
        if arguments is None:
            return ""
        # Some servers send the object itself where its text belongs.
        piece = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        self.pieces.append(piece)
        return piece


class StreamedCalls:
    """All calls of one stream."""

    def __init__(self, meter: ReplyMeter) -> None:
        self._meter = meter
        self._calls: list[_StreamedCall] = []
        self._latest: dict[int, _StreamedCall] = {}
        """By index, the call that its next piece belongs to; found at once among hundreds."""

    def __bool__(self) -> bool:
        """Say whether any call came."""
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
        """Return the calls in the wire's form and in the neutral one.

        Broken arguments go back as `{}`: servers that parse them for their templates would refuse the request.

        Args:
            is_cut: Whether the output limit fell into the last call.

        Raises:
            ModelError: Two calls have one id.
        """
        require_unique_ids(call.id for call in self._calls if call.id)
        ids = with_ids([call.id for call in self._calls])
        wire: list[JsonObject] = []
        neutral: list[ToolCall] = []
        for endpoint, (call_id, call) in enumerate(zip(ids, self._calls, strict=True)):
            raw = "".join(call.pieces)
            arguments = parse_arguments(raw)
            if is_cut and call is self._calls[-1]:
                arguments = ParsedArguments(None, cut_problem(raw))
            text = "{}" if arguments.value is None or not raw.strip() else raw
            wire.append({**wire_call(call_id, call.name, text), **call.added})
            value, problem = arguments
            at = place_of(value, 0, "tool_calls", endpoint, "function", "arguments")
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
    """Write one call as it stands in an assistant message."""
    return {"id": call_id, "type": "function", "function": {"name": name or "unknown", "arguments": arguments}}
