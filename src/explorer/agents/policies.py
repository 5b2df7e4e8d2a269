"""When an agent gets a note, is refused something, or ends; and what a model that brings no turn means for the run."""

from collections.abc import Callable, Iterable, Mapping

from explorer.agents.budget import NOTE_SHARES, SHORT_REPLY_MARKS, Budget
from explorer.agents.compaction import after_refusal, last_words
from explorer.agents.decisions import (
    ACT,
    ANSWERED,
    CORRECT,
    FINISHED,
    FOUND_NOTHING,
    Decision,
    Ending,
    Note,
    ReasoningDrop,
)
from explorer.journal.agent_state import AgentState, call_key
from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.events import ORCHESTRATOR, AgentFinished, Status
from explorer.schema.messages import Results, StopKind, ToolCall, Turn
from explorer.text.sanitize import single_line

MAX_PAUSES = 5
MAX_CUT_REPLIES = 2
WRAP_UP_STEPS = 2
NOTE_REPEATS = 3
REFUSE_REPEATS = 5
REPEATED = f"refused: this very call brought the same result {REFUSE_REPEATS} times. Do something else or finish."
MAX_ERROR_TURNS = 3
MAX_ASKED_TO_ACT = 2
MAX_QUOTED_CHARS = 160
"""Of a result or of a model's words in a reason."""
ACTIONS = (
    "Act now, by calling a tool: look things up or have it done (call_agent), have report.md written (a writer, or "
    "write_file for a few lines), and when it answers the question, call finish_exploration."
)
NOTE_IDLE_TURNS = 12
"""Turns of a helper without a new source or a written file."""
MAX_IDLE_TURNS = 20


def after_turn(state: AgentState) -> Decision | None:
    """What a reply without open calls means: an end, a nudge, or nothing (ask again)."""
    if state.ends:
        return _finished(state)
    turn = state.last_turn or _stopped_for_good(state)
    return None if turn is None else _STOPS[turn.stop](state, turn)


def _stopped_for_good(state: AgentState) -> Turn | None:
    """The turn before the latest results when it was the last one although it asked for tools; none of them was run."""
    match state.messages[-2:]:
        case [Turn(stop=StopKind.REFUSAL | StopKind.CONTEXT_EXCEEDED | StopKind.UNKNOWN) as turn, Results()]:
            return turn
        case _:
            return None


def _ended(state: AgentState, turn: Turn) -> Decision | None:
    if turn.text.strip():
        return Ending(Status.COMPLETE, ANSWERED, turn.text.strip())
    if "empty_reply" in state.notes:
        return Ending(Status.FAILED, "the model twice replied with nothing", "")
    return Note("empty_reply", "Your reply was empty. Go on with the task, or say what you found.")


def _cut(state: AgentState, turn: Turn) -> Decision | None:
    if state.notes.get("cut_reply", 0) >= MAX_CUT_REPLIES:
        return Ending(Status.PARTIAL, "the model's replies kept being cut at their length limit", turn.text.strip())
    return Note("cut_reply", "Your reply was cut at its length limit. Go on in smaller pieces; put long text in files.")


def _paused(state: AgentState, turn: Turn) -> Decision | None:
    tail = state.messages[-MAX_PAUSES:]
    if len(tail) == MAX_PAUSES and all(isinstance(message, Turn) for message in tail):
        return Ending(Status.PARTIAL, f"the provider paused {MAX_PAUSES} times in a row", turn.text.strip())
    return None


def _refused(state: AgentState, turn: Turn) -> Decision | None:
    if "declined" not in state.notes:
        return Note("declined", "You declined. Do the part of the task that you can do, or say why there is none.")
    detail = f": {turn.stop_detail}" if turn.stop_detail else ""
    return Ending(Status.FAILED, f"the model declined{detail}", turn.text.strip())


def _window_full(state: AgentState, _turn: Turn) -> Decision | None:
    if state.context_size.made_at == state.steps:
        return Note("room_made", "Older results were cleared to make room. Go on; write down what you need to keep.")
    return after_refusal(state)


def after_fault(state: AgentState, error: ModelError) -> Decision | None:
    """What a request that brought no turn means for its agent; None: it is not the agent's matter, the run stops."""
    if error.fault is ModelFault.REJECTED and _is_stretched(state):
        return Note("usual_length", "Your reply was cut at its length limit, which stays. Go on in smaller pieces.")
    if error.fault is ModelFault.STALE_REASONING and any(
        isinstance(message, Turn) and message.bound_to for message in state.messages
    ):
        return ReasoningDrop(len(state.messages))
    if error.fault in {ModelFault.REJECTED, ModelFault.OVERSIZED, ModelFault.STALE_REASONING}:
        return Ending(Status.FAILED, error.message, last_words(state))
    return None


