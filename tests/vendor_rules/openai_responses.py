"""Rules of OpenAI's Responses API, for conversations that hold themselves what was said (`store` is false)."""

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any, get_args, get_type_hints

from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from openai.types.responses.response_includable import ResponseIncludable

from vendor_rules.rule import Asked, JsonObject, Refusal, Rule, RuleSet

SDK = "openai SDK 3.54, types of responses.response_create_params"
PARAMETERS = frozenset(get_type_hints(ResponseCreateParamsStreaming))
MOVED = {"max_tokens": "max_output_tokens", "reasoning_effort": "reasoning.effort", "messages": "input"}
"""Names of Chat Completions, and what this API calls them."""

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
PREFIXES = {"reasoning": "rs", "message": "msg", "function_call": "fc"}
ITEM_TYPES = frozenset({"message", "reasoning", "function_call", "function_call_output", "item_reference"})
"""Those of the API's that an agent with functions and nothing else sends."""
ROLES = ("assistant", "system", "developer", "user")
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
REFUSED_EFFORTS = {
    "gpt-6-astra": {"none", "minimal"},
    "gpt-6.1-sol": {"none", "minimal"},
    "gpt-5.6": {"minimal"},
    "gpt-5-": {"none", "xhigh", "max"},
}
"""By the beginning of a model's name."""
NOT_REASONING = ("gpt-4", "gpt-3.5", "chatgpt-4o")
MAX_TOOLS = 128
MIN_OUTPUT_TOKENS = 16
MAX_ID_CHARS = 64

_MARK = "gAAAA"


def seal(model: str, secret: str = "reasoning") -> str:  # noqa: S107 - no password
    """Encrypted reasoning as the server makes it: whoever changes or cuts it is found out."""
    text = f"{model}.{secret}"
    return f"{_MARK}{hashlib.sha256(text.encode()).hexdigest()}.{secret.encode().hex()}"


def is_sealed(model: str, content: str) -> bool:
    """Whether a piece of encrypted reasoning is whole and was made for this model."""
    try:
        secret = bytes.fromhex(content.rpartition(".")[2]).decode()
    except ValueError:
        return False
    return content == seal(model, secret)


def items_of(asked: Asked) -> list[JsonObject]:
    """The input's items."""
    given: Any = asked.body.get("input")
    return given if isinstance(given, list) else []  # pyright: ignore[reportUnknownVariableType]


def kind_of(item: JsonObject) -> str:
    """An item's type; a message need not tell it."""
    return item.get("type") or ("message" if "role" in item else "")


def _of(asked: Asked, *kinds: str) -> Iterator[tuple[int, JsonObject]]:
    return ((place, item) for place, item in enumerate(items_of(asked)) if kind_of(item) in kinds)


def _tools(asked: Asked) -> list[JsonObject]:
    return asked.body.get("tools") or []


def _invalid(message: str, param: str = "input", code: str | None = "invalid_value") -> Refusal:
    return Refusal(message, param=param, code=code)


def _unknown_parameter(asked: Asked) -> Refusal | None:
    for name in asked.body:
        if name in MOVED:
            message = (
                f"Unsupported parameter: '{name}'. In the Responses API, this parameter has moved to '{MOVED[name]}'."
            )
            return _invalid(message, name, "unsupported_parameter")
        if name not in PARAMETERS:
            return _invalid(f"Unknown parameter: '{name}'.", name, "unknown_parameter")
    return None


def _low_limit(asked: Asked) -> Refusal | None:
    limit = asked.body.get("max_output_tokens")
    if limit is None or limit >= MIN_OUTPUT_TOKENS:
        return None
    message = (
        "Invalid 'max_output_tokens': integer below minimum value. "
        f"Expected a value >= {MIN_OUTPUT_TOKENS}, but got {limit} instead."
    )
    return _invalid(message, "max_output_tokens", "integer_below_min_value")


