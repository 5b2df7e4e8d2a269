"""Rules that OpenAI-compatible servers add to Chat Completions, one set for each; `DIALECTS` are all of them."""

import re
from functools import partial
from itertools import pairwise
from typing import Any

from vendor_rules.openai_chat import (
    ADDED,
    COMMON_RULES,
    STANDARD_MESSAGE,
    all_schemas,
    at,
    calls_of,
    has_calls,
    has_tools,
    messages,
    unknown_field,
    valid,
    with_empty_message,
    with_field,
    with_message,
    with_property,
)
from vendor_rules.rule import Asked, JsonObject, Refusal, Rule, RuleSet

SIGNATURE = "c2lnbmVk"
"""What the loopback server signs with: this, and the call's id."""
SKIPPED = "skip_thought_signature_validator"
GEMINI_KEYWORDS = frozenset(
    {"type", "format", "title", "description", "nullable", "enum", "items", "properties", "required", "anyOf"}
    | {"minItems", "maxItems", "minimum", "maximum", "minLength", "maxLength", "minProperties", "maxProperties"}
    | {"pattern", "example", "default", "propertyOrdering"}
)
MISTRAL_REQUEST = frozenset(
    {"model", "messages", "stream", "stream_options", "max_tokens", "tools", "tool_choice", "parallel_tool_calls"}
    | {"temperature", "top_p", "stop", "random_seed", "response_format", "safe_prompt", "reasoning_effort"}
)


def _extra(*path: object) -> Refusal:
    """Mistral's refusal of a field: pydantic's, with its path."""
    where = ".".join(str(step) for step in path)
    return Refusal(f"extra_forbidden: {where}: Extra inputs are not permitted", status=422)


def _mistral_ids(asked: Asked) -> Refusal | None:
    ids = [one["id"] for one in calls_of(asked)] + [one["tool_call_id"] for one in messages(asked, "tool")]
    wrong = next((one for one in ids if not re.fullmatch(r"[a-zA-Z0-9]{9}", one)), None)
    if wrong is None:
        return None
    return Refusal(
        f"Tool call id was {wrong} but must be a-z, A-Z, 0-9, with a length of 9.",
        kind="invalid_function_call",
        code="3280",
    )


def _mistral_order(asked: Asked) -> Refusal | None:
    output = [message["role"] for message in messages(asked)]
    for before, role in pairwise(output):
        if before == "tool" and role not in {"assistant", "tool"}:
            return Refusal(
                f"Unexpected role '{role}' after role 'tool'", kind="invalid_request_message_order", code="3230"
            )
    return None


def _mistral_request(asked: Asked) -> Refusal | None:
    unknown = next((name for name in asked.body if name not in MISTRAL_REQUEST), None)
    return _extra("body", unknown) if unknown else None


def _mistral_messages(asked: Asked) -> Refusal | None:
    unknown = unknown_field(asked, STANDARD_MESSAGE - {"refusal"} | {"prefix"})
    return _extra("body", "messages", unknown[0], "assistant", unknown[1]) if unknown else None


def _words_or_calls(asked: Asked) -> Refusal | None:
    if any(message.get("content") and message.get("tool_calls") for message in messages(asked, "assistant")):
        return Refusal("Assistant message must have either content or tool_calls, but not both.")
    return None


def _rename_call(asked: Asked) -> None:
    for message in asked.body["messages"]:
        if message.get("tool_call_id") == "c00001000":
            message["tool_call_id"] = "call_0"
    calls_of(asked)[0]["id"] = "call_0"


_MISTRAL_RULES = (
    *COMMON_RULES,
    Rule(
        id="M1",
        says="ids of calls are nine letters or digits",
        source="mistral-common validator; nearai/ironclaw #1241, anomalyco/opencode #1680",
        check=_mistral_ids,
        violate=_rename_call,
        applies=has_calls,
    ),
    Rule(
        id="M2",
        says="after a tool's result the model speaks, not the user",
        source="mistral-common validator and #169; avante.nvim #2695, hermes-agent #20154",
        check=_mistral_order,
        violate=with_message({"role": "user", "content": "Hurry."}),
        applies=has_calls,
    ),
    Rule(
        id="M3",
        says="requests contain fields that Mistral knows only",
        source="editor-code-assistant/eca #231 and #315, Gitlawb/openclaude #739: 422 extra_forbidden",
        check=_mistral_request,
        violate=with_field("max_completion_tokens", 1024),
    ),
    Rule(
        id="M4",
        says="messages contain fields that Mistral knows only",
        source="charmbracelet/crush #1590: extra_forbidden, messages.X.assistant.reasoning_content",
        check=_mistral_messages,
        violate=at(2, reasoning_content="Hm."),
    ),
)
MISTRAL = RuleSet("Mistral", _MISTRAL_RULES, partial(valid, "mistral-large-latest", "max_tokens"))
OLD_MISTRAL = RuleSet(
    "Mistral, tokenizers up to v3",
    (
        *_MISTRAL_RULES,
        Rule(
            id="M5",
            says="an assistant message has text or calls, not both",
            source="mistral-common validator, _allow_tool_call_and_content; github/copilot-cli #4884",
            check=_words_or_calls,
            violate=at(2, content="Let me look."),
            applies=has_calls,
        ),
    ),
    partial(valid, "open-mistral-7b", "max_tokens"),
)


