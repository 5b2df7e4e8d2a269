"""One call of one tool, made as the engine makes it, for tests of the tool."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from explorer.agents.call_results import CallOutputs
from explorer.agents.tool_calls import Toolbox
from explorer.schema.messages import ToolCall
from explorer.schema.tool import Tool, ToolContext, ToolResult
from explorer.workspace.workspace import Workspace

NO_RUN = ToolContext(Workspace(Path("/nowhere")))
"""For tools that need nothing of a run."""


async def call_tool(tool: Tool, context: ToolContext = NO_RUN, /, **arguments: Any) -> ToolResult:
    """Return what a call brings: its arguments checked, and what went through its context in the result.

    Raises:
        ToolError: The call is refused; the message is for the model.
    """
    outputs = CallOutputs(context.store, context.workspace)
    _, checked = Toolbox([tool]).prepare(ToolCall(id="call_1", name=tool.name, arguments=arguments))
    result = await tool.execute(checked, replace(context, store=outputs.store, workspace=outputs))
    return outputs.added_to(result)
