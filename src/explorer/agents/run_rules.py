"""The rules of a run for all its agents: its limits, what is held back for the report, the user's orders to it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from explorer.agents.budget import (
    LEAST_EXPLORING_TOKENS,
    LEAST_WRITING_TOKENS,
    Account,
    Amount,
    Budget,
    Reservation,
    WorstCost,
)
from explorer.agents.compaction import USUAL, ContextPolicy
from explorer.agents.context_block import RunFacts
from explorer.agents.decisions import Decision
from explorer.agents.policies import (
    budget_note,
    early_ending,
    left_as_it_is,
    refuse_repetition,
    short_reply_note,
    write_now_note,
)
from explorer.agents.roles import CALL_AGENT, Role, leading_role, report_writers
from explorer.agents.tool_calls import StoreFor
from explorer.agents.user_stop import CALL_GRACE_S, StoppedError
from explorer.journal.agent_state import AgentState
from explorer.journal.control import ControlKind, ControlMessage, Inbox
from explorer.journal.run_state import RunState
from explorer.schema.errors import ToolError
from explorer.schema.events import ORCHESTRATOR, AgentFinished, Append, NoteAdded, Steered, StopAsked
from explorer.schema.messages import LLMClient, ToolCall
from explorer.schema.tool import Effect, Tool, ToolResult
from explorer.text.rendering import NOTHING, ModelText, own
from explorer.workspace.workspace import Workspace

CUT_OFF_BY_STOP = frozenset({Effect.PURE, Effect.EXTERNAL})
"""Effects of calls that the user's stop cuts off; commands are ended by the shell, which keeps what they wrote."""


@dataclass(frozen=True)
class Model:
    """The model a role works with."""

    label: str
    """Its name with the vendor's prefix: `VENDOR:NAME`."""
    name: str
    client: LLMClient
    worst_cost: WorstCost
    context_policy: ContextPolicy = USUAL
    """When conversations of its agents are shortened."""
    effort: str = ""
    """How much it is to reason; empty: the vendor's default."""


@dataclass(frozen=True)
class TeamContext:
    """What a run gives to its agents."""

    roles: Mapping[str, Role]
    tools: Mapping[str, Tool]
    """Every tool of the run but `call_agent`, which the team makes itself."""
    absent: Mapping[str, str]
    """Tools a role may name that this run does not have, each with the reason."""
    model_of: Callable[[str], Model]
    """Return the model of a role."""
    workspace: Workspace
    run_state: RunState
    record: Append
    budget: Budget
    inbox: Inbox
    notifications: Callable[[AgentState], NoteAdded | None]
    """Return a note on an agent's background jobs; None when nothing changed."""
    clock: Callable[[], float]
    max_output_tokens: int
    store: StoreFor
    """Put the evidence of a tool into the run's store of sources."""
    now: Callable[[], datetime]
    """The clock of the tools."""
    skills: ModelText = NOTHING
    """The list of skills in the prompts of roles that may load them."""
    facts: RunFacts | None = None
    """What the engine states to each agent with its task; None: nothing."""
    progress: Callable[[str], None] = lambda _words: None
    """Show the user a line on how far a call is."""
    jobs: Callable[[str], Sequence[ModelText]] = lambda _agent: ()
    """Return a line on each background job of an agent."""
    review: Callable[[AgentState, Decision | None], Awaitable[Decision | None]] = left_as_it_is
    """Return what is done about an orchestrator's end."""
    guard: Callable[[Tool], Tool] = lambda tool: tool
    """Return a tool under the user's approval rules."""
    refuse: Callable[[AgentState, ToolCall], ToolError | None] = lambda _state, _call: None
    """Return why a call of an agent has to wait for a plan; None: it does not."""
    max_depth: int = 1
    """The depth of helpers: with 2, helpers may call helpers where their role file says so."""
    has_plan: bool = False
    """Whether tasks name the sub-question of the plan that they are for."""


