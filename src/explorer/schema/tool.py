"""The tool interface: what a model may call, what each call is given, and `@tool`, which makes tools of functions."""

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property, lru_cache, update_wrapper
from types import MappingProxyType
from typing import Any, Generic, ParamSpec, Protocol, Self, TypedDict, Unpack, get_args, get_type_hints, overload

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    PydanticUserError,
    ValidationError,
    create_model,
    field_validator,
)
from typing_extensions import TypeVar

from explorer.schema.errors import NoSuchThingError, RefusedCallError, ToolError
from explorer.schema.events import NO_EFFECT, FileChange, Lookup, Source, WrittenFile
from explorer.schema.messages import Frozen, JsonObject, ToolSchema, repair_text
from explorer.text.rendering import ModelText, fenced, own
from explorer.text.words import sentences


class SourceDraft(Frozen):
    """A piece of evidence as a tool found it, before it has an id."""

    url: str
    """The address of the evidence, or a name with a scheme of its own, such as `census:2026/lisbon`."""
    title: str
    kind: str
    """`page`, `story`, `comments`, `search_hit`, `file`, ..."""
    via: str
    """The service it is from: `hackernews`, `tavily`, `tavily-keyless`, `direct`, `reader`, `file`, ..."""
    text: str
    """The text in which quotes and figures are looked up."""
    author: str = ""
    published: str = ""
    """ISO date or date-time; empty when it is not known."""
    language: str = ""
    """A code such as `en`; empty when it is not known."""
    retrieved: AwareDatetime | None = None
    """When it was fetched, if that was not just now."""
    flags: tuple[str, ...] = ()


Store = Callable[[Sequence[SourceDraft]], Awaitable[list[Source]]]
"""Store drafts and return their sources, in order; the same text at the same URL keeps its id."""


class RunFiles(Protocol):
    """The files of a run, for tools. A path is relative to the run's folder; none leads out of it."""

    def exists(self, path: str) -> bool:
        """Return whether a file exists."""
        ...

    def read_text(self, path: str) -> str:
        """Return a text file's content.

        Raises:
            ToolError: It does not exist, or is not text; the message is for the model.
        """
        ...

    def write_text(self, path: str, text: str) -> WrittenFile:
        """Create or replace a text file; the index of the agent's files then has it.

        Raises:
            ToolError: It may not be written there, or the folder is full; the message is for the model.
        """
        ...


async def no_store(drafts: Sequence[SourceDraft]) -> list[Source]:
    """Refuse to store: the call is not part of a run.

    Args:
        drafts: What was to be stored.

    Raises:
        ToolError: Always.
    """
    raise ToolError.of("there is no run to store {count} sources in", count=len(drafts))


@dataclass(frozen=True)
class ToolContext:
    """The parts of a run that a tool may use during one call.

    The defaults are for a tool that is called outside of a run, such as in a test.
    """

    workspace: RunFiles
    """The run's files. Files written through it are recorded with the call."""
    call: str = ""
    """The call's key, such as `searcher-2.t3.1`: unique in the run, and the same when a resumed run calls again."""
    agent: str = ""
    """The calling agent, such as `searcher-2`."""
    role: str = ""
    """The role of the calling agent, such as `searcher`."""
    task: str = ""
    """The task of the calling agent, in the words that it was given."""
    store: Store = no_store
    """Put evidence into the run's store of sources, and return it with its ids (`S12`), in the drafts' order.

    When it returns, text and record are on disk. The ids are recorded with the call, and a remark in the result says
    which of the sources repeat others. The tool shows the ids: a report may cite `[S12]` from then on.
    """
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    """The run's clock."""
    progress: Callable[[str], None] = lambda _words: None
    """Show the user how far a long call is; no model sees it."""
    change: FileChange | None = None
    """The recorded change of this call, as `foresee` returned it; for `checked` tools."""


INTERRUPTED = own(
    "This call was interrupted and is not repeated: whether it took effect is unknown. Look before you continue."
)

