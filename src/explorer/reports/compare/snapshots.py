"""One of two runs that are compared, as it is on disk."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from explorer.journal.listing import read_records
from explorer.journal.run_state import RunState
from explorer.reports.compare.comparison import RunSummary
from explorer.schema.errors import ToolError
from explorer.schema.events import Source
from explorer.workspace.paths import REPORT
from explorer.workspace.source_store import is_intact, stored_at, stored_text
from explorer.workspace.workspace import Workspace


@dataclass(frozen=True)
class RunSnapshot:
    """One of the two runs, as far as comparing needs it."""

    summary: RunSummary
    sources: Mapping[str, Source]
    report: str
    """The text of report.md; empty when there is none."""
    read: Callable[[Source], str]
    """A source's stored text; empty when it cannot be had."""


def snapshot_of(folder: Path, run_state: RunState, started: datetime | None, status: str) -> RunSnapshot:
    """A run that is folded already."""
    workspace = Workspace(folder)

    def read(source: Source) -> str:
        try:
            text = stored_text(workspace.read_text(stored_at(source.id)))
        except ToolError:
            return ""
        return text if is_intact(source, text) else ""

    question = run_state.started.question if run_state.started is not None else ""
    report = workspace.read_text(REPORT) if workspace.exists(REPORT) else ""
    head = RunSummary(run_id=folder.name, question=question, started=started, status=status)
    return RunSnapshot(head, run_state.sources, report, read)


def snapshot_on_disk(folder: Path, status: str = "") -> RunSnapshot:
    """A run as it is on disk.

    Args:
        folder: Of the run.
        status: To be said of a run that has not ended.

    Raises:
        NotFoundError: The folder holds no run.
        StorageError: Its journal cannot be read, or is damaged.
    """
    records = read_records(folder)
    run_state = RunState.of(record.event for record in records)
    ended = str(run_state.finished.status) if run_state.finished is not None else status
    return snapshot_of(folder, run_state, records[0].at if records else None, ended)
