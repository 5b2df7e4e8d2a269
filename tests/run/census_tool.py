"""A tool that is not explorer's: it answers from a table of its own, and what it answers with can be cited."""

import asyncio
import csv
from pathlib import Path

from pydantic import Field

from explorer.schema.errors import NoSuchThingError
from explorer.schema.tool import Arguments, SourceDraft, Tool, ToolContext, ToolResult


class PopulationArguments(Arguments):
    """What a model asks."""

    city: str = Field(description="Its English name")
    year: int = Field(default=2021, ge=1900, description="Of the census")


class PopulationTool(Tool[PopulationArguments]):
    """Looks a city up in a CSV file with the columns `city`, `year`, `inhabitants`."""

    name = "population"
    description = "How many people live in a city, by census."
    arguments = PopulationArguments
    is_lookup = True
    activity = "asking the census of {year} for {city}"

    def __init__(self, table: Path) -> None:
        self._table = table

    async def execute(self, arguments: PopulationArguments, context: ToolContext) -> ToolResult:
        """Store the row as a source, note it in the table of the run, and say what it holds."""
        context.progress(f"looking for {arguments.city}")
        rows = list(csv.DictReader((await asyncio.to_thread(self._table.read_text)).splitlines()))
        wanted = (arguments.city.casefold(), str(arguments.year))
        found = next((row for row in rows if (row["city"].casefold(), row["year"]) == wanted), None)
        if found is None:
            cities = ", ".join(sorted({row["city"] for row in rows}))
            raise NoSuchThingError(f"no census of {arguments.city} in {arguments.year}; there are: {cities}")
        words = f"{found['city']} had {int(found['inhabitants']):,} inhabitants in {found['year']}."
        (source,) = await context.store(
            [
                SourceDraft(
                    url=f"census:{found['year']}/{found['city'].casefold()}",
                    title=f"Census of {found['year']}: {found['city']}",
                    kind="record",
                    via="census",
                    published=found["year"],
                    text=words,
                )
            ]
        )
        known = context.workspace.read_text("census.md") if context.workspace.exists("census.md") else "# Census\n\n"
        context.workspace.write_text("census.md", f"{known}- {words} [{source.id}]\n")
        return ToolResult(success=True, content=f"[{source.id}] {words} (asked at {context.now():%H:%M})")
