"""Limits hold at servers that report their usage falsely or not at all, and through kills."""

from pathlib import Path

import pytest

from faults.overshoot_table import KILLS, MODELS, PARTS, SERVERS, kill_again_and_again, run_to_its_limit

EVERYDAY = [
    ("openai", "no usage", "max_cost_usd"),
    ("openai-responses", "cut at the end", "max_cost_usd"),
    ("openai", "negative", "max_tokens"),
]
SLOW = [
    (wire, server, limit)
    for wire in MODELS
    for server in SERVERS
    for limit in ("max_cost_usd", "max_tokens", "max_steps", "max_tool_calls")
    if (wire, server, limit) not in EVERYDAY
]


@pytest.mark.parametrize(
    ("wire", "server", "limit"), [*EVERYDAY, *(pytest.param(*row, marks=pytest.mark.slow) for row in SLOW)]
)
async def test_a_limit_holds_by_the_bill_of_the_server(tmp_path: Path, wire: str, server: str, limit: str) -> None:
    """Neither what the server bills nor what the run books is more than the limit, with eight helpers at once."""
    found = await run_to_its_limit(wire, server, limit, tmp_path)
    assert found.billed <= 1.0
    assert 0.5 < found.booked <= 1.0


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("wire", "limit"), [("openai", "max_cost_usd"), ("anthropic", "max_tokens")])
def test_a_limit_holds_through_kills(tmp_path: Path, wire: str, limit: str) -> None:
    """A process that is killed with requests under way leaves behind what they may cost, and the next one counts it."""
    found = kill_again_and_again(wire, limit, tmp_path)
    assert 0 < found.billed <= found.booked <= 1.0, KILLS
    assert max(found.under_way) > PARTS
