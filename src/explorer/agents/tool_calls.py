"""Tool calls, from a model's request to a recorded result: checked, run, cut to size, and on disk.

This module has the only broad `except` of the engine: a crash in a tool becomes its result and never cancels its
siblings.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import LiteralString, cast

from loguru import logger

from explorer.agents.call_results import (
    MAX_ERROR_CHARS,
    MAX_RESULT_CHARS,
    CallOutputs,
    first_page,
    recorded,
    share_of_turn,
    spilled,
    well_formed,
)
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
from explorer.schema.events import Append, FileChange, Source, ToolFinished, ToolStarted
from explorer.schema.messages import JsonObject, ToolCall
from explorer.schema.tool import Arguments, Effect, SourceDraft, Tool, ToolContext, ToolResult, lookup_of, no_store
from explorer.schema.toolbox import Toolbox
from explorer.text.rendering import code, first_chars, own
from explorer.text.sanitize import single_line
from explorer.workspace.workspace import Workspace

Authorize = Callable[[str, ToolCall], ToolError | None]
"""Return why a call of an agent is refused now; None when it is not."""
StoreFor = Callable[[Tool, Sequence[SourceDraft]], Awaitable[list[Source]]]
"""Store the drafts of a tool's call and return their sources, in order."""
OF_THE_RUN = (ModelError, PausedError, StorageError, WaitingError)
"""Errors that are not the tool's: they end or pause the run."""
MAX_ACTIVITY_CHARS = 80
"""Limit of the text for people on what a call does."""
MAX_PROGRESS_CHARS = 120
"""Limit of a tool's text on how far a call is."""
CUT_OFF: LiteralString = "{name} was cut off before it had a result"
CHANGED_MEANWHILE: LiteralString = (
    "This call was interrupted, and {path} has changed since: read it before you write again."
)


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


@dataclass(frozen=True)
class AdmittedCall:
    """A call that may be made, with its tool, its checked arguments, and what it may use of the run."""

    call: OpenCall
    tool: Tool
    arguments: Arguments
    context: ToolContext


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
        return True  # there is no such tool: the call is refused at once


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
    """Record a call's one result: why it is refused, or what came of it."""
    try:
        tool, arguments = _admit(state.agent, call, services)
    except ToolError as refused:
        result = _refused(refused)
        await services.record(await _finished(state.agent, call, result, services))
        return
    outputs, error = CallOutputs(partial(services.store, tool), services.workspace), None
    admitted = AdmittedCall(call, tool, arguments, _context_of(state, call, outputs, services))
    try:
        result = await _guarded(tool, _permitted(admitted), None)
        if result.success:
            result = await _guarded(tool, services.within(tool, _execute(admitted, services)), tool.timeout_s)
    except ToolError as refused:
        result, error = _refused(refused), refused
    result = outputs.added_to(result)
    finished = await _finished(state.agent, call, result, services)
    ends, lookup = tool.ends_agent and result.success, lookup_of(tool, result, error)
    await services.record(finished.model_copy(update={"ends_agent": ends, "lookup": lookup}))


def _refused(error: ToolError) -> ToolResult:
    return ToolResult(success=False, error=error.words, metadata=dict(error.data))


def _admit(agent: str, call: OpenCall, services: CallServices) -> tuple[Tool, Arguments]:
    """Return a call's tool and its checked arguments; a call that was started is not counted and judged again.

    Raises:
        ToolError: The run refuses it now, there is no such tool, or its arguments do not fit.
    """
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


async def _permitted(admitted: AdmittedCall) -> ToolResult:
    """Return a success when a call may begin, however long that takes; one that an earlier session began may."""
    if admitted.call.started is None:
        await admitted.tool.permit(admitted.arguments, admitted.context)
    return ToolResult(success=True)


async def _execute(admitted: AdmittedCall, services: CallServices) -> ToolResult:
    """Resume a call that an earlier session began; else record what it is about to do, and do it."""
    call, tool, arguments, context = admitted.call, admitted.tool, admitted.arguments, admitted.context
    result = await _resume_call(admitted, services.workspace)
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


async def _resume_call(admitted: AdmittedCall, workspace: Workspace) -> ToolResult | None:
    """Return the result of a call that an earlier session of the run began; None when it is to be run."""
    tool, started = admitted.tool, admitted.call.started
    if started is None or tool.effect in {Effect.PURE, Effect.REPEATABLE, Effect.CHILD}:
        return None
    if tool.effect is Effect.CHECKED and started.change is not None:
        return await _compare(tool, started.change, workspace.digest(started.change.path))
    return await tool.interrupted(admitted.context)


async def _compare(tool: Tool, change: FileChange, now: str) -> ToolResult | None:
    """Return the result of an interrupted call by its file, of which `now` is the digest; None: nothing is changed."""
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
