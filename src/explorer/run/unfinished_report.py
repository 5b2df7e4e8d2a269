"""What the engine itself writes at the end of a run: a report where the agents left none, and the way to continue."""

from explorer.journal.agent_state import AgentState
from explorer.journal.run_state import RunState
from explorer.run.outcome import Outcome, tried
from explorer.schema.events import ORCHESTRATOR, AgentFinished, Status
from explorer.schema.limits import Limits
from explorer.schema.reasons import EndCause
from explorer.workspace.access import REPORT
from explorer.workspace.workspace import Workspace

CENT_USD = 0.01
MAX_SUMMARY_CHARS = 3_000
"""Of each helper's summary in the report of a run that stopped before its report."""
MAX_WORDS_CHARS = 20_000
"""Of the orchestrator's last words there: a model that runs on for megabytes has said nothing."""
WITH_TRIED = frozenset({Status.NOTHING_FOUND, Status.SOURCES_UNAVAILABLE})
"""Ends whose report lists what was looked up."""


def unfinished_report(run_state: RunState, workspace: Workspace, ended: AgentFinished | None, outcome: Outcome) -> str:
    """What there is to say about a run without a report: the reason, all that was said and found, the way on."""
    question = run_state.started.question if run_state.started is not None else ""
    lines = [f"# {_first_line(question)}", "", "This run stopped before its report was written."]
    words = ended.summary.strip() if ended is not None else ""
    if words:
        lines += ["", "## What the model said instead", "", words[:MAX_WORDS_CHARS]]
    helpers = [state for state in run_state.agents.values() if state.agent != ORCHESTRATOR]
    if helpers:
        lines += ["", "## What was found", *[_said(state) for state in helpers]]
    files = [written for written in run_state.files.values() if written.path != REPORT]
    if files:
        lines += ["", "## Files", ""]
        lines += [f"- `{written.path}` ({written.lines} lines): {written.title}" for written in files]
    lines += ["", "What was read is stored in `.explorer/sources/`.", ""] if run_state.sources else [""]
    lines += ["To continue:", "", f"    {resume_command(run_state, workspace.folder.name, outcome.cause)}"]
    return "\n".join([*lines, *what_was_tried(run_state, outcome.status)])


def what_was_tried(run_state: RunState, status: Status) -> list[str]:
    """The end of a report on a run that found nothing: each lookup with what came of it."""
    lines = tried(run_state) if status in WITH_TRIED else []
    return ["", "## What was tried", "", *lines] if lines else []


def resume_command(run_state: RunState, run_id: str, cause: EndCause) -> str:
    """The command that goes on with a run; after a limit, with twice as much of what ran out."""
    command = f"explorer resume {run_id}"
    limits = _limits(run_state)
    before = run_state.paid_before
    # A later life may have had a larger limit than the recorded one: then about so much of it is used.
    match cause:
        case EndCause.STEP_LIMIT:
            return f"{command} --max-steps {2 * max(limits.max_steps or 0, run_state.steps - before.steps)}"
        case EndCause.COST_LIMIT:
            usd = 2 * max(limits.max_cost_usd or 0.0, run_state.known_cost_usd - before.cost_usd)
            return f"{command} --max-cost {usd:.2f}" if usd >= CENT_USD else f"{command} --max-cost {usd:.6f}"
        case EndCause.TOKEN_LIMIT:
            tokens = 2 * max(limits.max_tokens or 0, run_state.usage.total_tokens - before.tokens)
            return f"{command} --max-tokens {tokens}"
        case EndCause.CALL_LIMIT:
            return f"{command} --max-tool-calls {2 * max(limits.max_tool_calls or 0, run_state.calls - before.calls)}"
        case EndCause.TIME_LIMIT:
            seconds = 2 * (limits.max_time_s or 0)
            return f"{command} --max-time {seconds:g}s" if seconds else command
        case _:
            return command


def _limits(run_state: RunState) -> Limits:
    """The limits of the latest session; in older journals, those the run was started with."""
    if run_state.session is not None:
        known = {name: limit.value for name, limit in run_state.session.limits.items() if name in Limits.model_fields}
        return Limits.model_validate(known)
    return (
        Limits.model_validate(run_state.started.settings.get("limits", {}))
        if run_state.started is not None
        else Limits()
    )


def _said(state: AgentState) -> str:
    if state.finished is None:
        return f"\n**{state.agent}** was still at work on: {_first_line(state.task)}"
    words = (state.finished.summary or state.finished.reason)[:MAX_SUMMARY_CHARS]
    return f"\n**{state.agent}** ({state.finished.status}): {words}"


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:160]
