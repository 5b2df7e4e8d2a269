"""Limits that a fleet shares, in the database: nothing is granted twice, and what a dead worker held is spent."""

import random
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="the extra fleet is not installed")

import sqlalchemy as sa

from explorer.fleet.database import HELD, RUNS, SPENDING, FleetDatabase
from explorer.fleet.dead_holdings import presume_spent, settle_earlier
from explorer.fleet.ledger import Answer, Later, Ledger, Refused, Report, ShareAsked, ShareExchange, Taking, release
from explorer.fleet.limits import NANO, LimitName, LimitUse, SharedLimitBook, SliceName, shown, whole, window_of
from explorer.fleet.rates import Closing, KeyIds, SlotsAsked
from explorer.llm.models import ModelSetup
from explorer.schema.errors import ConfigError

FLEET = LimitName("fleet", "", "usd", "day")
OF_A = LimitName("tenant", "a", "tokens", "total")
OF_KEY = LimitName("key", "openai-0123456789", "requests", "month")
KEY = OF_KEY.subject


@pytest.fixture
def database(tmp_path: Path) -> Generator[FleetDatabase]:
    """A database with the tables and nothing in them."""
    with closing(FleetDatabase(f"sqlite:///{tmp_path / 'queue.sqlite'}")) as opened:
        yield opened


def taken(database: FleetDatabase, run_id: str, worker: str = "one", epoch: int = 1, tenant: str = "") -> Taking:
    """A run at work, as its lease says."""
    row = {"run_id": run_id, "workflow": run_id, "tenant": tenant, "question": "?", "settings": "{}", "priority": 1}
    with database.transaction() as connection:
        connection.execute(sa.delete(RUNS).where(RUNS.c.run_id == run_id))
        connection.execute(
            sa.insert(RUNS).values(**row, state="running", worker=worker, epoch=epoch, submitted_at=0, queued_at=0)
        )
    return Taking(run_id, epoch, tenant)


def ask(ledger: Ledger, taking: Taking, usd: float, tokens: int = 10) -> Answer:
    """What the database says to a request of this size at most."""
    need = {"usd": whole("usd", usd), "tokens": tokens, "requests": 1}
    answers = ledger.exchange(ShareExchange(asks=[ShareAsked(taking, KEY, need)], tenants={taking.tenant}))
    (answer,) = answers.granted
    return answer


def use(database: FleetDatabase, name: LimitName = FLEET) -> LimitUse:
    """What is used of a limit."""
    return next(one for one in SharedLimitBook(database).uses() if one.name == name)


def test_a_request_takes_a_slice_of_each_limit_that_counts_it_or_none(database: FleetDatabase) -> None:
    """Of the fleet, of its tenant and of its key; where one has too little left, nothing of the others is held."""
    book, ledger = SharedLimitBook(database), Ledger(database, "one")
    for name, amount in ((FLEET, 32.0), (OF_A, 100), (OF_KEY, 3)):
        book.put(name, amount)
    granted = ask(ledger, taken(database, "r1", tenant="a"), 0.25)
    assert not isinstance(granted, Refused | Later)
    assert {name.limit: amount for name, amount in granted.items()} == {FLEET: NANO, OF_A: 10, OF_KEY: 1}
    refused = ask(ledger, taken(database, "r2", tenant="a"), 0.25, tokens=91)
    assert isinstance(refused, Refused)
    assert "100 tokens for tenant a" in refused.words
    other = ask(ledger, taken(database, "r3", tenant="b"), 0.25, tokens=91)
    assert not isinstance(other, Refused | Later)
    assert {name.limit for name in other} == {FLEET, OF_KEY}
    assert use(database, OF_A).held == 10


def test_a_slice_is_never_smaller_than_the_request(database: FleetDatabase) -> None:
    """The rest of a limit goes to one request whole, or not at all."""
    SharedLimitBook(database).put(FLEET, 1.0)
    ledger = Ledger(database, "one")
    first, second = taken(database, "r1"), taken(database, "r2")
    assert isinstance(ask(ledger, first, 1.01), Refused)
    assert not isinstance(ask(ledger, first, 0.75), Refused)
    refused = ask(ledger, second, 0.3)
    assert isinstance(refused, Refused)
    assert not refused.is_final, "the first may give it back"
    of = use(database).of
    ledger.exchange(ShareExchange(reports=[Report("r1", 1, of, whole("usd", 0.74), whole("usd", 0.75))]))
    refused = ask(ledger, second, 0.3)
    assert isinstance(refused, Refused)
    assert refused.is_final
    assert use(database).is_reached
    assert not isinstance(ask(ledger, second, 0.26), Refused)


