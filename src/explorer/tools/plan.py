"""The tools of the plan: `propose_plan` before any helper starts, `assess_round` after each round."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from explorer.schema.plan import MAX_QUESTIONS, AnswerState
from explorer.schema.tool import Arguments, Tool, ToolContext, ToolResult

PROPOSE_PLAN = "propose_plan"
ASSESS_ROUND = "assess_round"
Words = Annotated[str, Field(min_length=1, max_length=1_000)]
MAX_LOOKUPS = 200


class PlanPart(BaseModel):
    """Base of the parts of arguments: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class QuestionPart(PlanPart):
    """A sub-question as a model plans it."""

    question: Words = Field(description="One thing that has to be known, as a question")
    sources: list[Words] = Field(min_length=1, max_length=10, description="Where the answer would be")
    helper: str = Field(description="The helper that looks it up")
    lookups: int = Field(ge=0, le=MAX_LOOKUPS, description="About how many searches and pages are enough")


class ProposePlanArguments(Arguments):
    """Arguments of `propose_plan`."""

    understanding: Words = Field(description="The question as you understand it, and the reading you chose")
    questions: list[QuestionPart] = Field(min_length=1, max_length=MAX_QUESTIONS)
    enough_when: Words = Field(description="What is enough for an answer")


class ProposePlanTool(Tool[ProposePlanArguments]):
    """`propose_plan`: records the plan, and waits where the user is to approve it."""

    name = PROPOSE_PLAN
    arguments = ProposePlanArguments
    activity = "planning {understanding}"
    is_parallel = False
    timeout_s = None

    def __init__(self, description: str, propose: Callable[[ProposePlanArguments, str], Awaitable[ToolResult]]) -> None:
        """Take what this run asks of a plan, and the function that records a plan for a call."""
        self.description = description
        self._propose = propose

    async def execute(self, arguments: ProposePlanArguments, context: ToolContext) -> ToolResult:
        """Propose the plan."""
        return await self._propose(arguments, context.call)


class AssessmentPart(PlanPart):
    """How far one sub-question is."""

    id: str = Field(description="Id of the sub-question, such as q1")
    state: AnswerState = Field(description="contradicted: sources contradict each other, or what was expected")
    finding: str = Field(default="", max_length=1_000, description="What is known, with ids of sources")
    would_settle: str = Field(default="", max_length=1_000, description="What would settle it, unless it is answered")


class AssessRoundArguments(Arguments):
    """Arguments of `assess_round`."""

    questions: list[AssessmentPart] = Field(min_length=1, description="Each sub-question that is not answered yet")
    is_interesting: bool = Field(description="Whether this round found anything that matters for the answer")
    further: list[QuestionPart] = Field(default=[], max_length=10, description="Sub-questions that came up")


class AssessRoundTool(Tool[AssessRoundArguments]):
    """`assess_round`: records how far each sub-question is after a round."""

    name = ASSESS_ROUND
    arguments = AssessRoundArguments
    activity = "assessing the round"
    is_parallel = False

    def __init__(self, description: str, assess: Callable[[AssessRoundArguments, str], Awaitable[ToolResult]]) -> None:
        """Take what this run asks of an assessment, and the function that records one for a call."""
        self.description = description
        self._assess = assess

    async def execute(self, arguments: AssessRoundArguments, context: ToolContext) -> ToolResult:
        """Record the assessment."""
        return await self._assess(arguments, context.call)
