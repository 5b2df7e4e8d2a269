"""JSON of requests and replies: requests that are always valid, arguments that are read strictly, forms of replies.

Some APIs take an object only: what may be one of several forms is then a field of an object. OpenAI's Responses and
Anthropic's Messages know fewer keywords of JSON Schema than servers with a grammar. Limits of
lengths are left out; who reads the form cuts what is too long.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple, cast

import orjson

from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.messages import LARGEST_COUNT, JsonObject, Request, repair_text

TOO_DEEP = "nested too deeply"
EXCERPT_CHARS = 40
"""The length of broken JSON that is shown on either side of the error."""


MAX_DEPTH = 64
"""Levels of nested JSON. A tool's arguments need less than 10; records of a run can have about 200."""


_TOO_DEEP_STREAM = f"the stream contains JSON that is nested deeper than {MAX_DEPTH} levels"


class ParsedArguments(NamedTuple):
    """A call's parsed arguments; exactly one of the two is set."""

    value: JsonObject | None
    problem: str


def encode(value: object) -> bytes:
    """Turn JSON into bytes in one call; half surrogate pairs, which no server accepts, are replaced."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return repair_text(json.dumps(value, ensure_ascii=False, separators=(",", ":"))).encode()


def repair_object(value: JsonObject) -> JsonObject:
    """Fix half surrogate pairs in every text of a JSON object, keys included."""
    try:
        orjson.dumps(value)
    except TypeError:
        return as_object(json.loads(repair_text(json.dumps(value, ensure_ascii=False))))
    return value


def parse_payload(data: str) -> JsonObject:
    """Read the data of one stream event.

    Raises:
        ModelError: It is not a JSON object, so the stream cannot be trusted (transport).
    """
    try:
        try:
            payload: object = orjson.loads(data)
        except orjson.JSONDecodeError:
            # It refuses half surrogate pairs, which servers do send, and tells less well what is wrong.
            payload = _STRICT.decode(data)
    except RecursionError as error:
        raise ModelError(ModelFault.OVERSIZED, _TOO_DEEP_STREAM) from error
    except ValueError as error:
        message = f"the stream contains broken JSON ({error}): {_excerpt(data, 0)}"
        raise ModelError(ModelFault.TRANSPORT, message) from error
    if is_too_deep(payload, data):
        raise ModelError(ModelFault.OVERSIZED, _TOO_DEEP_STREAM)
    if not isinstance(payload, dict):
        raise ModelError(ModelFault.TRANSPORT, f"the stream contains no JSON object: {_excerpt(data, 0)}")
    return as_object(payload)  # pyright: ignore[reportUnknownArgumentType] - foreign JSON


def parse_arguments(raw: str) -> ParsedArguments:
    """Read a call's arguments strictly; the problem is a text for the model.

    An empty text means no arguments: both providers stream that for tools without parameters.
    """
    if not raw.strip():
        return ParsedArguments({}, "")
    try:
        value: object = _STRICT.decode(raw)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno} (character {error.pos} of {len(raw)})"
        problem = f"{error.msg} at {where}, near {_excerpt(raw, error.pos)}"
    except (ValueError, RecursionError) as error:
        problem = str(error) if isinstance(error, ValueError) else TOO_DEEP
    else:
        if is_too_deep(value, raw):
            return ParsedArguments(None, f"The arguments are {TOO_DEEP}. Call again with a flatter object.")
        if isinstance(value, dict):
            return ParsedArguments(as_object(value), "")  # pyright: ignore[reportUnknownArgumentType] - foreign JSON
        return ParsedArguments(None, not_an_object(value))
    message = f"The arguments are not valid JSON: {problem}. Arguments must be one complete JSON object."
    return ParsedArguments(None, repair_text(message))


def is_too_deep(value: object, text: str) -> bool:
    """Return whether JSON has more levels than `MAX_DEPTH`; checked level by level, without recursion.

    Args:
        value: The parsed JSON.
        text: The text it was parsed from: with few brackets there cannot be many levels.
    """
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return False
    return True


def _children(value: Any) -> Iterable[Any]:  # noqa: ANN401 - foreign JSON
    if isinstance(value, dict):
        value = list(cast("JsonObject", value).values())
    children = cast("list[Any]", value) if isinstance(value, list) else []
    return [child for child in children if isinstance(child, dict | list)]


def not_an_object(value: object) -> str:
    """Return the problem that the arguments are not a JSON object."""
    kind = _KINDS.get(type(value), type(value).__name__)
    return f"The arguments are {kind}; they must be a JSON object with the tool's parameters as its fields."


def cut_problem(raw: str) -> str:
    """Return the problem that a call was cut off by the output limit."""
    return (
        f"The call was cut off by the output limit after {len(raw)} characters of its arguments, so it was not "
        "run. Call again with less at once, for example write a long file in several pieces."
    )


def as_object(value: Any) -> JsonObject:  # noqa: ANN401 - foreign JSON, typed here
    """Return a JSON object unchanged, anything else as an empty one."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def as_objects(value: Any) -> list[JsonObject]:  # noqa: ANN401 - foreign JSON, typed here
    """Return the objects of a JSON array; an empty list for anything else."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [item for item in items if isinstance(item, dict)]


def as_text(value: object) -> str:
    """Return a JSON string unchanged, anything else as an empty one."""
    return value if isinstance(value, str) else ""


def as_count(value: object) -> int:
    """Return a JSON number as a count; 0 for anything else, and for negative numbers."""
    if isinstance(value, float) and not math.isfinite(value):
        return 0
    # A whole number may have more digits than a float can have.
    return max(0, min(int(value), LARGEST_COUNT)) if isinstance(value, int | float) else 0


_KINDS: dict[type, str] = {
    list: "a JSON array",
    str: "a JSON string",
    int: "a number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


def _excerpt(text: str, position: int) -> str:
    start = max(0, position - EXCERPT_CHARS)
    return ascii(text[start : position + EXCERPT_CHARS])


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is too large a number")
    return value


_STRICT = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
"""The decoder, made once: `json.loads` would make one for each event."""


FIELD = "reply"
LIMITS = frozenset(["maxLength", "minLength", "maxItems", "minItems"])


class RefusedForms:
    """The models that refuse a form of the reply; they are asked without one, since it is in the prompt, too."""

    def __init__(self) -> None:
        self._models: set[str] = set()

    def request(self, request: Request) -> Request:
        """Return a request as its model takes it."""
        is_refused = request.reply_schema is not None and request.model in self._models
        return replace(request, reply_schema=None) if is_refused else request

    def learn(self, request: Request, error: ModelError) -> bool:
        """Remember that a model refused a request with a form; return whether to send it again, without."""
        is_new = request.reply_schema is not None and request.model not in self._models
        if not is_new or error.fault not in {ModelFault.REJECTED, ModelFault.UNSUPPORTED}:
            return False
        self._models.add(request.model)
        return True


def object_form(schema: JsonObject) -> JsonObject:
    """Return a form as these APIs take it; `filled_in` takes the reply out again."""
    bare = cast("JsonObject", _without_limits(schema))
    if bare.get("type") == "object":
        return bare
    return {"type": "object", "properties": {FIELD: bare}, "required": [FIELD], "additionalProperties": False}


def filled_in(reply: JsonObject) -> JsonObject:
    """Return a form as it was filled in, whether it stood in an object of its own or not."""
    inner = reply.get(FIELD)
    return cast("JsonObject", inner) if set(reply) == {FIELD} and isinstance(inner, dict) else reply


def _without_limits(part: object) -> object:
    if isinstance(part, dict):
        items = cast("JsonObject", part).items()
        return {name: _without_limits(value) for name, value in items if name not in LIMITS}
    if isinstance(part, list):
        return [_without_limits(one) for one in cast("list[object]", part)]
    return part