def test_nothing_is_granted_twice_whatever_workers_do(database: FleetDatabase) -> None:
    """Workers ask, report, end and die in any order: what is spent and held is never above the limit."""
    chance, limit = random.Random(5), 100  # noqa: S311 - which of them does what
    SharedLimitBook(database).put(name := LimitName("fleet", "", "tokens", "total"), limit)
    ledgers = {worker: Ledger(database, worker) for worker in ("one", "two", "three")}
    runs = {f"r{number}": 1 for number in range(6)}
    workers = {run_id: chance.choice(list(ledgers)) for run_id in runs}
    takings = {run_id: taken(database, run_id, workers[run_id]) for run_id in runs}
    of, local, truth = SliceName(name, "all"), dict.fromkeys(runs, 0), dict.fromkeys(runs, 0)
    for _ in range(60):
        run_id = chance.choice(list(runs))
        ledger, taking = ledgers[workers[run_id]], takings[run_id]
        match chance.choice(("ask", "spend", "die", "end")):
            case "ask":
                answer = ask(ledger, taking, 0.0, tokens=chance.randint(1, 9))
                local[run_id] += answer.get(of, 0) if not isinstance(answer, Refused | Later) else 0
            case "spend" if local[run_id]:
                spent = chance.randint(1, local[run_id])
                truth[run_id] += spent
                local[run_id] -= spent
                ledger.exchange(ShareExchange(reports=[Report(run_id, taking.epoch, of, spent, spent)]))
            case "die":
                with database.transaction() as connection:
                    presume_spent(connection, [run_id])
                runs[run_id] += 1
                takings[run_id] = taken(database, run_id, workers[run_id], runs[run_id])
                unreported = chance.randint(0, local[run_id])
                truth[run_id] += unreported
                settle_earlier(
                    database, run_id, runs[run_id],
                    lambda _seq, _vendor, run_id=run_id, unreported=unreported: {
                        "tokens": reported(database, run_id) + unreported
                    },
                )  # fmt: skip
                local[run_id] = 0
            case _:
                with database.transaction() as connection:
                    release(connection, taking, {})
                local[run_id] = 0
        found = use(database, name)
        assert found.spent == sum(truth.values())
        assert found.held == sum(local.values())
        assert found.spent + found.held <= limit


def reported(database: FleetDatabase, run_id: str) -> int:
    """What the rows of a run say it has spent."""
    with database.transaction() as connection:
        return int(connection.scalar(sa.select(sa.func.sum(HELD.c.spent)).where(HELD.c.run_id == run_id)) or 0)


