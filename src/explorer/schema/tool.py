"""A tool: what a model may call. Nothing here knows the engine."""

from abc import ABC, abstractmethod
from copy import deepcopy
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Any, Generic, Self

from pydantic import BaseModel, ConfigDict, field_validator
from typing_extensions import TypeVar

from explorer.schema.errors import NoSuchThingError, RefusedCallError, ToolError
from explorer.schema.events import NO_EFFECT, FileChange, Lookup
from explorer.schema.messages import JsonObject, ToolSchema, repair_text
from explorer.schema.tool_context import ToolContext

INTERRUPTED = (
    "This call was interrupted and is not repeated: whether it took effect is unknown. Look before you continue."
)

HIDDEN_FROM_MODELS = frozenset({"title", "minimum", "exclusiveMinimum", "minLength", "maxLength", "pattern", "format"})
"""Words of a schema that no model is told: a fault against them is answered with what would be right."""
NAMED = frozenset({"properties", "$defs"})
"""Words of a schema that hold schemas by name."""
LISTED = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
NESTED = frozenset({"items", "additionalProperties"})


class Effect(StrEnum):
    """What a call does to the world, which decides what a resumed run does with a call cut in the middle."""

    PURE = NO_EFFECT
    """Nothing: run it again."""
    CHECKED = "checked"
    """Changes one file: compare the file with what was foreseen, then know."""
    REPEATABLE = "repeatable"
    """Changes something outside the run, and finds its `context.call` there: run it again, nothing is done twice."""
    CHILD = "child"
    """Starts a helper: go on with that helper."""
    JOB = "job"
    """Runs a command: never twice."""
    EXTERNAL = "external"
    """Unknown: never twice."""


class ToolResult(BaseModel):
    """What a tool gives back."""

    success: bool
    content: str = ""
    """What the model reads on success."""
    error: str | None = None
    """What the model reads on failure."""
    metadata: dict[str, Any] = {}
    """For programs, never shown to a model.

    The engine reads `files` (WrittenFile), `removed` (paths) and `sources` (ids), each for what did not go through
    the call's `ToolContext`. All else has to be JSON and is recorded as the `data` of the call's `tool_finished`.
    """

    @field_validator("content", "error", mode="before")
    @classmethod
    def _repaired(cls, value: object) -> object:
        return repair_text(value) if isinstance(value, str) else value

    @property
    def text(self) -> str:
        """What the model reads."""
        if self.success:
            return self.content
        return self.error or "The tool failed without saying why."


class Arguments(BaseModel):
    """Base of every tool's arguments: unknown ones are refused, so that a wrong name is told, not dropped."""

    model_config = ConfigDict(extra="forbid")


Args = TypeVar("Args", bound=Arguments, default=Any)


