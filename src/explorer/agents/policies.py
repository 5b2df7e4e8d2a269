"""Policies: when an agent gets a note, is refused a call, or ends; and what a model's failure means for the run."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import takewhile

from explorer.agents.budget import SHORT_REPLY_MARKS, Budget
from explorer.agents.compaction import after_refusal, last_words
from explorer.agents.decisions import Decision, ending, note
from explorer.journal.agent_state import AgentState, call_key
from explorer.schema.errors import ModelError, ModelFault, RefusedCallError
from explorer.schema.events import ORCHESTRATOR, AgentFinished, NoteAdded, ReasoningDropped, Status
from explorer.schema.messages import Results, StopKind, ToolCall, Turn
from explorer.schema.reasons import EndCause, EndReason, ErrorCode, NoteReason
from explorer.text.rendering import ModelText, code, own, render, without_marks
from explorer.text.sanitize import single_line

MAX_PAUSES = 5
"""Pauses of the provider in a row that end an agent."""
MAX_CUT_REPLIES = 2
"""Notes on replies that were cut at their length limit; the next cut reply ends the agent."""
WRAP_UP_STEPS = 2
"""The number of turns left at which an agent is asked to write down what it has."""
NOTE_SHARES = ((0.70, NoteReason.BUDGET_70), (0.85, NoteReason.BUDGET_85))
"""Shares of the exploration's limits, rising, each with the note that it triggers."""
NOTE_REPEATS = 3
"""Identical results of one call that bring a note."""
REFUSE_REPEATS = 5
"""Identical results of one call after which it is refused."""
REPEATED = own(
    "refused: this very call brought the same result {times} times. Do something else or finish.", times=REFUSE_REPEATS
)
MAX_ERROR_TURNS = 3
"""Turns in a row with nothing but errors that bring a note; twice as many end the agent."""
MAX_ASKED_TO_ACT = 2
"""Notes to an orchestrator that replied with text in place of a report; the next such reply ends it."""
MAX_QUOTED_CHARS = 160
"""Limit of a quoted result or reply in a reason."""
NOTE_IDLE_TURNS = 12
"""Turns in a row of a helper without a new source or a written file that bring a note."""
MAX_IDLE_TURNS = 20
"""The same, which end it."""


def after_turn(state: AgentState) -> Decision | None:
    """Return what follows from a reply without open calls: an end, a note, or None (ask again)."""
    if state.ends:
        return _finished(state)
    turn = state.turn_at_end or _stopped_for_good(state)
    return None if turn is None else _STOPS[turn.stop](state, turn)


def _stopped_for_good(state: AgentState) -> Turn | None:
    """Return the turn before the latest results when it ended the agent; its tool calls were not run."""
    match state.messages[-2:]:
        case [Turn(stop=StopKind.REFUSAL | StopKind.CONTEXT_EXCEEDED | StopKind.UNKNOWN) as turn, Results()]:
            return turn
        case _:
            return None


def _ended(state: AgentState, turn: Turn) -> Decision | None:
    if turn.text.strip():
        return ending(state, Status.COMPLETE, "answered", turn.text.strip(), EndCause.ANSWERED)
    if NoteReason.EMPTY_REPLY in state.notes:
        return ending(state, Status.FAILED, "the model twice replied with nothing", "")
    return note(state, NoteReason.EMPTY_REPLY)


def _cut(state: AgentState, turn: Turn) -> Decision | None:
    if state.notes.get(NoteReason.CUT_REPLY, 0) >= MAX_CUT_REPLIES:
        return ending(
            state, Status.PARTIAL, "the model's replies kept being cut at their length limit", turn.text.strip()
        )
    return note(state, NoteReason.CUT_REPLY)


def _paused(state: AgentState, turn: Turn) -> Decision | None:
    tail = state.messages[-MAX_PAUSES:]
    if len(tail) == MAX_PAUSES and all(isinstance(message, Turn) for message in tail):
        return ending(state, Status.PARTIAL, f"the provider paused {MAX_PAUSES} times in a row", turn.text.strip())
    return None


def _refused(state: AgentState, turn: Turn) -> Decision | None:
    if NoteReason.DECLINED not in state.notes:
        return note(state, NoteReason.DECLINED)
    detail = f": {turn.stop_detail}" if turn.stop_detail else ""
    return ending(state, Status.FAILED, f"the model declined{detail}", turn.text.strip())


def _window_full(state: AgentState, _turn: Turn) -> Decision | None:
    if state.context_size.made_at == state.steps:
        return note(state, NoteReason.ROOM_MADE)
    return after_refusal(state)


def after_fault(state: AgentState, error: ModelError) -> Decision | None:
    """Return what follows for an agent from a request that failed; None: the run stops."""
    if error.fault is ModelFault.REJECTED and _is_stretched(state):
        return note(state, NoteReason.USUAL_LENGTH)
    if error.fault is ModelFault.STALE_REASONING and any(
        isinstance(message, Turn) and message.bound_to for message in state.messages
    ):
        return ReasoningDropped(agent=state.agent, before=len(state.messages))
    if error.fault in {ModelFault.REJECTED, ModelFault.OVERSIZED, ModelFault.STALE_REASONING}:
        return ending(state, Status.FAILED, error.message, last_words(state))
    return None


