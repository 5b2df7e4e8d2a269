import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from engine_stage import tools_over
from explorer.schema.errors import ToolError
from explorer.schema.events import FileChange, WrittenFile
from explorer.schema.tool import Effect, Tool, ToolResult
from explorer.text.rendering import without_marks
from explorer.tools.files import MAX_LINE_CHARS, MAX_MATCHES, EditTool, ListTool, ReadTool, SearchTool, WriteTool
from explorer.workspace.workspace import Workspace
from tool_call import call_plainly

FORTY = "".join(f"line {number}\n" for number in range(1, 41))


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def use(tool: Tool, **arguments: Any) -> ToolResult:
    """Call a tool as the engine does."""
    return asyncio.run(call_plainly(tool, **arguments))


def foreseen(tool: Tool, **arguments: Any) -> FileChange:
    """What a tool says it is about to do."""
    change = asyncio.run(tool.foresee(tool.arguments.model_validate(arguments)))
    assert change is not None
    return change


def refused(tool: Tool, **arguments: Any) -> str:
    """The words a refused call gets."""
    with pytest.raises(ToolError) as caught:
        use(tool, **arguments)
    return caught.value.message


def test_reading_shows_numbered_lines(workspace: Workspace) -> None:
    """The head says which lines of how many, each line has its number and a tab, the tail says how to read on."""
    workspace.write_text("topics/a.md", FORTY)
    read = ReadTool(workspace)
    assert use(read, filepath="topics/a.md", start_line=2, end_line=3).content == (
        "topics/a.md, lines 2-3 of 40\n2\tline 2\n3\tline 3\n(37 more lines; read on with start_line=4)"
    )
    whole = use(read, filepath="topics/a.md").content.split("\n")
    assert (whole[0], whole[-1], len(whole)) == ("topics/a.md, lines 1-40 of 40", "40\tline 40", 41)
    assert use(read, filepath="topics/a.md", start_line=40, end_line=99).content.split("\n")[0].endswith("40-40 of 40")


def test_a_long_file_pages_itself(workspace: Workspace) -> None:
    """Following the last line's advice brings every line exactly once."""
    workspace.write_text("long.md", "".join(f"{number}\n" for number in range(1, 1_001)))
    read = ReadTool(workspace)
    lines: list[str] = []
    start, pages = 1, 0
    while start:
        _, *shown = use(read, filepath="long.md", start_line=start).content.split("\n")
        pages += 1
        start = 0
        if shown[-1].startswith("("):
            advice = shown.pop()
            start = int(advice.partition("start_line=")[2].rstrip(")"))
            assert advice == f"({1_000 - start + 1} more lines; read on with start_line={start})"
        lines += [line.split("\t")[1] for line in shown]
    assert lines == [str(number) for number in range(1, 1_001)]
    assert pages == 3


def test_reading_at_the_edges(workspace: Workspace) -> None:
    """Empty files, missing ones, lines past the end, lines too long: each says what is so."""
    read = ReadTool(workspace)
    workspace.write_text("empty.md", "")
    workspace.write_text("a.md", "one\n" + "x" * (MAX_LINE_CHARS + 5))
    assert use(read, filepath="empty.md").content == "empty.md is empty"
    assert use(read, filepath="a.md").content.endswith(f"x [line cut at {MAX_LINE_CHARS} characters]")
    assert refused(read, filepath="a.md", start_line=3) == "a.md has 2 lines; start_line=3 is past its end"
    assert refused(read, filepath="a.md", start_line=2, end_line=1) == "end_line=1 is before start_line=2"
    assert refused(read, filepath="b.md") == "there is no file b.md; list_files shows all files"
    assert refused(read, filepath="no/b.md") == "there is no file no/b.md; list_files shows all files"


def test_writing_in_each_mode(workspace: Workspace, tmp_path: Path) -> None:
    """Create makes, overwrite replaces, append adds; an existing file is not created over, and the way on is said."""
    write = WriteTool(workspace)
    made = use(write, filepath="topics/a.md", content="# Title\n\none\n")
    assert made.content == "Wrote topics/a.md (3 lines, 13 bytes)."
    (file,) = made.metadata["files"]
    assert (file["path"], file["title"], file["lines"], file["bytes"]) == ("topics/a.md", "Title", 3, 13)
    assert refused(write, filepath="topics/a.md", content="other") == (
        'topics/a.md is there already; use mode="overwrite" or "append", edit_file, or another name'
    )
    assert use(write, filepath="topics/a.md", content="# Title\n\none\n").success
    assert use(write, filepath="topics/a.md", content="two\n", mode="append").content.startswith(
        "Wrote topics/a.md (4 "
    )
    assert (tmp_path / "topics" / "a.md").read_text() == "# Title\n\none\ntwo\n"
    assert use(write, filepath="topics/a.md", content="new", mode="overwrite").success
    assert use(write, filepath="b.md", content="first", mode="append").content == "Wrote b.md (1 lines, 5 bytes)."
    assert (tmp_path / "topics" / "a.md").read_text() == "new"
    assert "engine's own" in refused(write, filepath=".explorer/journal.jsonl", content="x", mode="overwrite")


