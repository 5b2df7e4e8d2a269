import asyncio
from collections.abc import Callable

import pytest

from explorer.errors import RETRYABLE_FAULTS, ModelError, ModelFault
from explorer.llm.retry import MAX_ATTEMPTS, MAX_WAITED_S, RateGate, RetryingClient, Timing
from explorer.messages import Request, StopKind, Turn

REQUEST = Request(agent="a", role="searcher", model="m", system="", tools=(), history=(), max_output_tokens=100)
TURN = Turn(provider="p", model="m", blocks=(), text="ok", stop=StopKind.END)


class FakeTime:
    """A clock that only sleeping moves on; sleepers wake in the order of their times."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self.timing = Timing(clock=lambda: self.now, sleep=self.sleep, random=lambda: 1.0)

    async def sleep(self, seconds: float) -> None:
        """Move the clock on."""
        self.slept.append(seconds)
        until = self.now + seconds
        await asyncio.sleep(0)
        self.now = max(self.now, until)


class Scripted:
    """A client that fails as told, then answers."""

    def __init__(self, *errors: ModelError) -> None:
        self.errors = list(errors)
        self.asked = 0

    async def generate(self, request: Request) -> Turn:
        """Fail or answer."""
        assert request is REQUEST
        self.asked += 1
        if self.errors:
            raise self.errors.pop(0)
        return TURN


def error(fault: ModelFault, retry_after_s: float | None = None) -> ModelError:
    return ModelError(fault, "no", retry_after_s=retry_after_s)


class Retried:
    """A retrying client around a script, with its failures on record."""

    def __init__(self, *errors: ModelError, seconds_left: Callable[[], float | None] = lambda: None) -> None:
        self.time = FakeTime()
        self.scripted = Scripted(*errors)
        self.gate = RateGate(8, self.time.timing)
        self.failures: list[tuple[ModelFault, int, float | None]] = []
        self.client = RetryingClient(
            self.scripted, self.gate, self.on_failure, seconds_left=seconds_left, timing=self.time.timing
        )

    async def on_failure(self, request: Request, failure: ModelError, attempt: int, waits_s: float | None) -> None:
        """Keep a failure."""
        assert request is REQUEST
        self.failures.append((failure.fault, attempt, waits_s))


async def test_a_turn_passes_through() -> None:
    """Without a failure there is one request and no wait."""
    retried = Retried()
    assert await retried.client.generate(REQUEST) is TURN
    assert (retried.scripted.asked, retried.time.slept, retried.failures) == (1, [], [])


async def test_waits_double_and_are_told() -> None:
    """Each failed attempt is told with its wait, and the waits' upper ends double."""
    retried = Retried(*[error(ModelFault.TRANSPORT)] * 3)
    assert await retried.client.generate(REQUEST) is TURN
    assert retried.failures == [(ModelFault.TRANSPORT, number, 2.0 ** (number - 1)) for number in (1, 2, 3)]
    assert retried.time.slept == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("fault", sorted(set(ModelFault) - RETRYABLE_FAULTS))
async def test_what_cannot_help_is_not_tried(fault: ModelFault) -> None:
    """A refused key or request is not sent again."""
    retried = Retried(error(fault))
    with pytest.raises(ModelError):
        await retried.client.generate(REQUEST)
    assert (retried.scripted.asked, retried.failures) == (1, [(fault, 1, None)])


@pytest.mark.parametrize("fault", sorted(RETRYABLE_FAULTS))
async def test_attempts_are_bounded(fault: ModelFault) -> None:
    """After the last attempt the error comes through, and is told as given up."""
    retried = Retried(*[error(fault)] * 20)
    with pytest.raises(ModelError):
        await retried.client.generate(REQUEST)
    assert retried.scripted.asked == MAX_ATTEMPTS
    assert retried.failures[-1] == (fault, MAX_ATTEMPTS, None)
    assert retried.time.now <= MAX_WAITED_S


@pytest.mark.parametrize(("asked_s", "waited_s"), [(7.0, 7.0), (86_400.0, 60.0), (0.0, 1.0)])
async def test_the_providers_wish_is_honoured_within_reason(asked_s: float, waited_s: float) -> None:
    """A retry-after is waited for, but never longer than a minute."""
    retried = Retried(error(ModelFault.RATE_LIMITED, asked_s))
    assert await retried.client.generate(REQUEST) is TURN
    assert retried.failures == [(ModelFault.RATE_LIMITED, 1, waited_s)]
    assert retried.time.now == waited_s


