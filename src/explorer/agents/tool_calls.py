"""Tool calls, from a model's request to a recorded result: checked, run, cut to size, and on disk.

This module has the only broad `except` of the engine: a crash in a tool becomes its result and never cancels its
siblings.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import LiteralString, NamedTuple, cast

from loguru import logger
from pydantic import TypeAdapter

from explorer.journal.agent_state import AgentState, OpenCall
from explorer.schema.errors import (
    ExplorerError,
    ModelError,
    PausedError,
    StorageError,
    ToolError,
    WaitingError,
    first_of,
)
from explorer.schema.events import AnyEvent, FileChange, Source, ToolFinished, ToolStarted, WrittenFile
from explorer.schema.messages import JsonObject, ToolCall
from explorer.schema.tool import (
    Arguments,
    Effect,
    RunFiles,
    SourceDraft,
    Store,
    Tool,
    ToolContext,
    ToolResult,
    lookup_of,
    no_store,
)
from explorer.schema.toolbox import Toolbox
from explorer.text.rendering import ModelText, code, fenced, fenced_lines, first_chars, last_chars, own, render
from explorer.text.sanitize import single_line
from explorer.workspace.source_store import remarks
from explorer.workspace.workspace import Workspace, uninterrupted

OF_THE_RUN = (ModelError, PausedError, StorageError, WaitingError)
"""Errors that are not the tool's: they end or pause the run."""
MAX_RESULT_CHARS = 40_000
"""Limit of one result in a conversation. A longer result is kept in a file, and the model gets its start and end."""
MAX_TURN_CHARS = 100_000
"""Limit of all results of one turn, each with an equal share: two hundred calls at once must not fill a window."""
MIN_RESULT_CHARS = 400
MAX_SPILL_CHARS = 2_000_000
"""Limit of one file with a part of a result: in any script no more bytes than a file of a run may have."""
START_CHARS = 12_000
END_CHARS = 4_000
MAX_NOTE_CHARS = 320
"""Limit of the note between start and end, and of the fence that is closed before it and opened again after it."""
MAX_DATA_BYTES = 256 * 1024
"""Limit of the metadata without `OWN_FIELDS`, as JSON."""
OWN_FIELDS = frozenset({"files", "removed", "sources"})
"""Metadata that are fields of `tool_finished` itself."""
_FILES: TypeAdapter[tuple[WrittenFile, ...]] = TypeAdapter(tuple[WrittenFile, ...])
_NAMES: TypeAdapter[tuple[str, ...]] = TypeAdapter(tuple[str, ...])


class CallOutputs:
    """Collects the sources and files of one call, so that the journal has them whatever the tool returns.

    It is the call's store and its `RunFiles`.
    """

    def __init__(self, store: Store, files: RunFiles) -> None:
        self._store = store
        self._files = files
        self._sources: dict[str, Source] = {}
        self._written: dict[str, WrittenFile] = {}

    async def store(self, drafts: Sequence[SourceDraft]) -> list[Source]:
        """Store evidence in the run; when this returns, it is on disk."""
        sources = await self._store(drafts)
        self._sources.update((source.id, source) for source in sources)
        return sources

    def exists(self, path: str) -> bool:
        """Return whether a file of the run exists."""
        return self._files.exists(path)

    def read_text(self, path: str) -> str:
        """Return a text file's content."""
        return self._files.read_text(path)

    def write_text(self, path: str, text: str) -> WrittenFile:
        """Create or replace a text file of the run."""
        written = self._files.write_text(path, text)
        self._written[written.path] = written
        return written

    def added_to(self, result: ToolResult) -> ToolResult:
        """Return a result with the sources and files of its call, and with remarks on repeated sources for the model.

        The result of a failed call gets its files, which exist, and no sources: the model was shown none.
        """
        if not self._sources and not self._written:
            return result
        metadata, content = dict(result.metadata), result.content
        if self._written:
            metadata["files"] = [*metadata.get("files", ()), *self._written.values()]
        if self._sources and result.success:
            metadata["sources"] = list(dict.fromkeys([*metadata.get("sources", ()), *self._sources]))
            content = render(fenced(content), *remarks(self._sources.values()))
        return result.model_copy(update={"metadata": metadata, "content": content})


