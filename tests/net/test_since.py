"""Points in the past as a model writes them."""

from datetime import UTC, datetime

import pytest

from explorer.errors import ToolError
from explorer.net.since import since_time

NOW = datetime(2026, 8, 10, 20, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-08-01", datetime(2026, 8, 1, tzinfo=UTC)),
        ("2026-08-01T10:00:00Z", datetime(2026, 8, 1, 10, tzinfo=UTC)),
        ("24h", datetime(2026, 8, 9, 20, 0, tzinfo=UTC)),
        (" 7 days ", datetime(2026, 8, 3, 20, 0, tzinfo=UTC)),
        ("2W", datetime(2026, 7, 27, 20, 0, tzinfo=UTC)),
        ("", None),
    ],
)
def test_since_time(text: str, moment: datetime | None) -> None:
    """Dates and spans are understood, nothing is nothing."""
    assert since_time(text, NOW) == moment


@pytest.mark.parametrize("text", ["yesterday", "24", "h", "2026-13-01", "7m"])
def test_not_understood(text: str) -> None:
    """Anything else is told, with what would be understood."""
    with pytest.raises(ToolError, match="like 24h or 7d"):
        since_time(text, NOW)
