"""How a run ends: every ending leaves `report.md`, complete, or partial with the reason and what was found."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from explorer.errors import ToolError
from explorer.events import AgentFinished, Status
from explorer.history import AgentState, Fold
from explorer.prompts import ORCHESTRATOR
from explorer.report import (
    MIN_REPORT_WORDS,
    Rendered,
    count_words,
    language_of,
    problem_of,
    render,
    with_frontmatter,
    without_frontmatter,
)
from explorer.settings import Limits
from explorer.workspace import Workspace, sha256

REPORT = "report.md"
CENT_USD = 0.01
LIMIT_REASONS = ("step limit", "cost limit", "token limit", "tool call limit", "time limit")
"""Why a run ended whose limits can be raised."""
MAX_REPORT_CHARS = 1_000_000
"""Of an answer that stands in for the report: a model that runs on for megabytes has written none."""
MAX_SUMMARY_CHARS = 3_000
"""Of each helper's summary in the report of a run that stopped before its report."""
DRAFT = ".explorer/draft.md"
"""The report as its writer left it, with `[S12]` citations, so that a follow-up can go on from it."""


@dataclass(frozen=True)
class Conclusion:
    """How a run ended, and its report."""

    status: Status
    reason: str
    report: str
    """The whole text of report.md."""
    citations: int


def conclude(fold: Fold, workspace: Workspace, ended: AgentFinished | None, cut: str, language: str) -> Conclusion:
    """Write the final report.md of a run.

    Args:
        fold: The run.
        workspace: Its folder.
        ended: The orchestrator's end; None when it was cut off.
        cut: Why it was cut off, or is known to be incomplete; empty otherwise.
        language: Of the report's fixed words; empty for that of the question.
    """
    draft = _draft(fold, workspace)
    answer = ended.summary if ended is not None else ""
    status, reason = _status(ended, cut)
    if problem_of(draft, fold.sources) and "cites" not in problem_of(draft, fold.sources):
        draft = answer[:MAX_REPORT_CHARS] if count_words(answer) >= MIN_REPORT_WORDS else ""
    if not draft:
        status, reason = _without_report(fold, status, reason)
        draft = unfinished_report(fold, workspace, reason)
    question = fold.started.question if fold.started is not None else ""
    rendered = render(draft, fold.sources, language or language_of(question))
    if rendered.dangling and status is Status.COMPLETE:
        status = Status.PARTIAL
        reason = f"the report cites sources that do not exist: {', '.join(rendered.dangling)}"
    text = with_frontmatter(_fields(fold, status, reason, rendered, language or language_of(draft)), rendered.text)
    workspace.write_own(REPORT, text)
    return Conclusion(status, reason, text, rendered.citations)


def restore_draft(fold: Fold, workspace: Workspace) -> None:
    """Before agents go on: put the writer's own draft back in the rendered report's place.

    A report that only the engine wrote is taken away: to the agents there is none yet.
    """
    if REPORT not in fold.files:
        workspace.remove(REPORT)
        return
    draft = _draft(fold, workspace)
    if draft and workspace.digest(REPORT) != sha256(draft.encode("utf-8", "replace")):
        workspace.write_own(REPORT, draft)


def _draft(fold: Fold, workspace: Workspace) -> str:
    """The writer's latest text: report.md as an agent wrote it, or its kept copy once report.md was rendered."""
    written = fold.files.get(REPORT)
    if written is None:
        return ""
    if workspace.digest(REPORT) == written.sha256:
        text = workspace.read_text(REPORT)
        workspace.write_own(DRAFT, text)
        return text
    try:
        return workspace.read_text(DRAFT)
    except ToolError:
        return ""


def _status(ended: AgentFinished | None, cut: str) -> tuple[Status, str]:
    if ended is None or cut:
        return Status.PARTIAL, cut or "the run was cut off"
    if ended.status is Status.COMPLETE:
        return Status.COMPLETE, ""
    return ended.status, ended.reason


def _without_report(fold: Fold, status: Status, reason: str) -> tuple[Status, str]:
    was_claimed = status is Status.COMPLETE
    if was_claimed:
        # Whatever the model says: without a report it has failed, and is not merely early.
        status, reason = Status.FAILED, "no report was written"
    if not fold.files and not fold.sources:
        return Status.FAILED, f"{reason}; nothing was found"
    return (Status.PARTIAL if status is Status.FAILED and not was_claimed else status), reason


