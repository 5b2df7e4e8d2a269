"""How a run ends: every ending leaves `report.md`, with its status, the reason, and what was found."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, LiteralString

from explorer.journal.run_state import RunState
from explorer.reports.render import (
    Rendered,
    dangling_ids,
    image_problem,
    is_placeholder,
    problem_of,
    render,
    without_network,
)
from explorer.reports.verify.claims import (
    Judgements,
    Verification,
    notice_of,
    with_unsupported_marks,
    without_uncited,
    words_for_writer,
)
from explorer.reports.verify.results import draft_of, text_reader, write_results
from explorer.reports.verify.soundness import Flaw, FlawKind, flaws
from explorer.run.open_questions import open_questions
from explorer.run.outcome import (
    Outcome,
    count_lookups,
    failed_words,
    further_links,
    outcome_of,
    reason_words,
    unfinished_report,
    what_was_tried,
)
from explorer.schema.errors import NO_DATA, ToolError
from explorer.schema.events import AgentFinished, Append, PathMoved, RunFinished, Status
from explorer.schema.messages import Results
from explorer.schema.reasons import EndCause, EndReason, ErrorCode, NoteReason
from explorer.text import rendering
from explorer.text.citations import with_source_ids
from explorer.text.frontmatter import with_frontmatter, without_frontmatter
from explorer.text.rendering import own
from explorer.text.words import UNKNOWN, language_of, phrases_in
from explorer.workspace.access import DRAFT, REPORT
from explorer.workspace.threads import RaiseIfStopped, stoppable
from explorer.workspace.workspace import Workspace, sha256

if TYPE_CHECKING:  # the check is slow to import, and nothing needs it before there is a report
    from explorer.reports.verify.check import CitationCheck

MAX_ANSWER_CHARS = 1_000_000
"""Limit for the words that answer a follow-up."""
UNCONFINED = "unconfined"
"""What the journal says of a session whose commands nothing confined."""
NOT_YET: LiteralString = "not finished yet, and this is said once: have report.md corrected, then finish again."
"""The first words of a refusal because of the citations."""


@dataclass(frozen=True)
class Conclusion:
    """How a run ended, and its report."""

    status: Status
    reason: str
    report: str
    """The whole text of report.md."""
    verification: Verification
    """The check of the report, or of the answer where the run ended with one."""
    answer: str = ""
    """The words that answer a follow-up, with their references; empty when report.md is the answer."""
    words: str = ""
    """What the model said instead of a report, where there is none."""
    cause: EndCause = EndCause.OTHER
    """The reason, for programs."""

    def event(self) -> RunFinished:
        """Return the end of the run as the journal records it."""
        return RunFinished(status=self.status, reason=self.reason, cause=self.cause, answer=self.answer)


@dataclass(frozen=True)
class ReportOptions:
    """Options of the report besides the writer's text."""

    language: str = ""
    """Language of the fixed words; empty: the question's."""
    judged: Judgements | None = None
    """What a model said of its citations."""
    since: str = ""
    """A section on what changed since an earlier run, which goes below the references."""
    way_on: str = ""
    """The command that continues the run, for a report of the engine; empty: `explorer resume`."""
    amend: Callable[[str], str] = str
    """Returns the writer's text as the report has it, before it is rendered."""


@dataclass(frozen=True)
class ReportContext:
    """The run whose report is written."""

    run_state: RunState
    workspace: Workspace

    @cached_property
    def citations(self) -> "CitationCheck":
        """The check of its drafts."""
        from explorer.reports.verify.check import CitationCheck  # noqa: PLC0415 - slow to import

        return CitationCheck(self.run_state.sources, text_reader(self.workspace))

    async def flaws(self, draft: str, verification: Verification) -> tuple[Flaw, ...]:
        """Return what is wrong with a draft as a whole, in a thread: it may read all sources."""
        sources, asked = dict(self.run_state.sources), self.run_state.asked

        def find(raise_if_stopped: RaiseIfStopped) -> tuple[Flaw, ...]:
            def text_of(identifier: str) -> str | None:
                raise_if_stopped()
                return self.citations.text_of(identifier)

            return flaws(draft, sources, text_of, verification, asked)

        return await stoppable(find)


