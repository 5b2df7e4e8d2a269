"""What can happen to a run's plan; `schema/events.py` has all events."""

from typing import Literal

from explorer.schema.event import Event
from explorer.schema.messages import Count
from explorer.schema.plan import Plan, PlanVerdict, QuestionAssessment, SubQuestion


class PlanProposed(Event):
    """The orchestrator proposed a plan; no helper has started since the question, or the latest follow-up."""

    type: Literal["plan_proposed"] = "plan_proposed"
    call: str
    """The engine's key of the call that proposed it."""
    plan: Plan
    spent_usd: float | None = None
    """What the run had cost by then; None: not known."""
    waits: bool = False
    """Whether the user is to decide about it; otherwise the settings approve it."""


class PlanDecided(Event):
    """What was decided about the latest plan; on disk before any helper starts."""

    type: Literal["plan_decided"] = "plan_decided"
    verdict: PlanVerdict
    words: str = ""
    """What the user wants to be different."""
    plan: Plan | None = None
    """The plan as the user changed it; None: as it was proposed."""
    is_automatic: bool = False
    """Whether the settings approved it, and nobody was asked."""


class RoundAssessed(Event):
    """How far the sub-questions are after a round, as the orchestrator assesses it."""

    type: Literal["round_assessed"] = "round_assessed"
    call: str
    """The engine's key of the call that assessed it."""
    number: Count
    """1, 2, ... since the question, or the latest follow-up."""
    is_interesting: bool
    """Whether the round found anything that matters for the answer."""
    questions: tuple[QuestionAssessment, ...]
    further: tuple[SubQuestion, ...] = ()
    """Sub-questions that came up."""
    new_sources: tuple[str, ...] = ()
    """Ids of the sources since the assessment before, by the journal."""
