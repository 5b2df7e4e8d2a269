"""A request that keeps all of Anthropic's rules, and for each rule a change that breaks it."""

from vendor_rules.anthropic_thinking import JsonObject, Signer
from vendor_rules.rule import Asked

MARK = {"type": "ephemeral"}


def valid() -> Asked:
    """A conversation with reasoning between calls, results, marks and tools."""
    body: JsonObject = {
        "model": "claude-opus-5-5",
        "max_tokens": 2048,
        "stream": True,
        "tools": [
            {"name": name, "description": "Read.", "input_schema": {"type": "object", "properties": {}}}
            for name in ("read", "write")
        ],
        "system": [{"type": "text", "text": "You search.", "cache_control": MARK}],
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "high"},
        "metadata": {"user_id": "u"},
        "messages": [{"role": "user", "content": [{"type": "text", "text": "What is new?"}]}],
    }
    for number in range(3):
        body["messages"] += _turn(body, number)
    return Asked(body, {"x-api-key": "test", "anthropic-version": "2023-06-01", "content-type": "application/json"})


def _turn(body: JsonObject, number: int) -> list[JsonObject]:
    """A reply with reasoning before and between its calls, and the results."""
    signer = Signer(body)
    content: list[JsonObject] = [{"type": "thinking", "thinking": "", "signature": signer.sign()}]
    calls: list[JsonObject] = [
        {"type": "tool_use", "id": f"toolu_{number}_{at}", "name": "read", "input": {}} for at in range(2)
    ]
    content.append(calls[0])
    signer.say(calls[0])
    content += [{"type": "redacted_thinking", "data": signer.sign()}, calls[1]]
    results: list[JsonObject] = [
        {"type": "tool_result", "tool_use_id": call["id"], "content": "a long page"} for call in calls
    ]
    words = {"type": "text", "text": "Go on."}
    return [{"role": "assistant", "content": content}, {"role": "user", "content": [*results, words]}]


def _content(asked: Asked, message: int) -> list[JsonObject]:
    return asked.body["messages"][message]["content"]


def _tool(asked: Asked) -> JsonObject:
    return asked.body["tools"][0]


def no_version(asked: Asked) -> None:
    """Break the rule by what the name says."""
    del asked.headers["anthropic-version"]


def no_key(asked: Asked) -> None:
    """Break the rule by what the name says."""
    del asked.headers["x-api-key"]


def beta(asked: Asked) -> None:
    """Break the rule by what the name says."""
    asked.headers["anthropic-beta"] = "thinking-2030-01-01"


def parameter(asked: Asked) -> None:
    """Break the rule by what the name says."""
    asked.body["context_management"] = {"edits": [{"type": "clear_tool_uses_20250919"}]}


def no_model(asked: Asked) -> None:
    """Break the rule by what the name says."""
    del asked.body["model"]


def no_max_tokens(asked: Asked) -> None:
    """Break the rule by what the name says."""
    del asked.body["max_tokens"]


def too_many_tokens(asked: Asked) -> None:
    """Break the rule by what the name says."""
    asked.body["max_tokens"] = 200_000


def small_budget(asked: Asked) -> None:
    """Break the rule by what the name says."""
    asked.body["thinking"] = {"type": "enabled", "budget_tokens": 2048}


def thinking_disabled(asked: Asked) -> None:
    """Break the rule by what the name says."""
    asked.body["thinking"] = {"type": "disabled"}


