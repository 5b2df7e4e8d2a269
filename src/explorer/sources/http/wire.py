"""Records from outside: read once, at the edge, into types."""

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
