"""`@tool`: a function as a tool."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, assert_type

import pytest
from pydantic import Field

from engine_stage import Recorder, call_room, started
from explorer.agents.tool_calls import execute_calls
from explorer.schema.errors import ToolError
from explorer.schema.events import TurnTaken
from explorer.schema.messages import JsonObject, ToolCall
from explorer.schema.tool import Effect, SourceDraft, Tool, ToolContext, ToolResult, tool
from explorer.schema.toolbox import Toolbox
from explorer.testing import says
from explorer.workspace.workspace import Workspace
from sources.loopback import Ledger
from tool_call import NO_RUN, call_tool


def test_a_tool_without_arguments_has_an_object_schema() -> None:
    """Both vendors want properties, also when there are none."""

    @tool
    async def now() -> str:
        """Tell the time."""
        return "noon"

    assert now.parameters == {"properties": {}, "type": "object"}
    assert Toolbox([now]).prepare(ToolCall(id="1", name="now", arguments={}))[1].model_dump() == {}


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
    made: Tool = add
    assert (made.name, add.effect, add.timeout_s) == ("add", Effect.PURE, 120.0)
    assert add.description == "Add two numbers.\n\nBoth are whole."
    assert add.parameters["properties"] == {
        "first": {"description": "One number", "type": "integer"},
        "second": {"default": 2, "description": "Another", "type": "integer"},
    }
    assert asyncio.run(call_tool(add, first=1, second=2)) == ToolResult(success=True, content="3")
    assert (send.name, send.effect, send.timeout_s) == ("send_letter", Effect.EXTERNAL, None)
    assert asyncio.run(call_tool(send, words="x")).text == "<<no stamp for x>>"


async def test_a_function_tool_is_run_like_any_other(tmp_path: Path) -> None:
    """Its arguments are checked, defaults filled in, and its failure is told."""
    calls: list[tuple[str, JsonObject]] = [
        ("add", {"first": 1}),
        ("add", {"first": -1}),
        ("send_letter", {"words": "x"}),
    ]
    recorder = Recorder([started(), TurnTaken(agent="searcher-1", turn=says("", *calls), seconds=0.0)])
    await execute_calls(recorder.state(), call_room(recorder, [add, send], Workspace(tmp_path)))
    assert sorted(recorder.results()) == [
        "3",
        "add was not run: `first`: Input should be greater than or equal to 0. Its arguments: first, second",
        "no stamp for x",
    ]


@tool(is_lookup=True, activity="counting {city}")
async def population(city: str, context: ToolContext, *, year: int = 2021) -> ToolResult | str:
    """How many people live in a city."""
    words = f"{city} had 545,796 inhabitants in {year}."
    (source,) = await context.store(
        [SourceDraft(url=f"census:{city}", title=city, kind="record", via="census", text=words)]
    )
    return f"[{source.id}] {words}"


async def test_a_function_can_store_evidence() -> None:
    """Its parameter of type `ToolContext` is no argument of the model's; it gets what a class's `execute` gets."""
    ledger = Ledger()
    assert list(population.parameters["properties"]) == ["city", "year"]
    result = await call_tool(population, ledger.context, city="Lisbon")
    assert (result.content, result.metadata) == (
        "[S1] Lisbon had 545,796 inhabitants in 2021.",
        {"sources": ["S1"]},
    )
    assert ledger.text("S1").endswith("\nLisbon had 545,796 inhabitants in 2021.\n")
    with pytest.raises(ToolError, match="no argument `context`"):
        await call_tool(population, ledger.context, city="Lisbon", context="mine")


async def test_properties_are_given_to_the_decorator() -> None:
    """Each is that of a tool written as a class; those not given have the same defaults."""
    assert (population.is_lookup, population.is_parallel, population.effect) == (True, True, Effect.PURE)
    assert population.describe(population.arguments.model_validate({"city": "Lisbon"})) == "counting Lisbon"
    assert population.__doc__ == "How many people live in a city."


async def test_a_decorated_function_is_still_that_function() -> None:
    """A test calls it with its own parameters, and the type checker knows them and what comes back."""
    ledger = Ledger()
    answer = await population("Porto", replace(NO_RUN, store=ledger.store), year=2011)
    assert_type(answer, ToolResult | str)
    assert answer == "[S1] Porto had 545,796 inhabitants in 2011."
    with pytest.raises(TypeError):
        await population("Porto", NO_RUN, day=3)  # pyright: ignore[reportCallIssue] - the type checker knows the names


def _plain(words: str) -> str:
    return words


async def _untyped(words) -> str:  # noqa: ANN001 - that is the fault  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType]
    return str(words)  # pyright: ignore[reportUnknownArgumentType]


async def _many(*words: str) -> str:
    return " ".join(words)


async def _placed(words: str, /) -> str:
    return words


async def _hidden(_words: str) -> str:
    return _words


async def _lock(words: asyncio.Lock) -> str:
    return str(words)


async def _late(words: "Nowhere") -> str:  # noqa: F821 - that is the fault  # pyright: ignore[reportUndefinedVariable, reportUnknownParameterType]
    return str(words)  # pyright: ignore[reportUnknownArgumentType]


async def _method(self) -> str:  # noqa: ANN001 - as in a class  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType]
    return str(self)  # pyright: ignore[reportUnknownArgumentType]


async def _yields(words: str) -> AsyncGenerator[str]:
    yield words


WRONG: list[tuple[Callable[..., Any], str]] = [
    (_hidden, "_hidden is not a tool: its parameter '_words' begins with an underscore"),
    (_lock, "_lock is not a tool: Unable to generate pydantic-core schema for <class 'asyncio.locks.Lock'>"),
    (
        _late,
        "_late is not a tool: name 'Nowhere' is not defined at the top of its module, where its types are looked up",
    ),
    (
        _method,
        "_method is not a tool: its parameter 'self' is that of a method: make the tool of an object's method",
    ),
    (_yields, "_yields is not a tool: it yields; return the whole result"),
    (_plain, "_plain is not a tool: write it as `async def`"),
    (_untyped, "_untyped is not a tool: its parameter 'words' needs a type"),
    (_many, "_many is not a tool: its parameter 'words' cannot be passed by name"),
    (_placed, "_placed is not a tool: its parameter 'words' cannot be passed by name"),
]


@pytest.mark.parametrize(("function", "fault"), WRONG)
def test_what_cannot_be_a_tool_is_said_at_once(function: Callable[..., Any], fault: str) -> None:
    """When the module is imported, and not by the first model that calls it."""
    with pytest.raises(TypeError) as caught:
        tool(function)
    assert str(caught.value) == fault


async def _send(words: str) -> str:
    return words


def test_a_property_that_there_is_none_of_is_refused() -> None:
    """A limit of time under a wrong name would not count."""
    with pytest.raises(TypeError, match="@tool has no property 'timeout'; it has name, description"):
        tool(timeout=3)(_send)  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"timeout_s": "3"}, "its `timeout_s` is '3'; give seconds, more than 0, or None for no limit"),
        ({"timeout_s": 0}, "its `timeout_s` is 0; give seconds"),
        ({"timeout_s": float("nan")}, "its `timeout_s` is nan; give seconds"),
        ({"effect": "none"}, "its `effect` is 'none'; give one of Effect.PURE, "),
        ({"effect": []}, "its `effect` is []; give one of "),
        ({"is_parallel": "no"}, "its `is_parallel` is 'no'; give True or False"),
        ({"description": None}, "its `description` is None; give text"),
    ],
)
def test_a_property_with_a_value_that_it_cannot_have_is_refused(options: dict[str, Any], fault: str) -> None:
    """When the tool is made: else its first call would fail, or a crash would be handled wrongly."""
    with pytest.raises(TypeError) as caught:
        tool(**options)(_send)
    assert str(caught.value).startswith(f"_send is not a tool: {fault}")


@pytest.mark.parametrize("options", [{"timeout_s": None}, {"timeout_s": 3}, {"effect": Effect.EXTERNAL}])
def test_a_property_may_have_each_of_its_values(options: dict[str, Any]) -> None:
    """Those of its type are taken as they are."""
    made = tool(**options)(_send)
    assert {name: getattr(made, name) for name in options} == options


async def test_parameters_may_have_any_name_and_an_optional_context() -> None:
    """Nothing is said on the program's stderr about `json` and `copy`, which a model of pydantic has, too."""

    @tool
    async def keep(json: str, copy: int = 1, context: ToolContext | None = None) -> str:
        """Keep."""
        return f"{json} {copy} {context is not None}"

    assert list(keep.parameters["properties"]) == ["json", "copy"]
    assert (await call_tool(keep, json="a")).content == "a 1 True"


async def test_what_is_no_text_is_named() -> None:
    """In words of the tool, not of the library that would check it."""

    @tool  # pyright: ignore[reportArgumentType] - that is the fault
    async def count() -> int:
        """Count."""
        return 3

    with pytest.raises(TypeError, match="it returned int; a tool returns text or a ToolResult"):
        await call_tool(count)
