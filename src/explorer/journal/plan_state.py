"""The state of a run's plan, computed from its events: what waits for a decision, rounds, progress by sub-question."""

from dataclasses import dataclass, field

from explorer.schema.events import (
    ORCHESTRATOR,
    AgentContinued,
    AgentStarted,
    AnyEvent,
    PlanDecided,
    PlanProposed,
    RoundAssessed,
)
from explorer.schema.plan import (
    AnswerState,
    Plan,
    PlanFacts,
    PlanVerdict,
    QuestionAssessment,
    QuestionFacts,
    QuestionProgress,
    SubQuestion,
)

WAITS = "waiting"
EVENTS = frozenset(
    {"plan_proposed", "plan_decided", "round_assessed", "agent_started", "agent_continued", "agent_finished"}
)
"""Types of the events that it is computed from."""


@dataclass(frozen=True)
class GivenTask:
    """A task that the orchestrator gave to a helper."""

    turn: str
    """The key of the orchestrator's turn, `orchestrator.t3`."""
    agent: str
    role: str


@dataclass
class PlanState:
    """The plan of a run. Only `apply` changes it."""

    proposal: PlanProposed | None = None
    """The latest plan since the question, or the latest follow-up."""
    decision: PlanDecided | None = None
    """What was decided about it; None: nothing yet."""
    questions: dict[str, SubQuestion] = field(default_factory=dict[str, SubQuestion])
    """The sub-questions of approved plans, and those that came up later, by id."""
    assessed: dict[str, QuestionAssessment] = field(default_factory=dict[str, QuestionAssessment])
    """The latest assessment of each sub-question."""
    assessments: list[RoundAssessed] = field(default_factory=list[RoundAssessed])
    """Those since the question, or the latest follow-up."""
    tasks: list[GivenTask] = field(default_factory=list[GivenTask])
    """Tasks since the question, or the latest follow-up."""
    unassessed: list[str] = field(default_factory=list[str])
    """Turns in which tasks were given since the latest assessment; those of writers, too."""
    _helpers: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """The helpers of each sub-question."""
    _working: dict[str, str] = field(default_factory=dict[str, str])
    """The sub-question of each helper at work."""
    _roles: dict[str, str] = field(default_factory=dict[str, str])

    def apply(self, event: AnyEvent) -> None:
        """Apply one event of any agent."""
        match event.type:
            case "plan_proposed":
                self.proposal, self.decision = event, None
            case "plan_decided":
                self._decide(event)
            case "round_assessed":
                self.assessments.append(event)
                self.assessed |= {one.question: one for one in event.questions}
                self.questions |= {one.id: one for one in event.further}
                self.unassessed.clear()
            case "agent_started" | "agent_continued":
                self._begin(event)
            case "agent_finished":
                self._working.pop(event.agent, None)
            case _:
                pass

    def _decide(self, event: PlanDecided) -> None:
        self.decision = event
        plan = self.plan
        if plan is not None and event.verdict is not PlanVerdict.REJECTED:
            self.questions |= {one.id: one for one in plan.questions}

    def _begin(self, event: AgentStarted | AgentContinued) -> None:
        if event.agent == ORCHESTRATOR:
            if isinstance(event, AgentContinued) and event.renews_limits:
                self.proposal = self.decision = None
                self.assessments, self.tasks, self.unassessed = [], [], []
            return
        if isinstance(event, AgentStarted):
            self._roles[event.agent] = event.role
        if event.question:
            self._working[event.agent] = event.question
            known = self._helpers.setdefault(event.question, [])
            known += [] if event.agent in known else [event.agent]
        turn = event.parent_call.rpartition(".")[0]
        if turn.startswith(f"{ORCHESTRATOR}."):
            self.tasks.append(GivenTask(turn, event.agent, self._roles.get(event.agent, "")))
            self.unassessed += [] if turn in self.unassessed else [turn]

    @property
    def plan(self) -> Plan | None:
        """The latest plan, as it was edited."""
        if self.decision is not None and self.decision.plan is not None:
            return self.decision.plan
        return self.proposal.plan if self.proposal is not None else None

    @property
    def is_waiting(self) -> bool:
        """Whether a plan waits for a decision."""
        return self.proposal is not None and self.proposal.waits and self.decision is None

    @property
    def is_approved(self) -> bool:
        """Whether the plan for the latest question was approved."""
        return self.decision is not None and self.decision.verdict is not PlanVerdict.REJECTED

    def rounds(self, writers: frozenset[str]) -> list[str]:
        """Return the orchestrator's turns in which helpers got tasks, those of writers left out."""
        return list(dict.fromkeys(task.turn for task in self.tasks if task.role not in writers))

    @property
    def uninteresting(self) -> int:
        """The number of latest rounds in a row that found nothing of interest."""
        found = [one.is_interesting for one in reversed(self.assessments)]
        return found.index(True) if True in found else len(found)

    def facts(self) -> list[QuestionFacts]:
        """Return each sub-question with how far it is; of a plan without a decision, those that it proposes."""
        shown = self.questions
        if self.is_waiting and self.proposal is not None:
            shown = shown | {one.id: one for one in self.proposal.plan.questions}
        return [self._facts(one) for one in shown.values()]

    def _facts(self, question: SubQuestion) -> QuestionFacts:
        assessed = self.assessed.get(question.id)
        helpers = tuple(self._helpers.get(question.id, ()))
        if question.id in self._working.values():
            progress = QuestionProgress.AT_WORK
        elif assessed is not None:
            progress = QuestionProgress(assessed.state.value)
        else:
            progress = QuestionProgress.LOOKED_UP if helpers else QuestionProgress.PLANNED
        return QuestionFacts(
            question=question,
            progress=progress,
            helpers=helpers,
            finding=assessed.finding if assessed is not None else "",
            would_settle=assessed.would_settle if assessed is not None else "",
        )

    def summary(self) -> PlanFacts | None:
        """Return the plan with how far it is; None: there is none."""
        plan, decision = self.plan, self.decision
        if plan is None and not self.questions:
            return None
        return PlanFacts(
            state=WAITS if self.is_waiting else decision.verdict.value if decision is not None else "",
            understanding=plan.understanding if plan is not None else "",
            enough_when=plan.enough_when if plan is not None else "",
            questions=tuple(self.facts()),
            cost_usd=plan.cost_usd if plan is not None else None,
            spent_usd=self.proposal.spent_usd if self.proposal is not None else None,
            rounds=len(self.assessments),
        )

    @property
    def unanswered(self) -> list[QuestionFacts]:
        """The sub-questions of approved plans that are not known to be answered."""
        settled = {name for name, one in self.assessed.items() if one.state is AnswerState.ANSWERED}
        return [self._facts(one) for one in self.questions.values() if one.id not in settled]
