"""Repeats requests when that can help, slows all of them down when a provider throttles, and waits during outages."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from loguru import logger

from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.messages import LLMClient, Request, Turn

MAX_OUTAGE_S = 600.0
"""Seconds that an outage may last when no limit is set."""
MAX_PROBE_WAIT_S = 30.0
"""The longest time between two probes, after which a provider that is back is noticed at the latest."""
FIRST_PROBE_WAIT_S = 1.0
"""The upper end of the first wait; it doubles with every failed probe."""
MINUTE_S = 60


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """A failed attempt at a turn."""

    request: Request
    error: ModelError
    number: int
    """The number of the attempt at this turn, from 1."""
    waits_s: float | None
    """Seconds until the next attempt; None: there is none."""
    waiting_s: float | None = None
    """The seconds since an outage began; None without an outage."""


@dataclass(slots=True)
class Trouble:
    """The failed attempts of one request."""

    attempts: int = 0
    alone: int = 0
    """The number of attempts that failed without an outage."""
    waited_s: float = 0.0
    """The seconds waited after those."""

    def count(self, *, is_alone: bool) -> None:
        """Count a failed attempt."""
        self.attempts += 1
        self.alone += is_alone


def outage_wait_s(failed_probes: int, chance: float) -> float:
    """Return the seconds until the next probe: the upper half of a bound that doubles up to `MAX_PROBE_WAIT_S`.

    Args:
        failed_probes: The number of failed probes in this outage.
        chance: A random number between 0 and 1.
    """
    bound_s = min(MAX_PROBE_WAIT_S, FIRST_PROBE_WAIT_S * 2 ** min(failed_probes, 10))
    return bound_s * (1 + chance) / 2


def gave_up(error: ModelError, waited_s: float) -> ModelError:
    """Return the error of a provider that did not come back in time."""
    words = f"{error.message}; no request got through for {_duration(waited_s)}" if waited_s >= 1 else error.message
    made = ModelError(
        error.fault,
        words,
        hint=error.hint,
        retry_after_s=error.retry_after_s,
        is_wrong_server=error.is_wrong_server,
    )
    made.status, made.code = error.status, error.code
    return made


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 2 * MINUTE_S else f"{seconds / MINUTE_S:.0f} minutes"


MAX_ATTEMPTS = 8
"""The attempts of one request before the provider's first turn, or while other requests get turns."""
FIRST_CLOSED = 3
"""The attempts that a server may close without an answer before it has ever answered: then the address is wrong."""
MAX_WAITED_S = 600.0
"""The seconds of all waits for one turn, without outages."""
FIRST_WAIT_S = 1.0
"""The upper end of the first wait; it doubles with every attempt."""
MAX_SLEEP_S = 1.0
"""Seconds after which a waiting request checks again whether the gate is open."""

FIRST_PARALLEL = 8
"""The number of parallel requests before one has succeeded."""
OUTAGE_FAILURES = 2
"""The number of failed attempts in a row that are an outage."""

THROTTLING_FAULTS = frozenset({ModelFault.RATE_LIMITED, ModelFault.OVERLOADED})
"""Faults that concern all requests, not only the failed one."""

OnFailure = Callable[[FailedAttempt], Awaitable[None]]
"""Report a failed attempt, before the wait."""