HIDDEN_FROM_MODELS = frozenset({"title", "minimum", "exclusiveMinimum", "minLength", "maxLength", "pattern", "format"})
"""Keywords of a schema that no model sees: a call that violates them is answered with what would be right."""
NAMED = frozenset({"properties", "$defs"})
"""Keywords of a schema whose value is an object of schemas."""
LISTED = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
NESTED = frozenset({"items", "additionalProperties"})


class Effect(StrEnum):
    """The side effect of a call, which decides what a resumed run does with an interrupted one."""

    PURE = NO_EFFECT
    """No effect: it is run again."""
    CHECKED = "checked"
    """One file is changed: the file is compared with what was foreseen."""
    REPEATABLE = "repeatable"
    """Something outside the run is changed that has the `context.call`: it is run again, and does nothing twice."""
    CHILD = "child"
    """A helper is started: that helper is resumed."""
    JOB = "job"
    """A command is run: never twice."""
    EXTERNAL = "external"
    """The effect is not known: it is never run twice."""


class ToolResult(BaseModel):
    """The result of a tool."""

    success: bool
    content: str = ""
    """The text for the model on success. All of it is fenced as text from outside, unless it was made with `own`."""
    error: str | None = None
    """The text for the model on failure, as for `content`."""
    metadata: dict[str, Any] = {}
    """Data for programs, never shown to a model.

    The engine reads `files` (WrittenFile), `removed` (paths) and `sources` (ids), each for what did not go through
    the call's `ToolContext`. All other data have to be JSON; they become
    the `data` of the call's `tool_finished`.
    """

    @field_validator("content", "error", mode="wrap")
    @classmethod
    def _repaired(cls, value: object, check: Callable[[object], object]) -> object:
        # Pydantic makes a plain `str` of a `ModelText`, which would be fenced as a whole.
        if isinstance(value, ModelText):
            return value
        return check(repair_text(value) if isinstance(value, str) else value)

    @property
    def text(self) -> ModelText:
        """The text for the model: what was not rendered is text from outside, and fenced."""
        if self.success:
            return fenced(self.content)
        return fenced(self.error) if self.error else own("The tool failed without saying why.")


class Arguments(BaseModel):
    """Base of every tool's arguments: unknown ones are refused, so that a wrong name is reported, not dropped."""

    model_config = ConfigDict(extra="forbid")


Args = TypeVar("Args", bound=Arguments, default=Any)


