"""A run held to its plan: what is proposed, approved and assessed is on record before helpers go on.

The tools `propose_plan` and `assess_round` record events; which calls have to wait for them follows from the state that
these events add up to (`journal/plan_state.py`). So a resumed run asks for nothing twice.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import LiteralString

from explorer.agents.budget import Budget
from explorer.agents.decisions import Decision, ending
from explorer.agents.roles import CALL_AGENT, Role, helpers_in, leading_role, report_writers
from explorer.journal.agent_state import AgentState
from explorer.journal.plan_state import PlanState
from explorer.journal.run_state import RunState
from explorer.run.model_facts import context_policy, known_cost
from explorer.run.resources import RunResources
from explorer.schema.errors import ConfigError, ToolError, WaitingError
from explorer.schema.events import ORCHESTRATOR, AgentFinished, Append, PlanDecided, PlanProposed, RoundAssessed, Status
from explorer.schema.messages import ToolCall, Usage
from explorer.schema.plan import (
    AnswerState,
    Plan,
    PlanDecision,
    Planning,
    PlanVerdict,
    QuestionAssessment,
    SubQuestion,
)
from explorer.schema.reasons import EndCause
from explorer.schema.tool import Tool, ToolResult
from explorer.text.rendering import ModelText, WrittenBy, block, by_user, code, codes, own, render
from explorer.tools.plan import (
    ASSESS_ROUND,
    PROPOSE_PLAN,
    AssessRoundArguments,
    AssessRoundTool,
    ProposePlanArguments,
    ProposePlanTool,
    QuestionPart,
)

FIRST_TOKENS, LOOKUP_TOKENS, REPLY_TOKENS = 6_000, 4_000, 400
"""Tokens of a helper's prompt and task, of what a lookup brings, and of a reply: for the estimate of a cost."""
FURTHER_TURNS = 2
"""Turns of a helper besides its lookups: it writes, and says what it found."""
WAITS = "the plan waits for your decision"
REJECTED = "the plan was rejected"
FINISH = "finish_exploration"


def estimated_cost(cost: Callable[[Usage], float], lookups: int) -> float:
    """Return about what a helper costs: each turn reads the conversation so far from the cache, and adds a lookup.

    Args:
        cost: Returns the cost of a request.
        lookups: How many lookups it makes.
    """
    total, seen = 0.0, 0
    for turn in range(lookups + FURTHER_TURNS):
        size = FIRST_TOKENS + turn * (LOOKUP_TOKENS + REPLY_TOKENS)
        usage = Usage(
            input_tokens=size, cache_read_tokens=seen, cache_write_tokens=size - seen, output_tokens=REPLY_TOKENS
        )
        total, seen = total + cost(usage), size
    return round(total, 4)


