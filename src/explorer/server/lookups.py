"""What the evidence pages look up: a report with its citations, and the stored text of a source."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path

from explorer.journal.run_state import RunState
from explorer.reports.evidence import Evidence, Piece, stored
from explorer.reports.formats.document import ReportDocument
from explorer.reports.verify.claims import FAULTS, Claim, Verdict
from explorer.reports.verify.results import text_reader
from explorer.run.report_document import ReportEvidence, document_of
from explorer.schema.errors import NotFoundError
from explorer.schema.events import Source
from explorer.server.feeds import good_records
from explorer.workspace.workspace import Workspace, report_text

MAX_KEPT = 8
NOT_SUPPORTED = "not_supported"
UNCITED = "uncited"
AT_ONCE = 50
"""Most sentences that are looked up for one page: a long one takes 10 to 20 ms."""
AT_ONCE_CHARS = 200_000
"""Length of the sources that are made ready for one part: 100,000 characters take a quarter of a second."""
Citing = tuple[tuple[int, Claim], ...]
"""Sentences that cite a source, with their numbers."""


@dataclass
class ReportLookup:
    """A report, and what its sources say of its sentences: of each once a page asks for it."""

    text: str
    document: ReportDocument
    found: ReportEvidence
    reached: int = 0
    """How many of the sentences that cite are looked up, from the first."""
    _ready: set[str] = field(default_factory=set[str])
    """Sources that were made ready for these."""
    _whole: Evidence | None = None

    @property
    def total(self) -> int:
        """How many sentences cite."""
        return len(self.found.sentences.citing)

    def look_further(self) -> None:
        """Look up what the next sentences cite."""
        for place in range(self.reached, self._end_of_part()):
            self.found.sentences.claim(place)
            self.reached = max(self.reached, place + 1)
        if self.reached == self.total:
            self.found.sentences.close_sources()

    def _end_of_part(self) -> int:
        """Return where the next part of the sentences ends: it has few sentences, and few sources to be made ready."""
        end, chars = self.reached, 0
        while end < min(self.reached + AT_ONCE, self.total) and chars < AT_ONCE_CHARS:
            for name in {*self.found.sentences.citing[end].ids} - self._ready:
                chars += self.found.sources[name].chars if name in self.found.sources else 0
                self._ready.add(name)
            end += 1
        return end

    def whole(self) -> Evidence:
        """Return all that the sources say."""
        if self._whole is None:
            self._whole = self.found.whole()
            self.found.sentences.close_sources()
        return self._whole

    @property
    def known(self) -> Evidence:
        """The sentences that are looked up, from the first, and those without a citation; no cards."""
        return Evidence(claims=tuple(map(self.found.sentences.claim, range(self.reached))), uncited=self.found.uncited)

    def counts(self) -> dict[str, int]:
        """Return how many of the sentences that are looked up each filter shows; all of them for an empty name."""
        return counts_of(self.known) | {"": self.total + len(self.found.uncited)}

    def numbers(self, wanted: str) -> list[int]:
        """Return the numbers of the sentences that a filter shows, as far as they are looked up."""
        if not wanted:
            return list(range(self.total + len(self.found.uncited)))
        known = self.known
        numbers = {id(claim): number for number, claim in enumerate(known.claims)}
        numbers |= {id(claim): number for number, claim in enumerate(known.uncited, self.total)}
        return [numbers[id(claim)] for claim in claims_with(known, wanted)]

    def claim(self, number: int) -> Claim:
        """Return a sentence with what was found of it; those without a citation are after all others."""
        return self.found.sentences.claim(number) if number < self.total else self.found.uncited[number - self.total]

    def citing(self, identifier: str, start: int) -> "CitingPart":
        """Return a part of the sentences that cite a source."""
        places = self.found.places(identifier)
        first = start // AT_ONCE * AT_ONCE if start < len(places) else 0
        end = first + AT_ONCE
        before, after = places[first - 1] if first else None, places[end] if end < len(places) else None
        return CitingPart(tuple(places[first:end]), first, len(places), before, after)


@dataclass(frozen=True)
class CitingPart:
    """A part of the sentences that cite a source."""

    places: tuple[int, ...]
    """Their places among all that cite."""
    first: int
    """How many that cite the source are before them."""
    total: int
    """How many cite the source."""
    before: int | None = None
    """The place of the last one before them."""
    after: int | None = None
    """The place of the first one after them."""


@dataclass(frozen=True)
class SourcePage:
    """A source with its stored text, in pieces of which some are marked."""

    source: Source
    pieces: tuple[Piece, ...]
    problem: str
    """Why the text is not shown, or not what was stored; empty when nothing is wrong."""
    claims: Citing
    """The sentences of the report that cite it, with their numbers."""


def _opened(text: str, folder: Path) -> ReportLookup:
    return ReportLookup(text, document_of(text, folder), ReportEvidence.of(text, folder))


class Lookups:
    """Looks reports up, and keeps the latest: a check of a long report takes half a minute."""

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
            known = self._known[folder] = text, await asyncio.to_thread(_opened, text, folder)
            for _, other in self._known.values():
                other.found.sentences.close_sources()
        self._known.move_to_end(folder)
        while len(self._known) > MAX_KEPT:
            self._known.popitem(last=False)
        return known[1]

    async def evidence_of(self, folder: Path) -> Evidence:
        """Return the evidence of a run's report; none where there is no report yet."""
        try:
            found = await self.of(folder)
        except NotFoundError:
            return Evidence()
        return await asyncio.to_thread(found.whole)


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


def source_page(folder: Path, identifier: str, citing: Citing, claim: int | None) -> SourcePage:
    """Return a source; of a sentence that cites it, the words that were looked up are marked.

    Args:
        folder: The run's.
        identifier: `S12`.
        citing: The sentences that cite it, with their numbers.
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
