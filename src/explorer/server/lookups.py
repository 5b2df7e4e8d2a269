"""What the evidence pages look up: a report with its citations, and the stored text of a source."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from explorer.journal.run_state import RunState
from explorer.reports.evidence import Evidence, Piece, stored
from explorer.reports.formats.document import ReportDocument
from explorer.reports.verify.claims import FAULTS, Claim, Verdict
from explorer.reports.verify.results import text_reader
from explorer.run.report_document import document_of
from explorer.schema.errors import NotFoundError
from explorer.schema.events import Source
from explorer.server.feeds import good_records
from explorer.workspace.workspace import Workspace, report_text

MAX_KEPT = 8
NOT_SUPPORTED = "not_supported"
UNCITED = "uncited"


@dataclass(frozen=True)
class ReportLookup:
    """A report, and what its sources say of each sentence."""

    text: str
    document: ReportDocument
    evidence: Evidence


@dataclass(frozen=True)
class SourcePage:
    """A source with its stored text, in pieces of which some are marked."""

    source: Source
    pieces: tuple[Piece, ...]
    problem: str
    """Why the text is not shown, or not what was stored; empty when nothing is wrong."""
    claims: tuple[tuple[int, Claim], ...]
    """The sentences of the report that cite it, with their numbers."""


class Lookups:
    """Looks reports up, and keeps the latest: a check of a long report takes a second."""

    def __init__(self) -> None:
        self._known: OrderedDict[Path, tuple[str, ReportLookup]] = OrderedDict()

    async def of(self, folder: Path) -> ReportLookup:
        """Return the report of a run, looked up.

        Raises:
            NotFoundError: There is no report yet.
        """
        text = await asyncio.to_thread(report_text, folder)
        if not text.strip():
            raise NotFoundError(f"run {folder.name} has no report yet", hint="its page says why, and what to do")
        known = self._known.get(folder)
        if known is None or known[0] != text:
            document = document_of(text, folder)
            known = text, ReportLookup(text, document, await asyncio.to_thread(document.look_up))
            self._known[folder] = known
        self._known.move_to_end(folder)
        while len(self._known) > MAX_KEPT:
            self._known.popitem(last=False)
        return known[1]

    async def evidence_of(self, folder: Path) -> Evidence:
        """Return the evidence of a run's report; none where there is no report yet."""
        try:
            return (await self.of(folder)).evidence
        except NotFoundError:
            return Evidence()


def claims_with(evidence: Evidence, wanted: str) -> list[Claim]:
    """Return the sentences with a verdict, `not_supported` for all faults, `uncited`; all of them for an empty name."""
    everything = [*evidence.claims, *evidence.uncited]
    if wanted == NOT_SUPPORTED:
        return [claim for claim in evidence.claims if claim.verdict in FAULTS]
    if wanted == UNCITED:
        return list(evidence.uncited)
    return [one for one in everything if not wanted or (one.verdict == wanted and one.ids)]


def counts_of(evidence: Evidence) -> dict[str, int]:
    """Return how many sentences each filter shows; filters that show none are left out."""
    names = ["", NOT_SUPPORTED, *(str(verdict) for verdict in Verdict), UNCITED]
    counts = {name: len(claims_with(evidence, name)) for name in names}
    return {name: count for name, count in counts.items() if count or not name}


def source_page(folder: Path, identifier: str, evidence: Evidence, claim: int | None) -> SourcePage:
    """Return a source; of a sentence that cites it, the words that were looked up are marked.

    Args:
        folder: The run's.
        identifier: `S12`.
        evidence: What was looked up for the report.
        claim: The number of a sentence; None: those of all sentences that cite it are marked.

    Raises:
        NotFoundError: The run has no such source.
    """
    known = RunState.of_records(good_records(folder)).sources
    if identifier not in known:
        raise NotFoundError(
            f"run {folder.name} has no source {identifier[:40]!r}", hint="its sources are on their page"
        )
    source = known[identifier]
    content = text_reader(Workspace(folder))(identifier)
    text, problem = stored(source, content)
    citing = tuple((place, one) for place, one in enumerate(evidence.claims) if identifier in one.ids)
    if text is None:
        return SourcePage(source, (Piece(text=content or ""),), problem, citing)
    asked = [one for place, one in citing if place == claim] or [one for _, one in citing]
    passages = [
        passage
        for one in asked
        for passage in text.passages(one.sentence, [found for found in one.findings if found.source == identifier])
        if passage.is_match
    ]
    return SourcePage(source, text.marked(passages), "", citing)
