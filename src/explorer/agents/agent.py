"""The loop: ask, record, do, record, until nothing is asked or something says stop.

It knows no vendor, no tool and no terminal, and keeps nothing to itself: what is to be done next is read off the
agent's state, which is a fold of events on disk. So starting and resuming are the same.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property

from explorer.agents.budget import Account, Hold, WorstCost
from explorer.agents.calls import CallRoom, answer
from explorer.agents.context import DEFAULT_WINDOW_TOKENS, after_refusal, make_room, summary
from explorer.agents.decision import Decision, Ending
from explorer.agents.pacing import after_fault, after_turn, before_asking, reply_tokens
from explorer.agents.paying import BYTES_PER_TOKEN, NoRoomError, Payment, Terms
from explorer.journal.history import AgentState
from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.events import AgentFinished, TurnTaken
from explorer.schema.messages import LLMClient, Request, StopKind, ToolSchema, Turn

RUNNABLE_STOPS = frozenset({StopKind.TOOL_USE, StopKind.END, StopKind.PAUSE})
"""A turn that stopped otherwise may have been cut in the middle of a call."""


@dataclass(frozen=True)
class Head:
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
class AgentRoom:
    """All that an agent works with."""

    head: Head
    client: LLMClient
    calls: CallRoom
    account: Callable[[], Account]
    """What pays for the next request."""
    without_room: Callable[[AgentState, str], Ending | None]
    """By the limit that has no room left: the agent's end, or None when another account pays from now on."""
    worst_cost: WorstCost
    max_output_tokens: int
    clock: Callable[[], float]
    advise: Callable[[AgentState], Awaitable[Decision | None]]
    """What the run has to say before a request: budget notes, words from outside, an end."""
    window_tokens: int | None = DEFAULT_WINDOW_TOKENS
    """Of the model; None for one that needs everything it was told."""
    shortened: Callable[[AgentState, Hold], Decision | None] = lambda _state, _hold: None
    """What the run has to say once it is known how long the next reply may be."""
    standing: Callable[[AgentState], str] = lambda _state: ""
    """What the run knows that an agent has to know when its old exchanges are left out."""
    review: Callable[[AgentState, Decision | None], Decision | None] = lambda _state, decision: decision
    """What the run makes of what its latest turn means for the agent."""


async def run_agent(state: AgentState, room: AgentRoom) -> AgentFinished:
    """Take an agent from wherever its events left it to its end.

    Raises:
        ModelError: The provider brings no turn; the agent is as it was, and can be resumed.
        StorageError: The disk refused.
    """
    while state.finished is None:
        if state.open_turn is not None:
            await answer(state, room.calls)
        else:
            decision = await _before_asking(state, room)
            if decision is not None:
                await room.calls.record(decision.event(state.agent))
            else:
                await _ask(state, room)
    return state.finished


async def _before_asking(state: AgentState, room: AgentRoom) -> Decision | None:
    """What is to be done instead of asking; None: ask."""
    if state.summing_at is not None:
        # Between the words that ask for a summary and the summary nothing else is said.
        return None if state.last_turn is None else summary(state, room.window_tokens, room.standing(state))
    decision = room.review(state, after_turn(state)) or before_asking(state) or await room.advise(state)
    return decision or make_room(state, room.head.bytes, room.window_tokens)


async def _ask(state: AgentState, room: AgentRoom) -> None:
    """One request within the account's room, and its turn on disk."""
    account, input_tokens = room.account(), estimate_tokens(state, room.head)
    hold = await account.reserve(input_tokens, reply_tokens(state, room.max_output_tokens), room.worst_cost)
    if isinstance(hold, str):
        ending = room.without_room(state, hold)
        if ending is not None:
            await room.calls.record(ending.event(state.agent))
        return
    size = room.head.bytes + state.weight.total_bytes(state.messages)
    terms = Terms(account, room.worst_cost, room.calls.record, room.window_tokens, size)
    payment = Payment(terms, hold, input_tokens)
    try:
        decision = await _before_sending(state, room, hold)
        event = await _turn(state, room, hold, payment) if decision is None else decision.event(state.agent)
    except NoRoomError:
        return  # Room for a further attempt is waited for where room is always waited for.
    except ModelError as error:
        decision = _after_fault(state, room, error)
        if decision is None:
            raise
        event = decision.event(state.agent)
    finally:
        payment.close()
    await room.calls.record(event)


async def _before_sending(state: AgentState, room: AgentRoom, hold: Hold) -> Decision | None:
    """What is to be done instead of sending what room is reserved for; None: send it."""
    if state.summing_at is not None:
        return None
    return (await room.advise(state) if hold.has_waited else None) or room.shortened(state, hold)


def _after_fault(state: AgentState, room: AgentRoom, error: ModelError) -> Decision | None:
    if error.fault is ModelFault.CONTEXT_EXCEEDED:
        return after_refusal(state, room.head.bytes, room.window_tokens, room.standing(state))
    return after_fault(state, error)


async def _turn(state: AgentState, room: AgentRoom, hold: Hold, payment: Payment) -> TurnTaken:
    started = room.clock()
    turn = await room.client.generate(_request(state, room.head, hold, payment))
    payment.take(turn)
    if state.summing_at is not None:
        # It was asked for words. What it calls beside them is not run, and the turn is not sent again.
        turn = turn.model_copy(update={"calls": ()})
    return TurnTaken(agent=state.agent, turn=_runnable(turn), seconds=round(room.clock() - started, 3))


def _request(state: AgentState, head: Head, hold: Hold, payment: Payment) -> Request:
    return Request(
        agent=state.agent,
        role=state.role,
        model=head.model,
        system=head.system,
        tools=head.tools,
        history=tuple(state.messages),
        max_output_tokens=hold.max_output_tokens,
        run=head.run,
        effort=head.effort,
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


def estimate_tokens(state: AgentState, head: Head) -> int:
    """At most how many input tokens the next request has: the last one's count, and what came since."""
    known, fresh_bytes = state.weight.counted(state.messages)
    size = fresh_bytes if known else fresh_bytes + head.bytes
    return known + size // BYTES_PER_TOKEN