@dataclass(frozen=True)
class Planner:
    """Holds the orchestrator of a run to its plan."""

    asked: Planning
    """What the settings ask for."""
    run_state: RunState
    record: Append
    budget: Budget
    roles: Mapping[str, Role]
    cost_of: Callable[[str, int], float | None]
    """Return about what so many lookups of a role cost; None: no price is known."""

    @property
    def _plan(self) -> PlanState:
        return self.run_state.plan

    @property
    def _writers(self) -> frozenset[str]:
        return report_writers(self.roles)

    def tools(self) -> list[Tool]:
        """Return the tools that the settings call for."""
        has_plan = self.asked.has_plan or self._plan.proposal is not None
        wanted = {PROPOSE_PLAN: has_plan, ASSESS_ROUND: self.asked.has_assessments or bool(self._plan.assessments)}
        lead = leading_role(self.roles).name
        if lead in self.run_state.prefixes and lead not in self.run_state.foreign_roles:
            # What its model was offered first, it may call in all sessions, and nothing else.
            loaded = {tool.name for tool in self.run_state.prefixes[lead].tools}
            wanted = {name: name in loaded for name in wanted}
        made: list[Tool] = [
            ProposePlanTool(self._planning(), self.propose),
            AssessRoundTool(ASSESSING, self.assess),
        ]
        return [tool for tool in made if wanted[tool.name]]

    def _planning(self) -> str:
        """Return what this run asks of a plan, as the description of its tool."""
        count, rounds = self.asked.initial_queries, self.asked.max_rounds
        parts = [
            PLANNING,
            f"It has exactly {count} sub-questions, and the first round calls helpers for all of them in one turn."
            if count
            else "",
            "The user approves it, changes it or asks for another one." if self.asked.plan == "ask" else "",
            f"There are at most {rounds} rounds; a round is a turn in which you call helpers." if rounds else "",
        ]
        return " ".join(part for part in parts if part)

    async def propose(self, arguments: ProposePlanArguments, call: str) -> ToolResult:
        """Record a plan, and what is decided about it; without a decision of the user, wait.

        Raises:
            ToolError: The plan cannot be used; the message says why.
            WaitingError: The user is to decide; the run is resumed with the decision.
        """
        proposal = self._plan.proposal
        if proposal is None or proposal.call != call:
            self._check(arguments)
            plan, waits = self._made(arguments), self.asked.plan == "ask"
            proposal = PlanProposed(agent=ORCHESTRATOR, call=call, plan=plan, spent_usd=self._spent, waits=waits)
            await self.record(proposal)
        if self._plan.decision is None and (not proposal.waits or self.asked.plan == "auto"):
            await self.record(PlanDecided(verdict=PlanVerdict.APPROVED, is_automatic=True))
        decision, decided = self._plan.decision, self._plan.plan
        if decision is None or decided is None:
            raise WaitingError(WAITS)
        data = {"verdict": decision.verdict.value, "plan": decided.model_dump(mode="json"), "words": decision.words}
        return ToolResult(success=True, content=_words_on(decision, decided), metadata=data)

    @property
    def _spent(self) -> float | None:
        return None if self.run_state.cost_usd is None else round(self.run_state.cost_usd, 6)

    def _check(self, arguments: ProposePlanArguments) -> None:
        if self._plan.is_approved:
            raise ToolError(
                own("the plan is approved; {way}", way=own(FURTHER if self.asked.has_assessments else GO_ON))
            )
        self._check_helpers(arguments.questions)
        count = self.asked.initial_queries
        if count is not None and len(arguments.questions) != count:
            words = "this run wants {count} sub-questions, and the plan has {given}"
            raise ToolError(own(words, count=count, given=len(arguments.questions)))

    def _check_helpers(self, questions: Sequence[QuestionPart]) -> None:
        helpers = [role.name for role in helpers_in(self.roles) if role.name not in self._writers]
        for number, one in enumerate(questions, 1):
            if one.helper not in helpers:
                words = "sub-question {number} names the helper {name}; there are: {helpers}"
                raise ToolError(own(words, number=number, name=repr(one.helper), helpers=codes(helpers)))

    def _made(self, arguments: ProposePlanArguments) -> Plan:
        return Plan(
            understanding=arguments.understanding,
            questions=self._numbered([_question(one) for one in arguments.questions]),
            enough_when=arguments.enough_when,
        )

    def _numbered(self, questions: Sequence[SubQuestion]) -> tuple[SubQuestion, ...]:
        """Return questions with ids that no other question has, and their estimated costs."""
        return numbered(questions, self._plan.questions, self.cost_of)

    async def assess(self, arguments: AssessRoundArguments, call: str) -> ToolResult:
        """Record how far each sub-question is after a round.

        Raises:
            ToolError: The assessment does not fit the plan, or there is nothing to assess.
        """
        before = self._plan.assessments
        if not before or before[-1].call != call:
            self._check_assessment(arguments)
            await self.record(self._assessment(arguments, call))
        open_ones = [one.question.id for one in self._plan.unanswered]
        data = {"open": open_ones, "round": len(self._plan.assessments)}
        words = "Recorded. Not answered yet: {ids}." if open_ones else "Recorded. All sub-questions are answered."
        return ToolResult(
            success=True, content=render(own(words, ids=codes(open_ones)), self._what_next()), metadata=data
        )

    def _check_assessment(self, arguments: AssessRoundArguments) -> None:
        questions, given = self._plan.questions, [one.id for one in arguments.questions]
        if not questions:
            raise ToolError(own("there is no plan yet: call {name} first", name=code(PROPOSE_PLAN)))
        lead = self.run_state.agents[ORCHESTRATOR]
        if any(one.call.name == CALL_AGENT for one in lead.calls()):
            raise ToolError(own("assess a round in a turn of its own, when its helpers have answered"))
        unknown = [one for one in given if one not in questions]
        if unknown:
            raise ToolError(
                own("no sub-question has the id {ids}; there are: {all}", ids=str(unknown[0]), all=codes(questions))
            )
        missing = [one.question.id for one in self._plan.unanswered if one.question.id not in given]
        if missing:
            raise ToolError(own("assess these sub-questions, too: {ids}", ids=codes(missing)))
        unsettled = [
            one.id
            for one in arguments.questions
            if one.state is not AnswerState.ANSWERED and not one.would_settle.strip()
        ]
        if unsettled:
            raise ToolError(own("say what would settle these (`would_settle`): {ids}", ids=codes(unsettled)))
        self._check_helpers(arguments.further)

    def _assessment(self, arguments: AssessRoundArguments, call: str) -> RoundAssessed:
        seen = {source for one in self._plan.assessments for source in one.new_sources}
        return RoundAssessed(
            agent=ORCHESTRATOR,
            call=call,
            number=len(self._plan.assessments) + 1,
            is_interesting=arguments.is_interesting,
            questions=tuple(
                QuestionAssessment(question=one.id, state=one.state, finding=one.finding, would_settle=one.would_settle)
                for one in arguments.questions
            ),
            further=self._numbered([_question(one) for one in arguments.further]),
            new_sources=tuple(source for source in self.run_state.sources if source not in seen),
        )

    def _what_next(self) -> ModelText:
        """Return what follows from an assessment, where the settings decide it."""
        if self._is_over:
            return own("No further round: have the report written from what there is, then finish.")
        return own("")

    @property
    def _is_over(self) -> bool:
        """Whether the rounds are used up, or too many in a row found nothing of interest."""
        most, empty = self.asked.max_rounds, self.asked.max_empty_rounds
        has_enough = most is not None and len(self._plan.rounds(self._writers)) >= most
        return has_enough or (empty is not None and self._plan.uninteresting >= empty)

    async def take_decision(self, decision: PlanDecision | None, message: str) -> str:
        """Record what the user decided about the plan that waits; return the message that is left.

        Args:
            decision: What was decided; None: a message counts as a wish for another plan.
            message: A message of the user.

        Raises:
            ConfigError: No plan waits, or an edited plan cannot be used.
        """
        if not self._plan.is_waiting:
            if decision is not None:
                hint = f"its state: explorer show {self.run_state.run_id}"
                raise ConfigError("no plan of this run waits for a decision", hint=hint)
            return message
        if message and (decision is None or decision.verdict is PlanVerdict.REJECTED):
            decision, message = PlanDecision.reject(message), ""
        if decision is not None:
            edited = decision.plan and self._as_edited(decision.plan)
            await self.record(PlanDecided(verdict=decision.verdict, words=decision.words, plan=edited))
        return message

    def _as_edited(self, plan: Plan) -> Plan:
        known = {role.name for role in helpers_in(self.roles)} - self._writers
        # A question without a helper leaves the choice to the orchestrator.
        wrong = sorted({one.helper for one in plan.questions if one.helper} - known)
        if wrong:
            hint = f"helpers are: {', '.join(sorted(known))}"
            raise ConfigError(f"the edited plan names the helper {wrong[0]!r}, which is not there", hint=hint)
        return plan.model_copy(update={"questions": self._numbered(plan.questions)})

    def refuse(self, state: AgentState, call: ToolCall) -> ToolError | None:
        """Return why a call of the orchestrator has to wait for a plan or an assessment; None: it does not."""
        if state.agent != ORCHESTRATOR or self.budget.winding_down or call.name not in {CALL_AGENT, FINISH}:
            return None
        offered = {tool.name for tool in self.run_state.prefixes[state.role].tools}
        if call.name == FINISH or self._role(call) in self._writers:
            return self._unassessed(state, offered)
        return self._refused(state, call, offered)

    def _refused(self, state: AgentState, call: ToolCall, offered: set[str]) -> ToolError | None:
        """Return why a helper that explores cannot be called now."""
        turn = f"{ORCHESTRATOR}.t{state.steps}"
        if PROPOSE_PLAN in offered and not self._plan.is_approved:
            return ToolError(own("no plan is approved yet: call {name} first", name=code(PROPOSE_PLAN)))
        if late := self._unassessed(state, offered):
            return late
        if turn not in self._plan.rounds(self._writers) and self._is_over:
            words = (
                "refused: no further round, {count} were made; have the report written from what there is, then finish"
            )
            return ToolError(own(words, count=len(self._plan.rounds(self._writers))))
        return self._without_question(state, call) if PROPOSE_PLAN in offered else None

    def _role(self, call: ToolCall) -> str:
        """Return the role that a call gives a task to."""
        arguments = call.arguments or {}
        earlier = self.run_state.agents.get(str(arguments.get("agent_id") or ""))
        return earlier.role if earlier is not None else str(arguments.get("agent_type"))

    def _unassessed(self, state: AgentState, offered: set[str]) -> ToolError | None:
        """Return why a call has to wait until the round before it is assessed."""
        turn = f"{ORCHESTRATOR}.t{state.steps}"
        rounds = set(self._plan.rounds(self._writers))
        if ASSESS_ROUND not in offered or not any(one != turn and one in rounds for one in self._plan.unassessed):
            return None
        return ToolError(own("assess the round before you continue: call {name}", name=code(ASSESS_ROUND)))

    def _without_question(self, state: AgentState, call: ToolCall) -> ToolError | None:
        """Return what is wrong with the sub-question that a task is for, or with the first round."""
        questions = self._plan.questions
        if (call.arguments or {}).get("question_id") not in questions:
            return ToolError(own("say in `question_id` which sub-question it works on: {ids}", ids=codes(questions)))
        turn, plan = f"{ORCHESTRATOR}.t{state.steps}", self._plan.plan
        if self.asked.initial_queries is None or plan is None or self._plan.rounds(self._writers) not in ([], [turn]):
            return None
        asked = {(one.call.arguments or {}).get("question_id") for one in state.calls()}
        missing = [one.id for one in plan.questions if one.id not in asked]
        if not missing:
            return None
        words = (
            "the first round looks up all sub-questions at the same time: call helpers for {ids} in the same turn, too"
        )
        return ToolError(own(words, ids=codes(missing)))

    def review(self, state: AgentState, decision: Decision | None) -> Decision | None:
        """End the orchestrator whose plan was rejected, or whose rounds all found nothing of interest."""
        if state.agent != ORCHESTRATOR or state.open_turn is not None or isinstance(decision, AgentFinished):
            return decision
        plan = self._plan
        if plan.decision is not None and plan.decision.verdict is PlanVerdict.REJECTED and not plan.decision.words:
            return ending(state, Status.PARTIAL, REJECTED, "", EndCause.PLAN_REJECTED)
        empty = self.asked.max_empty_rounds
        if empty is not None and plan.uninteresting >= empty and plan.uninteresting == len(plan.assessments):
            return ending(state, Status.COMPLETE, nothing_words(plan.uninteresting), "", EndCause.FOUND_NOTHING)
        return decision


