"""The tools that end the orchestrator's work: `finish_exploration`, and `give_answer` for an answer in a form."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, cast

from pydantic import BaseModel, Field, PydanticUserError

from explorer.schema.errors import ConfigError, ToolError
from explorer.schema.events import AnyEvent, ToolFinished
from explorer.schema.messages import JsonObject
from explorer.schema.tool import Arguments, Tool, ToolContext, ToolResult, schema_for_model
from explorer.text.rendering import own

Form = TypeVar("Form", bound=BaseModel)


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

    def __init__(self, problem: Callable[[bool], Awaitable[ToolError | None]]) -> None:
        """Take a function that returns why the report is not ready, by whether nothing was found."""
        self._problem = problem

    async def execute(self, arguments: FinishArguments, context: ToolContext) -> ToolResult:
        """End the run, or return what is missing."""
        problem = await self._problem(arguments.nothing_found)
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

    def parse(self, given: Mapping[str, object]) -> BaseModel:
        """Return the answer, validated as JSON: a strict form takes a date as text only from there."""
        return self.arguments.model_validate_json(json.dumps({**self._defaults, **given}))

    async def execute(self, arguments: BaseModel, context: ToolContext) -> ToolResult:
        """Store the answer in the journal by the names of its fields, as `answer_in_form` reads it."""
        answer = arguments.model_dump(mode="json", round_trip=True)
        return ToolResult(success=True, content=own("Kept."), metadata={ANSWER: answer})


def check_form(form: object) -> None:
    """Check that a model can be asked for an answer in a form: vendors take objects with fields only.

    Raises:
        ConfigError: It cannot.
    """
    hint = "derive a class from pydantic.BaseModel, with a field for each part of the answer"
    if not (isinstance(form, type) and issubclass(form, BaseModel)):
        raise ConfigError(f"output_type is not a model of pydantic: {form!r}", hint=hint)
    try:
        schema = schema_for_model(form)
    except PydanticUserError as error:
        raise ConfigError(f"output_type {form.__name__} has no JSON Schema: {error.message}", hint=hint) from error
    if schema.get("type") != "object":
        raise ConfigError(f"output_type {form.__name__} is not an object with fields", hint=hint)


def answer_in_form(form: type[Form], answer: JsonObject) -> Form:
    """Return a stored answer as its form.

    Raises:
        ValidationError: It does not fit.
    """
    return form.model_validate_json(json.dumps(answer), by_name=True, by_alias=False)


def answer_of(event: AnyEvent) -> JsonObject | None:
    """Return the answer that an event has; None for other events."""
    if isinstance(event, ToolFinished) and event.name == GIVE_ANSWER and event.success:
        answer = event.data.get(ANSWER)
        return cast("JsonObject", answer) if isinstance(answer, dict) else None
    return None
