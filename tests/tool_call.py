"""One call of one tool, made as the engine makes it, for tests of the tool."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from explorer.agents.call_results import CallOutputs
from explorer.schema.messages import ToolCall
from explorer.schema.tool import Tool, ToolContext, ToolResult
from explorer.schema.toolbox import Toolbox
from explorer.text.rendering import ModelText, parts_of, without_marks
from explorer.workspace.workspace import Workspace

NO_RUN = ToolContext(Workspace(Path("/nowhere")))
"""For tools that need nothing of a run."""


async def call_tool(tool: Tool, context: ToolContext = NO_RUN, /, **arguments: Any) -> ToolResult:
    """Return what a call brings: its arguments checked, and what went through its context in the result.

    Fences on one line are left out, so that a test says what the result says; those of blocks stay.

    Raises:
        ToolError: The call is refused; the message is for the model.
    """
    outputs = CallOutputs(context.store, context.workspace)
    _, checked = Toolbox([tool]).prepare(ToolCall(id="call_1", name=tool.name, arguments=arguments))
    result = await tool.execute(checked, replace(context, store=outputs.store, workspace=outputs))
    result = outputs.added_to(result)
    return result.model_copy(update={"content": ModelText(without_short_marks(result.content))})


async def call_plainly(tool: Tool, context: ToolContext = NO_RUN, /, **arguments: Any) -> ToolResult:
    """The same without any fence."""
    result = await call_tool(tool, context, **arguments)
    return result.model_copy(update={"content": ModelText(without_marks(result.content))})


def without_short_marks(text: str) -> str:
    """A rendered text without the fences on one line."""
    shown: list[str] = []
    for part in parts_of(text):
        words = text[part.start : part.end]
        shown.append(f"{part.opening}{words}{part.closing}" if part.opening.endswith("\n") else words)
    return "".join(shown)
