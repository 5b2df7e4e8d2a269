"""Points in the past as a model writes them: `2026-08-01`, `24h`, `7d`, `2w`."""

import re
from datetime import UTC, datetime, timedelta

from explorer.errors import ToolError

UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
AGO = re.compile(r"(\d{1,5})\s*([hdw])[a-z]*", re.IGNORECASE)


def since_time(text: str, now: datetime) -> datetime | None:
    """The moment meant, seen from `now`; None when nothing is given.

    Raises:
        ToolError: It is neither a date nor a span.
    """
    words = text.strip()
    if not words:
        return None
    if match := AGO.fullmatch(words):
        return now - int(match[1]) * UNITS[match[2].lower()]
    try:
        moment = datetime.fromisoformat(words)
    except ValueError as error:
        raise ToolError(
            f'since="{words[:40]}" is not understood: write a date like 2026-08-01, or a span like 24h or 7d.'
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
