"""Compaction: when old results are cleared, when a conversation is summarised, and what is added to the summary.

Both are records next to a history that stays as it was recorded. In between, a history is only added to, because a
provider caches the beginning of a conversation. So space is made rarely and in large batches: when the conversation has
reached a share of its model's window, or when clearing saves material money. Clearing is
announced one turn before. Results of helpers, plans, lists of files, errors and short results are never cleared.

A provider reads the beginning of a request from its cache at a tenth of the price. So old results are cheap to keep,
and clearing them has a price of its own: everything after the first cleared result is written to the cache again. And
what is cleared may be read again, in a further turn. All prices are the model's own, by the length of the request.

    kept     = turns x cost(request, all read from the cache)
    cleared  = turns x cost(request less what stays cleared, all read from the cache)
             + once    cost of writing what comes after the first cleared result
             + once    a turn that brings READ_AGAIN of the cleared results back
    saved    = kept - cleared

Turns to come are not known. An agent that has taken so many turns takes about as many again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import LiteralString

from explorer.agents.decisions import Decision, ending, note
from explorer.agents.on_record import on_record
from explorer.journal.agent_state import AgentState
from explorer.journal.context_size import BYTES_PER_TOKEN
from explorer.schema.events import Clearing, Compacted, Status, Summarised
from explorer.schema.messages import Results, Turn, Usage
from explorer.schema.reasons import NoteReason
from explorer.text.rendering import WrittenBy, block, fenced, own, render

UsageCost = Callable[[Usage], float]
"""USD of a request with that usage."""

READ_AGAIN = 0.25
"""The share of cleared results that is read again."""
MATERIAL_USD = 0.25
"""The least saving, in USD, for which results are cleared that would still fit."""
MATERIAL_SHARE = 1 / 4
"""The least saving, as a share of what the turns to come cost without it."""


@dataclass(frozen=True)
class ClearingPlan:
    """What clearing would change of a conversation, in tokens."""

    tokens: int
    """The next request."""
    before: int
    """Its part before the first cleared result, which stays in the cache."""
    freed: int
    """What clearing leaves out."""
    turns: int
    """Turns to come."""


def saved_usd(plan: ClearingPlan, cost: UsageCost) -> float:
    """Return the USD that clearing saves over the turns to come; negative when it costs more."""
    short = max(0, plan.tokens - plan.freed)
    again = round(plan.freed * READ_AGAIN)
    carried = plan.turns * (_cached(plan.tokens, cost) - _cached(short + again, cost))
    return carried - _rewriting(plan, short, cost) - cost(_usage(short + again, short))


def is_material(plan: ClearingPlan, cost: UsageCost) -> bool:
    """Return whether clearing saves enough: in USD, and of what the turns to come cost."""
    at_most = plan.turns * _cached(plan.tokens, cost)
    least = max(MATERIAL_USD, MATERIAL_SHARE * at_most)
    return at_most > least and saved_usd(plan, cost) >= least


def _rewriting(plan: ClearingPlan, short: int, cost: UsageCost) -> float:
    """Return the USD of writing to the cache again what comes after the first cleared result."""
    return cost(_usage(short, min(plan.before, short))) - _cached(short, cost)


def _cached(tokens: int, cost: UsageCost) -> float:
    return cost(_usage(tokens, tokens))


def _usage(tokens: int, read: int) -> Usage:
    """Return the usage of a request whose beginning is read from the cache, and whose rest is written to it."""
    return Usage(input_tokens=tokens, cache_read_tokens=read, cache_write_tokens=tokens - read)


DEFAULT_WINDOW_TOKENS = 128_000
"""The window of models whose window is not known. A smaller one is found when the provider refuses a request."""
LOCAL_WINDOW_TOKENS = 32_000
"""The same for models on this machine, which are usually started with less than they can take."""
DEFAULT_SHARE = 0.8
"""The share of a window at which a conversation is shortened; the turn after the announcement has to fit, too."""
FULL_SHARE = 0.95
"""The share at which it is shortened without an announcement: the next request would not fit."""
LEAST_WEIGHED_TOKENS = 10_000
"""The least size of clearable results for which the cost of keeping them is worked out."""
LEAST_FREED = 1 / 4
"""The least share of a conversation's limit that clearing has to free: less is not worth a new cache entry."""
LEAST_SUMMED_TOKENS = 2_000
"""The least size of what a summary replaces: a summary and what the engine adds to it are about as long."""
KEPT_MESSAGES = 4
KEPT_SHARE = 1 / 3
"""What stays: the latest exchange, and the ones before it up to this share of the conversation."""
LAST_STEPS = 2
"""The number of remaining turns for which a summary is no longer made."""
MIN_STEPS_BETWEEN = 3
"""The least number of turns between two clearings, and two summaries, after the provider refused: sooner would be an
endless loop."""
MAX_COMPACTIONS = 2
"""How often in a row space is made for an agent that finds nothing new."""

