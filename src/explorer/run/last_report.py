"""The report of a run that is cut off, by an error, a signal or a cancellation: written from what there is."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from loguru import logger

from explorer.journal.listing import is_running, read_records
from explorer.journal.run_state import RunState
from explorer.run.finish import ReportContext, ReportOptions, finish_run
from explorer.run.outcome import resume_command
from explorer.schema.errors import ExplorerError, StorageError
from explorer.schema.reasons import EndCause, EndReason
from explorer.text.frontmatter import with_frontmatter
from explorer.text.sanitize import single_line
from explorer.workspace.access import REPORT, restore_access
from explorer.workspace.workspace import Workspace, report_path, report_text

MAX_REASON_CHARS = 400
CANCELLED = "the run was cancelled"
INTERRUPTED = "interrupted by the user"
ENDED_WITHOUT = "its process ended before the run did"
"""Reason for a run whose process was killed: nothing else is known."""
REPORT_GONE = "its report was removed or replaced after the run had ended"


DEFAULTS = ReportOptions()


@dataclass(frozen=True)
class ReportGuard:
    """Leaves a report when what is inside ends by an error or a cancellation; the error goes on."""

    current: Callable[[], RunState]
    """The run's state by all that is on disk, for which it may wait; called only after an error."""
    workspace: Workspace
    language: str = ""
    """Language of the report's fixed words; empty: the question's."""
    stopped_by: Callable[[], str] = str
    """Why the run is cancelled, if it is; empty when that is not known."""
    way_on: str = ""
    """The command that continues the run; empty: `explorer resume`."""

    async def __aenter__(self) -> Self:
        """Return this guard; it acts at the end only."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write the report, if there was an error."""
        if error is not None:
            # A run that was cancelled has not failed: whoever cancelled it knows how it continues.
            way_on = "" if isinstance(_first(error), asyncio.CancelledError) else self.way_on
            options = ReportOptions(self.language, way_on=way_on)
            await leave_report(self.current(), self.workspace, reason_of(error, self.stopped_by()), options)


async def leave_report(
    run_state: RunState, workspace: Workspace, reason: str, options: ReportOptions = DEFAULTS
) -> None:
    """Write the engine's report of a run that ends early; what keeps it from being written is logged.

    A run that ended before, and was asked nothing since, keeps the report it has. That of a single agent has none, and
    neither has one whose plan waits for a decision.
    """
    restore_access(workspace.folder)
    if run_state.started is None or run_state.started.single_agent is not None or run_state.plan.is_waiting:
        return
    if run_state.finished is not None and _has_report(workspace.folder):
        return
    is_written = False
    try:
        await finish_run(ReportContext(run_state, workspace), None, EndReason(reason), options)
        is_written = True
    except (ExplorerError, OSError) as error:
        logger.warning("the whole report could not be written: {}", error)
    finally:
        if not is_written:
            _write_shortest(run_state, workspace, reason, options.way_on)


def _write_shortest(run_state: RunState, workspace: Workspace, reason: str, way_on: str) -> None:
    """Write the least that a reader has to know, where what was found cannot be gathered."""
    run_id = workspace.folder.name
    command = way_on or resume_command(run_state, run_id, EndCause.OTHER)
    words = f"This run ended early: {reason}.\n\nTo continue:\n\n    {command}\n"
    fields: dict[str, object] = {"run_id": run_id, "status": "partial", "reason": reason}
    try:
        workspace.write_own(REPORT, with_frontmatter(fields, words))
    except (ExplorerError, OSError) as error:
        logger.warning("no report could be written: {}", error)


def reason_of(error: BaseException, stopped_by: str = "") -> str:
    """Return why a run ended, in one line: who stopped it, or the error."""
    error = _first(error)
    if isinstance(error, asyncio.CancelledError):
        return stopped_by or CANCELLED
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, ExplorerError):
        return error.message
    words = single_line(f"{type(error).__name__}: {error}")
    return f"internal error: {words[:MAX_REASON_CHARS]}"


def _first(error: BaseException) -> BaseException:
    """Return the first error of nested groups."""
    found: BaseException = error
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return found  # pyright: ignore[reportUnknownVariableType]


def report_of_unfinished(folder: Path) -> None:
    """Write the report of a run whose process was killed, or whose report is gone, unless the engine wrote one.

    A run that a process works on is left alone, and so is one whose journal cannot be read.
    Call it outside an event loop, since it runs one.
    """
    if is_running(folder):
        return
    restore_access(folder)
    try:
        run_state = RunState.of_records(read_records(folder))
    except StorageError:
        return
    if run_state.finished is not None and _has_report(folder):
        return
    workspace = Workspace(folder)
    written = run_state.files.get(REPORT)
    is_draft = written is not None and workspace.digest(REPORT) == written.sha256
    if is_draft or not _has_report(folder):
        reason = ENDED_WITHOUT if run_state.finished is None else REPORT_GONE
        asyncio.run(leave_report(run_state, workspace, reason))


def _has_report(folder: Path) -> bool:
    """Return whether a run's report can be read: a second name of a file and what is too big cannot."""
    return report_path(folder) is not None and bool(report_text(folder))
