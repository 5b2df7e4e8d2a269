"""What one provider's turn looks like to another: rebuilt from the neutral view."""

import json
import re
from collections.abc import Iterable, Mapping

from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.messages import ToolCall, Turn

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_NAME_CHARS = 64
_SHORT_ID = re.compile(r"[a-zA-Z0-9]{9}")
"""The only form of an id that every server accepts: Mistral's."""


def is_own(turn: Turn, provider: str, model: str) -> bool:
    """Say whether a turn's blocks may go back as they are: signatures hold for one provider and model only."""
    return turn.provider == provider and turn.model == model


def projected_ids(position: int, turn: Turn) -> Mapping[str, str]:
    """Give a foreign turn's calls ids that every provider accepts and that no other turn has."""
    return {call.id: f"c{position:05}{number:03}" for number, call in enumerate(turn.calls)}


def is_short_id(call_id: str) -> bool:
    """Say whether an id has the form that every server accepts."""
    return bool(_SHORT_ID.fullmatch(call_id))


def projected_name(call: ToolCall) -> str:
    """Return a call's name in letters that every provider accepts; models make up names, too."""
    return accepted_name(call.name)


def accepted_name(name: str) -> str:
    """Return a tool's name in letters that every provider accepts."""
    return _NOT_IN_NAMES.sub("_", name)[:_NAME_CHARS] or "unknown"


def arguments_text(call: ToolCall) -> str:
    """Return a call's arguments as JSON text; broken ones are empty, so that the next request is valid."""
    return json.dumps(call.arguments or {}, ensure_ascii=False)


def require_unique_ids(ids: Iterable[str]) -> None:
    """Refuse a turn in which two calls have one id: neither may be run.

    Raises:
        ModelError: Two calls have one id (transport, so the turn is asked for again).
    """
    seen: set[str] = set()
    for call_id in ids:
        if call_id in seen:
            raise ModelError(ModelFault.TRANSPORT, f"the reply has two calls with the id {call_id!r}")
        seen.add(call_id)


def with_ids(ids: list[str]) -> list[str]:
    """Fill in the ids that a server left out, unique within the turn."""
    if all(ids):
        return ids
    taken = set(ids)
    filled: list[str] = []
    number = 0
    for call_id in ids:
        if call_id:
            filled.append(call_id)
            continue
        number += 1
        while made_up_id(number) in taken:
            number += 1
        filled.append(made_up_id(number))
    return filled


def made_up_id(number: int) -> str:
    """Return an id for a call that has none, in the form that every server accepts."""
    return f"call{number:05}"