class Recorded(NamedTuple):
    """The metadata of a result in the types of `tool_finished`."""

    files: tuple[WrittenFile, ...]
    removed: tuple[str, ...]
    sources: tuple[str, ...]
    data: JsonObject
    """A copy of the metadata that has no field of its own."""


def recorded(result: ToolResult) -> Recorded:
    """Read a result's metadata.

    Raises:
        ValueError: A field has the wrong type, or the rest is not JSON or too long.
    """
    if not result.metadata:
        return Recorded((), (), (), {})
    written = json.dumps({name: value for name, value in result.metadata.items() if name not in OWN_FIELDS})
    if len(written) > MAX_DATA_BYTES:
        raise ValueError(f"the result's metadata takes {len(written)} bytes; the limit is {MAX_DATA_BYTES}")
    return Recorded(
        files=_FILES.validate_python(result.metadata.get("files", ())),
        removed=_NAMES.validate_python(result.metadata.get("removed", ())),
        sources=_NAMES.validate_python(result.metadata.get("sources", ())),
        data=cast("JsonObject", json.loads(written)),
    )


def well_formed(result: ToolResult) -> ToolResult:
    """Check the result of a tool that is not ours, while an error in it still belongs to the tool.

    Raises:
        ValueError: It is not a result, or its metadata cannot be recorded.
    """
    checked = ToolResult.model_validate(result)
    recorded(checked)
    return checked


def share_of_turn(calls: int, most: int) -> int:
    """Return how many characters each result of a turn may have.

    It depends on the number of calls alone, so that a resumed turn has the same share.
    """
    return min(most, max(MIN_RESULT_CHARS, MAX_TURN_CHARS // max(1, calls)))


async def spilled(content: ModelText, key: str, workspace: Workspace, max_chars: int) -> tuple[ModelText, JsonObject]:
    """Keep a long result in files, and cut it to its start and end.

    Returns:
        What the model reads; and what is left out of it, for programs: `characters`, the `files` with the whole
        result, and how many of the `fenced_lines` are complete.
    """
    starts = range(0, len(content), MAX_SPILL_CHARS)
    paths: list[ModelText] = []
    for number, start in enumerate(starts, 1):
        path = own(".explorer/outputs/{name}.txt", name=code(f"{key}-{number}" if start else key))
        await uninterrupted(workspace.write_own, path, content[start : start + MAX_SPILL_CHARS])
        paths.append(path)
    left = max_chars - MAX_NOTE_CHARS
    if len(content) > MAX_RESULT_CHARS:
        # So long a result is rather looked up in its file than read up to the limit.
        left = min(left, START_CHARS + END_CHARS)
    start, end = left * 3 // 4, left // 4
    shown = render(
        first_chars(content, start),
        own(
            "\n[{left} of {total} characters are left out here; all of it is in {paths}: "
            'read_file(filepath="{first}", start_line=...)]\n',
            left=len(content) - start - end,
            total=len(content),
            paths=render(*paths, between=", "),
            first=paths[0],
        ),
        last_chars(content, end),
    )
    whole_lines = max(0, len(fenced_lines(content[:start])) - 1)
    return shown, {"characters": len(content) - start - end, "files": paths, "fenced_lines": whole_lines}


def first_page(content: ModelText, max_chars: int) -> tuple[ModelText, JsonObject]:
    """Cut the result of a tool that pages itself at the end of a line: in a file it would be a copy of what was read.

    Returns:
        What the model reads; and what is left out of it, for programs: `characters`.
    """
    left = max_chars - MAX_NOTE_CHARS
    kept = content[:left].rfind("\n") + 1 or left
    words = "[cut here, at {kept} of {total} characters: read on from here, in smaller parts]"
    shown = render(first_chars(content, kept), own(words, kept=kept, total=len(content)))
    return shown, {"characters": len(content) - len(shown)}


MAX_ERROR_CHARS = 6_500
MAX_ACTIVITY_CHARS = 80
"""Limit of the text for people on what a call does."""
MAX_PROGRESS_CHARS = 120
"""Limit of a tool's text on how far a call is."""
CUT_OFF: LiteralString = "{name} was cut off before it had a result"
CHANGED_MEANWHILE: LiteralString = (
    "This call was interrupted, and {path} has changed since: read it before you write again."
)

Append = Callable[[AnyEvent], Awaitable[None]]
"""Put an event on disk and apply it to the state."""
Authorize = Callable[[str, ToolCall], ToolError | None]
"""Return why a call of an agent is refused now; None when it is not."""


StoreFor = Callable[[Tool, Sequence[SourceDraft]], Awaitable[list[Source]]]
"""Store the drafts of a tool's call and return their sources, in order."""


@dataclass(frozen=True)
class CallServices:
    """The parts of a run that its tool calls use."""

    toolbox: Toolbox
    record: Append
    workspace: Workspace
    """The run's folder: it keeps long results, and shows what an interrupted call had changed."""
    store: StoreFor = lambda _tool, drafts: no_store(drafts)
    within: Callable[[Tool, Awaitable[ToolResult]], Awaitable[ToolResult]] = lambda _tool, doing: doing
    """Await the work of a tool, or cut it off."""
    authorize: Authorize = lambda _agent, _call: None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    progress: Callable[[str], None] = lambda _words: None
    """Show the user a line on how far a call is."""
    max_result_chars: int = MAX_RESULT_CHARS
    """Limit of one result in the conversation."""


async def execute_calls(state: AgentState, services: CallServices) -> None:
    """Give every call of the open turn its one result: parallel ones together, serial ones as barriers.

    Raises:
        ExplorerError: The disk or the provider failed, which no result can express; finished siblings are on disk.
    """
    batch: list[OpenCall] = []
    calls = state.calls()
    services = replace(services, max_result_chars=share_of_turn(len(calls), services.max_result_chars))
    for call in calls:
        if call.finished is not None:
            continue
        if _is_parallel(call, services.toolbox):
            batch.append(call)
            continue
        await _run_together(state, batch, services)
        await _run_together(state, [call], services)
        batch = []
    await _run_together(state, batch, services)


def _is_parallel(call: OpenCall, toolbox: Toolbox) -> bool:
    try:
        return toolbox.find(call.call.name).is_parallel
    except ToolError:
        return True


async def _run_together(state: AgentState, calls: list[OpenCall], services: CallServices) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_run_one(state, call, services), name=call.key) for call in calls]
    except BaseExceptionGroup as errors:
        raise first_of(errors, ExplorerError) or errors from None
    for call, task in zip(calls, tasks, strict=True):
        # The run did not cancel it: a library did so by mistake. Without a result the call would be made for ever.
        if task.cancelled():
            result = ToolResult(success=False, error=own(CUT_OFF, name=code(call.call.name)))
            await services.record(await _finished(state.agent, call, result, services))


