"""The prices of tokens, by the price list of `genai-prices`."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from explorer.schema.messages import Usage
from explorer.schema.model_options import Price

_MILLION = 1_000_000


def cost_usd(model: str, provider: str, usage: Usage, override: Price | None) -> float | None:
    """Return the USD that a turn cost; None when no price is known.

    Args:
        model: The model's name, without the provider's prefix.
        provider: A provider of the price list; empty: none, since other servers set their own prices.
        usage: The normalised usage: `input_tokens` includes cached ones.
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
    """Return the most USD that so many tokens can cost, for reservations; None when no price is known.

    In the worst case nothing is read from the cache, and everything is written to it.
    """
    plain = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    written = plain.model_copy(update={"cache_write_tokens": input_tokens})
    costs = [cost_usd(model, provider, case, override) for case in (plain, written)]
    return max((cost for cost in costs if cost is not None), default=None)


def _listed_usd(model: str, provider: str, tokens: dict[str, int]) -> float | None:
    if not provider:
        return None
    prices = _prices_of(model, provider)
    if prices is None:
        return None
    given = tokens.get
    read, written, everything = given("cache_read_tokens", 0), given("cache_write_tokens", 0), given("input_tokens", 0)
    # A kind without a price of its own costs what plain input costs.
    kept = ((prices.cache_read_mtok, read), (prices.cache_write_mtok, written))
    apart = [(price, count) for price, count in kept if price is not None]
    plain = everything - sum(count for _, count in apart)
    kinds = [*apart, (prices.input_mtok, plain), (prices.output_mtok, given("output_tokens", 0))]
    return sum(_rate(price, everything) * count for price, count in kinds) / _MILLION


def _rate(price: Any, input_tokens: int) -> float:  # noqa: ANN401 - Decimal, or the list's own tiers
    """Return the USD per million tokens in a request with so much input."""
    if price is None:
        return 0.0
    tiers = getattr(price, "tiers", None)
    if tiers is None:
        return float(price)
    above = [tier.price for tier in tiers if input_tokens > tier.start]
    return float(above[-1] if above else price.base)


@lru_cache(maxsize=64)
def _prices_of(model: str, provider: str) -> Any:  # noqa: ANN401 - the list's own type, imported late
    """Return a model's prices in the list; None without any. Cached: a search of the list takes long."""
    try:
        return _listed(model, provider).get_prices(datetime.now(UTC))
    except (LookupError, ValueError):
        return None


def _listed(model: str, provider: str) -> Any:  # noqa: ANN401 - the list's own type, imported late
    """Return a model's entry in the list.

    Raises:
        LookupError: It has none.
    """
    from genai_prices import data_snapshot  # noqa: PLC0415 - the list is slow to import

    return data_snapshot.get_snapshot().find_provider_model(model, None, provider, None)[1]


def window_tokens(model: str, provider: str) -> int | None:
    """Return the tokens of a model's context window; None when it is not known."""
    try:
        return _listed(model, provider).context_window if provider else None
    except LookupError:
        return None
