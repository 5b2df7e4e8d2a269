"""Asks again when that can help, slows all requests down when a provider says so, and waits out an outage."""

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
"""For so long an outage is waited out where no limit is set."""
MAX_PROBE_WAIT_S = 30.0
"""Between two probes; a provider that is back is noticed after this at the latest."""
FIRST_PROBE_WAIT_S = 1.0
"""The upper end of the first wait; it doubles with every failed probe."""
MINUTE_S = 60


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """An attempt at a turn that brought none."""

    request: Request
    error: ModelError
    number: int
    """Of the attempts at this turn, from 1."""
    waits_s: float | None
    """Seconds until the next attempt; None: given up."""
    waiting_s: float | None = None
    """In an outage, the seconds since it began."""


@dataclass(slots=True)
class Trouble:
    """What one request has been through."""

    attempts: int = 0
    alone: int = 0
    """Attempts that failed while there was no outage."""
    waited_s: float = 0.0
    """After those."""

    def count(self, *, is_alone: bool) -> None:
        """Count a failed attempt."""
        self.attempts += 1
        self.alone += is_alone


def outage_wait_s(failed_probes: int, chance: float) -> float:
    """Return the seconds until the next probe: the upper half of a bound that doubles up to `MAX_PROBE_WAIT_S`.

    Args:
        failed_probes: In this outage.
        chance: Between 0 and 1.
    """
    bound_s = min(MAX_PROBE_WAIT_S, FIRST_PROBE_WAIT_S * 2 ** min(failed_probes, 10))
    return bound_s * (1 + chance) / 2


def gave_up(error: ModelError, waited_s: float) -> ModelError:
    """Return the error of a provider that was waited for in vain."""
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
"""Of one request: before the provider has ever brought a turn, or while it brings turns to others."""
MAX_WAITED_S = 600.0
"""Of all waits for one turn together, outages not counted."""
FIRST_WAIT_S = 1.0
"""The upper end of the first wait; it doubles with every attempt."""
MAX_SLEEP_S = 1.0
"""After so long at the latest somebody who waits at a gate looks whether it is open."""

FIRST_PARALLEL = 8
"""How many requests go at once before one has succeeded."""
OUTAGE_FAILURES = 2
"""So many failed attempts, and no success between them, are an outage."""

THROTTLING_FAULTS = frozenset({ModelFault.RATE_LIMITED, ModelFault.OVERLOADED})
"""Faults that are everyone's business, not only the failed request's."""

OnFailure = Callable[[FailedAttempt], Awaitable[None]]
"""Called with every failed attempt, before the wait."""


