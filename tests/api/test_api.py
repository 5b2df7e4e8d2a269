"""What `from explorer import ...` offers, used as its users do: by a real run with a scripted model."""

import asyncio
import inspect
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, RootModel, computed_field

import explorer
from explorer import (
    Agent,
    Approval,
    ApprovalRequest,
    ConfigError,
    JournalRecord,
    Limits,
    Request,
    Run,
    RunHooks,
    RunResult,
    Secrets,
    Settings,
    SourceDraft,
    Status,
    ToolContext,
    Turn,
    explore,
    explore_sync,
    fork,
    load_settings,
    open_run,
    resume,
    tool,
)
from explorer.testing import Script, ScriptedClient, says

DOCS = Path(__file__).resolve().parents[2] / "docs" / "python.md"
REPORT = "# Lisbon\n\nLisbon has 545,796 inhabitants [S1], and that is the latest count of the census there is [S1].\n"
FINISH = ("finish_exploration", {"summary": "Lisbon was counted."})
HELPER = ("call_agent", {"agent_type": "searcher", "task_description": "How many people live in Lisbon?"})


class Population(BaseModel):
    """An answer that a program reads."""

    city: str
    inhabitants: int = Field(gt=0, description="By the latest count")


@tool
async def census(city: str, context: ToolContext) -> str:
    """Look up the inhabitants of a city in the census."""
    text = f"{city} has 545,796 inhabitants, says the census of 2021."
    draft = SourceDraft(url="census:2021/lisbon", title="Census 2021", kind="page", via="census", text=text)
    (source,) = await context.store([draft])
    return f"{text} [{source.id}]"


