"""One of two runs that are compared, as it is on disk."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from explorer.journal.fold import Fold
from explorer.journal.runs import read_records
from explorer.reports.comparing.comparison import RunHead
from explorer.schema.errors import ToolError
from explorer.schema.events import Source
from explorer.workspace.evidence import is_intact, stored_at, stored_text
from explorer.workspace.run_paths import REPORT
from explorer.workspace.workspace import Workspace


@dataclass(frozen=True)
class RunSide:
    """One of the two runs, as far as comparing needs it."""

    head: RunHead
    sources: Mapping[str, Source]
    report: str
    """The text of report.md; empty when there is none."""
    read: Callable[[Source], str]
    """A source's stored text; empty when it cannot be had."""


def side_of(folder: Path, fold: Fold, started: datetime | None, status: str) -> RunSide:
    """A run that is folded already."""
    workspace = Workspace(folder)

    def read(source: Source) -> str:
        try:
            text = stored_text(workspace.read_text(stored_at(source.id)))
        except ToolError:
            return ""
        return text if is_intact(source, text) else ""

    question = fold.started.question if fold.started is not None else ""
    report = workspace.read_text(REPORT) if workspace.exists(REPORT) else ""
    head = RunHead(run_id=folder.name, question=question, started=started, status=status)
    return RunSide(head, fold.sources, report, read)


def side_on_disk(folder: Path, status: str = "") -> RunSide:
    """A run as it is on disk.

    Args:
        folder: Of the run.
        status: To be said of a run that has not ended.

    Raises:
        NotFoundError: The folder holds no run.
        StorageError: Its journal cannot be read, or is damaged.
    """
    records = read_records(folder)
    fold = Fold.of(record.event for record in records)
    ended = str(fold.finished.status) if fold.finished is not None else status
    return side_of(folder, fold, records[0].at if records else None, ended)
