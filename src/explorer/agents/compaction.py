"""Compaction: when old results are cleared, when a conversation is summarised, and what is added to the summary.

Both are records next to a history that stays as it was recorded. In between, a history is only added to, because a
provider caches the beginning of a conversation. So space is made rarely and in large batches.
"""

from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import LiteralString

from explorer.agents.decisions import Decision, ending, note
from explorer.journal.agent_state import AgentState
from explorer.journal.context_size import BYTES_PER_TOKEN, clearable_chars
from explorer.journal.run_state import RunState
from explorer.schema.errors import ToolError
from explorer.schema.events import ORCHESTRATOR, Clearing, Compacted, Status, Summarised
from explorer.schema.messages import Message, Results, Turn, UserText
from explorer.schema.reasons import NoteReason
from explorer.text.rendering import ModelText, WrittenBy, block, fenced, own, render

DEFAULT_WINDOW_TOKENS = 128_000
"""The window of models whose window is not known. A smaller one is found when the provider refuses a request."""
WINDOW_SHARE = 0.7
"""The share of a window that is used; a reply has to fit too, and counts before a request are estimates."""
REFUSED_SHARE = 0.9
"""The share that is used of a window that a provider refused."""
WORKING_TOKENS = 48_000
"""The limit of a conversation even where the window is larger, for every turn sends all of it again."""
CARRIED_CHARS = 400_000
"""Old results that were sent again so often are cleared in a conversation of any size.

Sending them has cost about as much as writing the rest of the conversation to the cache again, where reading from the
cache has a tenth of the price.
"""
LEAST_FREED = 1 / 4
"""The least share of a conversation's limit that clearing has to free: less is not worth a new cache entry."""
LEAST_FREED_OF_ALL = 1 / 4
"""The least share of a conversation that clearing has to free where the conversation would still fit."""
LEAST_SUMMED_TOKENS = 2_000
"""The least size of what a summary replaces: a summary and what the engine adds to it are about as long."""
KEPT_MESSAGES = 4
KEPT_BYTES = 40_000
SHORT_BYTES = 6_000
"""Sizes of the latest exchanges, which stay: the last one, the last two unless they are long, more while short."""
LAST_STEPS = 2
"""The number of remaining turns for which a summary is no longer made."""
MIN_STEPS_BETWEEN = 3
"""The least number of turns between two clearings after the provider refused: sooner would be an endless loop."""
MAX_COMPACTIONS = 2
"""How often in a row space is made for an agent that finds nothing new."""
MAX_LISTED_FILES = 60

LEFT_OUT: LiteralString = "The exchanges before this were left out to save space."


def plan_compaction(state: AgentState, prefix_bytes: int, window_tokens: int | None) -> Decision | None:
    """Return what is done about a conversation's length before its next request; None: nothing.

    Args:
        state: The agent.
        prefix_bytes: Size of system text and tools.
        window_tokens: Window of the agent's model; None for a model that needs the whole conversation.
    """
    if window_tokens is None or state.summing_at is not None:
        return None
    tokens = state.context_size.tokens(state.messages, prefix_bytes)
    limit = limit_of(state, window_tokens)
    if state.context_size.compactions >= MAX_COMPACTIONS and NoteReason.SQUEEZED not in state.notes:
        return note(state, NoteReason.SQUEEZED)
    if tokens >= limit:
        return _relieve(state, tokens, limit)
    return _thrift(state, tokens, limit)


def _thrift(state: AgentState, tokens: int, limit: int) -> Decision | None:
    """Clear old results that fit, but were sent again so often that clearing saves money."""
    least = LEAST_FREED_OF_ALL * tokens
    context_size = state.context_size
    # The second is a quick look that spares going through the history each turn.
    if context_size.carried_chars < CARRIED_CHARS or context_size.long_chars < least * BYTES_PER_TOKEN:
        return None
    before = kept_from(state.messages, limit)
    return _clearing(state, before, Clearing.CARRIED, tokens) if _freed(state, before) >= least else None


def _clearing(state: AgentState, before: int, why: Clearing, tokens: int) -> Compacted:
    return Compacted(agent=state.agent, before=before, why=why, tokens=tokens)


