"""The form of a reply for APIs that take an object only: what may be one of several forms is a field of an object.

OpenAI's Responses and Anthropic's Messages know fewer keywords of JSON Schema than servers with a grammar. Limits of
lengths are left out; who reads the form cuts what is too long.
"""

from dataclasses import replace
from typing import cast

from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.messages import JsonObject, Request

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
