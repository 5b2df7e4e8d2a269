"""What comparing two runs finds, as people and programs read it."""

from datetime import datetime

from explorer.reports.compare.cited_sentences import CitedSentence
from explorer.schema.messages import Frozen


class RunSummary(Frozen):
    """Which run it is."""

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
    """Its id in the first run; empty when it is new."""
    after: str
    """Its id in the second run; empty when it is gone."""
    is_cited: bool
    """In the report of a run that has it."""
    changes: tuple[str, ...] = ()
    """`points 120 → 340`; empty when the text differs in other ways only."""


class ClaimDifference(Frozen):
    """One claim that is new, gone or changed; the side that lacks it is None."""

    before: CitedSentence | None
    after: CitedSentence | None
    changes: tuple[str, ...] = ()


class Comparison(Frozen):
    """What differs between two runs."""

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

    @property
    def differs(self) -> bool:
        """Whether anything is new, gone or changed."""
        claims = (self.new_claims, self.gone_claims, self.changed_claims)
        return any(claims) or any((self.new_sources, self.gone_sources, self.changed_sources))
