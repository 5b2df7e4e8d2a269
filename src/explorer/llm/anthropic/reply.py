"""A streamed reply of Anthropic's Messages API, collected into a turn."""

from collections import defaultdict
from collections.abc import Callable, Mapping

from explorer.llm.faults import model_error, refusal_of
from explorer.llm.history import require_unique_ids, settled_stop, with_ids
from explorer.llm.options import Endpoint, ReplyMeter
from explorer.llm.streaming import ServerEvent
from explorer.llm.vendors import ANTHROPIC
from explorer.llm.wire_json import (
    ParsedArguments,
    as_count,
    as_object,
    as_text,
    cut_problem,
    not_an_object,
    parse_arguments,
    parse_payload,
    repair_object,
)
from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.messages import JsonObject, StopKind, ToolCall, Turn, Usage, place_of

REASONING = frozenset({"thinking", "redacted_thinking"})
"""The types of blocks with a model's reasoning; the API refuses a cache mark on these."""

STOPS: Mapping[str, StopKind] = {
    "end_turn": StopKind.END,
    "max_tokens": StopKind.MAX_TOKENS,
    "stop_sequence": StopKind.END,
    "tool_use": StopKind.TOOL_USE,
    "pause_turn": StopKind.PAUSE,
    "refusal": StopKind.REFUSAL,
    "model_context_window_exceeded": StopKind.CONTEXT_EXCEEDED,
}
"""Every stop reason that the SDK knows; a test compares the two."""

CUTTING_STOPS = frozenset({StopKind.MAX_TOKENS, StopKind.CONTEXT_EXCEEDED})
"""Stops that may fall into the middle of a block."""


class AnthropicReply:
    """Collects one stream. Blocks are kept unchanged, and not validated."""

    def __init__(self, endpoint: Endpoint, meter: ReplyMeter) -> None:
        self._endpoint = endpoint
        self._meter = meter
        self._data = ""
        """The data of the current event."""
        self._blocks: dict[int, JsonObject] = {}
        self._pieces: defaultdict[int, dict[str, list[str]]] = defaultdict(dict)
        """The pieces of text of each block and field, joined once at the end."""
        self._citations: defaultdict[int, list[object]] = defaultdict(list)
        """The citations of each block that came after its start."""
        self._delta: JsonObject = {}
        """The changes of the message itself, such as why it stopped."""
        self._usage: JsonObject = {}
        self._is_complete = False
        self._has_true_reasoning = True
        self._takers: Mapping[str, Callable[[JsonObject], bool]] = {
            "message_start": self._take_start,
            "content_block_start": self._take_block,
            "content_block_delta": self._take_piece,
            "content_block_stop": _is_content,
            "message_delta": self._take_delta,
            "message_stop": self._take_stop,
            "error": self._take_error,
        }

    @property
    def is_complete(self) -> bool:
        """Whether `message_stop` has come."""
        return self._is_complete

    @property
    def has_true_reasoning(self) -> bool:
        """Whether everything up to the turn's last reasoning is what the model sent.

        Half surrogate pairs and arguments that are not JSON cannot be sent back unchanged.
        """
        return self._has_true_reasoning

    def take(self, event: ServerEvent) -> bool:
        """Collect one event; return whether it was content: pings and unknown types are not.

        Raises:
            ModelError: The event is broken, or is itself an error.
        """
        self._data = event.data
        payload = parse_payload(event.data)
        take = self._takers.get(as_text(payload.get("type")) or event.event)
        return take(payload) if take is not None else False

    def turn(self, model: str) -> Turn:
        """Make the turn.

        Raises:
            ModelError: The stream was not complete, or two of its calls have one id.
        """
        stop_reason = as_text(self._delta.get("stop_reason"))
        if not self._is_complete or not stop_reason:
            message = f"{self._endpoint} ended the stream before the reply was complete"
            raise ModelError(ModelFault.TRANSPORT, message)
        stop = STOPS.get(stop_reason, StopKind.UNKNOWN)
        blocks, problems = self._finished_blocks(is_cut=stop in CUTTING_STOPS)
        calls = tuple(
            _call(blocks, index, problems.get(index, "")) for index in range(len(blocks)) if _is_call(blocks[index])
        )
        require_unique_ids(call.id for call in calls)
        return Turn(
            provider=ANTHROPIC,
            model=model,
            blocks=tuple(blocks),
            text="\n\n".join(text for block in blocks if (text := _text_of(block))),
            calls=calls,
            stop=settled_stop(stop, has_calls=bool(calls)),
            stop_detail=_detail(stop_reason, as_object(self._delta.get("stop_details"))),
            usage=to_usage(self._usage),
        )

    def _take_start(self, payload: JsonObject) -> bool:
        self._meter.keep_json(self._data)
        self._usage.update(as_object(as_object(payload.get("message")).get("usage")))
        return False

    def _take_block(self, payload: JsonObject) -> bool:
        self._meter.add_part()
        self._meter.keep_json(self._data)
        block = dict(as_object(payload.get("content_block")))
        if _is_call(block):
            for field in ("id", "name"):
                self._meter.check_id(as_text(block.get(field)))
        self._blocks[_index(payload)] = block
        return True

    def _take_piece(self, payload: JsonObject) -> bool:
        """Add a piece to its block: text and citations are appended, anything else replaces the field."""
        index, delta = _index(payload), as_object(payload.get("delta"))
        if index not in self._blocks:
            raise ModelError(ModelFault.TRANSPORT, f"{self._endpoint} sent a piece of a block that never started")
        block = self._blocks[index]
        for field, value in delta.items():
            if field == "type":
                continue
            if isinstance(value, str):
                self._meter.keep_text(value)
                self._pieces[index].setdefault(field, []).append(value)
                continue
            self._meter.keep_json(self._data)
            if field == "citation":
                self._citations[index].append(value)
            else:
                block[field] = value
        return True

    def _take_delta(self, payload: JsonObject) -> bool:
        self._meter.keep_json(self._data)
        self._delta.update(as_object(payload.get("delta")))
        usage = as_object(payload.get("usage"))
        self._usage.update({name: value for name, value in usage.items() if value is not None})
        return True

    def _take_stop(self, payload: JsonObject) -> bool:
        self._is_complete = bool(payload)
        return True

    def _take_error(self, payload: JsonObject) -> bool:
        raise model_error(refusal_of(payload), self._endpoint)

    def _finished_blocks(self, *, is_cut: bool) -> tuple[list[JsonObject], dict[int, str]]:
        """Join the pieces; return the blocks and, by position, what is wrong with a call's arguments."""
        blocks: list[JsonObject] = []
        problems: dict[int, str] = {}
        is_altered = False
        last = max(self._blocks, default=0)
        for position, index in enumerate(sorted(self._blocks)):
            block = self._joined(index)
            raw = block.pop("partial_json", "")
            if raw or "input" in block or _is_call(block):
                arguments = _arguments(raw, block.get("input"))
                if is_cut and index == last:
                    arguments = ParsedArguments(None, cut_problem(raw))
                block["input"] = arguments.value or {}
                problems[position] = arguments.problem
            blocks.append(repair_object(block))
            is_altered = is_altered or blocks[-1] != block or bool(problems.get(position))
            if is_altered and block.get("type") in REASONING:
                self._has_true_reasoning = False
        return _with_call_ids(blocks), problems

    def _joined(self, index: int) -> JsonObject:
        block = dict(self._blocks[index])
        if index in self._citations:
            block["citations"] = [*(block.get("citations") or []), *self._citations[index]]
        for field, pieces in self._pieces[index].items():
            block[field] = as_text(block.get(field)) + "".join(pieces)
        return block


