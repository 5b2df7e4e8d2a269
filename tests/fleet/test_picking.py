"""Which waiting run is next: fair between tenants, by priority within one, and none that limits hold back."""

import shutil
from collections.abc import Generator
from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="the extra fleet is not installed")

import sqlalchemy as sa

from command import explorer_here
from explorer.fleet.database import HELD, META, RATES, RUNS, SPENDING, TENANTS, FleetDatabase
from explorer.fleet.exploration import WorkerPlan
from explorer.fleet.leases import Ending, Leases, TakenRun
from explorer.fleet.limits import LimitName, SharedLimitBook, put_share, shares_of
from explorer.fleet.picking import Ticket, has_waiting, is_stalled, take_next
from explorer.fleet.runs import FleetQueue, NewRun, QueueState
from explorer.fleet.worker import Worker
from explorer.run.hooks import RunHooks
from explorer.schema.settings import Settings

KEY = "openai-0123456789"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file with all tables."""
    path = tmp_path_factory.mktemp("fleet") / "queue.sqlite"
    queue = FleetQueue(FleetDatabase(f"sqlite:///{path}"))
    queue.prepare()
    queue.close()
    return path


@pytest.fixture
def leases(tables: Path, tmp_path: Path) -> Generator[Leases]:
    """A worker in a fleet without runs."""
    shutil.copy(tables, tmp_path / "queue.sqlite")
    queue = FleetQueue(FleetDatabase(f"sqlite:///{tmp_path / 'queue.sqlite'}"))
    one = Leases(queue, "one", 30.0)
    one.enter("host", 1, 2)
    yield one
    queue.close()


def submit(leases: Leases, tenant: str = "", priority: int = 100, model: str = "") -> Ticket:
    """Put a run into the queue; return what the engine would bring for it."""
    settings = {"model": model} if model else {}
    run_id, _ = leases.queue.submit(NewRun("What is new?", dict(settings), priority, tenant))
    return Ticket(run_id, run_id)


def workflow_of(leases: Leases, run_id: str) -> str:
    """The run's entry in the engine's queue."""
    with leases.database.transaction() as connection:
        return str(connection.scalar(sa.select(RUNS.c.workflow).where(RUNS.c.run_id == run_id)))


def test_a_tenant_with_many_runs_does_not_delay_another_ones(leases: Leases) -> None:
    """The tenant with the fewest runs at work is next; among equals the one that was not served for longest."""
    crowd = [submit(leases, "crowd") for _ in range(6)]
    taken = [take_next(leases, crowd[0], {})]
    late = submit(leases, "late")
    taken += [take_next(leases, crowd[number], {}) for number in (1, 2)]
    assert [one and one.tenant for one in taken] == ["crowd", "late", "crowd"]
    for one in taken:
        assert isinstance(one, TakenRun)
        leases.settle(one, Ending(QueueState.DONE))
    submit(leases, "late")
    served = [take_next(leases, crowd[3], {}), take_next(leases, late, {})]
    assert [one and one.tenant for one in served] == ["late", "crowd"], "both have none at work; late's is longer ago"


def test_a_tenant_with_a_share_gets_so_many_times_as_much(leases: Leases) -> None:
    """Of eight runs at work six are its, with a share of 3; with one place, its waiting counts three times."""
    put_share(leases.database, "large", 3)
    tickets = [submit(leases, tenant) for _ in range(8) for tenant in ("large", "small")]
    taken = [take_next(leases, ticket, {}) for ticket in tickets[:8]]
    tenants = [one.tenant for one in taken if one is not None]
    assert (tenants.count("large"), tenants.count("small")) == (6, 2)
    for one in filter(None, taken):
        leases.settle(one, Ending(QueueState.DONE))
    turns: list[str] = []
    for since, ticket in ((200.0, tickets[8]), (400.0, tickets[9])):
        ago = {"large": 100.0, "small": since}
        with leases.database.transaction() as connection:
            for tenant, seconds in ago.items():
                served = sa.update(TENANTS).where(TENANTS.c.tenant == tenant)
                connection.execute(served.values(served_at=leases.database.now - seconds))
        next_one = take_next(leases, ticket, {})
        assert next_one is not None
        turns.append(next_one.tenant)
        leases.settle(next_one, Ending(QueueState.DONE))
    assert turns == ["large", "small"]
    assert shares_of(leases.database) == {"large": 3}
    put_share(leases.database, "large", 1)
    assert shares_of(leases.database) == {}


def test_a_share_is_set_on_the_command_line(leases: Leases, tmp_path: Path) -> None:
    """It is listed with the limits, and is of a tenant."""
    known = {"EXPLORER_FLEET_DATABASE": leases.database.dsn}
    for words, code, said in (
        (("--tenant", "research", "--share", "3"), 0, "tenant research: 3 times as much of the workers as others"),
        ((), 0, "tenant research: 3 times as much of the workers as others"),
        (("--share", "3"), 2, "name it: --tenant NAME"),
        (("--tenant", "research", "--share", "0"), 2, "give a number from 1 to 1000"),
        (("--tenant", "research", "--share", "1"), 0, "as much of the workers as others"),
        ((), 0, "no limits"),
    ):
        done = explorer_here("fleet", "limit", *words, cwd=tmp_path, settings=known)
        assert (done.returncode, said in done.stdout + done.stderr) == (code, True), done.stdout + done.stderr


def test_within_a_tenant_priority_decides_and_then_age(leases: Leases) -> None:
    """The engine's own order is not asked; what it brought waits in the other run's place."""
    old, urgent, newer = submit(leases), submit(leases, priority=1), submit(leases)
    first = take_next(leases, newer, {})
    assert first is not None
    assert first.run_id == urgent.run_id
    assert workflow_of(leases, urgent.run_id) == newer.workflow
    assert workflow_of(leases, newer.run_id) == urgent.workflow
    second = take_next(leases, urgent, {})
    assert second is not None
    assert second.run_id == old.run_id
    assert take_next(leases, Ticket(old.run_id, old.workflow), {}) is not None
    assert take_next(leases, old, {}) is None
    assert not has_waiting(leases)


def reach(leases: Leases, name: LimitName, refused: int) -> None:
    """Let a limit be reached: something was refused, for which too little is left now."""
    book = SharedLimitBook(leases.database)
    book.put(name, 100)
    (use,) = (one for one in book.uses() if one.name == name)
    row = {**name._asdict(), "window": use.window}
    with leases.database.transaction() as connection:
        connection.execute(sa.insert(SPENDING).values(**row, spent=95, refused=refused))


def test_runs_wait_while_a_limit_of_theirs_is_reached(leases: Leases) -> None:
    """Of the tenant, of the key that such runs use, or of the fleet; others are taken meanwhile."""
    one, two = submit(leases, "a"), submit(leases, "b", model="openai:x")
    reach(leases, LimitName("tenant", "a", "tokens", "total"), 6)
    reach(leases, LimitName("key", KEY, "requests", "day"), 6)
    keys = {workflow_models(leases, two.run_id): {KEY}}
    assert take_next(leases, one, keys) is None
    assert is_stalled(leases, keys)
    three = submit(leases, "b", model="anthropic:x")
    taken = take_next(leases, one, keys)
    assert taken is not None
    assert taken.run_id == three.run_id
    assert not is_stalled(leases, keys), "a run is at work"
    reach(leases, LimitName("fleet", "", "tokens", "day"), 6)
    submit(leases, "c")
    assert take_next(leases, one, {}) is None
    SharedLimitBook(leases.database).put(LimitName("fleet", "", "tokens", "day"), 101)
    assert take_next(leases, one, {}) is not None, "enough is left for what was refused"


def workflow_models(leases: Leases, run_id: str) -> str:
    """What was submitted of a run's models, as its row has it."""
    with leases.database.transaction() as connection:
        return str(connection.scalar(sa.select(RUNS.c.models).where(RUNS.c.run_id == run_id)))