def reply_tokens(state: AgentState, usual: int) -> int:
    """Return the limit of the next reply: twice `usual` right after the first cut one, if the model takes it."""
    return 2 * usual if _is_stretched(state) else usual


def write_now_note(state: AgentState, reason: str) -> NoteAdded | None:
    """Return the note to a writer that exploring is over and the report is due; None when it has it."""
    return None if NoteReason.WRITE_NOW in state.notes else note(state, NoteReason.WRITE_NOW, reason)


def short_reply_note(state: AgentState, max_output_tokens: int) -> NoteAdded | None:
    """Return the note to a writer that its replies must be short; one note for each of `SHORT_REPLY_MARKS`."""
    mark = next((one for one in SHORT_REPLY_MARKS if max_output_tokens < one), None)
    reason = None if mark is None else NoteReason(f"short_replies_{mark}")
    return None if reason is None or reason in state.notes else note(state, reason, tokens=max_output_tokens)


def _is_stretched(state: AgentState) -> bool:
    """Return whether the next reply may be longer than usual: the latest one is the first of the task that was cut."""
    latest = state.latest_turn
    if latest is None or latest.stop is not StopKind.MAX_TOKENS or NoteReason.USUAL_LENGTH in state.notes:
        return False
    turns = [message for message in state.messages[state.began_at :] if isinstance(message, Turn)]
    return [turn.stop for turn in turns].count(StopKind.MAX_TOKENS) == 1 and turns[-1] is latest


def _unknown(state: AgentState, turn: Turn) -> Decision | None:
    status = Status.PARTIAL if turn.text.strip() else Status.FAILED
    return ending(state, status, f"the model stopped for a reason unknown here: {turn.stop_detail}", turn.text.strip())


_STOPS = {
    StopKind.END: _ended,
    StopKind.TOOL_USE: _ended,
    StopKind.MAX_TOKENS: _cut,
    StopKind.PAUSE: _paused,
    StopKind.REFUSAL: _refused,
    StopKind.CONTEXT_EXCEEDED: _window_full,
    StopKind.UNKNOWN: _unknown,
}
"""What follows from a turn without open calls, by why the model stopped: all members of `StopKind`."""


def _finished(state: AgentState) -> AgentFinished:
    """Return the end by a tool that ends its agent, with the summary in its arguments, or the agent's last text."""
    turn = state.latest_turn
    if turn is None:
        return ending(state, Status.COMPLETE, "finished", "", EndCause.FINISHED)
    given = [call.arguments or {} for call in turn.calls]
    spoken = next((words for one in given if (words := str(one.get("summary", "")))), turn.text.strip())
    is_empty = any(one.get("nothing_found") is True for one in given)
    if is_empty:
        return ending(state, Status.COMPLETE, "found nothing", spoken, EndCause.FOUND_NOTHING)
    return ending(state, Status.COMPLETE, "finished", spoken, EndCause.FINISHED)


async def left_as_it_is(_state: AgentState, decision: Decision | None) -> Decision | None:
    """Return the decision."""
    return decision


async def reviewed(
    state: AgentState, decision: Decision | None, missing: Callable[[], str], problem: Callable[[], Awaitable[str]]
) -> Decision | None:
    """Replace an orchestrator's end by a note when there is no report (act) or it has faults (correct).

    Args:
        state: The agent; a helper may end with a text.
        decision: The decision so far.
        missing: Returns why there is no report; empty when there is one.
        problem: Returns why an existing report is not good enough; empty when it is.
    """
    if (
        state.agent != ORCHESTRATOR
        or not isinstance(decision, AgentFinished)
        or decision.cause is not EndCause.ANSWERED
    ):
        return decision
    if why := missing():
        return _asked_to_act(state, decision, why)
    if NoteReason.CORRECT not in state.notes and (fault := await problem()):
        return note(state, NoteReason.CORRECT, fault)
    return decision


def _asked_to_act(state: AgentState, ended: AgentFinished, why: str) -> Decision:
    asked = state.notes.get(NoteReason.ACT, 0)
    if asked < MAX_ASKED_TO_ACT:
        return note(state, NoteReason.ACT, why)
    first = single_line(ended.summary, MAX_QUOTED_CHARS)
    return ending(
        state,
        Status.FAILED,
        f"the model kept replying with text instead of calling a tool: “{first}”",
        ended.summary,
    )


def before_asking(state: AgentState) -> Decision | None:
    """Return the note or end that an agent's own turns lead to: step limit, errors in a row, repetition, idleness."""
    if state.steps_left == 0:
        return ending(state, Status.PARTIAL, f"step limit of its role ({state.step_limit})", last_words(state))
    if state.steps_left <= WRAP_UP_STEPS < state.step_limit and NoteReason.WRAP_UP not in state.notes:
        return note(state, NoteReason.WRAP_UP, left=state.steps_left)
    failed = _failed_turns(state)
    if len(failed) >= 2 * MAX_ERROR_TURNS:
        return ending(state, Status.PARTIAL, _cause_of(failed), last_words(state))
    if len(failed) >= MAX_ERROR_TURNS and NoteReason.ERRORS not in state.notes:
        return note(state, NoteReason.ERRORS, turns=MAX_ERROR_TURNS)
    if state.most_repeated >= NOTE_REPEATS and NoteReason.REPEATING not in state.notes:
        return note(state, NoteReason.REPEATING)
    return None if state.agent == ORCHESTRATOR else _without_finding(state)


