"""Calls services with a key: bounded in seconds and bytes, repeated where that can help, never showing the key.

The host is the user's choice or the vendor's own, so a private one is allowed for this service. Redirects are not
followed, because the key would be sent along.
"""

import asyncio
import json
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlencode, urlsplit

from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError

from explorer.network.exchange import (
    MAX_RETRY_AFTER_S,
    Attempt,
    DamagedAnswerError,
    ExchangeError,
    HttpRequest,
    HttpResponse,
    Sender,
    with_retries,
)
from explorer.schema.errors import ToolError
from explorer.schema.messages import JsonObject
from explorer.sources.http.caller import Caller
from explorer.text.sanitize import single_line
from explorer.text.words import sentences

MAX_WORDS_CHARS = 300
MAX_REFUSAL_BYTES = 100_000
OK = 200
TOO_MANY = 429
SERVER_ERROR = 500
WORDY_FIELDS = ("message", "detail", "error", "error_message", "info", "readableMessage")
ANY_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True)
class ApiRules:
    """The limits for calls of one service."""

    seconds: float = 20.0
    """The seconds of one attempt, including its answer's body."""
    body_bytes: int = 8_000_000
    """The largest body after decompression; a longer answer is an error."""
    retries: int = 2
    """The number of further attempts after a broken connection, a short wait or a status of 500 or more."""
    in_flight: int = 4
    """The number of calls at a time."""
    gap_s: float = 0.0
    """The least seconds between the starts of two calls, for a service that asks for it; with one call at a time."""
    is_billed: bool = False
    """Whether each answer costs money: a request that may have been answered is then not repeated."""
    pause: Callable[[float], Awaitable[object]] = asyncio.sleep
    """Waits between attempts."""
    caller: Caller = field(default_factory=Caller)
    """The user's network and name."""


class CallError(Exception):
    """A call without a usable answer; the message is for people and does not contain the key."""

    is_retryable = False
    """Whether the same call may succeed within seconds."""
    retry_after_s: float | None = None
    """The seconds that the service asked to wait."""


class UnreachableError(CallError):
    """No answer, or one that cannot be read."""

    def __init__(self, words: str, *, is_retryable: bool = False) -> None:
        super().__init__(words)
        self.is_retryable = is_retryable


class ServiceRefusedError(CallError):
    """An answer with a status other than 200."""

    def __init__(self, status: int, body: bytes, retry_after_s: float | None = None, *, secret: str = "") -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.fields = _fields(body)
        """The fields of its JSON body; empty if the body is not JSON."""
        self.stated = _without(secret, single_line(_words(self.fields), MAX_WORDS_CHARS))
        """The service's own message; may be empty."""
        self.retry_after_s = retry_after_s
        is_short = retry_after_s is not None and retry_after_s <= MAX_RETRY_AFTER_S
        self.is_retryable = is_short if status == TOO_MANY else status >= SERVER_ERROR