def to_usage(usage: JsonObject) -> Usage:
    """Return normalised usage: Anthropic counts cached input separately, we include it."""
    read = as_count(usage.get("cache_read_input_tokens"))
    written = as_count(usage.get("cache_creation_input_tokens"))
    details = as_object(usage.get("output_tokens_details"))
    return Usage(
        input_tokens=as_count(usage.get("input_tokens")) + read + written,
        output_tokens=as_count(usage.get("output_tokens")),
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=as_count(details.get("thinking_tokens")),
    )


def _arguments(raw: str, given: object) -> ParsedArguments:
    """Parse streamed arguments; servers that send them whole put them into the block's start."""
    if raw or given in ({}, "", None):
        return parse_arguments(raw)
    return (
        ParsedArguments(as_object(given), "")
        if isinstance(given, dict)
        else ParsedArguments(None, not_an_object(given))
    )


def _call(blocks: list[JsonObject], index: int, problem: str) -> ToolCall:
    block = blocks[index]
    arguments = None if problem else block["input"]
    name = as_text(block.get("name"))
    return ToolCall(
        id=block["id"], name=name, arguments=arguments, problem=problem, at=place_of(arguments, index, "input")
    )


def _with_call_ids(blocks: list[JsonObject]) -> list[JsonObject]:
    calls = [block for block in blocks if _is_call(block)]
    for block, call_id in zip(calls, with_ids([as_text(block.get("id")) for block in calls]), strict=True):
        block["id"] = call_id
    return blocks


def _detail(stop_reason: str, details: JsonObject) -> str:
    words = (stop_reason, as_text(details.get("category")), as_text(details.get("explanation")))
    return ": ".join(word for word in words if word)


def _index(payload: JsonObject) -> int:
    index = payload.get("index")
    return index if isinstance(index, int) else 0


def _is_call(block: JsonObject) -> bool:
    return block.get("type") == "tool_use"


def _text_of(block: JsonObject) -> str:
    return as_text(block.get("text")) if block.get("type") == "text" else ""


def _is_content(_payload: JsonObject) -> bool:
    return True
