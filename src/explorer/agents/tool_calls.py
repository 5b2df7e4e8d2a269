"""Tool calls, from a model's request to a recorded result: checked, run, cut to size, and on disk.

This module has the only broad `except` of the engine: a crash in a tool becomes its result and never cancels its
siblings.
"""

import asyncio
import difflib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import LiteralString

from loguru import logger
from pydantic import ValidationError

from explorer.agents.call_results import (
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
from explorer.schema.events import AnyEvent, FileChange, Source, ToolFinished, ToolStarted
from explorer.schema.messages import JsonObject, ToolCall
from explorer.schema.reasons import ErrorCode
from explorer.schema.tool import Arguments, Effect, SourceDraft, Tool, ToolContext, ToolResult, lookup_of, no_store
from explorer.text.rendering import ModelText, code, codes, first_chars, own, render
from explorer.text.sanitize import single_line
from explorer.workspace.workspace import Workspace

MAX_ERROR_CHARS = 6_500
MAX_ACTIVITY_CHARS = 80
"""Limit of the text for people on what a call does."""
MAX_PROGRESS_CHARS = 120
"""Limit of a tool's text on how far a call is."""
INVALID = {"code": ErrorCode.INVALID_CALL}
CUT_OFF: LiteralString = "{name} was cut off before it had a result"
CHANGED_MEANWHILE: LiteralString = (
    "This call was interrupted, and {path} has changed since: read it before you write again."
)

Append = Callable[[AnyEvent], Awaitable[None]]
"""Put an event on disk and apply it to the state."""
Authorize = Callable[[str, ToolCall], ToolError | None]
"""Return why a call of an agent is refused now; None when it is not."""


class Toolbox:
    """The tools one agent may call, by name."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: Mapping[str, Tool] = {tool.name: tool for tool in tools}

    def names(self) -> list[str]:
        """Return all names, in the order in which the model sees them."""
        return list(self._tools)

    def find(self, name: str) -> Tool:
        """Return the tool of that name.

        Raises:
            ToolError: No tool has the name; the message gives the closest one.
        """
        if name in self._tools:
            return self._tools[name]
        close = difflib.get_close_matches(name, self._tools, n=1, cutoff=0.5)
        guess = own("; did you mean {name}?", name=code(close[0])) if close else own("")
        # On a line of its own: the first line is the reason that people are shown.
        raise ToolError(
            own(
                "there is no tool called {name}{guess}\nYour tools: {tools}",
                name=repr(name),
                guess=guess,
                tools=codes(self._tools),
            ),
            data=INVALID,
        )

    def prepare(self, call: ToolCall) -> tuple[Tool, Arguments]:
        """Return the tool and its validated arguments.

        Raises:
            ToolError: Unknown tool, broken JSON or wrong arguments; the message says exactly what would be right.
        """
        tool = self.find(call.name)
        if call.arguments is None:
            raise ToolError(
                own(
                    "{name} was not run: {problem}",
                    name=code(tool.name),
                    problem=call.problem or own("its arguments are not a JSON object"),
                ),
                data=INVALID,
            )
        try:
            return tool, tool.parse(call.arguments)
        except ValidationError as error:
            raise ToolError(
                own("{name} was not run: {why}", name=code(tool.name), why=explained(error, tool)), data=INVALID
            ) from error


def explained(error: ValidationError, tool: Tool) -> ModelText:
    """Return what is wrong with arguments, and what a tool takes."""
    properties: JsonObject = tool.parameters["properties"]
    lines: list[ModelText] = []
    for problem in error.errors():
        field = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            close = difflib.get_close_matches(field, properties, n=1)
            guess = own(" (did you mean `{name}`?)", name=code(close[0])) if close else own("")
            lines.append(own("no argument `{field}`{guess}", field=code(field), guess=guess))
        elif field:
            lines.append(own("`{field}`: {problem}", field=code(field), problem=problem["msg"]))
        else:
            lines.append(own("{problem}", problem=problem["msg"]))
    names = codes(properties) or own("none")
    return own("{problems}. Its arguments: {names}", problems=render(*lines, between="; "), names=names)


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
    except (ToolError, ModelError, PausedError, StorageError, WaitingError):
        raise
    except Exception as error:  # noqa: BLE001 - the one place: a crash in a tool is logged and becomes its result
        if limit.expired():
            words = "{name} took longer than {seconds:g} s and was stopped"
            return ToolResult(success=False, error=own(words, name=code(tool.name), seconds=timeout_s or 0.0))
        logger.exception("{} crashed", tool.name)
        kind = type(error).__name__
        return ToolResult(
            success=False, error=own("{name} failed: {kind}: {error}", name=code(tool.name), kind=kind, error=error)
        )


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
