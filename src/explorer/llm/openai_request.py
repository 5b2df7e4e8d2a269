"""A request in the words of OpenAI's Chat Completions, which most servers understand."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from explorer.llm.projection import arguments_text, is_own, projected_ids, projected_name
from explorer.messages import JsonObject, Request, Results, Turn, UserText

PROVIDER = "openai-chat"

OPENAI_TURNS = frozenset({PROVIDER, "openai-responses"})
"""The `provider` of turns that came from a server of OpenAI's kind, through either of its APIs."""

OFFICIAL_HOST = "api.openai.com"

MAX_CACHE_KEY_CHARS = 64


def is_official(base_url: str) -> bool:
    """Say whether a URL is OpenAI's own; regional hosts end the same."""
    try:
        host = urlsplit(base_url).hostname or ""
    except ValueError:
        return False
    return host == OFFICIAL_HOST or host.endswith(f".{OFFICIAL_HOST}")


def to_head(request: Request, *, official: bool) -> JsonObject:
    """Write what stays the same for all requests of a role in a run: all but the history and the limit."""
    body: JsonObject = {"model": request.model, "stream": True, "stream_options": {"include_usage": True}}
    if official and request.run:
        # Requests with one key are sent to the machine whose cache holds their beginning.
        body["prompt_cache_key"] = f"{request.run}:{request.role}"[-MAX_CACHE_KEY_CHARS:]
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
            for tool in request.tools
        ]
    body["messages"] = [{"role": "system", "content": request.system}] if request.system.strip() else []
    return body


def to_rest(request: Request, *, official: bool) -> JsonObject:
    """Write what may differ each time.

    OpenAI's models reject the older name of the output limit, most other servers know only that.
    """
    rest: JsonObject = {"max_completion_tokens" if official else "max_tokens": request.max_output_tokens}
    if request.effort:
        rest["reasoning_effort"] = request.effort
    return rest


def to_messages(request: Request) -> list[JsonObject]:
    """Write the history; it is only ever added to."""
    messages: list[JsonObject] = []
    ids: Mapping[str, str] = {}
    for position, message in enumerate(request.history):
        if isinstance(message, Turn):
            own = is_own(message, PROVIDER, request.model)
            ids = {} if own else projected_ids(position, message)
            messages.extend(_own_messages(message) if own else _projected_messages(message, ids))
        elif isinstance(message, Results):
            messages.extend(
                {"role": "tool", "tool_call_id": ids.get(result.id, result.id), "content": result.content}
                for result in message.results
            )
        else:
            _append_said(messages, message)
    return messages


def _append_said(messages: list[JsonObject], said: UserText) -> None:
    """Add words of the user; two messages of one role in a row break the templates of many local models."""
    if not said.text.strip():
        return
    if messages and messages[-1]["role"] == "user":
        messages[-1] = {"role": "user", "content": f"{messages[-1]['content']}\n\n{said.text}"}
    else:
        messages.append({"role": "user", "content": said.text})


def _own_messages(turn: Turn) -> list[JsonObject]:
    """Return the turn's message as it was stored; one that says nothing at all is refused by servers."""
    return [block for block in turn.blocks if block.get("content") or block.get("tool_calls") or block.get("refusal")]


def _projected_messages(turn: Turn, ids: Mapping[str, str]) -> list[JsonObject]:
    message: JsonObject = {"role": "assistant", "content": turn.text or None}
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": ids[call.id],
                "type": "function",
                "function": {"name": projected_name(call), "arguments": arguments_text(call)},
            }
            for call in turn.calls
        ]
    return [message] if turn.text.strip() or turn.calls else []