def unfinished_report(fold: Fold, workspace: Workspace, reason: str) -> str:
    """What there is to say about a run without a report: the reason, each helper's summary, the files, the way on."""
    question = fold.started.question if fold.started is not None else ""
    lines = [f"# {_first_line(question)}", "", f"This run stopped before its report was written: {reason}."]
    helpers = [state for state in fold.agents.values() if state.role != ORCHESTRATOR]
    if helpers:
        lines += ["", "## What was found", *[_said(state) for state in helpers]]
    files = [written for written in fold.files.values() if written.path != REPORT]
    if files:
        lines += ["", "## Files", ""]
        lines += [f"- `{written.path}` ({written.lines} lines): {written.title}" for written in files]
    lines += ["", f"{len(fold.sources)} sources are stored in `.explorer/sources/`.", ""]
    lines += ["To go on from here:", "", f"    {way_on(fold, workspace.folder.name, reason)}"]
    return "\n".join(lines)


def way_on(fold: Fold, run_id: str, reason: str) -> str:
    """The command that goes on with a run; after a limit, with twice as much of what ran out."""
    command = f"explorer resume {run_id}"
    limits = Limits.model_validate(fold.started.settings.get("limits", {})) if fold.started is not None else Limits()
    before = fold.paid_before
    # A later life may have had a larger limit than the recorded one: then about so much of it is used.
    match reason.partition(";")[0]:
        case "step limit":
            return f"{command} --max-steps {2 * max(limits.max_steps or 0, fold.steps - before.steps)}"
        case "cost limit":
            usd = 2 * max(limits.max_cost_usd or 0.0, fold.known_cost_usd - before.cost_usd)
            return f"{command} --max-cost {usd:.2f}" if usd >= CENT_USD else f"{command} --max-cost {usd:.6f}"
        case "token limit":
            tokens = 2 * max(limits.max_tokens or 0, fold.usage.total_tokens - before.tokens)
            return f"{command} --max-tokens {tokens}"
        case "tool call limit":
            return f"{command} --max-tool-calls {2 * max(limits.max_tool_calls or 0, fold.calls - before.calls)}"
        case "time limit":
            seconds = 2 * (limits.max_time_s or 0)
            return f"{command} --max-time {seconds:g}s" if seconds else command
        case _:
            return command


def _said(state: AgentState) -> str:
    if state.finished is None:
        return f"\n**{state.agent}** was still at work on: {_first_line(state.task)}"
    words = (state.finished.summary or state.finished.reason)[:MAX_SUMMARY_CHARS]
    return f"\n**{state.agent}** ({state.finished.status}): {words}"


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:160]


def _fields(fold: Fold, status: Status, reason: str, rendered: Rendered, language: str) -> Mapping[str, object]:
    assert fold.started is not None
    usage, cost = fold.usage, fold.cost_usd
    models = sorted({fold.heads[state.role].model for state in fold.agents.values() if state.role in fold.heads})
    fields: dict[str, object] = {
        "question": fold.started.question,
        "run_id": fold.started.run_id,
        "created_at": created_at(fold.started.run_id),
        "status": str(status),
    }
    if reason:
        fields["reason"] = reason
    if models == ["offline"]:
        fields["written_by"] = "extraction, without a language model"
    if any("sample" in source.flags for source in fold.sources.values()):
        fields["sample"] = "invented sample data"
    return fields | {
        "models": models,
        "cost_usd": None if cost is None else round(cost, 6),
        "tokens": {"input": usage.input_tokens, "output": usage.output_tokens},
        "sources": len(fold.sources),
        "citations": {"total": rendered.citations, "sources_cited": len(rendered.cited)},
        "language": language,
    }


def created_at(run_id: str) -> str:
    """The start of a run, as its id tells it (UTC); empty for an id of an embedder's own making."""
    try:
        return datetime.strptime(run_id[:15] + "+0000", "%Y%m%d-%H%M%S%z").isoformat()
    except ValueError:
        return ""


def report_path(folder: Path) -> Path | None:
    """Where a run's report is; None when there is none."""
    path = folder / REPORT
    return path if path.is_file() else None


def draft_problem(fold: Fold, workspace: Workspace) -> str:
    """Why report.md cannot be handed over just now, in words for the model; empty when it can."""
    if not workspace.exists(REPORT):
        return "there is no report.md yet: have it written (a writer does it well), read it, then finish"
    return problem_of(without_frontmatter(workspace.read_text(REPORT)), fold.sources)
