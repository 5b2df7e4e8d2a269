"""The file tools: read, write, edit, list and search the run's folder."""

import asyncio
import math
import time
from abc import abstractmethod
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

import regex
from pydantic import Field

from explorer.errors import ToolError
from explorer.events import FileChange, WrittenFile
from explorer.tool import Arguments, Effect, Tool, ToolResult
from explorer.workspace import Workspace, describe

MAX_LINES = 400
"""Of one reply of `read_file`; longer files page themselves."""
MAX_LINE_CHARS = 2_000
MAX_MATCHES = 100
MAX_PATTERN_CHARS = 300
SEARCH_SECONDS = 2.0
"""Of one search. A pattern may backtrack without end; `re` could not be stopped, `regex` can."""
MAX_REPEATS = 5_000
"""Of a pattern's `{n}`, multiplied: `regex` unrolls them, and `a{1000000000}` would take all memory."""

FilePath = Annotated[str, Field(description="Path inside the run's folder, e.g. notes/topic.md")]


class ReadArguments(Arguments):
    """Of `read_file`."""

    filepath: FilePath
    start_line: int = Field(default=1, ge=1, description="First line to read, from 1")
    end_line: int | None = Field(default=None, ge=1, description="Last line to read; leave out to read on")


class ReadTool(Tool):
    """Read a text file, with line numbers."""

    name = "read_file"
    description = (
        "Read a text file of this run, with line numbers. Long files come in parts of "
        f"{MAX_LINES} lines; the last line says how to read on. Stored sources are in .explorer/sources/S12.md."
    )
    arguments = ReadArguments

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def execute(self, **arguments: Any) -> ToolResult:
        """Read the lines asked for."""
        path, start, end = arguments["filepath"], arguments["start_line"], arguments["end_line"]
        text = await asyncio.to_thread(self._workspace.read_text, path)
        lines = text.splitlines()
        if start > max(1, len(lines)):
            raise ToolError(f"{path} has {len(lines)} lines; start_line={start} is past its end")
        last = min(len(lines), start + MAX_LINES - 1, end if end is not None else len(lines))
        if end is not None and end < start:
            raise ToolError(f"end_line={end} is before start_line={start}")
        shown = [f"{number:>6}\t{_clip(line)}" for number, line in enumerate(lines[start - 1 : last], start)]
        head = f"{path}, lines {start}-{last} of {len(lines)}" if lines else f"{path} is empty"
        rest = len(lines) - last
        tail = [f"({rest} more lines; read on with start_line={last + 1})"] if rest > 0 else []
        return ToolResult(success=True, content="\n".join([head, *shown, *tail]))


def _clip(line: str) -> str:
    return line if len(line) <= MAX_LINE_CHARS else f"{line[:MAX_LINE_CHARS]} [line cut at {MAX_LINE_CHARS} characters]"


class ChangingTool(Tool):
    """What changes one text file: foreseen, then done under the file's lock, and recognised after a crash."""

    effect = Effect.CHECKED
    is_parallel = False
    verb: ClassVar[str]
    """What the model is told was done."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def foresee(self, **arguments: Any) -> FileChange:
        """The change to be made."""
        return await asyncio.to_thread(self._workspace.foresee, arguments["filepath"], self._text(arguments))

    async def execute(self, **arguments: Any) -> ToolResult:
        """Make it."""
        async with self._workspace.lock(arguments["filepath"]):
            text = await asyncio.to_thread(self._text, arguments)
            written = await asyncio.to_thread(self._workspace.write_text, arguments["filepath"], text)
        return _told(self.verb, written)

    async def recall(self, change: FileChange) -> ToolResult:
        """The result of a change that a crash cut off after it was made."""
        return _told(self.verb, describe(change.path, self._workspace.read_text(change.path)))

    @abstractmethod
    def _text(self, arguments: dict[str, Any]) -> str:
        """The file's whole text after the change."""


class WriteArguments(Arguments):
    """Of `write_file`."""

    filepath: FilePath
    content: str = Field(description="The text to write")
    mode: Literal["create", "overwrite", "append"] = Field(
        default="create", description="create: a new file; overwrite: replace it whole; append: add at its end"
    )


class WriteTool(ChangingTool):
    """Write a text file."""

    name = "write_file"
    description = (
        "Write a text file into this run's folder; folders are made as needed. Lay files out as you see fit. "
        "Keep the [S12] ids of your sources beside what you take from them."
    )
    arguments = WriteArguments
    verb = "Wrote"

    def _text(self, arguments: dict[str, Any]) -> str:
        path, content, mode = arguments["filepath"], str(arguments["content"]), arguments["mode"]
        exists = self._workspace.exists(path)
        if mode == "create" and exists and self._workspace.read_text(path) != content:
            raise ToolError(f'{path} is there already; use mode="overwrite" or "append", edit_file, or another name')
        if mode == "append" and exists:
            return self._workspace.read_text(path) + content
        return content