class Tool(ABC, Generic[Args]):
    """A tool that a model may call.

    Subclasses set the class variables and write `execute`. The description and the fields' descriptions are
    what the model reads.
    """

    name: str
    description: str
    arguments: type[Args]
    """The model of the arguments. A call that does not fit it is answered with what would be right."""
    effect: Effect = Effect.PURE
    timeout_s: float | None = 120.0
    """Seconds that a call may take; None for tools that limit themselves."""
    is_parallel: bool = True
    """Whether calls of one turn may run at the same time; a serial call is a barrier."""
    ends_agent: bool = False
    """Whether a successful call is the last thing its agent does."""
    is_lookup: bool = False
    """Whether it asks an external service or the user's folder for evidence.

    The results of such calls decide how a run without sources ends.
    """
    is_search: bool = False
    """Whether it searches with a query of the model, which its results may repeat.

    An address in the query does not count as found because a result shows it. A tool of an embedding program always
    counts as a search.
    """
    is_for_report: bool = False
    """Whether the report is made with it: such a tool may still be called when exploring is over."""
    pages_itself: bool = False
    """Whether it reads stored text part by part: a result too long for a conversation is cut, not stored again."""
    activity: str = ""
    """A call's action for people, with arguments in braces: `reading {filepath}`; empty: the tool's name is enough."""
    _defaults = MappingProxyType[str, object]({})
    """Defaults of arguments in place of those that `arguments` declares, as a role's file sets them."""

    @classmethod
    def connect(cls, connections: Any) -> Self:  # noqa: ARG003, ANN401 - `SourceConnections`
        """Make the tool for a run; a tool that asks sources uses the run's connections."""
        return cls()

    @classmethod
    def missing(cls, connections: Any) -> str:  # noqa: ARG003, ANN401 - `SourceConnections`
        """Return what a run with these connections lacks for the tool, and so is not offered; empty: nothing."""
        return ""

    @abstractmethod
    async def execute(self, arguments: Args, context: ToolContext) -> ToolResult:
        """Execute a call.

        Args:
            arguments: The validated arguments.
            context: The parts of the run that the call may use.

        Returns:
            The result: text for the model, and data for programs.

        Raises:
            ToolError: The call cannot be executed as asked; the message is for the model.
        """

    async def permit(self, arguments: Args, context: ToolContext) -> None:
        """Return once a call may be made, however long that takes: it has not begun, and a crash leaves no trace of it.

        Args:
            arguments: The validated arguments.
            context: The parts of the run that the call may use.

        Raises:
            ToolError: It may not be made; the message is for the model.
        """

    def describe(self, arguments: Args) -> str:
        """Return a call's action for people.

        Args:
            arguments: The validated arguments.

        Returns:
            A few words, such as `reading notes.md`; empty where the tool's name is enough.
        """
        return self.activity.format_map(vars(arguments))

    async def recall(self, change: FileChange) -> ToolResult:
        """Return the result of an `execute` that a crash interrupted after its change; for `checked` tools.

        Args:
            change: The change, as `foresee` returned it; it was made.

        Returns:
            What the model reads as the result of the call.
        """
        return ToolResult(success=True, content=own("Wrote {path}.", path=change.path))

    async def interrupted(self, context: ToolContext) -> ToolResult:  # noqa: ARG002 - for tools that look what was done
        """Return the result of an `execute` that a crash interrupted; for tools whose calls are never repeated.

        Args:
            context: The parts of the run that the call may use.

        Returns:
            What the model reads as the result of the call.
        """
        return ToolResult(success=False, error=INTERRUPTED)

    async def foresee(self, arguments: Args) -> FileChange | None:  # noqa: ARG002 - for tools that change a file
        """Return the change that `execute` is about to make, without making it; for `checked` tools.

        Args:
            arguments: The validated arguments.

        Returns:
            The change of one file; None when there is none.
        """
        return None

    @cached_property
    def parameters(self) -> JsonObject:
        """The JSON Schema of the arguments for models; they do not see every constraint."""
        schema = deepcopy(schema_for_model(self.arguments))
        for name, value in self._defaults.items():
            schema["properties"][name]["default"] = value
        return schema

    def parse(self, given: Mapping[str, object]) -> Args:
        """Return the arguments of a call, validated.

        Args:
            given: The arguments that the call has.

        Returns:
            All arguments, those that are missing with their defaults.

        Raises:
            ValidationError: They do not fit.
        """
        return self.arguments.model_validate({**self._defaults, **given})

    def with_defaults(self, values: Mapping[str, object]) -> Self:
        """Return this tool with other defaults of some arguments.

        Args:
            values: The defaults by the name of the argument.

        Returns:
            A copy, whose models are shown these defaults.

        Raises:
            ValueError: The tool has no such argument, or does not take the value; the message names it.
        """
        try:
            self.arguments.model_validate({**values})
        except ValidationError as error:
            for problem in error.errors():
                if problem["loc"] and problem["loc"][0] in values:
                    raise ValueError(f"{self.name}, argument {problem['loc'][0]}: {problem['msg']}") from error
        changed = copy(self)
        vars(changed)["_defaults"] = MappingProxyType({**self._defaults, **values})
        vars(changed).pop("parameters", None)
        return changed

    def schema(self) -> ToolSchema:
        """Return the description of the tool that a model sees."""
        return ToolSchema(name=self.name, description=self.description, parameters=self.parameters)

    def to_anthropic(self) -> JsonObject:
        """Return the tool in the form of Anthropic's Messages API."""
        return {"name": self.name, "description": self.description, "input_schema": self.parameters}

    def to_openai(self) -> JsonObject:
        """Return the tool in the form of OpenAI's Chat Completions API."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


def shown(count: int, one: str, several: str) -> JsonObject:
    """Return how much a result shows, for its metadata: `shown`, and the `unit` that a screen names it by."""
    return {"shown": count, "unit": one if count == 1 else several}


LISTED_KEY = "listed"
"""The key, in a result's metadata, of what there is to look things up in: a list of it is no lookup."""