class RunRules:
    """Decides for the run what its agents may still ask and call, and takes the user's messages and stop orders."""

    def __init__(self, context: TeamContext) -> None:
        self._context = context
        self._budget = context.budget
        self._lead = leading_role(context.roles).name
        self._writers = report_writers(context.roles)
        self._ordering = asyncio.Lock()

    async def within(self, tool: Tool, doing: Awaitable[ToolResult]) -> ToolResult:
        """Await the work of a tool; after a stop, cut off a lookup that is still at work two seconds later.

        Raises:
            ToolError: It was cut off.
        """
        if tool.effect not in CUT_OFF_BY_STOP:
            return await doing
        try:
            async with self._budget.stopping.cut_off(CALL_GRACE_S):
                return await doing
        except StoppedError as error:
            raise ToolError(own("it was cut off, because the run is being stopped")) from error

    def check_for_stop(self) -> None:
        """Stop as soon as another process orders it: an agent's next turn may be minutes away."""
        if not self._budget.stopping.is_asked:
            order = next((one for one in self._context.inbox.waiting() if one.kind is ControlKind.STOP), None)
            if order is not None:
                self._budget.stop(order.text)

    def account(self, role: str) -> Account:
        """Return the account that pays for the next request of a role."""
        reserve = self._budget.winding_down and self._may_use_reserve(role)
        return self._budget.root if reserve else self._budget.exploration

    def _may_use_reserve(self, role: str) -> bool:
        """Return whether a role may use what is held back for the report."""
        return role == self._lead or role in self._writers

    def shortened(self, state: AgentState, reservation: Reservation) -> NoteAdded | None:
        """Return the note that a shorter reply needs: exploring is over, or how long the writer's replies may be."""
        budget, is_writer = self._budget, state.role in self._writers
        length, wished = reservation.max_output_tokens, self._context.max_output_tokens
        if length >= wished or not self._may_use_reserve(state.role):
            return None
        if not budget.winding_down and length < (LEAST_WRITING_TOKENS if is_writer else LEAST_EXPLORING_TOKENS):
            more = Amount(0, wished, self._context.model_of(state.role).worst_cost(0, wished))
            budget.reach(budget.exploration.exceeded_limit(more) or "cost")
            return write_now_note(state, budget.winding_down) if is_writer else budget_note(state, budget)
        return short_reply_note(state, length) if is_writer else None

    def on_exhausted(self, state: AgentState, limit: str) -> AgentFinished | None:
        """Return the end of an agent whose account is used up; None when another account pays from now on."""
        was_winding_down = bool(self._budget.winding_down)
        reached = self._budget.reach(limit)
        is_last = was_winding_down or not self._may_use_reserve(state.role)
        return early_ending(state, reached) if is_last else None

    async def before_request(self, state: AgentState) -> Decision | None:
        """Take the user's orders, and return what is done instead of an agent's next request; None: it is sent."""
        await self._take_control_messages()
        if state.agent == ORCHESTRATOR:
            return budget_note(state, self._budget)
        if self._budget.winding_down and state.role not in self._writers:
            return early_ending(state, self._budget.early_end)
        return self._context.notifications(state)

    async def has_unanswered_message(self) -> bool:
        """Return whether the user sent the orchestrator a message that it has not answered, though it could."""
        await self._take_control_messages()
        return self._context.run_state.agents[ORCHESTRATOR].is_steered and not self._budget.winding_down

    async def _take_control_messages(self) -> None:
        """Apply the orders that another process left for this run; messages are for the orchestrator."""
        if not self._context.inbox.waiting():
            return
        async with self._ordering:
            for order in self._context.inbox.waiting():
                await self._apply(order)
                self._context.inbox.done(order)

    async def _apply(self, order: ControlMessage) -> None:
        is_new = order.id not in self._context.run_state.orders
        if order.kind is ControlKind.STOP:
            if is_new:
                await self._context.record(StopAsked(order=order.id, reason=order.text))
            self._budget.stop(order.text)
        elif is_new:
            await self._context.record(Steered(agent=ORCHESTRATOR, text=order.text, order=order.id))

    def authorize(self, agent: str, call: ToolCall) -> ToolError | None:
        """Count a call before it is made, and return why it is refused; None when it is not."""
        state = self._context.run_state.agents[agent]
        reason = self._budget.winding_down
        is_refused = state.agent == ORCHESTRATOR or call.name == CALL_AGENT
        if reason and is_refused and not self._is_for_report(call):
            return ToolError(
                own("refused: the run is winding down ({reason}); only the report may be worked on", reason=reason)
            )
        refusal = refuse_repetition(state, call) or self._context.refuse(state, call)
        calls = self._budget.calls
        if refusal or calls.take(for_report=self._may_use_reserve(state.role) and self._is_for_report(call)):
            return refusal
        self._budget.reach("calls")
        return ToolError(
            own(
                "refused: this run may make {limit} tool calls, and has; end with what you have", limit=calls.limit or 0
            )
        )

    def _is_for_report(self, call: ToolCall) -> bool:
        """Return whether the orchestrator may make a call when exploring is over; its only helpers are writers."""
        if call.name == CALL_AGENT:
            return (call.arguments or {}).get("agent_type") in self._writers
        return call.name in self._context.tools and self._context.tools[call.name].is_for_report
