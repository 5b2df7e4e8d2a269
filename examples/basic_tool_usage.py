"""Tools on their own: make one of a function, call it, and see what each vendor's model is told about it.

    uv run python examples/basic_tool_usage.py

No model and no key: a script says what a model would say, also where it is wrong.
"""

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Annotated

from pydantic import Field

from explorer import Agent, Settings, tool
from explorer.testing import ScriptedClient, says


# The docstring and the descriptions are all that a model reads: they are written for it.
@tool
async def growth(
    before: Annotated[float, Field(gt=0, description="The earlier figure")],
    after: Annotated[float, Field(description="The later figure")],
) -> str:
    """Return by how much a figure has grown, in percent."""
    return f"{before:g} -> {after:g}: {(after - before) / before:+.1%}"


def show(title: str, value: object) -> None:
    """Print something with a heading."""
    print(f"{title}\n{json.dumps(value, indent=2)}\n")


CALLS = ({"before": 120, "after": 90}, {"before": 0, "after": 90}, {"before": 120, "afterwards": 90})


async def main(workspace: Path) -> None:
    """Call a tool directly, then the way a model's words reach it."""
    show("For Anthropic's models:", growth.to_anthropic())
    show("For OpenAI's models and compatible servers:", growth.to_openai())

    print(f"Called as the function it is: {await growth(120, after=168)}")

    # A model's call is checked against the schema first; what is wrong comes back as words it can act on.
    client = ScriptedClient({"orchestrator": [says("", *(("growth", call) for call in CALLS)), says("That is all.")]})
    run = Agent(tools=[growth], client=client, settings=Settings(workspace=workspace, shell="off")).run("How much?")
    async for record in run.events():
        if record.event.type == "tool_finished":
            asked = CALLS[int(record.event.call.rpartition(".")[2]) - 1]
            print(f"Called with {asked}: {record.event.content}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
