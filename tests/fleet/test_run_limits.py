"""The shared limits as a run's requests meet them: they wait for others, pause at the end, and lose nothing paid."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="the extra fleet is not installed")

import sqlalchemy as sa

from explorer.fleet.database import RUNS, FleetDatabase
from explorer.fleet.ledger import Answers, Ledger, ShareAsked, ShareExchange, Taking, release
from explorer.fleet.limits import NANO, LimitName, LimitUse, SharedLimitBook
from explorer.fleet.rates import KeyIds
from explorer.fleet.run_limits import RunLimits
from explorer.fleet.shares import WorkerShares
from explorer.llm.models import ModelSetup
from explorer.schema.errors import ConfigError, ModelError, ModelFault, PausedError
from explorer.schema.shared_limits import RequestUse

LIMIT = LimitName("fleet", "", "usd", "total")
CENT = RequestUse(1, 100, 0.01)


@pytest.fixture
def database(tmp_path: Path) -> Generator[FleetDatabase]:
    """A database with the tables and nothing in them."""
    with closing(FleetDatabase(f"sqlite:///{tmp_path / 'queue.sqlite'}")) as opened:
        yield opened


def use(database: FleetDatabase) -> LimitUse:
    """What is used of the limit."""
    (found,) = SharedLimitBook(database).uses()
    return found


@dataclass(frozen=True)
class CountingLedger(Ledger):
    """Counts what is asked of the database."""

    asked: list[ShareAsked] = field(default_factory=list[ShareAsked])

    def exchange(self, given: ShareExchange) -> Answers:
        """Count, and ask."""
        self.asked.extend(given.asks)
        return super().exchange(given)


@asynccontextmanager
async def worker(database: FleetDatabase, name: str) -> AsyncGenerator[WorkerShares]:
    """A worker that speaks to the database."""
    shares = WorkerShares(Ledger(database, name))
    async with shares.served():
        yield shares


async def run(database: FleetDatabase, shares: WorkerShares, run_id: str) -> RunLimits:
    """A run at work on a worker."""
    row = {"run_id": run_id, "workflow": run_id, "tenant": "", "question": "?", "settings": "{}", "priority": 1}
    with database.transaction() as connection:
        at_work = {"state": "running", "worker": shares.ledger.worker, "epoch": 1}
        connection.execute(sa.insert(RUNS).values(**row, **at_work, submitted_at=0, queued_at=0))
    return RunLimits(shares, await shares.begin(Taking(run_id, 1, "")), KeyIds(database.salt, ModelSetup()))


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for something that other tasks bring about."""
    async with asyncio.timeout(30):
        while not is_so():  # noqa: ASYNC110 - it is in a database
            await asyncio.sleep(0.01)


