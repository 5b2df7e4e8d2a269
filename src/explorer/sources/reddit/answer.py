"""What an answer of Reddit's API means, in words of ours: its own are from outside, and are not repeated."""

import json
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast

import httpx2

from explorer.sources.reddit.routes import RedditRefusedError, RouteClosedError

MOST_SECONDS = 1e6
CLOSED_S = 600.0
"""A door that shows a web page instead of data does not open within minutes."""
REASON = re.compile(r"[A-Za-z_]{1,40}")
REFUSALS = {
    "private": "it is private",
    "quarantined": "it is quarantined, and opens only to readers who agree to that with an account",
    "banned": "it was banned",
    "gold_only": "it is for paying members",
    "gated": "it is gated, and opens only to readers who agree to that with an account",
}


@dataclass(frozen=True)
class RedditResponse:
    """One answer, read whole."""

    status: int
    headers: httpx2.Headers
    body: bytes

    @property
    def is_json(self) -> bool:
        """Whether it calls itself so: errors come as pages too."""
        return "json" in self.headers.get("content-type", "").lower()

    @property
    def reason(self) -> str:
        """Reddit's own code for a refusal, if it gives one."""
        try:
            whole: object = json.loads(self.body) if self.is_json else None
        except (ValueError, RecursionError):
            return ""
        value = cast("dict[str, object]", whole).get("reason") if isinstance(whole, dict) else ""
        return value if isinstance(value, str) and REASON.fullmatch(value) else ""


def token_problem(status: int) -> str:
    """Why no token came."""
    if status in {HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return f"the credentials were refused (status {status})"
    return f"it gave no token (status {status})"


def judged(answer: RedditResponse) -> bytes:
    """The body, if it is what was asked for.

    Raises:
        RouteClosedError: It is nothing of Reddit's API.
        RedditRefusedError: It is a refusal.
    """
    status, reason = answer.status, answer.reason
    if status < HTTPStatus.MULTIPLE_CHOICES:
        if not answer.is_json:
            raise RouteClosedError(f"it sent a web page instead of data (status {status})")
        return answer.body
    if status < HTTPStatus.BAD_REQUEST:
        if "/subreddits/search" in answer.headers.get("location", ""):
            raise RedditRefusedError("there is no such subreddit")
        raise RouteClosedError(f"it leads elsewhere (status {status})")
    if status in {HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND} and answer.is_json:
        unnamed = "there is no such thing" if status == HTTPStatus.NOT_FOUND else "it is not open to all readers"
        raise RedditRefusedError(f"{REFUSALS.get(reason, unnamed)} (status {status})")
    if status == HTTPStatus.BAD_REQUEST and answer.is_json:
        raise RedditRefusedError(f"the request makes no sense to it (status 400{f', {reason}' if reason else ''})")
    raise RouteClosedError(_closed_words(status), for_s=CLOSED_S if status == HTTPStatus.FORBIDDEN else 0.0)


def _closed_words(status: int) -> str:
    if status == HTTPStatus.FORBIDDEN:
        return "it shows a web page instead of data to readers without an account (status 403)"
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return "it asks to send fewer requests (status 429)"
    if status == HTTPStatus.UNAUTHORIZED:
        return "its token was refused (status 401)"
    kind = "its server failed" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "it refused"
    return f"{kind} (status {status})"


def number_in(text: str) -> float | None:
    """A number of a header, which Reddit writes as `597.0`; None for anything else."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < MOST_SECONDS else None
