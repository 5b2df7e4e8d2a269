"""`finish_exploration`: the orchestrator says that the report stands."""

from collections.abc import Callable
from typing import Any

from pydantic import Field

from explorer.errors import ToolError
from explorer.tool import Arguments, Tool, ToolResult


class FinishArguments(Arguments):
    """Of `finish_exploration`."""

    summary: str = Field(min_length=1, description="What was found, what is not known")
    interesting_links: list[str] = Field(default=[], description="URLs, best first")


class FinishTool(Tool):
    """End the run, once the report can be handed over."""

    name = "finish_exploration"
    description = (
        "End the exploration, in a turn of its own. Refused while report.md is missing, empty, or cites unknown ids."
    )
    arguments = FinishArguments
    is_parallel = False
    ends_agent = True

    def __init__(self, problem: Callable[[], str]) -> None:
        """Take a function that says why the report cannot be handed over; empty when it can."""
        self._problem = problem

    async def execute(self, **arguments: Any) -> ToolResult:
        """Finish, or say what is missing."""
        problem = self._problem()
        if problem:
            raise ToolError(problem)
        return ToolResult(success=True, content="Finished.", metadata={"links": arguments["interesting_links"]})
