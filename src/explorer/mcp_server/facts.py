"""What a client is told of a run: facts of its journal, with every text that others wrote in a fence."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pydantic import BaseModel, Field

from explorer.journal.listing import (
    DAMAGED,
    RUNNING,
    UNFINISHED,
    WAITING,
    JournalTail,
    is_running,
    read_records,
    status_of,
)
from explorer.journal.run_state import RunState
from explorer.observe.formatting import approval_words
from explorer.run.served import RUN_NAME, SHOWN_CHARS, ServedRuns
from explorer.schema.approvals import ApprovalRequest
from explorer.schema.errors import JournalDamagedError, StorageError, ToolError
from explorer.text.frontmatter import without_frontmatter
from explorer.text.rendering import NOTHING, ModelText, WrittenBy, block, code, first_chars, inline, own, render
from explorer.text.sanitize import single_line
from explorer.workspace.access import REPORT
from explorer.workspace.source_store import stored_at
from explorer.workspace.workspace import Workspace, report_path, report_text

FIRST_LOOK_S, LOOK_EVERY_S = 0.05, 0.5
MAX_FILES = 100
QUESTION_CHARS = 300
REASON_CHARS = 500
REPORT_CHARS = 40_000
"""The characters of a report that one answer has; `read_run_file` reads on."""
SCHEME = "explorer://runs/"


class RunStatus(BaseModel):
    """The state of a run."""

    run_id: str
    question: str = Field(description="As it was asked, in a fence")
    status: str = Field(
        description="running, needs_approval (of a call), unfinished (resumable), waiting (with its plan), complete, "
        "partial, nothing_found, sources_unavailable, failed, damaged"
    )
    reason: str = Field(default="", description="Why it is not complete")
    steps: int = Field(default=0, description="Model turns of all agents")
    agents: int = 0
    sources: int = 0
    tokens: int = 0
    cost_usd: float | None = Field(default=None, description="null: a price is not known")
    files: str = Field(default="", description="Paths of findings, for read_run_file, one a line, in a fence")
    plan: str = Field(default="", description="Its plan, if it has one, with how far it is: JSON in a fence")
    waiting_call: str = Field(default="", description="The id of a call that waits for the user's approval")
    approval: str = Field(default="", description="What that call would do, and the rule that asks, in a fence")
    report_uri: str = Field(default="", description="The report as a resource; empty: there is none yet")
    next: str = Field(description="What can be done with it")


class ReportFacts(RunStatus):
    """The state of a run, and its report or answer."""

    text: str = Field(description="The report, or the answer to the follow-up; empty while the run is at work")


NEEDS_APPROVAL = "needs_approval"
NEXT = {
    NEEDS_APPROVAL: own(
        "A call waits for the user's approval: wait_for_report asks the user, where your client can. Otherwise show "
        "`approval` to the user, and pass on with decide_call what the user decides; never decide it yourself."
    ),
    RUNNING: own("It is at work: wait_for_report waits for it; steer sends it a message; stop lets it write up."),
    UNFINISHED: own("Nothing is lost: follow_up without a message continues it."),
    WAITING: own(
        "Its plan waits: show it to the user. follow_up approves it (plan), changes it (edited_plan), asks for another "
        "one (message), or ends the run (plan: reject)."
    ),
    DAMAGED: own("Its journal is damaged: `explorer doctor RUN` says where."),
    "complete": own("follow_up asks it further; read_run_file and read_source read its findings and its evidence."),
}
AT_WORK = frozenset({RUNNING, NEEDS_APPROVAL})
INCOMPLETE = own(
    "follow_up without a message continues it (after a limit: with a higher one); with one, it asks further."
)


def facts_of(folder: Path, error: ModelText = NOTHING, waiting: ApprovalRequest | None = None) -> RunStatus:
    """Return the facts of a run.

    Args:
        folder: The run's.
        error: What ended its latest session, where the journal does not say it.
        waiting: The call of it that waits for approval.
    """
    try:
        run_state = _state_of(folder)
    except (JournalDamagedError, StorageError):
        return RunStatus(run_id=folder.name, question="", status=DAMAGED, next=NEXT[DAMAGED])
    finished, status, plan = run_state.finished, status_of(run_state, folder), run_state.plan.summary()
    status = NEEDS_APPROVAL if status == RUNNING and waiting is not None else status
    reason = inline(finished.reason, REASON_CHARS) if finished is not None and finished.reason else error
    return RunStatus(
        run_id=folder.name,
        question=inline(run_state.question, QUESTION_CHARS),
        status=status,
        reason=reason if status not in AT_WORK else "",
        steps=run_state.steps,
        agents=len(run_state.agents),
        sources=len(run_state.sources),
        tokens=run_state.usage.total_tokens,
        cost_usd=run_state.cost_usd,
        files=block("\n".join(map(single_line, sorted(run_state.files)[:MAX_FILES])), WrittenBy.MODEL),
        plan=block(plan.model_dump_json(exclude_none=True), WrittenBy.MODEL) if plan is not None else "",
        waiting_call=waiting.call if waiting is not None else "",
        approval=block(approval_words(waiting), WrittenBy.MODEL) if waiting is not None else "",
        report_uri=report_uri(folder.name) if finished is not None and report_text(folder) else "",
        next=NEXT.get(status, INCOMPLETE),
    )


def report_facts(folder: Path, error: ModelText = NOTHING, waiting: ApprovalRequest | None = None) -> ReportFacts:
    """Return the facts of a run, with its report or its answer where nobody works on it."""
    facts = facts_of(folder, error, waiting)
    text = NOTHING if facts.status in {*AT_WORK, WAITING, DAMAGED} else _answer_of(folder)
    return ReportFacts(**facts.model_dump(), text=text)


def _state_of(folder: Path) -> RunState:
    return RunState.of_records(read_records(folder))


def report_uri(run_id: str) -> str:
    """Return the address of a run's report as a resource."""
    return f"{SCHEME}{run_id}/report"