async def test_no_wait_goes_beyond_the_deadline() -> None:
    """When the wait would use up the time that is left, the error comes at once."""
    retried = Retried(error(ModelFault.RATE_LIMITED, 30), seconds_left=lambda: 30)
    with pytest.raises(ModelError):
        await retried.client.generate(REQUEST)
    assert (retried.time.now, retried.failures) == (0, [(ModelFault.RATE_LIMITED, 1, None)])


async def test_everyone_waits_for_one_throttled_request() -> None:
    """After a 429 nobody else's request goes out before the same instant."""
    time = FakeTime()
    gate = RateGate(8, time.timing)
    gate.slow_down(30)
    async with asyncio.TaskGroup() as group:
        starts = [group.create_task(_start(gate, time)) for _ in range(4)]
    assert all(start.result() >= 30 for start in starts)


async def _start(gate: RateGate, time: FakeTime) -> float:
    async with gate.slot():
        return time.now


async def test_a_storm_is_calmed() -> None:
    """64 agents that are all throttled end up asking one after another, and all get their turn."""
    time = FakeTime()
    gate = RateGate(64, time.timing)
    gate.speed_up()
    running, most_after_storm, throttled = 0, 0, 64

    class Storm:
        async def generate(self, request: Request) -> Turn:
            nonlocal running, most_after_storm, throttled
            assert request is REQUEST
            running += 1
            await asyncio.sleep(0)
            running -= 1
            if throttled:
                throttled -= 1
                raise error(ModelFault.RATE_LIMITED, 5)
            most_after_storm = max(most_after_storm, running)
            return TURN

    async def ignore(*_failure: object) -> None:
        return None

    async with asyncio.TaskGroup() as group:
        for _ in range(64):
            group.create_task(RetryingClient(Storm(), gate, ignore, timing=time.timing).generate(REQUEST))
    assert 5 <= time.now <= 60
    assert most_after_storm <= 12


def test_the_limit_halves_and_grows_back() -> None:
    """Throttling halves what may run at once, down to one; successes bring it back, up to the most."""
    gate = RateGate(8)
    gate.slow_down(0)
    assert gate.parallel == 4
    for _ in range(10):
        gate.slow_down(0)
    assert gate.parallel == 1
    gate.speed_up()
    assert gate.parallel == 2
    for _ in range(100):
        gate.speed_up()
    assert gate.parallel == 8


async def test_only_a_few_go_before_the_first_success() -> None:
    """At a run's start eight ask at once, and as many as are allowed as soon as one has had its reply."""
    gate = RateGate(64)
    inside, leave = 0, asyncio.Event()

    async def pass_through() -> None:
        nonlocal inside
        async with gate.slot():
            inside += 1
            await leave.wait()

    async def turns_of_the_loop() -> int:
        for _ in range(200):
            await asyncio.sleep(0)
        return inside

    async with asyncio.TaskGroup() as group:
        for _ in range(64):
            group.create_task(pass_through())
        assert await turns_of_the_loop() == 8
        gate.speed_up()
        assert await turns_of_the_loop() == 64
        leave.set()


async def test_who_waits_longest_goes_first() -> None:
    """The gate keeps the order of coming, so that no agent of hundreds is left behind."""
    gate = RateGate(1)
    order: list[int] = []

    async def pass_through(number: int) -> None:
        async with gate.slot():
            await asyncio.sleep(0)
            order.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(50):
            group.create_task(pass_through(number))
    assert order == list(range(50))


async def test_a_full_gate_lets_the_next_in_when_one_leaves() -> None:
    """No more than the limit run at once, and one that is cancelled while waiting blocks nobody."""
    gate = RateGate(1)
    order: list[str] = []
    leave = asyncio.Event()

    async def pass_through(name: str) -> None:
        async with gate.slot():
            order.append(name)
            await leave.wait()

    async with asyncio.TaskGroup() as group:
        for name in ("first", "cancelled", "last"):
            task = group.create_task(pass_through(name))
            await asyncio.sleep(0)
            if name == "cancelled":
                task.cancel()
        assert order == ["first"]
        leave.set()
    assert order == ["first", "last"]


async def test_a_gate_that_opens_between_two_looks_wakes_who_waits() -> None:
    """Time passes between looking whether the gate is open and waiting for it: nobody runs, so nobody would wake us."""
    looks = iter([0.0, 0.5, 1.5, 2.0, 2.5, 3.0])
    gate = RateGate(4, Timing(clock=lambda: next(looks)))
    gate.slow_down(1.0)
    async with asyncio.timeout(5), gate.slot():
        assert gate.parallel >= 1
