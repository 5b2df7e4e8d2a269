"""The words that answered the latest follow-up, checked against the sources as a report is."""

from dataclasses import dataclass

from explorer.cli.screens.number_format import counted
from explorer.cli.screens.sanitize import one_line
from explorer.journal.run_state import RunState
from explorer.reports.verify.check import check
from explorer.reports.verify.claims import TextOf, Verification
from explorer.reports.verify.soundness import Flaw, flaws
from explorer.schema.events import ORCHESTRATOR
from explorer.schema.messages import JsonObject

SUBJECT = "the answer"


@dataclass(frozen=True)
class AnswerCheck:
    """What was found out about an answer in words."""

    verification: Verification
    flaws: tuple[Flaw, ...]

    @property
    def is_wrong(self) -> bool:
        """Whether it may not be relied on."""
        return bool(self.verification.faults or self.flaws)

    @property
    def facts(self) -> JsonObject:
        """For programs."""
        shown = [{"kind": str(flaw.kind), "reason": flaw.reason(SUBJECT)} for flaw in self.flaws]
        return {"counts": self.verification.counts, "uncited": len(self.verification.uncited), "flaws": shown}

    @property
    def page(self) -> str:
        """For people: the verdicts in one line, then what is wrong."""
        counts = self.verification.counts
        verdicts = [
            f"{number} {name.replace('_', ' ')}" for name, number in counts.items() if name != "total" and number
        ]
        words = ", ".join(verdicts) or "none"
        lines = [f"The latest answer, given as text: {counted(counts['total'], 'cited sentence')} ({words})"]
        lines += [f"  {one_line(claim.sentence, 300)}" for claim in self.verification.faults]
        return "\n".join([*lines, *(f"Wrong: {one_line(flaw.reason(SUBJECT), 300)}" for flaw in self.flaws)])


def check_answer(run_state: RunState, text_of: TextOf) -> AnswerCheck | None:
    """Check the words that ended the run's latest session; None where its report is the answer."""
    lead = run_state.agents.get(ORCHESTRATOR)
    if run_state.finished is None or not run_state.finished.answer or lead is None or lead.finished is None:
        return None
    words = lead.finished.summary
    verification = check(words, run_state.sources, text_of)
    return AnswerCheck(verification, flaws(words, run_state.sources, text_of, verification, run_state.asked))