LEFT_OUT: LiteralString = "The exchanges before this were left out to save space."


@dataclass(frozen=True)
class ContextPolicy:
    """When the conversations of a model's agents are shortened."""

    window_tokens: int | None = DEFAULT_WINDOW_TOKENS
    """The model's context window; None: conversations are never shortened."""
    share: float = DEFAULT_SHARE
    """The share of the window at which they are."""
    cost: UsageCost | None = None
    """USD of a request; None: no price is known, and nothing is cleared to save money."""


USUAL = ContextPolicy()
"""The policy for a model of which nothing is known."""


def plan_compaction(state: AgentState, prefix_bytes: int, policy: ContextPolicy) -> Decision | None:
    """Return what is done about a conversation's length before its next request; None: nothing.

    Args:
        state: The agent.
        prefix_bytes: Size of system text and tools.
        policy: When conversations with the agent's model are shortened.
    """
    if policy.window_tokens is None or state.summing_at is not None:
        return None
    tokens = state.context_size.tokens(state.messages, prefix_bytes)
    window = _window(state, policy.window_tokens)
    if state.announced is not None:
        if state.steps <= state.announced.steps and tokens < window * FULL_SHARE:
            return None
        return _clearing(state, state.announced.before, Clearing(state.announced.why), tokens)
    if state.context_size.compactions >= MAX_COMPACTIONS and NoteReason.SQUEEZED not in state.notes:
        return note(state, NoteReason.SQUEEZED)
    if tokens >= limit_of(state, policy):
        return _relieve(state, tokens, policy)
    return _thrift(state, tokens, prefix_bytes, policy.cost)


def _thrift(state: AgentState, tokens: int, prefix_bytes: int, cost: UsageCost | None) -> Decision | None:
    """Announce the clearing of old results that fit, but cost more to keep than to clear."""
    clearable = state.context_size.clearable_of(state.messages)
    most = state.context_size.tokens_of(sum(clearable))
    if cost is None or most < LEAST_WEIGHED_TOKENS:
        return None
    turns = min(state.steps_left, state.steps)
    # A quick look, as if nothing had to be written again.
    if not is_material(ClearingPlan(tokens, tokens, most, turns), cost):
        return None
    before = kept_from(state)
    first = next((at for at, chars in enumerate(clearable) if chars), before)
    old = sum(state.context_size.bytes_of(state.messages)[:first])
    stays = prefix_bytes // BYTES_PER_TOKEN + state.context_size.tokens_of(old)
    plan = ClearingPlan(tokens, stays, _freed(state, before), turns)
    return _announcement(state, before, Clearing.CARRIED) if is_material(plan, cost) else None


def _announcement(state: AgentState, before: int, why: Clearing) -> Decision:
    return note(state, NoteReason.CLEARING, before=before, why=str(why))


def _clearing(state: AgentState, before: int, why: Clearing, tokens: int) -> Compacted:
    return Compacted(agent=state.agent, before=before, why=why, tokens=tokens)


def _window(state: AgentState, window_tokens: int) -> int:
    """Return the model's window, or the size of the smallest request that its provider refused as too long."""
    return min(window_tokens, state.context_size.window_tokens or window_tokens)


def limit_of(state: AgentState, policy: ContextPolicy) -> int:
    """Return how many tokens a conversation may have before it is shortened."""
    return int(_window(state, policy.window_tokens or DEFAULT_WINDOW_TOKENS) * policy.share)


