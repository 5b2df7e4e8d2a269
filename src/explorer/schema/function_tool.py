"""`@tool`: an async function as a tool, with its arguments from its signature."""

import inspect
from collections.abc import Awaitable, Callable
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypedDict, Unpack, get_type_hints, overload

from pydantic import create_model

from explorer.schema.tool import Arguments, Effect, Tool, ToolResult
from explorer.schema.tool_context import ToolContext

P = ParamSpec("P")
Answer = ToolResult | str
"""What a decorated function returns; text is the content of a success."""
BY_NAME = frozenset({inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY})


class ToolOptions(TypedDict, total=False):
    """The properties of a tool that `@tool` takes; `Tool` says what each means."""

    name: str
    """Instead of the function's."""
    description: str
    """Instead of the docstring."""
    effect: Effect
    timeout_s: float | None
    is_parallel: bool
    ends_agent: bool
    is_lookup: bool
    is_for_report: bool
    pages_itself: bool
    activity: str


class FunctionTool(Tool[Arguments], Generic[P]):
    """A tool made of an async function. Called, it is that function."""

    def __init__(self, function: Callable[P, Awaitable[Answer]], **options: Unpack[ToolOptions]) -> None:
        """Take the arguments from the signature; a parameter of type `ToolContext` gets the call's context.

        Raises:
            TypeError: The function is not async, or a parameter cannot be an argument; says which.
        """
        update_wrapper(self, function)
        label = getattr(function, "__name__", "tool")
        if not inspect.iscoroutinefunction(function):
            raise TypeError(f"{label} is not a tool: write it as `async def`")
        self.name = label
        self.description = inspect.cleandoc(function.__doc__ or label)
        for option, value in options.items():
            setattr(self, option, value)
        self._function: Callable[..., Awaitable[Answer]] = function
        self.arguments, self._context_names = _arguments_of(function, self.name)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Awaitable[Answer]:
        """Call the function itself, unchecked, as a test of it does."""
        return self._function(*args, **kwargs)

    async def execute(self, arguments: Arguments, context: ToolContext) -> ToolResult:
        """Call the function with the checked arguments."""
        answer = await self._function(**vars(arguments), **dict.fromkeys(self._context_names, context))
        return answer if isinstance(answer, ToolResult) else ToolResult(success=True, content=answer)


def _arguments_of(function: Callable[..., object], label: str) -> tuple[type[Arguments], list[str]]:
    """The model of a function's arguments, and the parameters that take the context."""
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    contexts: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in BY_NAME or name not in hints:
            why = "needs a type" if parameter.kind in BY_NAME else "cannot be passed by name"
            raise TypeError(f"{label} is not a tool: its parameter {name!r} {why}")
        if hints[name] is ToolContext:
            contexts.append(name)
        else:
            default = ... if parameter.default is inspect.Parameter.empty else parameter.default
            fields[name] = (hints[name], default)
    return create_model(f"{label}_arguments", __base__=Arguments, **fields), contexts


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

    Raises:
        TypeError: The function is not async, or a parameter cannot be an argument.
    """

    def make(function: Callable[P, Awaitable[Answer]]) -> FunctionTool[P]:
        return FunctionTool(function, **options)

    return make if function is None else make(function)
