"""The settings of plans and rounds; `Settings` has them as its own."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from explorer.schema.setting import WHOLE, WHOLE_OR_NONE, Flag, Group, Setting, WithoutTrust, one_of

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
