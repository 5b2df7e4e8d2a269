"""What settings and roles say about models: how strong, with how much reasoning, at which price."""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How much a model is to reason, in the vendors' words; each model accepts some of them."""
EVERY_ROLE = "*"
"""The key in `effort` for all roles that are not named."""


class Tier(StrEnum):
    """The strength of model that a role asks for; each provider has a default per tier."""

    STRONG = "strong"
    BALANCED = "balanced"
    FAST = "fast"


class Price(BaseModel):
    """USD per million tokens, for models whose price is not known."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input_usd: float = Field(ge=0)
    output_usd: float = Field(ge=0)
