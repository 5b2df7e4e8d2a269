"""What compatible servers and their models differ in: plain schemas, calls written as text, prompts cut unnoticed.

Gemini refuses a request for one unknown keyword of one tool, and llama.cpp cannot make a grammar of others. A tool
checks its arguments itself, so what is left out of a schema costs a model a hint, and no check.

Small local models write tool calls as text instead of making them. Only a reply that can have no other meaning is
read as calls: all of it must be calls, of known tools, with arguments that are objects. Prose with a call stays prose.

Ollama cuts a prompt that is longer than its `num_ctx` (4,096 tokens by default on most machines) and answers with
status 200: it drops the oldest messages, keeps about half of the window, and counts what is left. No field of the
reply shows it (ollama/ollama #3839, #8386, #17427, #17889). LM Studio can do the same. But the count shows it: a
conversation to which something was added cannot have become shorter, and prose has no eight bytes in every token.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

from explorer.llm.history import is_begin_of
from explorer.llm.wire_json import as_object, as_text, parse_arguments
from explorer.schema.messages import JsonObject, Message, Request, Results, ToolSchema, Turn, UserText

KEPT = frozenset(
    {"type", "description", "properties", "required", "items", "enum", "anyOf", "default", "nullable"}
    | {"minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength"}
)
"""The keywords that Gemini, llama.cpp and OpenAI all know."""
MOST_REPEATED = 1_000
"""The largest repetition: llama.cpp refuses a grammar with one of 2,000 (ggml-org/llama.cpp #25746)."""
DEEPEST = 8
"""The number of levels to which a recursive schema is unrolled."""


def plain(schema: JsonObject) -> JsonObject:
    """Return a schema in common keywords: references resolved, rare keywords rewritten or left out."""
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
    """Return whether a keyword may stay: Gemini's enums have texts only, llama.cpp's repetitions are limited."""
    if key == "enum":
        return all(isinstance(one, str) and one for one in value)
    return key not in {"minItems", "maxItems", "minLength", "maxLength"} or value <= MOST_REPEATED


def _with_type(made: JsonObject) -> JsonObject:
    """Add the type that an enum or a list of fields implies."""
    if "type" in made or "anyOf" in made:
        return made
    if "enum" in made:
        return {"type": "string", **made}
    return {"type": "object", **made} if "properties" in made else made


def _described(schema: JsonObject) -> JsonObject:
    return {"description": schema["description"]} if "description" in schema else {}


class WrittenCall(NamedTuple):
    """A call that a model wrote as text."""

    name: str
    arguments: JsonObject


_THINKING = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCED = re.compile(r"\A```(?:json|tool_call|tool_code)?[ \t]*\n(?P<inside>(?:(?!```).)*?)\n?```\Z", re.DOTALL)
_TAGGED = re.compile(r"\A(?:<(tool_call|tools)>(?:(?!</?(?:tool_call|tools)>).)*</\1>\s*)+\Z", re.DOTALL)
_TAGS = re.compile(r"</?(?:tool_call|tools)>")
_ALLOWED_FIELDS = frozenset({"name", "arguments", "parameters", "id", "type"})


def find_written_calls(text: str, known_tools: Collection[str]) -> tuple[WrittenCall, ...]:
    """Return the calls that a reply consists of, each once; empty when any part of it is something else."""
    inside = _inside(_THINKING.sub("", text, count=1).strip())
    if not inside.startswith(("{", "[")):
        return ()
    calls = [_to_call(value, known_tools) for value in _objects(inside)]
    found = [call for call in calls if call is not None]
    # Small models write one call again and again, until the limit of the reply stops them.
    once = tuple(call for place, call in enumerate(found) if call not in found[:place])
    return once if len(found) == len(calls) else ()


def _inside(text: str) -> str:
    """Remove one code fence, or the tags around calls."""
    fenced = _FENCED.match(text)
    if fenced is not None:
        return fenced["inside"].strip()
    return _TAGS.sub(" ", text).strip() if _TAGGED.match(text) else text


def _objects(text: str) -> list[JsonObject]:
    """Read the JSON objects that a text consists of, in a row or in one array; empty if anything else is in it."""
    decoder = json.JSONDecoder()
    values: list[JsonObject] = []
    position = 0
    try:
        while position < len(text):
            value, position = decoder.raw_decode(text, position)
            values.extend(_items(value))
            while position < len(text) and text[position].isspace():
                position += 1
    except (ValueError, RecursionError):
        return []
    return values


def _items(value: Any) -> list[JsonObject]:  # noqa: ANN401 - foreign JSON, typed here
    """Return an array's items or the value itself; anything but an object becomes an empty one, which is not a call."""
    return [as_object(item) for item in value] if isinstance(value, list) else [as_object(value)]  # pyright: ignore[reportUnknownVariableType]


def _to_call(value: JsonObject, known_tools: Collection[str]) -> WrittenCall | None:
    function = as_object(value.get("function"))
    if function and value.keys() <= {"id", "type", "function"}:
        value = function
    arguments = value.get("arguments", value.get("parameters"))
    if isinstance(arguments, str):
        arguments = parse_arguments(arguments).value
    name = as_text(value.get("name"))
    is_call = name in known_tools and isinstance(arguments, dict) and value.keys() <= _ALLOWED_FIELDS
    return WrittenCall(name, as_object(arguments)) if is_call else None


BYTES_PER_TOKEN = 4
"""The mean of prose, code and JSON, for figures in messages."""
SUSPECT_BYTES_PER_TOKEN = 6
"""More than the mean of any tokenizer: with so few tokens, a second sign is enough."""
CERTAIN_BYTES_PER_TOKEN = 8
LEAST_BYTES_PER_TOKEN = 2
"""Fewer than any tokenizer has, which gives an upper bound of the tokens that were added."""
LEAST_WINDOW_TOKENS = 512
"""The smallest window: a server that reports less does not count tokens."""
LEAST_GROWTH_BYTES = 64
"""The least addition that is compared: a template may leave out a smaller one."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """One agent's last request."""

    history: tuple[Message, ...]
    history_bytes: int
    """The bytes of text in the history."""
    bytes: int
    """The bytes of all text: system text, tools and history."""
    counted: int
    added: int
    """The bytes that the request before did not have; in the first request, all."""
    is_cut: bool = False
    system: str = ""
    tools: tuple[ToolSchema, ...] = ()
    prefix_bytes: int = 0
    """The bytes of the system text and the tools."""


NOTHING_SENT = _Sent((), 0, 0, 0, 0)


class CutPrompts:
    """Compares what an adapter sends with what its server counts, for each agent."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], _Sent] = {}
        self._counts_whole: set[str] = set()
        """Models whose server counts whole prompts, and not only the part that was not cached."""

    def marked(self, request: Request, turn: Turn) -> Turn:
        """Return the turn, with `cut_from_tokens` where its server did not read all of the request."""
        agent = (request.run, request.agent)
        last = self._last.get(agent, NOTHING_SENT)
        goes_on = is_begin_of(last.history, request.history)
        known, length = (last.history_bytes, len(last.history)) if goes_on else (0, 0)
        history_bytes = known + sum(map(_bytes, _texts(request.history[length:])))
        is_same_prefix = last.system is request.system and last.tools is request.tools
        prefix_bytes = last.prefix_bytes if is_same_prefix else _prefix_bytes(request)
        size = history_bytes + prefix_bytes
        sent = _Sent(
            history=request.history,
            history_bytes=history_bytes,
            bytes=size,
            counted=turn.usage.input_tokens,
            added=size - last.bytes if goes_on else size,
            system=request.system,
            tools=request.tools,
            prefix_bytes=prefix_bytes,
        )
        if goes_on and last is not NOTHING_SENT:
            if _is_whole(last, sent):
                self._counts_whole.add(request.model)
            sent = replace(sent, is_cut=_is_cut(last, sent, counts_whole=request.model in self._counts_whole))
        self._last[agent] = sent
        return turn.model_copy(update={"cut_from_tokens": sent.bytes // BYTES_PER_TOKEN}) if sent.is_cut else turn


def _is_whole(last: _Sent, sent: _Sent) -> bool:
    """Return whether the count grew by what was added, and is larger than that part alone can be."""
    added = sent.added
    grew = sent.counted - last.counted
    return grew * SUSPECT_BYTES_PER_TOKEN >= added > 0 and sent.counted * LEAST_BYTES_PER_TOKEN > added


def _is_cut(last: _Sent, sent: _Sent, *, counts_whole: bool) -> bool:
    """Return whether fewer tokens were counted than were sent.

    A few servers count only the part that was not cached: such a count is not larger than what was added can be.
    Where already the first prompt is cut, the count is the same for additions of different sizes.
    Reasoning that a template leaves out makes a prompt shorter, but not shorter than the text that is shown.
    """
    if sent.counted < LEAST_WINDOW_TOKENS or sent.counted * SUSPECT_BYTES_PER_TOKEN >= sent.bytes:
        return False
    added = sent.added
    if last.is_cut or added < LEAST_GROWTH_BYTES:
        return last.is_cut
    is_same = sent.counted == last.counted and added != last.added
    has_shrunk = sent.counted <= last.counted
    if counts_whole:
        return has_shrunk or sent.counted * CERTAIN_BYTES_PER_TOKEN < sent.bytes
    return is_same or (has_shrunk and sent.counted * LEAST_BYTES_PER_TOKEN > added)


def _prefix_bytes(request: Request) -> int:
    """Return how many bytes of text a request shows its model in any template before the history."""
    tools = sum(len(f"{tool.name}{tool.description}{tool.parameters}") for tool in request.tools)
    return len(request.system.encode("utf-8", "replace")) + tools


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _texts(history: Iterable[Message]) -> Iterable[str]:
    """Return the text that any template shows: no reasoning, no names, no wrapping."""
    for message in history:
        if isinstance(message, UserText):
            yield message.text
        elif isinstance(message, Results):
            yield from (result.content for result in message.results)
        else:
            yield message.text
            yield from (str(call.arguments) for call in message.calls if call.arguments)