async def until_ended(
    folder: Path, seconds: float, report: Callable[[str], Awaitable[None]], needs_answer: Callable[[], bool]
) -> None:
    """Wait until nobody works on a run or it needs an answer, at most so many seconds.

    Args:
        folder: The run's.
        seconds: How long to wait.
        report: Awaited with a line whenever the run recorded something.
        needs_answer: Whether a call of the run waits for approval.
    """
    tail, run_state, loop = JournalTail(folder), RunState(), asyncio.get_running_loop()
    deadline, pause_s = loop.time() + seconds, FIRST_LOOK_S
    while await asyncio.to_thread(is_running, folder):
        records = await asyncio.to_thread(tail.read)
        for record in records:
            run_state.apply(record.event)
        if run_state.finished is not None or loop.time() >= deadline or needs_answer():
            return
        if records:
            agents, sources = len(run_state.agents), len(run_state.sources)
            await report(f"{run_state.steps} steps, {agents} agents, {sources} sources")
        await asyncio.sleep(min(pause_s, max(0.0, deadline - loop.time())))
        pause_s = min(2 * pause_s, LOOK_EVERY_S)


def _answer_of(folder: Path) -> ModelText:
    """Return what a run ended with: the answer to a follow-up, or the report."""
    finished = _state_of(folder).finished
    if finished is not None and finished.answer:
        return block(finished.answer, WrittenBy.MODEL)
    return report_for_model(folder, REPORT_CHARS)


def report_for_model(folder: Path, most: int) -> ModelText:
    """Return the beginning of a run's report in a fence; empty where there is none."""
    report = block(without_frontmatter(report_text(folder)), WrittenBy.MODEL)
    if len(report) <= most:
        return report
    words = "The first {most} of {total} characters; read_run_file with path {path} reads on."
    return render(own(words, most=most, total=len(report), path=code(REPORT)), first_chars(report, most))


PAGE = 50
TITLE_CHARS = 120
MAX_CHARS = 1_000_000
RESOURCE = re.compile(rf"{re.escape(SCHEME)}([^/]+)/(?:report|sources/(S[1-9]\d{{0,8}}))")


@dataclass(frozen=True)
class ListedReport:
    """A report in a list."""

    uri: str
    run_id: str
    title: str
    """The run's question, in a fence."""
    day: str


@dataclass(frozen=True)
class ReportListing:
    """A part of the list of reports."""

    reports: tuple[ListedReport, ...]
    next_cursor: str
    """Where the next part begins; empty: there is none."""


def reports_after(runs: ServedRuns, cursor: str) -> ReportListing:
    """Return the reports of runs older than the one that a cursor names, newest first.

    Raises:
        ToolError: It is no cursor of this server.
    """
    if cursor and not (RUN_NAME.fullmatch(cursor) and (runs.workspace / cursor).is_dir()):
        raise ToolError(own("this server did not give the cursor {cursor}", cursor=inline(cursor, SHOWN_CHARS)))
    older = (run for run in runs.past() if not cursor or run.run_id < cursor)
    with_report = (run for run in older if report_path(run.folder) is not None)
    found = list(islice(with_report, PAGE + 1))
    shown = tuple(
        ListedReport(report_uri(run.run_id), run.run_id, inline(run.question, TITLE_CHARS), run.day)
        for run in found[:PAGE]
    )
    return ReportListing(shown, shown[-1].run_id if len(found) > PAGE else "")


def read_resource(runs: ServedRuns, uri: str) -> str:
    """Return the text of a report or a source, in a fence.

    Raises:
        ToolError: There is none at that address.
    """
    found = RESOURCE.fullmatch(uri)
    if found is None:
        raise ToolError(own("there is no resource {uri}", uri=inline(uri, SHOWN_CHARS)))
    folder = runs.folder_of(found[1])
    if found[2] is not None:
        return block(Workspace(folder).read_text(stored_at(found[2])))
    text = report_for_model(folder, MAX_CHARS)
    if not text:
        raise ToolError(own("run {id} has no report yet", id=folder.name))
    return text
