"""The file tools, which read, write, edit, list and search the run's folder."""

import asyncio
import math
import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable
from typing import Literal, LiteralString, TypeVar

import regex
from pydantic import Field

from explorer.schema.errors import ToolError
from explorer.schema.events import FileChange, WrittenFile
from explorer.schema.tool import Arguments, Effect, Tool, ToolContext, ToolResult
from explorer.text.rendering import ModelText, block, own, render
from explorer.text.sanitize import visible
from explorer.workspace.access import writer_of
from explorer.workspace.threads import uninterrupted
from explorer.workspace.tree import LineRange, describe
from explorer.workspace.workspace import MAX_FILE_BYTES, MAX_LISTED, Workspace

MAX_LINES = 400
"""The lines of one reply of `read_file`; the model pages through longer files."""
MAX_LINE_CHARS = 2_000
MAX_MATCHES = 100
MAX_NAMED = 500
"""The number of paths in a listing's data for programs."""
MAX_PATTERN_CHARS = 300
SEARCH_SECONDS = 2.0
"""The seconds for one search. A pattern may backtrack without end; `re` could not be stopped, `regex` can."""
SEARCH_ALL_SECONDS = 10.0
"""The seconds for one search through many files, reading included."""
CHANGED_BY_ANOTHER: LiteralString = (
    "{path} is not changed: another agent or a command changed it in this moment; read it again first"
)
MAX_REPEATS = 5_000
"""The product of a pattern's `{n}`: `regex` unrolls them, and `a{1000000000}` would use all memory."""


class FileArguments(Arguments):
    """The base of the arguments of tools on one file."""

    filepath: str


Args = TypeVar("Args", bound=FileArguments)


class ReadFileArguments(FileArguments):
    """Arguments of `read_file`."""

    start_line: int = Field(default=1, ge=1)
    end_line: int | None = Field(default=None, ge=1)


class ReadTool(Tool[ReadFileArguments]):
    """`read_file`: reads a text file, with line numbers."""

    name = "read_file"
    description = f"Read a text file of this run, {MAX_LINES} lines at a time, each after its number and a tab."
    arguments = ReadFileArguments
    activity = "reading {filepath}"
    is_for_report = True
    pages_itself = True

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def execute(self, arguments: ReadFileArguments, context: ToolContext) -> ToolResult:
        """Return the requested lines."""
        path, start, end = arguments.filepath, arguments.start_line, arguments.end_line
        most = start + MAX_LINES - 1
        found = await asyncio.to_thread(
            self._workspace.read_lines, path, start, most if end is None else min(end, most)
        )
        if start > max(1, found.total):
            raise ToolError.of(
                "{path} has {total} lines; start_line={start} is past its end",
                path=path,
                total=found.total,
                start=start,
            )
        if end is not None and end < start:
            raise ToolError.of("end_line={end} is before start_line={start}", end=end, start=start)
        cut = sum(len(line) > MAX_LINE_CHARS for line in found.lines)
        shown = {
            "path": path,
            "unit": "lines",
            "first": start,
            "last": start + len(found.lines) - 1,
            "total": found.total,
            "cut": cut,
        }
        return ToolResult(success=True, content=_numbered(path, start, found), metadata=shown)


def _numbered(path: str, start: int, found: LineRange) -> ModelText:
    if not found.total and found.is_whole:
        return own("{path} is empty", path=path)
    last = start + len(found.lines) - 1
    of = own("of" if found.is_whole else "of more than")
    lines = "\n".join(f"{number}\t{_clip(visible(line))}" for number, line in enumerate(found.lines, start))
    rest = found.total - last
    tail = own("" if found.is_whole else "(what follows is too far in to be read here)")
    if rest > 0:
        tail = own("({rest} more lines; read on with start_line={next})", rest=rest, next=last + 1)
    return render(
        own("{path}, lines {start}-{last} {of} {total}", path=path, start=start, last=last, of=of, total=found.total),
        block(lines, writer_of(path)),
        tail,
    )


def _clip(line: str) -> str:
    return line if len(line) <= MAX_LINE_CHARS else f"{line[:MAX_LINE_CHARS]} [line cut at {MAX_LINE_CHARS} characters]"


