"""Compares two runs: which stories, claims and sources are new, gone or changed.

Two sources are the same when their canonical addresses are equal. A claim is a sentence of the report with a citation.
Two sentences are the same claim when they cite a common address and share most of their words, or when they share
nearly all words and no number or name differs. A claim is changed when its numbers, names, quotes or sources differ.
How stories are compared is in `stories`.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from explorer.journal.listing import read_records
from explorer.journal.run_state import RunState
from explorer.reports.stories import (
    RankedStory,
    StoryChange,
    StoryDifference,
    compared_stories,
    count_words,
    listed,
    listed_stories,
    one_sided_addresses,
    story_lines,
)
from explorer.reports.verify.sentences import sentences
from explorer.schema.errors import ToolError
from explorer.schema.events import Source
from explorer.schema.messages import Frozen
from explorer.text.citations import with_source_ids
from explorer.text.differences import changes_between, compare, normal, words
from explorer.text.sanitize import single_line
from explorer.text.urls import url_key
from explorer.workspace.access import REPORT
from explorer.workspace.source_store import SEARCH_HIT, is_intact, stored_at, stored_text
from explorer.workspace.workspace import Workspace

QUOTE = re.compile('[“"「]([^“”"「」]{12,})[”"」]')


class CitedSentence(Frozen):
    """A sentence with at least one citation."""

    line: int
    """The line of report.md on which the sentence begins, from 1."""
    text: str
    """The sentence without its citations, on one line."""
    ids: tuple[str, ...]
    """The ids of the cited sources: `S12`."""
    addresses: tuple[str, ...]
    """The distinct addresses of the cited sources, in the form in which addresses are compared."""

    def shares(self, other: "CitedSentence") -> bool:
        """Return whether both sentences cite a common address."""
        return not set(self.addresses).isdisjoint(other.addresses)


def cited_sentences(report: str, sources: Mapping[str, Source], address: Callable[[str], str]) -> list[CitedSentence]:
    """Return the sentences of a report that cite sources, in order.

    Args:
        report: The whole text of report.md, with frontmatter and references.
        sources: The sources of the report's run, by id.
        address: Returns an address in the form in which addresses are compared.
    """
    return [
        CitedSentence(
            line=one.line,
            text=_without_spaces(one.text),
            ids=one.ids,
            addresses=tuple(dict.fromkeys(address(sources[name].url) for name in one.ids if name in sources)),
        )
        for one in sentences(with_source_ids(report))
        if one.ids
    ]


def quotes_in(text: str) -> list[str]:
    """Return the texts in quotation marks that are long enough to be quotations, each on one line."""
    return [" ".join(quote.split()) for quote in QUOTE.findall(text)]


def _without_spaces(text: str) -> str:
    """Return a text on one line, without the spaces that removed citations leave before punctuation."""
    return re.sub(r" (?=[.,;:!?。，；：！？])", "", " ".join(text.split()))


class RunSummary(Frozen):
    """The id, question, start and status of a run."""

    run_id: str
    question: str
    started: datetime | None
    status: str


class SourceDifference(Frozen):
    """One source that is new, gone or changed."""

    url: str
    title: str
    kind: str
    before: str
    """The source's id in the first run; empty when the source is new."""
    after: str
    """The source's id in the second run; empty when the source is gone."""
    is_cited: bool
    """Whether the report of a run that has the source cites it."""
    changes: tuple[str, ...] = ()
    """The changed numbers and names, such as `points 120 → 340`; empty when the text differs only in other ways."""


class ClaimDifference(Frozen):
    """One claim that is new, gone or changed; the side of a run without it is None."""

    before: CitedSentence | None
    after: CitedSentence | None
    changes: tuple[str, ...] = ()


class Comparison(Frozen):
    """The differences between two runs."""

    first: RunSummary
    second: RunSummary
    new_claims: tuple[ClaimDifference, ...]
    gone_claims: tuple[ClaimDifference, ...]
    changed_claims: tuple[ClaimDifference, ...]
    same_claims: int
    new_sources: tuple[SourceDifference, ...]
    gone_sources: tuple[SourceDifference, ...]
    changed_sources: tuple[SourceDifference, ...]
    same_sources: int
    stories: tuple[StoryDifference, ...] = ()
    """Every story that a list or search of one of the runs had, with its difference."""

    @property
    def differs(self) -> bool:
        """Whether any story, claim or source is new, gone or changed."""
        if any(one.change is not StoryChange.SAME for one in self.stories):
            return True
        claims = (self.new_claims, self.gone_claims, self.changed_claims)
        return any(claims) or any((self.new_sources, self.gone_sources, self.changed_sources))


