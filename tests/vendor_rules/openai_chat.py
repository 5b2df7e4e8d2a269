"""Rules of Chat Completions: those that every server enforces in some form, and those of OpenAI's own.

`COMMON` is what any server is held to in the tests; `RULES` is api.openai.com. What the compatible servers add is in
`compatible.py`.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from vendor_rules.rule import Asked, JsonObject, Refusal, Rule, RuleSet

MODEL = "gpt-5.2"
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
STANDARD_REQUEST = frozenset(
    {"model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "tools", "tool_choice"}
    | {"prompt_cache_key", "reasoning_effort", "store", "parallel_tool_calls"}
)
STANDARD_MESSAGE = frozenset({"role", "content", "tool_calls", "tool_call_id", "name", "refusal"})
ADDED = ("reasoning_content", "reasoning", "reasoning_details", "extra_content")


def call(call_id: str, name: str = "read_file", arguments: str = '{"filepath": "a.md"}') -> JsonObject:
    """One call of an assistant message."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def valid(model: str = MODEL, limit: str = "max_completion_tokens", **added: Any) -> Asked:
    """A conversation with two calls, their results, and all that a request may hold."""
    schema = {"type": "object", "properties": {"filepath": {"type": "string"}}, "required": ["filepath"]}
    calls = [call("c00001000"), call("c00001001")]
    body: JsonObject = {
        "model": model,
        "stream": True,
        "stream_options": {"include_usage": True},
        limit: 1024,
        "tools": [
            {"type": "function", "function": {"name": "read_file", "description": "Read.", "parameters": schema}}
        ],
        "messages": [
            {"role": "system", "content": "You search."},
            {"role": "user", "content": "What is new?"},
            {"role": "assistant", "content": None, "tool_calls": calls, **added},
            {"role": "tool", "tool_call_id": "c00001000", "content": "Nothing."},
            {"role": "tool", "tool_call_id": "c00001001", "content": "Nothing."},
        ],
    }
    return Asked(body, {"authorization": "Bearer sk-test", "content-type": "application/json"})


def messages(asked: Asked, *roles: str) -> list[JsonObject]:
    """The messages of some roles; all without any."""
    return [message for message in asked.body["messages"] if not roles or message["role"] in roles]


def calls_in(message: JsonObject) -> list[JsonObject]:
    """The calls of one message."""
    return message.get("tool_calls") or []


def calls_of(asked: Asked) -> list[JsonObject]:
    """All calls of a conversation."""
    return [one for message in messages(asked, "assistant") for one in calls_in(message)]


def functions(asked: Asked) -> list[JsonObject]:
    """All tools that are offered."""
    return [tool["function"] for tool in asked.body.get("tools", [])]


def schemas_in(schema: JsonObject) -> Iterator[JsonObject]:
    """A schema and all schemas within it."""
    yield schema
    inner: list[Any] = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values()]
    inner += [part for key in ("anyOf", "oneOf", "allOf", "prefixItems") for part in schema.get(key, [])]
    inner += [schema[key] for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)]
    for part in inner:
        yield from schemas_in(part)


def all_schemas(asked: Asked) -> list[JsonObject]:
    """All schemas of all tools."""
    return [schema for function in functions(asked) for schema in schemas_in(function.get("parameters", {}))]


def has_calls(asked: Asked) -> bool:
    """Whether the conversation has calls."""
    return bool(calls_of(asked))


def has_tools(asked: Asked) -> bool:
    """Whether tools are offered."""
    return bool(asked.body.get("tools"))


def at(place: int, **fields: Any) -> Callable[[Asked], None]:
    """Make a violation that sets fields of one message."""

    def change(asked: Asked) -> None:
        asked.body["messages"][place] |= fields

    return change


def with_field(name: str, value: Any) -> Callable[[Asked], None]:  # noqa: ANN401 - JSON
    """Make a violation that sets a field of the request."""

    def change(asked: Asked) -> None:
        asked.body[name] = value

    return change


def without_message(place: int) -> Callable[[Asked], None]:
    """Make a violation that leaves a message out."""

    def change(asked: Asked) -> None:
        del asked.body["messages"][place]

    return change


def with_message(message: JsonObject) -> Callable[[Asked], None]:
    """Make a violation that adds a message."""

    def change(asked: Asked) -> None:
        asked.body["messages"].append(message)

    return change


def with_empty_message(asked: Asked) -> None:
    """Add an assistant message that says nothing."""
    asked.body["messages"].insert(2, {"role": "assistant", "content": None})


def with_property(schema: JsonObject) -> Callable[[Asked], None]:
    """Make a violation that gives the first tool another field."""

    def change(asked: Asked) -> None:
        functions(asked)[0]["parameters"]["properties"]["x"] = schema

    return change