@pytest.mark.slow
async def test_a_request_waits_for_what_others_hold_and_is_sent_when_they_give_it_back(database: FleetDatabase) -> None:
    """Those others may be another worker's; what they used stays spent."""
    SharedLimitBook(database).put(LIMIT, 0.015)
    async with worker(database, "one") as one, worker(database, "two") as two:
        first, second = await run(database, one, "r1"), await run(database, two, "r2")
        is_sent = asyncio.Event()

        async def ask_second() -> None:
            async with second.holding("openai", CENT) as hold:
                is_sent.set()
                hold.used = CENT

        async with asyncio.TaskGroup() as group:
            async with first.holding("openai", CENT) as hold:
                task = group.create_task(ask_second())
                await until(lambda: use(database).held == NANO // 100)
                assert not is_sent.is_set()
                hold.used = RequestUse(1, 10, 0.001)
            await task
        with database.transaction() as connection:
            (await two.release("r2"))(connection)
            (await one.release("r1"))(connection)
    assert (use(database).spent, use(database).held) == (11 * NANO // 1000, 0)


async def test_a_run_pauses_at_the_limit_when_its_other_requests_have_ended(database: FleetDatabase) -> None:
    """What they cost is booked, and not lost with them; nothing more is sent."""
    SharedLimitBook(database).put(LIMIT, 0.02)
    async with worker(database, "one") as shares:
        limits = await run(database, shares, "r1")
        async with limits.holding("openai", CENT) as hold:
            hold.used = CENT

        async def ask_too_much() -> None:
            async with limits.holding("openai", RequestUse(1, 100, 0.011)):
                raise AssertionError

        async with limits.holding("openai", CENT) as hold:
            refused = asyncio.ensure_future(ask_too_much())
            await until(lambda: use(database).refused > 0)
            assert not refused.done(), "a request is at work"
            hold.used = CENT
        with pytest.raises(PausedError, match=r"limit of \$0.02 for the fleet is reached.*\$0.011, and \$0.01 is left"):
            await refused
        with pytest.raises(PausedError):
            await ask_too_much()
        with database.transaction() as connection:
            (await shares.release("r1"))(connection)
    assert (use(database).spent, use(database).held) == (2 * NANO // 100, 0)
    assert use(database).is_reached


async def test_a_run_that_is_stopped_while_it_waits_for_others_ends_at_once(database: FleetDatabase) -> None:
    """As by `queue stop --all`: nothing stays reserved for the request that it did not send."""
    SharedLimitBook(database).put(LIMIT, 0.015)
    async with worker(database, "one") as shares:
        first, second = await run(database, shares, "r1"), await run(database, shares, "r2")

        async def ask_second() -> None:
            async with second.holding("openai", CENT):
                raise AssertionError

        async with first.holding("openai", CENT):
            waiting = asyncio.ensure_future(ask_second())
            await until(lambda: use(database).held == NANO // 100)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        for run_id in ("r1", "r2"):
            with database.transaction() as connection:
                (await shares.release(run_id))(connection)
    assert (use(database).spent, use(database).held) == (0, 0)


async def test_many_requests_of_a_run_need_few_transactions(database: FleetDatabase) -> None:
    """Eight are paid out of one slice; what the run did not use comes back at its end."""
    SharedLimitBook(database).put(LIMIT, 100.0)
    ledger = CountingLedger(database, "one")
    shares = WorkerShares(ledger)
    async with shares.served():
        limits = await run(database, shares, "r1")
        for _ in range(8):
            async with limits.holding("openai", CENT) as hold:
                hold.used = CENT
        assert len(ledger.asked) == 1
        with database.transaction() as connection:
            (await shares.release("r1"))(connection)
    assert (use(database).spent, use(database).held) == (8 * NANO // 100, 0)


async def test_money_is_not_limited_where_no_price_is_known(database: FleetDatabase) -> None:
    """Such a request is refused with what to do; without a limit of money it is sent."""
    async with worker(database, "one") as shares:
        limits = await run(database, shares, "r1")
        unpriced = RequestUse(1, 100, None)
        async with limits.holding("openai", unpriced) as hold:
            hold.used = unpriced
        SharedLimitBook(database).put(LIMIT, 100.0)
        await until(lambda: bool(shares.uses))
        with pytest.raises(ConfigError, match="no price is known"):
            async with limits.holding("openai", unpriced):
                raise AssertionError


@pytest.mark.slow
async def test_all_workers_wait_for_what_a_provider_asked_one_of(database: FleetDatabase) -> None:
    """A short wait is waited for; for a long one runs pause, and say why."""
    async with worker(database, "one") as one, worker(database, "two") as two:
        first, second = await run(database, one, "r1"), await run(database, two, "r2")

        async def throttled(wait_s: float) -> None:
            async with first.holding("openai", CENT), first.sending("openai"):
                raise ModelError(ModelFault.RATE_LIMITED, "slow down", retry_after_s=wait_s)

        with pytest.raises(ModelError):
            await throttled(2.0)
        await until(lambda: bool(two.keys))
        async with second.holding("openai", CENT), second.sending("openai"):
            assert not SharedLimitBook(database).rates(), "the time is over"
        with pytest.raises(ModelError):
            await throttled(600.0)
        await until(lambda: bool(two.keys))
        with pytest.raises(PausedError, match=r"asks to wait for [56]\d\d s: slow down"):
            async with second.holding("openai", CENT):
                raise AssertionError


def test_the_last_spending_of_a_run_is_booked_once(database: FleetDatabase) -> None:
    """Also where the transaction that ends it has to be tried again."""
    SharedLimitBook(database).put(LIMIT, 1.0)
    taking = Taking("r1", 1, "")
    for _ in range(2):
        with database.transaction() as connection:
            release(connection, taking, {})
    assert use(database).spent == 0
