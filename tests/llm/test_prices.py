import pytest

from explorer.llm.prices import cost_usd, max_cost_usd
from explorer.schema.messages import Usage
from explorer.schema.model_options import Price

OWN_PRICE = Price(input_usd=1, output_usd=2)
MILLION = 1_000_000


def test_a_known_model_has_a_price() -> None:
    """Input and output of a listed model cost what the list says."""
    usage = Usage(input_tokens=1000, output_tokens=1000)
    assert cost_usd("claude-opus-4-5", "anthropic", usage, None) == pytest.approx(0.005 + 0.025)


def test_cached_tokens_are_counted_once() -> None:
    """What was read from the cache is cheaper than plain input, what was written dearer."""
    plain, read, written = (
        cost_usd("claude-opus-4-5", "anthropic", Usage(input_tokens=1000, **cached), None)
        for cached in ({}, {"cache_read_tokens": 1000}, {"cache_write_tokens": 1000})
    )
    assert (plain, read, written) == pytest.approx((0.005, 0.0005, 0.00625))


@pytest.mark.parametrize(
    ("model", "provider"), [("gpt-6-luna", "other"), ("no-such-model", "openai"), ("offline", "offline")]
)
def test_an_unknown_price_is_said_to_be_unknown(model: str, provider: str) -> None:
    """No price is made up for unknown models and other servers; the user's own is used when there is one."""
    usage = Usage(input_tokens=MILLION, output_tokens=MILLION)
    assert cost_usd(model, provider, usage, None) is None
    assert max_cost_usd(model, provider, MILLION, MILLION, None) is None
    assert cost_usd(model, provider, usage, OWN_PRICE) == 3
    assert max_cost_usd(model, provider, MILLION, MILLION, OWN_PRICE) == 3


def test_the_list_goes_before_the_users_price() -> None:
    """The user's own price stands in only where the list has none."""
    usage = Usage(input_tokens=1000)
    assert cost_usd("claude-opus-4-5", "anthropic", usage, OWN_PRICE) == pytest.approx(0.005)


def test_the_worst_case_covers_every_case() -> None:
    """A reservation is at least what any mix of plain, read and written input comes to."""
    most = max_cost_usd("claude-opus-4-5", "anthropic", 1000, 500, None)
    for cached in ({}, {"cache_read_tokens": 400, "cache_write_tokens": 600}, {"cache_write_tokens": 1000}):
        cost = cost_usd("claude-opus-4-5", "anthropic", Usage(input_tokens=1000, output_tokens=500, **cached), None)
        assert cost is not None
        assert most is not None
        assert cost <= most


def test_odd_counts_do_no_harm() -> None:
    """More cached tokens than input, as odd servers report, still have a price."""
    usage = Usage(input_tokens=10, cache_read_tokens=500, cache_write_tokens=500)
    assert cost_usd("claude-opus-4-5", "anthropic", usage, None) is not None


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_every_listed_model_costs_what_the_list_itself_reckons(provider: str) -> None:
    """All models, with caches and without, on either side of the sizes from which some of them cost more."""
    from genai_prices import Usage as ListUsage  # noqa: PLC0415 - the list is slow to import
    from genai_prices import calc_price, data_snapshot  # noqa: PLC0415 - the same

    (listed,) = (one for one in data_snapshot.get_snapshot().providers if one.id == provider)
    compared = 0
    for model in listed.models:
        for tokens in (1_000, 250_000, 500_000):
            for read, written in ((0, 0), (tokens // 2, 0), (tokens // 4, tokens // 4)):
                usage = Usage(
                    input_tokens=tokens, output_tokens=700, cache_read_tokens=read, cache_write_tokens=written
                )
                counts = {name: count for name, count in usage.model_dump().items() if count}
                try:
                    expected = calc_price(ListUsage(**counts), model.id, provider_id=provider).total_price
                except (LookupError, ValueError):
                    continue
                assert cost_usd(model.id, provider, usage, None) == pytest.approx(float(expected)), (model.id, usage)
                compared += 1
    assert compared > 100
