"""Asks again when asking again can help, and slows everyone down together when a provider says so."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from loguru import logger

from explorer.errors import ModelError, ModelFault
from explorer.messages import LLMClient, Request, Turn

MAX_ATTEMPTS = 8
MAX_WAIT_S = 60.0
"""Of a single wait: providers have been seen to ask for days."""
MAX_WAITED_S = 600.0
"""Of all waits for one turn together."""
FIRST_WAIT_S = 1.0
"""The upper end of the first wait; it doubles with every attempt."""

FIRST_PARALLEL = 8
"""How many requests go at once before one has succeeded."""

THROTTLING_FAULTS = frozenset({ModelFault.RATE_LIMITED, ModelFault.OVERLOADED})
"""Faults that are everyone's business, not only the failed request's."""

OnFailure = Callable[[Request, ModelError, int, float | None], Awaitable[None]]
"""Told of every failed attempt: request, error, attempt (from 1), seconds until the next (None: given up)."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Clock, sleep and chance, handed in so that tests wait for nothing."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random
    """Between 0 and 1."""


class RateGate:
    """What all requests with one key for one model pass through, in the order they came.

    A provider that throttles one request throttles them all: everyone waits until the same instant, and fewer
    go at once afterwards (halved, then one more per round of successes, as TCP does it). Until the first success
    only a few go at once: a wrong key or a server that is down is then met by few, and not by hundreds.
    """

    def __init__(self, max_parallel: int, timing: Timing | None = None, *, has_answered: bool = False) -> None:
        self._timing = timing or Timing()
        self._has_answered = has_answered
        """Whether an earlier process of the run had a turn of this model."""
        self._max_parallel = max_parallel
        self._limit = float(min(max_parallel, FIRST_PARALLEL))
        self._is_tried = False
        """Whether the provider has answered yet, be it with a turn or by throttling."""
        self._running = 0
        self._opens_at = 0.0
        self._throttled_at: float | None = None
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
        return self._has_answered or self._is_tried

    @property
    def throttled_s(self) -> float:
        """For how many seconds requests have been throttled without one getting through."""
        return 0.0 if self._throttled_at is None else self._timing.clock() - self._throttled_at

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[None]:
        """Wait until a request may go, and count it while it runs."""
        async with self._first:
            while not self._is_open():
                await self._wait()
            self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            self._changed.set()

    def slow_down(self, wait_s: float) -> None:
        """Let nobody go for some seconds, and half as many at once from then on."""
        now = self._timing.clock()
        if self._throttled_at is None:
            self._throttled_at = now
        self._opens_at = max(self._opens_at, now + wait_s)
        self._limit = max(1.0, self._limit / 2)
        self._is_tried = True

    def speed_up(self) -> None:
        """Take note of a success: the limit grows by one when a whole round of requests has succeeded."""
        self._throttled_at = None
        grown = self._limit + 1 / self._limit if self._is_tried else float(self._max_parallel)
        self._is_tried = True
        self._limit = min(float(self._max_parallel), grown)
        self._changed.set()

    def _is_open(self) -> bool:
        return self._running < self.parallel and self._timing.clock() >= self._opens_at

    async def _wait(self) -> None:
        closed_s = self._opens_at - self._timing.clock()
        if closed_s > 0:
            await self._timing.sleep(closed_s)
        elif self._running >= self.parallel:
            # Only while somebody runs: the gate may have opened since it was looked at, and nobody would wake us.
            self._changed.clear()
            await self._changed.wait()


class RetryingClient:
    """A client that asks another client again, patiently but not for ever.

    Args:
        client: The adapter that asks once.
        gate: Shared by all clients with the same provider, key and model.
        on_failure: Told of every failed attempt, before the wait.
        seconds_left: How long the run may still take; None for no limit. No wait goes beyond it.
        timing: Clock, sleep and chance.
    """

    def __init__(
        self,
        client: LLMClient,
        gate: RateGate,
        on_failure: OnFailure,
        *,
        seconds_left: Callable[[], float | None] = lambda: None,
        timing: Timing | None = None,
    ) -> None:
        self._client = client
        self._gate = gate
        self._on_failure = on_failure
        self._seconds_left = seconds_left
        self._timing = timing or Timing()

    async def generate(self, request: Request) -> Turn:
        """Ask until a turn comes.

        Raises:
            ModelError: The last attempt's error, when asking again cannot help or patience has run out.
        """
        attempt, waited_s = 0, 0.0
        while True:
            attempt += 1
            try:
                async with self._gate.slot():
                    logger.debug("model asked: {} {}, {} messages", request.agent, request.model, len(request.history))
                    turn = await self._client.generate(request)
            except ModelError as error:
                wait_s = self._wait_s(error, attempt, waited_s)
                await self._fail(request, error, attempt, wait_s)
                if wait_s is None:
                    raise
                waited_s += wait_s
            else:
                self._gate.speed_up()
                return turn

    async def _fail(self, request: Request, error: ModelError, attempt: int, wait_s: float | None) -> None:
        """Tell of a failure and wait it out: at the gate, with everyone, or alone."""
        is_shared = error.fault in THROTTLING_FAULTS
        if is_shared:
            self._gate.slow_down(wait_s or 0.0)
        await self._on_failure(request, error, attempt, wait_s)
        if wait_s is not None and not is_shared:
            await self._timing.sleep(wait_s)

    def _wait_s(self, error: ModelError, attempt: int, waited_s: float) -> float | None:
        """Return the seconds until the next attempt; None when there shall be none.

        Full jitter: uniform between nothing and a bound that doubles, so that many clients do not come back at
        once (Brooker, "Exponential Backoff And Jitter", 2015). The provider's own wish is the least we wait.
        """
        is_hopeless = error.is_wrong_server and not self._gate.has_answered
        if is_hopeless or not error.is_retryable or attempt >= MAX_ATTEMPTS:
            return None
        jittered_s = self._timing.random() * FIRST_WAIT_S * 2 ** (attempt - 1)
        wait_s = min(MAX_WAIT_S, max(jittered_s, error.retry_after_s or 0.0))
        left_s = self._seconds_left()
        # Behind a closed gate the waits are everyone's: many agents have no more patience together than one.
        waited_s = max(waited_s, self._gate.throttled_s if error.fault in THROTTLING_FAULTS else 0.0)
        is_too_long = waited_s + wait_s > MAX_WAITED_S or (left_s is not None and wait_s >= left_s)
        return None if is_too_long else wait_s