def limit_of(state: AgentState, window_tokens: int) -> int:
    """Return how many tokens a conversation may have."""
    limit = min(WORKING_TOKENS, int(window_tokens * WINDOW_SHARE))
    refused = state.context_size.window_tokens
    return limit if refused is None else min(limit, int(refused * REFUSED_SHARE))


def _relieve(state: AgentState, tokens: int, limit: int) -> Decision | None:
    """Clear when that is enough, else summarise, else do nothing: the provider may still take the request."""
    before = kept_from(state.messages, limit)
    least = int(limit * LEAST_FREED)
    is_cleared = _freed(state, before) >= least
    if not is_cleared and (state.steps_left <= LAST_STEPS or _summed(state, before) < max(least, LEAST_SUMMED_TOKENS)):
        return None
    context_size = state.context_size
    if context_size.compactions >= MAX_COMPACTIONS and context_size.is_compacted_again(state.steps, state.found_at):
        return ending(state, Status.PARTIAL, "its conversation kept filling up without anything new", last_words(state))
    return _clearing(state, before, Clearing.FULL, tokens) if is_cleared else note(state, NoteReason.SUMMARISE)


def after_refusal(
    state: AgentState, prefix_bytes: int = 0, window_tokens: int | None = None, compaction_note: str = ""
) -> Decision:
    """Shorten a conversation that the provider refused as too long; end the agent when it is refused again.

    The model is not asked for a summary: that request would be refused, too.
    """
    if state.summing_at is not None:
        return summary(state, window_tokens, compaction_note)
    before = max(0, len(state.messages) - KEPT_MESSAGES)
    made_at = state.context_size.made_at
    is_again = made_at is not None and state.steps - made_at < MIN_STEPS_BETWEEN
    if not is_again and _freed(state, before):
        return _clearing(state, before, Clearing.REFUSED, state.context_size.tokens(state.messages, prefix_bytes))
    if not is_again and _summed(state, before) >= LEAST_SUMMED_TOKENS:
        return summary(state, window_tokens, compaction_note)
    return ending(state, Status.PARTIAL, "the conversation no longer fits the model's window", last_words(state))


def summary(state: AgentState, window_tokens: int | None, compaction_note: str) -> Summarised:
    """Return what replaces old exchanges: the model's summary, and what is on record.

    Args:
        state: An agent that was asked to write down what it needs.
        window_tokens: Window of its model.
        compaction_note: What the agent has to know of the run: its helpers and jobs.
    """
    asked_at = len(state.messages) if state.summing_at is None else state.summing_at
    written = next((one for one in state.messages[asked_at:] if isinstance(one, Turn)), None)
    words = written.text.strip() if written is not None else ""
    words = words or last_words(state)
    written_down = (
        own("What you wrote down of them:\n{words}", words=block(words, WrittenBy.MODEL)) if words else own("")
    )
    parts = [own(LEFT_OUT), written_down, _on_record(state), fenced(compaction_note)]
    before = kept_from(state.messages[:asked_at], limit_of(state, window_tokens or DEFAULT_WINDOW_TOKENS))
    text = render(*parts, between="\n\n")
    return Summarised(agent=state.agent, before=max(1, before), text=text)


def _on_record(state: AgentState) -> ModelText:
    """Return what the journal says of an agent's work: its files, and how many sources it met."""
    latest = list(state.files.values())[-MAX_LISTED_FILES:]
    lines = [f"- {one.path} ({one.lines} lines, {one.bytes} bytes): {one.title}" for one in latest]
    if len(state.files) > len(lines):
        lines.insert(0, f"- {len(state.files) - len(lines)} earlier ones")
    listed = block("\n".join(lines), WrittenBy.MODEL)
    files = render(own("Files you wrote, which you can read again:"), listed) if lines else own("")
    met = own("You met {count} stored sources.", count=len(state.sources)) if state.sources else own("")
    return render(files, met, between="\n\n")


def kept_from(messages: Sequence[Message], limit_tokens: int) -> int:
    """Return the index of the first message that stays: a turn or a text, never results."""
    from_here, size = len(messages), 0
    while from_here > 0:
        size += _shown_bytes(messages[from_here - 1])
        if not _is_kept(len(messages) - from_here, size, limit_tokens):
            break
        from_here -= 1
    while 0 < from_here < len(messages) and isinstance(messages[from_here], Results):
        from_here -= 1
    return from_here


