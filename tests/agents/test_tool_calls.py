import asyncio
import re
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import ClassVar

import pytest
from loguru import logger
from pydantic import Field, field_validator

from engine_stage import Doing, Recorder, call_room, contents, external, started, tools_over
from explorer.agents.call_results import END_CHARS, MAX_ERROR_CHARS, MAX_RESULT_CHARS, MAX_TURN_CHARS, START_CHARS
from explorer.agents.tool_calls import CHANGED_MEANWHILE, execute_calls
from explorer.schema.errors import ModelError, ModelFault, StorageError, ToolError
from explorer.schema.events import AnyEvent, FileChange, ToolFinished, ToolStarted, TurnTaken
from explorer.schema.messages import JsonObject, Results, ToolCall, Turn
from explorer.schema.tool import INTERRUPTED, Arguments, Effect, Tool, ToolContext, ToolResult
from explorer.testing import says
from explorer.text.rendering import without_marks
from explorer.workspace.workspace import Workspace, sha256

Call = tuple[str, JsonObject]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@pytest.fixture
def log() -> Generator[list[str]]:
    """What the engine's log says, traceback and all."""
    lines: list[str] = []
    logger.enable("explorer")
    sink = logger.add(lambda message: lines.append(str(message)), format="{message}", backtrace=True)
    yield lines
    logger.remove(sink)
    logger.disable("explorer")


async def run(workspace: Workspace, tools: list[Tool], *calls: Call) -> Recorder:
    """One turn with these calls, answered."""
    recorder = Recorder([started(), TurnTaken(agent="searcher-1", turn=says("", *calls), seconds=0.0)])
    await execute_calls(recorder.state(), call_room(recorder, tools, workspace))
    return recorder


async def refusal(workspace: Workspace, tool: Tool, arguments: JsonObject) -> str:
    """The words for a call that cannot be run."""
    recorder = await run(workspace, [tool], (tool.name, arguments))
    (finished,) = recorder.of_type(ToolFinished)
    assert not finished.success
    assert recorder.of_type(ToolStarted) == []
    return without_marks(finished.content)


class StoryArguments(Arguments):
    """Of `get_stories`."""

    story_type: str = Field(default="top")
    limit: int = Field(ge=1, le=100)


class StoryTool(Doing):
    """A tool with arguments to get wrong."""

    arguments = StoryArguments


async def test_an_unknown_tool_is_answered_with_the_closest(workspace: Workspace) -> None:
    """The model is told the likely name and all names, and the other calls of the turn are run."""
    tools = tools_over(workspace, Doing("web_search"))
    recorder = await run(
        workspace, tools, ("web_serach", {}), ("web_search", {"words": "x"}), ("Read_File", {}), ("z", {})
    )
    first, second, third, fourth = recorder.results()
    names = "Your tools: read_file, write_file, edit_file, list_files, search_files, web_search"
    assert sorted([first, second, third, fourth]) == sorted(
        [
            f"there is no tool called 'web_serach'; did you mean web_search?\n{names}",
            "did x",
            f"there is no tool called 'Read_File'; did you mean read_file?\n{names}",
            f"there is no tool called 'z'\n{names}",
        ]
    )


async def test_wrong_arguments_are_told_one_by_one(workspace: Workspace) -> None:
    """Missing, mistyped, out of range, misspelled: each is named with what would be right, and nothing is run."""
    tool = StoryTool("get_stories")
    arguments = "Its arguments: story_type, limit"
    assert await refusal(workspace, tool, {}) == f"get_stories was not run: `limit`: Field required. {arguments}"
    many = await refusal(workspace, tool, {"limit": 200, "story_typ": "new", "colour": "red"})
    assert many == (
        "get_stories was not run: `limit`: Input should be less than or equal to 100; "
        f"no argument `story_typ` (did you mean `story_type`?); no argument `colour`. {arguments}"
    )
    assert "`limit`: Input should be a valid integer" in await refusal(workspace, tool, {"limit": "ten"})
    assert "`story_type`: Input should be a valid string" in await refusal(
        workspace, tool, {"story_type": 1, "limit": 1}
    )
    assert tool.runs == []


