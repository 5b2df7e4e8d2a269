"""A shell for agents: commands in a sandbox, in the foreground or as background jobs."""

import asyncio
import os
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec

from pydantic import Field

from explorer.sandbox.jobs import OUTPUTS, Job, Jobs, output_path
from explorer.sandbox.resource_monitor import files_of
from explorer.sandbox.shell import STOPPED, TIMED_OUT, Shell
from explorer.schema.errors import ToolError
from explorer.schema.events import WrittenFile
from explorer.schema.tool import INTERRUPTED, Arguments, Effect, Tool, ToolContext, ToolResult
from explorer.text.rendering import ModelText, block, code, own, render
from explorer.workspace.access import INPUTS, QUESTION
from explorer.workspace.safe_open import opened_below
from explorer.workspace.tree import HEAD_BYTES, kind_of
from explorer.workspace.workspace import REPORT, Workspace, describe, sha256

LONG_BYTES = 1_000
"""Output from this length on is named by its file, too."""
HEAD_CHARS = 8_000
TAIL_CHARS = 4_000
MAX_READ_BYTES = 64_000
"""The bytes of an output's beginning and of its end that are read."""
MAX_FOLDER_FILES = 100_000
"""The number of files in a run's folder that are compared with the journal after a command was cut off."""
MAX_FILES = 200
"""The number of one command's files that get into the index."""
SHOWN_FILES = 20
LIBRARIES = ("numpy", "pandas", "matplotlib", "altair")
"""Libraries for figures and charts: commands have those that the engine's Python has."""
SVG_HEAD_CHARS = 2_000
"""The characters in which an SVG says that it is one, and what it shows."""
SVG_TITLE = re.compile(r"<title>\s*([^<]{1,100}?)\s*</title>")
BLOCK_S = 300.0
MAX_TIMEOUT_S = 600


RecordedFiles = Callable[[], Mapping[str, str]]
"""Returns the sha256 of every file in the journal, by path."""


class ExecuteShellArguments(Arguments):
    """Arguments of `execute_shell`."""

    command: str = Field(min_length=1, max_length=20_000)
    timeout: int = Field(default=120, ge=1, le=MAX_TIMEOUT_S, description="Seconds")
    run_in_background: bool = Field(default=False, description="For what takes over a minute; you get a bash_id")


class ExecuteShellTool(Tool[ExecuteShellArguments]):
    """`execute_shell`: runs a command."""

    name = "execute_shell"
    arguments = ExecuteShellArguments
    activity = "running {command}"
    effect = Effect.JOB
    is_parallel = False
    timeout_s = None

    def __init__(self, shell: Shell, jobs: Jobs, workspace: Workspace, recorded: RecordedFiles) -> None:
        self._shell = shell
        self._jobs = jobs
        self._workspace = workspace
        self._recorded = recorded
        network = "whose only network is a proxy to a few hosts" if shell.place.proxy else "without network"
        self.description = (
            f"Run bash in a sandbox {network}. Writable: {shell.confinement.writable}. {_python()}. "
            "What it leaves running is ended."
        )

    async def execute(self, arguments: ExecuteShellArguments, context: ToolContext) -> ToolResult:
        """Run the command."""
        if arguments.run_in_background:
            job = await self._jobs.start(context.agent, arguments.command)
            words = own(
                '{id} runs in the background; its output: get_shell_output(bash_id="{id}"), or {output}',
                id=code(job.id),
                output=job.output,
            )
            return ToolResult(success=True, content=words, metadata={"bash_id": job.id})
        output = output_path(self._shell.place.folder, context.call)
        ended = await self._shell.run(arguments.command, output, arguments.timeout)
        how = own("exit code {code}", code=ended.exit_code or 0)
        if ended.reason:
            how = _why(ended.reason, arguments.timeout)
        head = own("{how} after {seconds:g} s", how=how, seconds=ended.seconds)
        return await _change_summary(self._workspace, head, f"{OUTPUTS}/{output.name}", (ended.files, ended.removed))

    async def interrupted(self, context: ToolContext) -> ToolResult:
        """Add the files that a command changed before it was cut off to the index."""
        changes = await asyncio.to_thread(unrecorded, self._workspace, self._recorded())
        output = output_path(self._shell.place.folder, context.call)
        found = await _change_summary(self._workspace, INTERRUPTED, f"{OUTPUTS}/{output.name}", changes)
        return found.model_copy(update={"success": False, "error": found.content})


