import asyncio

import pytest

from explorer.llm.retry import (
    MAX_ATTEMPTS,
    MAX_OUTAGE_S,
    MAX_PROBE_WAIT_S,
    MAX_WAITED_S,
    FailedAttempt,
    RateGate,
    RetryingClient,
    Timing,
    WaitLimits,
)
from explorer.schema.errors import RETRYABLE_FAULTS, ModelError, ModelFault
from explorer.schema.messages import Request, StopKind, Turn
from llm.fake_time import FakeTime

REQUEST = Request(agent="a", role="searcher", model="m", system="", tools=(), history=(), max_output_tokens=100)
TURN = Turn(provider="p", model="m", blocks=(), text="ok", stop=StopKind.END)


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

    def __init__(self, *errors: ModelError, limits: WaitLimits | None = None, has_answered: bool = False) -> None:
        self.time = FakeTime()
        self.scripted = Scripted(*errors)
        self.gate = RateGate(8, self.time.timing, has_answered=has_answered)
        self.outages: list[float | None] = []
        self.failures: list[tuple[ModelFault, int, float | None]] = []
        self.client = RetryingClient(self.scripted, self.gate, self.on_failure, limits=limits, timing=self.time.timing)

    async def on_failure(self, failed: FailedAttempt) -> None:
        """Keep a failure."""
        assert failed.request is REQUEST
        self.failures.append((failed.error.fault, failed.number, failed.waits_s))
        self.outages.append(failed.waiting_s)


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


async def test_a_faulty_reply_shows_that_a_model_server_is_there() -> None:
    """What looks like a wrong address ends a request at first contact, but not after a reply that broke a rule."""
    wrong = ModelError(ModelFault.TRANSPORT, "it sent a web page", is_wrong_server=True)
    first = Retried(wrong)
    with pytest.raises(ModelError):
        await first.client.generate(REQUEST)
    assert first.scripted.asked == 1
    unsent = error(ModelFault.TRANSPORT)
    unsent.is_unsent = True
    with pytest.raises(ModelError):
        await Retried(unsent, wrong).client.generate(REQUEST)
    assert await Retried(error(ModelFault.TRANSPORT), wrong).client.generate(REQUEST) is TURN


@pytest.mark.parametrize("fault", sorted(set(ModelFault) - RETRYABLE_FAULTS))
async def test_what_cannot_help_is_not_tried(fault: ModelFault) -> None:
    """A refused key or request is not sent again."""
    retried = Retried(error(fault))
    with pytest.raises(ModelError):
        await retried.client.generate(REQUEST)
    assert (retried.scripted.asked, retried.failures) == (1, [(fault, 1, None)])


@pytest.mark.parametrize("fault", sorted(RETRYABLE_FAULTS))
async def test_an_outage_is_waited_out(fault: ModelFault) -> None:
    """After a first success no number of failed attempts ends a request: the turn comes when the server is back."""
    retried = Retried(*[error(fault)] * 20, has_answered=True)
    assert await retried.client.generate(REQUEST) is TURN
    assert retried.scripted.asked == 21
    assert 60 < retried.time.now < MAX_OUTAGE_S
    waits = [waits_s for _, _, waits_s in retried.failures if waits_s is not None]
    assert max(waits) == MAX_PROBE_WAIT_S
    assert retried.outages[0] is None
    assert retried.outages[1:] == sorted(retried.outages[1:], key=lambda waiting_s: waiting_s or 0.0)
    assert not retried.gate.is_down


@pytest.mark.parametrize("most_s", [5.0, 90.0, MAX_OUTAGE_S])
async def test_an_outage_is_waited_out_only_so_long(most_s: float) -> None:
    """The last probe goes out when the time is up, and then the error comes, which says for how long nobody got in."""
    retried = Retried(*[error(ModelFault.TRANSPORT)] * 99, limits=WaitLimits(max_outage_s=most_s), has_answered=True)
    with pytest.raises(ModelError, match="no request got through for") as caught:
        await retried.client.generate(REQUEST)
    assert caught.value.is_outage
    assert retried.time.now == pytest.approx(most_s)
    assert retried.failures[-1][2] is None


async def test_during_an_outage_one_request_at_a_time_is_made() -> None:
    """Of 32 agents that meet an outage of 5 minutes one probes at a time, and all get their turn when it is over."""
    time = FakeTime()
    gate = RateGate(32, time.timing, has_answered=True)
    gate.speed_up()
    running, most_running, asked = 0, 0, list[float]()

    class Down:
        async def generate(self, request: Request) -> Turn:
            nonlocal running, most_running
            assert request is REQUEST
            asked.append(time.now)
            running += 1
            if len(asked) > 32 and time.now < 300:
                most_running = max(most_running, running)
            await asyncio.sleep(0)
            running -= 1
            if time.now < 300:
                raise error(ModelFault.TRANSPORT)
            return TURN

    async def ignore(_failed: FailedAttempt) -> None:
        return None

    async with asyncio.TaskGroup() as group:
        for _ in range(32):
            group.create_task(RetryingClient(Down(), gate, ignore, timing=time.timing).generate(REQUEST))
    assert most_running == 1
    assert 300 <= time.now <= 300 + 2 * MAX_PROBE_WAIT_S
    assert sum(number > 32 and at < 300 for number, at in enumerate(asked, 1)) < 20