def _without_finding(state: AgentState) -> Decision | None:
    """Return the note or end of a helper that found no new source and wrote no file for many turns."""
    idle = state.steps - state.found_at
    if idle >= MAX_IDLE_TURNS:
        return ending(state, Status.PARTIAL, f"nothing new in {idle} turns", last_words(state))
    if idle >= NOTE_IDLE_TURNS and NoteReason.NOTHING_NEW not in state.notes:
        return note(state, NoteReason.NOTHING_NEW, turns=idle)
    return None


def budget_note(state: AgentState, budget: Budget) -> NoteAdded | None:
    """Return the note to the orchestrator on how much is used up, or that only writing is left; None: no news."""
    if NoteReason.WINDING_DOWN in state.notes:
        return None
    if budget.winding_down:
        return note(state, NoteReason.WINDING_DOWN, budget.winding_down)
    share = budget.share_used()
    reached = [reason for mark, reason in NOTE_SHARES if share >= mark]
    if not reached or any(reason in state.notes for _, reason in NOTE_SHARES[len(reached) - 1 :]):
        return None
    return note(state, reached[-1], percent=round(share * 100))


def _failed_turns(state: AgentState) -> list[Results]:
    """Return the results of the latest turns in a row whose calls all failed, since the agent's latest task."""
    of_task = (message for message in reversed(state.messages[state.began_at :]) if isinstance(message, Results))
    failed = takewhile(lambda turn: all(result.is_error for result in turn.results), of_task)
    return [*failed][::-1]


def _cause_of(failed: Sequence[Results]) -> str:
    """Return the cause of errors in a row: the tool of the first one, and its first line."""
    first = failed[0].results[0]
    if first.data.get("code") == ErrorCode.REPEATED:
        return f"the model kept making one call, {first.name}, with the same result; another model may do better"
    why = single_line(without_marks(first.content.partition("\n")[0]))
    return f"tool calls kept failing: {first.name}: {why[:MAX_QUOTED_CHARS]}"


def early_ending(state: AgentState, reason: EndReason, summary: str = "") -> AgentFinished:
    """Return the end of an agent that the run ends."""
    return ending(state, Status.PARTIAL, reason.words, summary, reason.cause)


def cut_short(state: AgentState, reason: EndReason) -> AgentFinished:
    """Return the end of a helper that is cut off, with its last text."""
    return early_ending(state, reason, last_words(state))


def refuse_repetition(state: AgentState, call: ToolCall) -> RefusedCallError | None:
    """Return why a call is refused that brought the same result too often; None when it is not."""
    if state.repeated.get(call_key(call), 0) >= REFUSE_REPEATS:
        return RefusedCallError(REPEATED, data={"code": ErrorCode.REPEATED})
    return None


FORBIDDEN = 403
"""HTTP status of a key that may be valid for other models; 401 is about the key itself."""
OF_THE_MODEL = frozenset({ModelFault.CREDENTIALS, ModelFault.UNKNOWN_MODEL, ModelFault.UNSUPPORTED})


def concerns_run(error: ModelError, model: str, lead: str) -> bool:
    """Return whether a helper's model error would also occur in the orchestrator, so that the run cannot continue.

    Args:
        error: The error of the helper's model.
        model: The helper's model, with its provider's prefix.
        lead: The orchestrator's model, with its provider's prefix.
    """
    if model == lead:
        return error.is_outage or error.fault in OF_THE_MODEL
    if model.partition(":")[0] != lead.partition(":")[0]:
        return False
    is_key = error.fault is ModelFault.CREDENTIALS and error.status != FORBIDDEN
    return is_key or (error.is_outage and error.fault is ModelFault.TRANSPORT)


def failed_end(agent: str, error: ModelError, summary: str) -> AgentFinished:
    """Return the end of a helper whose model failed; a further task by its id continues it."""
    return AgentFinished(agent=agent, status=Status.FAILED, reason=error.message, summary=summary, fault=error.fault)


def other_helpers(model: str, models: Mapping[str, str], helpers: Iterable[str]) -> dict[str, str]:
    """Return the helpers with another model than the one that failed, each with its model."""
    return {role: models[role] for role in helpers if models[role] != model}


def ways_to_retry(agent: str, model: str, others: Mapping[str, str]) -> ModelText:
    """Return the text for the orchestrator on how the work of a helper whose model failed can still be done."""
    named = render(
        *(own("{role} ({model})", role=code(role), model=code(other)) for role, other in others.items()), between=", "
    )
    return own(
        'call_agent with agent_id "{agent}" continues it, once {model} answers again; {others}',
        agent=code(agent),
        model=code(model),
        others=own("helpers with another model: {named}", named=named) if named else own("no helper has another model"),
    )
