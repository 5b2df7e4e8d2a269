"""The plan of an exploration, what is decided about it, and how far each of its sub-questions is: values."""

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from explorer.schema.messages import Count, Frozen

MAX_QUESTIONS = 40
MAX_WORDS_CHARS = 1_000


class SubQuestion(Frozen):
    """One thing that has to be known for the answer."""

    id: str = ""
    """`q1`, `q2`, ...; the engine numbers them."""
    question: str = Field(min_length=1, max_length=MAX_WORDS_CHARS)
    sources: tuple[str, ...] = ()
    """Where the answer would be: kinds of sources, sites, files."""
    helper: str = ""
    """The role that looks it up; empty: the orchestrator chooses."""
    lookups: Count = Field(default=0, ge=0)
    """About how many searches and pages are enough."""
    cost_usd: float | None = None
    """About what these lookups cost, as the engine estimates it; None: no price is known."""


class Plan(Frozen):
    """What an orchestrator means to find out, before any helper starts."""

    understanding: str = Field(default="", max_length=MAX_WORDS_CHARS)
    """The question as it is understood."""
    questions: tuple[SubQuestion, ...] = Field(min_length=1, max_length=MAX_QUESTIONS)
    enough_when: str = Field(default="", max_length=MAX_WORDS_CHARS)
    """What is enough for an answer."""

    @property
    def cost_usd(self) -> float | None:
        """About what its lookups cost together; None: no price is known."""
        costs = [one.cost_usd for one in self.questions]
        return None if None in costs else sum(cost or 0.0 for cost in costs)


class PlanVerdict(StrEnum):
    """What is decided about a plan."""

    APPROVED = "approved"
    EDITED = "edited"
    """It is approved with changes."""
    REJECTED = "rejected"


class PlanDecision(Frozen):
    """What the user decides about a plan that waits."""

    verdict: PlanVerdict
    words: str = ""
    """What is to be different. A plan that is rejected without words ends the run."""
    plan: Plan | None = None
    """The plan as the user wants it, where it is edited."""

    @model_validator(mode="after")
    def _check_edit(self) -> Self:
        if (self.verdict is PlanVerdict.EDITED) != (self.plan is not None):
            raise ValueError("a plan is given if, and only if, it is edited")
        return self

    def with_words(self, words: str) -> Self:
        """Return a rejection with words, where there are any; every other decision as it is.

        Args:
            words: What is to be different.

        Returns:
            The decision.
        """
        return self.model_copy(update={"words": words}) if self.verdict is PlanVerdict.REJECTED and words else self

    @classmethod
    def approve(cls) -> Self:
        """Approve the plan as it is."""
        return cls(verdict=PlanVerdict.APPROVED)

    @classmethod
    def edit(cls, plan: Plan) -> Self:
        """Approve another plan in its place.

        Args:
            plan: The plan as it is to be; questions without an id are new.
        """
        return cls(verdict=PlanVerdict.EDITED, plan=plan)

    @classmethod
    def reject(cls, words: str = "") -> Self:
        """Ask for another plan, or end the run.

        Args:
            words: What is to be different; empty: the run ends.
        """
        return cls(verdict=PlanVerdict.REJECTED, words=words)


class AnswerState(StrEnum):
    """How far a sub-question is, as the orchestrator assesses it."""

    ANSWERED = "answered"
    OPEN = "open"
    CONTRADICTED = "contradicted"
    """Sources contradict each other, or what was expected."""


class QuestionAssessment(Frozen):
    """How far one sub-question is after a round."""

    question: str
    """Its id."""
    state: AnswerState
    finding: str = ""
    """What is known, in a sentence."""
    would_settle: str = ""
    """What would settle it; empty where it is answered."""


class QuestionProgress(StrEnum):
    """How far a sub-question is, for people: what is assessed, else what helpers do."""

    PLANNED = "planned"
    AT_WORK = "at work"
    LOOKED_UP = "looked up"
    """Helpers have answered, and nothing is assessed."""
    ANSWERED = "answered"
    OPEN = "open"
    CONTRADICTED = "contradicted"


class QuestionFacts(Frozen):
    """One sub-question with how far it is, for programs and screens."""

    question: SubQuestion
    progress: QuestionProgress
    helpers: tuple[str, ...] = ()
    """The helpers that worked on it."""
    finding: str = ""
    would_settle: str = ""


class PlanFacts(Frozen):
    """A run's plan with how far it is, for programs and screens."""

    state: str
    """`waiting` (for the user's decision), or what was decided: `approved`, `edited`, `rejected`."""
    understanding: str
    enough_when: str
    questions: tuple[QuestionFacts, ...]
    cost_usd: float | None
    """About what the lookups of the plan cost, as the engine estimates it; None: no price is known."""
    spent_usd: float | None
    """What the run had cost when the plan was proposed."""
    rounds: int
    """Assessed rounds since the question, or the latest follow-up."""
