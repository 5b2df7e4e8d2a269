"""The evidence behind a report as data: a card for each citation, with the passages of its source and the verdicts.

The verdicts are those of the check (`verify/check.py`); here they are only brought together with the sources.
"""

from collections.abc import Mapping
from datetime import datetime

from explorer.reports.matching import MatchedPassage, StoredText
from explorer.reports.verify.claims import FAULTS, Claim, Finding, TextOf, Verdict, Verification
from explorer.schema.events import Source
from explorer.schema.messages import Frozen
from explorer.text.citations import HEADING, REFERENCE, cited_ids
from explorer.text.urls import site_of
from explorer.workspace.source_store import is_intact, plain_flags

NO_TEXT = "its stored text is missing or cannot be read"
ALTERED_TEXT = "its stored text is not as it was stored (sha256)"
NO_SOURCE = "it is not a source of this run"


class CitingSentence(Frozen):
    """A sentence that cites a source, what was found of it, and the passages of this source."""

    claim: Claim
    passages: tuple[MatchedPassage, ...] = ()


class Card(Frozen):
    """A citation: its source, and each sentence that cites it."""

    number: int
    """The number in the list of references."""
    id: str
    title: str
    url: str = ""
    site: str = ""
    kind: str = ""
    author: str = ""
    published: str = ""
    retrieved: datetime | None = None
    via: str = ""
    flags: tuple[str, ...] = ()
    """What a reader should know of the text, such as `truncated`, in words."""
    problem: str = ""
    """Why the stored text cannot be shown; empty when it can."""
    sentences: tuple[CitingSentence, ...] = ()

    @property
    def counts(self) -> dict[Verdict, int]:
        """Sentences by verdict; verdicts that none has are left out."""
        verdicts = [one.claim.verdict for one in self.sentences]
        return {verdict: verdicts.count(verdict) for verdict in Verdict if verdict in verdicts}


class Evidence(Frozen):
    """All citations of a report, and the check of each of its sentences."""

    cards: tuple[Card, ...] = ()
    claims: tuple[Claim, ...] = ()
    """Sentences that cite, in the order of the report."""
    uncited: tuple[Claim, ...] = ()
    """Sentences with a quote or a figure and no citation."""

    @property
    def verification(self) -> Verification:
        """The check, with its counts."""
        return Verification(claims=self.claims, uncited=self.uncited)

    def card(self, number: int) -> Card | None:
        """Return the card of a number; None when the report has no such reference."""
        return next((card for card in self.cards if card.number == number), None)


def evidence_of(report: str, verification: Verification, sources: Mapping[str, Source], text_of: TextOf) -> Evidence:
    """Return the evidence behind a report.

    Args:
        report: The report with its list of references, or a draft with `[S12]` citations.
        verification: What the check of it found.
        sources: All sources of the run, by id.
        text_of: Reads a stored text by its source's id.
    """
    cards = tuple(
        _card(number, name, sources.get(name), text_of(name), verification) for number, name in references(report)
    )
    return Evidence(cards=cards, claims=verification.claims, uncited=verification.uncited)


def references(report: str) -> list[tuple[int, str]]:
    """Return the number and the id of each reference; a draft's citations are numbered in order of first use."""
    headings = list(HEADING.finditer(report))
    listed = REFERENCE.findall(report, headings[-1].start()) if headings else []
    if listed:
        return [(int(number), name) for number, name in listed]
    return list(enumerate(dict.fromkeys(cited_ids(report)), 1))


def stored(source: Source | None, text: str | None) -> tuple[StoredText | None, str]:
    """Return a source's text for look-ups, or why there is none."""
    if source is None or text is None:
        return None, NO_SOURCE if source is None else NO_TEXT
    return (StoredText(source, text), "") if is_intact(source, text) else (None, ALTERED_TEXT)


def passages_of(claim: Claim, identifier: str, text: StoredText | None) -> tuple[MatchedPassage, ...]:
    """Return the passages of one source for a sentence that cites it."""
    return text.passages(claim.sentence, _in_source(claim, identifier)) if text is not None else ()


def is_not_supported(claim: Claim) -> bool:
    """Return whether the sources do not carry a sentence, as far as a program can say."""
    return claim.verdict in FAULTS


def _in_source(claim: Claim, identifier: str) -> list[Finding]:
    return [one for one in claim.findings if one.source == identifier]


def _card(number: int, identifier: str, source: Source | None, content: str | None, verification: Verification) -> Card:
    text, problem = stored(source, content)
    sentences = tuple(
        CitingSentence(claim=claim, passages=passages_of(claim, identifier, text))
        for claim in verification.claims
        if identifier in claim.ids
    )
    if source is None:
        return Card(number=number, id=identifier, title=identifier, problem=problem, sentences=sentences)
    return Card(
        number=number,
        id=identifier,
        title=source.title,
        url=source.url,
        site=site_of(source.url),
        kind=source.kind,
        author=source.author,
        published=source.published,
        retrieved=source.retrieved,
        via=source.via,
        flags=tuple(plain_flags(source.flags)),
        problem=problem,
        sentences=sentences,
    )