class ApiClient:
    """Calls one service at its base URL; connections are opened with the first call.

    `headers` are sent with each call; `secret` is the part of them that must not appear in any message.
    """

    def __init__(self, url: str, headers: Mapping[str, str], *, rules: ApiRules, secret: str = "") -> None:
        self._url = url.rstrip("/")
        self._headers = dict(headers)
        self._secret = secret
        self._rules = rules
        self._gate = asyncio.Semaphore(self._rules.in_flight)
        self._client: Sender | None = None
        self._last_s = -math.inf

    def check(self) -> None:
        """Check the address and the key before either is sent.

        Raises:
            UnreachableError: One of them cannot.
        """
        if "@" in urlsplit(self._url).netloc:
            raise UnreachableError("has a user name or password in its address, which is not supported")
        if not self._secret.isascii() or not self._secret.isprintable() or " " in self._secret:
            raise UnreachableError("has a key with characters that no key has")

    async def aclose(self) -> None:
        """Close all connections, if there are any."""
        if self._client:
            await self._client.aclose()
            self._client = None

    async def get(self, path: str, parameters: Mapping[str, str]) -> bytes:
        """Return the body of an answer with status 200.

        Raises:
            CallError: There is none.
        """
        return await self._persistently("GET", f"{path}?{urlencode(parameters)}")

    async def post(self, path: str, payload: JsonObject) -> bytes:
        """Send a JSON object, and return the body of an answer with status 200.

        Raises:
            CallError: There is none.
        """
        return await self.post_as_it_is(path, json.dumps(payload).encode(), {"Content-Type": "application/json"})

    async def post_as_it_is(self, path: str, content: bytes, headers: Mapping[str, str]) -> bytes:
        """Send a body that an SDK has prepared, and return the body of an answer with status 200.

        Raises:
            CallError: There is none.
        """
        return await self._persistently("POST", path, content, headers)

    async def _persistently(
        self, method: str, path: str, content: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """Send, and repeat where that can help."""
        self.check()
        together = {"Accept": "application/json", **self._headers, **(headers or {})}
        request = HttpRequest(
            method, f"{self._url}{path}", together, content, self._rules.body_bytes, MAX_REFUSAL_BYTES
        )

        async def attempt() -> Attempt[bytes]:
            try:
                async with self._gate:
                    await self._spaced()
                    return Attempt(await self._once(request))
            except CallError as error:
                return Attempt(error, error.is_retryable, error.retry_after_s)

        return await with_retries(attempt, self._rules.retries, self._rules.pause)

    async def _spaced(self) -> None:
        """Wait until the service may be called again."""
        wait_s = self._last_s + self._rules.gap_s - time.monotonic()
        if wait_s > 0:
            await self._rules.pause(wait_s)
        self._last_s = time.monotonic()

    async def _once(self, request: HttpRequest) -> bytes:
        try:
            async with asyncio.timeout(self._rules.seconds):
                return await self._answer(request)
        except DamagedAnswerError as error:
            raise UnreachableError("sent a damaged answer") from error
        except TimeoutError as error:
            raise self._too_late(may_send_again=not self._rules.is_billed) from error
        except ExchangeError as error:
            # Another attempt is free of charge, or at worst costs nothing more than the first.
            may_send_again = not self._rules.is_billed or error.is_unsent
            if error.is_timeout:
                raise self._too_late(may_send_again=may_send_again) from error
            # Other kinds repeat what was sent or received.
            words = single_line(str(error), MAX_WORDS_CHARS) if error.is_unsent else ""
            raise UnreachableError(f"cannot be reached ({words or error.kind})", is_retryable=may_send_again) from error
        except ToolError as error:  # of the guard: there is no such host
            # The first sentence alone: the others advise what to do about a page.
            words = single_line(sentences(error.message)[0].rstrip("."), MAX_WORDS_CHARS)
            raise UnreachableError(f"cannot be reached ({words})") from error

    def _too_late(self, *, may_send_again: bool) -> UnreachableError:
        return UnreachableError(f"did not answer within {self._rules.seconds:g} s", is_retryable=may_send_again)

    def _opened(self) -> Sender:
        if self._client is None:
            from explorer.network.client import GuardedClient  # noqa: PLC0415 - the same
            from explorer.network.guard import Guard  # noqa: PLC0415 - the network's libraries are slow to import

            caller = self._rules.caller
            guard = Guard([urlsplit(self._url).hostname or ""])
            self._client = GuardedClient(guard, caller.user_agent, caller.network, seconds=self._rules.seconds)
        return self._client

    async def _answer(self, request: HttpRequest) -> bytes:
        answer = await self._opened().send(request)
        if answer.status != OK:
            raise ServiceRefusedError(answer.status, answer.body, _asked_wait(answer), secret=self._secret)
        if answer.is_truncated:
            raise UnreachableError(f"sent more than {self._rules.body_bytes} bytes")
        return answer.body


def parsed(model: type[T], body: bytes) -> T:
    """Return a service's JSON as a value of a model.

    Raises:
        UnreachableError: It is something else.
    """
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise UnreachableError("sent something unexpected") from error


def _asked_wait(answer: HttpResponse) -> float | None:
    """Return the seconds to wait, from Retry-After, or from the windows of X-RateLimit that are used up."""
    headers = answer.headers
    if headers.get("retry-after", "").strip():
        return answer.retry_after_s
    left = headers.get("x-ratelimit-remaining", "").split(",")
    resets = headers.get("x-ratelimit-reset", "").split(",")
    used_up = (reset.strip() for rest, reset in zip(left, resets, strict=False) if rest.strip() == "0")
    return max((float(reset) for reset in used_up if reset.isdecimal()), default=None)


def _fields(body: bytes) -> dict[str, JsonValue]:
    try:
        value = ANY_JSON.validate_json(body)
    except ValidationError:
        return {}
    return value if isinstance(value, dict) else {}


def _words(value: JsonValue, depth: int = 3) -> str:
    """Return the first message found in the fields where services put one."""
    if isinstance(value, str):
        return value
    if not isinstance(value, dict) or not depth:
        return ""
    found = (_words(value[name], depth - 1) for name in WORDY_FIELDS if name in value)
    return next((words for words in found if words.strip()), "")


def _without(secret: str, text: str) -> str:
    return text.replace(secret, "[key]") if secret else text