def test_editing_one_passage(workspace: Workspace, tmp_path: Path) -> None:
    """The old text must stand there exactly once; what is wrong is said, and nothing is changed then."""
    edit = EditTool(workspace)
    workspace.write_text("a.md", "one two two\n")
    assert use(edit, filepath="a.md", old_string="one", new_string="1").content == "Edited a.md (1 lines, 10 bytes)."
    assert refused(edit, filepath="a.md", old_string="two", new_string="2").startswith(
        "old_string occurs 2 times in a.md"
    )
    assert refused(edit, filepath="a.md", old_string="six", new_string="6").startswith(
        "old_string does not occur in a.md"
    )
    assert refused(edit, filepath="b.md", old_string="six", new_string="6").startswith("there is no file b.md")
    assert (tmp_path / "a.md").read_text() == "1 two two\n"


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        (
            EditTool,
            {"filepath": "a.md", "old_string": "six", "new_string": "6"},
            "old_string does not occur in <<a.md>>; ",
        ),
        (
            EditTool,
            {"filepath": "a.md", "old_string": "o", "new_string": "0"},
            "old_string occurs 2 times in <<a.md>>; ",
        ),
        (WriteTool, {"filepath": ".explorer/x", "content": ""}, "<<.explorer/x>>: the folder .explorer/ is the engine"),
        (WriteTool, {"filepath": "report.md/x", "content": ""}, "<<report.md/x>>: report.md is a file, "),
    ],
)
def test_only_what_an_agent_wrote_is_fenced_in_a_refusal(
    workspace: Workspace, tool: type[EditTool | WriteTool], arguments: dict[str, str], words: str
) -> None:
    """The engine's own words are advice, and no text from outside."""
    workspace.write_text("a.md", "one two\n")
    with pytest.raises(ToolError) as caught:
        use(tool(workspace), **arguments)
    assert caught.value.words.startswith(words)


async def test_edits_at_once_lose_nothing(workspace: Workspace, tmp_path: Path) -> None:
    """Thirty edits of one file by parallel agents are all in it, whichever came first."""
    workspace.write_text("a.md", "".join(f"<{number}>\n" for number in range(30)))
    async with asyncio.TaskGroup() as group:
        for number in range(30):
            arguments = {"filepath": "a.md", "old_string": f"<{number}>", "new_string": f"done {number}"}
            group.create_task(call_plainly(EditTool(workspace), **arguments))
    assert (tmp_path / "a.md").read_text() == "".join(f"done {number}\n" for number in range(30))


async def test_appends_and_creations_at_once(workspace: Workspace, tmp_path: Path) -> None:
    """Parallel appends all arrive; of parallel creations of one file exactly one wins, the others are told."""
    write = WriteTool(workspace)
    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(call_plainly(write, filepath="log.md", content=f"{number}\n", mode="append"))
    assert sorted(map(int, (tmp_path / "log.md").read_text().split())) == list(range(20))

    async def create(number: int) -> bool:
        try:
            await call_plainly(write, filepath="new.md", content=str(number), mode="create")
        except ToolError:
            return False
        return True

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(create(number)) for number in range(10)]
    assert [task.result() for task in tasks].count(True) == 1


def test_listing(workspace: Workspace) -> None:
    """One line a file with lines and bytes, by folder and by pattern; the sources by their path."""
    listing = ListTool(workspace)
    assert use(listing).content == "No files."
    workspace.write_text("topics/a.md", "1\n2\n")
    workspace.write_text("b.txt", "x")
    workspace.write_own(".explorer/sources/S1.md", "s")
    assert use(listing).content == "b.txt (1 lines, 1 bytes)\ntopics/a.md (2 lines, 4 bytes)"
    assert use(listing, path="topics").content == use(listing, glob="*.md").content == "topics/a.md (2 lines, 4 bytes)"
    assert use(listing, path=".").content == use(listing, path="/").content == use(listing).content
    assert use(listing, path=".explorer/sources").content == ".explorer/sources/S1.md (1 lines, 1 bytes)"
    assert use(listing, glob="*.pdf").content == "No files."
    assert "leaves this run's folder" in refused(listing, path="../..")
    assert refused(listing, path="nowhere") == "there is no folder nowhere; list_files without a path shows all files"


