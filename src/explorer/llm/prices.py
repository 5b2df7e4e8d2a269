"""What tokens cost, after the price list of `genai-prices`."""

from typing import Any

from explorer.messages import Usage
from explorer.settings import Price

PRICED_PROVIDERS = frozenset({"anthropic", "openai"})
"""Providers whose prices hold for their own models; other servers set their own."""

_MILLION = 1_000_000


def cost_usd(model: str, provider: str, usage: Usage, override: Price | None) -> float | None:
    """Return what a turn cost; None when no price is known.

    Args:
        model: The model's name, without the provider's prefix.
        provider: `anthropic` or `openai`; anything else has no known price.
        usage: Normalised, so that `input_tokens` includes cached ones.
        override: The user's own price, used when the list has none.
    """
    read = min(usage.cache_read_tokens, usage.input_tokens)
    written = min(usage.cache_write_tokens, usage.input_tokens - read)
    tokens = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": read,
        "cache_write_tokens": written,
    }
    listed = _listed_usd(model, provider, {name: count for name, count in tokens.items() if count})
    if listed is not None or override is None:
        return listed
    return (usage.input_tokens * override.input_usd + usage.output_tokens * override.output_usd) / _MILLION


def max_cost_usd(
    model: str, provider: str, input_tokens: int, output_tokens: int, override: Price | None
) -> float | None:
    """Return the most that so many tokens can cost, for reservations; None when no price is known.

    The worst case is that nothing is read from the cache and everything is written to it.
    """
    plain = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    written = plain.model_copy(update={"cache_write_tokens": input_tokens})
    costs = [cost_usd(model, provider, case, override) for case in (plain, written)]
    return max((cost for cost in costs if cost is not None), default=None)


def _listed_usd(model: str, provider: str, tokens: dict[str, Any]) -> float | None:
    if provider not in PRICED_PROVIDERS:
        return None
    import genai_prices  # noqa: PLC0415 - the list is slow to import

    try:
        price = genai_prices.calc_price(genai_prices.Usage(**tokens), model, provider_id=provider)
    except (LookupError, ValueError):
        return None
    return float(price.total_price)


def window_tokens(model: str, provider: str) -> int | None:
    """Return how many tokens a model's window holds; None when that is not known."""
    if provider not in PRICED_PROVIDERS:
        return None
    from genai_prices import data_snapshot  # noqa: PLC0415 - the list is slow to import

    try:
        _, found = data_snapshot.get_snapshot().find_provider_model(model, None, provider, None)
    except LookupError:
        return None
    return found.context_window
