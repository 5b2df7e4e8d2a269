"""The user of a client, asked about a call that waits for approval: by elicitation, as the client's protocol has it.

Since 2026-07-28 a tool's call returns the question, and the client makes the call again with the answer. Before, the
server sends a request of its own while it works on the call.
"""

from collections.abc import Callable
from typing import Any, cast

from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp_types import (
    CallToolRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequests,
    InputRequiredResult,
)
from mcp_types.version import is_version_at_least
from pydantic import ValidationError

from explorer.observe.formatting import approval_words
from explorer.schema.approvals import Approval, ApprovalRequest

RETURNS_QUESTIONS = "2026-07-28"
MAX_QUESTIONS = 8
MAX_STATE_DIGITS = 9
"""Questions in one call of a tool: clients give up after ten."""
MAX_REASON_CHARS = 1_000
APPROVE, APPROVE_ALL, DENY = "approve", "approve_for_run", "deny"
DECISIONS = {
    APPROVE: Approval(is_allowed=True),
    APPROVE_ALL: Approval(is_allowed=True, for_run=True),
    DENY: Approval(is_allowed=False),
}
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Decision",
            "description": "approve_for_run: also whenever the same rule asks about the same tool in this run",
            "enum": list(DECISIONS),
        },
        "reason": {"type": "string", "title": "Reason", "description": "For the agent, if you deny it"},
    },
    "required": ["decision"],
}


class QuestionError(Exception):
    """Ends a call of a tool with a question, which the client answers when it makes the call again."""

    def __init__(self, result: InputRequiredResult) -> None:
        super().__init__("a question")
        self.result = result


class UserQuestions:
    """Asks the user of the client that made a call."""

    def __init__(
        self, context: ServerRequestContext[Any, Any], asked: CallToolRequestParams, clean: Callable[[str], str]
    ) -> None:
        """Take the call.

        Args:
            context: The client's request.
            asked: The call, with answers where it is made again.
            clean: Takes keys out of a text.
        """
        self._context = context
        self._answers = asked.input_responses or {}
        state = asked.request_state or ""
        # A client sends it back: it may be anything.
        self._count = int(state) if state.isascii() and state.isdigit() and len(state) <= MAX_STATE_DIGITS else 0
        self._clean = clean

    @property
    def can_ask(self) -> bool:
        """Whether the client puts questions to its user."""
        capabilities = self._context.session.client_capabilities
        elicitation = capabilities.elicitation if capabilities is not None else None
        # Without a mode it is a form: there was no other when clients first had it.
        return elicitation is not None and (elicitation.form is not None or elicitation.url is None)

    async def ask(self, run_id: str, request: ApprovalRequest) -> Approval | None:
        """Return what the user decided; None where the question was dismissed, or cannot be put.

        Raises:
            QuestionError: The client has to be asked first, and makes the call again.
        """
        question = ElicitRequestFormParams(
            message=self._clean(f"{run_id}: {approval_words(request)}"), requested_schema=FORM
        )
        if not is_version_at_least(self._context.protocol_version, RETURNS_QUESTIONS):
            return _decided(await self._sent(question))
        key = f"{run_id}/{request.call}"
        if key in self._answers:
            return _decided(self._answers[key])
        if self._count >= MAX_QUESTIONS:
            return None
        questions: InputRequests = {key: ElicitRequest(params=question)}
        raise QuestionError(InputRequiredResult(input_requests=questions, request_state=str(self._count + 1)))

    async def _sent(self, question: ElicitRequestFormParams) -> ElicitResult | None:
        session, request = self._context.session, self._context.request_id
        if not session.can_send_request:
            return None
        try:
            return await session.elicit_form(question.message, question.requested_schema, request)
        except (MCPError, ValidationError):
            return None


def _decided(answer: object) -> Approval | None:
    """Return the decision in an answer; None where it has none."""
    if not isinstance(answer, ElicitResult):
        return None
    if answer.action == "decline":
        return DECISIONS[DENY]
    given = cast("dict[str, object]", answer.content or {}) if answer.action == "accept" else {}
    approval = DECISIONS.get(str(given.get("decision", "")))
    reason = str(given.get("reason") or "")[:MAX_REASON_CHARS]
    return approval.model_copy(update={"words": reason}) if approval is not None else None
