"""Finds tool calls that small local models write as text instead of making them.

Only what cannot be meant otherwise is taken: the whole reply must be calls, of known tools, with arguments
that are objects. Prose that mentions a call stays prose.
"""

import json
import re
from collections.abc import Collection
from typing import Any, NamedTuple

from explorer.llm.wire_json import as_object, as_text, parse_arguments
from explorer.schema.messages import JsonObject


class WrittenCall(NamedTuple):
    """A call as written."""

    name: str
    arguments: JsonObject


_THINKING = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCED = re.compile(r"\A```(?:json|tool_call|tool_code)?[ \t]*\n(?P<inside>(?:(?!```).)*?)\n?```\Z", re.DOTALL)
_TAGGED = re.compile(r"\A(?:<tool_call>(?:(?!</?tool_call>).)*</tool_call>\s*)+\Z", re.DOTALL)
_TAGS = re.compile(r"</?tool_call>")
_ALLOWED_FIELDS = frozenset({"name", "arguments", "parameters", "id", "type"})


def find_written_calls(text: str, known_tools: Collection[str]) -> tuple[WrittenCall, ...]:
    """Return the calls a reply consists of; none when it is anything else, in whole or in part."""
    inside = _inside(_THINKING.sub("", text, count=1).strip())
    if not inside.startswith(("{", "[")):
        return ()
    calls = [_to_call(value, known_tools) for value in _objects(inside)]
    found = tuple(call for call in calls if call is not None)
    return found if len(found) == len(calls) else ()


def _inside(text: str) -> str:
    """Take off one fence, or the tags around calls."""
    fenced = _FENCED.match(text)
    if fenced is not None:
        return fenced["inside"].strip()
    return _TAGS.sub(" ", text).strip() if _TAGGED.match(text) else text


def _objects(text: str) -> list[JsonObject]:
    """Read the JSON objects a text consists of, one after another or in one array; none if anything is left."""
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
    """Return an array's items or the value itself; what is no object becomes an empty one, which is no call."""
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
