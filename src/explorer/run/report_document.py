"""A run's report with all that its formats and pages show: citations looked up, sources, images of the run's folder."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from explorer.journal.listing import read_records
from explorer.journal.run_state import RunState
from explorer.reports.evidence import Card, Evidence, card_of, evidence_of, references
from explorer.reports.formats.document import ReportDocument
from explorer.reports.verify.check import CitationCheck
from explorer.reports.verify.claims import Verification
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
        look_up=lambda: ReportEvidence.of(text, folder).whole(),
    )


class ReportEvidence:
    """What the sources of a report say of it. Each part is looked up when it is first asked for.

    Args:
        text: The report.
        run_state: The run's.
        workspace: The run's folder.
    """

    def __init__(self, text: str, run_state: RunState, workspace: Workspace) -> None:
        self._text = text
        self.sources = run_state.sources
        self._check = CitationCheck(run_state.sources, text_reader(workspace))
        self.sentences = self._check.sentences(with_source_ids(text))
        # A report that the engine wrote in the place of a missing one needs no citations.
        self.uncited = self.sentences.uncited if REPORT in run_state.files else ()

    @classmethod
    def of(cls, text: str, folder: Path) -> "ReportEvidence":
        """Return that of a run's report; none where the journal cannot be read: the report is worth more."""
        workspace = Workspace(folder)
        try:
            return cls(text, RunState.of_records(read_records(folder)), workspace)
        except (NotFoundError, StorageError):
            return cls("", RunState(), workspace)

    def places(self, identifier: str) -> list[int]:
        """Return the places of the sentences that cite a source."""
        return [place for place, one in enumerate(self.sentences.citing) if identifier in one.ids]

    def card(self, number: int, identifier: str, places: Iterable[int]) -> Card:
        """Return the card of a citation, with the sentences at these places."""
        source, content = self.sources.get(identifier), self._check.text_of(identifier)
        return card_of(number, identifier, source, content, map(self.sentences.claim, places))

    def references(self) -> list[tuple[int, str]]:
        """Return the number and the id of each reference."""
        return references(self._text)

    def whole(self) -> Evidence:
        """Return all of it."""
        claims = tuple(map(self.sentences.claim, range(len(self.sentences.citing))))
        found = Verification(claims=claims, uncited=self.uncited)
        return evidence_of(self._text, found, self.sources, self._check.text_of)


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