def _relieve(state: AgentState, tokens: int, policy: ContextPolicy) -> Decision | None:
    """Announce a clearing when that is enough, else summarise, else do nothing: the provider may take the request."""
    limit = limit_of(state, policy)
    before = kept_from(state)
    least = int(limit * LEAST_FREED)
    is_cleared = _freed(state, before) >= least
    if not is_cleared and (state.steps_left <= LAST_STEPS or _summed(state, before) < max(least, LEAST_SUMMED_TOKENS)):
        return None
    context_size = state.context_size
    if context_size.compactions >= MAX_COMPACTIONS and context_size.is_compacted_again(state.steps, state.found_at):
        return ending(state, Status.PARTIAL, "its conversation kept filling up without anything new", last_words(state))
    if not is_cleared:
        return note(state, NoteReason.SUMMARISE)
    if tokens >= _window(state, policy.window_tokens or DEFAULT_WINDOW_TOKENS) * FULL_SHARE:
        return _clearing(state, before, Clearing.FULL, tokens)
    return _announcement(state, before, Clearing.FULL)


def after_refusal(state: AgentState, prefix_bytes: int = 0, compaction_note: str = "") -> Decision:
    """Shorten a conversation that the provider refused as too long; end the agent when it is refused again.

    The model is not asked for a summary: that request would be refused, too.
    """
    if state.summing_at is not None:
        return summary(state, compaction_note)
    before = max(0, len(state.messages) - KEPT_MESSAGES)
    if not _is_recent(state, state.context_size.made_at) and _freed(state, before):
        return _clearing(state, before, Clearing.REFUSED, state.context_size.tokens(state.messages, prefix_bytes))
    # What clearing leaves may still be too long.
    if not _is_recent(state, state.context_size.summed_at) and _summed(state, kept_from(state)) >= LEAST_SUMMED_TOKENS:
        return summary(state, compaction_note)
    return ending(state, Status.PARTIAL, "the conversation no longer fits the model's window", last_words(state))


def _is_recent(state: AgentState, steps: int | None) -> bool:
    """Return whether it is only a few turns since the agent had taken so many steps."""
    return steps is not None and state.steps - steps < MIN_STEPS_BETWEEN


def summary(state: AgentState, compaction_note: str) -> Summarised:
    """Return what replaces old exchanges: the model's summary, and what is on record.

    Args:
        state: An agent that was asked to write down what it needs.
        compaction_note: What the agent has to know of the run: its helpers and jobs.
    """
    asked_at = len(state.messages) if state.summing_at is None else state.summing_at
    written = next((one for one in state.messages[asked_at:] if isinstance(one, Turn)), None)
    words = written.text.strip() if written is not None else ""
    words = words or last_words(state)
    written_down = (
        own("What you wrote down of them:\n{words}", words=block(words, WrittenBy.MODEL)) if words else own("")
    )
    parts = [own(LEFT_OUT), written_down, on_record(state), fenced(compaction_note)]
    before = kept_from(state, asked_at)
    text = render(*parts, between="\n\n")
    return Summarised(agent=state.agent, before=max(1, before), text=text)


def kept_from(state: AgentState, end: int | None = None) -> int:
    """Return the index of the first message that stays: a turn or a text, never results.

    Args:
        state: The agent.
        end: Where its history ends for this; None: where it ends.
    """
    messages = state.messages[:end]
    sizes = state.context_size.bytes_of(state.messages)[: len(messages)]
    most = int(sum(sizes) * KEPT_SHARE)
    from_here, size = len(messages), 0
    while from_here > 0:
        size += sizes[from_here - 1]
        if len(messages) - from_here >= KEPT_MESSAGES // 2 and size > most:
            break
        from_here -= 1
    while 0 < from_here < len(messages) and isinstance(messages[from_here], Results):
        from_here -= 1
    return from_here


def _freed(state: AgentState, before: int) -> int:
    """Estimate how many tokens clearing the results before a message frees."""
    return state.context_size.tokens_of(sum(state.context_size.clearable_of(state.messages)[:before]))


def _summed(state: AgentState, before: int) -> int:
    """Estimate how many tokens the messages before a message have."""
    return state.context_size.tokens_of(sum(state.context_size.bytes_of(state.messages)[1:before]))


def last_words(state: AgentState) -> str:
    """Return the agent's last text since its latest task."""
    texts = (
        message.text.strip() for message in reversed(state.messages[state.began_at :]) if isinstance(message, Turn)
    )
    return next((text for text in texts if text), "")
