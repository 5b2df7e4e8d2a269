"""One call, from a model's words to a recorded result: checked, run, cut to size, and on disk.

Here is the only broad `except` of the engine: a crash in a tool becomes its result and never cancels its siblings.
"""

import asyncio
import difflib
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import cast

from loguru import logger
from pydantic import TypeAdapter, ValidationError

from explorer.agents.call_outputs import CallOutputs
from explorer.journal.agent_state import AgentState, OpenCall
from explorer.schema.errors import ExplorerError, ModelError, StorageError, ToolError, first_of
from explorer.schema.events import AnyEvent, FileChange, Source, ToolFinished, ToolStarted, WrittenFile
from explorer.schema.messages import JsonObject, ToolCall
from explorer.schema.tool import Arguments, Effect, Tool, ToolResult, lookup_of
from explorer.schema.tool_context import SourceDraft, ToolContext, no_store
from explorer.text.sanitize import fenced_lines, single_line
from explorer.workspace.workspace import Workspace

MAX_RESULT_CHARS = 40_000
"""A longer result is kept in a file, and the model gets its head and tail."""
MAX_TURN_CHARS = 100_000
"""Of all results of one turn, each with an equal share: two hundred calls at once must not fill a window."""
MIN_RESULT_CHARS = 400
MAX_SPILL_CHARS = 2_000_000
"""Of one file: in any script no more bytes than a file of a run may have."""
HEAD_CHARS = 12_000
TAIL_CHARS = 4_000
MAX_NOTE_CHARS = 200
"""Of the words between head and tail."""
MAX_ERROR_CHARS = 6_500
MAX_ACTIVITY_CHARS = 80
"""Of what a call does, in words for people."""
MAX_PROGRESS_CHARS = 120
"""Of a tool's words on how far a call is."""
CUT_OFF = "{name} was cut off before it had a result"
CHANGED_MEANWHILE = "This call was interrupted, and {path} has changed since: read it before you write again."

Append = Callable[[AnyEvent], Awaitable[None]]
"""Put an event on disk and fold it in."""
Authorize = Callable[[str, ToolCall], ToolError | None]
"""By agent and call: why it is refused just now; None when it is not."""
_FILES: TypeAdapter[tuple[WrittenFile, ...]] = TypeAdapter(tuple[WrittenFile, ...])
_NAMES: TypeAdapter[tuple[str, ...]] = TypeAdapter(tuple[str, ...])
OWN_FIELDS = frozenset({"files", "removed", "sources"})
"""Of a result's metadata: fields of `tool_finished` itself."""
MAX_DATA_BYTES = 256 * 1024
"""Of the other metadata, as JSON."""


class Toolbox:
    """The tools one agent may call, by name."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: Mapping[str, Tool] = {tool.name: tool for tool in tools}

    def names(self) -> list[str]:
        """All names, in the order the model is told them."""
        return list(self._tools)

    def find(self, name: str) -> Tool:
        """The tool of that name.

        Raises:
            ToolError: There is none; the message names the closest.
        """
        if name in self._tools:
            return self._tools[name]
        close = difflib.get_close_matches(name, self._tools, n=1, cutoff=0.5)
        guess = f"; did you mean {close[0]}?" if close else ""
        # On a line of its own: the first line is the reason that people are shown.
        raise ToolError(f"there is no tool called {name!r}{guess}\nYour tools: {', '.join(self._tools)}")

    def prepare(self, call: ToolCall) -> tuple[Tool, Arguments]:
        """Return the tool and its validated arguments.

        Raises:
            ToolError: Unknown tool, broken JSON or wrong arguments; says exactly what would be right.
        """
        tool = self.find(call.name)
        if call.arguments is None:
            raise ToolError(f"{call.name} was not run: {call.problem or 'its arguments are not a JSON object'}")
        try:
            return tool, tool.arguments.model_validate(call.arguments)
        except ValidationError as error:
            raise ToolError(f"{call.name} was not run: {_explain(error, tool)}") from error


def _explain(error: ValidationError, tool: Tool) -> str:
    properties: JsonObject = tool.parameters["properties"]
    lines: list[str] = []
    for problem in error.errors():
        field = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            close = difflib.get_close_matches(field, properties, n=1)
            lines.append(f"no argument `{field}`" + (f" (did you mean `{close[0]}`?)" if close else ""))
        else:
            lines.append(f"`{field}`: {problem['msg']}")
    return f"{'; '.join(lines)}. Its arguments: {', '.join(properties) or 'none'}"


StoreFor = Callable[[Tool, Sequence[SourceDraft]], Awaitable[list[Source]]]
"""Store the drafts of a tool's call and return their sources, in order."""


