"""docs/tools.md: its code runs, and its tables are whole."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

from explorer.schema import errors, tool
from explorer.schema.tool import Effect, Tool, ToolContext
from sources.loopback import Ledger
from tool_call import call_tool

PAGE = (Path(__file__).parents[2] / "docs" / "tools.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@dataclass(frozen=True)
class Row:
    """What the page's table of a census holds."""

    url: str = "census:2021/lisbon"
    title: str = "Census of 2021: Lisbon"
    text: str = "Lisbon had 545,796 inhabitants in 2021."


class Table:
    """The census of the page's example."""

    def find(self, city: str, year: int) -> Row | None:
        """Return the row of a city."""
        return Row() if (city, year) == ("Lisbon", 2021) else None


def made_by(word: str) -> Mapping[str, Any]:
    """What the page's one block with a word in it defines, run with nothing but the names that the page tells of."""
    (block,) = [block for block in BLOCKS if word in block]
    modules = (errors, tool)
    names = {name: value for module in modules for name, value in vars(module).items() if not name.startswith("_")}
    namespace = {**names, "Field": Field, "Annotated": Annotated, "Table": Table, "__name__": __name__}
    exec(block, namespace)  # noqa: S102 - the page is ours
    return namespace


async def test_the_class_of_the_page_works() -> None:
    """Copied as it stands, it finds a city, stores it, and says when there is none."""
    ledger, census = Ledger(), made_by("class PopulationTool")["PopulationTool"](Table())
    found = await call_tool(census, ledger.context, city="Lisbon")
    assert (found.content, found.metadata) == (f"[S1] {Row().text}", {"sources": ["S1"]})
    with pytest.raises(errors.NoSuchThingError, match="no census of Atlantis in 2021"):
        await call_tool(census, ledger.context, city="Atlantis")


def test_the_function_of_the_page_works() -> None:
    """Its arguments, description and properties are those it shows."""
    census: Tool = made_by("@tool(")["population"]
    assert list(census.parameters["properties"]) == ["city", "year"]
    assert (census.is_lookup, census.description) == (True, "How many people live in a city, by census.")


def rows(heading: str) -> dict[str, str]:
    """A section's table: the names in its first column, with the second."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = re.findall(r"^\| (`[^|]*`) \| ([^|]*)\|", section, re.MULTILINE)
    return {name: text.strip() for names, text in found for name in re.findall(r"`(\w+)", names)}


def test_every_property_is_on_the_page() -> None:
    """With its default; a property that nobody can read of is one that nobody uses."""
    defaults = {name: getattr(Tool, name) for name in Tool.__annotations__ if hasattr(Tool, name)}
    words = {False: "no", True: "yes", Effect.PURE: "`pure`", 120.0: "120", "": ""}
    assert rows("Properties") == {name: words[default] for name, default in defaults.items()}


def test_everything_in_the_context_is_on_the_page() -> None:
    """Each field, whether it is called or read."""
    assert set(rows("The context")) == {field.name for field in fields(ToolContext)}
