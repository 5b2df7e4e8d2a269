"""The tools that an agent or a client may call: found by name, and their arguments checked before they run."""

import difflib
from collections.abc import Iterable, Mapping

from pydantic import ValidationError

from explorer.schema.errors import ToolError
from explorer.schema.messages import JsonObject, ToolCall
from explorer.schema.reasons import ErrorCode
from explorer.schema.tool import Arguments, Tool
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