async def _no_store_for(_tool: Tool, drafts: Sequence[SourceDraft]) -> list[Source]:
    return await no_store(drafts)


@dataclass(frozen=True)
class CallServices:
    """What running calls needs of the run."""

    toolbox: Toolbox
    record: Append
    workspace: Workspace
    """The run's folder: long results are kept there, and a call cut off in a change looks there what was done."""
    store: StoreFor = _no_store_for
    within: Callable[[Tool, Awaitable[ToolResult]], Awaitable[ToolResult]] = lambda _tool, doing: doing
    """Awaits what a tool does; may cut it off."""
    authorize: Authorize = lambda _agent, _call: None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    progress: Callable[[str], None] = lambda _words: None
    """Shows the user a line on how far a call is."""
    max_result_chars: int = MAX_RESULT_CHARS
    """Of one result in the conversation."""


async def execute_calls(state: AgentState, services: CallServices) -> None:
    """Give every call of the open turn its one result: parallel ones together, serial ones as barriers.

    Raises:
        ExplorerError: Something no result can say (the disk, the provider); finished siblings are on disk.
    """
    batch: list[OpenCall] = []
    calls = state.calls()
    share = _share(len(calls), services.max_result_chars)
    services = services if share == services.max_result_chars else replace(services, max_result_chars=share)
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