async def finish_run(
    context: ReportContext,
    ended: AgentFinished | None,
    cut: EndReason,
    report_options: ReportOptions = ReportOptions(),
) -> Conclusion:
    """Write the final report.md of a run.

    Args:
        context: The run.
        ended: The orchestrator's end; None when it was cut off.
        cut: Why it was cut off, or is known to be incomplete; false otherwise.
        report_options: What else is to be in it.
    """
    run_state, workspace = context.run_state, context.workspace
    workspace.clear_report_path()
    draft = written_report(run_state, workspace)
    if draft and is_answer(run_state, ended, cut):
        return await _answered(context, ended, draft, report_options)
    found = await _flaws(context, draft) if draft else None
    outcome = outcome_of(run_state, ended, cut, found)
    text = draft or unfinished_report(run_state, workspace, ended, outcome, report_options.way_on)
    if draft:
        language = phrases_in(report_options.language, run_state.question)
        text = "\n".join([text.rstrip("\n"), *what_was_tried(run_state, outcome.status, language), ""])
    report, verification = await _written(context, outcome, text, report_options)
    words = "" if draft or ended is None else ended.summary.strip()
    return Conclusion(outcome.status, outcome.reason, report, verification, words=words, cause=outcome.cause)


def written_report(run_state: RunState, workspace: Workspace) -> str:
    """Return the report as an agent wrote it; empty where none is there, or nothing is in it."""
    draft = _draft(run_state, workspace)
    return "" if is_placeholder(draft) else draft


def is_answer(run_state: RunState, ended: AgentFinished | None, cut: EndReason) -> bool:
    """Return whether a follow-up was answered in words, and not by a revised report."""
    is_in_words = ended is not None and ended.cause is EndCause.ANSWERED and ended.status is Status.COMPLETE
    return is_in_words and not cut and run_state.is_follow_up and REPORT not in run_state.revised


async def _answered(
    context: ReportContext, ended: AgentFinished | None, draft: str, report_options: ReportOptions
) -> Conclusion:
    """Finish a follow-up that was answered in words; the report stays as it is."""
    assert ended is not None
    run_state, workspace = context.run_state, context.workspace
    before = run_state.report_end or RunFinished(status=Status.COMPLETE, reason="")
    report, _ = await _written(context, Outcome(before.status, before.reason), draft, report_options)
    words = ended.summary.strip()[:MAX_ANSWER_CHARS]
    found = await _flaws(context, words)
    outcome = outcome_of(run_state, ended, EndReason(), found, "the answer")
    language = phrases_in(report_options.language, words)
    rendered = render(words, run_state.sources, language, workspace.exists)
    answer = _notice(run_state, workspace, outcome, language) + rendered.text
    verification = await context.citations.check_in_thread(with_source_ids(rendered.text))
    return Conclusion(outcome.status, outcome.reason, report, verification, answer=answer, cause=outcome.cause)


async def _flaws(context: ReportContext, draft: str) -> tuple[Flaw, ...]:
    return await context.flaws(draft, await context.citations.check_in_thread(draft))


def _notice(run_state: RunState, workspace: Workspace, outcome: Outcome, language: str) -> str:
    """Return the notice at the top of a report. A reason may hold words from outside: nothing in it loads by itself."""
    is_shown = outcome.status is Status.SOURCES_UNAVAILABLE
    counts = count_lookups(run_state)
    lookups = "" if is_shown else failed_words(counts, language)
    reason = reason_words(outcome, counts, language)
    return without_network(notice_of(outcome.status, reason, lookups, language, _moved(run_state, workspace)))


