"""What the headers of an answer say about time."""

import time
from email.utils import parsedate_to_datetime

from explorer.sources.http.fetched import FetchLimits

LEAST_KEEP_S = 300.0
"""Of a page, whatever it says of itself: agents come back to a page within minutes, and shall see the same."""


def retry_after_s(value: str) -> float | None:
    """Seconds from a Retry-After header in either of its two forms."""
    if not value or value.isdecimal():
        return float(value) if value else None
    try:
        return max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except ValueError:
        return None


def keep_s(cache_control: str, limits: FetchLimits) -> float:
    """Seconds for which a Cache-Control header lets an answer be kept, within our own bounds."""
    parts = (part.partition("=") for part in cache_control.lower().split(","))
    directives = {name.strip(): value.strip(' "') for name, _, value in parts}
    if "no-store" in directives:
        return 0.0
    age = "0" if "no-cache" in directives else directives.get("max-age", "")
    age_s = float(age) if age.isdecimal() else limits.keep_s
    return min(max(age_s, LEAST_KEEP_S), limits.keep_s)
