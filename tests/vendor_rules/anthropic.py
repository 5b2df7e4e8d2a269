"""Rules of Anthropic's Messages API that a request of ours could break.

Each names where the vendor, its SDK's types (2.12) or a recorded answer says so. Rules about reasoning (A1, A3, A4)
come last: whatever else is wrong with a request changes what stands before its reasoning, too.
"""

import json
import re
from collections import Counter
from typing import get_args

from anthropic.types import AnthropicBetaParam

from vendor_rules import anthropic_violations as violations
from vendor_rules.anthropic_thinking import PREFIX, REASONING, JsonObject, Placed, blocks_of, misplaced, placed, signed
from vendor_rules.rule import Asked, Refusal, Rule, RuleSet

DOCS = "https://platform.claude.com/docs/en"
SDK = "anthropic SDK 2.12, types/"
CREATE = f"{SDK}message_create_params.py"

SAMPLING = ("temperature", "top_p", "top_k")
EFFORTS = ("low", "medium", "high", "xhigh", "max")
MAX_MARKS = 4
MAX_MESSAGES = 100_000
MAX_BYTES = 32 * 1024 * 1024
MAX_OUTPUT_TOKENS = {"claude-haiku-4-5": 64_000, "claude-sonnet-4-5": 64_000, "claude-opus-4-5": 64_000}
"""Current models write 128,000 tokens; these less."""
USUAL_MAX_OUTPUT_TOKENS = 128_000
MIN_THINKING_TOKENS = 1_024
PARAMETERS = frozenset(
    {
        "model",
        "messages",
        "max_tokens",
        "stream",
        "system",
        "tools",
        "tool_choice",
        "thinking",
        "output_config",
        "metadata",
        "stop_sequences",
        "service_tier",
        "cache_control",
        "container",
        "inference_geo",
        "diagnostics",
        "speed",
        "temperature",
        "top_p",
        "top_k",
    }
)
BETA_PARAMETERS = {
    "context_management": "context-management-2025-06-27",
    "mcp_servers": "mcp-client-2025-11-20",
    "betas": "",
}
"""What the stable API does not know, and the header that lets it in."""
BETAS = frozenset(word for part in get_args(AnthropicBetaParam) for word in get_args(part))
BINDING_BETA = "thinking-binding-controls-2026-08-01"
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
TOOL_FIELDS = frozenset(
    ("name", "description", "input_schema", "cache_control", "type", "strict", "input_examples", "defer_loading")
)
FIELDS = {
    "text": {"type", "text", "citations", "cache_control"},
    "thinking": {"type", "thinking", "signature", "cache_control"},
    "redacted_thinking": {"type", "data", "cache_control"},
    "tool_use": {"type", "id", "name", "input", "caller", "toolset_name", "cache_control"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "toolset_name", "cache_control"},
}


def _betas(asked: Asked) -> list[str]:
    return [word.strip() for word in asked.headers.get("anthropic-beta", "").split(",") if word.strip()]


def _part(asked: Asked, name: str) -> JsonObject:
    return asked.body.get(name) or {}


def _tools(asked: Asked) -> list[JsonObject]:
    return asked.body.get("tools") or []


def _schema(tool: JsonObject) -> JsonObject:
    return tool.get("input_schema") or {}


def _system(asked: Asked) -> list[JsonObject]:
    system: str | list[JsonObject] = asked.body.get("system") or []
    return [{"type": "text", "text": system}] if isinstance(system, str) else system


def _messages(asked: Asked) -> list[JsonObject]:
    return asked.body.get("messages") or []


def _kinds(asked: Asked, *kinds: str) -> list[Placed]:
    return [one for one in placed(asked.body) if one.content.get("type") in kinds]


def _has_calls(asked: Asked) -> bool:
    return bool(_kinds(asked, "tool_use"))


def _has_reasoning(asked: Asked) -> bool:
    return bool(_kinds(asked, *REASONING))


def _has_tools(asked: Asked) -> bool:
    return bool(asked.body.get("tools"))


def _marks(asked: Asked) -> list[tuple[str, JsonObject]]:
    parts = [(f"system.{at}", one) for at, one in enumerate(_system(asked))]
    parts += [(f"tools.{at}", one) for at, one in enumerate(_tools(asked))]
    parts += [(one.path, one.content) for one in placed(asked.body)]
    return [(path, one) for path, one in parts if one.get("cache_control")]