@dataclass(frozen=True)
class RunSnapshot:
    """The parts of a run that a comparison needs."""

    summary: RunSummary
    sources: Mapping[str, Source]
    report: str
    """The text of report.md; empty when there is none."""
    read: Callable[[Source], str]
    """Returns a source's stored text; empty when it is missing or not intact."""
    stories: Sequence[RankedStory] = ()


def snapshot_of(folder: Path, run_state: RunState, started: datetime | None, status: str) -> RunSnapshot:
    """Return the snapshot of a run whose state is already computed from its journal."""
    workspace = Workspace(folder)

    def read(source: Source) -> str:
        try:
            text = stored_text(workspace.read_text(stored_at(source.id)))
        except ToolError:
            return ""
        return text if is_intact(source, text) else ""

    report = workspace.read_text(REPORT) if workspace.exists(REPORT) else ""
    head = RunSummary(run_id=folder.name, question=run_state.question, started=started, status=status)
    stories = listed_stories(run_state.lookups.values(), run_state.sources)
    return RunSnapshot(head, run_state.sources, report, read, stories)


def snapshot_on_disk(folder: Path, status: str = "") -> RunSnapshot:
    """Return the snapshot of a run on disk.

    Args:
        folder: The run's folder.
        status: The status to show for a run that has not ended.

    Raises:
        NotFoundError: The folder is not a run.
        StorageError: The run's journal cannot be read, or is damaged.
    """
    records = read_records(folder)
    run_state = RunState.of_records(records)
    ended = str(run_state.finished.status) if run_state.finished is not None else status
    return snapshot_of(folder, run_state, records[0].at if records else None, ended)


MIN_ALIKE = 0.6
"""The least similarity, from 0 to 1, of two versions of one claim that cite a common address."""
MIN_ALIKE_ELSEWHERE = 0.85
"""The least similarity, from 0 to 1, of two versions of one claim that cite no common address."""
MAX_ELSEWHERE = 300
"""The number of unpaired sentences of a run up to which each is compared with all unpaired ones of the other run."""
OTHER_SOURCE = "cites another source"

Pairs = list[tuple[CitedSentence, CitedSentence]]


def compared_claims(
    before: Sequence[CitedSentence], after: Sequence[CitedSentence]
) -> tuple[list[CitedSentence], list[CitedSentence], list[ClaimDifference], int]:
    """Return the new, the gone and the changed claims, and the number of claims that are the same."""
    gone, new = list(before), list(after)
    likeness = _Likeness({one.text: _bag(one.text) for one in (*before, *after)})
    pairs = _paired(gone, new, lambda one, other: float(one.text == other.text and bool(one.shares(other))), 1.0)
    pairs += _paired(gone, new, lambda one, other: likeness.of(one, other) if one.shares(other) else 0.0, MIN_ALIKE)
    if max(len(gone), len(new)) <= MAX_ELSEWHERE:
        pairs += _paired(gone, new, likeness.without_changes, MIN_ALIKE_ELSEWHERE)
    compared = [ClaimDifference(before=one, after=other, changes=_changes(one, other)) for one, other in pairs]
    changed = sorted((one for one in compared if one.changes), key=lambda one: one.after.line if one.after else 0)
    return new, gone, changed, len(compared) - len(changed)


def _paired(
    gone: list[CitedSentence],
    new: list[CitedSentence],
    score: Callable[[CitedSentence, CitedSentence], float],
    least: float,
) -> Pairs:
    """Return pairs with at least the score `least`, the best first, and remove paired sentences from both lists."""
    scored = [
        (value, -i, -j)
        for i, one in enumerate(gone)
        for j, other in enumerate(new)
        if (value := score(one, other)) >= least
    ]
    left, right = dict(enumerate(gone)), dict(enumerate(new))
    pairs: Pairs = []
    for _, i, j in sorted(scored, reverse=True):
        if -i in left and -j in right:
            pairs.append((left.pop(-i), right.pop(-j)))
    gone[:], new[:] = left.values(), right.values()
    return pairs