def _share(calls: int, most: int) -> int:
    """How long each result of a turn may be; by the number of calls alone, so that a resumed turn has the same."""
    return min(most, max(MIN_RESULT_CHARS, MAX_TURN_CHARS // max(1, calls)))


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
        # Nobody cancelled us: a library below did it by mistake. Without a result the call would be made for ever.
        if task.cancelled():
            result = ToolResult(success=False, error=CUT_OFF.format(name=call.call.name))
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
        result = await _guarded(tool, services.within(tool, _execute(call, (tool, arguments), context, services)))
    except ToolError as refused:
        result, error = _refused(refused), refused
    result = outputs.added_to(result)
    finished = await _finished(state.agent, call, result, services)
    ends, lookup = tool.ends_agent and result.success, lookup_of(tool, result, error)
    await services.record(finished.model_copy(update={"ends_agent": ends, "lookup": lookup}))


def _refused(error: ToolError) -> ToolResult:
    return ToolResult(success=False, error=error.message, metadata=dict(error.data))


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
        store=outputs.store,
        now=services.now,
        progress=progress,
    )


async def _execute(
    call: OpenCall, asked: tuple[Tool, Arguments], context: ToolContext, services: CallServices
) -> ToolResult:
    """Take the call up where it was left, or say on disk what it is about to do, and do it."""
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
    """What is known of a call that an earlier session of the run began; None when it is to be run."""
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
    return ToolResult(success=False, error=CHANGED_MEANWHILE.format(path=change.path))


async def _guarded(tool: Tool, doing: Awaitable[ToolResult]) -> ToolResult:
    """What a tool brings, in its time; whatever else happens in it becomes words for the model."""
    limit = asyncio.timeout(tool.timeout_s)
    try:
        async with limit:
            return _well_formed(await doing)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return ToolResult(success=False, error=CUT_OFF.format(name=tool.name))
    except (ToolError, ModelError, StorageError):
        raise
    except Exception as error:  # noqa: BLE001 - the one place: a crash in a tool is told, logged, and stays its own
        if limit.expired():
            return ToolResult(success=False, error=f"{tool.name} took longer than {tool.timeout_s:g} s and was stopped")
        logger.exception("{} crashed", tool.name)
        words = single_line(str(error))
        return ToolResult(success=False, error=f"{tool.name} failed: {type(error).__name__}: {words}")


def _well_formed(result: ToolResult) -> ToolResult:
    """Check what a tool of someone else's hands back, while a fault in it is still the tool's own."""
    checked = ToolResult.model_validate(result)
    _FILES.validate_python(checked.metadata.get("files", ()))
    _NAMES.validate_python(checked.metadata.get("removed", ()))
    _NAMES.validate_python(checked.metadata.get("sources", ()))
    _data_of(checked)
    return checked


def _data_of(result: ToolResult) -> JsonObject:
    """Return a copy of the metadata that has no field of its own in the journal.

    Raises:
        ValueError: It is no JSON, or too long.
    """
    written = json.dumps({name: value for name, value in result.metadata.items() if name not in OWN_FIELDS})
    if len(written) > MAX_DATA_BYTES:
        raise ValueError(f"the result's metadata takes {len(written)} bytes; the limit is {MAX_DATA_BYTES}")
    return cast("JsonObject", json.loads(written))


async def _finished(agent: str, call: OpenCall, result: ToolResult, services: CallServices) -> ToolFinished:
    content = result.text if result.success else result.text[: min(MAX_ERROR_CHARS, services.max_result_chars)]
    data = _data_of(result)
    if len(content) > services.max_result_chars:
        content, left_out = await _shorten(content, call, services)
        data |= {"left_out": left_out}
    return ToolFinished(
        agent=agent,
        call=call.key,
        name=call.call.name,
        success=result.success,
        content=content,
        files=_FILES.validate_python(result.metadata.get("files", ())),
        removed=_NAMES.validate_python(result.metadata.get("removed", ())),
        sources=_NAMES.validate_python(result.metadata.get("sources", ())),
        data=data,
    )


async def _shorten(content: str, call: OpenCall, services: CallServices) -> tuple[str, JsonObject]:
    """Cut a long result to what a conversation takes; the rest is in files, unless the tool can read on itself.

    Returns:
        What the model reads; and what is left out of it, for programs: `characters`, the `files` that hold all of it,
        and how many of the `fenced_lines` are whole.
    """
    if services.toolbox.find(call.call.name).pages_itself:
        shown = _page(content, services.max_result_chars)
        return shown, {"characters": len(content) - len(shown)}
    paths = await _spilled(content, call.key, services)
    left = services.max_result_chars - MAX_NOTE_CHARS
    if len(content) > MAX_RESULT_CHARS:
        # So long a result is rather looked up in its file than read up to the limit.
        left = min(left, HEAD_CHARS + TAIL_CHARS)
    head, tail = left * 3 // 4, left // 4
    words = (
        f"{content[:head]}\n\n[{len(content) - head - tail} of {len(content)} characters are left out here; "
        f'all of it is in {", ".join(paths)}: read_file(filepath="{paths[0]}", start_line=...)]\n\n'
        f"{content[-tail:]}"
    )
    whole_lines = max(0, len(fenced_lines(content[:head])) - 1)
    return words, {"characters": len(content) - head - tail, "files": paths, "fenced_lines": whole_lines}


async def _spilled(content: str, key: str, services: CallServices) -> list[str]:
    """The files that now hold all of a result."""
    starts = range(0, len(content), MAX_SPILL_CHARS)
    keys = [key if start == 0 else f"{key}-{number}" for number, start in enumerate(starts, 1)]
    parts = [content[start : start + MAX_SPILL_CHARS] for start in starts]
    return [await _spill(key, part, services.workspace) for key, part in zip(keys, parts, strict=True)]


async def _spill(key: str, text: str, workspace: Workspace) -> str:
    """Keep a part of a long result in a file; return its path."""
    path = f".explorer/outputs/{key}.txt"
    await asyncio.to_thread(workspace.write_own, path, text)
    return path


def _page(content: str, most: int) -> str:
    """The beginning of a page, to a whole line: kept in a file it would be a copy of what was read."""
    shown = content[: most - MAX_NOTE_CHARS]
    shown = shown[: shown.rfind("\n") + 1] or shown
    return f"{shown}[cut here, at {len(shown)} of {len(content)} characters: read on from here, in smaller parts]"