async def _run_one(state: AgentState, call: OpenCall, services: CallServices) -> None:
    try:
        tool, arguments = _admit(state.agent, call, services)
    except ToolError as refused:
        result = _refused(refused)
        await services.record(await _finished(state.agent, call, result, services))
        return
    outputs, error = CallOutputs(partial(services.store, tool), services.workspace), None
    context = _context_of(state, call, outputs, services)
    try:
        result = await _guarded(tool, _permitted(call, (tool, arguments), context), None)
        if result.success:
            doing = _execute(call, (tool, arguments), context, services)
            result = await _guarded(tool, services.within(tool, doing), tool.timeout_s)
    except ToolError as refused:
        result, error = _refused(refused), refused
    result = outputs.added_to(result)
    finished = await _finished(state.agent, call, result, services)
    ends, lookup = tool.ends_agent and result.success, lookup_of(tool, result, error)
    await services.record(finished.model_copy(update={"ends_agent": ends, "lookup": lookup}))


def _refused(error: ToolError) -> ToolResult:
    return ToolResult(success=False, error=error.words, metadata=dict(error.data))


def _admit(agent: str, call: OpenCall, services: CallServices) -> tuple[Tool, Arguments]:
    refusal = None if call.started else services.authorize(agent, call.call)
    if refusal is not None:
        raise refusal
    return services.toolbox.prepare(call.call)


def _context_of(state: AgentState, call: OpenCall, outputs: CallOutputs, services: CallServices) -> ToolContext:
    def progress(words: str) -> None:
        services.progress(f"{state.agent}  {call.call.name}: {single_line(words, MAX_PROGRESS_CHARS)}")

    return ToolContext(
        workspace=outputs,
        call=call.key,
        agent=state.agent,
        role=state.role,
        task=state.latest_task or state.task,
        store=outputs.store,
        now=services.now,
        progress=progress,
    )