def scripts(*ending: Turn) -> dict[str, Sequence[Turn] | Script]:
    """A team that asks the census and reports it; the orchestrator's last words are given."""
    return {
        "orchestrator": [
            says("", HELPER),
            says("", ("write_file", {"filepath": "report.md", "content": REPORT})),
            *ending,
        ],
        "searcher": [says("", ("census", {"city": "Lisbon"})), says("545,796 [S1].")],
    }


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A workspace of its own, and no shell."""
    return Settings(workspace=tmp_path / "workspace", shell="off")


@pytest.mark.slow
async def test_a_question_becomes_a_report_with_evidence_of_ones_own_tool(settings: Settings) -> None:
    """Three lines: the tool needs no role file to name it, and what it stores is cited and confirmed."""
    client = ScriptedClient(scripts(says("", FINISH)))
    run = explore("How many people live in Lisbon?", settings=settings, tools=[census], client=client)
    result = await run
    assert (result.status, result.reason) == (Status.COMPLETE, "")
    assert (result.citations, result.verdicts["supported"]) == (1, 1)
    assert "545,796 inhabitants [1]" in run.report
    assert run.sources["S1"].url == "census:2021/lisbon"
    assert result._repr_markdown_().startswith("# Lisbon")
    assert await run is result


async def test_events_come_while_the_run_works(settings: Settings) -> None:
    """Each record once, in order, from the first to the last; awaiting the run afterwards asks nothing again."""
    client = ScriptedClient(scripts(says("", FINISH)))
    run = explore("How many?", settings=settings, tools=[census], client=client)
    seen = [record async for record in run.events()]
    assert [record.seq for record in seen] == list(range(1, len(seen) + 1))
    assert seen[0].event.type == "run_started"
    assert seen[-1].event.type == "run_finished"
    assert tuple(seen) == run.records
    asked = len(client.requests)
    assert (await run).status is Status.COMPLETE
    assert len(client.requests) == asked
    assert [record async for record in open_run(run.folder).events()] == seen


async def test_a_run_awaited_twice_works_once(settings: Settings) -> None:
    """Two tasks that wait at the same time get one result; one that gives up leaves the work to the other."""
    client = ScriptedClient(scripts(says("", FINISH)))
    run = explore("How many?", settings=settings, tools=[census], client=client)

    async def result() -> RunResult:
        return await run

    async with asyncio.TaskGroup() as group:
        first, second, impatient = (group.create_task(result()) for _ in range(3))
        seen = [record async for record in run.events() if impatient.cancel() or True]
    assert first.result() is second.result() is run._result
    assert impatient.cancelled()
    assert tuple(seen) == run.records
    assert [record.event.type for record in seen].count("run_started") == 1
    assert len(client.requests) == 5


async def test_events_read_late_begin_at_the_first(settings: Settings) -> None:
    """Who iterates over a run that another task awaits already misses no record."""
    run = explore("How many?", settings=settings, tools=[census], client=ScriptedClient(scripts(says("", FINISH))))
    begun = asyncio.Event()
    late: list[JournalRecord] = []

    async def read_late() -> None:
        await begun.wait()
        late.extend([record async for record in run.events()])

    async with asyncio.TaskGroup() as group:
        group.create_task(read_late())
        async for record in run.events():
            if record.event.type == "agent_started":
                begun.set()
    assert tuple(late) == run.records


async def test_a_run_that_all_have_left_is_cancelled(settings: Settings) -> None:
    """With its last waiter the work ends, report included, and the run can be awaited by its id again."""
    reached = asyncio.Event()

    class Stuck:
        """A model that never answers."""

        async def generate(self, request: Request) -> Turn:
            """Say that it was asked."""
            reached.set()
            await asyncio.Event().wait()
            return says(request.role)

    run = explore("How many?", settings=settings, client=Stuck())

    async def result() -> RunResult:
        return await run

    tasks = [asyncio.ensure_future(result()) for _ in range(2)]
    await reached.wait()
    tasks[0].cancel()
    await asyncio.wait([tasks[0]])
    assert run._work is not None
    tasks[1].cancel()
    await asyncio.wait(tasks)
    assert run._work is None
    assert "the run was cancelled" in run.report


async def test_leaving_the_events_early_cancels_a_run_that_can_be_resumed(settings: Settings) -> None:
    """What was recorded stays; the run is resumed by its id, with nothing asked twice."""
    client = ScriptedClient(scripts(says("", FINISH)))
    run = explore("How many?", settings=settings, tools=[census], client=client)
    async with aclosing(run.events()) as events:
        async for record in events:
            if record.event.type == "agent_finished":
                break
    asked = len(client.requests)
    again = ScriptedClient(scripts(says("", FINISH)))
    result = await resume(run.id, settings=settings, tools=[census], client=again)
    assert result.status is Status.COMPLETE
    # Five in all; the one that was under way when the run was cancelled is made again.
    assert 5 <= asked + len(again.requests) <= 6


@pytest.mark.slow
async def test_an_answer_in_a_form_is_asked_for_until_it_is_there(settings: Settings) -> None:
    """The orchestrator is refused the end without it, and told what does not fit; the program gets an instance."""
    wrong = ("give_answer", {"city": "Lisbon", "inhabitants": -1})
    right = ("give_answer", {"city": "Lisbon", "inhabitants": 545_796})
    client = ScriptedClient(scripts(says("", FINISH), says("", wrong), says("", right), says("", FINISH)))
    run = explore("How many?", settings=settings, tools=[census], client=client, output_type=Population)
    with pytest.raises(ConfigError, match="no answer in that form"):
        run.output(Population)
    assert (await run).status is Status.COMPLETE
    assert run.output(Population) == Population(city="Lisbon", inhabitants=545_796)
    shown = [str(request.history[-1]) for request in client.requests if request.role == "orchestrator"]
    assert any("the user's program waits for the answer" in words for words in shown)
    assert any("greater than 0" in words for words in shown)


async def test_an_agent_in_three_lines(settings: Settings) -> None:
    """One agent with a tool answers in words; there is no report, and its evidence is there."""
    client = ScriptedClient({"orchestrator": [says("", ("census", {"city": "Lisbon"})), says("545,796 [S1].")]})
    run = Agent(tools=[census], client=client, settings=settings).run("How many people live in Lisbon?")
    result = await run
    assert (result.status, result.words, result.report) == (Status.COMPLETE, "545,796 [S1].", None)
    assert set(run.sources) == {"S1"}
    (request, _) = client.requests
    assert [schema.name for schema in request.tools] == ["census"]
    assert not (run.folder / "report.md").exists()


async def test_an_agent_is_resumed_as_an_agent(settings: Settings) -> None:
    """Its instructions and tools are on record: resumed, it is asked for no report, and leaves none when cut off."""
    turns: dict[str, Sequence[Turn] | Script] = {
        "orchestrator": [says("", ("census", {"city": "Lisbon"})), says("545,796 [S1].")]
    }
    agent = Agent(tools=[census], client=ScriptedClient(turns), settings=settings, instructions="Count people.")
    run = agent.run("How many people live in Lisbon?")
    async with aclosing(run.events()) as events:
        async for record in events:
            if record.event.type == "tool_finished":
                break
    assert not (run.folder / "report.md").exists()
    client = ScriptedClient(turns)
    result = await resume(run.folder, settings=settings, tools=[census], client=client)
    assert (result.status, result.words, result.report) == (Status.COMPLETE, "545,796 [S1].", None)
    (request,) = client.requests
    assert request.system == "Count people."
    assert [schema.name for schema in request.tools] == ["census"]


async def test_a_run_with_a_client_of_its_own_goes_to_no_vendor(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resumed without the client, it is refused, whatever keys there are: its conversation was not for them."""
    run = Agent(client=ScriptedClient({"orchestrator": [says("Four.")]}), settings=settings).run("Two and two?")
    await run
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    for given in (settings, load_settings(workspace=settings.workspace)):
        with pytest.raises(ConfigError, match="answered by a client of the program") as raised:
            await resume(run, "And three?", settings=given)
        assert "client=" in raised.value.hint
    replies = ScriptedClient({"orchestrator": [says("Four."), says("Five.")]})
    assert (await resume(run, "And three?", settings=settings, client=replies)).words == "Five."


