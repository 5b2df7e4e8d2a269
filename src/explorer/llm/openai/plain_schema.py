"""Schemas of tools in the words that every Chat Completions server understands.

Gemini refuses a request over one unknown keyword of one tool, llama.cpp cannot make a grammar of others. A tool checks
its arguments itself, so what is left out here loses a model a hint and nobody a check.
"""

from collections.abc import Mapping
from typing import Any, cast

from explorer.schema.messages import JsonObject

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
