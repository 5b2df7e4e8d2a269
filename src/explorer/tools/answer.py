"""`give_answer`: the orchestrator hands over the answer in the form that the program asked for."""

from typing import Any

from pydantic import BaseModel

from explorer.schema.events import AnyEvent, ToolFinished
from explorer.schema.messages import JsonObject
from explorer.schema.tool import Tool, ToolContext, ToolResult

GIVE_ANSWER = "give_answer"
ANSWER = "answer"
"""The key of the answer in the data of the call's record."""


class AnswerTool(Tool[Any]):
    """Takes an answer in the form of a model of pydantic, whose fields are the arguments; the last one counts."""

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
        """Keep it in the journal, where the program reads it."""
        return ToolResult(success=True, content="Kept.", metadata={ANSWER: arguments.model_dump(mode="json")})


def answer_of(event: AnyEvent) -> JsonObject | None:
    """Return the answer that an event hands over; None when it is no such event."""
    if isinstance(event, ToolFinished) and event.name == GIVE_ANSWER and event.success:
        return event.data[ANSWER]
    return None