def _gemini_schema(asked: Asked) -> Refusal | None:
    for schema in all_schemas(asked):
        unknown = next((key for key in schema if key not in GEMINI_KEYWORDS), None)
        if unknown is not None:
            where = "tools[0].function_declarations[0].parameters"
            words = f"Invalid JSON payload received. Unknown name \"{unknown}\" at '{where}': Cannot find field."
            return Refusal(words, kind="INVALID_ARGUMENT")
        if not all(isinstance(one, str) and one for one in schema.get("enum", [])):
            return Refusal("Invalid value at 'enum': only texts that are not empty", kind="INVALID_ARGUMENT")
        if isinstance(schema.get("type"), list):
            return Refusal("Proto field is not repeating, cannot start list: 'type'", kind="INVALID_ARGUMENT")
    return None


def _gemini_signatures(asked: Asked) -> Refusal | None:
    for message in messages(asked, "assistant"):
        calls: list[JsonObject] = message.get("tool_calls") or []
        if calls and _signature(calls[0]) not in {SKIPPED, f"{SIGNATURE}{calls[0]['id']}"}:
            return Refusal(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                "work correctly, and missing thought_signature may lead to degraded model performance.",
                kind="INVALID_ARGUMENT",
            )
    return None


def _signature(one: JsonObject) -> object:
    return one.get("extra_content", {}).get("google", {}).get("thought_signature")


def _gemini_fields(asked: Asked) -> Refusal | None:
    refused = next((name for name in ("prompt_cache_key", "store", "strict") if name in asked.body), None)
    if refused is None:
        return None
    return Refusal(
        f'Invalid JSON payload received. Unknown name "{refused}": Cannot find field.', kind="INVALID_ARGUMENT"
    )


def _gemini_order(asked: Asked) -> Refusal | None:
    output = messages(asked)
    for before, message in pairwise(output):
        if message.get("tool_calls") and before["role"] not in {"user", "tool"}:
            return Refusal(
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn.",
                kind="INVALID_ARGUMENT",
            )
    return None


def _valid_gemini() -> Asked:
    asked = valid("gemini-3-pro", "max_tokens")
    calls_of(asked)[0]["extra_content"] = {"google": {"thought_signature": f"{SIGNATURE}c00001000"}}
    return asked


def _unsign(asked: Asked) -> None:
    del calls_of(asked)[0]["extra_content"]


def _speak_twice(asked: Asked) -> None:
    asked.body["messages"].insert(2, {"role": "assistant", "content": "Well."})


GEMINI = RuleSet(
    "Gemini",
    (
        *COMMON_RULES,
        Rule(
            id="G1",
            says="schemas contain Gemini's keywords only, and enums texts only",
            source="zed-industries/zed #44875 (const), obsidian-smart-composer #455 (additionalProperties)",
            check=_gemini_schema,
            violate=with_property({"const": "a"}),
            applies=has_tools,
        ),
        Rule(
            id="G2",
            says="the first call of a message comes back with its thought signature, or with Google's word for none",
            source="ai.google.dev/gemini-api/docs/thought-signatures; NousResearch/hermes-agent #15054",
            check=_gemini_signatures,
            violate=_unsign,
            applies=has_calls,
        ),
        Rule(
            id="G3",
            says="fields of OpenAI's own are refused",
            source="leookun/cursor-byok #112 (prompt_cache_key), Routstr/routstr-core #505 (store)",
            check=_gemini_fields,
            violate=with_field("prompt_cache_key", "run"),
        ),
        Rule(
            id="G4",
            says="calls follow a user's message or results, never the model's text",
            source="google-gemini/gemini-cli #11814 and #26486, continuedev/continue #11164",
            check=_gemini_order,
            violate=_speak_twice,
            applies=has_calls,
        ),
    ),
    _valid_gemini,
)