async def test_an_agent_answers_in_a_form(settings: Settings) -> None:
    """The form is the schema of a tool; an agent that never calls it ends as partial, and says why."""
    answer = says("", ("give_answer", {"city": "Lisbon", "inhabitants": 5}))
    client = ScriptedClient({"orchestrator": [answer, says("Five.")]})
    run = Agent(client=client, settings=settings, output_type=Population).run("How many?")
    assert (await run).status is Status.COMPLETE
    assert run.output(Population).inhabitants == 5
    silent = Agent(client=ScriptedClient({"orchestrator": [says("5")]}), settings=settings, output_type=Population)
    result = await silent.run("How many?")
    assert result.status is Status.PARTIAL
    assert "without an answer in the form" in result.reason


class Kind(Enum):
    """A kind of place."""

    CITY = "city"


class Place(BaseModel):
    """A form with all that makes stored JSON differ from what was given."""

    model_config = ConfigDict(strict=True, extra="forbid")
    name: str = Field(default="unknown", alias="placeName")
    kind: Kind = Field(validation_alias=AliasChoices("sort", "kind"), serialization_alias="out")
    counted: datetime
    parts: "list[Place]" = []

    @computed_field
    @property
    def size(self) -> int:
        """Return how many parts it has."""
        return len(self.parts)


async def test_an_answer_comes_back_as_it_was_given(settings: Settings) -> None:
    """Aliases, strict types, computed fields and a form that contains itself lose nothing, also when read later."""
    part = {"placeName": "Alfama", "sort": "city", "counted": "2021-04-19T00:00:00Z"}
    answer = {"placeName": "Lisbon", "sort": "city", "counted": "2021-04-19T00:00:00Z", "parts": [part]}
    client = ScriptedClient({"orchestrator": [says("", ("give_answer", answer)), says("Done.")]})
    run = Agent(client=client, settings=settings, output_type=Place).run("Which?")
    await run
    for place in (run.output(Place), open_run(run.folder).output(Place)):
        assert place == Place.model_validate_json(json.dumps(answer))
    assert (run.output(Place).name, run.output(Place).parts[0].name) == ("Lisbon", "Alfama")
    (offered,) = [one.parameters for one in client.requests[0].tools if one.name == "give_answer"]
    assert (offered["type"], list(offered["properties"])) == ("object", ["placeName", "sort", "counted", "parts"])


class Callback(BaseModel):
    """A form that no JSON has."""

    call: Callable[[], int]


@pytest.mark.parametrize("form", [dict, list[int], "Place", RootModel[list[int]], Callback])
def test_a_form_that_no_model_can_fill_in_is_refused(settings: Settings, form: Any) -> None:  # noqa: ANN401
    """When the run is made, in one line, and not by the vendor."""
    with pytest.raises(ConfigError, match="output_type"):
        explore("How many?", settings=settings, output_type=form)