def lookup_of(tool: Tool, result: ToolResult, error: ToolError | None) -> Lookup:
    """Return the outcome of a call as a lookup.

    Args:
        tool: The tool that was called.
        result: Its result.
        error: The `ToolError` that it raised; None without one.
    """
    if not tool.is_lookup or isinstance(error, RefusedCallError) or LISTED_KEY in result.metadata:
        return Lookup.NONE
    if isinstance(error, NoSuchThingError):
        return Lookup.EMPTY
    if not result.success:
        return Lookup.FAILED
    return Lookup.FOUND if result.metadata.get("sources") else Lookup.EMPTY


@lru_cache(maxsize=256)
def schema_for_model(arguments: type[BaseModel]) -> JsonObject:
    """Return the schema of arguments for models; cached, because every role and every run needs it again."""
    whole = arguments.model_json_schema()
    if "$ref" in whole:
        # The schema of a model that contains itself; vendors want an object at the top.
        whole |= whole["$defs"][whole.pop("$ref").rpartition("/")[2]]
    schema = _for_model(whole)
    schema.pop("description", None)
    schema.setdefault("properties", {})
    return schema


def _for_model(schema: JsonObject) -> JsonObject:
    """Return a schema without what no model needs: it is sent with every request, and the arguments are checked here.

    The value of `default`, `enum` or `const` stays as it is, whatever its keys are.
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
    """Return a field's schema without null, where null means the same as leaving the field out."""
    forms: list[JsonObject] = [form for form in schema.get("anyOf", ()) if form != {"type": "null"}]
    if not forms or schema.get("default", "") is not None:
        return schema
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**forms[0], **rest} if len(forms) == 1 else {"anyOf": forms, **rest}


P = ParamSpec("P")
Answer = ToolResult | str
"""The result of a decorated function; text is the content of a success."""
BY_NAME = frozenset({inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY})


class ToolOptions(TypedDict, total=False):
    """The properties of a tool that `@tool` takes; `Tool` says what each means."""

    name: str
    """The name in place of the function's."""
    description: str
    """The description in place of the docstring."""
    effect: Effect
    timeout_s: float | None
    is_parallel: bool
    ends_agent: bool
    is_lookup: bool
    is_search: bool
    is_for_report: bool
    pages_itself: bool
    activity: str


def problem_of_property(name: str, value: object) -> str:
    """Return why a property of a tool cannot have a value, as a clause with the property as its subject; empty: it can.

    Args:
        name: The property, as `ToolOptions` has it.
        value: What a program gave, which may not be checked for types.
    """
    match name:
        case "timeout_s":
            is_right = value is None or (isinstance(value, int | float) and value is not True and value > 0)
            return "" if is_right else f"`timeout_s` is {value!r}; give seconds, more than 0, or None for no limit"
        case "effect":
            names = ", ".join(f"Effect.{effect.name}" for effect in Effect)
            return "" if any(value == effect for effect in Effect) else f"`effect` is {value!r}; give one of {names}"
        case "name" | "description" | "activity":
            return "" if isinstance(value, str) else f"`{name}` is {value!r}; give text"
        case _:
            return "" if isinstance(value, bool) else f"`{name}` is {value!r}; give True or False"