async def test_a_request_that_fails_while_others_get_through_is_given_up() -> None:
    """What the server answers to everyone else is no outage: the one request has its eight attempts, and no more."""
    time = FakeTime()
    gate = RateGate(4, time.timing, has_answered=True)
    scripted = Scripted(*[error(ModelFault.OVERLOADED)] * 99)

    async def another_succeeds(_failed: FailedAttempt) -> None:
        gate.speed_up()

    with pytest.raises(ModelError) as caught:
        await RetryingClient(scripted, gate, another_succeeds, timing=time.timing).generate(REQUEST)
    assert (scripted.asked, caught.value.is_outage) == (MAX_ATTEMPTS, False)


@pytest.mark.parametrize("limits", [WaitLimits(), WaitLimits(lambda: 3_600.0, None)])
async def test_a_wish_beyond_the_time_left_is_reported_at_once(limits: WaitLimits) -> None:
    """A provider that asks to come back in a day is not asked again before: nobody waits for what cannot come."""
    retried = Retried(error(ModelFault.RATE_LIMITED, 86_400), limits=limits, has_answered=True)
    with pytest.raises(ModelError):
        await retried.client.generate(REQUEST)
    assert (retried.time.now, retried.scripted.asked) == (0, 1)


async def test_a_request_that_gave_up_before_an_outage_began_is_no_part_of_it() -> None:
    """It was given up for its own failures; while the last of them is recorded, requests of others fail, too."""
    retried = Retried(*[error(ModelFault.TRANSPORT)] * MAX_ATTEMPTS, has_answered=True)
    record = retried.on_failure

    async def on_failure(failed: FailedAttempt) -> None:
        await record(failed)
        retried.gate.speed_up()  # Another request's turn.
        if failed.number == MAX_ATTEMPTS:
            retried.gate.note_failure(error(ModelFault.TRANSPORT), is_probe=False)
            retried.gate.note_failure(error(ModelFault.TRANSPORT), is_probe=False)

    client = RetryingClient(retried.scripted, retried.gate, on_failure, timing=retried.time.timing)
    with pytest.raises(ModelError) as caught:
        await client.generate(REQUEST)
    assert retried.gate.is_down
    assert (retried.scripted.asked, caught.value.is_outage) == (MAX_ATTEMPTS, False)
    assert "no request got through" not in caught.value.message


async def test_waiting_ends_at_once_when_it_is_cancelled() -> None:
    """Whoever probes and whoever waits behind it leave at once, and the gate serves the next one."""
    gate = RateGate(4, has_answered=True)
    gate.note_failure(error(ModelFault.TRANSPORT), is_probe=False)
    gate.note_failure(error(ModelFault.TRANSPORT), is_probe=False)
    gate.close(3_600)
    client = RetryingClient(Scripted(), gate, _ignore)
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        waiting = [group.create_task(client.generate(REQUEST)) for _ in range(3)]
        await asyncio.sleep(0.01)
        for task in waiting:
            task.cancel()
    gate.note_answer()
    async with asyncio.timeout(10):
        assert await client.generate(REQUEST) is TURN


async def _ignore(_failed: FailedAttempt) -> None:
    return None


async def test_an_answer_ends_the_outage_for_those_who_wait() -> None:
    """A request from before the outage that brings its turn opens the gate for everyone, without another probe."""
    time = FakeTime()
    gate = RateGate(4, time.timing, has_answered=True)
    gate.note_failure(error(ModelFault.TRANSPORT), is_probe=False)
    gate.note_failure(error(ModelFault.TRANSPORT), is_probe=False)
    gate.close(30)
    async with asyncio.TaskGroup() as group:
        start = group.create_task(_start(gate, time))
        await asyncio.sleep(0)
        gate.speed_up()
    assert start.result() < 5


@pytest.mark.parametrize("fault", sorted(RETRYABLE_FAULTS))
async def test_attempts_are_bounded(fault: ModelFault) -> None:
    """Before the first success the error comes through after the last attempt, and is told as given up."""
    retried = Retried(*[error(fault)] * 20)
    with pytest.raises(ModelError):
        await retried.client.generate(REQUEST)
    assert retried.scripted.asked == MAX_ATTEMPTS
    assert retried.failures[-1] == (fault, MAX_ATTEMPTS, None)
    assert retried.time.now <= MAX_WAITED_S


@pytest.mark.parametrize(("asked_s", "waited_s"), [(7.0, 7.0), (500.0, 500.0), (0.0, 1.0)])
async def test_the_providers_wish_is_honoured_within_reason(asked_s: float, waited_s: float) -> None:
    """A retry-after within our patience is waited for, whole."""
    retried = Retried(error(ModelFault.RATE_LIMITED, asked_s))
    assert await retried.client.generate(REQUEST) is TURN
    assert retried.failures == [(ModelFault.RATE_LIMITED, 1, waited_s)]
    assert retried.time.now == waited_s


async def test_no_wait_goes_beyond_the_deadline() -> None:
    """When the wait would use up the time that is left, the error comes at once."""
    retried = Retried(error(ModelFault.RATE_LIMITED, 30), limits=WaitLimits(lambda: 30))
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
