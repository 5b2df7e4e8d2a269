"""Checks of what a program or a package gives as a tool, made before a run begins."""

import inspect
import re
from collections.abc import Iterable
from string import Formatter
from typing import Any

from pydantic import BaseModel

from explorer.schema.errors import ConfigError
from explorer.schema.tool import Tool

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""The names that all vendors take."""
REQUIRED = ("name", "description", "arguments")


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