class FunctionTool(Tool[Arguments], Generic[P]):
    """A tool made of an async function. Called, it is that function."""

    def __init__(self, function: Callable[P, Awaitable[Answer]], **options: Unpack[ToolOptions]) -> None:
        """Take the arguments from the signature; a parameter of type `ToolContext` gets the call's context.

        Raises:
            TypeError: The function is not async, or a parameter cannot be an argument; says which.
        """
        update_wrapper(self, function)
        label = getattr(function, "__name__", "tool")
        if inspect.isasyncgenfunction(function):
            raise TypeError(f"{label} is not a tool: it yields; return the whole result")
        if not inspect.iscoroutinefunction(function):
            raise TypeError(f"{label} is not a tool: write it as `async def`")
        self.name = label
        self.description = inspect.cleandoc(function.__doc__ or label)
        for option, value in options.items():
            if option not in ToolOptions.__annotations__:
                raise TypeError(f"@tool has no property {option!r}; it has {', '.join(ToolOptions.__annotations__)}")
            if problem := problem_of_property(option, value):
                raise TypeError(f"{label} is not a tool: its {problem}")
            setattr(self, option, value)
        self._function: Callable[..., Awaitable[Answer]] = function
        try:
            self.arguments, self._context_names = _arguments_of(function)
            _ = self.parameters
        except (PydanticUserError, TypeError, ValueError, NameError) as error:
            raise TypeError(f"{label} is not a tool: {_first_sentence(error)}") from error

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Awaitable[Answer]:
        """Call the function itself, unchecked, as a test of it does."""
        return self._function(*args, **kwargs)

    async def execute(self, arguments: Arguments, context: ToolContext) -> ToolResult:
        """Call the function with the checked arguments."""
        answer = await self._function(**vars(arguments), **dict.fromkeys(self._context_names, context))
        match answer:
            case ToolResult():
                return answer
            case str():
                return ToolResult(success=True, content=answer)
            case _:  # not every program is checked for types
                kind = type(answer).__name__
                raise TypeError(f"it returned {kind}; a tool returns text or a ToolResult")


def _arguments_of(function: Callable[..., object]) -> tuple[type[Arguments], list[str]]:
    """Return the model of a function's arguments, and the names of the parameters that take the context.

    Raises:
        TypeError: A parameter cannot be an argument; as do the errors of pydantic and of `typing`.
    """
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(f"{error} at the top of its module, where its types are looked up") from error
    fields: dict[str, Any] = {}
    contexts: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if problem := _problem_of(parameter, hints):
            raise TypeError(f"its parameter {name!r} {problem}")
        if hints[name] is ToolContext or ToolContext in get_args(hints[name]):
            contexts.append(name)
        else:
            default = ... if parameter.default is inspect.Parameter.empty else parameter.default
            fields[name] = (hints[name], default)
    with warnings.catch_warnings():
        # A parameter may be called `json` or `copy`: nothing asks the model of the arguments for its methods.
        warnings.simplefilter("ignore", UserWarning)
        return create_model(f"{function.__name__}_arguments", __base__=Arguments, **fields), contexts


def _problem_of(parameter: inspect.Parameter, hints: Mapping[str, object]) -> str:
    """Return why a parameter cannot be an argument, as a clause without its subject; empty: it can."""
    if parameter.kind not in BY_NAME:
        return "cannot be passed by name"
    if parameter.name in hints:
        return "begins with an underscore" if parameter.name.startswith("_") else ""
    return "needs a type" if parameter.name != "self" else "is that of a method: make the tool of an object's method"


def _first_sentence(error: Exception) -> str:
    line = str(error).partition("\n")[0]
    return next(iter(sentences(line)), "").removesuffix(".")


@overload
def tool(function: Callable[P, Awaitable[Answer]], /) -> FunctionTool[P]: ...


@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[P, Awaitable[Answer]]], FunctionTool[P]]: ...


def tool(
    function: Callable[P, Awaitable[Answer]] | None = None, /, **options: Unpack[ToolOptions]
) -> FunctionTool[P] | Callable[[Callable[P, Awaitable[Answer]]], FunctionTool[P]]:
    """Make a `Tool` of an async function.

    The docstring is the description that a model reads. Parameters are the arguments; describe one with
    `Annotated[str, Field(description="...")]`. A parameter of type `ToolContext` is no argument:
    it gets the context of the call. The function returns a `ToolResult`, or text, which is a success.

    Args:
        function: The async function.
        **options: Properties that its signature does not say: see `Tool`.

    Returns:
        A tool that can be called as the function itself, too.

    Raises:
        TypeError: The function is not async, or a parameter cannot be an argument.
    """

    def make(function: Callable[P, Awaitable[Answer]]) -> FunctionTool[P]:
        return FunctionTool(function, **options)

    return make if function is None else make(function)