def _pairing(asked: Asked) -> Refusal | None:
    open_ids: list[str] = []
    for message in messages(asked):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_ids:
                return Refusal("messages with role 'tool' must be a response to a preceding message with 'tool_calls'.")
            open_ids.remove(message["tool_call_id"])
        elif open_ids:
            break
        else:
            open_ids = [one["id"] for one in calls_in(message)]
    words = "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'"
    return Refusal(words) if open_ids else None


def _content(asked: Asked) -> Refusal | None:
    for place, message in enumerate(messages(asked)):
        content, is_asking = message.get("content"), bool(message.get("tool_calls"))
        is_said = bool(content) or bool(message.get("refusal")) or message["role"] == "tool"
        if content == [] or not (is_said or is_asking):
            return Refusal(f"Invalid value for 'content': expected a string, got null: messages.[{place}].content")
        if message.get("tool_calls") == []:
            return Refusal(f"[] is too short - 'messages.{place}.tool_calls'")
    return None


def _order(asked: Asked) -> Refusal | None:
    output = messages(asked)
    if not output or output[-1]["role"] not in {"user", "tool"}:
        return Refusal("The last message must be one of the user or of a tool.")
    if any(message["role"] == "system" for message in output[1:]):
        return Refusal("System message must be at the beginning.", status=500)
    return None


def _names(asked: Asked) -> Refusal | None:
    names = [one["name"] for one in functions(asked)] + [one["function"]["name"] for one in calls_of(asked)]
    if all(NAME.fullmatch(name) for name in names):
        return None
    return Refusal(
        "Invalid 'tools[0].function.name': string does not match pattern '^[a-zA-Z0-9_-]+$' of at most 64 letters.",
        code="invalid_value",
    )


def _count(asked: Asked) -> Refusal | None:
    tools = asked.body.get("tools")
    if tools is None or 0 < len(tools) <= 128:
        return None
    return Refusal(f"Invalid 'tools': an array of 1 to 128 is expected, but got one with length {len(tools)}.")


def _arguments(asked: Asked) -> Refusal | None:
    for one in calls_of(asked):
        try:
            is_object = isinstance(json.loads(one["function"]["arguments"]), dict)
        except (TypeError, ValueError):
            is_object = False
        if not is_object:
            return Refusal("Failed to parse tool call arguments as JSON", status=500)
    return None


def _options(asked: Asked) -> Refusal | None:
    if "stream_options" in asked.body and not asked.body.get("stream"):
        return Refusal("The 'stream_options' parameter is only allowed when 'stream' is enabled.")
    return None


def _break_name(asked: Asked) -> None:
    functions(asked)[0]["name"] = "read file"


def _break_arguments(asked: Asked) -> None:
    calls_of(asked)[0]["function"]["arguments"] = '{"filepath": "a'


def _many_tools(asked: Asked) -> None:
    asked.body["tools"] *= 129


COMMON_RULES = (
    Rule(
        id="C1",
        says="every call is answered right behind its message, and every result answers a call",
        source="OpenAI API reference, chat/create; QwenLM/qwen-code #606, FoundationAgents/OpenManus #744",
        check=_pairing,
        violate=without_message(4),
        applies=has_calls,
    ),
    Rule(
        id="C2",
        says="a message has content; null only with calls, never an empty array, and no empty list of calls",
        source="OpenAI SDK types, ChatCompletionAssistantMessageParam; llama.cpp server: must contain either 'content'",
        check=_content,
        violate=with_empty_message,
    ),
    Rule(
        id="C3",
        says="the last message is the user's or a tool's, and system text comes first",
        source="mistral-common validator; Qwen3 chat templates: System message must be at the beginning",
        check=_order,
        violate=with_message({"role": "system", "content": "Hurry."}),
    ),
    Rule(
        id="C4",
        says="names of tools and of calls are 1 to 64 letters, digits, _ and -",
        source="OpenAI SDK types, FunctionDefinition; nanbingxyz/5ire #33, QwenLM/Qwen3-VL #2069",
        check=_names,
        violate=_break_name,
        applies=has_tools,
    ),
    Rule(
        id="C5",
        says="there are 1 to 128 tools, or the field is absent",
        source="OpenAI SDK types, chat completion_create_params; 0x4m4/hexstrike-ai #29",
        check=_count,
        violate=_many_tools,
        applies=has_tools,
    ),
    Rule(
        id="C6",
        says="arguments of earlier calls are the text of a JSON object",
        source="llama.cpp and vLLM parse them for their templates: a broken one is answered with status 500",
        check=_arguments,
        violate=_break_arguments,
        applies=has_calls,
    ),
    Rule(
        id="C7",
        says="stream_options only with stream",
        source="OpenAI API reference, chat/create",
        check=_options,
        violate=with_field("stream", value=False),
    ),
)

