"""`give_answer`: the orchestrator hands over the answer in the form that the program asked for."""

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from explorer.schema.events import JournalRecord, ToolFinished
from explorer.schema.messages import JsonObject
from explorer.schema.tool import Tool, ToolResult
from explorer.schema.tool_context import ToolContext

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


def answer_in(records: Iterable[JournalRecord]) -> JsonObject | None:
    """Return the latest answer that was handed over; None when there is none."""
    answers = [
        record.event.data[ANSWER]
        for record in records
        if isinstance(record.event, ToolFinished) and record.event.name == GIVE_ANSWER and record.event.success
    ]
    return answers[-1] if answers else None
