"""The limits of a run."""

from typing import Annotated, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from explorer.schema.setting import (
    MONEY_OR_NONE,
    TIME_OR_NONE,
    TOKENS_OR_NONE,
    WHOLE,
    WHOLE_OR_NONE,
    WHOLE_OR_ZERO,
    Flag,
    Group,
    Setting,
    WithoutTrust,
)

DEFAULT_COST_USD = 5.0
"""Default limit for one question or follow-up."""
DEFAULT_TOKENS = 2_000_000
"""What $5 buys of a balanced model at $2 in and $10 out per million tokens, 95 % of them input: 2.08 million."""
MORE = "default-limits-of-money-and-tokens"


class Limits(BaseModel):
    """The limits of a run. None: no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_steps: Annotated[
        int | None,
        Setting(
            "EXPLORER_MAX_STEPS",
            WHOLE_OR_NONE,
            "Maximum model turns of all agents",
            Group.LIMITS,
            flags=(Flag("--max-steps", "N"),),
            without_trust=WithoutTrust.LOWERS,
        ),
    ] = Field(default=300, ge=1)
    max_cost_usd: Annotated[
        float | None,
        Setting(
            "EXPLORER_MAX_COST",
            MONEY_OR_NONE,
            "Maximum total cost of a question in US dollars",
            Group.LIMITS,
            flags=(Flag("--max-cost", "USD"),),
            key="limits.max_cost",
            default="5 where prices are known",
            anchor=MORE,
            without_trust=WithoutTrust.LOWERS,
        ),
    ] = Field(default=None, gt=0)
    """Not set: the default of `run/resources.py`, which depends on the models; None is no limit."""
    max_tokens: Annotated[
        int | None,
        Setting(
            "EXPLORER_MAX_TOKENS",
            TOKENS_OR_NONE,
            "Maximum total input and output tokens",
            Group.LIMITS,
            flags=(Flag("--max-tokens", "N"),),
            default="2 million where a price is not known",
            anchor=MORE,
            without_trust=WithoutTrust.LOWERS,
        ),
    ] = Field(default=None, ge=1)
    """Not set: the default of `run/resources.py`, which depends on the models; None is no limit."""
    max_tool_calls: Annotated[
        int | None,
        Setting(
            "EXPLORER_MAX_TOOL_CALLS",
            WHOLE_OR_NONE,
            "Maximum tool calls of all agents",
            Group.LIMITS,
            flags=(Flag("--max-tool-calls", "N"),),
            without_trust=WithoutTrust.LOWERS,
        ),
    ] = Field(default=None, ge=1)
    max_time_s: Annotated[
        float | None,
        Setting(
            "EXPLORER_MAX_TIME",
            TIME_OR_NONE,
            "Maximum time: `90`, `90s`, `10m`, `2h`",
            Group.LIMITS,
            flags=(Flag("--max-time", "TIME"),),
            key="limits.max_time",
            default="1h",
            without_trust=WithoutTrust.LOWERS,
        ),
    ] = Field(default=3600, gt=0)
    """Wall-clock seconds of one session of the run."""
    max_outage_s: Annotated[
        float | None,
        Setting(
            "EXPLORER_MAX_OUTAGE",
            TIME_OR_NONE,
            "How long to wait for a model that stopped answering, before the run pauses; one that never answered fails"
            " sooner",
            Group.LIMITS,
            flags=(Flag("--max-outage", "TIME"),),
            key="limits.max_outage",
            default="10m",
            anchor="outages",
            without_trust=WithoutTrust.LOWERS,
        ),
    ] = Field(default=600, gt=0)
    max_agents: Annotated[
        int,
        Setting(
            "EXPLORER_MAX_AGENTS",
            WHOLE_OR_ZERO,
            "Maximum helpers of a run; 0: the orchestrator works alone",
            Group.LIMITS,
            flags=(Flag("--max-agents", "N"),),
            without_trust=WithoutTrust.LOWERS,
        ),
    ] = Field(default=40, ge=0)
    max_parallel_agents: Annotated[
        int,
        Setting(
            "EXPLORER_MAX_PARALLEL_AGENTS",
            WHOLE,
            "Maximum helpers at the same time",
            Group.LIMITS,
            without_trust=WithoutTrust.LOWERS,
        ),
    ] = Field(default=8, ge=1)


DEPENDENT_LIMITS = frozenset({"max_cost_usd", "max_tokens"})
"""Limits whose default depends on the models of a run."""


def claimed_limits(recorded: object) -> Limits:
    """Return the limits that a journal has; the defaults where they are none, as one from elsewhere may claim anything.

    Args:
        recorded: Values by name; unknown names are left out.
    """
    values = cast("dict[str, object]", recorded) if isinstance(recorded, dict) else dict[str, object]()
    try:
        return Limits.model_validate({name: value for name, value in values.items() if name in Limits.model_fields})
    except ValidationError:
        return Limits()
