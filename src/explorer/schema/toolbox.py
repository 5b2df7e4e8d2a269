"""The tools that an agent or a client may call: found by name, and their arguments checked before they run."""

import difflib
import inspect
import re
from collections.abc import Iterable, Mapping
from string import Formatter
from typing import Any

from pydantic import BaseModel, ValidationError

from explorer.schema.errors import ConfigError, ToolError
from explorer.schema.messages import JsonObject, ToolCall
from explorer.schema.reasons import ErrorCode
from explorer.schema.tool import Arguments, Tool, problem_of_property
from explorer.text.rendering import ModelText, code, codes, own, render

INVALID = {"code": ErrorCode.INVALID_CALL}


class Toolbox:
    """The tools that one agent may call, by name."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: Mapping[str, Tool] = {tool.name: tool for tool in tools}

    def names(self) -> list[str]:
        """Return all names, in the order in which the model sees them."""
        return list(self._tools)

    def find(self, name: str) -> Tool:
        """Return the tool of that name.

        Raises:
            ToolError: No tool has the name; the message gives the closest one.
        """
        if name in self._tools:
            return self._tools[name]
        close = difflib.get_close_matches(name, self._tools, n=1, cutoff=0.5)
        guess = own("; did you mean {name}?", name=code(close[0])) if close else own("")
        # On a line of its own: the first line is the reason that people are shown.
        raise ToolError(
            own(
                "there is no tool called {name}{guess}\nYour tools: {tools}",
                name=repr(name),
                guess=guess,
                tools=codes(self._tools),
            ),
            data=INVALID,
        )

    def prepare(self, call: ToolCall) -> tuple[Tool, Arguments]:
        """Return the tool and its validated arguments.

        Raises:
            ToolError: Unknown tool, broken JSON or wrong arguments; the message says exactly what would be right.
        """
        tool = self.find(call.name)
        if call.arguments is None:
            raise ToolError(
                own(
                    "{name} was not run: {problem}",
                    name=code(tool.name),
                    problem=call.problem or own("its arguments are not a JSON object"),
                ),
                data=INVALID,
            )
        try:
            return tool, tool.parse(call.arguments)
        except ValidationError as error:
            raise ToolError(
                own("{name} was not run: {why}", name=code(tool.name), why=explained(error, tool)), data=INVALID
            ) from error


def explained(error: ValidationError, tool: Tool) -> ModelText:
    """Return what is wrong with arguments, and what a tool takes."""
    properties: JsonObject = tool.parameters["properties"]
    lines: list[ModelText] = []
    for problem in error.errors():
        field = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            close = difflib.get_close_matches(field, properties, n=1)
            guess = own(" (did you mean `{name}`?)", name=code(close[0])) if close else own("")
            lines.append(own("no argument `{field}`{guess}", field=code(field), guess=guess))
        elif field:
            lines.append(own("`{field}`: {problem}", field=code(field), problem=problem["msg"]))
        else:
            lines.append(own("{problem}", problem=problem["msg"]))
    names = codes(properties) or own("none")
    return own("{problems}. Its arguments: {names}", problems=render(*lines, between="; "), names=names)


NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""The names that all vendors take."""
REQUIRED = ("name", "description", "arguments")
CHECKED_PROPERTIES = ("effect", "timeout_s")


def tool_problem(value: object, *, is_class: bool = False) -> str:
    """Return why a value cannot be used as a tool, as a clause without its subject; empty: it can.

    Args:
        value: What was given.
        is_class: Whether it is a class of tools, which a run makes one of.
    """
    part: Any = value
    if not is_class and not isinstance(value, Tool):
        return _not_a_tool(value)
    for name in REQUIRED:
        if not getattr(part, name, None):
            return f"has no `{name}`"
    name, arguments = part.name, part.arguments
    if not NAME.fullmatch(str(name)):
        return f"has the name {name!r}; vendors take up to 64 of a to z, A to Z, 0 to 9, `_` and `-`"
    if not (isinstance(arguments, type) and issubclass(arguments, BaseModel)):
        return "has `arguments` that are not a class derived from Arguments"
    for name in CHECKED_PROPERTIES:
        if problem := problem_of_property(name, getattr(part, name)):
            return f"cannot be used: its {problem}"
    return _problem_of_activity(part, arguments)


def _not_a_tool(value: object) -> str:
    if inspect.isroutine(value):
        return "is a function: decorate it with `@tool`"
    if isinstance(value, type) and issubclass(value, Tool):
        return f"is a class of tools: give an object of it, {value.__name__}(...)"
    return "is not a Tool"


def _problem_of_activity(part: Any, arguments: type[BaseModel]) -> str:  # noqa: ANN401 - a tool, or a class of tools
    if getattr(part.describe, "__func__", part.describe) is not Tool.describe:
        return ""
    try:
        fields = [field for _, field, _, _ in Formatter().parse(part.activity) if field is not None]
    except ValueError as error:
        return f"has an `activity` that is not a template: {error}"
    for field in fields:
        if re.split(r"[.\[]", field)[0] not in arguments.model_fields:
            return f"has {{{field}}} in its `activity`; its arguments are {', '.join(arguments.model_fields) or 'none'}"
    return ""


def check_tools(tools: Iterable[object]) -> None:
    """Check the tools that a program gives to a run.

    Raises:
        ConfigError: One is not a tool, or two have the same name.
    """
    names = set[str]()
    for tool in tools:
        name = str(getattr(tool, "name", "") or getattr(tool, "__name__", repr(tool)))
        if problem := tool_problem(tool):
            raise ConfigError(f"the tool {name} {problem}", hint="how a tool is written: docs/tools.md")
        if name in names:
            raise ConfigError(f"two tools are called {name}", hint="give each a name of its own: @tool(name=...)")
        names.add(name)
