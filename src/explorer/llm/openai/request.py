"""A request in the form of OpenAI's Chat Completions, with schemas that every server of that kind understands.

Gemini refuses a request over one unknown keyword of one tool, llama.cpp cannot make a grammar of others. A tool checks
its arguments itself, so what is left out here loses a model a hint and nobody a check.
"""

from collections.abc import Collection, Mapping
from typing import Any, cast

from explorer.llm.openai.dialect import ADDED_FIELDS, NO_REASONING, READ_ON, REASONING_FIELD, SKIP_SIGNATURE, Dialect
from explorer.llm.projection import accepted_name, arguments_text, is_own, is_short_id, projected_ids, projected_name
from explorer.schema.messages import JsonObject, Request, Results, Turn, UserText

KEPT = frozenset(
    {"type", "description", "properties", "required", "items", "enum", "anyOf", "default", "nullable"}
    | {"minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength"}
)
"""Keywords that Gemini, llama.cpp and OpenAI all know."""
MOST_REPEATED = 1_000
"""llama.cpp refuses a grammar that repeats something 2,000 times (ggml-org/llama.cpp #25746)."""
DEEPEST = 8
"""A schema that holds itself is unrolled so far."""


def plain(schema: JsonObject) -> JsonObject:
    """Return a schema in common words: references resolved, rare keywords rewritten or left out."""
    return _plain(schema, cast("Mapping[str, JsonObject]", schema.get("$defs", {})), 0)


def _plain(schema: JsonObject, named: Mapping[str, JsonObject], depth: int) -> JsonObject:
    if depth > DEEPEST:
        return {"type": "object", **_described(schema)}
    whole = _merged(schema, named)
    made: JsonObject = {key: value for key, value in whole.items() if key in KEPT and _is_possible(key, value)}
    if "properties" in made:
        made["properties"] = {name: _plain(part, named, depth + 1) for name, part in made["properties"].items()}
    if "anyOf" in made:
        made["anyOf"] = [_plain(part, named, depth + 1) for part in made["anyOf"]]
    if isinstance(made.get("items"), dict):
        made["items"] = _plain(made["items"], named, depth + 1)
    return _with_type(made)


def _merged(schema: JsonObject, named: Mapping[str, JsonObject]) -> JsonObject:
    """Resolve a reference, and put the parts of `allOf`, `oneOf`, `const` and `prefixItems` into common keywords."""
    whole = dict(schema)
    reference = whole.pop("$ref", None)
    if isinstance(reference, str):
        whole = {**named.get(reference.rpartition("/")[2], {"type": "object"}), **whole}
    for part in cast("list[JsonObject]", whole.pop("allOf", [])):
        whole = {**_merged(part, named), **whole}
    if "oneOf" in whole:
        whole.setdefault("anyOf", whole.pop("oneOf"))
    if "const" in whole:
        whole.setdefault("enum", [whole.pop("const")])
    if "prefixItems" in whole and "items" not in whole:
        forms = cast("list[JsonObject]", whole["prefixItems"])
        whole["items"] = forms[0] if all(form == forms[0] for form in forms) else {"anyOf": forms}
    return _of_one_type(whole)


def _of_one_type(whole: JsonObject) -> JsonObject:
    """Write a list of types as one type that may be null, or as alternatives."""
    types: Any = whole.get("type")
    if not isinstance(types, list):
        return whole
    others = [one for one in cast("list[str]", types) if one != "null"]
    rest = {key: value for key, value in whole.items() if key != "type"}
    if len(others) == 1:
        return {"type": others[0], **rest}
    return {**_described(rest), "anyOf": [{"type": one} for one in others]}


def _is_possible(key: str, value: Any) -> bool:  # noqa: ANN401 - JSON
    """Say whether a keyword may stay: Gemini's enums hold texts only, llama.cpp's repetitions are bounded."""
    if key == "enum":
        return all(isinstance(one, str) and one for one in value)
    return key not in {"minItems", "maxItems", "minLength", "maxLength"} or value <= MOST_REPEATED


def _with_type(made: JsonObject) -> JsonObject:
    """Name the type that an enum or a list of fields implies."""
    if "type" in made or "anyOf" in made:
        return made
    if "enum" in made:
        return {"type": "string", **made}
    return {"type": "object", **made} if "properties" in made else made


def _described(schema: JsonObject) -> JsonObject:
    return {"description": schema["description"]} if "description" in schema else {}


PROVIDER = "openai-chat"

MAX_CACHE_KEY_CHARS = 64

BOUND_FIELDS = ("reasoning_details", "reasoning")
"""A gateway's form of reasoning that may be bound to what stands before it; `reasoning_details` holds signatures."""


