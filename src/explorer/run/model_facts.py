"""What a run knows of a model: its price, its window, and what was measured of it."""

from enum import StrEnum
from typing import NamedTuple
from urllib.parse import urlsplit

from explorer.agents.budget import WorstCost, no_cost
from explorer.agents.compaction import DEFAULT_WINDOW_TOKENS, LOCAL_WINDOW_TOKENS, ContextPolicy
from explorer.llm.models import OFFLINE, ModelRef
from explorer.llm.prices import cost_usd, max_cost_usd, window_tokens
from explorer.llm.profiles import ModelProfile, load_profile
from explorer.run.settings_parts import vendor_of
from explorer.schema.messages import Usage
from explorer.schema.model_options import Price
from explorer.schema.network import is_this_machine
from explorer.schema.settings import Settings

PRICED_TOKENS = 1_000
"""A short request: some prices rise with the length."""


class Pricing(StrEnum):
    """Kinds of prices of a model."""

    FREE = "free"
    """It runs on this machine, or its price is 0."""
    PRICED = "priced"
    UNKNOWN = "unknown"


def pricing_of(ref: ModelRef, settings: Settings) -> Pricing:
    """Return what is known of what a model costs; one on this machine without a price is free."""
    usd = known_cost(ref, settings, PRICED_TOKENS, PRICED_TOKENS)
    if usd is not None:
        return Pricing.PRICED if usd > 0 else Pricing.FREE
    return Pricing.FREE if is_local_model(ref, settings) else Pricing.UNKNOWN


def known_cost(ref: ModelRef, settings: Settings, input_tokens: int, output_tokens: int) -> float | None:
    """Return what so many tokens of a model cost at most, in USD; None when its price is not known."""
    if ref.provider == OFFLINE:
        return 0.0
    rates = _rates(ref, settings)
    return max_cost_usd(ref.name, rates.price_list, input_tokens, output_tokens, rates.price)


def list_price(ref: ModelRef, settings: Settings) -> Price | None:
    """Return the price of short requests without a cache, in USD per million tokens; None when it is not known."""
    if ref.provider == OFFLINE:
        return Price(input_usd=0.0, output_usd=0.0)
    usages = (Usage(input_tokens=PRICED_TOKENS), Usage(output_tokens=PRICED_TOKENS))
    rates = _rates(ref, settings)
    inward, outward = (cost_usd(ref.name, rates.price_list, usage, rates.price) for usage in usages)
    if inward is None or outward is None:
        return None
    times = 1_000_000 / PRICED_TOKENS
    return Price(input_usd=round(inward * times, 6), output_usd=round(outward * times, 6))


def worst_cost(ref: ModelRef, settings: Settings, *, is_shared: bool = False) -> WorstCost:
    """Return the most a request to a model can cost, as a function of its tokens; 0 where no price is known.

    Args:
        ref: The model.
        settings: The settings.
        is_shared: Whether limits of money may be shared with other runs, so that it counts without one of the run's.
    """
    if (settings.limits.max_cost_usd is None and not is_shared) or ref.provider == OFFLINE:
        # Nothing is held back for money then, and looking up a price takes longer than all else before a request.
        return no_cost
    rates = _rates(ref, settings)

    def worst(input_tokens: int, output_tokens: int) -> float:
        return max_cost_usd(ref.name, rates.price_list, input_tokens, output_tokens, rates.price) or 0.0

    return worst


class Rates(NamedTuple):
    """Where the price of a model is found."""

    price_list: str
    """The provider of the price list; empty: none."""
    price: Price | None
    """Price for a model that is on no list: its vendor's, else the user's."""


def _rates(ref: ModelRef, settings: Settings) -> Rates:
    vendor = vendor_of(ref, settings)
    if vendor is None:
        return Rates("", settings.price)
    return Rates(vendor.server.price_list, vendor.vendor.price(ref.name) or settings.price)


def window_of(ref: ModelRef, settings: Settings) -> int | None:
    """Return how many tokens a model's conversations are kept under; None for offline mode, which needs all of it."""
    if ref.provider == OFFLINE:
        return None
    assumed = LOCAL_WINDOW_TOKENS if is_local_model(ref, settings) else DEFAULT_WINDOW_TOKENS
    window = known_window(ref, settings) or settings.context_window or assumed
    return min(window, settings.context_window or window)


def context_policy(ref: ModelRef, settings: Settings) -> ContextPolicy:
    """Return when conversations with a model are shortened."""
    window = window_of(ref, settings)
    if window is None:
        return ContextPolicy(None)
    rates = _rates(ref, settings)

    def cost(usage: Usage) -> float:
        return cost_usd(ref.name, rates.price_list, usage, rates.price) or 0.0

    return ContextPolicy(window, settings.context_share, cost)


def known_window(ref: ModelRef, settings: Settings) -> int | None:
    """Return how many tokens a model's window holds, by its vendor or the price list; None when that is not known."""
    vendor = vendor_of(ref, settings)
    if vendor is None:
        return None
    profile = profile_of(ref, settings)
    measured = profile.window_tokens if profile else None
    return measured or vendor.vendor.window_tokens(ref.name) or window_tokens(ref.name, vendor.server.price_list)


def profile_of(ref: ModelRef, settings: Settings) -> ModelProfile | None:
    """Return what was measured of a model at its address; None where nothing was."""
    vendor = vendor_of(ref, settings)
    return load_profile(settings.state_dir, vendor.server.url, ref.name) if vendor else None


def is_local_model(ref: ModelRef, settings: Settings) -> bool:
    """Return whether a model's server is on this machine."""
    vendor = vendor_of(ref, settings)
    return vendor is not None and is_this_machine(urlsplit(vendor.server.url).hostname or "")