def details(text: str) -> list[JsonObject]:
    """A gateway's reasoning of one turn, signed over its text."""
    signed = f"{SIGNATURE}{len(text)}"
    return [{"type": "reasoning.text", "text": text, "signature": signed, "format": "anthropic-claude-v1", "index": 0}]


def _openrouter_details(asked: Asked) -> Refusal | None:
    for message in messages(asked, "assistant"):
        parts: list[Any] = message.get("reasoning_details") or []
        if any(part != details(str(part.get("text")))[0] for part in parts):
            return Refusal("Provider returned error: messages.1.content.0: Invalid `signature` in `thinking` block")
    return None


def _cut_details(asked: Asked) -> None:
    parts = messages(asked, "assistant")[0]["reasoning_details"]
    parts[0]["text"] = parts[0]["text"][:2]


OPENROUTER = RuleSet(
    "OpenRouter",
    (
        *COMMON_RULES,
        Rule(
            id="R1",
            says="reasoning_details come back whole: pieces of a stream are joined, signatures stay with their text",
            source="openrouter.ai/docs, preserving reasoning blocks; langchain-ai/langchain #36400",
            check=_openrouter_details,
            violate=_cut_details,
            applies=has_calls,
        ),
    ),
    partial(valid, "anthropic/claude-opus-5.5", "max_tokens", reasoning_details=details("The file may tell.")),
)


def _ollama_content(asked: Asked) -> Refusal | None:
    for message in messages(asked):
        if message.get("content") is None and not message.get("tool_calls"):
            return Refusal("invalid message content type: <nil>")
    return None


def _ollama_model(asked: Asked) -> Refusal | None:
    if ":" in asked.body["model"]:
        return None
    return Refusal(f'model "{asked.body["model"]}" not found, try pulling it first', status=404, kind="api_error")


OLLAMA = RuleSet(
    "Ollama",
    (
        *COMMON_RULES[:1],
        *COMMON_RULES[2:],
        Rule(
            id="OL1",
            says="content is null only with calls",
            source="ollama openai compatibility: invalid message content type: <nil>; llm-provider bug notes, 2026-06",
            check=_ollama_content,
            violate=with_empty_message,
        ),
        Rule(
            id="OL2",
            says="a model that was not pulled is unknown",
            source="docs.ollama.com/api/errors; ollama/ollama issues: model not found, try pulling it first",
            check=_ollama_model,
            violate=with_field("model", "qwen3"),
        ),
    ),
    partial(valid, "qwen3:8b", "max_tokens"),
)


def _vllm_reasoning(asked: Asked) -> Refusal | None:
    if any("reasoning_content" in message for message in messages(asked)):
        return Refusal("reasoning_content is dropped silently: reasoning goes back as `reasoning`")
    return None


def _vllm_window(asked: Asked) -> Refusal | None:
    if asked.body.get("max_tokens", 0) <= 8192:
        return None
    return Refusal(
        f"This model's maximum context length is 16384 tokens. However, you requested {asked.body['max_tokens']} "
        "output tokens and your prompt contains at least 2000 input tokens, for a total of at least 18000 tokens.",
        kind="BadRequestError",
        code="400",
    )


VLLM = RuleSet(
    "vLLM",
    (
        *COMMON_RULES,
        Rule(
            id="V1",
            says="reasoning comes back under the name it was sent with, `reasoning`",
            source="vllm-project/vllm #27755 and #38488: other names are dropped without a word",
            check=_vllm_reasoning,
            violate=at(2, reasoning_content="Hm."),
        ),
        Rule(
            id="V2",
            says="the output limit and the prompt fit the window together",
            source="vllm-project/vllm #42474 and #20409",
            check=_vllm_window,
            violate=with_field("max_tokens", 16_000),
        ),
    ),
    partial(valid, "Qwen/Qwen3-32B", "max_tokens"),
)


def _llama_order(asked: Asked) -> Refusal | None:
    output = [message["role"] for message in messages(asked)]
    if any(pair == ("user", "user") for pair in pairwise(output)):
        words = "Conversation roles must alternate user/assistant/user/assistant/..."
        return Refusal(words, status=500, kind="server_error")
    return None


