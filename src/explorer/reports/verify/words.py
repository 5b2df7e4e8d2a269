"""A check's result in words: for the writer, who is to mend the report, and for its readers."""

from explorer.reports.verify.claims import Claim, Verdict, Verification

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
    """What to mend, sentence by sentence, for the model that wrote the report; empty when there is nothing."""
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
