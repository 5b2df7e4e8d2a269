"""The limits a run has where its user set none: money where models have a price, tokens where it is not known."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from explorer.schema.limits import Limits

DEFAULT_COST_USD = 5.0
"""Of one question or follow-up."""
DEFAULT_TOKENS = 2_000_000
"""What $5 buys of a balanced model at $2 in and $10 out per million tokens, 95 % of them input: 2.08 million."""


class Pricing(StrEnum):
    """What is known of what a model costs."""

    FREE = "free"
    """It runs on this machine, or its price is 0."""
    PRICED = "priced"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class LimitsInForce:
    """The limits of a session."""

    limits: Limits
    origins: dict[str, str] = field(default_factory=dict[str, str])
    """By name, where those come from that the user did not set."""


def with_defaults(limits: Limits, pricings: Iterable[Pricing]) -> LimitsInForce:
    """Fill in the limits of money and tokens that were not set; one that was set, also to none, stays."""
    kinds = set(pricings)
    has_price, has_unknown = Pricing.PRICED in kinds, Pricing.UNKNOWN in kinds
    free = "default: no model here costs anything"
    wanted: dict[str, tuple[float | int | None, str]] = {
        "max_cost_usd": (DEFAULT_COST_USD, "default") if has_price else (None, free),
        "max_tokens": (DEFAULT_TOKENS, "default: the price of a model is not known") if has_unknown else (None, free),
    }
    if has_unknown and not has_price:
        wanted["max_cost_usd"] = (None, "default: no price is known; tokens are limited instead")
    if has_price and not has_unknown:
        wanted["max_tokens"] = (None, "default: money is limited instead")
    missing = {name: pair for name, pair in wanted.items() if name not in limits.model_fields_set}
    filled = limits.model_copy(update={name: value for name, (value, _) in missing.items()})
    return LimitsInForce(filled, {name: origin for name, (_, origin) in missing.items()})
