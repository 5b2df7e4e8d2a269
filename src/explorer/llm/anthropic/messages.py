"""The adapter for Anthropic's Messages API, on the official SDK's transport, authentication and error mapping."""

from collections.abc import Mapping
from itertools import islice

from explorer.llm.anthropic.reply import REASONING, AnthropicReply
from explorer.llm.history import BoundReasoning, Histories, accepted_name, is_own, projected_ids
from explorer.llm.options import ClientOptions, Endpoint
from explorer.llm.prompt_cache import EncodedRequests
from explorer.llm.sdk_client import Sdk, SdkClient
from explorer.llm.vendors import ANTHROPIC, ANTHROPIC_URL
from explorer.llm.wire_json import RefusedForms, object_form
from explorer.schema.errors import ModelError
from explorer.schema.messages import CallResult, JsonObject, Message, Request, Results, StopKind, Turn, UserText

CACHE_MARK: Mapping[str, str] = {"type": "ephemeral"}

LONG_TURN_BLOCKS = 15
"""The number of added blocks from which a turn gets a cache mark in its middle, too."""


def to_prefix(request: Request) -> JsonObject:
    """Return the part that is the same in all requests of a role; its end has a cache mark."""
    body: JsonObject = {"model": request.model, "stream": True}
    if request.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in request.tools
        ]
    if request.system.strip():
        # Tools come before the system text and are covered by its mark.
        body["system"] = [_marked(_text(request.system))]
    elif request.tools:
        body["tools"][-1] = _marked(body["tools"][-1])
    body["messages"] = []
    return body


def to_rest(request: Request) -> JsonObject:
    """Return the part that may differ each time: limit, effort, the reply's form."""
    rest: JsonObject = {"max_tokens": request.max_output_tokens}
    output: JsonObject = {"effort": request.effort} if request.effort else {}
    if request.reply_schema is not None:
        output["format"] = {"type": "json_schema", "schema": object_form(request.reply_schema)}
    return rest | ({"output_config": output} if output else {})


class MessagesWriter:
    """Writes a history with its roles in turn; results come first in their message, as the API demands."""

    def __init__(self, model: str) -> None:
        self._model = model
        self.messages: list[JsonObject] = []
        self._ids: Mapping[str, str] = {}
        """The ids that are sent for the calls of the latest turn, by their own ids."""

    def add(self, position: int, message: Message, *, keeps_reasoning: bool) -> None:
        """Write the message at this index of the history."""
        if not isinstance(message, Turn):
            self._append("user", _user_blocks(message, self._ids))
        elif is_own(message, ANTHROPIC, self._model):
            self._ids = {}
            self._append("assistant", _own_blocks(message, keeps_reasoning=keeps_reasoning))
        else:
            self._ids = projected_ids(position, message)
            self._append("assistant", _projected_blocks(message, self._ids))

    def _append(self, role: str, blocks: list[JsonObject]) -> None:
        if not blocks:
            return
        if not self.messages or self.messages[-1]["role"] != role:
            self.messages.append({"role": role, "content": []})
        content: list[JsonObject] = self.messages[-1]["content"]
        content.extend(blocks)
        if role == "user":
            content.sort(key=_is_text)


def with_cache_marks(messages: list[JsonObject]) -> list[JsonObject]:
    """Mark the last user message, and the last one of the request before, whose cache entry is then found at once.

    With the mark at the end of the prefix these are three of the four that the API allows. The fourth is in the middle
    of a turn that adds many blocks: an entry is searched for at most 20 blocks before a mark.

    The list is changed and returned; its messages are not changed.
    """
    latest_first = range(len(messages) - 1, -1, -1)
    user_messages = list(islice((index for index in latest_first if messages[index]["role"] == "user"), 2))
    tails = [(index, len(messages[index]["content"]) - 1) for index in user_messages]
    for index, block in [*tails, *_middle(messages, user_messages)]:
        content = list(messages[index]["content"])
        content[block] = _marked(content[block])
        messages[index] = {**messages[index], "content": content}
    return messages


def _middle(messages: list[JsonObject], user_messages: list[int]) -> list[tuple[int, int]]:
    """Return the middle one of the blocks that a long turn adds, without the last one; empty for a short turn."""
    since = user_messages[1] + 1 if len(user_messages) > 1 else 0
    added = [
        (index, block) for index in range(since, len(messages)) for block in range(len(messages[index]["content"]))
    ]
    if len(added) <= LONG_TURN_BLOCKS:
        return []
    half = len(added) // 2
    near = sorted(range(len(added) - 1), key=lambda position: abs(position - half))
    places = (added[position] for position in near)
    return [(one, block) for one, block in places if messages[one]["content"][block].get("type") not in REASONING][:1]


