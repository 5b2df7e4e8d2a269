"""The form of a role's result: the part of JSON Schema that a role file may use, and the check of values against it."""

from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator
from pydantic.alias_generators import to_camel

from explorer.schema.messages import JsonObject
from explorer.schema.tool import Arguments

SUMMARY = "summary"
MAX_PROPERTIES = 20
DERIVED = frozenset({"search_queries", "total_results", "sources_found", "word_count", "sections"})
"""Properties that the engine knows: `readOnly` in a role file, and never asked of a model."""
Kind = Literal["string", "integer", "number", "boolean", "array", "object"]
APPLY = {
    ("array",): ("items", "min_items", "max_items"),
    ("object",): ("properties", "required"),
    ("string",): ("min_length", "max_length"),
    ("integer", "number"): ("minimum", "maximum"),
}
"""Keywords by the types that they are for."""
TYPES: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool}


def made(name: str, fields: dict[str, Any]) -> type[Arguments]:
    """Return a pydantic model of these fields, which refuses others."""
    make: Any = create_model
    return make(name, __base__=Arguments, **fields)


class ResultProperty(BaseModel):
    """A value of a result. Names and meanings are those of JSON Schema."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)

    kind: Kind = Field(alias="type")
    description: str = ""
    enum: tuple[str | int | float, ...] = ()
    items: "ResultProperty | None" = None
    properties: dict[str, "ResultProperty"] = Field(default={}, max_length=MAX_PROPERTIES)
    required: tuple[str, ...] = ()
    min_items: int | None = None
    max_items: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    minimum: float | None = None
    maximum: float | None = None
    read_only: bool = False
    """The engine fills it in; a model is not asked for it."""

    @model_validator(mode="after")
    def _check_keywords(self) -> Self:
        for kinds, names in APPLY.items():
            wrong = [name for name in names if name in self.model_fields_set and self.kind not in kinds]
            if wrong:
                raise ValueError(f"`{to_camel(wrong[0])}` has no meaning for the type {self.kind}")
        if unknown := sorted(set(self.required) - self.properties.keys()):
            raise ValueError(f"`required` names {', '.join(unknown)}, which is not among its properties")
        return self

    @property
    def annotation(self) -> Any:  # noqa: ANN401 - any type
        """The type that values are checked against."""
        if self.enum:
            return Literal[self.enum]
        if self.kind == "object":
            return made("Object", self.fields()) if self.properties else JsonObject
        is_list = self.kind == "array"
        least, most = (self.min_items, self.max_items) if is_list else (self.min_length, self.max_length)
        item = self.items.annotation if self.items is not None else Any
        limits = Field(min_length=least, max_length=most, ge=self.minimum, le=self.maximum)
        return Annotated[list[item] if is_list else TYPES[self.kind], limits]

    def fields(self) -> dict[str, Any]:
        """Return the definitions of its properties, for a pydantic model; those of the engine are left out."""
        found: dict[str, Any] = {}
        for name, one in self.properties.items():
            is_required = name in self.required
            kind = one.annotation if is_required else one.annotation | None
            found[name] = (kind, Field(default=... if is_required else None, description=one.description))
        return {name: found[name] for name, one in self.properties.items() if not one.read_only}


class CheckedResult(NamedTuple):
    """Values of a result, and what is wrong with others."""

    values: JsonObject
    """Those that fit."""
    error: ValidationError | None


class ResultSchema(ResultProperty):
    """The form of a role's result: an object."""

    kind: Kind = Field(default="object", alias="type")

    @model_validator(mode="after")
    def _check_properties(self) -> Self:
        if self.kind != "object":
            raise ValueError("a result is an object with properties")
        read_only = {name for name, one in self.properties.items() if one.read_only}
        if unknown := sorted(read_only - DERIVED):
            known = ", ".join(sorted(DERIVED))
            raise ValueError(f"the engine cannot fill in {', '.join(unknown)} (`readOnly`); it knows {known}")
        if wrong := sorted({SUMMARY, *DERIVED - read_only} & self.properties.keys()):
            reason = "there is a summary anyway" if SUMMARY in wrong else "add `readOnly: true`: the engine knows it"
            raise ValueError(f"a model is not asked for {', '.join(wrong)}: {reason}")
        self.form  # noqa: B018 - a form that cannot be made is reported with its file
        return self

    @cached_property
    def form(self) -> type[Arguments]:
        """The arguments with which a model gives its result: a summary, and the properties that it is asked for."""
        summary = (str, Field(min_length=1, description="Your final message, as your instructions describe it"))
        return made("Result", {SUMMARY: summary, **self.fields()})

    @property
    def derived(self) -> list[str]:
        """The properties that the engine fills in."""
        return [name for name, one in self.properties.items() if one.read_only]

    @property
    def is_given(self) -> bool:
        """Whether a model is asked for a part of it."""
        return len(self.derived) < len(self.properties)

    def checked(self, given: JsonObject) -> CheckedResult:
        """Check what a model gave, its summary included; of a wrong result return the values that fit."""
        kept, first = dict(given), None
        while True:
            try:
                values = self.form.model_validate(kept).model_dump(mode="json", exclude={SUMMARY}, exclude_none=True)
            except ValidationError as error:
                first = first or error
                wrong = {str(one["loc"][0]) for one in error.errors() if one["loc"]} & kept.keys()
                if not wrong:
                    # What is missing cannot be left out: the rest is taken without the check of the whole.
                    return CheckedResult({name: kept[name] for name in kept if name != SUMMARY}, first)
                kept = {name: value for name, value in kept.items() if name not in wrong}
            else:
                return CheckedResult(values, first)


NO_RESULT = ResultSchema()