class Tool(ABC, Generic[Args]):
    """What a model may call.

    Subclasses set the class variables and write `execute`. The description and the fields' descriptions are
    what the model reads.
    """

    name: str
    description: str
    arguments: type[Args]
    """The model of the arguments. A call that does not fit it is answered with what would be right."""
    effect: Effect = Effect.PURE
    timeout_s: float | None = 120.0
    """Seconds a call may take; None for tools that bound themselves."""
    is_parallel: bool = True
    """Whether calls of one turn may run beside each other; a serial call is a barrier."""
    ends_agent: bool = False
    """Whether a successful call is the last thing its agent does."""
    is_lookup: bool = False
    """Whether it asks an outside service or the user's folder for evidence: what such calls bring decides how a run
    without sources ends."""
    is_search: bool = False
    """Whether it searches with words of the model's, which its results may repeat: an address in those words does not
    count as found because a result shows it. A tool of an embedding program always counts as one that does."""
    is_for_report: bool = False
    """Whether the report is made with it: then it may still be called when exploring is over."""
    pages_itself: bool = False
    """Whether it reads what is stored, part by part: a result too long for a conversation is cut, not stored again."""
    activity: str = ""
    """What a call does, for people, with arguments in braces: `reading {filepath}`; empty: the tool's name says it."""

    @classmethod
    def connect(cls, connections: Any) -> Self:  # noqa: ARG003, ANN401 - `SourceConnections`
        """Make the tool for a run; one that asks sources takes what it needs of the run's connections."""
        return cls()

    @abstractmethod
    async def execute(self, arguments: Args, context: ToolContext) -> ToolResult:
        """Do it.

        Args:
            arguments: What the model asked for, checked.
            context: What the run offers to this call.

        Raises:
            ToolError: It cannot be done as asked; the message is for the model.
        """

    def describe(self, arguments: Args) -> str:
        """Return what a call does, in a few words for people; empty where the tool's name says it."""
        return self.activity.format_map(vars(arguments))

    async def recall(self, change: FileChange) -> ToolResult:
        """For `checked` tools: the result of an `execute` that a crash cut off after its change was made."""
        return ToolResult(success=True, content=f"Wrote {change.path}.")

    async def interrupted(self, context: ToolContext) -> ToolResult:  # noqa: ARG002 - for tools that look what was done
        """For tools whose calls are never repeated: the result of an `execute` that a crash cut off."""
        return ToolResult(success=False, error=INTERRUPTED)

    async def foresee(self, arguments: Args) -> FileChange | None:  # noqa: ARG002 - for tools that change a file
        """For `checked` tools: the change `execute` is about to make, without making it."""
        return None

    @cached_property
    def parameters(self) -> JsonObject:
        """JSON Schema of the arguments as a model is told them: what is right, not all that is refused."""
        return deepcopy(_field_for_model(self.arguments))

    def schema(self) -> ToolSchema:
        """What a model is told."""
        return ToolSchema(name=self.name, description=self.description, parameters=self.parameters)

    def to_anthropic(self) -> JsonObject:
        """The form of Anthropic's Messages API."""
        return {"name": self.name, "description": self.description, "input_schema": self.parameters}

    def to_openai(self) -> JsonObject:
        """The form of OpenAI's Chat Completions API."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


def shown(count: int, one: str, several: str) -> JsonObject:
    """Return how much a result shows, for its metadata: `shown`, and the `unit` that a screen names it by."""
    return {"shown": count, "unit": one if count == 1 else several}


def lookup_of(tool: Tool, result: ToolResult, error: ToolError | None) -> Lookup:
    """What a call brought as a lookup.

    Args:
        tool: The tool that was called.
        result: What it gave back.
        error: Why it could not be done as asked; None when it raised no `ToolError`.
    """
    if not tool.is_lookup or isinstance(error, RefusedCallError):
        return Lookup.NONE
    if isinstance(error, NoSuchThingError):
        return Lookup.EMPTY
    if not result.success:
        return Lookup.FAILED
    return Lookup.FOUND if result.metadata.get("sources") else Lookup.EMPTY


@lru_cache(maxsize=256)
def _field_for_model(arguments: type[BaseModel]) -> JsonObject:
    """The schema that a model is told of arguments; made once, because every role and every run asks for it again."""
    schema = _for_model(arguments.model_json_schema())
    schema.pop("description", None)
    schema.setdefault("properties", {})
    return schema


def _for_model(schema: JsonObject) -> JsonObject:
    """A schema without what no model needs: it is sent with every request, and the arguments are checked here.

    What stands beside `default`, `enum` or `const` is a value and stays as it is, whatever its keys are called.
    """
    kept = {key: value for key, value in _chosen(schema).items() if key not in HIDDEN_FROM_MODELS}
    for key, value in kept.items():
        if key in NAMED:
            kept[key] = {name: _for_model(part) for name, part in value.items()}
        elif key in LISTED:
            kept[key] = [_for_model(part) for part in value]
        elif key in NESTED and isinstance(value, dict):
            kept[key] = _for_model(value)  # pyright: ignore[reportUnknownArgumentType]
    if not kept.get("default", True):
        del kept["default"]
    if isinstance(kept.get("additionalProperties"), bool):
        del kept["additionalProperties"]
    return kept


def _chosen(schema: JsonObject) -> JsonObject:
    """A field whose null says what leaving it out says, without the null."""
    forms: list[JsonObject] = [form for form in schema.get("anyOf", ()) if form != {"type": "null"}]
    if not forms or schema.get("default", "") is not None:
        return schema
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**forms[0], **rest} if len(forms) == 1 else {"anyOf": forms, **rest}