def _version(asked: Asked) -> Refusal | None:
    return None if asked.headers.get("anthropic-version") else Refusal("anthropic-version: header is required")


def _key(asked: Asked) -> Refusal | None:
    has_key = asked.headers.get("x-api-key") or asked.headers.get("authorization")
    return None if has_key else Refusal("x-api-key header is required", 401, "authentication_error")


def _unknown_beta(asked: Asked) -> Refusal | None:
    unknown = next((word for word in _betas(asked) if word not in BETAS), None)
    return Refusal(f"Unexpected value(s) `{unknown}` for the `anthropic-beta` header.") if unknown else None


def _parameters(asked: Asked) -> Refusal | None:
    for name in asked.body:
        beta = BETA_PARAMETERS.get(name)
        if name not in PARAMETERS and not (beta and beta in _betas(asked)):
            return Refusal(f"{name}: Extra inputs are not permitted")
    return None


def _model(asked: Asked) -> Refusal | None:
    return None if asked.body.get("model") else Refusal("model: Field required")


def _max_tokens(asked: Asked) -> Refusal | None:
    value = asked.body.get("max_tokens")
    if not isinstance(value, int):
        return Refusal("max_tokens: Field required")
    return Refusal("max_tokens: Input should be greater than or equal to 1") if value < 1 else None


def _model_maximum(asked: Asked) -> Refusal | None:
    model, value = str(asked.body.get("model")), asked.body["max_tokens"]
    limits = [limit for name, limit in MAX_OUTPUT_TOKENS.items() if model.startswith(name)]
    limit = limits[0] if limits else USUAL_MAX_OUTPUT_TOKENS
    words = f"max_tokens: {value} > {limit}, which is the maximum allowed number of output tokens for {model}"
    return Refusal(words) if value > limit else None