def _moved(run_state: RunState, workspace: Workspace) -> str:
    """Return what stood in the report's place and is somewhere else now; empty for nothing."""
    places = ", ".join(f"`{place}`" for place in dict.fromkeys([*run_state.moved, *workspace.set_aside]))
    return f"the earlier content of report.md was not a report, and is now at {places}" if places else ""


async def _written(
    context: ReportContext, outcome: Outcome, text: str, report_options: ReportOptions
) -> tuple[str, Verification]:
    """Write report.md and what a check of it found."""
    run_state, workspace = context.run_state, context.workspace
    words = phrases_in(report_options.language, run_state.question)
    text = report_options.amend(text) + open_questions(run_state, words)
    links = [link.source for link in further_links(run_state)]
    rendered = render(text, run_state.sources, words, workspace.exists, links)
    rendered = replace(rendered, text=rendered.text + report_options.since)
    fields = _fields(run_state, outcome, report_options.language or language_of(text) or UNKNOWN)
    report, verification = await _verified(context, fields, _notice(run_state, workspace, outcome, words), rendered)
    workspace.write_own(REPORT, report)
    write_results(workspace, draft_of(workspace), run_state.sources, verification, report_options.judged)
    return report, verification


async def _verified(
    context: ReportContext, fields: dict[str, object], notice: str, rendered: Rendered
) -> tuple[str, Verification]:
    """Return the whole text of report.md, with what a check of its citations counted in the frontmatter."""

    def text(verification: Verification) -> str:
        citations = verification.counts | _opinions(context.run_state)
        counted = {"citations": citations, "uncited": len(verification.uncited)}
        return with_frontmatter(fields | {"sources_cited": len(rendered.cited)} | counted, notice + rendered.text)

    # Checked as its reader has it, so that the lines are right: the counts of nothing take up as many.
    draft = with_source_ids(text(Verification(claims=())))
    verification = await context.citations.check_in_thread(draft)
    if not written_report(context.run_state, context.workspace):
        verification = without_uncited(verification)
    return with_unsupported_marks(text(verification), verification), verification


def _opinions(run_state: RunState) -> dict[str, object]:
    """Return what a model said of the citations, apart from what was looked up; nothing where none was asked."""
    if not run_state.judged:
        return {}
    latest = run_state.judged[-1]
    opinions = {"carried": latest.carried, "not_carried": latest.not_carried, "unclear": latest.unclear}
    return {"judged": {"model": latest.model, **opinions}}


async def checked_draft(context: ReportContext) -> Verification:
    """Return what can be looked up of the draft as it is now; nothing where there is none."""
    return await context.citations.check_in_thread(_draft(context.run_state, context.workspace))


def restore_draft(run_state: RunState, workspace: Workspace) -> None:
    """Put the writer's own draft back in the rendered report's place, before agents continue.

    A report that only the engine wrote is taken away: to the agents there is none yet.
    """
    if REPORT not in run_state.files:
        workspace.remove(REPORT)
        return
    draft = _draft(run_state, workspace)
    if draft and workspace.digest(REPORT) != sha256(draft.encode("utf-8", "replace")):
        workspace.write_own(REPORT, draft)


def _draft(run_state: RunState, workspace: Workspace) -> str:
    """Return the writer's latest text: report.md as an agent wrote it, or its kept copy once report.md was rendered."""
    written = run_state.files.get(REPORT)
    if written is None:
        return ""
    is_as_written = workspace.digest(REPORT) == written.sha256
    try:
        text = workspace.read_text(REPORT if is_as_written else DRAFT)
    except ToolError:  # a command wrote it, and no text
        return ""
    if is_as_written:
        workspace.write_own(DRAFT, text)
    return text