class ChangingTool(Tool[Args]):
    """A tool that foresees a change to a text file, makes it under a lock, and recognises it after a crash."""

    effect = Effect.CHECKED
    is_parallel = False
    is_for_report = True
    verb: LiteralString
    """The verb in the result."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def foresee(self, arguments: Args) -> FileChange:
        """Return the change to make."""
        return await asyncio.to_thread(self._workspace.foresee, arguments.filepath, self._text(arguments))

    async def execute(self, arguments: Args, context: ToolContext) -> ToolResult:
        """Make the change, unless the file is no longer as it was when the change was foreseen."""
        async with self._workspace.lock(arguments.filepath):
            if context.change is not None and self._rests_on_what_stood(arguments):
                await asyncio.to_thread(self._refuse_changed, context.change)
            text = await asyncio.to_thread(self._text, arguments)
            written = await uninterrupted(self._workspace.write_text, arguments.filepath, text)
        return _change_summary(self.verb, written)

    async def recall(self, change: FileChange) -> ToolResult:
        """Return the result of a change that was made before a crash."""
        return _change_summary(self.verb, describe(change.path, self._workspace.read_text(change.path)))

    def _rests_on_what_stood(self, arguments: Args) -> bool:
        """Return whether another agent's change to the file would be lost or become wrong."""
        return True

    def _refuse_changed(self, foreseen: FileChange) -> None:
        if self._workspace.digest(foreseen.path) != foreseen.before:
            raise ToolError.of(CHANGED_BY_ANOTHER, path=foreseen.path)

    @abstractmethod
    def _text(self, arguments: Args) -> str:
        """Return the file's whole text after the change."""


class WriteFileArguments(FileArguments):
    """Arguments of `write_file`."""

    content: str
    mode: Literal["create", "overwrite", "append"] = Field(
        default="create", description="create refuses a file that is there already"
    )


class WriteTool(ChangingTool[WriteFileArguments]):
    """`write_file`: writes a text file."""

    name = "write_file"
    description = "Write a text file of this run; folders are made."
    arguments = WriteFileArguments
    activity = "writing {filepath}"
    verb = "Wrote"

    def _rests_on_what_stood(self, arguments: WriteFileArguments) -> bool:
        """Return False for additions at the end, which keep those of others, and for `create`, which checks itself."""
        return arguments.mode == "overwrite"

    def _text(self, arguments: WriteFileArguments) -> str:
        path, content, mode = arguments.filepath, arguments.content, arguments.mode
        exists = self._workspace.exists(path)
        if mode == "create" and exists and self._workspace.read_text(path) != content:
            raise ToolError.of(
                '{path} is there already; use mode="overwrite" or "append", edit_file, or another name', path=path
            )
        if mode == "append" and exists:
            return self._workspace.read_text(path) + content
        return content


class EditFileArguments(FileArguments):
    """Arguments of `edit_file`."""

    old_string: str = Field(min_length=1, description="As in the file, without line numbers; must occur exactly once")
    new_string: str


class EditTool(ChangingTool[EditFileArguments]):
    """`edit_file`: replaces one passage of a text file."""

    name = "edit_file"
    description = "Replace one passage of a file."
    arguments = EditFileArguments
    activity = "editing {filepath}"
    verb = "Edited"

    def _text(self, arguments: EditFileArguments) -> str:
        path, old, new = arguments.filepath, arguments.old_string, arguments.new_string
        text = self._workspace.read_text(path)
        count = text.count(old)
        if count != 1:
            found = own("occurs {count} times", count=count) if count else own("does not occur")
            raise ToolError.of(
                "old_string {found} in {path}; read the file and give a passage that occurs exactly once",
                found=found,
                path=path,
            )
        return text.replace(old, new)


def _change_summary(verb: LiteralString, written: WrittenFile) -> ToolResult:
    return ToolResult(
        success=True,
        content=own(
            "{verb} {path} ({lines} lines, {bytes} bytes).",
            verb=own(verb),
            path=written.path,
            lines=written.lines,
            bytes=written.bytes,
        ),
        metadata={"files": [written.model_dump()]},
    )


class ListFilesArguments(Arguments):
    """Arguments of `list_files`."""

    path: str = ""
    glob: str = Field(default="", description="e.g. stories/*.md")