@dataclass(frozen=True)
class _Likeness:
    """How alike sentences are, of which each one's words are counted once."""

    bags: Mapping[str, "Counter[str]"]
    """The words of each sentence by its text."""

    def of(self, one: CitedSentence, other: CitedSentence) -> float:
        """Return the share of common words, from 0 to 1; all figures count as the same word, because figures change."""
        mine, theirs = self.bags[one.text], self.bags[other.text]
        common = sum(min(count, theirs[word]) for word, count in mine.items() if word in theirs)
        return 2 * common / max(1, mine.total() + theirs.total())

    def without_changes(self, one: CitedSentence, other: CitedSentence) -> float:
        """Return how alike two sentences are; 0 if a number or a name differs: they are about different things."""
        likeness = self.of(one, other)
        return likeness if likeness >= MIN_ALIKE_ELSEWHERE and not changes_between(one.text, other.text) else 0.0


def _bag(text: str) -> "Counter[str]":
    return Counter("#" if any(map(str.isdigit, word)) else word for word in words(normal(text).lower()))


def _changes(one: CitedSentence, other: CitedSentence) -> tuple[str, ...]:
    if one.text == other.text:
        return () if one.shares(other) else (OTHER_SOURCE,)
    found = [change.labelled for change in changes_between(one.text, other.text)]
    mine, theirs = quotes_in(one.text), quotes_in(other.text)
    lost, came = [q for q in mine if q not in theirs], [q for q in theirs if q not in mine]
    found += [f"“{before}” → “{after}”" for before, after in zip(lost, came, strict=False)]
    return tuple(found) or (() if one.shares(other) else (OTHER_SOURCE,))


MAX_COMPARED_CHARS = 60_000
SINCE_REPORT = "inputs/since-report.md"
"""The path at which the engine puts the earlier run's report into a run; it is not a source that a run found."""
READ_KINDS = ("page", "file", "comments", "story")
"""The kinds of sources that are full texts, the most informative first."""


class SourceDifferences(NamedTuple):
    """The sources of two runs that are new, gone or changed, and the number of addresses with the same ones."""

    new: tuple[SourceDifference, ...]
    """The sources whose addresses only the second run has."""
    gone: tuple[SourceDifference, ...]
    """The sources whose addresses only the first run has."""
    changed: tuple[SourceDifference, ...]
    """The sources that both runs read with different texts.

    Search results are left out, because their passages depend on the query.
    """
    same: int


def compared_sources(
    first: RunSnapshot, second: RunSnapshot, first_cited: set[str], second_cited: set[str]
) -> SourceDifferences:
    """Compare the sources of two runs by address and kind.

    Args:
        first: The first run.
        second: The second run.
        first_cited: The ids that the first run's report cites.
        second_cited: The ids that the second run's report cites.
    """
    before, after = _grouped(first), _grouped(second)

    def difference(one: Source | None, other: Source | None, changes: tuple[str, ...] = ()) -> SourceDifference:
        source = other or one
        assert source is not None
        return SourceDifference(
            url=source.url,
            title=source.title,
            kind=source.kind,
            before=one.id if one is not None else "",
            after=other.id if other is not None else "",
            is_cited=(one is not None and one.id in first_cited) or (other is not None and other.id in second_cited),
            changes=changes,
        )

    def changed(one: Source, other: Source) -> SourceDifference:
        texts = first.read(one)[:MAX_COMPARED_CHARS], second.read(other)[:MAX_COMPARED_CHARS]
        return difference(one, other, tuple(change.labelled for change in compare(*texts).changes))

    both = [
        (one, after[address][kind])
        for address, kinds in before.items()
        for kind, one in kinds.items()
        if kind != SEARCH_HIT and kind in after.get(address, {})
    ]
    found = _ordered(changed(one, other) for one, other in both if other.sha256 != one.sha256)
    return SourceDifferences(
        new=_ordered(difference(None, _telling(kinds)) for address, kinds in after.items() if address not in before),
        gone=_ordered(difference(_telling(kinds), None) for address, kinds in before.items() if address not in after),
        changed=found,
        same=len((before.keys() & after.keys()) - {url_key(one.url) for one in found}),
    )


def _grouped(snapshot: RunSnapshot) -> dict[str, dict[str, Source]]:
    """Return the latest source of each kind, by address and kind."""
    grouped: dict[str, dict[str, Source]] = {}
    for source in snapshot.sources.values():
        if source.url != f"file:{SINCE_REPORT}":
            grouped.setdefault(url_key(source.url), {})[source.kind] = source
    return grouped


def _telling(kinds: Mapping[str, Source]) -> Source:
    """Return the most informative source of an address."""
    return next((kinds[kind] for kind in READ_KINDS if kind in kinds), next(iter(kinds.values())))


