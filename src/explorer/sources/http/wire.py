"""What services write, as values: JSON records, and moments that may be absent, fractions, text or absurd."""

from datetime import UTC, datetime
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError

from explorer.schema.errors import ToolError

T = TypeVar("T")


class WireModel(BaseModel):
    """A record from outside: unknown fields are dropped, absent ones are None."""

    model_config = ConfigDict(frozen=True, extra="ignore")


def listed(value: object) -> object:
    """Foreign lists may be null."""
    return value or ()


Ids = Annotated[tuple[int, ...], BeforeValidator(listed)]


def parse(kind: type[T] | TypeAdapter[T], body: bytes, what: str) -> T:
    """Read a foreign JSON body.

    Raises:
        ToolError: It is not what the service's contract says.
    """
    adapter: TypeAdapter[T] = kind if isinstance(kind, TypeAdapter) else TypeAdapter(kind)
    try:
        return adapter.validate_json(body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ToolError(f"{what} sent something unexpected: {first['msg']}.") from error


LAST_SECOND = 253_402_300_799
"""The end of the year 9999, behind which no date can be written."""


def _seconds(value: object) -> int | None:
    """Unix seconds; what cannot be a moment is unknown, since one bad number must not cost the whole item."""
    if isinstance(value, str):
        value = int(value) if value.isdecimal() and len(value) <= len(str(LAST_SECOND)) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LAST_SECOND:
        return None
    return int(value)


Seconds = Annotated[int | None, BeforeValidator(_seconds)]
"""A foreign field that holds unix seconds."""


def moment(seconds: int | None) -> str:
    """As `2026-08-10T09:12:00Z`; empty when it is not known."""
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
