"""Tools on their own: make one of a function, call it, and see what each vendor's model is told about it.

    uv run python examples/basic_tool_usage.py

No engine, no model, no key: a tool is a class with a name, a schema and one method.
"""

import asyncio
import json
from pathlib import Path
from typing import Annotated

from pydantic import Field

from explorer.agents.tool_calls import Toolbox
from explorer.schema.errors import ToolError
from explorer.schema.function_tool import tool
from explorer.schema.messages import ToolCall
from explorer.schema.tool import Tool
from explorer.schema.tool_context import ToolContext
from explorer.workspace.workspace import Workspace


# The docstring and the descriptions are all that a model reads: they are written for it.
@tool
async def growth(
    before: Annotated[float, Field(gt=0, description="The earlier figure")],
    after: Annotated[float, Field(description="The later figure")],
) -> str:
    """Tell by how much a figure has grown, in percent."""
    return f"{before:g} -> {after:g}: {(after - before) / before:+.1%}"


def show(title: str, value: object) -> None:
    """Print something with a heading."""
    print(f"{title}\n{json.dumps(value, indent=2)}\n")


async def main() -> None:
    """Call a tool directly, then the way a model's words reach it."""
    made: Tool = growth
    show("For Anthropic's models:", made.to_anthropic())
    show("For OpenAI's models and compatible servers:", made.to_openai())

    print(f"Called as the function it is: {await growth(120, after=168)}")

    # A model's call is checked against the schema first; what is wrong comes back as words it can act on.
    toolbox = Toolbox([made])
    # In a run the engine makes the context: who calls, the clock, the run's files, the store of sources.
    context = ToolContext(Workspace(Path()))
    for asked in ({"before": 120, "after": 90}, {"before": 0, "after": 90}, {"before": 120, "afterwards": 90}):
        call = ToolCall(id="1", name="growth", arguments=dict(asked))
        try:
            found, arguments = toolbox.prepare(call)
            print(f"Called with {asked}: {(await found.execute(arguments, context)).text}")
        except ToolError as error:
            print(f"Called with {asked}: {error.message}")


if __name__ == "__main__":
    asyncio.run(main())
