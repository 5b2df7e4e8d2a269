"""A request in the words of Anthropic's Messages API."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from explorer.llm.history import accepted_name, is_own, projected_ids
from explorer.schema.messages import CallResult, JsonObject, Message, Request, Results, StopKind, Turn, UserText

PROVIDER = "anthropic"
DEFAULT_URL = "https://api.anthropic.com"
"""Where requests go without a setting."""

CACHE_MARK: Mapping[str, str] = {"type": "ephemeral"}

LONG_TURN_BLOCKS = 15
"""A turn that adds more gets a mark in its middle, too."""

REASONING = frozenset({"thinking", "redacted_thinking"})
"""Blocks that hold a model's reasoning; the API refuses a cache mark on these."""


def to_prefix(request: Request) -> JsonObject:
    """Write what stays the same for all requests of a role; its end is marked to be cached."""
    body: JsonObject = {"model": request.model, "stream": True}
    if request.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in request.tools
        ]
    if request.system.strip():
        # Tools stand before the system text and are covered by its mark.
        body["system"] = [_marked(_text(request.system))]
    elif request.tools:
        body["tools"][-1] = _marked(body["tools"][-1])
    body["messages"] = []
    return body


def to_rest(request: Request) -> JsonObject:
    """Write what may differ each time."""
    rest: JsonObject = {"max_tokens": request.max_output_tokens}
    if request.effort:
        rest["output_config"] = {"effort": request.effort}
    return rest


@dataclass(slots=True)
class _Written:
    """One agent's history as it was last sent, without the marks for the cache."""

    model: str
    history: tuple[Message, ...] = ()
    kept: frozenset[int] = frozenset()
    messages: list[JsonObject] = field(default_factory=list[JsonObject])
    """The roles in turn; results come first in their message, as the API demands."""
    ids: Mapping[str, str] = field(default_factory=dict[str, str])
    """The ids that are sent for the calls of the latest turn, by their own ids."""

    def is_begin_of(self, request: Request, kept: frozenset[int]) -> bool:
        """Return whether the request only adds to this history. Its messages are then the same objects."""
        length = len(self.history)
        if self.model != request.model or length > len(request.history):
            return False
        is_same = all(old is new for old, new in zip(self.history, request.history, strict=False))
        return is_same and self.kept == frozenset(position for position in kept if position < length)

    def add(self, request: Request, kept: frozenset[int]) -> None:
        """Write what the request adds."""
        for position in range(len(self.history), len(request.history)):
            message = request.history[position]
            if not isinstance(message, Turn):
                self._append("user", _user_blocks(message, self.ids))
            elif is_own(message, PROVIDER, self.model):
                self.ids = {}
                self._append("assistant", _own_blocks(message, keeps_reasoning=position in kept))
            else:
                self.ids = projected_ids(position, message)
                self._append("assistant", _projected_blocks(message, self.ids))
        self.history, self.kept = request.history, kept

    def _append(self, role: str, blocks: list[JsonObject]) -> None:
        if not blocks:
            return
        if not self.messages or self.messages[-1]["role"] != role:
            self.messages.append({"role": role, "content": []})
        content: list[JsonObject] = self.messages[-1]["content"]
        content.extend(blocks)
        if role == "user":
            content.sort(key=_is_text)


class Histories:
    """The histories of all agents of one adapter: each message is written once, and a request adds to what is there."""

    def __init__(self) -> None:
        self._written: dict[tuple[str, str], _Written] = {}

    def messages(self, request: Request, kept: Collection[int] = ()) -> list[JsonObject]:
        """Return the history, marked for the cache; apart from the marks it is only added to.

        Args:
            request: The request.
            kept: The indexes of turns whose reasoning is sent; that of all others is left out.
        """
        kept = frozenset(kept)
        agent = (request.run, request.agent)
        written = self._written.get(agent)
        if written is None or not written.is_begin_of(request, kept):
            written = self._written[agent] = _Written(request.model)
        written.add(request, kept)
        return with_cache_marks(list(written.messages))


def with_cache_marks(messages: list[JsonObject]) -> list[JsonObject]:
    """Mark the last words to the model, and those of the request before, whose entry is then found at once.

    With the mark at the end of the head that is three of the four that the API allows. The fourth stands amid a turn
    that adds many blocks: an entry is looked for at most 20 blocks before a mark.

    The list is changed and returned; its messages are not changed.
    """
    user_messages = [index for index in range(len(messages) - 1, -1, -1) if messages[index]["role"] == "user"][:2]
    tails = [(index, len(messages[index]["content"]) - 1) for index in user_messages]
    for index, block in [*tails, *_middle(messages, user_messages)]:
        content = list(messages[index]["content"])
        content[block] = _marked(content[block])
        messages[index] = {**messages[index], "content": content}
    return messages


def _middle(messages: list[JsonObject], user_messages: list[int]) -> list[tuple[int, int]]:
    """The block in the middle of what a long turn adds, its last block left out; none when the turn is short."""
    since = user_messages[1] + 1 if len(user_messages) > 1 else 0
    added = [
        (index, block) for index in range(since, len(messages)) for block in range(len(messages[index]["content"]))
    ]
    if len(added) <= LONG_TURN_BLOCKS:
        return []
    half = len(added) // 2
    near = sorted(range(len(added) - 1), key=lambda position: abs(position - half))
    return [added[position] for position in near if _may_be_marked(messages, added[position])][:1]


def _may_be_marked(messages: list[JsonObject], position: tuple[int, int]) -> bool:
    return messages[position[0]]["content"][position[1]].get("type") not in REASONING


def _marked(block: JsonObject) -> JsonObject:
    return {**block, "cache_control": dict(CACHE_MARK)}


def _own_blocks(turn: Turn, *, keeps_reasoning: bool) -> list[JsonObject]:
    """A turn's blocks as the API takes them back: without empty text, and with all of its reasoning or none."""
    blocks = [block for block in turn.blocks if not _is_empty_text(block)]
    if keeps_reasoning and _may_go_back(turn):
        return blocks
    return [block for block in blocks if block.get("type") not in REASONING]


def _may_go_back(turn: Turn) -> bool:
    """Whether all of a turn's reasoning can be sent exactly where it was made; a part of it is refused.

    Reasoning that was cut has no signature. Reasoning behind an empty text, which is never sent, would stand behind
    something else. No message may end with reasoning, but for a pause, which the API itself goes on from.
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
