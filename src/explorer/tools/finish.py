"""The tools that end the orchestrator's work: `finish_exploration`, and `give_answer` for an answer in a form."""

from collections.abc import Callable
from typing import Any, cast

from pydantic import BaseModel, Field

from explorer.schema.errors import ToolError
from explorer.schema.events import AnyEvent, ToolFinished
from explorer.schema.messages import JsonObject
from explorer.schema.tool import Arguments, Tool, ToolContext, ToolResult
from explorer.text.rendering import own


class FinishArguments(Arguments):
    """Arguments of `finish_exploration`."""

    summary: str = Field(min_length=1, description="The answer in a few sentences, and what is not known")
    nothing_found: bool = Field(default=False, description="The sources answered and had nothing relevant")
    interesting_links: list[str] = Field(default=[], description="Addresses worth reading further, best first")


class FinishTool(Tool[FinishArguments]):
    """`finish_exploration`: ends the run when the report is ready."""

    name = "finish_exploration"
    description = (
        "End the exploration, in a turn of its own. Refused while report.md is missing or cites unknown sources; "
        "returned once with the sentences whose quotes or figures are not in their sources."
    )
    arguments = FinishArguments
    activity = "finishing"
    is_for_report = True
    is_parallel = False
    ends_agent = True

    def __init__(self, problem: Callable[[bool], ToolError | None]) -> None:
        """Take a function that returns why the report is not ready, by whether nothing was found."""
        self._problem = problem

    async def execute(self, arguments: FinishArguments, context: ToolContext) -> ToolResult:
        """End the run, or return what is missing."""
        problem = self._problem(arguments.nothing_found)
        if problem is not None:
            raise problem
        links = {"interesting_links": arguments.interesting_links}
        return ToolResult(success=True, content=own("Finished."), metadata=links)


GIVE_ANSWER = "give_answer"
ANSWER = "answer"
"""The key of the answer in the data of the call's record."""


class AnswerTool(Tool[Any]):
    """`give_answer`: takes an answer in the form of a pydantic model; a later answer replaces an earlier one."""

    name = GIVE_ANSWER
    description = (
        "Hand over the answer to the user's program, in its form. Use the evidence; guess nothing. "
        "Call it when the rest is done, before you finish."
    )
    activity = "handing over the answer"
    is_for_report = True

    def __init__(self, form: type[BaseModel]) -> None:
        """Take the form of the answer."""
        self.arguments = form

    async def execute(self, arguments: BaseModel, context: ToolContext) -> ToolResult:
        """Store the answer in the journal, where the program reads it."""
        return ToolResult(success=True, content=own("Kept."), metadata={ANSWER: arguments.model_dump(mode="json")})


def answer_of(event: AnyEvent) -> JsonObject | None:
    """Return the answer that an event has; None for other events."""
    if isinstance(event, ToolFinished) and event.name == GIVE_ANSWER and event.success:
        answer = event.data.get(ANSWER)
        return cast("JsonObject", answer) if isinstance(answer, dict) else None
    return None
