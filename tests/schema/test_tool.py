import json
from datetime import date
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from engine_stage import Recorder, as_json, call_room, compare_with_golden, started, tools_over
from explorer.agents.call_agent import CallAgentArguments, CallAgentTool
from explorer.agents.tool_calls import execute_calls
from explorer.schema.errors import ToolError
from explorer.schema.events import TurnTaken
from explorer.schema.messages import JsonObject, ToolCall
from explorer.schema.tool import Arguments, Tool, ToolContext, ToolResult
from explorer.schema.toolbox import Toolbox
from explorer.testing import says
from explorer.text.rendering import own
from explorer.tools.finish import FinishTool
from explorer.workspace.workspace import Workspace


class Place(BaseModel):
    """Nested, with a docstring nobody asked for."""

    title: str = Field(description="Of the place")


class TitledArguments(Arguments):
    """A class docstring that no model shall read."""

    title: str = Field(description="What it is called")
    kind: Literal["a", "b"] = "a"
    places: list[Place] = Field(default=[])
    properties: dict[str, str] = Field(default={})


class TitledTool(Tool):
    """A tool whose arguments are named like words of the schema itself."""

    name = "titled"
    description = "Keeps titles."
    arguments = TitledArguments

    async def execute(self, arguments: Arguments, context: ToolContext) -> ToolResult:  # noqa: ARG002
        """Show what came."""
        return ToolResult(success=True, content=str(arguments))


def titles_in(schema: JsonObject) -> list[str]:
    """All words that a schema gives as titles, however deep."""
    found: list[str] = []

    def look(part: JsonObject) -> JsonObject:
        if isinstance(part.get("title"), str):
            found.append(part["title"])
        return part

    json.loads(json.dumps(schema), object_hook=look)
    return found


def test_schemas_hold_no_generated_titles() -> None:
    """Titles that pydantic makes and class docstrings are left out; an argument called title stays."""
    schema = TitledTool().parameters
    assert list(schema["properties"]) == ["title", "kind", "places", "properties"]
    assert schema["properties"]["title"] == {"description": "What it is called", "type": "string"}
    assert titles_in(schema) == []
    assert titles_in(TitledArguments.model_json_schema()) != [], "the control: pydantic makes them"
    assert "no model shall read" not in str(schema)
    assert schema["required"] == ["title"]
    assert schema["$defs"]["Place"]["properties"] == {"title": {"description": "Of the place", "type": "string"}}


def test_both_vendors_forms() -> None:
    """The same name, description and parameters, as each protocol wants them."""
    made = TitledTool()
    assert made.to_anthropic() == {"name": "titled", "description": "Keeps titles.", "input_schema": made.parameters}
    assert made.to_openai() == {
        "type": "function",
        "function": {"name": "titled", "description": "Keeps titles.", "parameters": made.parameters},
    }
    assert made.schema().parameters == made.parameters


class Span(BaseModel):
    """From when to when."""

    model_config = ConfigDict(extra="forbid")

    start: date | None = None
    days: int = Field(default=0, ge=0, le=14, description="At most")
    title: str = Field(default="", max_length=80)


class ManyArguments(Arguments):
    """One argument of every kind."""

    word: str = Field(min_length=1, max_length=80, pattern="[a-z]+", description="One word")
    end: int | None = Field(default=None, ge=1)
    either: int | str | None = Field(default=None, description="A number or a name")
    answer: bool | None
    most: int | None = 5
    limit: int = Field(default=30, gt=0, le=200)
    shape: Literal["round", "flat"] = "round"
    fixed: Literal["only"] = "only"
    quiet: bool = False
    names: list[Annotated[str, Field(max_length=9)]] = Field(default=[])
    preset: dict[str, str | int] = Field(default={"title": "kept", "minimum": 3})
    span: Span | None = Field(default=None, description="When")
    spans: list[Span] = Field(default=[], max_length=5)
    pair: tuple[int, Annotated[str, Field(min_length=1)]] = (1, "a")


class ManyTool(Tool):
    """A tool that is asked in every way."""

    name = "many"
    description = "Takes all."
    arguments = ManyArguments

    async def execute(self, arguments: Arguments, context: ToolContext) -> ToolResult:  # noqa: ARG002
        """Show what came."""
        return ToolResult(success=True, content=str(arguments))


MANY_TOLD: JsonObject = {
    "word": {"description": "One word", "type": "string"},
    "end": {"type": "integer"},
    "either": {"anyOf": [{"type": "integer"}, {"type": "string"}], "description": "A number or a name"},
    "answer": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
    "most": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 5},
    "limit": {"default": 30, "maximum": 200, "type": "integer"},
    "shape": {"default": "round", "enum": ["round", "flat"], "type": "string"},
    "fixed": {"const": "only", "default": "only", "type": "string"},
    "quiet": {"type": "boolean"},
    "names": {"items": {"type": "string"}, "type": "array"},
    "preset": {
        "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "default": {"title": "kept", "minimum": 3},
        "type": "object",
    },
    "span": {"$ref": "#/$defs/Span", "description": "When"},
    "spans": {"items": {"$ref": "#/$defs/Span"}, "maxItems": 5, "type": "array"},
    "pair": {
        "default": [1, "a"],
        "maxItems": 2,
        "minItems": 2,
        "prefixItems": [{"type": "integer"}, {"type": "string"}],
        "type": "array",
    },
}