def _sampling(asked: Asked) -> Refusal | None:
    given = next((name for name in ("temperature", "top_p", "top_logprobs") if name in asked.body), None)
    if given is None or _model(asked).startswith(NOT_REASONING):
        return None
    return _invalid(
        f"Unsupported parameter: '{given}' is not supported with this model.", given, "unsupported_parameter"
    )


def _model(asked: Asked) -> str:
    return str(asked.body.get("model", ""))


def _effort(asked: Asked) -> Refusal | None:
    reasoning: JsonObject = asked.body.get("reasoning") or {}
    effort = reasoning.get("effort")
    if effort is None:
        return None
    model = _model(asked)
    if model.startswith(NOT_REASONING):
        message = "Unsupported parameter: 'reasoning.effort' is not supported with this model."
        return _invalid(message, "reasoning.effort", "unsupported_parameter")
    refused = next((values for start, values in REFUSED_EFFORTS.items() if model.startswith(start)), set[str]())
    if effort in EFFORTS and effort not in refused:
        return None
    values = ", ".join(f"'{one}'" for one in EFFORTS if one not in refused)
    message = (
        f"Unsupported value: '{effort}' is not supported with the '{model}' model. Supported values are: {values}."
    )
    return _invalid(message, "reasoning.effort", "unsupported_value")


def _include(asked: Asked) -> Refusal | None:
    for place, value in enumerate(asked.body.get("include") or []):
        if value not in get_args(ResponseIncludable):
            return _invalid(f"Invalid value: '{value}'.", f"include[{place}]")
    return None


def _nothing_encrypted(asked: Asked) -> Refusal | None:
    asks = "reasoning.encrypted_content" in (asked.body.get("include") or [])
    if asks and _model(asked).startswith(NOT_REASONING):
        return _invalid("Encrypted content is not supported with this model.", "include", None)
    return None


def _long_cache_key(asked: Asked) -> Refusal | None:
    return _too_long("prompt_cache_key", asked.body.get("prompt_cache_key") or "")


def _too_long(name: str, text: str) -> Refusal | None:
    if len(text) <= MAX_ID_CHARS:
        return None
    message = (
        f"Invalid '{name}': string too long. Expected a string with maximum length {MAX_ID_CHARS}, "
        f"but got a string with length {len(text)} instead."
    )
    return _invalid(message, name, "string_above_max_length")


def _nested_tool(asked: Asked) -> Refusal | None:
    for place, tool in enumerate(_tools(asked)):
        for field in ("type", "name", "parameters"):
            if field not in tool:
                name = f"tools[{place}].{field}"
                return _invalid(f"Missing required parameter: '{name}'.", name, "missing_required_parameter")
    return None


def _tool_name(asked: Asked) -> Refusal | None:
    named = [(f"tools[{place}].name", tool.get("name")) for place, tool in enumerate(_tools(asked))]
    named += [(f"input[{place}].name", item.get("name")) for place, item in _of(asked, "function_call")]
    for where, name in named:
        if not isinstance(name, str) or NAME.fullmatch(name) is None:
            message = (
                f"Invalid '{where}': string does not match pattern. "
                "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
            )
            return _invalid(message, where)
    return None


def _many_tools(asked: Asked) -> Refusal | None:
    count = len(_tools(asked))
    if count <= MAX_TOOLS:
        return None
    message = (
        f"Invalid 'tools': array too long. Expected an array with maximum length {MAX_TOOLS}, "
        f"but got an array with length {count} instead."
    )
    return _invalid(message, "tools", "array_above_max_length")


def _schema(asked: Asked) -> Refusal | None:
    for place, tool in enumerate(_tools(asked)):
        schema: JsonObject = tool.get("parameters") or {}
        output = ""
        if schema.get("type") != "object":
            output = f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{schema.get('type')}\"'."
        elif tool.get("strict") is not False and schema.get("additionalProperties") is not False:
            output = "In context=(), 'additionalProperties' is required to be supplied and to be false."
        elif tool.get("strict") is not False and set(schema.get("required", [])) != set(schema.get("properties", {})):
            output = "In context=(), 'required' is required to be supplied and to be an array including every key."
        if output:
            message = f"Invalid schema for function '{tool.get('name')}': {output}"
            return _invalid(message, f"tools[{place}].parameters", "invalid_function_parameters")
    return None