def reply_tokens(state: AgentState, usual: int) -> int:
    """How long the next reply may be: twice the usual right after the first cut one, where the model takes that."""
    return 2 * usual if _is_stretched(state) else usual


def write_now_note(state: AgentState, reason: str) -> Note | None:
    """For who writes the report while there is exploring: that from now on there is nothing else; said once."""
    if "winding_down" in state.notes:
        return None
    return Note("winding_down", f"Exploring is over ({reason}): write report.md now, from what there is.")


def short_reply_note(state: AgentState, max_output_tokens: int) -> Note | None:
    """For who writes the report: that its replies are short now, once for each mark the length has fallen below."""
    mark = next((one for one in SHORT_REPLY_MARKS if max_output_tokens < one), None)
    reason = f"short_replies_{mark}"
    if mark is None or reason in state.notes:
        return None
    return Note(
        reason,
        f"Little is left of this run's limits: a reply of yours may have {max_output_tokens:,} tokens now, reasoning "
        "and calls included, and one that is longer is lost. Write report.md with what matters most, well within that.",
    )


def _is_stretched(state: AgentState) -> bool:
    latest = next((message for message in reversed(state.messages) if isinstance(message, Turn)), None)
    if latest is None or latest.stop is not StopKind.MAX_TOKENS or "usual_length" in state.notes:
        return False
    turns = [message for message in state.messages[state.began_at :] if isinstance(message, Turn)]
    return [turn.stop for turn in turns].count(StopKind.MAX_TOKENS) == 1 and turns[-1] is latest


def _unknown(_state: AgentState, turn: Turn) -> Decision | None:
    status = Status.PARTIAL if turn.text.strip() else Status.FAILED
    return Ending(status, f"the model stopped for a reason unknown here: {turn.stop_detail}", turn.text.strip())


_STOPS = {
    StopKind.END: _ended,
    StopKind.TOOL_USE: _ended,
    StopKind.MAX_TOKENS: _cut,
    StopKind.PAUSE: _paused,
    StopKind.REFUSAL: _refused,
    StopKind.CONTEXT_EXCEEDED: _window_full,
    StopKind.UNKNOWN: _unknown,
}
"""Total over StopKind."""


def _finished(state: AgentState) -> Ending:
    """The end by a tool that ends its agent: with the summary it was given, or the agent's last words."""
    turn = next((message for message in reversed(state.messages) if isinstance(message, Turn)), None)
    if turn is None:
        return Ending(Status.COMPLETE, FINISHED, "")
    given = [call.arguments or {} for call in turn.calls]
    spoken = next((words for one in given if (words := str(one.get("summary", "")))), turn.text.strip())
    is_empty = any(one.get("nothing_found") is True for one in given)
    return Ending(Status.COMPLETE, FOUND_NOTHING if is_empty else FINISHED, spoken)


def reviewed(
    state: AgentState, decision: Decision | None, missing: Callable[[], str], problem: Callable[[], str]
) -> Decision | None:
    """What becomes of an orchestrator's end in words: with no report it is asked to act, with a faulty one to correct.

    Args:
        state: An agent; a helper may end in words.
        decision: What is to be done, so far.
        missing: Says why there is no report; empty when there is one.
        problem: Says why a report that is there cannot be handed over; empty when it can.
    """
    if state.role != ORCHESTRATOR or not isinstance(decision, Ending) or decision.reason != ANSWERED:
        return decision
    if why := missing():
        return _asked_to_act(state, decision, why)
    if CORRECT not in state.notes and (fault := problem()):
        return Note(CORRECT, f"{fault}\nThen call finish_exploration.")
    return decision


def _asked_to_act(state: AgentState, ending: Ending, why: str) -> Decision:
    asked = state.notes.get(ACT, 0)
    if asked < MAX_ASKED_TO_ACT:
        return Note(ACT, f"Nobody reads your words: {why}. {ACTIONS}")
    first = single_line(ending.summary, MAX_QUOTED_CHARS)
    return Ending(
        Status.FAILED, f"the model kept replying in words instead of calling a tool: “{first}”", ending.summary
    )


