"""What an MCP server lists, made fit for models: names, descriptions in fences, schemas that every vendor takes.

A vendor refuses a whole request for one schema that it does not take. So a schema is rebuilt of the keywords that all
take, and a tool whose schema cannot be rebuilt is left out, with the reason.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from mcp.types import Tool, ToolAnnotations

from explorer.mcp_client.pins import Pin, Pins
from explorer.schema.events import McpTool
from explorer.schema.mcp import TOOL_PREFIX
from explorer.schema.messages import JsonObject
from explorer.schema.tool import Effect
from explorer.text.rendering import code, inline, own
from explorer.text.sanitize import single_line

MAX_NAME_CHARS = 64
"""The longest name that every vendor takes."""
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
MAX_DESCRIPTION_CHARS = 4_000
MAX_FIELD_CHARS = 500
MAX_SCHEMA_CHARS = 40_000
MAX_DEPTH = 12
TYPES = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
AS_IS = frozenset({"enum", "const", "default", "minimum", "maximum", "minItems", "maxItems"})
"""Keywords whose value stays as it is."""
LISTS = frozenset({"anyOf", "oneOf", "allOf"})
DEFINITIONS = "$defs"
REFERENCE = re.compile(r"#/(?:\$defs|definitions)/([A-Za-z0-9_.-]{1,64})")


@dataclass(frozen=True)
class ServerListing:
    """The tools of a server by its own names of them, and what keeps others from being used."""

    tools: Mapping[str, McpTool]
    problems: Mapping[str, str]


def listing_of(server: str, tools: Iterable[Tool]) -> ServerListing:
    """Return what a server lists: each tool as models see it, or why it cannot be used."""
    listed = list(tools)
    names = Counter(model_name(server, tool.name) for tool in listed)
    found: dict[str, McpTool] = {}
    problems: dict[str, str] = {}
    for tool in listed:
        try:
            found[tool.name] = _for_models(server, tool, names)
        except ValueError as error:
            problems[tool.name] = single_line(str(error), 200)
    return ServerListing({name: tool for name, tool in found.items() if name not in problems}, problems)


def accepted_of(server: str, listing: ServerListing, said: Mapping[str, Tool], pins: Pins) -> ServerListing:
    """Return a listing by the names for models, without the tools that the user has not accepted.

    The first listing of a server is accepted as a whole.
    """
    if pins.accepted is None:
        pins.keep(pins_of(said))
    refused = {name: why for name, tool in listing.tools.items() if (why := pins.problem(name, tool.sha256))}
    problems = {model_name(server, name): why for name, why in {**listing.problems, **refused}.items()}
    return ServerListing({tool.name: tool for name, tool in listing.tools.items() if name not in refused}, problems)


def pins_of(said: Mapping[str, Tool]) -> dict[str, Pin]:
    """Return what there is to accept of a server's tools."""
    return {name: Pin(digest(tool), (tool.description or "")[:MAX_DESCRIPTION_CHARS]) for name, tool in said.items()}


def model_name(server: str, tool: str) -> str:
    """Return the name of a tool for models and role files."""
    return f"{TOOL_PREFIX}{server}__{NOT_IN_NAMES.sub('_', tool)}"


def digest(tool: Tool) -> str:
    """Return the SHA-256 of what a server says of a tool: name, description, schema, annotations."""
    said = tool.model_dump(
        mode="json", exclude_none=True, include={"name", "description", "input_schema", "annotations"}
    )
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def effect_of(annotations: ToolAnnotations | None) -> Effect:
    """Return what a resumed run does with an interrupted call: by what the server promises, never twice without it."""
    if annotations is None or (annotations.read_only_hint and annotations.destructive_hint):
        return Effect.EXTERNAL
    if annotations.read_only_hint:
        return Effect.PURE
    return Effect.REPEATABLE if annotations.idempotent_hint else Effect.EXTERNAL


def _for_models(server: str, tool: Tool, names: Mapping[str, int]) -> McpTool:
    name = model_name(server, tool.name)
    if names[name] > 1:
        raise ValueError(f"{names[name]} tools of its server have the name {name}")
    if len(name) > MAX_NAME_CHARS:
        raise ValueError(f"its name is longer than {MAX_NAME_CHARS} characters: {name}")
    words = own(
        "Tool {tool} of the MCP server {server}, which says: {said}",
        tool=code(tool.name),
        server=code(server),
        said=inline(tool.description or tool.title or "nothing", MAX_DESCRIPTION_CHARS),
    )
    return McpTool(
        name=name,
        remote=tool.name,
        description=words,
        parameters=parameters_of(tool.input_schema),
        effect=effect_of(tool.annotations),
        sha256=digest(tool),
    )