def test_a_run_of_which_a_dead_worker_holds_something_is_taken_also_at_the_limit(leases: Leases) -> None:
    """Its journal is what brings it back."""
    one = submit(leases)
    reach(leases, LimitName("fleet", "", "tokens", "day"), 6)
    assert take_next(leases, one, {}) is None
    with leases.database.transaction() as connection:
        row = {"scope": "fleet", "subject": "", "unit": "tokens", "period": "day", "window": "2026-11-24"}
        connection.execute(sa.insert(HELD).values(**row, run_id=one.run_id, epoch=1, held=50, is_presumed=True))
    assert take_next(leases, one, {}) is not None


def test_runs_wait_while_their_key_is_throttled(leases: Leases) -> None:
    """Only those of which it is known that they use it; a paused queue gives nothing at all."""
    one = submit(leases, model="openai:x")
    models = workflow_models(leases, one.run_id)
    with leases.database.transaction() as connection:
        connection.execute(sa.insert(RATES).values(key_id=KEY, closed_until=leases.database.now + 60))
    assert take_next(leases, one, {models: {KEY}}) is None
    with leases.database.transaction() as connection:
        connection.execute(sa.insert(META).values(name="paused", value="1"))
    assert take_next(leases, one, {}) is None
    leases.queue.pause(is_paused=False)
    assert take_next(leases, one, {}) is not None


def test_a_run_that_a_worker_waits_with_is_not_handed_out_again(leases: Leases) -> None:
    """It is in that worker's hands, however long the limit is reached."""
    one = submit(leases)
    reach(leases, LimitName("fleet", "", "tokens", "day"), 6)
    with leases.database.transaction() as connection:
        connection.execute(sa.text("UPDATE workflow_status SET status = 'PENDING'"))
        connection.execute(sa.update(RUNS).values(queued_at=RUNS.c.queued_at - 1000))
    assert take_next(leases, one, {}) is None
    assert leases.hand_out_again() == 0


async def test_a_run_that_its_worker_does_not_know_of_goes_back(leases: Leases, tmp_path: Path) -> None:
    """It was taken, and no answer of the database came; at the second look it is not in the middle of being taken."""
    run = submit(leases)
    settings = Settings(workspace=tmp_path / "workspace")
    worker = Worker(leases.queue, WorkerPlan(settings, RunHooks, lambda _folder: settings), name="one")
    assert leases.take(run.run_id) is not None
    await worker._look()
    assert leases.queue.run(run.run_id).state is QueueState.RUNNING
    await worker._look()
    assert leases.queue.run(run.run_id).state is QueueState.WAITING
    assert leases.queue.run(run.run_id).deaths == 0
