"""`finish_exploration`: the orchestrator says that the report stands."""

from collections.abc import Callable

from pydantic import Field

from explorer.schema.errors import ToolError
from explorer.schema.tool import Arguments, Tool, ToolContext, ToolResult


class FinishArguments(Arguments):
    """Of `finish_exploration`."""

    summary: str = Field(min_length=1, description="What was found, what is not known")
    nothing_found: bool = False
    """The services answered, and had nothing relevant."""
    interesting_links: list[str] = Field(default=[], description="URLs, best first")


class FinishTool(Tool[FinishArguments]):
    """End the run, once the report can be handed over."""

    name = "finish_exploration"
    description = "End the exploration, in a turn of its own. Refused while report.md is missing or faulty."
    arguments = FinishArguments
    activity = "finishing"
    is_for_report = True
    is_parallel = False
    ends_agent = True

    def __init__(self, problem: Callable[[bool], ToolError | None]) -> None:
        """Take a function that returns why the report cannot be handed over, by whether nothing was found."""
        self._problem = problem

    async def execute(self, arguments: FinishArguments, context: ToolContext) -> ToolResult:
        """Finish, or say what is missing."""
        problem = self._problem(arguments.nothing_found)
        if problem is not None:
            raise problem
        links = {"interesting_links": arguments.interesting_links}
        return ToolResult(success=True, content="Finished.", metadata=links)
