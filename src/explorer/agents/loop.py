"""The loop: ask, record, do, record, until nothing is asked or something says stop.

It knows no vendor, no tool and no terminal, and has no state of its own: the next step follows from the agent's state,
which is computed from the events on disk. So starting and resuming are the same.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property

from explorer.agents.budget import Account, Reservation, WorstCost
from explorer.agents.compaction import USUAL, ContextPolicy, after_refusal, plan_compaction, summary
from explorer.agents.decisions import Decision
from explorer.agents.payments import BYTES_PER_TOKEN, OverBudgetError, Payment, Terms
from explorer.agents.policies import after_fault, after_turn, before_asking, left_as_it_is, reply_tokens
from explorer.agents.tool_calls import CallServices, execute_calls
from explorer.journal.agent_state import AgentState
from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.events import AgentFinished, TurnTaken
from explorer.schema.messages import LLMClient, Request, StopKind, ToolSchema, Turn

RUNNABLE_STOPS = frozenset({StopKind.TOOL_USE, StopKind.END, StopKind.PAUSE})
"""Stops after which a turn's calls are run; any other stop may have cut a call in the middle."""


@dataclass(frozen=True)
class PromptPrefix:
    """The part of a role's requests before any history; the same for the whole run."""

    model: str
    system: str
    tools: tuple[ToolSchema, ...]
    run: str = ""
    """The run's id: requests with one run and role go to the same place of the provider's cache."""
    effort: str = ""
    """How much the model is to reason; empty: the vendor's default."""

    @cached_property
    def bytes(self) -> int:
        """The approximate size of the prefix in bytes."""
        return len(self.system.encode()) + sum(len(tool.model_dump_json().encode()) for tool in self.tools)


@dataclass(frozen=True)
class AgentContext:
    """The parts of a run that one agent uses."""

    prefix: PromptPrefix
    client: LLMClient
    calls: CallServices
    account: Callable[[], Account]
    """Return the account that pays for the next request."""
    on_exhausted: Callable[[AgentState, str], AgentFinished | None]
    """Called with the name of the used-up limit. Return the agent's end; None when another account pays from now on."""
    worst_cost: WorstCost
    max_output_tokens: int
    clock: Callable[[], float]
    before_request: Callable[[AgentState], Awaitable[Decision | None]]
    """Return what the run does before a request: a note on the budget, an end; None: the request is sent."""
    context_policy: ContextPolicy = USUAL
    """When its conversation is shortened."""
    shortened: Callable[[AgentState, Reservation], Decision | None] = lambda _state, _hold: None
    """Return what the run does when the next reply has to be shorter than usual."""
    compaction_note: Callable[[AgentState], str] = lambda _state: ""
    """Return what an agent has to know of the run when its old exchanges are left out."""
    review: Callable[[AgentState, Decision | None], Awaitable[Decision | None]] = left_as_it_is
    """Return the run's decision in place of the one that the agent's latest turn led to."""


async def run_agent(state: AgentState, context: AgentContext) -> AgentFinished:
    """Run an agent from where its events left it to its end.

    Raises:
        ModelError: The provider brings no turn; the agent can be resumed.
        StorageError: The disk is full or not writable.
    """
    while state.finished is None:
        if state.open_turn is not None:
            await execute_calls(state, context.calls)
        else:
            decision = await _before_asking(state, context)
            if decision is not None:
                await context.calls.record(decision)
            else:
                await _ask(state, context)
    return state.finished


async def _before_asking(state: AgentState, context: AgentContext) -> Decision | None:
    """Return what is done instead of asking the model; None: ask.

    What the latest turn leads to comes first, then what all turns do, then the run's limits and orders, then length.
    """
    if state.summing_at is not None:
        # Nothing comes between the request for a summary and the summary.
        return None if state.turn_at_end is None else summary(state, context.compaction_note(state))
    decision = await context.review(state, after_turn(state)) or before_asking(state)
    decision = decision or await context.before_request(state)
    return decision or plan_compaction(state, context.prefix.bytes, context.context_policy)


async def _ask(state: AgentState, context: AgentContext) -> None:
    """Send one request that the account can pay for, and record its turn, or what is done in place of the request."""
    account, input_tokens = context.account(), estimate_tokens(state, context.prefix)
    reservation = await account.reserve(
        input_tokens, reply_tokens(state, context.max_output_tokens), context.worst_cost
    )
    if isinstance(reservation, str):
        ending = context.on_exhausted(state, reservation)
        if ending is not None:
            await context.calls.record(ending)
        return
    terms = Terms(
        account,
        context.worst_cost,
        context.calls.record,
        window_tokens=context.context_policy.window_tokens,
        request_bytes=context.prefix.bytes + state.context_size.total_bytes(state.messages),
    )
    payment = Payment(terms, reservation, input_tokens)
    try:
        decision = await _before_sending(state, context, reservation)
        event = await _turn(state, context, reservation, payment) if decision is None else decision
    except OverBudgetError:
        return  # the next `reserve` waits until a further attempt can be paid
    except ModelError as error:
        if error.fault is ModelFault.CONTEXT_EXCEEDED:
            decision = after_refusal(state, context.prefix.bytes, context.compaction_note(state))
        else:
            decision = after_fault(state, error)
        if decision is None:
            raise
        event = decision
    finally:
        payment.close()
    await context.calls.record(event)


async def _before_sending(state: AgentState, context: AgentContext, reservation: Reservation) -> Decision | None:
    """Return what is done instead of sending a request that is reserved; None: send it."""
    if state.summing_at is not None:
        return None
    return (await context.before_request(state) if reservation.has_waited else None) or context.shortened(
        state, reservation
    )


async def _turn(state: AgentState, context: AgentContext, reservation: Reservation, payment: Payment) -> TurnTaken:
    """Send the request, and return the record of its turn."""
    started = context.clock()
    turn = await context.client.generate(_request(state, context.prefix, reservation, payment))
    payment.take(turn)
    if state.summing_at is not None:
        # It was asked for a text. Calls that it makes with the text are not run, and the turn is not sent again.
        turn = turn.model_copy(update={"calls": ()})
    return TurnTaken(agent=state.agent, turn=_runnable(turn), seconds=round(context.clock() - started, 3))


def _request(state: AgentState, prefix: PromptPrefix, reservation: Reservation, payment: Payment) -> Request:
    return Request(
        agent=state.agent,
        role=state.role,
        model=prefix.model,
        system=prefix.system,
        tools=prefix.tools,
        history=tuple(state.messages),
        max_output_tokens=reservation.max_output_tokens,
        run=prefix.run,
        effort=prefix.effort,
        attempt=payment.attempt,
    )


def _runnable(turn: Turn) -> Turn:
    """Replace the calls of a turn that was cut off by calls that only report the cut: none of them is run."""
    if turn.stop in RUNNABLE_STOPS or not turn.calls:
        return turn
    problem = "the reply was not finished, so none of its calls was run"
    if turn.stop is StopKind.MAX_TOKENS:
        problem = "the reply was cut at its length limit, so none of its calls was run; ask again in smaller pieces"
    calls = tuple(call.model_copy(update={"arguments": None, "problem": problem, "at": ()}) for call in turn.calls)
    return turn.model_copy(update={"calls": calls})


def estimate_tokens(state: AgentState, prefix: PromptPrefix) -> int:
    """Return an upper bound of the next request's input tokens: the last request's count, and what came since."""
    known, fresh = state.context_size.counted_at_most(state.messages)
    return known + fresh if known else prefix.bytes // BYTES_PER_TOKEN + fresh