def _unknown_item(asked: Asked) -> Refusal | None:
    for place, item in enumerate(items_of(asked)):
        if kind_of(item) not in ITEM_TYPES:
            return _invalid(f"Invalid value: '{kind_of(item)}'.", f"input[{place}].type")
        if kind_of(item) == "message" and item.get("role") not in ROLES:
            values = ", ".join(f"'{one}'" for one in ROLES)
            message = f"Invalid value: '{item.get('role')}'. Supported values are: {values}."
            return _invalid(message, f"input[{place}].role")
    return None


def _part_type(asked: Asked) -> Refusal | None:
    for place, item in _of(asked, "message"):
        content = item.get("content")
        is_models = item.get("role") == "assistant"
        allowed = ("output_text", "refusal") if is_models else ("input_text", "input_image", "input_file")
        for index, part in enumerate(content if isinstance(content, list) else []):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            kind: Any = part.get("type") if isinstance(part, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            if kind not in allowed:
                values = ", ".join(f"'{one}'" for one in allowed)
                where = f"input[{place}].content[{index}]"
                return _invalid(f"Invalid value: '{kind}'. Supported values are: {values}.", where)
    return None


def _content_missing(asked: Asked) -> Refusal | None:
    needed = {"message": "content", "function_call_output": "output", "function_call": "arguments"}
    for place, item in _of(asked, *needed):
        field = needed[kind_of(item)]
        name = f"input[{place}].{field}"
        if item.get(field) is None:
            return _invalid(f"Missing required parameter: '{name}'.", name, "missing_required_parameter")
        if field == "arguments" and not isinstance(item[field], str):
            message = f"Invalid type for '{name}': expected a string, but got an object instead."
            return _invalid(message, name, "invalid_type")
    return None


def _id_of_another_kind(asked: Asked) -> Refusal | None:
    for place, item in _of(asked, *PREFIXES):
        prefix = PREFIXES[kind_of(item)]
        if "id" in item and not str(item["id"]).startswith(prefix):
            message = f"Invalid 'input[{place}].id': '{item['id']}'. Expected an ID that begins with '{prefix}'."
            return _invalid(message, f"input[{place}].id")
    return None


def _duplicate(asked: Asked) -> Refusal | None:
    seen: set[str] = set()
    for item in items_of(asked):
        if "id" not in item:
            continue
        if item["id"] in seen:
            message = (
                f"Duplicate item found with id {item['id']}. Remove duplicate items from your input and try again."
            )
            return _invalid(message, code=None)
        seen.add(item["id"])
    return None


def _summary_missing(asked: Asked) -> Refusal | None:
    for place, item in _of(asked, "reasoning"):
        name = f"input[{place}].summary"
        if "summary" not in item:
            return _invalid(f"Missing required parameter: '{name}'.", name, "missing_required_parameter")
        if item.get("content"):
            where = f"input[{place}].content"
            message = f"Invalid '{where}': array too long. Expected an array with maximum length 0."
            return _invalid(message, where, "array_above_max_length")
    return None


def _not_stored(asked: Asked) -> Refusal | None:
    lost = [item for _, item in _of(asked, "reasoning") if not item.get("encrypted_content")]
    lost += [item for _, item in _of(asked, "item_reference")]
    if not lost:
        return None
    message = (
        f"Item with id '{lost[0].get('id')}' not found. Items are not persisted when `store` is set to false. "
        "Try again with `store` set to true, or remove this item from your input."
    )
    return Refusal(message, status=404, param="input")


def _unreadable(asked: Asked) -> Refusal | None:
    for _, item in _of(asked, "reasoning"):
        if not is_sealed(_model(asked), item["encrypted_content"]):
            message = f"The encrypted content for item {item.get('id')} could not be verified."
            return Refusal(message, code="invalid_encrypted_content")
    return None


def _response_of(item: JsonObject) -> str:
    """What an id says of the response that its item is of; `r` at its end: the response began with reasoning."""
    return str(item.get("id", "")).split("_")[1] if "_" in str(item.get("id", "")) else ""


def _nothing_follows(asked: Asked) -> Refusal | None:
    items = items_of(asked)
    for place, item in _of(asked, "reasoning"):
        follower = items[place + 1] if place + 1 < len(items) else {}
        if kind_of(follower) not in PREFIXES or _response_of(follower) != _response_of(item):
            message = f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."
            return _invalid(message, code=None)
    return None


def _reasoning_missing(asked: Asked) -> Refusal | None:
    items = items_of(asked)
    for place, item in _of(asked, "message", "function_call"):
        response = _response_of(item)
        led = place - 1
        while led >= 0 and kind_of(items[led]) != "reasoning" and _response_of(items[led]) == response:
            led -= 1
        if response.endswith("r") and (led < 0 or _response_of(items[led]) != response):
            output = f"Item '{item['id']}' of type '{kind_of(item)}' was provided without its required 'reasoning' item"
            return _invalid(f"{output}: 'rs_{response}'.", code=None)
    return None


def _no_output(asked: Asked) -> Refusal | None:
    answered = {item.get("call_id") for _, item in _of(asked, "function_call_output")}
    for _, item in _of(asked, "function_call"):
        if item.get("call_id") not in answered:
            return _invalid(f"No tool output found for function call {item.get('call_id')}.", code=None)
    return None


def _no_call(asked: Asked) -> Refusal | None:
    made: set[str] = set()
    for item in items_of(asked):
        if kind_of(item) == "function_call":
            made.add(item.get("call_id", ""))
        elif kind_of(item) == "function_call_output" and item.get("call_id") not in made:
            message = f"No tool call found for function call output with call_id {item.get('call_id')}."
            return _invalid(message, code=None)
    return None


def _long_call_id(asked: Asked) -> Refusal | None:
    for place, item in _of(asked, "function_call", "function_call_output"):
        refusal = _too_long(f"input[{place}].call_id", str(item.get("call_id", "")))
        if refusal is not None:
            return refusal
    return None


MODEL = "gpt-6-luna"


def _valid() -> Asked:
    parameters: JsonObject = {"type": "object", "properties": {"filepath": {"type": "string"}}, "required": []}
    body: JsonObject = {
        "model": MODEL,
        "stream": True,
        "store": False,
        "prompt_cache_key": "run:searcher",
        "instructions": "You search.",
        "tools": [
            {
                "type": "function",
                "name": "read_file",
                "description": "Read.",
                "parameters": parameters,
                "strict": False,
            }
        ],
        "input": [
            {"role": "user", "content": "What is new?"},
            {"type": "reasoning", "id": "rs_0r", "summary": [], "encrypted_content": seal(MODEL)},
            {
                "type": "message",
                "id": "msg_0r_1",
                "role": "assistant",
                "status": "completed",
                "phase": "commentary",
                "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}],
            },
            {
                "type": "function_call",
                "id": "fc_0r_2",
                "call_id": "call_0_0",
                "name": "read_file",
                "arguments": "{}",
                "status": "completed",
            },
            {"type": "function_call_output", "call_id": "call_0_0", "output": "Nothing."},
        ],
        "max_output_tokens": 1024,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "high"},
    }
    return Asked(body, {"authorization": "Bearer test", "content-type": "application/json"})