class GetShellOutputArguments(Arguments):
    """Arguments of `get_shell_output`."""

    bash_id: str
    block: bool = Field(default=False, description="Wait for its end")


class GetShellOutputTool(Tool[GetShellOutputArguments]):
    """`get_shell_output`: reads the output of a background job."""

    name = "get_shell_output"
    description = "Read what a background job printed so far, and whether it has ended."
    arguments = GetShellOutputArguments
    activity = "looking at the job {bash_id}"
    timeout_s = BLOCK_S + 30

    def __init__(self, jobs: Jobs, workspace: Workspace) -> None:
        self._jobs = jobs
        self._workspace = workspace

    async def execute(self, arguments: GetShellOutputArguments, context: ToolContext) -> ToolResult:
        """Return the output, after waiting if requested."""
        job = (
            await self._jobs.wait(arguments.bash_id, BLOCK_S) if arguments.block else self._jobs.find(arguments.bash_id)
        )
        return await _job_summary(self._workspace, job)


class KillShellArguments(Arguments):
    """Arguments of `kill_shell`."""

    bash_id: str


class KillShellTool(Tool[KillShellArguments]):
    """`kill_shell`: ends a background job."""

    name = "kill_shell"
    description = "End a background job."
    arguments = KillShellArguments
    activity = "ending the job {bash_id}"

    def __init__(self, jobs: Jobs, workspace: Workspace) -> None:
        self._jobs = jobs
        self._workspace = workspace

    async def execute(self, arguments: KillShellArguments, context: ToolContext) -> ToolResult:
        """End the job."""
        job = await self._jobs.end(arguments.bash_id)
        return await _job_summary(self._workspace, job)


SHELL_TOOLS: tuple[type[Tool], ...] = (ExecuteShellTool, GetShellOutputTool, KillShellTool)
"""The tools that a machine without a sandbox does not have."""


def shell_tools(shell: Shell, jobs: Jobs, workspace: Workspace, recorded: RecordedFiles = dict[str, str]) -> list[Tool]:
    """Return the three tools of a shell.

    Args:
        shell: Runs the commands.
        jobs: The background jobs of the run.
        workspace: The run's folder.
        recorded: Returns sha256 by path of every file that the journal knows.
    """
    return [
        ExecuteShellTool(shell, jobs, workspace, recorded),
        GetShellOutputTool(jobs, workspace),
        KillShellTool(jobs, workspace),
    ]


def _python() -> str:
    """Return the libraries that commands can use, as text for the model."""
    there = [name for name in LIBRARIES if find_spec(name) is not None]
    charts = "save charts as PNG or SVG" if "matplotlib" in there else "write charts as SVG"
    return f"It has {', '.join(['python', *there])} ({charts})"


def state_of(job: Job) -> ModelText:
    """Return the state of a job as text."""
    if job.reason and not job.seconds:
        return own("{reason}", reason=job.reason)
    if job.reason:
        return own("ended after {seconds:g} s: {why}", seconds=job.seconds, why=_why(job.reason, 0))
    if job.exit_code is None:
        return own("running")
    return own("ended with exit code {code} after {seconds:g} s", code=job.exit_code, seconds=job.seconds)


def _why(reason: str, timeout: int) -> ModelText:
    if reason == TIMED_OUT:
        return own("ended because it took longer than {seconds} s", seconds=timeout)
    return own("ended because it was asked to") if reason == STOPPED else own("ended because {reason}", reason=reason)


