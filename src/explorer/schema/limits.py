"""Limits: what a run may use up."""

from pydantic import BaseModel, ConfigDict, Field


class Limits(BaseModel):
    """What a run may use up. None: no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_steps: int | None = Field(default=300, ge=1)
    """Model turns of all agents together."""
    max_cost_usd: float | None = Field(default=None, gt=0)
    """Not set: the default of `run/resources.py`, which depends on the models; None is no limit."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Input and output tokens of all agents together. Not set: as with money."""
    max_tool_calls: int | None = Field(default=None, ge=1)
    """Calls of all agents together."""
    max_time_s: float | None = Field(default=3600, gt=0)
    """Wall-clock seconds of one life of the run."""
    max_outage_s: float | None = Field(default=600, gt=0)
    """For how many seconds a model that answers nobody is waited for, before the run is paused."""
    max_agents: int = Field(default=40, ge=0)
    """Helpers a run may start."""
    max_parallel_agents: int = Field(default=8, ge=1)


DEPENDENT_LIMITS = frozenset({"max_cost_usd", "max_tokens"})
"""Limits whose default depends on the models of a run."""
