"""The loop: ask, record, do, record, until nothing is asked or something says stop.

It knows no vendor, no tool and no terminal, and keeps nothing to itself: what is to be done next is read off the
agent's state, which is a fold of events on disk. So starting and resuming are the same.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property

from explorer.agents.budget import Account, Reservation, WorstCost
from explorer.agents.compaction import DEFAULT_WINDOW_TOKENS, after_refusal, plan_compaction, summary
from explorer.agents.decisions import Decision, Ending
from explorer.agents.payments import BYTES_PER_TOKEN, OverBudgetError, Payment, Terms
from explorer.agents.policies import after_fault, after_turn, before_asking, reply_tokens
from explorer.agents.tool_calls import CallServices, execute_calls
from explorer.journal.agent_state import AgentState
from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.events import AgentFinished, TurnTaken
from explorer.schema.messages import LLMClient, Request, StopKind, ToolSchema, Turn

RUNNABLE_STOPS = frozenset({StopKind.TOOL_USE, StopKind.END, StopKind.PAUSE})
"""A turn that stopped otherwise may have been cut in the middle of a call."""


@dataclass(frozen=True)
class PromptPrefix:
    """What a role's model sees before any history; frozen for the whole run."""

    model: str
    system: str
    tools: tuple[ToolSchema, ...]
    run: str = ""
    """The run's id: requests with one run and role go to the same place of the provider's cache."""
    effort: str = ""
    """How much the model is to reason; empty: as the vendor has it."""

    @cached_property
    def bytes(self) -> int:
        """About how many bytes stand before any history."""
        return len(self.system.encode()) + sum(len(tool.model_dump_json().encode()) for tool in self.tools)


@dataclass(frozen=True)
class AgentContext:
    """All that an agent works with."""

    prefix: PromptPrefix
    client: LLMClient
    calls: CallServices
    account: Callable[[], Account]
    """What pays for the next request."""
    on_exhausted: Callable[[AgentState, str], Ending | None]
    """By the limit that has no room left: the agent's end, or None when another account pays from now on."""
    worst_cost: WorstCost
    max_output_tokens: int
    clock: Callable[[], float]
    before_request: Callable[[AgentState], Awaitable[Decision | None]]
    """What the run has to say before a request: budget notes, words from outside, an end."""
    window_tokens: int | None = DEFAULT_WINDOW_TOKENS
    """Of the model; None for one that needs everything it was told."""
    shortened: Callable[[AgentState, Reservation], Decision | None] = lambda _state, _hold: None
    """What the run has to say once it is known how long the next reply may be."""
    compaction_note: Callable[[AgentState], str] = lambda _state: ""
    """What the run knows that an agent has to know when its old exchanges are left out."""
    review: Callable[[AgentState, Decision | None], Decision | None] = lambda _state, decision: decision
    """What the run makes of what its latest turn means for the agent."""


async def run_agent(state: AgentState, context: AgentContext) -> AgentFinished:
    """Take an agent from wherever its events left it to its end.

    Raises:
        ModelError: The provider brings no turn; the agent is as it was, and can be resumed.
        StorageError: The disk refused.
    """
    while state.finished is None:
        if state.open_turn is not None:
            await execute_calls(state, context.calls)
        else:
            decision = await _before_asking(state, context)
            if decision is not None:
                await context.calls.record(decision.event(state.agent))
            else:
                await _ask(state, context)
    return state.finished


async def _before_asking(state: AgentState, context: AgentContext) -> Decision | None:
    """What is to be done instead of asking; None: ask."""
    if state.summing_at is not None:
        # Between the words that ask for a summary and the summary nothing else is said.
        return (
            None if state.last_turn is None else summary(state, context.window_tokens, context.compaction_note(state))
        )
    decision = context.review(state, after_turn(state)) or before_asking(state) or await context.before_request(state)
    return decision or plan_compaction(state, context.prefix.bytes, context.window_tokens)


async def _ask(state: AgentState, context: AgentContext) -> None:
    """One request within the account's room, and its turn on disk."""
    account, input_tokens = context.account(), estimate_tokens(state, context.prefix)
    reservation = await account.reserve(
        input_tokens, reply_tokens(state, context.max_output_tokens), context.worst_cost
    )
    if isinstance(reservation, str):
        ending = context.on_exhausted(state, reservation)
        if ending is not None:
            await context.calls.record(ending.event(state.agent))
        return
    size = context.prefix.bytes + state.context_size.total_bytes(state.messages)
    terms = Terms(account, context.worst_cost, context.calls.record, context.window_tokens, size)
    payment = Payment(terms, reservation, input_tokens)
    try:
        decision = await _before_sending(state, context, reservation)
        event = await _turn(state, context, reservation, payment) if decision is None else decision.event(state.agent)
    except OverBudgetError:
        return  # Room for a further attempt is waited for where room is always waited for.
    except ModelError as error:
        decision = _after_fault(state, context, error)
        if decision is None:
            raise
        event = decision.event(state.agent)
    finally:
        payment.close()
    await context.calls.record(event)


async def _before_sending(state: AgentState, context: AgentContext, reservation: Reservation) -> Decision | None:
    """What is to be done instead of sending what room is reserved for; None: send it."""
    if state.summing_at is not None:
        return None
    return (await context.before_request(state) if reservation.has_waited else None) or context.shortened(
        state, reservation
    )


def _after_fault(state: AgentState, context: AgentContext, error: ModelError) -> Decision | None:
    if error.fault is ModelFault.CONTEXT_EXCEEDED:
        return after_refusal(state, context.prefix.bytes, context.window_tokens, context.compaction_note(state))
    return after_fault(state, error)


async def _turn(state: AgentState, context: AgentContext, reservation: Reservation, payment: Payment) -> TurnTaken:
    started = context.clock()
    turn = await context.client.generate(_request(state, context.prefix, reservation, payment))
    payment.take(turn)
    if state.summing_at is not None:
        # It was asked for words. What it calls beside them is not run, and the turn is not sent again.
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
    """Of a turn that was not brought to its end nothing is run: its calls become calls that say so, whole or not."""
    if turn.stop in RUNNABLE_STOPS or not turn.calls:
        return turn
    problem = "the reply was not brought to its end, so none of its calls was run"
    if turn.stop is StopKind.MAX_TOKENS:
        problem = "the reply was cut at its length limit, so none of its calls was run; ask again in smaller pieces"
    calls = tuple(call.model_copy(update={"arguments": None, "problem": problem, "at": ()}) for call in turn.calls)
    return turn.model_copy(update={"calls": calls})


def estimate_tokens(state: AgentState, prefix: PromptPrefix) -> int:
    """At most how many input tokens the next request has: the last one's count, and what came since."""
    known, fresh_bytes = state.context_size.counted(state.messages)
    size = fresh_bytes if known else fresh_bytes + prefix.bytes
    return known + size // BYTES_PER_TOKEN
