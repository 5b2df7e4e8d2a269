"""How a run ends: every ending leaves `report.md`, complete, or partial with the reason and what was found."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from explorer.errors import ToolError
from explorer.events import AgentFinished, Status
from explorer.fold import Fold
from explorer.history import AgentState
from explorer.messages import Results
from explorer.prompts import ORCHESTRATOR
from explorer.report import (
    MIN_REPORT_WORDS,
    Rendered,
    count_words,
    image_problem,
    language_of,
    problem_of,
    render,
    with_frontmatter,
    without_frontmatter,
)
from explorer.settings import Limits
from explorer.verify.check import check
from explorer.verify.claims import Verification
from explorer.verify.drafts import DRAFT, REPORT, draft_of, unrendered
from explorer.verify.files import text_reader, write_results
from explorer.verify.judge import Judgements
from explorer.verify.words import note, words_for_writer
from explorer.workspace import Workspace, sha256

CENT_USD = 0.01
LIMIT_REASONS = ("step limit", "cost limit", "token limit", "tool call limit", "time limit")
"""Why a run ended whose limits can be raised."""
MAX_REPORT_CHARS = 1_000_000
"""Of an answer that stands in for the report: a model that runs on for megabytes has written none."""
MAX_SUMMARY_CHARS = 3_000
"""Of each helper's summary in the report of a run that stopped before its report."""
UNCONFINED = "unconfined"
"""What the journal says of a life whose commands nothing held."""
NOT_YET = "not finished yet, and this is said once: have report.md mended, then finish again."
"""What a refusal because of the citations begins with; a run is refused for it only once."""


@dataclass(frozen=True)
class Conclusion:
    """How a run ended, and its report."""

    status: Status
    reason: str
    report: str
    """The whole text of report.md."""
    citations: int
    verification: Verification


@dataclass(frozen=True)
class Wanted:
    """What is to be in the report besides the writer's words."""

    language: str = ""
    """Of its fixed words; empty for that of the question."""
    judged: Judgements | None = None
    """What a model said of its citations."""


def conclude(
    fold: Fold, workspace: Workspace, ended: AgentFinished | None, cut: str, wanted: Wanted = Wanted()
) -> Conclusion:
    """Write the final report.md of a run.

    Args:
        fold: The run.
        workspace: Its folder.
        ended: The orchestrator's end; None when it was cut off.
        cut: Why it was cut off, or is known to be incomplete; empty otherwise.
        wanted: What else is to be in it.
    """
    language = wanted.language
    draft = _draft(fold, workspace)
    answer = ended.summary if ended is not None else ""
    status, reason = _status(ended, cut)
    if problem_of(draft, fold.sources) and "cites" not in problem_of(draft, fold.sources):
        draft = answer[:MAX_REPORT_CHARS] if count_words(answer) >= MIN_REPORT_WORDS else ""
    if not draft:
        status, reason = _without_report(fold, status, reason)
        draft = unfinished_report(fold, workspace, reason)
    question = fold.started.question if fold.started is not None else ""
    words = language or language_of(question)
    rendered = render(draft, fold.sources, words, workspace.exists)
    if rendered.dangling and status is Status.COMPLETE:
        status = Status.PARTIAL
        reason = f"the report cites sources that do not exist: {', '.join(rendered.dangling)}"
    fields = _fields(fold, status, reason, language or language_of(draft))
    text, verification = _verified(fields, rendered, fold, workspace, words)
    workspace.write_own(REPORT, text)
    write_results(workspace, draft_of(workspace), fold.sources, verification, wanted.judged)
    return Conclusion(status, reason, text, rendered.citations, verification)


def _verified(
    fields: dict[str, object], rendered: Rendered, fold: Fold, workspace: Workspace, language: str
) -> tuple[str, Verification]:
    """The whole text of report.md, with what a check of its citations counted in the frontmatter."""
    marks: dict[str, object] = {"total": rendered.citations, "sources_cited": len(rendered.cited)}

    def text(verification: Verification) -> str:
        counts = {name: number for name, number in verification.counts.items() if name != "total"}
        remark = note(verification, language)
        body = f"> {remark}\n\n{rendered.text}" if remark else rendered.text
        return with_frontmatter(fields | {"citations": marks | counts | _opinions(fold)}, body)

    # Checked as its reader has it, so that the lines are right: the counts of nothing take up as many.
    draft = unrendered(text(Verification(claims=())))
    verification = check(draft, fold.sources, text_reader(workspace))
    return text(verification), verification


def _opinions(fold: Fold) -> dict[str, object]:
    """What a model said of the citations, apart from what was looked up; nothing where none was asked."""
    if not fold.judged:
        return {}
    latest = fold.judged[-1]
    said = {"carried": latest.carried, "not_carried": latest.not_carried, "unclear": latest.unclear}
    return {"judged": {"model": latest.model, **said}}


def checked_draft(fold: Fold, workspace: Workspace) -> Verification:
    """What can be looked up of the draft as it stands; nothing where there is none."""
    draft = _draft(fold, workspace)
    return check(draft, fold.sources, text_reader(workspace))


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
    limits = _limits(fold)
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


def _limits(fold: Fold) -> Limits:
    """The limits of the latest session; in older journals, those the run was started with."""
    if fold.session is not None:
        known = {name: limit.value for name, limit in fold.session.limits.items() if name in Limits.model_fields}
        return Limits.model_validate(known)
    return Limits.model_validate(fold.started.settings.get("limits", {})) if fold.started is not None else Limits()


def _said(state: AgentState) -> str:
    if state.finished is None:
        return f"\n**{state.agent}** was still at work on: {_first_line(state.task)}"
    words = (state.finished.summary or state.finished.reason)[:MAX_SUMMARY_CHARS]
    return f"\n**{state.agent}** ({state.finished.status}): {words}"


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:160]


def _fields(fold: Fold, status: Status, reason: str, language: str) -> dict[str, object]:
    assert fold.started is not None
    usage, cost = fold.usage, fold.cost_usd
    loaded = {fold.heads[state.role].model for state in fold.agents.values() if state.role in fold.heads}
    models = sorted(fold.answered_by or loaded)
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
    if fold.sandbox == UNCONFINED:
        fields["shell"] = "commands ran without a sandbox (--unsafe-shell)"
    return fields | {
        "models": models,
        "cost_usd": None if cost is None else round(cost, 6),
        "tokens": {"input": usage.input_tokens, "output": usage.output_tokens},
        "sources": len(fold.sources),
        "citations": {},
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


def draft_problem(fold: Fold, workspace: Workspace, *, has_time: bool = True) -> str:
    """Why report.md cannot be handed over just now, in words for the model; empty when it can.

    What its sources do not carry is told once: a writer gets one round to mend it, and the report says what is left.
    """
    if not workspace.exists(REPORT):
        return "there is no report.md yet: have it written (a writer does it well), read it, then finish"
    draft = workspace.read_text(REPORT)
    body = without_frontmatter(draft)
    problem = problem_of(body, fold.sources) or image_problem(body, workspace.exists)
    if problem or not has_time or _was_told(fold):
        return problem
    words = words_for_writer(check(draft, fold.sources, text_reader(workspace)))
    return f"{NOT_YET} {words}" if words else ""


def _was_told(fold: Fold) -> bool:
    """Whether the orchestrator was refused for its citations before, since its latest task."""
    state = fold.agents.get(ORCHESTRATOR)
    messages = state.messages[state.began_at :] if state is not None else []
    results = [result for message in messages if isinstance(message, Results) for result in message.results]
    return any(result.is_error and result.content.startswith(NOT_YET) for result in results)