def _ordered(found: Iterable[SourceDifference]) -> tuple[SourceDifference, ...]:
    """Return the sources that a report cites first, and search results last."""
    return tuple(sorted(found, key=lambda one: (not one.is_cited, one.kind == SEARCH_HIT)))


def compare_runs(first: RunSnapshot, second: RunSnapshot) -> Comparison:
    """Return the differences of the second run from the first."""
    before, after = (cited_sentences(snapshot.report, snapshot.sources, url_key) for snapshot in (first, second))
    new, gone, changed, same = compared_claims(before, after)
    cited = [{name for claim in claims for name in claim.ids} for claims in (before, after)]
    sources = compared_sources(first, second, *cited)
    stories = compared_stories(first.stories, second.stories)
    listed = {url_key(one.url) for one in (*first.stories, *second.stories)}
    only_listed = listed | one_sided_addresses(stories)
    new_sources, gone_sources, changed_sources = (
        tuple(one for one in found if url_key(one.url) not in only_listed)
        for found in (sources.new, sources.gone, sources.changed)
    )
    return Comparison(
        first=first.summary,
        second=second.summary,
        new_claims=tuple(ClaimDifference(before=None, after=one) for one in new if not _is_about(one, only_listed)),
        gone_claims=tuple(ClaimDifference(before=one, after=None) for one in gone if not _is_about(one, only_listed)),
        changed_claims=tuple(changed),
        same_claims=same,
        new_sources=new_sources,
        gone_sources=gone_sources,
        changed_sources=changed_sources,
        same_sources=sources.same,
        stories=stories,
    )


def _is_about(claim: CitedSentence, addresses: AbstractSet[str]) -> bool:
    """Return whether a claim cites nothing but these addresses: what is new about listed stories is said once."""
    return bool(claim.addresses) and addresses >= {*claim.addresses}


MAX_CHARS = 600
"""The limit in characters of a sentence, title, address or question on the page."""


def comparison_page(found: Comparison) -> str:
    """Return the differences as markdown: stories, then claims, then sources."""
    lines = [
        "# What changed",
        "",
        f"- A: {_run(found.first)}",
        f"- B: {_run(found.second)}",
        "",
        *([f"## Stories: {count_words(found.stories)}", *story_lines(found.stories), ""] if found.stories else []),
        _title("Claims", (found.new_claims, found.gone_claims, found.changed_claims), found.same_claims),
        *listed("New in B", found.new_claims, lambda one: _claim("B", one.after)),
        *listed("Gone since A", found.gone_claims, lambda one: _claim("A", one.before)),
        *listed("Changed", found.changed_claims, _changed_claim),
        "",
        _title("Sources", (found.new_sources, found.gone_sources, found.changed_sources), found.same_sources),
        *listed("New in B", found.new_sources, lambda one: [f"- {_source(one)} `{one.after}`"]),
        *listed("Gone since A", found.gone_sources, lambda one: [f"- {_source(one)} `{one.before}`"]),
        *listed("Changed", found.changed_sources, _changed_source),
    ]
    return "\n".join(lines) + "\n"


def _run(head: RunSummary) -> str:
    started = f"{head.started:%Y-%m-%d %H:%M} UTC" if head.started is not None else "?"
    return f"`{head.run_id}`, {started}, {head.status or 'not ended'}: {single_line(head.question, MAX_CHARS)}"


def _title(name: str, lists: tuple[Sequence[object], Sequence[object], Sequence[object]], same: int) -> str:
    new, gone, changed = map(len, lists)
    return f"## {name}: {new} new, {gone} gone, {changed} changed, {same} the same"


def _claim(snapshot: str, claim: CitedSentence | None) -> list[str]:
    return [f"- {snapshot} line {claim.line}: {single_line(claim.text, MAX_CHARS)}"] if claim is not None else []


def _changed_claim(one: ClaimDifference) -> list[str]:
    lines = [*_claim("A", one.before), *(f"  {line[2:]}" for line in _claim("B", one.after))]
    return [*lines, f"  differs: {single_line('; '.join(one.changes), MAX_CHARS)}"]


def _source(one: SourceDifference) -> str:
    kind = "" if one.kind == "page" else f" ({one.kind.replace('_', ' ')})"
    return f"{single_line(one.title, MAX_CHARS)}{kind}, {single_line(one.url, MAX_CHARS)}"


def _changed_source(one: SourceDifference) -> list[str]:
    words = single_line("; ".join(one.changes), MAX_CHARS) or "its text, but no number or name"
    return [f"- {_source(one)} A `{one.before}`, B `{one.after}`", f"  differs: {words}"]