def _budget(asked: Asked) -> Refusal | None:
    thinking = _part(asked, "thinking")
    if thinking.get("type") != "enabled":
        return None
    budget = thinking.get("budget_tokens", 0)
    if budget < MIN_THINKING_TOKENS:
        return Refusal("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
    words = "`max_tokens` must be greater than `thinking.budget_tokens`."
    return Refusal(words) if budget >= asked.body["max_tokens"] else None


def _thinking_type(asked: Asked) -> Refusal | None:
    kind = _part(asked, "thinking").get("type", "adaptive")
    words = f'"thinking.type.{kind}" is not supported for this model. Use "thinking.type.adaptive".'
    return Refusal(words) if kind != "adaptive" else None


def _binding_header(asked: Asked) -> Refusal | None:
    is_set = "block_binding" in _part(asked, "thinking")
    words = f"thinking.adaptive.block_binding: requires the `{BINDING_BETA}` value in the `anthropic-beta` header."
    return Refusal(words) if is_set and BINDING_BETA not in _betas(asked) else None


def _sampling(asked: Asked) -> Refusal | None:
    given = next((name for name in SAMPLING if name in asked.body), None)
    return Refusal(f"`{given}` is not supported for this model.") if given else None


def _tool_choice(asked: Asked) -> Refusal | None:
    kind = _part(asked, "tool_choice").get("type", "auto")
    words = f"tool_choice: type `{kind}` is not supported while thinking"
    return Refusal(words) if kind not in {"auto", "none"} else None


def _effort(asked: Asked) -> Refusal | None:
    effort = _part(asked, "output_config").get("effort")
    words = f"output_config.effort: Input should be {', '.join(EFFORTS)}"
    return Refusal(words) if effort is not None and effort not in EFFORTS else None


def _metadata(asked: Asked) -> Refusal | None:
    extra = next((name for name in _part(asked, "metadata") if name != "user_id"), None)
    return Refusal(f"metadata.{extra}: Extra inputs are not permitted") if extra else None


def _size(asked: Asked) -> Refusal | None:
    size = int(asked.headers.get("content-length", 0)) or len(json.dumps(asked.body))
    return Refusal("Request exceeds the maximum size", 413, "request_too_large") if size > MAX_BYTES else None


def _count(asked: Asked) -> Refusal | None:
    messages = _messages(asked)
    if not messages:
        return Refusal("messages: at least one message is required")
    return Refusal(f"messages: at most {MAX_MESSAGES} are allowed") if len(messages) > MAX_MESSAGES else None


def _roles(asked: Asked) -> Refusal | None:
    for number, message in enumerate(_messages(asked)):
        if message.get("role") not in {"user", "assistant"}:
            return Refusal(f"messages.{number}.role: Input should be 'user' or 'assistant'")
    return None


def _first(asked: Asked) -> Refusal | None:
    words = 'messages: first message must use the "user" role'
    return None if _messages(asked)[0]["role"] == "user" else Refusal(words)


def _prefill(asked: Asked) -> Refusal | None:
    last = _messages(asked)[-1]
    is_pause = last["role"] == "assistant" and any(one.get("type") == "server_tool_use" for one in blocks_of(last))
    words = "This model does not support assistant message prefill. The conversation must end with a user message."
    return Refusal(words) if last["role"] == "assistant" and not is_pause else None


def _empty_message(asked: Asked) -> Refusal | None:
    for number, message in enumerate(_messages(asked)):
        if not message.get("content"):
            return Refusal(
                f"messages.{number}: all messages must have non-empty content except for the optional final assistant "
                "message"
            )
    return None


def _fields(asked: Asked) -> Refusal | None:
    for one in placed(asked.body):
        known = FIELDS.get(str(one.content.get("type")))
        extra = next((name for name in one.content if known is not None and name not in known), None)
        if extra:
            return Refusal(f"{one.path}.{one.content['type']}.{extra}: Extra inputs are not permitted")
    return None


def _texts(asked: Asked) -> list[str]:
    output: list[str] = [one["text"] for one in _system(asked)]
    return output + [one.content["text"] for one in _kinds(asked, "text")]


def _empty_text(asked: Asked) -> Refusal | None:
    return Refusal("messages: text content blocks must be non-empty") if "" in _texts(asked) else None


def _blank_text(asked: Asked) -> Refusal | None:
    is_blank = any(text and not text.strip() for text in _texts(asked))
    return Refusal("messages: text content blocks must contain non-whitespace text") if is_blank else None


def _reasoning_role(asked: Asked) -> Refusal | None:
    bad = next((one for one in _kinds(asked, *REASONING, "tool_use") if one.role != "assistant"), None)
    return Refusal(f"{bad.path}: `{bad.content['type']}` blocks can only be in `assistant` messages") if bad else None


def _reasoning_last(asked: Asked) -> Refusal | None:
    for number, message in enumerate(_messages(asked)):
        blocks = blocks_of(message)
        if message["role"] == "assistant" and blocks and blocks[-1].get("type") in REASONING:
            return Refusal(f"messages.{number}: The final block in an assistant message cannot be `thinking`.")
    return None


def _reasoning_whole(asked: Asked) -> Refusal | None:
    for one in _kinds(asked, *REASONING):
        needed = ("thinking", "signature") if one.content["type"] == "thinking" else ("data",)
        missing = next((name for name in needed if name not in one.content), None)
        if missing:
            return Refusal(f"{one.path}.{one.content['type']}.{missing}: Field required")
        if not signed(one.content):
            return Refusal(f"{one.path}: Invalid `signature` in `thinking` block")
    return None


def _call_shape(asked: Asked) -> Refusal | None:
    for one in _kinds(asked, "tool_use"):
        if not CALL_ID.fullmatch(str(one.content.get("id", ""))):
            return Refusal(f"{one.path}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
        if not isinstance(one.content.get("input"), dict):
            return Refusal(f"{one.path}.tool_use.input: Input should be a valid dictionary")
    return None


def _unique_calls(asked: Asked) -> Refusal | None:
    ids = Counter(one.content["id"] for one in _kinds(asked, "tool_use"))
    return Refusal("messages: `tool_use` ids must be unique") if any(count > 1 for count in ids.values()) else None


def _merged(asked: Asked) -> list[tuple[str, list[JsonObject]]]:
    """Messages with those of one role that follow each other put together."""
    merged: list[tuple[str, list[JsonObject]]] = []
    for message in _messages(asked):
        if merged and merged[-1][0] == message["role"]:
            merged[-1][1].extend(blocks_of(message))
        else:
            merged.append((message["role"], list(blocks_of(message))))
    return merged


def _ids(blocks: list[JsonObject], kind: str, name: str) -> list[str]:
    return [one[name] for one in blocks if one.get("type") == kind]


def _unanswered(asked: Asked) -> Refusal | None:
    merged = _merged(asked)
    for number, (role, blocks) in enumerate(merged):
        answered = _ids(merged[number + 1][1], "tool_result", "tool_use_id") if number + 1 < len(merged) else []
        missing = [one for one in _ids(blocks, "tool_use", "id") if one not in answered]
        if role == "assistant" and missing:
            return Refusal(
                f"messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
                "next message."
            )
    return None


def _unasked(asked: Asked) -> Refusal | None:
    merged = _merged(asked)
    for number, (_, blocks) in enumerate(merged):
        made = _ids(merged[number - 1][1], "tool_use", "id") if number else []
        extra = next((one for one in _ids(blocks, "tool_result", "tool_use_id") if one not in made), None)
        if extra:
            return Refusal(f"messages.{number}: unexpected `tool_use_id` found in `tool_result` blocks: {extra}.")
    return None


def _answered_twice(asked: Asked) -> Refusal | None:
    ids = Counter(one.content["tool_use_id"] for one in _kinds(asked, "tool_result"))
    twice = next((one for one, count in ids.items() if count > 1), None)
    return (
        Refusal(f"each tool_use must have a single result. Found multiple `tool_result` blocks with id: {twice}")
        if twice
        else None
    )


def _results_first(asked: Asked) -> Refusal | None:
    for number, (_, blocks) in enumerate(_merged(asked)):
        kinds = [one.get("type") == "tool_result" for one in blocks]
        if kinds != sorted(kinds, reverse=True):
            return Refusal(f"messages.{number}: `tool_result` blocks must come first in the content")
    return None


def _mark_count(asked: Asked) -> Refusal | None:
    count = len(_marks(asked))
    words = f"A maximum of {MAX_MARKS} blocks with cache_control may be provided. Found {count}."
    return Refusal(words) if count > MAX_MARKS else None


def _mark_place(asked: Asked) -> Refusal | None:
    for path, block in _marks(asked):
        if block.get("type") in REASONING:
            return Refusal(f"{path}.{block['type']}.cache_control: Extra inputs are not permitted")
    return None


def _mark_shape(asked: Asked) -> Refusal | None:
    for path, block in _marks(asked):
        mark = block["cache_control"]
        if mark.get("type") != "ephemeral" or mark.get("ttl", "5m") not in {"5m", "1h"} or set(mark) - {"type", "ttl"}:
            return Refusal(f"{path}.cache_control: Input should be 'ephemeral' for '5m' or '1h'")
    return None


def _tool_names(asked: Asked) -> Refusal | None:
    for at, tool in enumerate(_tools(asked)):
        if not TOOL_NAME.fullmatch(tool.get("name", "")):
            return Refusal(f"tools.{at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    return None


def _unique_tools(asked: Asked) -> Refusal | None:
    names = [tool.get("name") for tool in _tools(asked)]
    return Refusal("tools: Tool names must be unique.") if len(set(names)) < len(names) else None


def _tool_fields(asked: Asked) -> Refusal | None:
    for at, tool in enumerate(_tools(asked)):
        extra = next((name for name in tool if name not in TOOL_FIELDS), None)
        if extra:
            return Refusal(f"tools.{at}.custom.{extra}: Extra inputs are not permitted")
    return None


def _schemas(asked: Asked) -> list[tuple[int, JsonObject]]:
    return [(at, _schema(tool)) for at, tool in enumerate(_tools(asked))]


def _schema_type(asked: Asked) -> Refusal | None:
    bad = next((at for at, schema in _schemas(asked) if schema.get("type") != "object"), None)
    return None if bad is None else Refusal(f"tools.{bad}.custom.input_schema.type: Input should be 'object'")


def _schema_choice(asked: Asked) -> Refusal | None:
    bad = next((at for at, schema in _schemas(asked) if {"oneOf", "allOf", "anyOf"} & schema.keys()), None)
    words = "input_schema does not support oneOf, allOf, or anyOf at the top level"
    return None if bad is None else Refusal(f"tools.{bad}.custom.input_schema: {words}")


def _strict(asked: Asked) -> Refusal | None:
    for at, tool in enumerate(_tools(asked)):
        if tool.get("strict") and _schema(tool).get("additionalProperties") is not False:
            return Refusal(
                f"tools.{at}.custom: For 'object' type, 'additionalProperties' must be explicitly set to false"
            )
    return None


def _misplaced(asked: Asked, why: str) -> Placed | None:
    if "misplaced" not in asked.noted:
        asked.noted["misplaced"] = misplaced(asked.body)
    found = asked.noted["misplaced"]
    return found[0] if found is not None and found[1] == why else None


def _bound(asked: Asked) -> Refusal | None:
    bad = _misplaced(asked, "prefix")
    return Refusal(_words(bad)) if bad else None


def _chain(asked: Asked) -> Refusal | None:
    bad = _misplaced(asked, "chain")
    return Refusal(_words(bad)) if bad else None


def _words(bad: Placed) -> str:
    return (
        f"{bad.path}: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove "
        'the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block". That setting requires '
        f"the `{BINDING_BETA}` value in the `anthropic-beta` header."
    )


def _other_model(asked: Asked) -> Refusal | None:
    bad = _misplaced(asked, "model")
    return Refusal(f"{bad.path}: Invalid `signature` in `thinking` block") if bad else None


ERRORS = f"{DOCS}/api/errors"
TOOLS = f"{DOCS}/agents-and-tools/tool-use/handle-tool-calls"
CACHE = f"{DOCS}/build-with-claude/prompt-caching"

RULES = RuleSet(
    "Anthropic Messages",
    (
        Rule("A10", "every request names the API's version", f"{DOCS}/api/versioning", _version, violations.no_version),
        Rule("A11", "every request has a key", ERRORS, _key, violations.no_key),
        Rule("A12", "an unknown beta header is refused", f"{DOCS}/api/beta-headers", _unknown_beta, violations.beta),
        Rule(
            "A5",
            "unknown parameters, and beta parameters without their header, are refused",
            CREATE,
            _parameters,
            violations.parameter,
        ),
        Rule("A13", "model is required", CREATE, _model, violations.no_model),
        Rule("A14", "max_tokens is required, and positive", CREATE, _max_tokens, violations.no_max_tokens),
        Rule(
            "A15",
            "max_tokens is at most what the model can write",
            f"{DOCS}/models/opus-5/overview",
            _model_maximum,
            violations.too_many_tokens,
        ),
        Rule(
            "A16",
            "a thinking budget is at least 1,024 and less than max_tokens",
            f"{SDK}thinking_config_enabled_param.py",
            _budget,
            violations.small_budget,
            lambda asked: "thinking" in asked.body,
        ),
        Rule(
            "A17",
            "current models think adaptively only",
            f"{DOCS}/build-with-claude/adaptive-thinking",
            _thinking_type,
            violations.thinking_disabled,
            lambda asked: "thinking" in asked.body,
        ),
        Rule(
            "A2",
            "block_binding needs its beta header",
            f"{PREFIX}#outcomes",
            _binding_header,
            violations.binding,
            lambda asked: "thinking" in asked.body,
        ),
        Rule(
            "A6",
            "current models refuse temperature, top_p and top_k",
            f"{DOCS}/models/opus-5/migration-guide",
            _sampling,
            violations.temperature,
        ),
        Rule(
            "A7",
            "no tool is forced while a model thinks",
            f"{DOCS}/build-with-claude/extended-thinking",
            _tool_choice,
            violations.forced_tool,
            _has_tools,
        ),
        Rule(
            "A18",
            "effort is one of five words",
            f"{SDK}output_config_param.py",
            _effort,
            violations.effort,
            lambda asked: "output_config" in asked.body,
        ),
        Rule(
            "A19",
            "metadata has a user_id and nothing else",
            f"{SDK}metadata_param.py",
            _metadata,
            violations.metadata,
            lambda asked: "metadata" in asked.body,
        ),
        Rule("A20", "a request has at most 32 MB", ERRORS, _size, violations.huge),
        Rule("A21", "there is a message, and at most 100,000", CREATE, _count, violations.no_messages),
        Rule(
            "A22", "messages are the user's or the assistant's", f"{SDK}message_param.py", _roles, violations.tool_role
        ),
        Rule(
            "A23",
            "the first message is the user's",
            "livekit/agents #669",
            _first,
            violations.assistant_first,
        ),
        Rule(
            "A8",
            "the last message is not the assistant's (prefill)",
            f"{ERRORS}#prefill-not-supported",
            _prefill,
            violations.prefill,
        ),
        Rule("A24", "no message is empty", "anthropics/claude-code #6774", _empty_message, violations.empty_message),
        Rule(
            "A25",
            "blocks have only the fields of their type",
            f"{SDK}content_block_param.py",
            _fields,
            violations.block_field,
        ),
        Rule("A26", "no text is empty", "anthropics/claude-code #59812", _empty_text, violations.empty_text),
        Rule("A27", "no text is blank", "anthropics/claude-code #23369", _blank_text, violations.blank_text),
        Rule(
            "A28",
            "reasoning and calls are the assistant's",
            f"{SDK}user_message_param.py",
            _reasoning_role,
            violations.users_call,
            _has_calls,
        ),
        Rule(
            "A29",
            "no message ends with reasoning",
            "tailcallhq/forgecode #2107",
            _reasoning_last,
            violations.reasoning_last,
            _has_reasoning,
        ),
        Rule(
            "A9",
            "a reasoning block has its text and its signature",
            f"{SDK}thinking_block_param.py",
            _reasoning_whole,
            violations.unsigned,
            _has_reasoning,
        ),
        Rule(
            "A30",
            "a call has an id of letters, digits, _ and -, and an object of arguments",
            f"{SDK}tool_use_block_param.py",
            _call_shape,
            violations.call_id,
            _has_calls,
        ),
        Rule("A31", "no two calls have one id", "trycua/cua #524", _unique_calls, violations.same_id, _has_calls),
        Rule(
            "A32", "every call is answered in the next message", TOOLS, _unanswered, violations.unanswered, _has_calls
        ),
        Rule(
            "A33",
            "nothing is answered that the message before did not ask",
            TOOLS,
            _unasked,
            violations.unasked,
            _has_calls,
        ),
        Rule("A34", "no call is answered twice", TOOLS, _answered_twice, violations.twice, _has_calls),
        Rule("A35", "results come first in their message", TOOLS, _results_first, violations.text_first, _has_calls),
        Rule(
            "A36", "at most four cache marks", CACHE, _mark_count, violations.five_marks, lambda one: bool(_marks(one))
        ),
        Rule("A37", "no cache mark on reasoning", CACHE, _mark_place, violations.marked_reasoning, _has_reasoning),
        Rule(
            "A38",
            "a cache mark is ephemeral, for 5 minutes or an hour",
            f"{SDK}cache_control_ephemeral_param.py",
            _mark_shape,
            violations.mark_for_a_day,
            lambda one: bool(_marks(one)),
        ),
        Rule(
            "A39",
            "tool names have 1 to 128 letters, digits, _ and -",
            f"{DOCS}/agents-and-tools/tool-use/define-tools",
            _tool_names,
            violations.tool_name,
            _has_tools,
        ),
        Rule(
            "A40",
            "tool names are unique",
            "danny-avila/LibreChat #13162",
            _unique_tools,
            violations.same_tool,
            _has_tools,
        ),
        Rule(
            "A41",
            "tools have only the fields the API knows",
            f"{SDK}tool_param.py",
            _tool_fields,
            violations.tool_field,
            _has_tools,
        ),
        Rule("A42", "arguments are an object", f"{SDK}tool_param.py", _schema_type, violations.schema_type, _has_tools),
        Rule(
            "A43",
            "a schema has no oneOf, allOf or anyOf at its top",
            "anthropics/claude-code #40075",
            _schema_choice,
            violations.schema_choice,
            _has_tools,
        ),
        Rule(
            "A44",
            "a strict tool forbids further properties",
            "vercel/ai #20681",
            _strict,
            violations.strict,
            _has_tools,
        ),
        Rule(
            "A4",
            "only its own model reads reasoning (others drop it, or refuse)",
            f"{DOCS}/build-with-claude/preserved-thinking#switching-models",
            _other_model,
            violations.other_model,
            _has_reasoning,
        ),
        Rule(
            "A1",
            "reasoning comes after the same system text, tools and messages as when it was made",
            f"{PREFIX}#what-counts",
            _bound,
            violations.shortened_result,
            _has_reasoning,
        ),
        Rule(
            "A3",
            "no reasoning is left out between other reasoning",
            f"{PREFIX}#what-counts",
            _chain,
            violations.left_out,
            _has_reasoning,
        ),
    ),
    violations.valid,
)
