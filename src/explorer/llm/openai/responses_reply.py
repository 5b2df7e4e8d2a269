"""A streamed reply of OpenAI's Responses API, collected into a turn."""

from collections import defaultdict
from collections.abc import Callable, Mapping

from explorer.llm.bounds import ReplyMeter
from explorer.llm.faults import model_error, refusal_of
from explorer.llm.history import require_unique_ids, settled_stop, with_ids
from explorer.llm.hosts import OPENAI_RESPONSES
from explorer.llm.options import Endpoint
from explorer.llm.streaming import ServerEvent
from explorer.llm.wire_json import (
    ParsedArguments,
    as_count,
    as_object,
    as_objects,
    as_text,
    cut_problem,
    parse_arguments,
    parse_payload,
    repair_object,
)
from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.messages import JsonObject, StopKind, ToolCall, Turn, Usage, place_of

STATUSES: Mapping[str, StopKind] = {
    "completed": StopKind.END,
    "incomplete": StopKind.UNKNOWN,
    "failed": StopKind.UNKNOWN,
    "cancelled": StopKind.UNKNOWN,
    "in_progress": StopKind.UNKNOWN,
    "queued": StopKind.UNKNOWN,
}
"""Every status of a response that the SDK knows; a test compares the two. A failed one is an error, not a turn."""

REASONS: Mapping[str, StopKind] = {
    "max_output_tokens": StopKind.MAX_TOKENS,
    "content_filter": StopKind.REFUSAL,
    "max_messages": StopKind.UNKNOWN,
    "steered": StopKind.UNKNOWN,
}
"""Every reason of an incomplete response that the SDK knows; a test compares the two. The unknown ones belong to
features that are not used."""

CUTTING_STOPS = frozenset({StopKind.MAX_TOKENS, StopKind.UNKNOWN})
"""Stops that may fall into the middle of an item."""

END_OF_STREAM = "[DONE]"
"""The data that some compatible servers send at the end, without a meaning."""