@dataclass(slots=True)
class Contact:
    """Whether a provider has answered, shared by the gates of its models."""

    has_brought_turn: bool = False
    """Whether it brought a turn in this process, or in an earlier one of the run."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Clock, sleep and random numbers, passed in so that tests do not wait."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random
    """Return a random number between 0 and 1."""


@dataclass(frozen=True, slots=True)
class WaitLimits:
    """How long to wait for a turn."""

    seconds_left: Callable[[], float | None] = lambda: None
    """Return the seconds that the run may still take, which limit every wait; None for no limit."""
    max_outage_s: float | None = MAX_OUTAGE_S
    """Seconds without a successful request; None for no limit."""
    useful_s: Callable[[], float | None] = lambda: None
    """Return the seconds for which a turn is of use; 0: do not wait any more; None for no limit."""


class RateGate:
    """Limits the parallel requests with one key for one model, in the order in which they came.

    A provider that throttles one request throttles them all: all wait until the same time, and fewer are sent in
    parallel afterwards (halved, then one more per round of successes, as in TCP). Until the first success only a few
    are sent in parallel, so that a wrong key or a server that is down fails a few requests, and not hundreds.

    After a first success, failures in a row are an outage: then one request at a time probes the server, and the
    others wait for it, until one brings a turn.
    """

    def __init__(
        self,
        max_parallel: int,
        timing: Timing | None = None,
        *,
        has_answered: bool = False,
        contact: Contact | None = None,
    ) -> None:
        self._timing = timing or Timing()
        self._contact = contact or Contact(has_answered)
        self._max_parallel = max_parallel
        self._limit = float(min(max_parallel, FIRST_PARALLEL))
        self._is_tried = False
        """Whether the provider has answered yet, with a turn or by throttling."""
        self._has_failed_as_model_server = False
        """Whether an attempt failed as only one at a model server does, such as by a reply that breaks a rule."""
        self._running = 0
        self._opens_at = 0.0
        self._failing_since: float | None = None
        self._failures = 0
        """The number of failures in a row."""
        self._failed_probes = 0
        self._is_probing = False
        self._changed = asyncio.Event()
        self._first = asyncio.Lock()
        """The next request has it; the others wait for it in the order in which they came."""

    @property
    def parallel(self) -> int:
        """The number of requests that may run in parallel now."""
        return int(self._limit)

    @property
    def has_answered(self) -> bool:
        """Whether a model server has ever answered this run: with a turn, by throttling, or with a faulty reply."""
        return self._contact.has_brought_turn or self._is_tried or self._has_failed_as_model_server

    @property
    def has_brought_turn(self) -> bool:
        """Whether the provider has brought this run a turn, so that later failures are probably temporary."""
        return self._contact.has_brought_turn

    @property
    def is_down(self) -> bool:
        """Whether there is an outage."""
        return self.has_brought_turn and self._failures >= OUTAGE_FAILURES

    @property
    def failing_s(self) -> float:
        """The seconds for which all attempts have failed."""
        return 0.0 if self._failing_since is None else self._timing.clock() - self._failing_since

    @property
    def failed_probes(self) -> int:
        """The number of attempts that were begun in this outage and failed."""
        return self._failed_probes

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[bool]:
        """Wait until a request may be sent, and count it while it runs; yield whether it probes a server that is down.

        A request that is cancelled while it waits leaves the queue at once.
        """
        async with self._first:
            while not self._is_open():
                await self._wait()
            self._running += 1
            is_probe = self._is_probing = self.is_down
        try:
            yield is_probe
        finally:
            self._running -= 1
            if is_probe:
                self._is_probing = False
            self._changed.set()

    def note_failure(self, error: ModelError, *, is_probe: bool) -> None:
        """Count a failed attempt."""
        self._has_failed_as_model_server |= not error.is_wrong_server and not error.is_unsent
        if self._failing_since is None:
            self._failing_since = self._timing.clock()
        self._failures += 1
        self._failed_probes += is_probe
        if self.is_down:
            # When the server is back, not all requests are sent in the same second.
            self._limit = min(self._limit, float(FIRST_PARALLEL))

    def close(self, wait_s: float) -> None:
        """Send no request for some seconds."""
        self._opens_at = max(self._opens_at, self._timing.clock() + wait_s)

    def slow_down(self, wait_s: float) -> None:
        """Send no request for some seconds, and then half as many in parallel."""
        self.close(wait_s)
        self._limit = max(1.0, self._limit / 2)
        self._is_tried = True

    def note_answer(self) -> None:
        """Record that the server answered: an outage is over."""
        if self.is_down:
            self._opens_at = self._timing.clock()
        self._failing_since, self._failures, self._failed_probes = None, 0, 0
        self._changed.set()

    def speed_up(self) -> None:
        """Record a success: the limit grows by one when a whole round of requests has succeeded."""
        self.note_answer()
        grown = self._limit + 1 / self._limit if self._is_tried else float(self._max_parallel)
        self._is_tried = self._contact.has_brought_turn = True
        self._limit = min(float(self._max_parallel), grown)

    def _is_open(self) -> bool:
        return not self._is_full() and self._timing.clock() >= self._opens_at

    def _is_full(self) -> bool:
        return self._is_probing if self.is_down else self._running >= self.parallel

    async def _wait(self) -> None:
        closed_s = self._opens_at - self._timing.clock()
        if closed_s > 0:
            await self._timing.sleep(min(closed_s, MAX_SLEEP_S))
        elif self._is_full():
            # Only while a request runs: the gate may have opened since the check, and nothing would wake this one.
            self._changed.clear()
            await self._changed.wait()


class RetryingClient:
    """A client that repeats the requests of another client, within limits.

    Args:
        client: The adapter, which sends a request once.
        gate: Shared by all clients with the same provider, key and model.
        on_failure: Called with every failed attempt, before the wait.
        limits: The limits of waiting.
        timing: Clock, sleep and random numbers.
    """

    def __init__(
        self,
        client: LLMClient,
        gate: RateGate,
        on_failure: OnFailure,
        *,
        limits: WaitLimits | None = None,
        timing: Timing | None = None,
    ) -> None:
        self._client = client
        self._gate = gate
        self._on_failure = on_failure
        self._limits = limits or WaitLimits()
        self._timing = timing or Timing()

    async def generate(self, request: Request) -> Turn:
        """Send a request until a turn comes. Cancelling ends every wait at once.

        Raises:
            ModelError: The last attempt's error, when another attempt cannot help or a limit is reached; with
                `is_outage` when the provider answers no request.
        """
        trouble = Trouble()
        while True:
            is_probe = False
            try:
                async with self._gate.slot() as is_probe:
                    logger.debug("model asked: {} {}, {} messages", request.agent, request.model, len(request.history))
                    turn = await self._client.generate(request)
            except ModelError as error:
                await self._fail(request, error, trouble, is_probe=is_probe)
            else:
                self._gate.speed_up()
                return turn

    async def _fail(self, request: Request, error: ModelError, trouble: Trouble, *, is_probe: bool) -> None:
        """Record and report a failure, and wait: at the gate, with all requests, or alone."""
        gate = self._gate
        if error.is_retryable:
            gate.note_failure(error, is_probe=is_probe)
        else:
            gate.note_answer()
        # As it is now: other requests may begin or end an outage while this failure is recorded.
        is_down, failing_s = gate.is_down, gate.failing_s
        trouble.count(is_alone=not is_down)
        wait_s = self._wait_s(error, trouble)
        is_everyones = is_down or (gate.has_brought_turn and self._asks_too_long(error, trouble))
        is_shared = is_down or error.fault in THROTTLING_FAULTS
        if error.fault in THROTTLING_FAULTS:
            gate.slow_down(wait_s or 0.0)
        elif is_shared:
            gate.close(wait_s or 0.0)
        waiting_s = failing_s if is_down else None
        await self._on_failure(FailedAttempt(request, error, trouble.attempts, wait_s, waiting_s))
        if wait_s is None:
            error.is_outage = error.is_retryable and is_everyones
            raise gave_up(error, failing_s) if error.is_outage else error
        if not is_down:
            trouble.waited_s += wait_s
        if not is_shared:
            await self._timing.sleep(wait_s)

    def _wait_s(self, error: ModelError, trouble: Trouble) -> float | None:
        """Return the seconds until the next attempt; None: no further attempt.

        Full jitter: uniform between 0 and a bound that doubles, so that many clients do not return at the same time
        (Brooker, "Exponential Backoff And Jitter", 2015). The wait is never shorter than the provider asks for.
        """
        may_restart = error.is_closed and trouble.attempts < FIRST_CLOSED
        is_hopeless = error.is_wrong_server and not may_restart and not self._gate.has_answered
        if is_hopeless or not error.is_retryable:
            return None
        left_s, useful_s = self._max_wait_s(error, trouble), self._limits.useful_s()
        if left_s <= 0 or useful_s == 0 or self._asks_too_long(error, trouble):
            return None
        if self._gate.is_down:
            wait_s = outage_wait_s(self._gate.failed_probes, self._timing.random())
        else:
            wait_s = self._timing.random() * FIRST_WAIT_S * 2 ** (min(trouble.alone, MAX_ATTEMPTS) - 1)
        bounds = [one for one in (left_s, useful_s, self._limits.seconds_left()) if one is not None]
        return min(max(wait_s, error.retry_after_s or 0.0), *bounds)

    def _asks_too_long(self, error: ModelError, trouble: Trouble) -> bool:
        """Return whether the provider asks for a longer wait than the limits allow."""
        asked_s, time_s = error.retry_after_s or 0.0, self._limits.seconds_left()
        is_over = time_s is not None and asked_s >= time_s
        return asked_s > 0 and (is_over or asked_s > self._max_wait_s(error, trouble) > 0)

    def _max_wait_s(self, error: ModelError, trouble: Trouble) -> float:
        """Return how many more seconds a turn may be waited for; 0 or less: none."""
        most_s = self._limits.max_outage_s
        gate = self._gate
        if gate.is_down:
            return float("inf") if most_s is None else most_s - gate.failing_s
        # A request that is throttled while others succeed is unlucky, not wrong.
        is_unlucky = error.fault is ModelFault.RATE_LIMITED and gate.has_brought_turn
        if trouble.alone >= MAX_ATTEMPTS and not is_unlucky:
            return 0.0
        # Waits at a closed gate are shared: many agents together wait no longer than one.
        shared_s = gate.failing_s if error.fault in THROTTLING_FAULTS else 0.0
        return MAX_WAITED_S - max(trouble.waited_s, shared_s)