def to_prefix(request: Request, dialect: Dialect) -> JsonObject:
    """Write what stays the same for all requests of a role in a run: all but the history and the limit."""
    body: JsonObject = {"model": request.model, "stream": True, "stream_options": {"include_usage": True}}
    if dialect.has_cache_key and request.run:
        # Requests with one key are sent to the machine whose cache holds their beginning.
        body["prompt_cache_key"] = f"{request.run}:{request.role}"[-MAX_CACHE_KEY_CHARS:]
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": plain(tool.parameters),
                },
            }
            for tool in request.tools
        ]
    body["messages"] = [{"role": "system", "content": request.system}] if request.system.strip() else []
    return {name: value for name, value in body.items() if name not in dialect.left_out}


def to_rest(request: Request, dialect: Dialect) -> JsonObject:
    """Write what may differ each time: the output limit, as the server accepts it, and the effort."""
    most = dialect.max_output_tokens or request.max_output_tokens
    rest: JsonObject = {dialect.output_limit: min(request.max_output_tokens, most)}
    if request.effort:
        rest["reasoning_effort"] = request.effort
    return {name: value for name, value in rest.items() if name not in dialect.left_out}


def to_messages(request: Request, dialect: Dialect, kept: Collection[int] = ()) -> list[JsonObject]:
    """Write the history; it is only ever added to.

    Args:
        request: Whose history.
        dialect: What the server accepts.
        kept: Places of turns whose signed reasoning may go back, because nothing before it has changed since.
    """
    messages: list[JsonObject] = []
    ids: Mapping[str, str] = {}
    seen: set[str] = set()
    for position, message in enumerate(request.history):
        if isinstance(message, Turn):
            own = is_own(message, PROVIDER, request.model)
            ids = _sent_ids(position, message, dialect, seen) if own else projected_ids(position, message)
            written = _own_messages(message, has_bound=position in kept) if own else _projected_messages(message, ids)
            messages.extend(_in_dialect(one, dialect, ids) for one in written)
        elif isinstance(message, Results):
            messages.extend(
                {"role": "tool", "tool_call_id": ids.get(result.id, result.id), "content": result.content}
                for result in message.results
            )
        else:
            _append_user_text(messages, message, dialect)
    return messages


def _sent_ids(position: int, turn: Turn, dialect: Dialect, seen: set[str]) -> Mapping[str, str]:
    """Return other ids for an own turn's calls where its own came before, or are longer than the server accepts."""
    own = {call.id for call in turn.calls}
    is_fine = not own & seen and (not dialect.needs_short_ids or all(is_short_id(one) for one in own))
    seen |= own
    return {} if is_fine else projected_ids(position, turn)


def _in_dialect(message: JsonObject, dialect: Dialect, ids: Mapping[str, str]) -> JsonObject:
    """Return an assistant message as the server accepts it; the one given stays as it is."""
    made = dict(message)
    if dialect.is_standard_only:
        made = {name: value for name, value in made.items() if name not in ADDED_FIELDS}
    if dialect.needs_reasoning and not made.get(REASONING_FIELD):
        made[REASONING_FIELD] = NO_REASONING
    calls: list[JsonObject] = made.get("tool_calls") or []
    if not calls:
        return made
    made["tool_calls"] = [_call_in_dialect(call, dialect, ids, is_first=call is calls[0]) for call in calls]
    if dialect.needs_words_or_calls:
        made.pop("content", None)
    if dialect.needs_text and not made.get("content"):
        made["content"] = ""
    return made


def _call_in_dialect(call: JsonObject, dialect: Dialect, ids: Mapping[str, str], *, is_first: bool) -> JsonObject:
    made = dict(call) if not ids else {**call, "id": ids.get(call["id"], call["id"])}
    # A model makes up names, too; sent back as they are, the whole request would be refused.
    made["function"] = {**call["function"], "name": accepted_name(call["function"]["name"])}
    if dialect.is_standard_only:
        made = {name: made[name] for name in ("id", "type", "function")}
    # Of parallel calls, Gemini signs the first one only.
    if dialect.needs_signatures and is_first and "extra_content" not in made:
        made["extra_content"] = {"google": {"thought_signature": SKIP_SIGNATURE}}
    return made


def _append_user_text(messages: list[JsonObject], user_text: UserText, dialect: Dialect) -> None:
    """Add words of the user; two messages of one role in a row break the templates of many local models."""
    if not user_text.text.strip():
        return
    if dialect.needs_reply_after_results and messages and messages[-1]["role"] == "tool":
        messages.append({"role": "assistant", "content": READ_ON})
    if messages and messages[-1]["role"] == "user":
        messages[-1] = {"role": "user", "content": f"{messages[-1]['content']}\n\n{user_text.text}"}
    else:
        messages.append({"role": "user", "content": user_text.text})


def _own_messages(turn: Turn, *, has_bound: bool) -> list[JsonObject]:
    """Return the turn's message as it was stored; one that says nothing at all is refused by servers.

    Signed reasoning behind a changed beginning is left out: the model that signed it would refuse the request.
    """
    kept = [block for block in turn.blocks if block.get("content") or block.get("tool_calls") or block.get("refusal")]
    if has_bound or not any("reasoning_details" in block for block in kept):
        return kept
    return [{name: value for name, value in block.items() if name not in BOUND_FIELDS} for block in kept]


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