class ResponsesReply:
    """Collects one stream. Items are kept as in their last event, and not validated.

    An item comes twice, when it begins and when it is done, and only the second one is complete: encrypted parts of
    the first may be cut.
    """

    def __init__(self, endpoint: Endpoint, meter: ReplyMeter) -> None:
        self._endpoint = endpoint
        self._meter = meter
        self._data = ""
        """The data of the current event."""
        self._begun: dict[int, JsonObject] = {}
        self._done: dict[int, JsonObject] = {}
        self._pieces: defaultdict[int, list[str]] = defaultdict(list)
        """The pieces of arguments of each item."""
        self._response: JsonObject = {}
        """The response in the terminal event."""
        self._takers: Mapping[str, Callable[[JsonObject], bool]] = {
            "response.output_item.added": self._take_begun,
            "response.output_item.done": self._take_done,
            "response.function_call_arguments.delta": self._take_piece,
            "response.completed": self._take_end,
            "response.incomplete": self._take_end,
            "response.failed": self._take_failure,
            "error": self._take_failure,
        }

    @property
    def is_complete(self) -> bool:
        """Whether the terminal event has come."""
        return bool(self._response)

    def take(self, event: ServerEvent) -> bool:
        """Collect one event; return whether it was content: only a piece of an item is.

        Raises:
            ModelError: The event is broken, or is itself an error.
        """
        if event.data.strip() == END_OF_STREAM:
            return False
        self._data = event.data
        payload = parse_payload(event.data)
        kind = as_text(payload.get("type")) or _kind_of_whole(payload) or event.event
        take = self._takers.get(kind)
        if take is not None:
            return take(payload)
        if not kind.endswith(".delta"):
            return False
        # The text comes again with the finished item. It is counted here to stop a reply without an end.
        self._meter.keep_text(as_text(payload.get("delta")))
        return True

    def turn(self, model: str) -> Turn:
        """Make the turn.

        Raises:
            ModelError: The stream was not complete, or an item does not agree with its pieces.
        """
        if not self._response:
            message = f"{self._endpoint} ended the stream before the reply was complete"
            raise ModelError(ModelFault.TRANSPORT, message)
        status = as_text(self._response.get("status"))
        reason = as_text(as_object(self._response.get("incomplete_details")).get("reason"))
        stop = REASONS.get(reason, STATUSES.get(status, StopKind.UNKNOWN))
        items = self._items(is_cut=stop in CUTTING_STOPS)
        blocks, calls = self._with_calls(items, is_cut=stop in CUTTING_STOPS)
        refusal = "\n\n".join(part for block in blocks for part in _parts(block, "refusal"))
        return Turn(
            provider=OPENAI_RESPONSES,
            model=model,
            blocks=tuple(blocks),
            text="\n\n".join(text for block in blocks if (text := "".join(_parts(block, "text")))),
            calls=calls,
            stop=StopKind.REFUSAL if refusal else settled_stop(stop, has_calls=bool(calls)),
            stop_detail=": ".join(word for word in (status, reason, refusal) if word),
            usage=to_usage(as_object(self._response.get("usage"))),
        )

    def _take_begun(self, payload: JsonObject) -> bool:
        self._meter.add_part()
        self._begun[_index(payload)] = self._item(payload)
        return True

    def _take_done(self, payload: JsonObject) -> bool:
        self._done[_index(payload)] = self._item(payload)
        return True

    def _take_piece(self, payload: JsonObject) -> bool:
        piece = as_text(payload.get("delta"))
        self._meter.keep_text(piece)
        self._pieces[_index(payload)].append(piece)
        return True

    def _item(self, payload: JsonObject) -> JsonObject:
        item = as_object(payload.get("item"))
        self._meter.keep_json(self._data)
        if _is_call(item):
            self._meter.check_id(as_text(item.get("call_id")))
            self._meter.check_id(as_text(item.get("name")))
        return item

    def _take_end(self, payload: JsonObject) -> bool:
        # A server that does not stream sends the response itself.
        self._response = as_object(payload.get("response")) or payload
        if self._response.get("status") == "failed":
            return self._take_failure(payload)
        return True

    def _take_failure(self, payload: JsonObject) -> bool:
        error = as_object(payload.get("response")).get("error") or payload.get("error") or payload
        raise model_error(refusal_of({"error": error}), self._endpoint)

    def _items(self, *, is_cut: bool) -> list[JsonObject]:
        """Return the items in their order. One that only began is there as far as it came when the reply was cut.

        Raises:
            ModelError: An item of a reply that was not cut never ended.
        """
        items = {**dict(enumerate(as_objects(self._response.get("output")))), **self._done}
        for index, begun in self._begun.items():
            if index in items:
                continue
            if not is_cut:
                raise ModelError(ModelFault.TRANSPORT, f"{self._endpoint} ended the reply within one of its items")
            items[index] = {**begun, "status": "incomplete"}
            if _is_call(begun):
                items[index]["arguments"] = "".join(self._pieces[index])
        for index, pieces in self._pieces.items():
            self._check_pieces("".join(pieces), items.get(index, {}))
        return [repair_object(items[index]) for index in sorted(items)]

    def _check_pieces(self, text: str, item: JsonObject) -> None:
        if text != as_text(item.get("arguments")):
            name = as_text(item.get("name"))
            message = f"{self._endpoint} sent arguments for {name!r} that are not what their pieces come to"
            raise ModelError(ModelFault.TRANSPORT, message)

    def _with_calls(self, items: list[JsonObject], *, is_cut: bool) -> tuple[list[JsonObject], tuple[ToolCall, ...]]:
        """Read the calls; broken arguments are sent back as `{}`."""
        indexes = [index for index, item in enumerate(items) if _is_call(item)]
        ids = with_ids([as_text(items[index].get("call_id")) for index in indexes])
        require_unique_ids(ids)
        calls: list[ToolCall] = []
        for index, call_id in zip(indexes, ids, strict=True):
            item = items[index]
            is_whole = item.get("status") in {None, "completed"} and not (is_cut and index == len(items) - 1)
            call = _call(item, call_id, index, is_whole=is_whole)
            changed = {} if call.arguments is not None and as_text(item.get("arguments")) else {"arguments": "{}"}
            items[index] = {**item, "call_id": call_id, **changed}
            calls.append(call)
        return items, tuple(calls)


def to_usage(usage: JsonObject) -> Usage:
    """Return normalised usage; input tokens already include cached ones."""
    read = as_object(usage.get("input_tokens_details"))
    written = as_object(usage.get("output_tokens_details"))
    return Usage(
        input_tokens=as_count(usage.get("input_tokens")),
        output_tokens=as_count(usage.get("output_tokens")),
        cache_read_tokens=as_count(read.get("cached_tokens")),
        cache_write_tokens=as_count(read.get("cache_write_tokens")),
        reasoning_tokens=as_count(written.get("reasoning_tokens")),
    )


def _call(item: JsonObject, call_id: str, index: int, *, is_whole: bool) -> ToolCall:
    raw = as_text(item.get("arguments"))
    value, problem = parse_arguments(raw) if is_whole else ParsedArguments(None, cut_problem(raw))
    whole = value if value is None else repair_object(value)
    # Halves of characters that JSON's own escapes hide are joined only in the neutral view.
    at = place_of(whole, index, "arguments") if whole is value else ()
    return ToolCall(id=call_id, name=as_text(item.get("name")), arguments=whole, problem=problem, at=at)


def _kind_of_whole(payload: JsonObject) -> str:
    """Return the type of a payload without one: an error, or a response in one piece."""
    if payload.get("error"):
        return "error"
    return "response.completed" if payload.get("object") == "response" else ""


def _parts(block: JsonObject, field: str) -> list[str]:
    """Return the texts, or the refusals, of a message."""
    if block.get("type") != "message":
        return []
    return [text for part in as_objects(block.get("content")) if (text := as_text(part.get(field)))]


def _is_call(item: JsonObject) -> bool:
    return item.get("type") == "function_call"


def _index(payload: JsonObject) -> int:
    index = payload.get("output_index")
    return index if isinstance(index, int) else 0
