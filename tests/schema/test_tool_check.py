"""What is given as a tool is checked before a run begins."""

from typing import Any

import pytest

from explorer.schema.errors import ConfigError
from explorer.schema.tool import Arguments, Tool, ToolContext, ToolResult, tool
from explorer.schema.toolbox import check_tools


async def look(bed: int) -> str:
    """Look at a bed."""
    return f"bed {bed}"


class Digging(Tool[Arguments]):
    """A tool in the form of a class, without what models read of it."""

    async def execute(self, arguments: Arguments, context: ToolContext) -> ToolResult:
        """Dig."""
        return ToolResult(success=True, content=f"{arguments} {context.call}")


class Described(Digging):
    """One that says itself what a call does."""

    name = "described"
    description = "Digs."
    arguments = Arguments
    activity = "{no_argument}"

    def describe(self, arguments: Arguments) -> str:
        """Say it."""
        return f"digging {len(vars(arguments))}"


class Late(Described):
    """One with a limit that is no number, in a program that is not checked for types."""

    name = "late"
    timeout_s: Any = "3"


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ([look], "the tool look is a function: decorate it with `@tool`"),
        ([Described], "the tool described is a class of tools: give an object of it, Described(...)"),
        ([5], "the tool 5 is not a Tool"),
        ([Digging()], "has no `name`"),
        ([Late()], "the tool late cannot be used: its `timeout_s` is '3'; give seconds"),
        ([tool(description="")(look)], "the tool look has no `description`"),
        ([tool(name="look at")(look)], "has the name 'look at'; vendors take"),
        ([tool(activity="at {place}")(look)], "the tool look has {place} in its `activity`; its arguments are bed"),
        ([tool(activity="at {bed")(look)], "has an `activity` that is not a template"),
        ([tool(look), tool(look)], "two tools are called look"),
    ],
)
def test_what_is_not_a_tool_is_refused(given: list[Any], fault: str) -> None:
    """In one line that names it and says what is wrong, instead of an error in each call or at the vendor."""
    with pytest.raises(ConfigError) as raised:
        check_tools(given)
    assert fault in raised.value.message


def test_what_works_is_not_refused() -> None:
    """Formats and parts of arguments in a template, and a tool that writes its own words."""
    check_tools([tool(activity="at bed {bed:>3}")(look), tool(name="b", activity="{bed.real}")(look), Described()])
