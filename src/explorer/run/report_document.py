"""A run's report with all that its formats and pages show: citations looked up, sources, images of the run's folder."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from explorer.journal.listing import read_records
from explorer.journal.run_state import RunState
from explorer.reports.evidence import Evidence, evidence_of
from explorer.reports.formats.document import ReportDocument
from explorer.reports.verify.check import check
from explorer.reports.verify.claims import without_uncited
from explorer.reports.verify.results import CLAIMS, SOURCES, text_reader
from explorer.schema.errors import NotFoundError, StorageError, ToolError
from explorer.schema.messages import JsonObject
from explorer.text.citations import with_source_ids
from explorer.workspace.access import REPORT
from explorer.workspace.workspace import Workspace


def document_of(text: str, folder: Path, fields: Mapping[str, Any] | None = None) -> ReportDocument:
    """Return the report of a run, with what its folder says of its citations, sources and images.

    Args:
        text: The report, or an answer in words.
        folder: The run's.
        fields: What is said of an answer, which has no frontmatter.
    """
    workspace = Workspace(folder)
    is_report = fields is None
    return ReportDocument(
        text,
        fields or {},
        claims=_rows(workspace, CLAIMS) if is_report else (),
        sources=_rows(workspace, SOURCES),
        read_image=lambda path: _content(workspace, path),
        look_up=lambda: _looked_up(text, workspace),
    )


def run_evidence(text: str, run_state: RunState, workspace: Workspace) -> Evidence:
    """Look up the citations of a report as `verify` does, and bring together what was found.

    A report that the engine wrote in the place of a missing one needs no citations.
    """
    text_of = text_reader(workspace)
    verification = check(with_source_ids(text), run_state.sources, text_of)
    if REPORT not in run_state.files:
        verification = without_uncited(verification)
    return evidence_of(text, verification, run_state.sources, text_of)


def _looked_up(text: str, workspace: Workspace) -> Evidence:
    """Return the evidence of a report; none where the journal cannot be read: the report is worth more."""
    try:
        records = read_records(workspace.folder)
    except (NotFoundError, StorageError):
        return Evidence()
    return run_evidence(text, RunState.of_records(records), workspace)


def _content(workspace: Workspace, path: str) -> bytes | None:
    try:
        return workspace.read_bytes(path)
    except (ToolError, OSError):
        return None


def _rows(workspace: Workspace, path: str) -> list[JsonObject]:
    """Return the objects of a file with one a line; none where it is missing or damaged: the report is worth more."""
    content = _content(workspace, path) or b""
    try:
        rows = [json.loads(line) for line in content.splitlines() if line.strip()]
    except ValueError:
        return []
    return [row for row in rows if isinstance(row, dict)]