def before_asking(state: AgentState) -> Decision | None:
    """Notes and ends that hold for every agent: its own turns, errors in a row, repetition, idleness."""
    if state.steps_left == 0:
        return Ending(Status.PARTIAL, f"step limit of its role ({state.step_limit})", last_words(state))
    if state.steps_left <= WRAP_UP_STEPS < state.step_limit and "wrap_up" not in state.notes:
        return Note(
            "wrap_up",
            f"You have {state.steps_left} turns left. Write down what you have now, then end with your summary.",
        )
    errors = errors_in_a_row(state)
    if errors >= 2 * MAX_ERROR_TURNS:
        return Ending(Status.PARTIAL, _first_error(state), last_words(state))
    if errors >= MAX_ERROR_TURNS and "errors" not in state.notes:
        return Note(
            "errors",
            f"Your last {MAX_ERROR_TURNS} turns brought only errors. Do something else, or end with what you have.",
        )
    if state.most_repeated >= NOTE_REPEATS and "repeating" not in state.notes:
        return Note("repeating", "You made the same call with the same result several times. Do something else.")
    return None if state.role == ORCHESTRATOR else _without_finding(state)


def _without_finding(state: AgentState) -> Decision | None:
    """For a helper that goes on without writing anything down or meeting a new source."""
    idle = state.steps - state.found_at
    if idle >= MAX_IDLE_TURNS:
        return Ending(Status.PARTIAL, f"nothing new in {idle} turns", last_words(state))
    if idle >= NOTE_IDLE_TURNS and "nothing_new" not in state.notes:
        return Note("nothing_new", f"Nothing new came of your last {idle} turns. Write down what you have, then end.")
    return None


def budget_note(state: AgentState, budget: Budget) -> Note | None:
    """For the orchestrator: how much is used up, and that only writing is left."""
    if budget.winding_down and "winding_down" not in state.notes:
        return Note(
            "winding_down",
            f"Stop exploring now ({budget.winding_down}). Only writing is left: have report.md written from what is "
            "there, then finish. Say in it what was not looked at.",
        )
    share = budget.share_used()
    for mark in reversed(NOTE_SHARES):
        reason = f"budget_{round(mark * 100)}"
        if share >= mark and not any(given in state.notes for given in _later_notes(mark)):
            spent = f"About {round(share * 100)} % of what this run may use before its report is used up."
            return Note(reason, f"{spent} Plan for the end.")
    return None


def _later_notes(mark: float) -> list[str]:
    return [f"budget_{round(other * 100)}" for other in NOTE_SHARES if other >= mark] + ["winding_down"]


def errors_in_a_row(state: AgentState) -> int:
    """How many of the last turns with calls brought nothing but errors, since the agent's latest task."""
    count = 0
    for message in reversed(state.messages[state.began_at :]):
        if isinstance(message, Results):
            if not all(result.is_error for result in message.results):
                break
            count += 1
    return count


def _first_error(state: AgentState) -> str:
    """Name the cause of errors in a row by the first one: its tool, and the first line of why."""
    first = None
    for message in reversed(state.messages[state.began_at :]):
        if isinstance(message, Results):
            if not all(result.is_error for result in message.results):
                break
            first = message.results[0]
    if first is None:
        return "tool calls kept failing"
    if first.content == REPEATED:
        return f"the model kept making one call, {first.name}, with the same result; another model may do better"
    why = single_line(first.content.partition("\n")[0])
    return f"tool calls kept failing: {first.name}: {why[:MAX_QUOTED_CHARS]}"


def refuse_repetition(state: AgentState, call: ToolCall) -> str:
    """Why a call is refused that brought the same result too often; empty when it is not."""
    if state.repeated.get(call_key(call), 0) >= REFUSE_REPEATS:
        return REPEATED
    return ""


FORBIDDEN = 403
"""A key may be good for one model and not for another; 401 is about the key itself."""
OF_THE_MODEL = frozenset({ModelFault.CREDENTIALS, ModelFault.UNKNOWN_MODEL, ModelFault.UNSUPPORTED})


def concerns_run(error: ModelError, model: str, lead: str) -> bool:
    """Say whether a helper's model error would meet the orchestrator next, so that the run cannot continue.

    Args:
        error: What the helper's model brought.
        model: The helper's, with its provider's prefix.
        lead: The orchestrator's.
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


def ways_to_retry(agent: str, model: str, others: Mapping[str, str]) -> str:
    """Say to the orchestrator how the work of a helper whose model failed can be done all the same."""
    again = f'call_agent with agent_id "{agent}" continues it, once {model} answers again'
    named = ", ".join(f"{role} ({other})" for role, other in others.items())
    return f"{again}; helpers with another model: {named}" if named else f"{again}; no helper has another model"
