"""What is on record of an agent's work, next to a summary: files, sources, helpers with their results, plan, jobs."""

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import groupby

from explorer.journal.agent_state import AgentState
from explorer.journal.context_size import PLANS, is_plan
from explorer.journal.run_state import RunState
from explorer.schema.errors import ToolError
from explorer.schema.events import ORCHESTRATOR, Status
from explorer.text.rendering import ModelText, WrittenBy, block, codes, from_record, inline, own, render
from explorer.text.sanitize import single_line

MAX_TITLED = 60
"""The latest files, which are listed with their titles; of the others the names are given."""
MAX_NAMES_CHARS = 12_000
MAX_RANGES = 400
MAX_HELPERS_CHARS = 100_000
"""Limit of all lines on helpers; each has an equal share, so that the results of two hundred fit."""
MIN_HELPER_CHARS = 120
MAX_PLAN_CHARS = 4_000


def on_record(state: AgentState) -> ModelText:
    """Return the files and sources that an agent had."""
    wrote = [*state.files.values()]
    titled, earlier = wrote[-MAX_TITLED:], wrote[:-MAX_TITLED]
    lines = [f"- also {names_of(one.path for one in earlier)}"] if earlier else []
    lines += [f"- {one.path} ({one.lines} lines, {one.bytes} bytes): {one.title}" for one in titled]
    files = render(own("Files you wrote:"), _lines(lines)) if lines else own("")
    names = names_of(path for path in state.opened if path not in state.files)
    opened = render(own("Files you read:"), _lines([names])) if names else own("")
    ids = codes(id_ranges(state.sources)[:MAX_RANGES])
    met = own("Sources you met, each of which you can read again: {ids}.", ids=ids) if ids else own("")
    return render(files, opened, met, between="\n\n")


def names_of(paths: Iterable[str], max_chars: int = MAX_NAMES_CHARS) -> str:
    """Return paths on one line, as many as fit; the others are counted."""
    shown, left, size = list[str](), 0, 0
    for path in paths:
        size += len(path) + 2
        if size <= max_chars or not shown:
            shown.append(path)
        else:
            left += 1
    return ", ".join(shown) + (f" and {left} more (list_files)" if left else "")


def id_ranges(ids: Collection[str]) -> list[str]:
    """Return ids of sources in order, with those in a row joined: `S1-S3`, `S7`; other names come last, as they are."""
    numbers = sorted(int(one[1:]) for one in ids if one[:1] == "S" and one[1:].isdecimal())
    others = sorted(one for one in ids if not (one[:1] == "S" and one[1:].isdecimal()))
    found: list[str] = []
    for _, row in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        members = [number for _, number in row]
        found.append(f"S{members[0]}" if len(members) == 1 else f"S{members[0]}-S{members[-1]}")
    return found + others


def compaction_note(
    state: AgentState,
    run_state: RunState,
    read: Callable[[str], str],
    jobs: Callable[[str], Sequence[ModelText]],
    max_chars: int = MAX_HELPERS_CHARS,
) -> ModelText:
    """Return what is on record for one agent, except its own files.

    Args:
        state: The agent.
        run_state: The whole run.
        read: Returns the content of a file of the run.
        jobs: Returns a line on each background job of an agent.
        max_chars: Limit of all lines on helpers.
    """
    parts = [_skills(state, max_chars), _plan(state, read)]
    parts.append(_helpers(run_state, state.agent, max_chars))
    if state.agent == ORCHESTRATOR:
        count = len(run_state.files)
        parts.append(own("Files of this run: {count}.", count=count) if count else own(""))
    lines = jobs(state.agent)
    if lines:
        parts.append(render(own("Your background jobs:"), *lines))
    return render(*parts, between="\n\n")


def _lines(lines: Iterable[str]) -> ModelText:
    return block("\n".join(lines), WrittenBy.MODEL)


def _skills(state: AgentState, max_chars: int) -> ModelText:
    """Return the skills that an agent works by, whole; only their names where they take too much of a window."""
    if sum(map(len, state.skills.values())) > max_chars:
        names = render(*map(inline, state.skills), between=", ")
        return own("You work by these skills; load again what you need of them: {names}", names=names)
    return render(*map(from_record, state.skills.values()), between="\n\n")


def _plan(state: AgentState, read: Callable[[str], str]) -> ModelText:
    """Return the current content of the file with an agent's plan; empty without one."""
    paths = [path for path in state.files if is_plan(path, (*PLANS, "notes"))]
    if not paths:
        return own("")
    try:
        text = read(paths[-1])
    except ToolError:
        return own("")  # it was removed or renamed since, as its writer knows
    rest = "\n[...]" if len(text) > MAX_PLAN_CHARS else ""
    head = own("Current content of {path}:", path=paths[-1])
    return render(head, block(text[:MAX_PLAN_CHARS] + rest, WrittenBy.MODEL))


def _helpers(run_state: RunState, caller: str, max_chars: int) -> ModelText:
    """Return the list of an agent's helpers with what each of them answered and wrote."""
    others = (state for state in run_state.agents.values() if state.agent != ORCHESTRATOR)
    helpers = [state for state in others if (state.parent or ORCHESTRATOR) == caller]
    if not helpers:
        return own("")
    share = max(MIN_HELPER_CHARS, max_chars // len(helpers))
    lines = [_helper_line(one, share) for one in helpers]
    return render(own("Your helpers, each of which remembers what it did, with their results:"), _lines(lines))


def _helper_line(state: AgentState, max_chars: int) -> str:
    ended = state.finished.status if state.finished is not None else "at work"
    reason = f" ({state.finished.reason})" if state.finished and state.finished.status is not Status.COMPLETE else ""
    files = f"; wrote {names_of(state.files, max_chars // 2)}" if state.files else "; wrote nothing"
    head = f"- {state.agent}: {ended}{reason}{files}"
    summary = single_line(state.finished.summary) if state.finished is not None else ""
    left = max_chars - len(head)
    return f"{head}\n  {single_line(summary, left)}" if summary and left > MIN_HELPER_CHARS // 2 else head