def nothing_words(rounds: int) -> str:
    """Return why an exploration ended that found nothing of interest."""
    return (
        f"{rounds} rounds in a row found nothing of interest" if rounds > 1 else "the round found nothing of interest"
    )


PLANNING = (
    "Propose the plan, in a turn of its own: required before the first helper starts (a writer needs none). "
    "Tasks then name their sub-question (`question_id`)."
)
ASSESSING = (
    "Assess a round, in a turn of its own, once its helpers have answered: required before the next helper starts "
    "and before you finish. What you record is shown to the user, and the report ends with what stayed open."
)
FURTHER: LiteralString = "add what came up with assess_round"
GO_ON: LiteralString = "continue with it"


def _question(part: QuestionPart) -> SubQuestion:
    return SubQuestion(question=part.question, sources=tuple(part.sources), helper=part.helper, lookups=part.lookups)


def numbered(
    questions: Sequence[SubQuestion], others: Mapping[str, SubQuestion], cost_of: Callable[[str, int], float | None]
) -> tuple[SubQuestion, ...]:
    """Return questions with ids that no other question has, and their estimated costs."""
    kept, next_id = list[SubQuestion](), 1
    taken = {one.id for one in questions} | others.keys()
    for one in questions:
        while not one.id and f"q{next_id}" in taken:
            next_id += 1
        name = one.id or f"q{next_id}"
        taken.add(name)
        kept.append(one.model_copy(update={"id": name, "cost_usd": cost_of(one.helper, one.lookups)}))
    return tuple(kept)


