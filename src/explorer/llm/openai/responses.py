"""The adapter for OpenAI's Responses API, on the official SDK's transport; nothing is stored at the vendor."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from explorer.llm.faults import model_error, refusal_of
from explorer.llm.history import (
    BoundReasoning,
    Histories,
    accepted_name,
    arguments_text,
    is_own,
    projected_ids,
    require_unique_ids,
    settled_stop,
    with_ids,
)
from explorer.llm.openai.sdk import OpenAISdkClient, cache_key
from explorer.llm.options import ClientOptions, Endpoint, ReplyMeter
from explorer.llm.prompt_cache import EncodedRequests
from explorer.llm.streaming import ServerEvent
from explorer.llm.vendors import OPENAI_RESPONSES
from explorer.llm.wire_json import (
    FIELD,
    ParsedArguments,
    RefusedForms,
    as_count,
    as_object,
    as_objects,
    as_text,
    cut_problem,
    object_form,
    parse_arguments,
    parse_payload,
    repair_object,
)
from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.messages import JsonObject, Message, Request, Results, StopKind, ToolCall, Turn, Usage, place_of

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


MIN_OUTPUT_TOKENS = 16
"""The lowest output limit that the API accepts."""

ENCRYPTED_REASONING = "reasoning.encrypted_content"


def to_prefix(request: Request) -> JsonObject:
    """Return the part that is the same in all requests of a role in a run: all but history, limit and effort.

    `strict` is off because it is on by default in this API, and requires schemas in which every field is required.
    """
    body: JsonObject = {"model": request.model, "stream": True, "store": False, **cache_key(request)}
    if request.system.strip():
        body["instructions"] = request.system
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": False,
            }
            for tool in request.tools
        ]
    body["input"] = []
    return body


def to_rest(request: Request, *, wants_reasoning: bool = True) -> JsonObject:
    """Return the part that may differ each time: limit, reasoning, effort, the reply's form.

    Args:
        request: The request.
        wants_reasoning: Whether to ask for encrypted reasoning, which models without reasoning refuse.
    """
    rest: JsonObject = {"max_output_tokens": max(request.max_output_tokens, MIN_OUTPUT_TOKENS)}
    if wants_reasoning:
        rest["include"] = [ENCRYPTED_REASONING]
    if request.effort:
        rest["reasoning"] = {"effort": request.effort}
    if request.reply_schema is not None:
        form: JsonObject = {"type": "json_schema", "name": FIELD, "strict": True}
        rest["text"] = {"format": form | {"schema": object_form(request.reply_schema)}}
    return rest


class InputWriter:
    """Writes a history as the items of a request."""

    def __init__(self, model: str) -> None:
        self._model = model
        self.messages: list[JsonObject] = []
        self._ids: Mapping[str, str] = {}
        """The ids that are sent for the calls of the latest turn, by their own ids."""

    def add(self, position: int, message: Message, *, keeps_reasoning: bool) -> None:
        """Write the message at this index of the history."""
        items = self.messages
        if isinstance(message, Turn):
            if is_own(message, OPENAI_RESPONSES, self._model):
                self._ids = {}
                items.extend(_own_items(message.blocks, keeps_reasoning=keeps_reasoning))
            else:
                self._ids = projected_ids(position, message)
                items.extend(_projected_items(message, self._ids))
        elif isinstance(message, Results):
            items.extend(_output(result.content, self._ids.get(result.id, result.id)) for result in message.results)
        elif message.text.strip():
            items.append({"role": "user", "content": message.text})


def _own_items(blocks: Sequence[JsonObject], *, keeps_reasoning: bool) -> Sequence[JsonObject]:
    """Return a turn's items as the API sent them, or all of them without reasoning and ids.

    The API refuses reasoning without the item that followed it, and an item without the reasoning that led to it. It
    knows by their ids which belong together. So a turn is sent back whole. If one of its items cannot be sent
    back, no reasoning of the turn is; and without ids no item can lack its pair.
    """
    is_free = keeps_reasoning or not any(is_reasoning(block) for block in blocks)
    if is_free and all(_may_return(blocks, index) for index in range(len(blocks))):
        return blocks
    return [_bare(block) for block in blocks if not is_reasoning(block) and not _is_empty(block)]


def _may_return(blocks: Sequence[JsonObject], index: int) -> bool:
    """Return whether an item is complete, and reasoning has the item after it that it led to."""
    block = blocks[index]
    if block.get("status") not in {None, "completed"} or _is_empty(block):
        return False
    if not is_reasoning(block):
        return True
    return bool(block.get("encrypted_content")) and any(not is_reasoning(later) for later in blocks[index + 1 :])


def _bare(block: JsonObject) -> JsonObject:
    return {name: value for name, value in block.items() if name not in {"id", "status"}}


def is_reasoning(block: JsonObject) -> bool:
    """Return whether an item is a model's reasoning."""
    return block.get("type") == "reasoning"


def _is_empty(block: JsonObject) -> bool:
    """Return whether an item is a message without text."""
    if block.get("type") != "message":
        return False
    return not any(part.get("text") or part.get("refusal") for part in block.get("content") or ())


def _output(content: str, call_id: str) -> JsonObject:
    return {"type": "function_call_output", "call_id": call_id, "output": content}


def _projected_items(turn: Turn, ids: Mapping[str, str]) -> list[JsonObject]:
    items: list[JsonObject] = [{"role": "assistant", "content": turn.text}] if turn.text.strip() else []
    for call in turn.calls:
        name = accepted_name(call.name)
        arguments = arguments_text(call)
        items.append({"type": "function_call", "call_id": ids[call.id], "name": name, "arguments": arguments})
    return items


NO_REASONING = "encrypted content is not supported"
"""Part of the refusal of a model without reasoning that is asked for encrypted reasoning."""


class ResponsesClient(OpenAISdkClient):
    """Asks OpenAI's models through the API for models that reason and call tools.

    Nothing is stored at the vendor: each request has the whole conversation, with the encrypted reasoning in it.
    """

    def __init__(self, options: ClientOptions) -> None:
        super().__init__(options, "/responses")
        self._prefixes = EncodedRequests(to_prefix)
        self._histories = Histories(InputWriter)
        self._reasoning = BoundReasoning(OPENAI_RESPONSES)
        self._forms = RefusedForms()
        self._without_reasoning: set[str] = set()
        """The models that do not reason."""

    async def generate(self, request: Request) -> Turn:
        """Send a request, again without encrypted reasoning or a form if it is refused, and return the complete turn.

        Raises:
            ModelError: No turn came; nothing of the attempt may be used.
        """
        try:
            return await self._ask(request)
        except ModelError as error:
            if not self._learn(request, error):
                raise
        return await self._ask(request)

    def _learn(self, request: Request, error: ModelError) -> bool:
        """Learn from a refusal; return whether the request is to be sent again."""
        if NO_REASONING in error.message.lower() and request.model not in self._without_reasoning:
            self._without_reasoning.add(request.model)
            return True
        return self._forms.learn(request, error)

    async def _ask(self, request: Request) -> Turn:
        request = self._forms.request(request)
        reply = ResponsesReply(self._endpoint, self._meter(request))
        bound = self._reasoning.before(request)
        history = self._histories.messages(request, bound.kept)
        rest = to_rest(request, wants_reasoning=request.model not in self._without_reasoning)
        body = self._prefixes.body(request, history, rest)
        await self._exchange(body, reply)
        turn = reply.turn(request.model)
        if any(is_reasoning(block) for block in turn.blocks):
            turn = turn.model_copy(update={"bound_to": bound.digest})
        return self._priced(turn, request, self._priced_as)