def unrecorded(workspace: Workspace, recorded: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the files of a run's folder that differ from the journal, and those that are gone.

    Args:
        workspace: The run's folder.
        recorded: sha256 by path, as the journal has it.
    """
    there = files_of(workspace.folder, MAX_FOLDER_FILES)
    given = (QUESTION, REPORT, f"{INPUTS}/")
    findings = [path for path in there if is_finding(path) and not path.startswith(given)]
    changed = tuple(path for path in findings if workspace.digest(path) != recorded.get(path, ""))
    gone = tuple(path for path in recorded if path not in there) if len(there) < MAX_FOLDER_FILES else ()
    return changed, gone


async def _job_summary(workspace: Workspace, job: Job) -> ToolResult:
    head = own("{id}: {state}", id=code(job.id), state=state_of(job))
    return await _change_summary(workspace, head, job.output, (job.files, job.removed))


async def _change_summary(
    workspace: Workspace, head: ModelText, output: str, changes: tuple[Sequence[str], Sequence[str]]
) -> ToolResult:
    """Return the result for the model, with the written and removed files for the index."""
    paths, removed = changes
    text, size, is_cut = await asyncio.to_thread(_ends_of, workspace, output)
    findings = [path for path in paths if is_finding(path)]
    written = await asyncio.to_thread(_all_described, workspace, findings[:MAX_FILES])
    # A long result may be cleared from the conversation later: its first line says where it is.
    where = own(", all of it in {output}", output=output) if is_cut or size > LONG_BYTES else own("")
    gone = [path for path in removed if is_finding(path)]
    names = ", ".join(gone[:SHOWN_FILES]) + (" and more" if gone[SHOWN_FILES:] else "")
    content = render(
        own("{head}; {size} bytes of output{where}", head=head, size=size, where=where),
        own("files written: {files}", files=_named(written, findings)) if findings else own(""),
        own("files removed: {names}", names=names) if gone else own(""),
        block(text),
    )
    return ToolResult(success=True, content=content, metadata={"files": list(written.values()), "removed": gone})


def is_finding(path: str) -> bool:
    """Return whether a written file belongs in the index; hidden files and caches of programs do not."""
    return not any(part.startswith(".") or part == "__pycache__" for part in path.split("/"))


def _named(written: dict[str, WrittenFile], paths: Sequence[str]) -> str:
    names = [f"{file.path} ({file.bytes} bytes)" for file in list(written.values())[:SHOWN_FILES]]
    more = len(paths) - len(names)
    rest = f"{more} more" if len(written) > len(names) else f"{more} that cannot be listed (too big, or gone again)"
    return " and ".join([*([", ".join(names)] if names else []), *([rest] if more else [])])


def _ends_of(workspace: Workspace, output: str) -> tuple[str, int, bool]:
    """Return an output's beginning and end as text, its size in bytes, and whether anything between is left out."""
    try:
        with opened_below(workspace.folder, output) as file:
            size = os.fstat(file.fileno()).st_size
            first = file.read(MAX_READ_BYTES)
            file.seek(max(len(first), size - MAX_READ_BYTES))
            last = file.read(MAX_READ_BYTES)
    except OSError:
        return "", 0, False
    text = (first + last).decode("utf-8", "replace")
    if len(text) <= HEAD_CHARS + TAIL_CHARS and size == len(first + last):
        return text.rstrip(), size, False
    cut = size - len(text[:HEAD_CHARS].encode()) - len(text[-TAIL_CHARS:].encode())
    return f"{text[:HEAD_CHARS]}\n[{cut} bytes cut]\n{text[-TAIL_CHARS:].rstrip()}", size, True


def _all_described(workspace: Workspace, paths: Sequence[str]) -> dict[str, WrittenFile]:
    """Return files for the index, by path, without those that cannot be named or read, or are gone again."""
    found = {path: _described(workspace, path) for path in paths}
    return {path: file for path, file in found.items() if file is not None}


def _described(workspace: Workspace, path: str) -> WrittenFile | None:
    try:
        content = workspace.read_bytes(path)
    except ToolError:
        return None
    kind, digest = kind_of(content[:HEAD_BYTES]), sha256(content)
    if kind:
        return WrittenFile(path=path, title=kind, lines=0, bytes=len(content), sha256=digest)
    text = content.decode("utf-8", "replace")
    as_it_is = {"sha256": digest, "bytes": len(content)}
    return describe(path, text).model_copy(update={**as_it_is, **_svg(text[:SVG_HEAD_CHARS])})


def _svg(head: str) -> dict[str, str]:
    """Return the title of an SVG image, whose first line has no content."""
    if "<svg" not in head or not head.lstrip().startswith("<"):
        return {}
    found = SVG_TITLE.search(head)
    return {"title": f"an SVG image: {found[1]}" if found else "an SVG image"}