def test_what_a_dead_worker_held_is_spent_until_its_journal_is_read(database: FleetDatabase) -> None:
    """Then what was sent counts, and the rest comes back; what the dead one says later is not believed."""
    SharedLimitBook(database).put(FLEET, 32.0)
    ledger = Ledger(database, "one")
    dead = taken(database, "r1")
    ask(ledger, dead, 1.0)
    assert use(database).held == NANO
    with database.transaction() as connection:
        presume_spent(connection, ["r1"])
    assert (use(database).spent, use(database).held) == (NANO, 0)
    ledger.exchange(ShareExchange(reports=[Report("r1", 1, use(database).of, NANO // 2, NANO)]))
    assert (use(database).spent, use(database).held) == (NANO, 0)
    settle_earlier(database, "r1", 2, lambda _seq, _vendor: {"usd": NANO // 4})
    assert (use(database).spent, use(database).held) == (NANO // 4, 0)
    assert isinstance(ask(ledger, dead, 1.0), dict)
    taken(database, "r1", "two", 2)
    assert isinstance(ask(ledger, dead, 1.0), Later), "the run is another worker's"


def test_a_limit_begins_anew_with_its_window(database: FleetDatabase) -> None:
    """A day of UTC, a month, or never; a changed amount keeps what was spent, a removed limit does not."""
    now = 1_772_323_199.0  # 2026-02-28 23:59:59
    assert [window_of(period, now) for period in ("day", "month", "total")] == ["2026-02-28", "2026-02", "all"]
    assert [window_of(period, now + 1) for period in ("day", "month", "total")] == ["2026-03-01", "2026-03", "all"]
    book = SharedLimitBook(database)
    book.put(FLEET, 1.0)
    ask(Ledger(database, "one"), taken(database, "r1"), 0.5)
    book.put(FLEET, 2.0)
    assert (use(database).amount, use(database).held) == (2 * NANO, NANO // 2)
    with database.transaction() as connection:
        connection.execute(sa.update(SPENDING).values(window="2000-01-01"))
    assert use(database).held == 0
    assert book.remove(FLEET)
    assert not book.remove(FLEET)
    assert book.uses() == []
    for amount in (0, -1, float("inf"), float("nan")):
        with pytest.raises(ConfigError, match="cannot be a limit"):
            book.put(FLEET, amount)


def test_requests_are_sent_no_faster_than_a_keys_rate_also_when_late(database: FleetDatabase) -> None:
    """Workers get the next times in order; no period holds more of them, with all that may be late."""
    SharedLimitBook(database).put_rate(KEY, 5, 1.0)
    due: list[float] = []
    for worker, count in (("one", 3), ("two", 4), ("one", 1), ("two", 9)):
        answers = Ledger(database, worker).exchange(ShareExchange(slots=[SlotsAsked(KEY, count)]))
        slots = answers.slots[KEY]
        due += [answers.now + slots.first_s + number * slots.every_s for number in range(count)]
    late_s = 0.1
    assert due == sorted(due)
    for at in due:
        sent = [one + late_s if one >= at else one for one in due]
        assert sum(at <= one < at + 1.0 for one in (*due, at)) - 1 <= 5
        assert sum(at + late_s <= one < at + late_s + 1.0 for one in sent) <= 5


def test_a_clock_that_was_ahead_keeps_no_key_closed(database: FleetDatabase) -> None:
    """Once it is right again, a key is open, and can be closed; its next slot comes after no more than real ones."""
    right, ledger = database.now, Ledger(database, "one")
    SharedLimitBook(database).put_rate(KEY, 60, 60.0)
    database.now = right + 4 * 365 * 86_400
    ledger.exchange(ShareExchange(slots=[SlotsAsked(KEY, 3)], closings=[Closing(KEY, 30.0, "slow down")]))
    assert 25 < ledger.exchange(ShareExchange()).keys[KEY].closed_s <= 30
    database.now = right
    assert ledger.exchange(ShareExchange()).keys[KEY].closed_s == 0
    assert SharedLimitBook(database).rates()[0].closed_s == 0
    assert ledger.exchange(ShareExchange(slots=[SlotsAsked(KEY, 2)])).slots[KEY].first_s == 0
    assert 1.9 < ledger.exchange(ShareExchange(slots=[SlotsAsked(KEY, 1)])).slots[KEY].first_s < 2.1
    ledger.exchange(ShareExchange(closings=[Closing(KEY, 20.0, "slow down again")]))
    assert ledger.exchange(ShareExchange()).keys[KEY].closed_why == "slow down again"


def test_a_throttled_key_is_closed_for_all_workers(database: FleetDatabase) -> None:
    """Until the time that the provider asked for, and for an hour at most; other keys are open."""
    one, two = Ledger(database, "one"), Ledger(database, "two")
    one.exchange(ShareExchange(closings=[Closing(KEY, 20.0, "slow down"), Closing("other-0123456789", 1e9, "never")]))
    one.exchange(ShareExchange(closings=[Closing(KEY, 2.0, "shorter")]))
    keys = two.exchange(ShareExchange()).keys
    assert 15 < keys[KEY].closed_s <= 20
    assert keys[KEY].closed_why == "slow down"
    assert 3500 < keys["other-0123456789"].closed_s <= 3600
    SharedLimitBook(database).put_rate(KEY, 5, 1.0)
    slots = two.exchange(ShareExchange(slots=[SlotsAsked(KEY, 1)])).slots[KEY]
    assert slots.first_s > 15


def test_a_key_is_known_by_a_hash_that_only_its_fleet_makes(database: FleetDatabase, tmp_path: Path) -> None:
    """The id is that of all workers with the key, and another one in another fleet."""
    path = tmp_path / "other.sqlite"
    with closing(FleetDatabase(str(database.url))) as again, closing(FleetDatabase(f"sqlite:///{path}")) as other:
        ids: Sequence[str] = [KeyIds(one.salt, ModelSetup()).id_of("openai") for one in (database, again, other)]
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize(
    ("unit", "amount", "words"),
    [("usd", 0.1 + 0.2, "$0.30"), ("usd", 0.000001, "$0.000001"), ("tokens", 1_000_000, "1,000,000 tokens")],
)
def test_amounts_are_whole_and_shown_as_people_write_them(unit: str, amount: float, words: str) -> None:
    """Sums of floats do not become a billionth of a dollar more."""
    assert shown(unit, whole(unit, amount)) == words
