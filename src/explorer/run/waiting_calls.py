"""The calls of a server's runs that wait for the user's approval, until a client of the server answers them.

A run asks one question at a time. Without an answer in time its call is refused, as where no one can be asked.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from explorer.schema.approvals import Approval, ApprovalRequest, Approve
from explorer.schema.errors import ToolError
from explorer.schema.events import AnyEvent
from explorer.text.rendering import code, own

DEFAULT_WAIT_S = 600.0
SHOWN_CHARS = 120
"""Characters of a call's name in the answer that none of that name waits."""


@dataclass(frozen=True)
class _WaitingCall:
    request: ApprovalRequest
    answer: asyncio.Future[Approval]
    recorded: asyncio.Future[bool]
    """Whether the answer is in the journal; false where the run ended before."""


class WaitingCalls:
    """The calls that wait now, by the ids of their runs."""

    def __init__(self, seconds: float) -> None:
        """Take how long a call waits; 0: not at all."""
        self._seconds = seconds
        self._waiting: dict[str, _WaitingCall] = {}

    def of(self, run_id: str) -> ApprovalRequest | None:
        """Return the call of a run that waits for an answer; None where there is none."""
        waiting = self._waiting.get(run_id)
        return waiting.request if waiting is not None and not waiting.answer.done() else None

    def asker(self, run_id: str, begins: Callable[[], None]) -> Approve | None:
        """Return what the run asks; None where a call is refused without a question.

        Args:
            run_id: The run.
            begins: Called when a call begins to wait.
        """
        if not self._seconds:
            return None

        async def ask(request: ApprovalRequest) -> Approval | None:
            loop = asyncio.get_running_loop()
            waiting = _WaitingCall(request, loop.create_future(), loop.create_future())
            self._waiting[run_id] = waiting
            begins()
            try:
                async with asyncio.timeout(self._seconds):
                    return await waiting.answer
            except TimeoutError:
                return None
            finally:
                waiting.answer.cancel()

        return ask

    async def decide(self, run_id: str, call: str, approval: Approval) -> None:
        """Answer a call that waits; return once the answer is on disk.

        Raises:
            ToolError: It does not wait, or the run ended before it took the answer.
        """
        waiting = self._waiting.get(run_id)
        if waiting is None or waiting.answer.done() or waiting.request.call != call:
            raise ToolError(
                own("no call {call} of run {id} waits for approval", call=code(call[:SHOWN_CHARS]), id=code(run_id))
            )
        waiting.answer.set_result(approval)
        if not await waiting.recorded:
            raise ToolError(own("run {id} ended before it took the answer: its call was not made", id=code(run_id)))

    def note(self, run_id: str, event: AnyEvent) -> None:
        """Take a record of a run that is on disk."""
        waiting = self._waiting.get(run_id)
        if waiting is not None and event.type == "approval_decided" and event.call == waiting.request.call:
            self._close(run_id, is_recorded=True)

    def forget(self, run_id: str) -> None:
        """Forget what a run asked: its session is over."""
        self._close(run_id, is_recorded=False)

    def _close(self, run_id: str, *, is_recorded: bool) -> None:
        waiting = self._waiting.pop(run_id, None)
        if waiting is not None and not waiting.recorded.done():
            waiting.recorded.set_result(is_recorded)
