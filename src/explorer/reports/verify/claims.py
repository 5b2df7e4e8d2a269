"""What was found out about each sentence of a report, in words for its writer, and as a notice for readers."""

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Literal

from explorer.schema.events import Status
from explorer.schema.messages import Frozen
from explorer.text.sanitize import single_line

Kind = Literal["quote", "number", "date", "money", "percentage", "version", "name"]

TextOf = Callable[[str], str | None]
"""The stored text of a source by its id; None when there is none that can be read."""


class Verdict(StrEnum):
    """What became of a look-up. The four are never merged into fewer."""

    SUPPORTED = "supported"
    """All that could be looked up is in the stored text. Whether the text means the same, no program says."""
    NOT_FOUND = "not_found"
    """Something is not in any of the cited sources."""
    SOURCE_MISSING = "source_missing"
    """No stored text to look in."""
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
    """Line of the checked text, from 1, where the sentence begins."""
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
    """Drop uncited sentences: those of a report that the engine wrote need no citation."""
    return verification.model_copy(update={"uncited": ()})


def count(claims: Sequence[Claim]) -> dict[str, int]:
    """`total` and one number for each verdict."""
    by_verdict = {str(verdict): sum(claim.verdict is verdict for claim in claims) for verdict in Verdict}
    return {"total": len(claims), **by_verdict}


LABELS = {
    "en": {
        Status.PARTIAL: "Partial",
        Status.FAILED: "Failed",
        Status.NOTHING_FOUND: "Nothing found",
        Status.SOURCES_UNAVAILABLE: "Sources unavailable",
    },
    "zh": {
        Status.PARTIAL: "不完整",
        Status.FAILED: "失败",
        Status.NOTHING_FOUND: "未找到",
        Status.SOURCES_UNAVAILABLE: "来源不可用",
    },
}
LOOKUPS = {"en": "Lookups", "zh": "检索"}
MOVED = {"en": "Moved", "zh": "已移动"}
_WORDS = "|".join([*(word for words in LABELS.values() for word in words.values()), *LOOKUPS.values(), *MOVED.values()])
NOTICE = re.compile(rf"\A\s*(?:> \*\*(?:{_WORDS}):\*\* [^\n]*\n(?:>\n)?)+")
"""Pattern of the notice at the beginning of a text."""


def notice_of(status: Status, reason: str, lookups: str, language: str, moved: str = "") -> str:
    """Return the lines at the top of a report, each with a label; empty when there is nothing to say.

    Args:
        status: How the run ended.
        reason: Why it is not complete.
        lookups: What is to be said of lookups that failed; empty for nothing.
        language: Of the labels.
        moved: What is to be said of things that stood in the report's place; empty for nothing.
    """
    labels = LABELS.get(language, LABELS["en"])
    lines: list[str] = []
    if status is not Status.COMPLETE:
        lines.append(_line(labels[status], reason))
    if lookups:
        lines.append(_line(LOOKUPS.get(language, LOOKUPS["en"]), lookups))
    if moved:
        lines.append(_line(MOVED.get(language, MOVED["en"]), moved))
    return "\n>\n".join(lines) + "\n\n" if lines else ""


def _line(label: str, words: str) -> str:
    shown = single_line(words)
    end = "" if shown.endswith((".", "!", "?", "…", "。")) else "."
    return f"> **{label}:** {shown[:1].upper()}{shown[1:]}{end}"


def without_notice(body: str) -> str:
    """Return a report's body with empty lines in the place of its notice."""
    return NOTICE.sub(lambda found: "\n" * found[0].count("\n"), body, count=1)


MAX_SHOWN = 20
SENTENCE_CHARS = 240
INTRODUCTION = (
    "Each quote and figure of the cited sentences in report.md was looked up, without any model, in the stored text of "
    "the sources they cite. These were not found there:"
)
ADVICE = (
    "For each: read the cited source, then correct the sentence to what it says, cite the source that does say it, or "
    "take the statement out. Quote word for word, in the source's language. Give numbers with the unit and the date "
    "the source gives; write `about` before a number you rounded, and name both numbers from which you worked "
    "out a third. "
    "Leave all other sentences as they are."
)


def words_for_writer(verification: Verification) -> str:
    """Return what to fix, sentence by sentence, for the model that wrote the report; empty when there is nothing."""
    faults = verification.faults
    if not faults:
        return ""
    lines = [_fault(claim) for claim in faults[:MAX_SHOWN]]
    if len(faults) > MAX_SHOWN:
        lines.append(f"- and {len(faults) - MAX_SHOWN} more of the same kind")
    return "\n".join([INTRODUCTION, "", *lines, "", ADVICE])


def _fault(claim: Claim) -> str:
    sentence = claim.sentence if len(claim.sentence) <= SENTENCE_CHARS else claim.sentence[: SENTENCE_CHARS - 1] + "…"
    absent = [one for one in claim.findings if one.verdict is Verdict.NOT_FOUND]
    what = "; ".join(f"“{one.text}” is {one.reason}" for one in absent)
    if claim.verdict is Verdict.SOURCE_MISSING or not absent:
        what = claim.reason
    return f"- line {claim.line}: {sentence}\n  {what}"
