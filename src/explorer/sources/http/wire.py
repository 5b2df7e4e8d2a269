"""Values from services: JSON records, and moments that may be absent, fractions, text or impossible."""

from datetime import UTC, datetime
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError

from explorer.schema.errors import ToolError
from explorer.text.rendering import ModelText

T = TypeVar("T")


class WireModel(BaseModel):
    """A record of a service: unknown fields are dropped, absent ones are None."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


def listed(value: object) -> object:
    """Return a list of a service, which may be null."""
    return value or ()


Ids = Annotated[tuple[int, ...], BeforeValidator(listed)]


def parse(kind: type[T] | TypeAdapter[T], body: bytes, what: ModelText) -> T:
    """Read the JSON body of a service.

    Raises:
        ToolError: It is not what the service's contract says.
    """
    adapter: TypeAdapter[T] = kind if isinstance(kind, TypeAdapter) else TypeAdapter(kind)
    try:
        return adapter.validate_json(body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ToolError.of("{what} sent something unexpected: {first}.", what=what, first=first["msg"]) from error


LAST_SECOND = 253_402_300_799
"""The last second of the year 9999; later dates cannot be written."""


def _seconds(value: object) -> int | None:
    """Return Unix seconds; None for what cannot be a moment, because one bad number must not drop the whole item."""
    if isinstance(value, str):
        value = int(value) if value.isdecimal() and len(value) <= len(str(LAST_SECOND)) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LAST_SECOND:
        return None
    return int(value)


Seconds = Annotated[int | None, BeforeValidator(_seconds)]
"""A field of a service with Unix seconds."""


def moment(seconds: int | None) -> str:
    """Return a moment like `2026-08-10T09:12:00Z`; empty when it is not known."""
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