def _marked(block: JsonObject) -> JsonObject:
    return {**block, "cache_control": dict(CACHE_MARK)}


def _own_blocks(turn: Turn, *, keeps_reasoning: bool) -> list[JsonObject]:
    """Return a turn's blocks as the API accepts them: without empty text, and with all of its reasoning or none."""
    blocks = [block for block in turn.blocks if not _is_empty_text(block)]
    if keeps_reasoning and _may_go_back(turn):
        return blocks
    return [block for block in blocks if block.get("type") not in REASONING]


def _may_go_back(turn: Turn) -> bool:
    """Return whether all of a turn's reasoning can be sent back in its place; a part of it would be refused.

    Reasoning that was cut has no signature. Reasoning after an empty text, which is never sent, would come after
    something else. No message may end with reasoning, except after a pause, from which the API itself continues.
    """
    ends_with_reasoning = bool(turn.blocks) and turn.blocks[-1].get("type") in REASONING
    if ends_with_reasoning and turn.stop is not StopKind.PAUSE:
        return False
    has_gap = False
    for block in turn.blocks:
        has_gap = has_gap or _is_empty_text(block)
        if block.get("type") in REASONING and (has_gap or not (block.get("signature") or block.get("data"))):
            return False
    return True


def _projected_blocks(turn: Turn, ids: Mapping[str, str]) -> list[JsonObject]:
    blocks = [_text(turn.text)] if turn.text.strip() else []
    for call in turn.calls:
        name = accepted_name(call.name)
        blocks.append({"type": "tool_use", "id": ids[call.id], "name": name, "input": call.arguments or {}})
    return blocks


def _user_blocks(message: Message, ids: Mapping[str, str]) -> list[JsonObject]:
    if isinstance(message, Results):
        return [_result(result, ids.get(result.id, result.id)) for result in message.results]
    is_said = isinstance(message, UserText) and message.text.strip()
    return [_text(message.text)] if is_said else []


def _result(result: CallResult, call_id: str) -> JsonObject:
    block: JsonObject = {"type": "tool_result", "tool_use_id": call_id}
    if result.content:
        block["content"] = result.content
    if result.is_error:
        block["is_error"] = True
    return block


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _is_text(block: JsonObject) -> bool:
    return block["type"] == "text"


def _is_empty_text(block: JsonObject) -> bool:
    return block.get("type") == "text" and not block.get("text", "").strip()


class AnthropicClient(SdkClient):
    """Asks Claude models.

    The SDK's typed calls and its stream helper are not used: they walk the whole history at every turn, and the
    helper repairs cut-off arguments and takes a stream without an end for a success.
    """

    def __init__(self, options: ClientOptions) -> None:
        base_url = options.base_url or ANTHROPIC_URL
        settings = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")
        endpoint = Endpoint(
            "Anthropic",
            base_url,
            *settings,
            options.key,
            options.network,
            is_default=not options.base_url,
            wants_v1=False,
        )
        super().__init__(options, endpoint, Sdk.imported("anthropic", "AsyncAnthropic"), "/v1/messages")
        self._prefixes = EncodedRequests(to_prefix)
        self._histories = Histories(MessagesWriter)
        self._reasoning = BoundReasoning(ANTHROPIC)
        self._forms = RefusedForms()

    async def generate(self, request: Request) -> Turn:
        """Send a request, again without a form if the model refuses it, and return the complete turn.

        Raises:
            ModelError: No turn came; nothing of the attempt may be used.
        """
        try:
            return await self._ask(self._forms.request(request))
        except ModelError as error:
            if not self._forms.learn(request, error):
                raise
        return await self._ask(self._forms.request(request))

    async def _ask(self, request: Request) -> Turn:
        reply = AnthropicReply(self._endpoint, self._meter(request))
        bound = self._reasoning.before(request)
        messages = with_cache_marks(self._histories.messages(request, bound.kept))
        body = self._prefixes.body(request, messages, to_rest(request))
        await self._exchange(body, reply)
        turn = reply.turn(request.model)
        if reply.has_true_reasoning and any(block.get("type") in REASONING for block in turn.blocks):
            turn = turn.model_copy(update={"bound_to": bound.digest})
        return self._priced(turn, request, ANTHROPIC)