def test_a_model_is_told_what_is_right_and_not_all_that_is_refused() -> None:
    """Kinds, choices, upper bounds and telling defaults stay, lower bounds, patterns and needless nulls go.

    In nested models too; values are left as they are, and a null that says something of its own is told.
    """
    schema = ManyTool().parameters
    assert schema["properties"] == MANY_TOLD
    assert list(schema["properties"]) == list(ManyArguments.model_fields), "in the order they were written"
    assert schema["required"] == ["word", "answer"]
    assert schema["$defs"]["Span"] == {
        "description": "From when to when.",
        "properties": {
            "start": {"type": "string"},
            "days": {"description": "At most", "maximum": 14, "type": "integer"},
            "title": {"type": "string"},
        },
        "type": "object",
    }
    assert set(schema) == {"$defs", "properties", "required", "type"}


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"word": ""}, "`word`: String should have at least 1 character"),
        ({"word": "ABC"}, "`word`: String should match pattern '[a-z]+'"),
        ({"end": 0}, "`end`: Input should be greater than or equal to 1"),
        ({"limit": 0}, "`limit`: Input should be greater than 0"),
        ({"limit": 201}, "`limit`: Input should be less than or equal to 200"),
        ({"shape": "square"}, "`shape`: Input should be 'round' or 'flat'"),
        ({"span": {"days": -1}}, "`span.days`: Input should be greater than or equal to 0"),
        ({"span": {"weeks": 1}}, "no argument `span.weeks`"),
        ({"spans": [{"start": "soon"}]}, "`spans.0.start`: Input should be a valid date"),
        ({"ward": "x"}, "no argument `ward` (did you mean `word`?)"),
    ],
)
def test_what_is_not_told_is_checked_all_the_same(given: JsonObject, fault: str) -> None:
    """A short schema makes nothing looser: what is wrong is refused, and the answer says what would be right."""
    call = ToolCall(id="1", name="many", arguments={"word": "a", "answer": None, **given})
    with pytest.raises(ToolError) as caught:
        Toolbox([ManyTool()]).prepare(call)
    assert fault in caught.value.message
    assert caught.value.message.endswith(f"Its arguments: {', '.join(ManyArguments.model_fields)}")


def test_what_is_told_is_accepted() -> None:
    """Arguments written by the short schema pass, nested ones and a null that has to be said among them."""
    given: JsonObject = {"word": "a", "answer": None, "span": {"start": "2026-08-10", "days": 2}, "end": None}
    checked = Toolbox([ManyTool()]).prepare(ToolCall(id="1", name="many", arguments=given))[1]
    assert isinstance(checked, ManyArguments)
    assert checked.span == Span(start=date(2026, 8, 10), days=2)
    assert (checked.end, checked.limit, checked.preset) == (None, 30, {"title": "kept", "minimum": 3})


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (ToolResult(success=True, content="yes"), "<<yes>>"),
        (ToolResult(success=True, content=own("yes")), "yes"),
        (ToolResult(success=False, content="half", error="no"), "<<no>>"),
        (ToolResult(success=False), "The tool failed without saying why."),
    ],
)
def test_what_the_model_reads_of_a_result(result: ToolResult, text: str) -> None:
    """The content of a success, the error of a failure, and never nothing for a failure."""
    assert result.text == text


def test_what_models_see_of_the_core_tools(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Names, descriptions and schemas are as reviewed: a change here changes how every model works."""

    async def unused_problem(_is_empty: bool) -> None:  # noqa: FBT001 - the form of a tool's function
        return None

    async def unused(_asked: CallAgentArguments, _call: str) -> ToolResult:
        raise NotImplementedError

    shown = [
        *tools_over(Workspace(tmp_path)),
        CallAgentTool(unused, "- searcher: Searches.\n- writer: Writes."),
        FinishTool(unused_problem),
    ]
    schemas = {made.name: {"description": made.description, "parameters": made.parameters} for made in shown}
    compare_with_golden(request, "schemas.json", as_json(schemas))


async def test_finishing_is_refused_until_the_report_stands(tmp_path: Path) -> None:
    """The problem is the model's to mend; once there is none, the agent ends with the words it gave."""
    problems = [ToolError("there is no report.md yet"), None]

    async def problem(_is_empty: bool) -> ToolError | None:  # noqa: FBT001 - the form of a tool's function
        return problems.pop(0)

    finish = FinishTool(problem)
    calls: list[tuple[str, JsonObject]] = [("finish_exploration", {"summary": "All well."})] * 2
    recorder = Recorder([started(), TurnTaken(agent="searcher-1", turn=says("", *calls), seconds=0.0)])
    await execute_calls(recorder.state(), call_room(recorder, [finish], Workspace(tmp_path)))
    assert recorder.results() == ["there is no report.md yet", "Finished."]
    assert recorder.state().ends