@dataclass(slots=True)
class Contact:
    """What is known of a provider, shared by the gates of its models."""

    has_brought_turn: bool = False
    """In this process, or in an earlier one of the run."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Clock, sleep and chance, handed in so that tests wait for nothing."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random
    """Between 0 and 1."""


@dataclass(frozen=True, slots=True)
class WaitLimits:
    """How long a turn is waited for."""

    seconds_left: Callable[[], float | None] = lambda: None
    """How long the run may still take; None for no limit. No wait goes beyond it."""
    max_outage_s: float | None = MAX_OUTAGE_S
    """Without any request getting through; None for no limit."""
    useful_s: Callable[[], float | None] = lambda: None
    """For how long a turn would be of use: once it is 0 nobody waits any more; None for no limit."""


class RateGate:
    """What all requests with one key for one model pass through, in the order they came.

    A provider that throttles one request throttles them all: everyone waits until the same instant, and fewer
    go at once afterwards (halved, then one more per round of successes, as TCP does it). Until the first success
    only a few go at once: a wrong key or a server that is down is then met by few, and not by hundreds.

    After a first success, failures in a row are an outage: from then on one request at a time probes the server, and
    the others wait behind it, until one brings a turn.
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
        """Whether the provider has answered yet, be it with a turn or by throttling."""
        self._running = 0
        self._opens_at = 0.0
        self._failing_since: float | None = None
        self._failures = 0
        """In a row."""
        self._failed_probes = 0
        self._is_probing = False
        self._changed = asyncio.Event()
        self._first = asyncio.Lock()
        """Held by whoever is next; the others wait behind it in the order they came."""

    @property
    def parallel(self) -> int:
        """How many requests may run at once now."""
        return int(self._limit)

    @property
    def has_answered(self) -> bool:
        """Whether a model server has ever answered this run, be it with a turn or by throttling."""
        return self._contact.has_brought_turn or self._is_tried

    @property
    def has_brought_turn(self) -> bool:
        """Whether the provider has brought this run a turn: what fails after that passes."""
        return self._contact.has_brought_turn

    @property
    def is_down(self) -> bool:
        """Whether there is an outage."""
        return self.has_brought_turn and self._failures >= OUTAGE_FAILURES

    @property
    def failing_s(self) -> float:
        """For how many seconds attempts have failed without one getting through."""
        return 0.0 if self._failing_since is None else self._timing.clock() - self._failing_since

    @property
    def failed_probes(self) -> int:
        """How many attempts were begun in this outage and have failed."""
        return self._failed_probes

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[bool]:
        """Wait until a request may go, and count it while it runs; yields whether it probes a server that is down.

        Whoever is cancelled while waiting leaves the queue at once.
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

    def note_failure(self, *, is_probe: bool) -> None:
        """Count a failed attempt."""
        if self._failing_since is None:
            self._failing_since = self._timing.clock()
        self._failures += 1
        self._failed_probes += is_probe
        if self.is_down:
            # When it is back, not everyone asks in the same second.
            self._limit = min(self._limit, float(FIRST_PARALLEL))

    def close(self, wait_s: float) -> None:
        """Let nobody go for some seconds."""
        self._opens_at = max(self._opens_at, self._timing.clock() + wait_s)

    def slow_down(self, wait_s: float) -> None:
        """Let nobody go for some seconds, and half as many at once from then on."""
        self.close(wait_s)
        self._limit = max(1.0, self._limit / 2)
        self._is_tried = True

    def note_answer(self) -> None:
        """Take note that the server is there: an outage is over."""
        if self.is_down:
            self._opens_at = self._timing.clock()
        self._failing_since, self._failures, self._failed_probes = None, 0, 0
        self._changed.set()

    def speed_up(self) -> None:
        """Take note of a success: the limit grows by one when a whole round of requests has succeeded."""
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
            # Only while somebody runs: the gate may have opened since it was looked at, and nobody would wake us.
            self._changed.clear()
            await self._changed.wait()


class RetryingClient:
    """A client that asks another client again, patiently but not for ever.

    Args:
        client: The adapter that asks once.
        gate: Shared by all clients with the same provider, key and model.
        on_failure: Called with every failed attempt, before the wait.
        limits: How long to wait at most.
        timing: Clock, sleep and chance.
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
        """Ask until a turn comes. To cancel it ends every wait at once.

        Raises:
            ModelError: The last attempt's error, when asking again cannot help or patience has run out; with
                `is_outage` when the provider answers nobody.
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
        """Note a failure, report it and wait it out: at the gate, with everyone, or alone."""
        gate = self._gate
        if error.is_retryable:
            gate.note_failure(is_probe=is_probe)
        else:
            gate.note_answer()
        trouble.count(is_alone=not gate.is_down)
        wait_s = self._wait_s(error, trouble)
        is_shared = gate.is_down or error.fault in THROTTLING_FAULTS
        if error.fault in THROTTLING_FAULTS:
            gate.slow_down(wait_s or 0.0)
        elif is_shared:
            gate.close(wait_s or 0.0)
        waiting_s = gate.failing_s if gate.is_down else None
        await self._on_failure(FailedAttempt(request, error, trouble.attempts, wait_s, waiting_s))
        if wait_s is None:
            is_everyones = gate.is_down or (gate.has_brought_turn and self._asks_too_long(error, trouble))
            error.is_outage = error.is_retryable and is_everyones
            raise gave_up(error, gate.failing_s) if error.is_outage else error
        if not gate.is_down:
            trouble.waited_s += wait_s
        if not is_shared:
            await self._timing.sleep(wait_s)

    def _wait_s(self, error: ModelError, trouble: Trouble) -> float | None:
        """Return the seconds until the next attempt; None when there shall be none.

        Full jitter: uniform between nothing and a bound that doubles, so that many clients do not come back at
        once (Brooker, "Exponential Backoff And Jitter", 2015). The provider's own wish is the least we wait.
        """
        is_hopeless = error.is_wrong_server and not self._gate.has_answered
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
        """Whether the provider asks for a longer wait than there is time: it is reported at once."""
        asked_s, time_s = error.retry_after_s or 0.0, self._limits.seconds_left()
        is_over = time_s is not None and asked_s >= time_s
        return asked_s > 0 and (is_over or asked_s > self._max_wait_s(error, trouble) > 0)

    def _max_wait_s(self, error: ModelError, trouble: Trouble) -> float:
        """Return for how many seconds to wait yet; 0 or less: not at all."""
        most_s = self._limits.max_outage_s
        gate = self._gate
        if gate.is_down:
            return float("inf") if most_s is None else most_s - gate.failing_s
        # Throttled while others get through, a request is unlucky and not at fault.
        is_unlucky = error.fault is ModelFault.RATE_LIMITED and gate.has_brought_turn
        if trouble.alone >= MAX_ATTEMPTS and not is_unlucky:
            return 0.0
        # Behind a closed gate the waits are everyone's: many agents have no more patience together than one.
        shared_s = gate.failing_s if error.fault in THROTTLING_FAULTS else 0.0
        return MAX_WAITED_S - max(trouble.waited_s, shared_s)