def _set(name: str, value: object) -> Callable[[Asked], None]:
    def violate(asked: Asked) -> None:
        asked.body[name] = value

    return violate


def _set_in(place: int, name: str, value: object) -> Callable[[Asked], None]:
    def violate(asked: Asked) -> None:
        items_of(asked)[place][name] = value

    return violate


def _drop(place: int) -> Callable[[Asked], None]:
    def violate(asked: Asked) -> None:
        items_of(asked).pop(place)

    return violate


def _set_tool(name: str, value: object) -> Callable[[Asked], None]:
    def violate(asked: Asked) -> None:
        _tools(asked)[0][name] = value

    return violate


def _nest_tool(asked: Asked) -> None:
    tool = _tools(asked)[0]
    asked.body["tools"] = [{"type": "function", "function": {name: tool[name] for name in ("name", "parameters")}}]


def _add_tools(asked: Asked) -> None:
    asked.body["tools"] = [{**_tools(asked)[0], "name": f"tool_{number}"} for number in range(MAX_TOOLS + 1)]


def _ask_a_model_without_reasoning(asked: Asked) -> None:
    asked.body["model"] = "gpt-4.1"
    asked.body["input"] = items_of(asked)[:1]
    del asked.body["reasoning"]


def _rename_call(asked: Asked) -> None:
    for _, item in _of(asked, "function_call", "function_call_output"):
        item["call_id"] = "call_" + "x" * MAX_ID_CHARS