class EditArguments(Arguments):
    """Of `edit_file`."""

    filepath: FilePath
    old_string: str = Field(min_length=1, description="Text to replace, exactly as it stands; must occur once")
    new_string: str = Field(description="Text to put in its place")


class EditTool(ChangingTool):
    """Replace one passage of a text file."""

    name = "edit_file"
    description = "Replace one passage of a text file. The old text must occur exactly once; give enough around it."
    arguments = EditArguments
    verb = "Edited"

    def _text(self, arguments: dict[str, Any]) -> str:
        path, old, new = arguments["filepath"], str(arguments["old_string"]), str(arguments["new_string"])
        text = self._workspace.read_text(path)
        count = text.count(old)
        if count != 1:
            found = "does not occur" if count == 0 else f"occurs {count} times"
            raise ToolError(f"old_string {found} in {path}; read the file and give a passage that occurs exactly once")
        return text.replace(old, new)


def _told(verb: str, written: WrittenFile) -> ToolResult:
    return ToolResult(
        success=True,
        content=f"{verb} {written.path} ({written.lines} lines, {written.bytes} bytes).",
        metadata={"files": [written.model_dump()]},
    )


class ListArguments(Arguments):
    """Of `list_files`."""

    path: str = Field(default="", description="A folder of the run; leave out for all of it")
    glob: str = Field(default="", description="Only names that match, e.g. *.md or stories/*.md")


class ListTool(Tool):
    """List files."""

    name = "list_files"
    description = (
        "List the files of this run with their lines and bytes. The stored sources are under .explorer/sources."
    )
    arguments = ListArguments

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def execute(self, **arguments: Any) -> ToolResult:
        """List what is there."""
        found = await asyncio.to_thread(self._workspace.files, arguments["path"], arguments["glob"])
        lines = [f"{info.path} ({info.lines} lines, {info.bytes} bytes)" for info in found]
        return ToolResult(success=True, content="\n".join(lines) or "No files.")


class SearchArguments(Arguments):
    """Of `search_files`."""

    pattern: str = Field(
        min_length=1, max_length=MAX_PATTERN_CHARS, description="Text or regular expression, upper and lower case alike"
    )
    glob: str = Field(default="", description="Only in files whose names match, e.g. *.md")


class SearchTool(Tool):
    """Find lines in the run's files."""

    name = "search_files"
    description = f"Find lines in this run's files by text or regular expression; up to {MAX_MATCHES} matches."
    arguments = SearchArguments

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def execute(self, **arguments: Any) -> ToolResult:
        """Search line by line."""
        found = await asyncio.to_thread(self._matches, _compile(arguments["pattern"]), arguments["glob"])
        more = ["(more matches left out; narrow the pattern)"] if len(found) > MAX_MATCHES else []
        return ToolResult(success=True, content="\n".join([*found[:MAX_MATCHES], *more]) or "No matches.")

    def _matches(self, wanted: "regex.Pattern[str]", glob: str) -> list[str]:
        found: list[str] = []
        deadline = time.monotonic() + SEARCH_SECONDS
        for info in self._workspace.files("", glob):
            try:
                lines = self._workspace.read_text(info.path).splitlines()
            except ToolError:
                continue  # a binary file has no lines to find
            for number, line in enumerate(lines, 1):
                if _occurs(wanted, line[:MAX_LINE_CHARS], deadline):
                    found.append(f"{info.path}:{number}: {line.strip()[:300]}")
                if len(found) > MAX_MATCHES:
                    return found
        return found


def _compile(pattern: str) -> "regex.Pattern[str]":
    if math.prod(max(1, int(count)) for count in regex.findall(r"\{(\d+)", pattern)) > MAX_REPEATS:
        raise ToolError("that pattern repeats too often; use smaller counts in {}")
    try:
        return regex.compile(pattern, regex.IGNORECASE)
    except regex.error:
        return regex.compile(regex.escape(pattern), regex.IGNORECASE)


def _occurs(wanted: "regex.Pattern[str]", line: str, deadline: float) -> bool:
    try:
        return wanted.search(line, timeout=max(0.001, deadline - time.monotonic())) is not None
    except TimeoutError as error:
        raise ToolError("that pattern takes too long to search for; use a plainer one") from error


def file_tools(workspace: Workspace) -> Iterable[Tool]:
    """All file tools of one run's folder."""
    return (
        ReadTool(workspace),
        WriteTool(workspace),
        EditTool(workspace),
        ListTool(workspace),
        SearchTool(workspace),
    )
