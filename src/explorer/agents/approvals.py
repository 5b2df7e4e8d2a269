"""Tools under approval rules: a wrapper asks before a call begins, and what was decided is in the journal."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from explorer.agents.user_stop import StopEvent, StoppedError
from explorer.journal.run_state import RunState
from explorer.schema.approvals import Approval, ApprovalRequest, ApprovalRules, Approve, Decision
from explorer.schema.errors import RefusedCallError
from explorer.schema.events import Append, ApprovalAnswer, ApprovalDecided, FileChange
from explorer.schema.messages import JsonObject, ToolSchema
from explorer.schema.reasons import ErrorCode
from explorer.schema.tool import Arguments, Effect, Tool, ToolContext, ToolResult
from explorer.text.rendering import ModelText, by_user, code, own


@dataclass(frozen=True)
class Approvals:
    """Decides on the calls of one session, and asks one question at a time."""

    rules: ApprovalRules
    run_state: RunState
    record: Append
    stop: StopEvent
    approve: Approve | None = None
    """Asks somebody; None: nobody is there."""
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def guard(self, tool: Tool) -> Tool:
        """Return the tool, under the rules if one of them can refuse it."""
        return GuardedTool(tool, self) if self.rules.restricts(tool.name) else tool

    async def permit(self, tool: Tool, arguments: Arguments, context: ToolContext) -> None:
        """Return once a call is allowed.

        Raises:
            RefusedCallError: It is not.
        """
        given: JsonObject = arguments.model_dump(mode="json", exclude_unset=True)
        known: JsonObject = {**given, **arguments.model_dump(mode="json")}
        # In the order of the schema: a model must not choose which argument is the first.
        values = {name: known.get(name, "") for name in (*tool.parameters["properties"], *known)}
        verdict = self.rules.verdict(tool.name, values, is_command=tool.effect is Effect.JOB)
        if verdict.decision is Decision.ALLOW:
            return
        name = code(tool.name)
        if verdict.decision is Decision.DENY:
            raise _refused(own("{name} was not run: the user's rule {rule} refuses it", name=name, rule=verdict.rule))
        request = ApprovalRequest(
            agent=context.agent,
            role=context.role,
            call=context.call,
            tool=tool.name,
            arguments=given,
            rule=verdict.rule,
        )
        try:
            decided = await self._decided(request)
        except StoppedError as error:
            raise _refused(own("{name} was not run: the run is being stopped", name=name)) from error
        if decided.is_allowed:
            return
        if decided.answer is ApprovalAnswer.UNASKED:
            words = own(
                "{name} was not run: the user's rule {rule} asks for approval, and no one is here to give it. Say in "
                "your result what you could not do",
                name=name,
                rule=verdict.rule,
            )
        else:
            words = own("{name} was not run: the user refused it", name=name)
        raise _refused(words, decided.words)

    async def _decided(self, request: ApprovalRequest) -> ApprovalDecided:
        async with self._asking:
            # Looked up here: while this call waited, the answer to another one may have become that for all of them.
            known = self.run_state.approval_of(request.call, request.tool, request.rule)
            if known is not None:
                return known
            if self.stop.is_asked:
                raise StoppedError
            async with self.stop.cut_off():
                found = await self.approve(request) if self.approve is not None else None
            decided = _event(request, found)
            await self.record(decided)
            return decided


def _event(request: ApprovalRequest, found: Approval | bool | None) -> ApprovalDecided:  # noqa: FBT001 - an answer
    answer, words = ApprovalAnswer.UNASKED, ""
    if found is not None:
        given = Approval(is_allowed=found) if isinstance(found, bool) else found
        allowed = ApprovalAnswer.RUN if given.for_run else ApprovalAnswer.ONCE
        answer, words = allowed if given.is_allowed else ApprovalAnswer.NO, given.words
    return ApprovalDecided(
        agent=request.agent, call=request.call, name=request.tool, rule=request.rule, answer=answer, words=words
    )


def _refused(words: ModelText, reason: str = "") -> RefusedCallError:
    said = own(". The user says: {reason}", reason=by_user(reason)) if reason else own("")
    whole = own(
        "{words}{said}. Do without it, and do not try to reach the same in another way.", words=words, said=said
    )
    return RefusedCallError(whole, data={"code": ErrorCode.DENIED})


class GuardedTool(Tool[Arguments]):
    """A tool whose calls have to be approved; in all else it is the tool that it wraps."""

    def __init__(self, tool: Tool, approvals: Approvals) -> None:
        for name in Tool.__annotations__:
            setattr(self, name, getattr(tool, name))
        self._tool = tool
        self._approvals = approvals

    async def permit(self, arguments: Arguments, context: ToolContext) -> None:
        """Return once the call is approved."""
        await self._approvals.permit(self._tool, arguments, context)
        await self._tool.permit(arguments, context)

    async def execute(self, arguments: Arguments, context: ToolContext) -> ToolResult:
        """Execute the call."""
        return await self._tool.execute(arguments, context)

    def describe(self, arguments: Arguments) -> str:
        """Return the call's action for people."""
        return self._tool.describe(arguments)

    async def recall(self, change: FileChange) -> ToolResult:
        """Return the result of a call that a crash interrupted after its change."""
        return await self._tool.recall(change)

    async def interrupted(self, context: ToolContext) -> ToolResult:
        """Return the result of a call that a crash interrupted."""
        return await self._tool.interrupted(context)

    async def foresee(self, arguments: Arguments) -> FileChange | None:
        """Return the change that the call is about to make."""
        return await self._tool.foresee(arguments)

    def parse(self, given: Mapping[str, object]) -> Arguments:
        """Return the arguments of the call, validated."""
        return self._tool.parse(given)

    def with_defaults(self, values: Mapping[str, object]) -> "GuardedTool":
        """Return this tool with other defaults of some arguments."""
        return GuardedTool(self._tool.with_defaults(values), self._approvals)

    @cached_property
    def parameters(self) -> JsonObject:
        """The JSON Schema of the arguments for models."""
        return self._tool.parameters

    def schema(self) -> ToolSchema:
        """Return the description of the tool that a model sees."""
        return self._tool.schema()
