"""What was found out about a report: each cited sentence, what in it could be looked up, and what came of it."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal

from explorer.schema.messages import Frozen

Kind = Literal["quote", "number", "date", "money", "percentage", "version", "name"]


class Verdict(StrEnum):
    """What became of a look-up. The four are never merged into fewer."""

    SUPPORTED = "supported"
    """All that could be looked up is in the stored text. Whether the text means the same, no program says."""
    NOT_FOUND = "not_found"
    """Something is not in any of the cited sources."""
    SOURCE_MISSING = "source_missing"
    """There is no stored text to look in."""
    UNCHECKED = "unchecked"
    """Nothing in it can be looked up."""


class Finding(Frozen):
    """One quote or figure of a sentence, and where it is."""

    kind: Kind
    text: str
    verdict: Verdict
    source: str = ""
    """Id of the source that has it; empty when none does."""
    reason: str = ""


class Claim(Frozen):
    """A sentence with its citations."""

    sentence: str
    line: int
    """Where it begins, from 1, in the text that was checked."""
    ids: tuple[str, ...]
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    reason: str = ""


class Verification(Frozen):
    """All cited sentences of a report, and those that should have been cited."""

    claims: tuple[Claim, ...]
    uncited: tuple[Claim, ...] = ()
    """Sentences with a quote or a figure and no citation at all; their verdict is `unchecked`."""

    @property
    def counts(self) -> dict[str, int]:
        """Claims by verdict, and their total, which the parts sum to."""
        return count(self.claims)

    @property
    def verdicts(self) -> dict[str, int]:
        """Claims by verdict."""
        return {name: number for name, number in self.counts.items() if name != "total"}

    @property
    def faults(self) -> tuple[Claim, ...]:
        """Claims that are not found, or whose source is missing."""
        return tuple(one for one in self.claims if one.verdict in {Verdict.NOT_FOUND, Verdict.SOURCE_MISSING})


def without_uncited(verification: Verification) -> Verification:
    """Of a report that the engine wrote, whose own sentences need no citation."""
    return verification.model_copy(update={"uncited": ()})


def count(claims: Sequence[Claim]) -> dict[str, int]:
    """`total` and one number for each verdict."""
    by_verdict = {str(verdict): sum(claim.verdict is verdict for claim in claims) for verdict in Verdict}
    return {"total": len(claims), **by_verdict}