async def test_a_function_answers_for_the_user(settings: Settings) -> None:
    """It sees the call that a rule asks about, and its answer decides; without one, the call is refused."""
    ruled = settings.model_copy(update={"approval_rules": ("ask census(Lis*)",)})
    asked: list[ApprovalRequest] = []

    async def approve(request: ApprovalRequest) -> Approval:
        asked.append(request)
        return Approval(is_allowed=True)

    client = ScriptedClient(scripts(says("", FINISH)))
    result = await explore("How many?", settings=ruled, tools=[census], client=client, approve=approve)
    assert result.status is Status.COMPLETE
    assert [(one.agent, one.role, one.tool, one.arguments) for one in asked] == [
        ("searcher-1", "searcher", "census", {"city": "Lisbon"})
    ]
    script: dict[str, Sequence[Turn] | Script] = {
        "orchestrator": [says("", ("census", {"city": "Lisbon"})), says("I could not.")]
    }
    agent = Agent(tools=[census], settings=ruled, client=ScriptedClient(script))
    run = agent.run("How many?")
    await run
    assert run.sources == {}
    with pytest.raises(ValueError, match="maybe"):
        Settings(approval_rules=("maybe census",))


async def test_a_run_is_forked_and_followed_up(settings: Settings) -> None:
    """A fork has the past up to a record; a follow-up goes to the finished run."""
    client = ScriptedClient(scripts(says("", FINISH), says("They are 545,796 [S1].")))
    run = explore("How many?", settings=settings, tools=[census], client=client)
    await run
    copy = await fork(run, 3)
    assert [record.event.type for record in copy.records][-1] == "run_forked"
    assert len(copy.records) == 4
    with pytest.raises(ConfigError, match="was only opened"):
        await copy
    again = await resume(run, "In words?", settings=settings, tools=[census], client=client)
    assert "545,796" in again.answer


@pytest.mark.slow
def test_without_a_loop(settings: Settings) -> None:
    """A plain script needs no `asyncio`."""
    client = ScriptedClient(scripts(says("", FINISH)))
    assert explore_sync("How many?", settings=settings, tools=[census], client=client).status is Status.COMPLETE
    alone = Agent(client=ScriptedClient({"orchestrator": [says("Four.")]}), settings=settings)
    assert alone.run_sync("Two and two?").words == "Four."


async def test_in_a_notebook_the_way_out_is_named(settings: Settings) -> None:
    """Where an event loop runs already, the error says to await."""
    with pytest.raises(ConfigError) as raised:
        explore_sync("How many?", settings=settings)
    assert "await explore" in raised.value.hint


def test_settings_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for the command line: variables, files, and what the program says itself wins."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("EXPLORER_MAX_STEPS", "7")
    (tmp_path / "explorer.toml").write_text("lang = 'de'\n")
    settings = load_settings(model="offline")
    assert (settings.limits.max_steps, settings.model, settings.language) == (7, "offline", "de")
    monkeypatch.setenv("EXPLORER_MAX_STEP", "7")
    with pytest.raises(ConfigError, match="EXPLORER_MAX_STEP"):
        load_settings()


def test_a_group_of_settings_keeps_what_is_not_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of steps in the program does not lift the limit of money in the environment, nor lose a key."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("EXPLORER_MAX_COST", "0.5")
    monkeypatch.setenv("TAVILY_API_KEY", "of-the-environment")
    settings = load_settings(limits=Limits(max_steps=7), secrets=Secrets(brave_key="of-the-program"))
    assert (settings.limits.max_steps, settings.limits.max_cost_usd) == (7, 0.5)
    keys = settings.secrets.model_extra or {}
    assert {name: key.get_secret_value() for name, key in keys.items()} == {
        "tavily_key": "of-the-environment",
        "brave_key": "of-the-program",
    }
    assert load_settings(limits=Limits(max_cost_usd=None)).limits.max_cost_usd is None


@pytest.mark.parametrize(
    ("given", "fault"),
    [({"modle": "offline"}, "modle: "), ({"limits": {"max_cost_usd": "much"}}, "limits.max_cost_usd: ")],
)
def test_settings_of_the_program_are_checked(
    given: dict[str, Any], fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wrong is a `ConfigError` with the name of the field, as for a variable."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigError) as raised:
        load_settings(**given)
    assert raised.value.message.startswith(fault)


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("model", "settings=load_settings(model=...)"),
        ("max_cost_usd", "settings=load_settings(limits=Limits(max_cost_usd=...))"),
        ("tool", "it takes settings, tools, client"),
    ],
)
def test_an_option_that_is_none_is_refused(settings: Settings, name: str, where: str) -> None:
    """A limit under a wrong name would not count, and nobody would see it: no type checker runs in a notebook."""
    for ask in (explore, resume):
        with pytest.raises(TypeError, match=f"no option '{name}'") as raised:
            ask("How many?", settings=settings, **{name: 1})  # pyright: ignore[reportArgumentType, reportCallIssue]
        assert where in str(raised.value)


