"""One agent, its tools and the loop, without anything around them.

    uv run python examples/simple_agent.py

The model is a script, so this runs without a key. The agent's state is a fold of the events that `record` puts on
disk: that is why an agent cut off anywhere can go on from its journal.
"""

import asyncio
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from explorer.agents.budget import Budget
from explorer.agents.loop import AgentContext, PromptPrefix, run_agent
from explorer.agents.policies import Ending
from explorer.agents.tool_calls import CallServices, Toolbox
from explorer.journal.agent_state import AgentState
from explorer.journal.journal import Journal
from explorer.journal.listing import read_records
from explorer.llm.scripted import ScriptedClient, says
from explorer.schema.errors import ToolError
from explorer.schema.events import AgentStarted, AnyEvent, Status
from explorer.schema.function_tool import tool
from explorer.schema.settings import Limits
from explorer.schema.tool import Tool
from explorer.tools.files import file_tools
from explorer.workspace.workspace import Workspace

STOCK = {"lantern": 12, "rope": 3}


@tool
async def count_stock(item: str) -> str:
    """Tell how many of an item are in stock."""
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


async def explore(folder: Path) -> None:
    """Run the agent in a folder and print what it did."""
    workspace = Workspace(folder)
    stock_tool: Tool = count_stock
    tools = [stock_tool, *file_tools(workspace)]
    state = AgentState("clerk-1")
    (folder / ".explorer").mkdir()
    journal = Journal.open(folder / ".explorer", lambda: datetime.now(UTC))

    async def record(event: AnyEvent) -> None:
        await journal.append(event)
        state.apply(event)

    async def advise(_state: AgentState) -> None:
        """In a run: notes about the budget, and compaction. Here nothing is to be said."""

    context = AgentContext(
        prefix=PromptPrefix(model="script", system="You keep the stock.", tools=tuple(tool.schema() for tool in tools)),
        client=ScriptedClient({"clerk": SCRIPT}),
        calls=CallServices(Toolbox(tools), record, workspace),
        account=lambda: budget.root,
        on_exhausted=lambda _state, limit: Ending(Status.PARTIAL, f"{limit} limit", ""),
        worst_cost=lambda _input_tokens, _output_tokens: 0.0,
        max_output_tokens=4_000,
        clock=monotonic,
        before_request=advise,
    )
    budget = Budget(Limits(max_steps=10), monotonic)
    try:
        await record(AgentStarted(agent="clerk-1", role="clerk", task="How many ropes and tents?", max_steps=10))
        finished = await run_agent(state, context)
    finally:
        journal.close()
    for line in read_records(folder):
        print(f"{line.seq:>3}  {line.event.type:<15} {getattr(line.event, 'name', '')}")
    print(f"\n{finished.status}: {finished.summary}\nfiles: {', '.join(state.files)}; turns: {state.steps}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(explore(Path(place)))
