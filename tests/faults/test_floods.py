"""A server that sends without end, or what swells, costs bounded memory and ends with an error that says so."""

import pytest

from explorer.llm.model_list import list_models
from explorer.schema.errors import ModelError
from faults.flood_table import MOST_MB, MOST_S, Measured, measure
from faults.floods import FAILED, FLOODS, WHOLE, Flood, drip, flooding, many_bytes
from llm.conversations import BOTH, CHAT
from llm.test_conversations import server_for

CASES = [pytest.param(name, wire, id=f"{name}-{wire}") for name in FLOODS for wire in BOTH]


@pytest.mark.slow
@pytest.mark.timeout(MOST_S + 30)
@pytest.mark.parametrize(("name", "wire"), CASES)
def test_a_flood_ends_at_a_bound(name: str, wire: str) -> None:
    """The process that asked stays under 300 MB, and its error names the bound and the server."""
    measured = measure(FLOODS[name], wire)
    assert not measured.problem(FLOODS[name]), measured


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flood", "says"),
    [
        (Flood(many_bytes(b'{"data": ['), "", WHOLE), "4,194,304 bytes in one answer"),
        (Flood(many_bytes(), "", FAILED), "status 500"),
        (Flood(drip(b" "), "", WHOLE), "did not come within 1 s"),
    ],
    ids=["endless", "endless error", "drip"],
)
async def test_a_list_of_models_ends_at_a_bound(flood: Flood, says: str) -> None:
    """The question that comes before all others is bounded in bytes and in time, too."""
    with flooding(flood, CHAT) as url, pytest.raises(ModelError, match=says):
        await list_models(url, timeout_s=1 if "within" in says else 30)


async def test_a_list_of_models_leads_nowhere_else() -> None:
    """The key goes to no server that another one names."""
    with server_for(CHAT) as other:
        moved = f"HTTP/1.1 307 Moved\r\nlocation: {other.url}/models\r\ncontent-length: 0\r\n"
        flood = Flood(lambda _wire: iter(()), "", moved.encode())
        with flooding(flood, CHAT) as url, pytest.raises(ModelError, match="redirects to another server"):
            await list_models(url)


def test_the_table_finds_what_is_wrong() -> None:
    """Too much memory, a wrong error and none at all are each a problem, so that no row passes by chance."""
    flood = Flood(many_bytes(), "status 500")
    fine = Measured("overloaded", "X at http://127.0.0.1:1 is failing (status 500)", 90, 1)
    assert not fine.problem(flood)
    assert "MB" in Measured(fine.fault, fine.message, MOST_MB, 1).problem(flood)
    assert "not the expected" in Measured("transport", "no connection to 127.0.0.1", 90, 1).problem(flood)
    assert "not the expected" in Measured("", "status 500 at 127.0.0.1", 90, 1).problem(flood)
    assert "names no server" in Measured("overloaded", "status 500", 90, 1).problem(flood)