def _words_on(decision: PlanDecided, plan: Plan) -> ModelText:
    """Return what was decided about a plan, as the orchestrator reads it."""
    listed = block("\n".join(f"{one.id} ({one.helper}): {one.question}" for one in plan.questions), WrittenBy.MODEL)
    if decision.verdict is PlanVerdict.REJECTED:
        if not decision.words:
            return own("The user rejected the plan. The run ends.")
        return own(
            "The user wants another plan: {words}\nCall {name} again.",
            words=by_user(decision.words),
            name=code(PROPOSE_PLAN),
        )
    if decision.verdict is PlanVerdict.EDITED:
        words = "The user changed the plan. It is approved as it is here, and you follow it:\n{plan}"
        return own(words, plan=listed)
    return own("The plan is approved. Its sub-questions:\n{plan}", plan=listed)


def check_planning(resources: RunResources) -> None:
    """Check that the plan that the settings ask for can be.

    Raises:
        ConfigError: It cannot.
    """
    asked, roles = resources.settings, resources.roles
    if asked.has_plan and resources.lean:
        hint = "leave out --plan and --reflect, or take the whole team: --no-lean"
        raise ConfigError("lean mode has one agent and no plan", hint=hint)
    places = asked.limits.max_agents - bool(report_writers(roles))
    count = asked.initial_queries
    if count is not None and count > places:
        words = (
            f"{count} sub-questions at the same time need {count} helpers, and {places} are allowed next to the writer"
        )
        raise ConfigError(words, hint="allow more helpers: --max-agents N")


def planner_of(resources: RunResources, run_state: RunState, record: Append, budget: Budget) -> Planner:
    """Return what holds a run to its plan."""
    settings = resources.settings

    def cost_of(role: str, lookups: int) -> float | None:
        ref = resources.choice.models.get(role)
        if ref is None or resources.own_client is not None or known_cost(ref, settings, 1, 1) is None:
            return None
        cost = context_policy(ref, settings).cost
        return 0.0 if cost is None else estimated_cost(cost, lookups)

    return Planner(settings, run_state, record, budget, resources.roles, cost_of)
