"""A request in the words of Anthropic's Messages API."""

from collections.abc import Mapping

from explorer.llm.projection import is_own, projected_ids, projected_name
from explorer.messages import CallResult, JsonObject, Message, Request, Results, Turn, UserText

PROVIDER = "anthropic"

CACHE_MARK: Mapping[str, str] = {"type": "ephemeral"}


def to_body(request: Request) -> JsonObject:
    """Write the request as the body of `POST /v1/messages`."""
    body: JsonObject = {"model": request.model, "max_tokens": request.max_output_tokens, "stream": True}
    if request.system.strip():
        body["system"] = [_text(request.system)]
    if request.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in request.tools
        ]
    body["messages"] = _messages(request)
    return with_cache_marks(body)


def with_cache_marks(body: JsonObject) -> JsonObject:
    """Mark the end of the head and the last words to the model, so that all before them is read from cache.

    Two of the four marks the API allows; tools stand before the system text and are covered by its mark.
    """
    marked = dict(body)
    if "system" in body:
        marked["system"] = _marked_last(body["system"])
    messages: list[JsonObject] = list(body["messages"])
    for index in range(len(messages) - 1, -1, -1):
        if messages[index]["role"] == "user":
            messages[index] = {**messages[index], "content": _marked_last(messages[index]["content"])}
            break
    return {**marked, "messages": messages}


def _marked_last(blocks: list[JsonObject]) -> list[JsonObject]:
    return [*blocks[:-1], {**blocks[-1], "cache_control": dict(CACHE_MARK)}]


def _messages(request: Request) -> list[JsonObject]:
    """Write the history with its roles in turn; results come first in their message, as the API demands."""
    messages: list[JsonObject] = []
    ids: Mapping[str, str] = {}
    for position, message in enumerate(request.history):
        if isinstance(message, Turn):
            own = is_own(message, PROVIDER, request.model)
            ids = {} if own else projected_ids(position, message)
            blocks = _own_blocks(message) if own else _projected_blocks(message, ids)
            _append(messages, "assistant", blocks)
        else:
            _append(messages, "user", _user_blocks(message, ids))
    for message in messages:
        if message["role"] == "user":
            message["content"].sort(key=_is_text)
    return messages


def _append(messages: list[JsonObject], role: str, blocks: list[JsonObject]) -> None:
    if not blocks:
        return
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"].extend(blocks)
    else:
        messages.append({"role": role, "content": blocks})


def _own_blocks(turn: Turn) -> list[JsonObject]:
    return [block for block in turn.blocks if not _is_empty_text(block)]


def _projected_blocks(turn: Turn, ids: Mapping[str, str]) -> list[JsonObject]:
    blocks = [_text(turn.text)] if turn.text.strip() else []
    for call in turn.calls:
        name = projected_name(call)
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
