"""The limits of a fetch, and its answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import LiteralString

from explorer.text.rendering import ModelText, own

DAY_S = 24 * 3600.0
STATUS_WORDS: Mapping[int, LiteralString] = {
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
    """The limits of one fetch."""

    seconds: float = 30.0
    """The seconds for connecting, redirects and retries together, without the wait for the host."""
    body_bytes: int = 5_000_000
    """The largest body after decompression; the rest is cut off."""
    in_flight: int = 2
    """The number of parallel requests to one host; one, where politeness applies."""
    retries: int = 2
    """The number of further attempts after a broken connection, 429 or 5xx."""
    is_service: bool = False
    """Whether it is an interface for programs: robots.txt and pauses between requests do not apply."""
    keep_s: float = DAY_S
    """Seconds for which the workspace's cache may serve an answer; a page's own max-age can shorten them."""


PAGE_LIMITS = FetchLimits()
API_LIMITS = FetchLimits(seconds=20.0, body_bytes=32_000_000, in_flight=16, is_service=True, keep_s=60.0)
"""Limits for interfaces. Their answers are out of date after a minute: a run resumed at once gets the same ones."""


@dataclass(frozen=True)
class Fetched:
    """An answer with any status."""

    url: str
    """The address after redirects."""
    status: int
    content_type: str
    """The type that the server named, with parameters; may be empty."""
    body: bytes
    is_truncated: bool = False
    """Whether the byte limit cut the body."""
    retry_after_s: float | None = None
    """The seconds that the server asked to wait, if it did."""
    fetched_at: datetime | None = None
    """The time when the body came over the network, also for an answer from a cache."""
    from_cache: bool = False
    """Whether it came from a cache."""
    keep_s: float = 0.0
    """Seconds for which the server lets it be kept, within the limits; 0: it is not kept on disk."""

    @property
    def kept_since(self) -> datetime | None:
        """The time when it was fetched, for an answer from a cache; None for a new one."""
        return self.fetched_at if self.from_cache else None

    @property
    def problem(self) -> ModelText:
        """The failure that the status stands for, as text; empty below 400."""
        if self.status < HTTPStatus.BAD_REQUEST:
            return own("")
        kind = "the server failed" if self.status >= HTTPStatus.INTERNAL_SERVER_ERROR else "it was refused"
        why = STATUS_WORDS.get(self.status, kind)
        return own("{why} (status {status})", why=own(why), status=self.status)

    def serves(self, limits: FetchLimits) -> bool:
        """Return whether it is as long as a fetch within these limits would be."""
        return not self.is_truncated or len(self.body) >= limits.body_bytes


LEAST_KEEP_S = 300.0
"""The shortest time in seconds for which a page is kept: agents who read it again get the same page."""


def keep_s(cache_control: str, limits: FetchLimits) -> float:
    """Return the seconds for which a Cache-Control header lets an answer be kept, within the limits."""
    parts = (part.partition("=") for part in cache_control.lower().split(","))
    directives = {name.strip(): value.strip(' "') for name, _, value in parts}
    if "no-store" in directives:
        return 0.0
    age = "0" if "no-cache" in directives else directives.get("max-age", "")
    age_s = float(age) if age.isdecimal() else limits.keep_s
    return min(max(age_s, LEAST_KEEP_S), limits.keep_s)