def _repeat_item(asked: Asked) -> None:
    items_of(asked).insert(3, dict(items_of(asked)[2]))


def _move_follower(asked: Asked) -> None:
    del items_of(asked)[2:]


def _has(*kinds: str) -> Callable[[Asked], bool]:
    return lambda asked: next(_of(asked, *kinds), None) is not None


def _has_field(name: str) -> Callable[[Asked], bool]:
    return lambda asked: bool(asked.body.get(name))


ISSUES = "answers recorded in issues: "
CONVERSATIONS = (
    "OpenAI's guide on conversation state; " + ISSUES + "coder/mux #59, openai/openai-agents-python #1611, #673"
)

RULES = RuleSet(
    "OpenAI Responses",
    (
        Rule(
            "R1",
            "only parameters of this API; those of Chat Completions have other names",
            SDK + "; " + ISSUES + "OpenHands/software-agent-sdk #755",
            _unknown_parameter,
            _set("max_tokens", 1024),
        ),
        Rule(
            "R2",
            "max_output_tokens is at least 16",
            ISSUES + "earendil-works/pi #6265, vectorize-io/hindsight #58",
            _low_limit,
            _set("max_output_tokens", 5),
            _has_field("max_output_tokens"),
        ),
        Rule(
            "R3",
            "models that reason refuse temperature, top_p and top_logprobs",
            ISSUES + "OpenHands/software-agent-sdk #1837",
            _sampling,
            _set("temperature", 0.2),
        ),
        Rule(
            "R4",
            "each model knows some efforts only: gpt-6-astra and gpt-6.1-sol neither none nor minimal",
            ISSUES + "onyx-dot-app/onyx #15008, livekit/agents #7169, openai/codex #6647",
            _effort,
            lambda asked: asked.body.update(model="gpt-6-astra", reasoning={"effort": "none"}),
            _has_field("reasoning"),
        ),
        Rule("R5", "include names what the SDK lists", SDK, _include, _set("include", ["reasoning.content"])),
        Rule(
            "R6",
            "a model without reasoning has nothing encrypted to include",
            "answers of gpt-4.1 and gpt-4.1-mini, quoted by several public projects that ask for encrypted reasoning",
            _nothing_encrypted,
            _ask_a_model_without_reasoning,
            _has_field("include"),
        ),
        Rule(
            "R7",
            "prompt_cache_key has at most 64 characters",
            ISSUES + "earendil-works/pi #4720, everruns/everruns #1875",
            _long_cache_key,
            _set("prompt_cache_key", "k" * 65),
            _has_field("prompt_cache_key"),
        ),
        Rule(
            "R8",
            "a function is described flat, not within `function`",
            "openai SDK 3.54, types of responses.function_tool_param",
            _nested_tool,
            _nest_tool,
            _has_field("tools"),
        ),
        Rule(
            "R9",
            "names of functions match ^[a-zA-Z0-9_-]{1,64}$, in tools and in calls",
            "OpenAI's guide on function calling",
            _tool_name,
            _set_tool("name", "read file!"),
            _has_field("tools"),
        ),
        Rule(
            "R10",
            "at most 128 functions",
            ISSUES + "zed-industries/zed #32946, musistudio/claude-code-router #686",
            _many_tools,
            _add_tools,
            _has_field("tools"),
        ),
        Rule(
            "R11",
            "a function's schema is an object's; without `strict: false` it lists and closes all its fields",
            "Open Responses specification of 2026-04-24, FunctionTool (`strict` is true by default); "
            "OpenAI's guide on structured outputs",
            _schema,
            _set_tool("strict", None),
            _has_field("tools"),
        ),
        Rule(
            "R12",
            "items have a type, and messages a role, that the API knows",
            "openai SDK 3.54, types of responses.response_input_item_param",
            _unknown_item,
            _set_in(0, "role", "tool"),
        ),
        Rule(
            "R13",
            "the user's text is input_text, the model's output_text",
            "openai SDK 3.54, types of responses.response_output_message_param",
            _part_type,
            _set_in(0, "content", [{"type": "text", "text": "What is new?"}]),
        ),
        Rule(
            "R14",
            "messages have content, outputs an output, calls their arguments as a text",
            "openai SDK 3.54, types of responses.response_input_item_param",
            _content_missing,
            _set_in(3, "arguments", {}),
            _has("function_call", "message"),
        ),
        Rule(
            "R15",
            "an item's id begins with the letters of its type",
            ISSUES + "openai/codex #33176, langchain-ai/langchain #39113",
            _id_of_another_kind,
            _set_in(2, "id", "item_1"),
            _has(*PREFIXES),
        ),
        Rule(
            "R16",
            "no two items have one id",
            ISSUES + "microsoft/agent-framework-go #784",
            _duplicate,
            _repeat_item,
            _has(*PREFIXES),
        ),
        Rule(
            "R17",
            "reasoning has a summary, if an empty one, and no plain text",
            ISSUES + "microsoft/agent-framework-go #784",
            _summary_missing,
            lambda asked: items_of(asked)[1].pop("summary"),
            _has("reasoning"),
        ),
        Rule(
            "R18",
            "reasoning comes with its encrypted content: nothing of it is stored",
            ISSUES + "vercel/ai #7543, openai/openai-agents-python #919",
            _not_stored,
            _set_in(1, "encrypted_content", None),
            _has("reasoning"),
        ),
        Rule(
            "R19",
            "encrypted content is that of the finished item, unchanged, and of this model",
            "openai SDK 3.54, response_reasoning_item_param; " + ISSUES + "openai/codex #8145",
            _unreadable,
            _set_in(1, "encrypted_content", seal(MODEL)[:-8]),
            _has("reasoning"),
        ),
        Rule(
            "R20",
            "reasoning is followed by what it led to",
            CONVERSATIONS,
            _nothing_follows,
            _move_follower,
            _has("reasoning"),
        ),
        Rule(
            "R21",
            "what reasoning led to is preceded by it, as far as ids show",
            CONVERSATIONS,
            _reasoning_missing,
            _drop(1),
            _has("reasoning"),
        ),
        Rule(
            "R22",
            "each output comes after its call",
            CONVERSATIONS + ", microsoft/vscode #320060",
            _no_call,
            _set_in(4, "call_id", "call_9"),
            _has("function_call_output"),
        ),
        Rule("R23", "each call has an output", CONVERSATIONS, _no_output, _drop(4), _has("function_call")),
        Rule(
            "R24",
            "call_id has at most 64 characters",
            ISSUES + "HKUDS/nanobot #1623",
            _long_call_id,
            _rename_call,
            _has("function_call"),
        ),
    ),
    _valid,
)
