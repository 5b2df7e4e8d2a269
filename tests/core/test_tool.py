import asyncio
import json
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from core.stage import Recorder, as_json, call_room, compare_with_golden, started, tools_over
from explorer.calls import Toolbox, answer
from explorer.events import TurnTaken
from explorer.llm.scripted import says
from explorer.messages import JsonObject, ToolCall
from explorer.tool import Arguments, Effect, Tool, ToolResult, tool
from explorer.tools.call_agent import CallAgentArguments, CallAgentTool
from explorer.tools.finish import FinishTool
from explorer.workspace import Workspace


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

    async def execute(self, **arguments: Any) -> ToolResult:
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
    assert schema["additionalProperties"] is False
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


def test_a_tool_without_arguments_has_an_object_schema() -> None:
    """Both vendors want properties, also when there are none."""

    @tool
    async def now() -> str:
        """Tell the time."""
        return "noon"

    assert now.parameters == {"additionalProperties": False, "properties": {}, "type": "object"}
    assert Toolbox([now]).prepare(ToolCall(id="1", name="now", arguments={}))[1] == {}


@tool
async def add(
    first: Annotated[int, Field(description="One number", ge=0)],
    second: Annotated[int, Field(description="Another")] = 2,
) -> str:
    """Add two numbers.

    Both are whole.
    """
    return str(first + second)


@tool(name="send_letter", effect=Effect.EXTERNAL, timeout_s=None)
async def send(words: str) -> ToolResult:
    """Send."""
    return ToolResult(success=False, error=f"no stamp for {words}")


def test_a_function_becomes_a_tool() -> None:
    """The docstring is the description, annotations are the arguments, a string is a success, a result is itself."""
    assert isinstance(add, Tool)
    assert (add.name, add.effect, add.timeout_s) == ("add", Effect.PURE, 120.0)
    assert add.description == "Add two numbers.\n\nBoth are whole."
    assert add.parameters["properties"] == {
        "first": {"description": "One number", "minimum": 0, "type": "integer"},
        "second": {"default": 2, "description": "Another", "type": "integer"},
    }
    assert asyncio.run(add.execute(first=1, second=2)) == ToolResult(success=True, content="3")
    assert (send.name, send.effect, send.timeout_s) == ("send_letter", Effect.EXTERNAL, None)
    assert asyncio.run(send.execute(words="x")).text == "no stamp for x"


async def test_a_function_tool_is_run_like_any_other(tmp_path: Path) -> None:
    """Its arguments are checked, defaults filled in, and its failure is told."""
    calls: list[tuple[str, JsonObject]] = [
        ("add", {"first": 1}),
        ("add", {"first": -1}),
        ("send_letter", {"words": "x"}),
    ]
    recorder = Recorder([started(), TurnTaken(agent="searcher-1", turn=says("", *calls), seconds=0.0)])
    await answer(recorder.state(), call_room(recorder, [add, send], Workspace(tmp_path)))
    assert sorted(recorder.results()) == [
        "3",
        "add was not run: `first`: Input should be greater than or equal to 0. Its arguments: first, second",
        "no stamp for x",
    ]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (ToolResult(success=True, content="yes"), "yes"),
        (ToolResult(success=False, content="half", error="no"), "no"),
        (ToolResult(success=False), "The tool failed without saying why."),
    ],
)
def test_what_the_model_reads_of_a_result(result: ToolResult, text: str) -> None:
    """The content of a success, the error of a failure, and never nothing for a failure."""
    assert result.text == text


def test_what_models_see_of_the_core_tools(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Names, descriptions and schemas are as reviewed: a change here changes how every model works."""

    async def unused(_asked: CallAgentArguments, _call: str) -> ToolResult:
        raise NotImplementedError

    shown = [
        *tools_over(Workspace(tmp_path)),
        CallAgentTool(unused, "- searcher: Searches.\n- writer: Writes."),
        FinishTool(lambda: ""),
    ]
    schemas = {made.name: {"description": made.description, "parameters": made.parameters} for made in shown}
    compare_with_golden(request, "schemas.json", as_json(schemas))


async def test_finishing_is_refused_until_the_report_stands(tmp_path: Path) -> None:
    """The problem is the model's to mend; once there is none, the agent ends with the words it gave."""
    problems = ["there is no report.md yet", ""]
    finish = FinishTool(lambda: problems.pop(0))
    calls: list[tuple[str, JsonObject]] = [("finish_exploration", {"summary": "All well."})] * 2
    recorder = Recorder([started(), TurnTaken(agent="searcher-1", turn=says("", *calls), seconds=0.0)])
    await answer(recorder.state(), call_room(recorder, [finish], Workspace(tmp_path)))
    assert recorder.results() == ["there is no report.md yet", "Finished."]
    assert recorder.state().ends