async def test_arguments_that_are_no_json_are_told(workspace: Workspace) -> None:
    """What the adapter found wrong reaches the model in full."""
    tool = Doing()
    cut = ToolCall(id="1", name="doing", problem="the JSON ends in the middle of `words`")
    odd = ToolCall(id="2", name="doing")
    turn = says("").model_copy(update={"calls": (cut, odd)})
    recorder = Recorder([started(), TurnTaken(agent="searcher-1", turn=turn, seconds=0.0)])
    await execute_calls(recorder.state(), call_room(recorder, [tool], workspace))
    assert recorder.results() == [
        "doing was not run: the JSON ends in the middle of `words`",
        "doing was not run: its arguments are not a JSON object",
    ]
    assert tool.runs == []


async def test_a_crash_stays_with_its_call(workspace: Workspace, log: list[str]) -> None:
    """Siblings finish, the model gets one line, the log gets the traceback."""
    both = asyncio.Barrier(2)

    async def crash(_words: str) -> str:
        await both.wait()
        raise KeyError("no such\nthing")

    async def work(words: str) -> str:
        await both.wait()
        await asyncio.sleep(0)
        return f"did {words}"

    recorder = await run(workspace, [Doing("bad", crash), Doing("good", work)], ("bad", {}), ("good", {"words": "it"}))
    assert sorted(recorder.results()) == ["bad failed: KeyError: 'no such\\nthing'", "did it"]
    assert any("bad crashed" in line and "Traceback" in line and "in crash" in line for line in log)


async def test_whatever_a_tool_raises_or_returns_becomes_words(workspace: Workspace, log: list[str]) -> None:
    """Errors of every kind, nonsense instead of a result, a cancellation of its own: the run goes on."""

    def raising(error: BaseException) -> Doing:
        async def action(_words: str) -> str:
            raise error

        return Doing(type(error).__name__.lower(), action, timeout_s=None)

    async def nothing(_words: str) -> None:
        return None

    async def nonsense(_words: str) -> ToolResult:
        return ToolResult(success=True, metadata={"files": [{"path": "a"}]})

    failing: list[Tool] = [
        raising(ToolError("say it so")),
        raising(TimeoutError("of its own")),
        raising(asyncio.CancelledError()),
        raising(ExceptionGroup("many", [ValueError("1")])),
        raising(RecursionError("deep")),
        Doing("nothing", nothing),
        Doing("nonsense", nonsense),
    ]
    calls: list[Call] = [(tool.name, {}) for tool in failing]
    recorder = await run(workspace, [*failing, Doing("good")], *calls, ("good", {}))
    results = {event.name: (event.success, without_marks(event.content)) for event in recorder.of_type(ToolFinished)}
    assert results["good"] == (True, "did ")
    assert results["toolerror"] == (False, "say it so")
    assert results["timeouterror"] == (False, "timeouterror failed: TimeoutError: of its own")
    assert results["cancellederror"] == (False, "cancellederror was cut off before it had a result")
    assert results["exceptiongroup"] == (False, "exceptiongroup failed: ValueError: 1")
    for name in ("recursionerror", "nothing", "nonsense"):
        assert not results[name][0]
        assert results[name][1].startswith(f"{name} failed: ")
        assert "\n" not in results[name][1]
    assert len([line for line in log if "Traceback" in line]) == 5