def test_searching(workspace: Workspace) -> None:
    """Lines come with file and number, upper and lower case alike; a broken pattern is looked for as plain text."""
    search = SearchTool(workspace)
    workspace.write_text("a.md", "Solar output\nrose by 12 % (May\n")
    workspace.write_text("b.txt", "  solar again\n")
    assert use(search, pattern="SOLAR").content == "a.md:1: Solar output\nb.txt:1: solar again"
    assert use(search, pattern="solar", glob="*.txt").content == "b.txt:1: solar again"
    assert use(search, pattern=r"\d+ %").content == "a.md:2: rose by 12 % (May"
    assert use(search, pattern="(May").content == "a.md:2: rose by 12 % (May"
    assert use(search, pattern="lunar").content == "No matches."
    workspace.write_text("many.md", "match\n" * 150)
    lines = use(search, pattern="match").content.split("\n")
    assert len(lines) == MAX_MATCHES + 1
    assert lines[-1] == "(more matches left out; narrow the pattern)"


@pytest.mark.slow
def test_a_pattern_without_end_is_stopped(workspace: Workspace) -> None:
    """However many lines there are, a search that backtracks without end is over in seconds of work."""
    workspace.write_text("a.md", ("a" * 60 + "b\n") * 100 + ("a" * 24 + "b\n") * 1_000)
    begun = time.process_time()
    assert "takes too long" in refused(SearchTool(workspace, seconds=0.2), pattern=r"(a|aa)+$")
    # Far less than it would be if each of the thousand lines had its own 0.2 s.
    assert time.process_time() - begun < 6


@pytest.mark.parametrize("pattern", ["a{1000000000}", "((a{1000}){1000}){1000}", "a{5001}"])
def test_a_pattern_that_would_take_all_memory_is_refused(pattern: str, workspace: Workspace) -> None:
    """Counted repeats are multiplied out before anything is compiled."""
    workspace.write_text("a.md", "2026-08-10\n")
    begun = time.process_time()
    assert "repeats too often" in refused(SearchTool(workspace), pattern=pattern)
    assert time.process_time() - begun < 1
    assert use(SearchTool(workspace), pattern=r"\d{4}-\d{2}-\d{2}").content == "a.md:1: 2026-08-10"


def test_changes_are_foreseen_and_recalled(workspace: Workspace) -> None:
    """What a write or an edit is about to do is known before, and its result can be told after a crash."""
    write, edit = WriteTool(workspace), EditTool(workspace)
    assert (write.effect, edit.effect) == (Effect.CHECKED, Effect.CHECKED)
    made = {"filepath": "a.md", "content": "# A\none\n"}
    changes = [foreseen(write, **made)]
    results = [use(write, **made)]
    for tool, arguments in (
        (write, {"filepath": "a.md", "content": "two\n", "mode": "append"}),
        (edit, {"filepath": "./a.md", "old_string": "one", "new_string": "1"}),
    ):
        change = foreseen(tool, **arguments)
        assert change.before == changes[-1].after
        results.append(use(tool, **arguments))
        assert workspace.digest("a.md") == change.after
        assert change.path == "a.md"
        recalled = asyncio.run(tool.recall(change))
        assert (without_marks(recalled.content), recalled.metadata) == (results[-1].content, results[-1].metadata)
        changes.append(change)
    assert changes[0].before == ""
    with pytest.raises(ToolError, match="there already"):
        foreseen(write, filepath="a.md", content="else")


def test_each_tool_says_what_it_does_to_the_world(workspace: Workspace) -> None:
    """Reading tools are run again after a crash and beside each other; writing ones are checked, one by one."""
    traits = {tool.name: (tool.effect, tool.is_parallel) for tool in tools_over(workspace)}
    assert traits == {
        "read_file": (Effect.PURE, True),
        "write_file": (Effect.CHECKED, False),
        "edit_file": (Effect.CHECKED, False),
        "list_files": (Effect.PURE, True),
        "search_files": (Effect.PURE, True),
    }


async def test_a_cancelled_write_is_waited_for(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread cannot be stopped: until it is done, the file's lock is kept and the caller is not gone."""
    entered, may_end = threading.Event(), threading.Event()
    write = workspace.write_text

    def slow(path: str, text: str) -> WrittenFile:
        entered.set()
        assert may_end.wait(20)
        return write(path, text)

    monkeypatch.setattr(workspace, "write_text", slow)
    call = asyncio.create_task(call_plainly(WriteTool(workspace), filepath="a.md", content="text\n", mode="overwrite"))
    assert await asyncio.to_thread(entered.wait, 20)
    for _ in range(2):
        call.cancel()
        await asyncio.wait([call], timeout=0.01)
        assert (call.done(), workspace.lock("a.md").locked()) == (False, True)
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (workspace.read_text("a.md"), workspace.lock("a.md").locked()) == ("text\n", False)