def _is_kept(later: int, size: int, limit_tokens: int) -> bool:
    """Return whether a message stays that has so many messages after it, and takes so many bytes together with them.

    In a small window both sizes are a quarter of what a conversation may have.
    """
    most = min(SHORT_BYTES if later >= KEPT_MESSAGES else KEPT_BYTES, limit_tokens * BYTES_PER_TOKEN // 4)
    return later < KEPT_MESSAGES // 2 or size <= most


def _shown_bytes(message: Message) -> int:
    if isinstance(message, Results):
        return sum(len(result.content) for result in message.results)
    return len(message.text) if isinstance(message, UserText) else sum(len(str(block)) for block in message.blocks)


def _freed(state: AgentState, before: int) -> int:
    """Estimate how many tokens clearing the results before a message frees."""
    old = state.messages[:before]
    return sum(clearable_chars(message) for message in old if isinstance(message, Results)) // BYTES_PER_TOKEN


def _summed(state: AgentState, before: int) -> int:
    """Estimate how many tokens the messages before a message have."""
    return sum(state.context_size.bytes_of(state.messages)[1:before]) // BYTES_PER_TOKEN


def last_words(state: AgentState) -> str:
    """Return the agent's last text since its latest task."""
    texts = (
        message.text.strip() for message in reversed(state.messages[state.began_at :]) if isinstance(message, Turn)
    )
    return next((text for text in texts if text), "")


MAX_HELPERS = 120
MAX_PLAN_CHARS = 4_000
PLANS = ("plan", "todo", "notes")
"""Beginnings of the names of files with an agent's plan."""


def compaction_note(
    state: AgentState, run_state: RunState, read: Callable[[str], str], jobs: Callable[[str], Sequence[ModelText]]
) -> ModelText:
    """Return what is on record for one agent, except its own files.

    Args:
        state: The agent.
        run_state: The whole run.
        read: Returns the content of a file of the run.
        jobs: Returns a line on each background job of an agent.
    """
    parts = [_plan(state, read)]
    if state.agent == ORCHESTRATOR:
        count = len(run_state.files)
        parts += [_helpers(run_state), own("Files of this run: {count}.", count=count) if count else own("")]
    lines = jobs(state.agent)
    if lines:
        parts.append(render(own("Your background jobs:"), *lines))
    return render(*parts, between="\n\n")


def _plan(state: AgentState, read: Callable[[str], str]) -> ModelText:
    """Return the current content of the file with an agent's plan; empty without one."""
    paths = [path for path in state.files if PurePosixPath(path).stem.lower().startswith(PLANS)]
    if not paths:
        return own("")
    try:
        text = read(paths[-1])
    except ToolError:
        return own("")  # it was removed or renamed since, as its writer knows
    rest = "\n[...]" if len(text) > MAX_PLAN_CHARS else ""
    head = own("Current content of {path}:", path=paths[-1])
    return render(head, block(text[:MAX_PLAN_CHARS] + rest, WrittenBy.MODEL))


def _helpers(run_state: RunState) -> ModelText:
    """Return the list of helpers; the latest are named, the earlier ones counted."""
    helpers = [state for state in run_state.agents.values() if state.agent != ORCHESTRATOR]
    if not helpers:
        return own("")
    shown = helpers[-MAX_HELPERS:]
    earlier = [f"- {len(helpers) - len(shown)} earlier ones"] if len(helpers) > len(shown) else []
    lines = "\n".join([*earlier, *map(_helper_line, shown)])
    return render(own("Your helpers, each of which remembers what it did:"), block(lines, WrittenBy.MODEL))


def _helper_line(state: AgentState) -> str:
    ended = state.finished.status if state.finished is not None else "at work"
    reason = f" ({state.finished.reason})" if state.finished and state.finished.status is not Status.COMPLETE else ""
    written = [*state.files]
    files = f"; wrote {written[0]}" if written else "; wrote nothing"
    more = f" and {len(written) - 1} more" if len(written) > 1 else ""
    return f"- {state.agent}: {ended}{reason}{files}{more}"