def _llama_grammar(asked: Asked) -> Refusal | None:
    for schema in all_schemas(asked):
        repeats = [schema.get(key, 0) for key in ("maxLength", "maxItems", "minLength", "minItems")]
        if max(repeats) >= 2000 or "$ref" in schema:
            return Refusal("Failed to initialize samplers: failed to parse grammar")
    return None


def _repeat_user(asked: Asked) -> None:
    asked.body["messages"].insert(1, {"role": "user", "content": "Hello."})


LLAMA_CPP = RuleSet(
    "llama.cpp",
    (
        *COMMON_RULES,
        Rule(
            id="LC1",
            says="two messages of the user are never next to each other",
            source="templates of Gemma and Mistral raise: Conversation roles must alternate; charmbracelet/crush #279",
            check=_llama_order,
            violate=_repeat_user,
        ),
        Rule(
            id="LC2",
            says="schemas repeat nothing 2,000 times and refer to nothing",
            source="ggml-org/llama.cpp #25746, #25923 and #17473",
            check=_llama_grammar,
            violate=with_property({"type": "string", "maxLength": 65536}),
            applies=has_tools,
        ),
    ),
    partial(valid, "gemma-4-27b-it", "max_tokens"),
)


def _deepseek_reasoning(asked: Asked) -> Refusal | None:
    if has_tools(asked) and not all(message.get("reasoning_content") for message in messages(asked, "assistant")):
        return Refusal("The `reasoning_content` in the thinking mode must be passed back to the API.")
    return None


def _drop_reasoning(asked: Asked) -> None:
    for message in messages(asked, "assistant"):
        message.pop("reasoning_content", None)


DEEPSEEK = RuleSet(
    "DeepSeek",
    (
        *COMMON_RULES,
        Rule(
            id="D1",
            says="with tools, every assistant message comes back with its reasoning_content, which is not empty",
            source="api-docs.deepseek.com/guides/thinking_mode; NousResearch/hermes-agent #16021 and #17341",
            check=_deepseek_reasoning,
            violate=_drop_reasoning,
            applies=has_calls,
        ),
    ),
    partial(valid, "deepseek-v4-pro", "max_tokens", reasoning_content="Hm."),
)


def _kimi_reasoning(asked: Asked) -> Refusal | None:
    for place, message in enumerate(messages(asked)):
        if message.get("tool_calls") and "reasoning_content" not in message:
            words = "thinking is enabled but reasoning_content is missing in assistant tool call message at index"
            return Refusal(f"{words} {place}")
    return None


def _forced_call(asked: Asked) -> Refusal | None:
    if asked.body.get("tool_choice", "auto") in {"auto", "none"}:
        return None
    return Refusal("tool_choice 'required' is incompatible with thinking enabled")


KIMI = RuleSet(
    "Kimi",
    (
        *COMMON_RULES,
        Rule(
            id="K1",
            says="every message with calls comes back with reasoning_content",
            source="continuedev/continue #11711, bytedance/deer-flow #3043, Lapis0x0/obsidian-yolo #243",
            check=_kimi_reasoning,
            violate=_drop_reasoning,
            applies=has_calls,
        ),
        Rule(
            id="K2",
            says="a call cannot be forced while the model thinks",
            source="bestruirui/octopus #251",
            check=_forced_call,
            violate=with_field("tool_choice", "required"),
        ),
    ),
    partial(valid, "kimi-k2.6", "max_tokens", reasoning_content="Hm."),
)


def _groq_fields(asked: Asked) -> Refusal | None:
    for place, message in enumerate(messages(asked)):
        unknown = next((name for name in ADDED if name in message), None)
        if unknown is not None:
            where = f"'messages.{place}' : for 'role:{message['role']}' the following must be satisfied"
            return Refusal(f"{where}[('messages.{place}' : property '{unknown}' is unsupported)]")
    return None


GROQ = RuleSet(
    "Groq",
    (
        *COMMON_RULES,
        Rule(
            id="Q1",
            says="messages contain no reasoning",
            source="tashfeenahmed/freellmapi #1070, janhq/jan #8136, karthink/gptel #774",
            check=_groq_fields,
            violate=at(2, reasoning_content="Hm."),
            applies=has_calls,
        ),
    ),
    partial(valid, "openai/gpt-oss-120b", "max_tokens"),
)

DIALECTS = (
    MISTRAL,
    OLD_MISTRAL,
    GEMINI,
    OPENROUTER,
    OLLAMA,
    VLLM,
    LLAMA_CPP,
    DEEPSEEK,
    KIMI,
    GROQ,
)
"""Every compatible server's set."""