COMMON = RuleSet("Chat Completions, any server", COMMON_RULES, valid)


def _function_tools(asked: Asked) -> Refusal | None:
    if not has_tools(asked) or not re.search(r"gpt-(5\.[6-9]|[6-9])", asked.body["model"]):
        return None
    if asked.body.get("reasoning_effort") == "none":
        return None
    return Refusal(
        f"Function tools with reasoning_effort are not supported for {asked.body['model']} in /v1/chat/completions. "
        "To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
        param="reasoning_effort",
    )


def _effort(asked: Asked) -> Refusal | None:
    effort = asked.body.get("reasoning_effort")
    if effort is None or effort in {"low", "medium", "high", "xhigh", "none"}:
        return None
    return Refusal(f"Unsupported value: 'reasoning_effort' does not support '{effort}' with this model.")


def _limit_name(asked: Asked) -> Refusal | None:
    if "max_tokens" not in asked.body:
        return None
    return Refusal(
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        code="unsupported_parameter",
        param="max_tokens",
    )


def _sampling(asked: Asked) -> Refusal | None:
    given = next((name for name in ("temperature", "top_p", "stop", "logprobs") if name in asked.body), None)
    return Refusal(f"Unsupported parameter: '{given}' is not supported with this model.") if given else None


def _cache_key(asked: Asked) -> Refusal | None:
    if len(asked.body.get("prompt_cache_key", "")) <= 64:
        return None
    return Refusal("Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64.")


def unknown_field(asked: Asked, known: frozenset[str] = STANDARD_MESSAGE) -> tuple[int, str] | None:
    """The first field of a message that is not known, with the message's place."""
    for place, message in enumerate(messages(asked)):
        for name in message:
            if name not in known:
                return place, name
    return None


def _message_fields(asked: Asked) -> Refusal | None:
    unknown = unknown_field(asked)
    if unknown is None:
        return None
    name = f"messages[{unknown[0]}].{unknown[1]}"
    return Refusal(f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)


def _request_fields(asked: Asked) -> Refusal | None:
    unknown = next((name for name in asked.body if name not in STANDARD_REQUEST), None)
    return Refusal(f"Unrecognized request argument supplied: {unknown}") if unknown else None


def _strict(asked: Asked) -> Refusal | None:
    for function in functions(asked):
        if function.get("strict") and function["parameters"].get("additionalProperties") is not False:
            return Refusal("Invalid schema for function: 'additionalProperties' is required to be supplied and false.")
    return None


def _make_strict(asked: Asked) -> None:
    functions(asked)[0]["strict"] = True


RULES = RuleSet(
    "OpenAI Chat Completions",
    (
        *COMMON_RULES,
        Rule(
            id="O1",
            says="gpt-5.6 and later accept no function tools here unless reasoning_effort is none",
            source="BerriAI/litellm #34569, LibreChat #14231, livekit/agents #7169",
            check=_function_tools,
            violate=with_field("model", "gpt-6.1-sol"),
            applies=has_tools,
        ),
        Rule(
            id="O2",
            says="each model knows its own values of reasoning_effort",
            source="onyx-dot-app/onyx #15008, livekit/agents #7169",
            check=_effort,
            violate=with_field("reasoning_effort", "minimal"),
        ),
        Rule(
            id="O3",
            says="reasoning models refuse max_tokens",
            source="OpenAI SDK types: max_tokens is not compatible with o-series models",
            check=_limit_name,
            violate=with_field("max_tokens", 1024),
        ),
        Rule(
            id="O4",
            says="reasoning models refuse sampling parameters and stop",
            source="OpenAI guide on reasoning models; SDK types: stop is not supported with reasoning models",
            check=_sampling,
            violate=with_field("temperature", 0.2),
        ),
        Rule(
            id="O5",
            says="prompt_cache_key has at most 64 characters",
            source="OpenAI API reference, chat/create; recorded answer: string too long, maximum length 64",
            check=_cache_key,
            violate=with_field("prompt_cache_key", "k" * 65),
        ),
        Rule(
            id="O6",
            says="messages contain standard fields only",
            source="OpenAI API: Unknown parameter: 'messages[2].reasoning_content'",
            check=_message_fields,
            violate=at(2, reasoning_content="Hm."),
        ),
        Rule(
            id="O7",
            says="requests contain standard fields only",
            source="OpenAI API: Unrecognized request argument supplied",
            check=_request_fields,
            violate=with_field("num_ctx", 8192),
        ),
        Rule(
            id="O8",
            says="a strict tool forbids additional properties",
            source="OpenAI guide on structured outputs, supported schemas",
            check=_strict,
            violate=_make_strict,
            applies=has_tools,
        ),
    ),
    valid,
)