async def _permitted(call: OpenCall, asked: tuple[Tool, Arguments], context: ToolContext) -> ToolResult:
    """Wait for the permission to begin a call; one that an earlier session began has it."""
    tool, arguments = asked
    if call.started is None:
        await tool.permit(arguments, context)
    return ToolResult(success=True)


async def _execute(
    call: OpenCall, asked: tuple[Tool, Arguments], context: ToolContext, services: CallServices
) -> ToolResult:
    """Resume a call that an earlier session began; else record what it is about to do, and do it."""
    tool, arguments = asked
    result = await _resume_call(tool, call.started, context, services)
    if result is not None:
        return result
    change = call.started.change if call.started else await tool.foresee(arguments)
    if call.started is None:
        await services.record(
            ToolStarted(
                agent=context.agent,
                call=call.key,
                name=tool.name,
                effect=tool.effect,
                change=change,
                activity=single_line(tool.describe(arguments), MAX_ACTIVITY_CHARS),
            )
        )
    return await tool.execute(arguments, replace(context, change=change) if change is not None else context)


async def _resume_call(
    tool: Tool, started: ToolStarted | None, context: ToolContext, services: CallServices
) -> ToolResult | None:
    """Return the result of a call that an earlier session of the run began; None when it is to be run."""
    if started is None or tool.effect in {Effect.PURE, Effect.REPEATABLE, Effect.CHILD}:
        return None
    if tool.effect is Effect.CHECKED and started.change is not None:
        return await _compare(tool, started.change, services.workspace.digest(started.change.path))
    return await tool.interrupted(context)


async def _compare(tool: Tool, change: FileChange, now: str) -> ToolResult | None:
    if now == change.after:
        return await tool.recall(change)
    if now == change.before:
        return None
    return ToolResult(success=False, error=own(CHANGED_MEANWHILE, path=change.path))


async def _guarded(tool: Tool, doing: Awaitable[ToolResult], timeout_s: float | None) -> ToolResult:
    """Return what a tool returns within its time limit; any other outcome becomes an error for the model."""
    limit = asyncio.timeout(timeout_s)
    try:
        async with limit:
            return well_formed(await doing)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return ToolResult(success=False, error=own(CUT_OFF, name=code(tool.name)))
    except Exception as raised:  # noqa: BLE001 - the one place: a crash in a tool is logged and becomes its result
        error = _decisive(raised)
        if isinstance(error, (ToolError, *OF_THE_RUN)):
            raise error from None
        if limit.expired():
            words = "{name} took longer than {seconds:g} s and was stopped"
            return ToolResult(success=False, error=own(words, name=code(tool.name), seconds=timeout_s or 0.0))
        logger.exception("{} crashed", tool.name)
        kind = type(error).__name__
        return ToolResult(
            success=False, error=own("{name} failed: {kind}: {error}", name=code(tool.name), kind=kind, error=error)
        )


def _decisive(raised: Exception) -> Exception:
    """Return the error of a tool's task group that decides: one of the run, then a crash, then words for the model."""
    if not isinstance(raised, ExceptionGroup):
        return raised
    errors = [_decisive(one) for one in cast("ExceptionGroup[Exception]", raised).exceptions]
    return min(errors, key=lambda one: (not isinstance(one, OF_THE_RUN), isinstance(one, ToolError)))


async def _finished(agent: str, call: OpenCall, result: ToolResult, services: CallServices) -> ToolFinished:
    """Return the record of a call's result, cut to size."""
    most = services.max_result_chars
    content = result.text if result.success else first_chars(result.text, min(MAX_ERROR_CHARS, most))
    brought = recorded(result)
    left_out: JsonObject = {}
    if len(content) > most:
        pages_itself = services.toolbox.find(call.call.name).pages_itself
        content, cut = (
            first_page(content, most) if pages_itself else await spilled(content, call.key, services.workspace, most)
        )
        left_out = {"left_out": cut}
    return ToolFinished(
        agent=agent,
        call=call.key,
        name=call.call.name,
        success=result.success,
        content=content,
        files=brought.files,
        removed=brought.removed,
        sources=brought.sources,
        data=brought.data | left_out,
    )