def parameters_of(schema: JsonObject) -> JsonObject:
    """Return the schema of a tool's arguments in the form that every vendor takes.

    Raises:
        ValueError: It cannot be brought into it; says why.
    """
    if len(json.dumps(schema)) > MAX_SCHEMA_CHARS:
        raise ValueError(f"its schema is longer than {MAX_SCHEMA_CHARS:,} characters")
    if schema.get("type", "object") != "object":
        raise ValueError("its schema is not that of an object")
    definitions = {**_table(schema, "definitions"), **_table(schema, DEFINITIONS)}
    known = frozenset(definitions)
    whole = _rebuilt(schema, known, 0)
    # At the top, vendors take an object only.
    kept = {key: value for key, value in whole.items() if key in {"properties", "required", "additionalProperties"}}
    made: JsonObject = {"type": "object", "properties": {}, **kept}
    if definitions:
        made[DEFINITIONS] = {_checked(name): _rebuilt(one, known, 1) for name, one in definitions.items()}
    return made


def _rebuilt(schema: object, known: frozenset[str], depth: int) -> JsonObject:
    """Return a schema of the keywords that every vendor takes; what else it says, the server checks itself."""
    if isinstance(schema, bool):
        return {}
    if not isinstance(schema, dict):
        raise ValueError("its schema is not valid")  # noqa: TRY004 - of a server's data, not of ours
    if depth > MAX_DEPTH:
        raise ValueError(f"its schema is nested deeper than {MAX_DEPTH}")
    fields = cast("JsonObject", schema)
    made = {key: value for key, value in fields.items() if key in AS_IS}
    made |= {"type": _type_of(fields["type"])} if "type" in fields else {}
    if isinstance(fields.get("description"), str):
        made["description"] = str(inline(fields["description"], MAX_FIELD_CHARS))
    if isinstance(fields.get("$ref"), str):
        made["$ref"] = _reference(fields["$ref"], known)
    return made | _parts(fields, known, depth + 1)


def _parts(fields: JsonObject, known: frozenset[str], depth: int) -> JsonObject:
    """Return the schemas within a schema."""
    made: JsonObject = {}
    if "properties" in fields:
        table = _table(fields, "properties")
        made["properties"] = {_checked(name): _rebuilt(one, known, depth) for name, one in table.items()}
        required = _list(fields, "required") if fields.get("required") else []
        made["required"] = [name for name in required if name in table]
    for key in LISTS & fields.keys():
        made[key] = [_rebuilt(one, known, depth) for one in _list(fields, key)]
    if isinstance(fields.get("items"), dict):
        made["items"] = _rebuilt(fields["items"], known, depth)
    more = fields.get("additionalProperties")
    if more is not None:
        made["additionalProperties"] = more if isinstance(more, bool) else _rebuilt(more, known, depth)
    return made


def _type_of(value: object) -> str | list[str]:
    named = cast("list[object]", value) if isinstance(value, list) else [value]
    if not named or not all(isinstance(one, str) and one in TYPES for one in named):
        raise ValueError("its schema has a type that is none")
    return cast("str | list[str]", value)


def _reference(text: str, known: frozenset[str]) -> str:
    found = REFERENCE.fullmatch(text)
    if found is None or found[1] not in known:
        raise ValueError("its schema refers to one that is not in it")
    return f"#/{DEFINITIONS}/{found[1]}"


def _table(fields: Mapping[str, Any], key: str) -> JsonObject:
    value = fields.get(key, {})
    if not isinstance(value, dict):
        raise ValueError(f"its schema has `{key}` that are not an object")  # noqa: TRY004 - as above
    return cast("JsonObject", value)


def _list(fields: Mapping[str, Any], key: str) -> list[object]:
    value = fields[key]
    if not isinstance(value, list) or not value:
        raise ValueError(f"its schema has `{key}` that is not a list")
    return cast("list[object]", value)


def _checked(name: str) -> str:
    if PROPERTY.fullmatch(name) is None:
        raise ValueError("its schema has a name that models do not take")
    return name