async def test_a_crash_before_the_effect_stays_with_its_call(workspace: Workspace, log: list[str]) -> None:
    """Also what goes wrong while a change is foreseen is one call's, and its effect never begins."""

    class Blind(Doing):
        async def foresee(self, arguments: Arguments) -> FileChange:  # noqa: ARG002
            raise OSError(5, "Input/output error")

    blind = Blind("blind", effect=Effect.CHECKED)
    recorder = await run(workspace, [blind, Doing("good")], ("blind", {}), ("good", {"words": "it"}))
    assert sorted(recorder.results()) == ["blind failed: OSError: [Errno 5] Input/output error", "did it"]
    assert blind.runs == []
    assert log


async def test_writing_where_a_folder_is_does_not_end_the_run(workspace: Workspace) -> None:
    """Paths that cannot be written are the model's to mend, whatever stands there."""
    workspace.write_text("notes/a.md", "x")
    odd: list[Call] = [
        ("write_file", {"filepath": path, "content": "x"}) for path in ("notes", "n" * 300, "notes/a.md/b.md", "../x")
    ]
    recorder = await run(workspace, tools_over(workspace), *odd)
    assert [event.success for event in recorder.of_type(ToolFinished)] == [False] * 4
    assert contents(workspace.folder) == {"notes/a.md": "x"}


async def test_a_tool_that_takes_too_long_is_stopped(workspace: Workspace) -> None:
    """The call is answered with the time it had; the others are not disturbed."""

    async def hang(_words: str) -> str:
        await asyncio.Event().wait()
        return "never"

    recorder = await run(workspace, [Doing("slow", hang, timeout_s=0.02), Doing("good")], ("slow", {}), ("good", {}))
    assert sorted(recorder.results()) == ["did ", "slow took longer than 0.02 s and was stopped"]


async def test_a_long_result_is_kept_in_a_file(workspace: Workspace) -> None:
    """The model gets head, tail, what is left out and how to read it; the file holds every character."""
    text = "".join(f"line {number}\n" for number in range(20_000))

    async def long(_words: str) -> str:
        return text

    recorder = await run(workspace, [Doing("long", long), *tools_over(workspace)], ("long", {}))
    (content,) = recorder.results()
    path = ".explorer/outputs/searcher-1.t1.1.txt"
    assert content.startswith(text[:START_CHARS] + "\n\n[")
    assert content.endswith("]\n\n" + text[-END_CHARS:])
    cut = len(text) - START_CHARS - END_CHARS
    assert f"[{cut} of {len(text)} characters are left out here; all of it is in {path}: read_file(" in content
    assert workspace.read_text(path) == text
    assert len(content) < MAX_RESULT_CHARS