def _fields(run_state: RunState, outcome: Outcome, language: str) -> dict[str, object]:
    assert run_state.started is not None
    usage, cost = run_state.usage, run_state.cost_usd
    loaded = {
        run_state.prefixes[state.role].model for state in run_state.agents.values() if state.role in run_state.prefixes
    }
    models = sorted(run_state.answered_by or loaded)
    fields: dict[str, object] = {
        "question": run_state.started.question,
        "run_id": run_state.started.run_id,
        "created_at": created_at(run_state.started.run_id),
        "status": str(outcome.status),
    }
    if outcome.reason:
        fields["reason"] = outcome.reason
    if models == ["offline"]:
        fields["written_by"] = "extraction, without a language model"
    if any("sample" in source.flags for source in run_state.sources.values()):
        fields["sample"] = "invented sample data"
    if run_state.sandbox == UNCONFINED:
        fields["shell"] = "commands ran without a sandbox (shell: unsafe)"
    return fields | {
        "models": models,
        "cost_usd": None if cost is None else round(cost, 6),
        **({"estimated": run_state.estimated.model_dump()} if run_state.estimated else {}),
        "tokens": {"input": usage.input_tokens, "output": usage.output_tokens},
        "sources": len(run_state.sources),
        "sources_cited": 0,
        "citations": {},
        "uncited": 0,
        "language": language,
    }


def created_at(run_id: str) -> str:
    """Return the start of a run, as its id tells it (UTC); empty for an id of an embedder's own making."""
    try:
        return datetime.strptime(run_id[:15] + "+0000", "%Y%m%d-%H%M%S%z").isoformat()
    except ValueError:
        return ""


def missing_report(workspace: Workspace) -> rendering.ModelText:
    """Return why there is no report, in words for the model; empty when there is one."""
    if not workspace.exists(REPORT):
        return own("there is no report.md yet")
    try:
        return own("report.md is empty or a placeholder" if is_placeholder(workspace.read_text(REPORT)) else "")
    except ToolError as error:
        return own("report.md cannot be read ({why})", why=error.words)


async def draft_problem(context: ReportContext, *, has_time: bool = True, is_empty: bool = False) -> ToolError | None:
    """Return why report.md cannot be handed over just now; None when it can.

    What keeps it from being complete is told once: a writer gets one round to correct it, and the report says what
    is left.

    Args:
        context: The run.
        has_time: Whether there is time for that round.
        is_empty: Whether the orchestrator says that nothing relevant was found.
    """
    run_state, workspace = context.run_state, context.workspace
    if not workspace.exists(REPORT):
        return ToolError(
            own("there is no report.md yet: have it written (a writer does it well), read it, then finish")
        )
    draft = workspace.read_text(REPORT)
    body = without_frontmatter(draft)
    unknown = dangling_ids(body, run_state.sources)
    problem = problem_of(body, unknown) or image_problem(body, workspace.exists)
    if problem:
        return ToolError(problem, data={"code": ErrorCode.UNKNOWN_SOURCES, "sources": unknown} if unknown else NO_DATA)
    if not has_time or was_shown(run_state, ErrorCode.CORRECT_REPORT):
        return None
    verification = await context.citations.check_in_thread(draft)
    found = await context.flaws(draft, verification)
    advice = [flaw.advice for flaw in found if flaw.advice and not (is_empty and flaw.kind is FlawKind.UNCITED)]
    words = rendering.render(*advice, words_for_writer(verification), between="\n\n")
    if not words:
        return None
    message = own("{not_yet} {words}", not_yet=own(NOT_YET), words=words)
    return ToolError(message, data={"code": ErrorCode.CORRECT_REPORT})


def was_shown(run_state: RunState, code: ErrorCode) -> bool:
    """Return whether the orchestrator was refused for this before, since its latest task."""
    state = run_state.lead
    if state is None or NoteReason.CORRECT in state.notes:
        return state is not None
    messages = state.messages[state.began_at :]
    results = [result for message in messages if isinstance(message, Results) for result in message.results]
    return any(result.data.get("code") == code for result in results)


async def record_moved(run_state: RunState, workspace: Workspace, record: Append) -> None:
    """Put on record what was moved out of the report's way."""
    for place in workspace.set_aside:
        if place not in run_state.moved:
            await record(PathMoved(path=REPORT, to=place))
