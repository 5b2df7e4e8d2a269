"""The plan of an exploration: values, what can happen to it, and the settings of plans and rounds."""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from explorer.schema.event import Event
from explorer.schema.messages import Count, Frozen
from explorer.schema.setting import WHOLE, WHOLE_OR_NONE, Flag, Group, Setting, WithoutTrust, one_of

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


PLAN = ("off", "ask", "auto")
"""The allowed values of `plan`."""
MORE = "plans-and-rounds"


class Planning(BaseModel):
    """What a run asks of its orchestrator's plan."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    plan: Annotated[
        str,
        Setting(
            "EXPLORER_PLAN",
            one_of(*PLAN),
            "Plan before helpers start: `off`, `ask` (you approve, edit or reject it), or `auto` (it is only shown)",
            Group.PLANS,
            flags=(Flag("--plan", "MODE", "`--plan` alone means `ask`"),),
            anchor=MORE,
        ),
    ] = "off"
    initial_queries: Annotated[
        int | None,
        Setting(
            "EXPLORER_INITIAL_QUERIES",
            WHOLE_OR_NONE,
            "Sub-questions of the plan, all looked up at the same time in the first round",
            Group.PLANS,
            flags=(Flag("--initial-queries", "N"),),
            default="as many as the orchestrator thinks",
            anchor=MORE,
        ),
    ] = Field(default=None, ge=1, le=20)
    max_rounds: Annotated[
        int | None,
        Setting(
            "EXPLORER_MAX_ROUNDS",
            WHOLE_OR_NONE,
            "Maximum rounds: turns in which the orchestrator calls helpers, writers not counted",
            Group.PLANS,
            flags=(Flag("--max-rounds", "N"),),
            default="no limit",
            anchor=MORE,
        ),
    ] = Field(default=None, ge=1)
    reflect: Annotated[
        str,
        Setting(
            "EXPLORER_REFLECT",
            one_of("off", "on"),
            "Whether each round is assessed: what is answered, open or contradicted, and what would settle it",
            Group.PLANS,
            flags=(Flag("--reflect", value="on", help="Assess each round, by sub-question"),),
            without_trust=WithoutTrust.FULL,
            anchor=MORE,
        ),
    ] = "off"
    max_empty_rounds: Annotated[
        int | None,
        Setting(
            "EXPLORER_MAX_EMPTY_ROUNDS",
            WHOLE_OR_NONE,
            "Rounds in a row without anything of interest after which the exploration ends; each is assessed",
            Group.PLANS,
            default="no limit",
            anchor=MORE,
        ),
    ] = Field(default=None, ge=1)

    max_depth: Annotated[
        int,
        Setting(
            "EXPLORER_MAX_DEPTH",
            WHOLE,
            "Depth of helpers: with 2, helpers call helpers where their role file says so",
            Group.PLANS,
            details="1 or 2",
            anchor=MORE,
        ),
    ] = Field(default=1, ge=1, le=2)

    @property
    def has_assessments(self) -> bool:
        """Whether each round is assessed."""
        return self.reflect == "on" or self.max_empty_rounds is not None

    @property
    def has_plan(self) -> bool:
        """Whether the orchestrator proposes a plan before any helper starts."""
        return self.plan != "off" or self.initial_queries is not None or self.has_assessments


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
