"""The check: every sentence of a draft that cites something, against the stored text of what it cites.

Importing it is slow, so a run does it when a report is checked; what it reads and leaves in a run's folder is in
`results.py`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from explorer.reports.verify.claims import FAULTS, Claim, TextOf, Verdict, Verification
from explorer.reports.verify.indexed_source import IndexedSource
from explorer.reports.verify.lookups import Cited, LookupOutcome, is_checkable, look_up
from explorer.reports.verify.sentences import Sentence, sentences
from explorer.schema.events import Source
from explorer.text.citations import MISSING_ID
from explorer.text.urls import url_key
from explorer.workspace.source_store import is_intact
from explorer.workspace.threads import RaiseIfStopped, each, never_stopped, stoppable

KEPT = 64
"""Sources that stay ready after a check; a handful is cited by most reports."""
NO_FIGURES = "no quote or number that could be looked up"
NO_CITATION = "a quote or a number without any citation"


def check(draft: str, sources: Mapping[str, Source], text_of: TextOf) -> Verification:
    """Look up what can be looked up of each sentence that cites; see `CitationCheck`."""
    return CitationCheck(sources, text_of).check(draft)


class CitationCheck:
    """The check of a run's drafts, one at a time. Its sources stay ready, since a draft is checked several times.

    Args:
        sources: All of the run's, by id; they may become more.
        text_of: Their stored texts; one that is not as the ledger has it is taken for none.
    """

    def __init__(self, sources: Mapping[str, Source], text_of: TextOf) -> None:
        self._sources = sources
        self.text_of = text_of
        self._ready = lru_cache(maxsize=KEPT)(_first_equal)
        self._stop = never_stopped

    async def check_in_thread(self, draft: str) -> Verification:
        """Do the same as `check` in a thread: a long page of figures takes many seconds, and the loop serves others.

        A caller that is cancelled stops the thread.
        """
        sources = dict(self._sources)  # agents may store some meanwhile
        return await stoppable(lambda raise_if_stopped: self._check(draft, sources, raise_if_stopped))

    def check(self, draft: str) -> Verification:
        """Look up what can be looked up of each sentence of a draft that cites (markdown with `[S12]`)."""
        return self._check(draft, self._sources, never_stopped)

    def _check(self, draft: str, sources: Mapping[str, Source], raise_if_stopped: RaiseIfStopped) -> Verification:
        self._stop = raise_if_stopped
        found = self.sentences(draft, sources)
        claims = tuple(found.claim(place) for place in each(range(len(found.citing)), raise_if_stopped))
        return Verification(claims=claims, uncited=found.uncited)

    def sentences(self, draft: str, sources: Mapping[str, Source] | None = None) -> "CheckedSentences":
        """Return the sentences of a draft; each is looked up when it is first asked for.

        Args:
            draft: Markdown with `[S12]`.
            sources: The run's sources as they are to be taken; None: those of this check.
        """
        among = self._sources if sources is None else sources
        return CheckedSentences(sentences(draft), lambda: _SourceIndex(among, self.text_of, self._open))

    def _open(self, source: Source, text: str) -> IndexedSource:
        """Return a source for look-ups, which stops with the check that is at work, not with the one that opened it."""
        return self._ready(IndexedSource(source, text, self._raise_if_stopped))

    def _raise_if_stopped(self) -> None:
        self._stop()


class CheckedSentences:
    """The sentences of a draft, each looked up in its sources when it is first asked for.

    Args:
        found: The sentences.
        open_sources: Returns the sources for look-ups.
    """

    def __init__(self, found: Iterable[Sentence], open_sources: Callable[[], "_SourceIndex"]) -> None:
        listed = list(found)
        self.citing = tuple(one for one in listed if one.ids)
        """Sentences that cite, in the order of the draft."""
        self.uncited = tuple(
            _as_claim(one, Verdict.UNCHECKED, NO_CITATION) for one in listed if not one.ids and is_checkable(one)
        )
        self._open_sources = open_sources
        self._index: _SourceIndex | None = None
        self._claims: dict[int, Claim] = {}

    def claim(self, place: int) -> Claim:
        """Return what was found of a sentence that cites, by its place among them."""
        if place not in self._claims:
            self._index = index = self._index or self._open_sources()
            self._claims[place] = _claim(self.citing[place], index)
        return self._claims[place]

    def close_sources(self) -> None:
        """Forget the sources that were made ready; what was found of sentences is kept."""
        self._index = None


def _first_equal(indexed: IndexedSource) -> IndexedSource:
    """Return the source. Behind a cache, equal sources are the first one, which has its figures and words already."""
    return indexed


@dataclass(frozen=True)
class _Missing:
    """Why a source cannot be looked into."""

    id: str
    why: str


class _SourceIndex:
    """The sources of a run for one check, each read once, when it is first asked for."""

    def __init__(
        self, sources: Mapping[str, Source], text_of: TextOf, indexed: Callable[[Source, str], IndexedSource]
    ) -> None:
        self._sources = sources
        self._text_of = text_of
        self._indexed = indexed
        self._read: dict[str, IndexedSource | _Missing] = {}
        self._by_address: dict[str, list[str]] = {}
        for source in sources.values():
            self._by_address.setdefault(url_key(source.url), []).append(source.id)

    def take(self, identifier: str) -> IndexedSource | _Missing:
        """Return a source, or why it is not there."""
        if identifier not in self._read:
            self._read[identifier] = self._open(identifier)
        return self._read[identifier]

    def _open(self, identifier: str) -> IndexedSource | _Missing:
        source = self._sources.get(identifier)
        if identifier == MISSING_ID:
            return _Missing(identifier, "the report itself says that this source is missing")
        if source is None:
            return _Missing(identifier, f"{identifier} is not a source of this run")
        text = self._text_of(identifier)
        if text is None:
            return _Missing(identifier, f"the stored text of {identifier} is missing or cannot be read")
        if not is_intact(source, text):
            return _Missing(identifier, f"the stored text of {identifier} is not as it was stored (sha256)")
        return self._indexed(source, text)

    def same_url_sources(self, found: Sequence[IndexedSource]) -> tuple[IndexedSource, ...]:
        """Return other sources of the same addresses."""
        cited = {indexed.source.id for indexed in found}
        ids = [one for indexed in found for one in self._by_address[url_key(indexed.source.url)] if one not in cited]
        return tuple(one for one in map(self.take, dict.fromkeys(ids)) if isinstance(one, IndexedSource))


def _claim(sentence: Sentence, index: _SourceIndex) -> Claim:
    taken = [index.take(identifier) for identifier in sentence.ids]
    found = tuple(one for one in taken if isinstance(one, IndexedSource))
    missing = [one.why for one in taken if isinstance(one, _Missing)]
    if not found:
        return _as_claim(sentence, Verdict.SOURCE_MISSING, "; ".join(missing))
    outcomes = look_up(sentence, Cited(found))
    if any(outcome.finding.verdict in FAULTS for outcome in outcomes) and (
        same_url_sources := index.same_url_sources(found)
    ):
        outcomes = look_up(sentence, Cited(found, same_url_sources))
    verdict, reason = _verdict_of(outcomes, missing)
    return _as_claim(sentence, verdict, reason, outcomes)


def _verdict_of(outcomes: Sequence[LookupOutcome], missing: Sequence[str]) -> tuple[Verdict, str]:
    """Return the verdict on a sentence and its reason, by what was found of its figures and quotes.

    Args:
        outcomes: One for each of them.
        missing: Why each source that cannot be looked into is not there.
    """
    by_verdict = {
        verdict: [outcome for outcome in outcomes if outcome.finding.verdict is verdict] for verdict in Verdict
    }
    not_found, supported = by_verdict[Verdict.NOT_FOUND], by_verdict[Verdict.SUPPORTED]
    elsewhere = by_verdict[Verdict.ELSEWHERE]
    open_ones = [outcome for outcome in by_verdict[Verdict.UNCHECKED] if not outcome.is_own]
    faults = [_said(outcome) for outcome in (*not_found, *elsewhere)]
    if missing and (faults or not supported):
        return Verdict.SOURCE_MISSING, "; ".join([*missing, *faults])
    if faults:
        return Verdict.NOT_FOUND if not_found else Verdict.ELSEWHERE, "; ".join(faults)
    if open_ones or not supported:
        return Verdict.UNCHECKED, "; ".join(
            dict.fromkeys(_said(outcome) for outcome in by_verdict[Verdict.UNCHECKED])
        ) or NO_FIGURES
    return Verdict.SUPPORTED, "; ".join([*missing, *(_said(outcome) for outcome in by_verdict[Verdict.UNCHECKED])])


def _said(outcome: LookupOutcome) -> str:
    return f"“{outcome.finding.text}”: {outcome.finding.reason}"


def _as_claim(sentence: Sentence, verdict: Verdict, reason: str, outcomes: Sequence[LookupOutcome] = ()) -> Claim:
    return Claim(
        sentence=sentence.shown,
        line=sentence.line,
        ids=sentence.ids,
        verdict=verdict,
        findings=tuple(outcome.finding for outcome in outcomes),
        reason=reason,
    )
