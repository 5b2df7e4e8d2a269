"""One agent and its tools, without helpers and without a report.

    uv run python examples/simple_agent.py

The model is a script, so this runs without a key; with one, drop `client`. What the agent does is in the journal of
its run: cut off anywhere, it goes on from there.
"""

import asyncio
import tempfile
from pathlib import Path

from explorer import Agent, Settings, ToolError, tool
from explorer.testing import ScriptedClient, says

STOCK = {"lantern": 12, "rope": 3}


@tool
async def count_stock(item: str) -> str:
    """Return how many of an item are in stock."""
    if item not in STOCK:
        # For the model: what is wrong, and what would be right.
        raise ToolError(f"there is no item {item!r}; there are: {', '.join(STOCK)}")
    return f"{item}: {STOCK[item]}"


# What a model would say: two questions at once (they run in parallel), a file, an answer.
SCRIPT = (
    says("Let me look.", ("count_stock", {"item": "rope"}), ("count_stock", {"item": "tent"})),
    says("Noted.", ("write_file", {"filepath": "stock.md", "content": "# Stock\n\nrope: 3, tents: none\n"})),
    says("There are 3 ropes and no tents; stock.md holds that."),
)


async def main(workspace: Path) -> None:
    """Run the agent and print what it did."""
    agent = Agent(
        tools=[count_stock],
        run_tools=["write_file"],
        instructions="You keep the stock.",
        settings=Settings(workspace=workspace, shell="off"),
        client=ScriptedClient({"orchestrator": SCRIPT}),
    )
    run = agent.run("How many ropes and tents are there?")
    async for record in run.events():
        print(f"{record.seq:>3}  {record.event.type:<20} {getattr(record.event, 'name', '')}")
    result = await run
    print(f"\n{result.status}: {result.words}\nfiles: {', '.join(run.state.files)}; turns: {result.steps}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