def binding(asked: Asked) -> None:
    """Break the rule by what the name says."""
    asked.body["thinking"]["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}


def temperature(asked: Asked) -> None:
    """Break the rule by what the name says."""
    asked.body["temperature"] = 0.2


def forced_tool(asked: Asked) -> None:
    """Break the rule by what the name says."""
    asked.body["tool_choice"] = {"type": "any"}


def effort(asked: Asked) -> None:
    """Break the rule by what the name says."""
    asked.body["output_config"]["effort"] = "minimal"


def metadata(asked: Asked) -> None:
    """Break the rule by what the name says."""
    asked.body["metadata"]["run"] = "r"


def huge(asked: Asked) -> None:
    """Break the rule by what the name says."""
    _content(asked, 0)[0]["text"] = "x" * (33 * 1024 * 1024)


def no_messages(asked: Asked) -> None:
    """Break the rule by what the name says."""
    asked.body["messages"] = []


def tool_role(asked: Asked) -> None:
    """Break the rule by what the name says."""
    asked.body["messages"][-1]["role"] = "tool"


def assistant_first(asked: Asked) -> None:
    """Break the rule by what the name says."""
    del asked.body["messages"][0]


def prefill(asked: Asked) -> None:
    """Break the rule by what the name says."""
    asked.body["messages"].append({"role": "assistant", "content": [{"type": "text", "text": "The answer is"}]})


def empty_message(asked: Asked) -> None:
    """Break the rule by what the name says."""
    asked.body["messages"].insert(1, {"role": "assistant", "content": []})


def block_field(asked: Asked) -> None:
    """Break the rule by what the name says."""
    _content(asked, 1)[1]["index"] = 1


def empty_text(asked: Asked) -> None:
    """Break the rule by what the name says."""
    _content(asked, 1).insert(1, {"type": "text", "text": ""})


def blank_text(asked: Asked) -> None:
    """Break the rule by what the name says."""
    _content(asked, 1).insert(1, {"type": "text", "text": "\n"})


def users_call(asked: Asked) -> None:
    """Break the rule by what the name says."""
    _content(asked, 2).append({"type": "tool_use", "id": "x", "name": "read", "input": {}})


def reasoning_last(asked: Asked) -> None:
    """Break the rule by what the name says."""
    asked.body["messages"].append({"role": "assistant", "content": [_content(asked, 1)[0]]})
    asked.body["messages"].append({"role": "user", "content": "Go on."})


def unsigned(asked: Asked) -> None:
    """Break the rule by what the name says."""
    _content(asked, 1)[0]["signature"] = ""


def call_id(asked: Asked) -> None:
    """Break the rule by what the name says."""
    _content(asked, 1)[1]["id"] = "call 1"


def same_id(asked: Asked) -> None:
    """Break the rule by what the name says."""
    _content(asked, 3)[1]["id"] = "toolu_0_0"


def unanswered(asked: Asked) -> None:
    """Break the rule by what the name says."""
    del _content(asked, 2)[1]


def unasked(asked: Asked) -> None:
    """Break the rule by what the name says."""
    _content(asked, 4).insert(0, {"type": "tool_result", "tool_use_id": "toolu_0_0", "content": "x"})


def twice(asked: Asked) -> None:
    """Break the rule by what the name says."""
    _content(asked, 2).insert(0, dict(_content(asked, 2)[0]))


def text_first(asked: Asked) -> None:
    """Break the rule by what the name says."""
    _content(asked, 2).insert(0, {"type": "text", "text": "Here:"})


def five_marks(asked: Asked) -> None:
    """Break the rule by what the name says."""
    for message in (0, 2, 4, 6):
        _content(asked, message)[-1]["cache_control"] = MARK


def marked_reasoning(asked: Asked) -> None:
    """Break the rule by what the name says."""
    _content(asked, 1)[2]["cache_control"] = MARK


def mark_for_a_day(asked: Asked) -> None:
    """Break the rule by what the name says."""
    _content(asked, 6)[-1]["cache_control"] = {"type": "ephemeral", "ttl": "1d"}


def tool_name(asked: Asked) -> None:
    """Break the rule by what the name says."""
    _tool(asked)["name"] = "read.file"


def same_tool(asked: Asked) -> None:
    """Break the rule by what the name says."""
    _tool(asked)["name"] = "write"


def tool_field(asked: Asked) -> None:
    """Break the rule by what the name says."""
    _tool(asked)["parameters"] = {"type": "object"}


def schema_type(asked: Asked) -> None:
    """Break the rule by what the name says."""
    _tool(asked)["input_schema"]["type"] = "string"


def schema_choice(asked: Asked) -> None:
    """Break the rule by what the name says."""
    _tool(asked)["input_schema"]["anyOf"] = [{"required": ["a"]}]


def strict(asked: Asked) -> None:
    """Break the rule by what the name says."""
    _tool(asked)["strict"] = True


def other_model(asked: Asked) -> None:
    """Break the rule by what the name says."""
    asked.body["model"] = "claude-sonnet-5-5"


def shortened_result(asked: Asked) -> None:
    """Break the rule by what the name says."""
    _content(asked, 2)[0]["content"] = "[cleared]"


def left_out(asked: Asked) -> None:
    """Break the rule by what the name says."""
    for place in (2, 0):
        del _content(asked, 3)[place]