@pytest.mark.slow
async def test_many_long_results_share_what_a_turn_may_bring(workspace: Workspace) -> None:
    """A hundred results of one turn are as long together as the limit says; each is whole in its own file."""

    async def long(words: str) -> str:
        return f"Result {words}\n" + "x" * 6_000

    calls: list[Call] = [("long", {"words": f"{number}"}) for number in range(100)]
    recorder = await run(workspace, [Doing("long", long)], *calls)
    results = recorder.results()
    assert sum(map(len, results)) <= MAX_TURN_CHARS
    assert all(len(content) > MAX_TURN_CHARS // 200 for content in results)
    assert all(content.startswith("Result ") and "characters are left out here" in content for content in results)
    assert len(workspace.read_text(".explorer/outputs/searcher-1.t1.100.txt")) > 6_000
    few = await run(workspace, [Doing("long", long)], *calls[:3])
    assert all("left out" not in content for content in few.results())


async def test_what_is_read_back_is_never_stored_again(workspace: Workspace) -> None:
    """A kept result that is read page by page leaves no further file; too long a page ends with a whole line."""
    workspace.write_own(".explorer/outputs/a.txt", "".join(f"{number} {'x' * 900}\n" for number in range(300)))
    recorder = await run(workspace, tools_over(workspace), ("read_file", {"filepath": ".explorer/outputs/a.txt"}))
    (content,) = recorder.results()
    *lines, last = content.splitlines()
    assert len(content) <= MAX_RESULT_CHARS
    assert re.match(r"\[cut here, at \d+ of ", last)
    assert all(len(line) > 900 for line in lines[1:] if line)
    assert [path.name for path in (workspace.folder / ".explorer/outputs").iterdir()] == ["a.txt"]


async def test_a_result_just_short_enough_is_kept_whole(workspace: Workspace) -> None:
    """The limit itself is allowed; an error is cut to size without a file."""

    async def just(words: str) -> str:
        if words:
            raise ToolError("e" * (MAX_ERROR_CHARS + 1))
        return "x" * MAX_RESULT_CHARS

    recorder = await run(workspace, [Doing("just", just)], ("just", {}), ("just", {"words": "fail"}))
    short, whole = sorted(map(len, recorder.results()))
    assert (MAX_ERROR_CHARS - 100 < short < MAX_ERROR_CHARS, whole) == (True, MAX_RESULT_CHARS)
    assert not workspace.exists(".explorer/outputs/searcher-1.t1.1.txt")


async def test_parallel_calls_overlap_and_serial_ones_are_barriers(workspace: Workspace) -> None:
    """Three reads meet; the write waits for them, runs alone, and what comes after waits for it."""
    happened: list[str] = []
    together = asyncio.Barrier(3)
    after = asyncio.Barrier(2)

    def meeting(barrier: asyncio.Barrier) -> Callable[[str], Awaitable[str]]:
        async def meet(words: str) -> str:
            happened.append(f"{words} begins")
            await asyncio.wait_for(barrier.wait(), 5)
            happened.append(f"{words} ends")
            return words

        return meet

    async def alone(words: str) -> str:
        happened.append(f"{words} begins")
        for _ in range(10):
            await asyncio.sleep(0)
        happened.append(f"{words} ends")
        return words

    tools: list[Tool] = [
        Doing("read", meeting(together)),
        Doing("write", alone, is_parallel=False),
        Doing("look", meeting(after)),
    ]
    calls: list[Call] = [
        *[("read", {"words": name}) for name in "abc"],
        ("write", {"words": "W"}),
        ("write", {"words": "X"}),
        ("look", {"words": "d"}),
        ("look", {"words": "e"}),
    ]
    recorder = await run(workspace, tools, *calls)
    assert set(happened[:3]) == {"a begins", "b begins", "c begins"}
    assert happened[6:10] == ["W begins", "W ends", "X begins", "X ends"]
    assert set(happened[10:12]) == {"d begins", "e begins"}
    results = recorder.state().messages[-1]
    assert isinstance(results, Results)
    assert [result.content for result in results.results] == ["a", "b", "c", "W", "X", "d", "e"]


async def test_one_result_per_call_in_call_order(workspace: Workspace) -> None:
    """Whatever finishes first, and whatever fails: the message to the model has each call's result in its place."""
    order = [asyncio.Event() for _ in range(4)]

    async def reverse(words: str) -> str:
        number = int(words)
        if number < 3:
            await asyncio.wait_for(order[number + 1].wait(), 5)
        order[number].set()
        if number == 1:
            raise ValueError("one fails")
        return words

    recorder = await run(
        workspace, [Doing("r", reverse)], *[("r", {"words": str(number)}) for number in range(4)], ("x", {})
    )
    results = recorder.state().messages[-1]
    assert isinstance(results, Results)
    assert [(result.id, result.name, result.is_error) for result in results.results] == [
        ("call_1", "r", False),
        ("call_2", "r", True),
        ("call_3", "r", False),
        ("call_4", "r", False),
        ("call_5", "x", True),
    ]
    assert recorder.state().open_turn is None


class CountedArguments(Arguments):
    """Counts how often arguments are checked."""

    checks: ClassVar[list[str]] = []
    words: str = Field(min_length=1)
    limit: int = 5

    @field_validator("words")
    @classmethod
    def _counted(cls, words: str) -> str:
        cls.checks.append(words)
        return words.strip()


class Handed(Tool[CountedArguments]):
    """Keeps what it is handed."""

    name = "handed"
    description = "Takes."
    arguments = CountedArguments
    effect = Effect.CHECKED

    def __init__(self) -> None:
        self.handed: list[CountedArguments] = []

    async def foresee(self, arguments: CountedArguments) -> None:
        """Keep them."""
        self.handed.append(arguments)

    async def execute(self, arguments: CountedArguments, context: ToolContext) -> ToolResult:  # noqa: ARG002
        """Keep them."""
        self.handed.append(arguments)
        return ToolResult(success=True, content="taken")


async def test_arguments_are_checked_once_and_handed_over_whole(workspace: Workspace) -> None:
    """One model made of a call is what both methods of its tool get, with its defaults; a refused one reaches none."""
    CountedArguments.checks.clear()
    tool = Handed()
    recorder = await run(workspace, [tool], ("handed", {"words": " a "}), ("handed", {"words": ""}))
    assert CountedArguments.checks == [" a "]
    assert tool.handed == [CountedArguments.model_construct(words="a", limit=5)] * 2
    assert tool.handed[0] is tool.handed[1]
    assert sorted(recorder.results())[1] == "taken"


class Asking(Doing):
    """Says who called it, and how."""

    async def execute(self, arguments: Arguments, context: ToolContext) -> ToolResult:  # noqa: ARG002
        """Say it after the others have begun."""
        await asyncio.sleep(0)
        return ToolResult(success=True, content=f"{context.agent} {context.role} {context.call}")


async def test_a_tool_knows_its_call(workspace: Workspace) -> None:
    """Each of several parallel executions is given its caller and its own key, unique in the run."""
    recorder = await run(workspace, [Asking("asking")], ("asking", {}), ("asking", {}), ("asking", {}))
    assert sorted(recorder.results()) == [f"searcher-1 searcher searcher-1.t1.{number}" for number in (1, 2, 3)]


@pytest.mark.parametrize(
    "error", [StorageError("the disk is full"), ModelError(ModelFault.OVERLOADED, "529")], ids=["disk", "provider"]
)
async def test_what_no_result_can_say_passes_through(workspace: Workspace, error: Exception) -> None:
    """A full disk or a dead provider stops the turn as one plain error; finished siblings stay on record."""

    async def fail(_words: str) -> str:
        raise error

    first = Doing("first", is_parallel=False)
    recorder = Recorder(
        [started(), TurnTaken(agent="searcher-1", turn=says("", ("first", {}), ("bad", {})), seconds=0.0)]
    )
    with pytest.raises(type(error)) as caught:
        await execute_calls(recorder.state(), call_room(recorder, [first, Doing("bad", fail)], workspace))
    assert caught.value is error
    assert recorder.results() == ["did "]
    assert recorder.state().open_turn is not None


DISK = StorageError("the disk is full")


@pytest.mark.parametrize(
    ("errors", "outcome"),
    [
        ([ToolError("no such page"), ToolError("no such bed")], "no such page"),
        ([ToolError("no such page"), ExceptionGroup("deeper", [KeyError("bed")])], "bad failed: KeyError: 'bed'"),
        ([ToolError("no such page"), KeyError("bed"), DISK], DISK),
    ],
)
async def test_what_goes_wrong_in_a_task_group_of_a_tool_goes_wrong_in_the_tool(
    workspace: Workspace, errors: list[Exception], outcome: str | Exception
) -> None:
    """The model reads what was written for it, and a full disk still ends the turn."""

    async def fail(_words: str) -> str:
        raise ExceptionGroup("unhandled errors in a TaskGroup", errors)

    if isinstance(outcome, Exception):
        with pytest.raises(StorageError) as caught:
            await run(workspace, [Doing("bad", fail)], ("bad", {}))
        assert caught.value is outcome
    else:
        assert (await run(workspace, [Doing("bad", fail)], ("bad", {}))).results() == [outcome]


class Interrupted:
    """A turn whose call was started in an earlier life of the run."""

    def __init__(
        self, workspace: Workspace, tool: Tool, arguments: JsonObject, change: FileChange | None = None
    ) -> None:
        self.tool = tool
        self.events: list[AnyEvent] = [
            started(),
            TurnTaken(agent="searcher-1", turn=says("", (tool.name, arguments), ("good", {})), seconds=0.0),
            ToolStarted(agent="searcher-1", call="searcher-1.t1.1", name=tool.name, effect=tool.effect, change=change),
            ToolFinished(agent="searcher-1", call="searcher-1.t1.2", name="good", success=True, content="done before"),
        ]
        self.workspace = workspace

    async def taken_up(self) -> tuple[bool, str]:
        """The call's result in the next life; its finished sibling must not be run again."""
        good = Doing("good")
        recorder = Recorder(self.events)
        await execute_calls(recorder.state(), call_room(recorder, [self.tool, good], self.workspace))
        assert good.runs == []
        assert len(recorder.of_type(ToolStarted)) == 1
        results = recorder.state().messages[-1]
        assert isinstance(results, Results)
        assert [result.content for result in results.results][1] == "done before"
        first = results.results[0]
        return not first.is_error, first.content


async def test_a_pure_call_is_run_again(workspace: Workspace) -> None:
    """Nothing was changed, so nothing can be changed twice."""
    tool = Doing()
    assert await Interrupted(workspace, tool, {"words": "it"}).taken_up() == (True, "did it")
    assert tool.runs == ["it"]


@pytest.mark.parametrize("effect", [Effect.JOB, Effect.EXTERNAL])
async def test_a_call_with_unknown_effects_is_never_run_twice(workspace: Workspace, effect: Effect) -> None:
    """The model is told so in fixed words, and to look."""
    tool = Doing(effect=effect)
    assert await Interrupted(workspace, tool, {"words": "it"}).taken_up() == (False, INTERRUPTED)
    assert tool.runs == []


async def test_an_external_call_not_yet_started_is_run(workspace: Workspace) -> None:
    """Only what was begun is withheld: a call without its mark on disk never ran."""
    tool = external("send")
    recorder = await run(workspace, [tool], ("send", {"words": "letter"}))
    assert (tool.runs, recorder.results()) == (["letter"], ["did letter"])


@pytest.mark.parametrize("stands", ["before", "after", "else", "missing"])
async def test_an_interrupted_write_is_compared_with_the_file(workspace: Workspace, stands: str) -> None:
    """Not made: made now. Made: told. Something else there: left alone, and said so."""
    texts = {"before": "old", "after": "old and new", "else": "someone else's"}
    if stands in texts:
        workspace.write_text("a.md", texts[stands])
    change = FileChange(path="a.md", before=sha256(b"old"), after=sha256(b"old and new"))
    write = next(tool for tool in tools_over(workspace) if tool.name == "write_file")
    arguments = {"filepath": "a.md", "content": " and new", "mode": "append"}
    success, content = await Interrupted(workspace, write, arguments, change).taken_up()
    wrote = (True, "Wrote <<a.md>> (1 lines, 11 bytes).")
    expected = {"before": wrote, "after": wrote}.get(stands, (False, CHANGED_MEANWHILE.format(path="<<a.md>>")))
    assert (success, content) == expected
    left = {"before": "old and new", "after": "old and new", "else": "someone else's"}
    assert contents(workspace.folder) == ({"a.md": left[stands]} if stands in left else {})


async def test_a_started_call_is_not_refused_afterwards(workspace: Workspace) -> None:
    """A gate that has closed meanwhile does not take back what was let through."""
    tool = Doing()
    interrupted = Interrupted(workspace, tool, {"words": "it"})
    recorder = Recorder(interrupted.events)
    context = call_room(recorder, [tool], workspace, gate=lambda _agent, _call: ToolError("closed"))
    await execute_calls(recorder.state(), context)
    assert tool.runs == ["it"]


async def test_a_gate_refuses_in_its_words(workspace: Workspace) -> None:
    """A refused call is answered, not run, and not marked as started."""
    tool = Doing()
    turn = TurnTaken(agent="searcher-1", turn=says("", ("doing", {}), ("doing", {"words": "b"})), seconds=0.0)
    recorder = Recorder([started(), turn])

    def gate(_agent: str, call: ToolCall) -> ToolError | None:
        return None if call.arguments else ToolError("refused: not now")

    await execute_calls(recorder.state(), call_room(recorder, [tool], workspace, gate=gate))
    assert sorted(recorder.results()) == ["did b", "refused: not now"]
    assert tool.runs == ["b"]


async def test_a_cancelled_turn_can_be_taken_up(workspace: Workspace) -> None:
    """What had finished stays, what was under way is known to have begun, and the next life completes the turn."""
    hanging = asyncio.Event()

    async def hang(_words: str) -> str:
        hanging.set()
        await asyncio.Event().wait()
        return "never"

    calls: list[Call] = [("quick", {}), ("send", {}), ("search", {}), ("later", {})]
    recorder = Recorder([started(), TurnTaken(agent="searcher-1", turn=says("", *calls), seconds=0.0)])
    quick, later = Doing("quick", is_parallel=False), Doing("later", is_parallel=False)
    first_life: list[Tool] = [quick, external("send", hang), Doing("search", hang), later]
    task = asyncio.ensure_future(execute_calls(recorder.state(), call_room(recorder, first_life, workspace)))
    await hanging.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert recorder.results() == ["did "]
    assert len(recorder.of_type(ToolStarted)) == 3

    again = Recorder(recorder.events)
    send, search = external("send"), Doing("search")
    await execute_calls(again.state(), call_room(again, [quick, send, search, later], workspace))
    results = again.state().messages[-1]
    assert isinstance(results, Results)
    assert [result.content for result in results.results] == ["did ", INTERRUPTED, "did ", "did "]
    assert (quick.runs, send.runs, search.runs, later.runs) == ([""], [], [""], [""])
    turn = again.state().messages[-2]
    assert isinstance(turn, Turn)
    assert len(turn.calls) == len(results.results)


async def test_files_and_sources_of_a_result_are_on_record(workspace: Workspace) -> None:
    """The engine knows what was written and what was brought from the result's metadata, not from its words."""

    async def bring(_words: str) -> ToolResult:
        return ToolResult(success=True, content="I wrote everything", metadata={"sources": ["S1", "S2"]})

    tools = tools_over(workspace, Doing("bring", bring))
    recorder = await run(workspace, tools, ("bring", {}), ("write_file", {"filepath": "a.md", "content": "# T\n"}))
    finished = {event.name: event for event in recorder.of_type(ToolFinished)}
    assert (finished["bring"].sources, finished["bring"].files) == (("S1", "S2"), ())
    assert [file.path for file in finished["write_file"].files] == ["a.md"]
    assert list(recorder.state().files) == ["a.md"]


class Stray(Doing):
    """Gets cancelled by nobody who had a right to."""

    async def execute(self, arguments: Arguments, context: ToolContext) -> ToolResult:
        """Be cancelled, then go on."""
        self.runs.append("run")
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        return await super().execute(arguments, context)


async def test_a_cancellation_from_below_becomes_a_result(workspace: Workspace) -> None:
    """A call whose task a library cancelled by mistake, and left marked so, is answered once, not made for ever."""
    stray = Stray("stray")
    recorder = await run(workspace, [stray], ("stray", {"words": "x"}))
    assert stray.runs == ["run"]
    assert recorder.results() == ["stray was cut off before it had a result"]