def test_a_key_under_a_wrong_name_is_refused(settings: Settings) -> None:
    """A run without the key would do its work offline, and say so only in its report."""
    wrong = settings.model_copy(update={"secrets": Secrets(anthropic_api_key="sk-x")})
    with pytest.raises(ConfigError, match=r"secrets\.anthropic_api_key") as raised:
        explore("How many?", settings=wrong)
    assert raised.value.hint == "did you mean secrets.anthropic_key?"


@pytest.mark.parametrize("run_id", ["../elsewhere", "a/b", "/a", "..", ".hidden", "latest", "a\nb"])
def test_an_id_that_is_no_name_is_refused(run_id: str) -> None:
    """A program may take ids from its own users: none leads out of the workspace."""
    with pytest.raises(ConfigError, match="a run cannot have the id"):
        RunHooks(run_id=run_id)


def test_a_run_that_has_not_begun_is_empty(settings: Settings) -> None:
    """A cell of a notebook that ends with it shows nothing, instead of an error."""
    run = explore("How many?", settings=settings)
    assert (run.records, run.sources, run.report, run.state.finished) == ((), {}, "", None)


def test_hooks_and_options_are_joined(settings: Settings) -> None:
    """What the hooks bring is kept next to what is given by name."""
    run = explore("How many?", settings=settings, hooks=RunHooks(run_id="mine", tools=[census]))
    assert isinstance(run, Run)
    assert run.id == "mine"


def test_the_documented_api_is_all_there_is() -> None:
    """`__all__`, what can be imported, and the list in docs/python.md are the same."""
    documented = set(re.findall(r"^\| `(\w+)` \|", DOCS.read_text(encoding="utf-8"), re.MULTILINE))
    assert documented == set(explorer.__all__)
    assert all(getattr(explorer, name) is not None for name in explorer.__all__)
    assert set(dir(explorer)) == set(explorer.__all__)


@pytest.mark.parametrize(
    ("given", "fault", "hint"),
    [
        ({"run_tools": "write_file"}, "`run_tools` is a list", "run_tools=['write_file']"),
        ({"run_tools": 3}, "`run_tools` is a list", 'run_tools=["web_search"]'),
        ({"tools": 3}, "`tools` is a list of tools", "tools=[my_tool]"),
    ],
)
def test_an_agent_with_one_tool_in_the_place_of_a_list_is_refused(given: dict[str, Any], fault: str, hint: str) -> None:
    """The letters of a name would be taken for names of tools."""
    with pytest.raises(ConfigError, match=fault) as raised:
        Agent(settings=Settings(), **given).run("Two and two?")
    assert hint in raised.value.hint


def _documented() -> Iterator[tuple[str, Callable[..., object]]]:
    """Public functions, and the public methods of public classes that are our own."""
    for name in explorer.__all__:
        thing = getattr(explorer, name)
        if inspect.isclass(thing):
            fields = getattr(thing, "__dataclass_fields__", {})
            methods = {
                key: value for key, value in vars(thing).items() if not key.startswith("_") and key not in fields
            }
            yield from ((f"{name}.{key}", value) for key, value in methods.items() if inspect.isfunction(value))
        elif inspect.isfunction(thing):
            yield name, thing


def _lacking(function: Callable[..., object]) -> list[str]:
    """What a docstring leaves out: parameters by name, and `Returns`."""
    text = inspect.getdoc(function) or ""
    parameters = [name for name in inspect.signature(function).parameters if name != "self"]
    lacking = [name for name in parameters if not re.search(rf"^ +\**{name}: \S", text, re.MULTILINE)]
    has_value = inspect.signature(function).return_annotation not in {None, "None"}
    says_value = "Returns:" in text or not parameters
    return lacking + (["Returns"] if has_value and not says_value else [])


def test_public_functions_say_what_they_take_and_return() -> None:
    """Each parameter is in `Args`, and a function with parameters says in `Returns` what comes back."""
    faults = {name: lacking for name, function in _documented() if (lacking := _lacking(function))}
    assert faults == {}
    assert len(list(_documented())) > 25
    assert _lacking(_lacking) == ["function", "Returns"]