class ListTool(Tool[ListFilesArguments]):
    """`list_files`: lists files."""

    name = "list_files"
    description = "List the files of this run, with lines and bytes."
    arguments = ListFilesArguments
    activity = "listing files"
    is_for_report = True

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def execute(self, arguments: ListFilesArguments, context: ToolContext) -> ToolResult:
        """Return the list of files."""
        found = await asyncio.to_thread(self._workspace.files, arguments.path, arguments.glob)
        listed = "\n".join(f"{info.path} ({info.lines} lines, {info.bytes} bytes)" for info in found)
        more = "(more files may be left out; give a path or a glob)" if len(found) == MAX_LISTED else ""
        content = render(block(listed), own(more)) or own("No files.")
        paths = [info.path for info in found[:MAX_NAMED]]
        return ToolResult(success=True, content=content, metadata={"paths": paths})


class SearchFilesArguments(Arguments):
    """Arguments of `search_files`."""

    pattern: str = Field(min_length=1, max_length=MAX_PATTERN_CHARS, description="Text or regular expression")
    glob: str = ""


class SearchTool(Tool[SearchFilesArguments]):
    """`search_files`: finds lines in the run's files."""

    name = "search_files"
    description = "Find lines in the files of this run, in any case of letters."
    arguments = SearchFilesArguments
    activity = 'searching the files for "{pattern}"'
    is_for_report = True

    def __init__(self, workspace: Workspace, seconds: float = SEARCH_SECONDS) -> None:
        self._workspace = workspace
        self._seconds = seconds
        """The seconds for one search, after which the pattern counts as endless."""

    async def execute(self, arguments: SearchFilesArguments, context: ToolContext) -> ToolResult:
        """Search line by line."""
        wanted, glob = _compile(arguments.pattern), arguments.glob
        sizes = await asyncio.to_thread(self._workspace.sizes, glob)
        big = [path for path, size in sizes.items() if size > MAX_FILE_BYTES]
        found, notes = await asyncio.to_thread(self._matches, wanted, [path for path in sizes if path not in big])
        counts = dict(Counter(path for path, _ in found))
        if big:
            names = ", ".join(big[:10])
            notes.append(own("(not searched, over {most} bytes: {names})", most=MAX_FILE_BYTES, names=names))
        lines = block("\n".join(line for _, line in found)) or own("No matches.")
        return ToolResult(success=True, content=render(lines, *notes), metadata={"matches": counts})

    def _matches(
        self, wanted: "regex.Pattern[str]", paths: Iterable[str]
    ) -> tuple[list[tuple[str, str]], list[ModelText]]:
        """Return the lines found, each with its file, and notes on the search."""
        found: list[tuple[str, str]] = []
        began = time.monotonic()
        for path in paths:
            if time.monotonic() - began > SEARCH_ALL_SECONDS:
                words = "(stopped after {seconds:g} s, before {path}; narrow the glob)"
                return found, [own(words, seconds=SEARCH_ALL_SECONDS, path=path)]
            try:
                lines = self._workspace.read_text(path).splitlines()
            except ToolError:
                continue  # a binary file has no lines to find
            for number, line in enumerate(lines, 1):
                if _occurs(wanted, line[:MAX_LINE_CHARS], began + self._seconds):
                    found.append((path, f"{path}:{number}: {line.strip()[:300]}"))
                if len(found) > MAX_MATCHES:
                    return found[:MAX_MATCHES], [own("(more matches left out; narrow the pattern)")]
        return found, []


def _compile(pattern: str) -> "regex.Pattern[str]":
    if math.prod(max(1, int(count)) for count in regex.findall(r"\{(\d+)", pattern)) > MAX_REPEATS:
        raise ToolError.of("that pattern repeats too often; use smaller counts in {{}}")
    try:
        return regex.compile(pattern, regex.IGNORECASE)
    except regex.error:
        return regex.compile(regex.escape(pattern), regex.IGNORECASE)


def _occurs(wanted: "regex.Pattern[str]", line: str, deadline: float) -> bool:
    try:
        return wanted.search(line, timeout=max(0.001, deadline - time.monotonic())) is not None
    except TimeoutError as error:
        raise ToolError.of("that pattern takes too long to search for; use a plainer one") from error


def file_tools(workspace: Workspace) -> Iterable[Tool]:
    """Return all file tools of one run's folder."""
    return (
        ReadTool(workspace),
        WriteTool(workspace),
        EditTool(workspace),
        ListTool(workspace),
        SearchTool(workspace),
    )
