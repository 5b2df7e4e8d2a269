"""The cost model of clearing, at list prices and by hand."""

from functools import partial

import pytest

from explorer.agents.compaction import ClearingPlan, UsageCost, is_material, saved_usd
from explorer.llm.prices import cost_usd
from explorer.schema.messages import Usage


def by_hand(usage: Usage) -> float:
    """One dollar a token: 10 to write, 1 to read; nothing else costs anything."""
    return usage.cache_write_tokens * 10.0 + usage.cache_read_tokens


def listed(model: str, provider: str) -> UsageCost:
    """What a model costs by the list."""
    found = partial(cost_usd, model, provider, override=None)
    assert found(Usage(input_tokens=1)) is not None, f"{model} is not on the list"
    return lambda usage: found(usage) or 0.0


def test_the_saving_is_what_is_no_longer_read_less_what_is_written_again() -> None:
    """100 tokens, of which 40 are cleared and 10 of them read again; 20 before them stay cached; 5 turns to come."""
    plan = ClearingPlan(tokens=100, before=20, freed=40, turns=5)
    carried = 5 * (100 - (60 + 10))
    written_again = (20 + 40 * 10) - 60
    read_again = 60 + 10 * 10
    assert saved_usd(plan, by_hand) == carried - written_again - read_again
    assert saved_usd(ClearingPlan(100, 100, 40, 0), by_hand) < 0


@pytest.mark.parametrize(
    ("model", "provider", "tokens", "turns", "expected"),
    [
        # A helper that read twenty long pages: keeping them costs cents.
        ("claude-opus-4-5", "anthropic", 120_000, 15, False),
        ("claude-haiku-4-5", "anthropic", 120_000, 15, False),
        ("gpt-5", "openai", 120_000, 15, False),
        # A conversation of hundreds of turns: it costs dollars.
        ("claude-opus-4-5", "anthropic", 150_000, 150, True),
        ("gpt-5", "openai", 200_000, 200, True),
        # Small, or nearly over: never.
        ("claude-opus-4-5", "anthropic", 20_000, 20, False),
        ("claude-opus-4-5", "anthropic", 150_000, 2, False),
    ],
)
def test_it_is_material_in_long_conversations_only(
    model: str,
    provider: str,
    tokens: int,
    turns: int,
    expected: bool,  # noqa: FBT001 - a table
) -> None:
    """At the vendors' own prices, with two thirds of a conversation cleared."""
    plan = ClearingPlan(tokens, tokens // 20, tokens * 6 // 10, turns)
    assert is_material(plan, listed(model, provider)) is expected


def test_a_model_without_a_price_is_never_cleared_for_money() -> None:
    """Nothing is saved where nothing is known to cost anything."""
    assert not is_material(ClearingPlan(900_000, 0, 800_000, 500), lambda _usage: 0.0)


def test_without_a_cache_the_same_conversation_is_cleared_sooner() -> None:
    """Where each turn pays in full for what it carries, clearing pays after a few turns."""
    plan = ClearingPlan(80_000, 4_000, 50_000, 12)

    def uncached(usage: Usage) -> float:
        return usage.input_tokens * 5e-6

    def cached(usage: Usage) -> float:
        return (usage.input_tokens - usage.cache_read_tokens * 0.9) * 5e-6

    assert (is_material(plan, uncached), is_material(plan, cached)) == (True, False)
