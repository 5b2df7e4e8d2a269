"""What a fetch may use, and what it brings."""

from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus

DAY_S = 24 * 3600.0
STATUS_WORDS = {
    401: "it asks for a login",
    402: "it asks for payment",
    403: "access is refused",
    404: "there is no such page",
    410: "the page is gone",
    429: "it asks to send fewer requests",
    451: "it is blocked for legal reasons",
}


@dataclass(frozen=True)
class FetchLimits:
    """What one fetch may use."""

    seconds: float = 30.0
    """Of work: connecting, redirects and retries together, without the wait for a turn at the host."""
    body_bytes: int = 5_000_000
    """After decompression; what lies beyond is left out."""
    in_flight: int = 2
    """Requests to the same host at a time; one, where politeness holds."""
    retries: int = 2
    """Further attempts after a broken connection, 429 or 5xx."""
    is_service: bool = False
    """An interface made for programs: no robots.txt is asked for, and no pause kept between requests."""
    keep_s: float = DAY_S
    """Seconds for which an answer may be taken from the workspace's cache; a page's own max-age can shorten it."""


PAGE_LIMITS = FetchLimits()
API_LIMITS = FetchLimits(seconds=20.0, body_bytes=32_000_000, in_flight=16, is_service=True, keep_s=60.0)
"""Lists and numbers are out of date after a minute: a run resumed at once sees the same, one of tomorrow does not."""


@dataclass(frozen=True)
class Fetched:
    """An answer, whatever its status."""

    url: str
    """After redirects."""
    status: int
    content_type: str
    """As the server said it, parameters included; may be empty."""
    body: bytes
    is_truncated: bool = False
    """Whether the byte limit cut the body."""
    retry_after_s: float | None = None
    """Seconds the server asked to wait, if it did."""
    fetched_at: datetime | None = None
    """When the body came over the network, also if this answer is out of a cache."""
    from_cache: bool = False
    """Whether nothing was asked of the network for it."""
    keep_s: float = 0.0
    """Seconds for which the server lets it be kept, within the limits; 0: not on disk."""

    @property
    def kept_since(self) -> datetime | None:
        """When it was fetched, if it is out of a cache; None for an answer that just came."""
        return self.fetched_at if self.from_cache else None

    @property
    def problem(self) -> str:
        """What the status says went wrong, in words; empty below 400."""
        if self.status < HTTPStatus.BAD_REQUEST:
            return ""
        if self.status in STATUS_WORDS:
            return f"{STATUS_WORDS[self.status]} (status {self.status})"
        kind = "the server failed" if self.status >= HTTPStatus.INTERNAL_SERVER_ERROR else "it was refused"
        return f"{kind} (status {self.status})"

    def serves(self, limits: FetchLimits) -> bool:
        """Whether it is as long as a fetch within these limits would have brought."""
        return not self.is_truncated or len(self.body) >= limits.body_bytes


LEAST_KEEP_S = 300.0
"""Of a page, whatever it says of itself: agents come back to a page within minutes, and shall see the same."""


def keep_s(cache_control: str, limits: FetchLimits) -> float:
    """Seconds for which a Cache-Control header lets an answer be kept, within our own bounds."""
    parts = (part.partition("=") for part in cache_control.lower().split(","))
    directives = {name.strip(): value.strip(' "') for name, _, value in parts}
    if "no-store" in directives:
        return 0.0
    age = "0" if "no-cache" in directives else directives.get("max-age", "")
    age_s = float(age) if age.isdecimal() else limits.keep_s
    return min(max(age_s, LEAST_KEEP_S), limits.keep_s)
