"""Many runs and many helpers: whatever strikes at random, each run ends with a report and within its limits."""

import asyncio
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from explorer.agents.budget import Account, Amount, Budget
from explorer.observe.command_result import exit_code
from explorer.run.hooks import StopSignal
from explorer.run.run import start
from explorer.schema.events import JournalRecord, Status, TurnTaken
from faults.chaos import Chaos
from faults.stage import QUESTION, WATCH_S, WIRES, WaitedTime, check_left_behind, hooks, steady
from faults.stage import settings as settings_for
from model_servers import Asked, Reply

FAULT_SHARE = 0.3
REPLY_USD = (2_000 * 1 + 800 * 5) / 1_000_000
"""Of each reply, at the prices of the settings."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 21))])
async def test_every_run_ends_with_a_report_though_a_third_of_all_replies_fails(seed: int, tmp_path: Path) -> None:
    """Twenty runs, 30 % of all replies a fault of the table: twenty complete reports."""
    chaos = Chaos(seed, FAULT_SHARE, parts=4)
    with WIRES["anthropic" if seed % 2 else "openai"](chaos) as server:
        async with asyncio.timeout(300):
            result = await start(
                QUESTION, settings_for(tmp_path, server), hooks(WATCH_S, passing=WaitedTime().timing())
            )
        check_left_behind(result.folder, server)
    assert result.status is Status.COMPLETE, result.reason
    assert "A good May" in result.report_text
    assert chaos.faults


class Ledger(StopSignal):
    """Looks at the accounts at every record: what is spent, and what is spent and reserved together."""

    def __init__(self, limit_usd: float) -> None:
        super().__init__()
        self._limit_usd = limit_usd
        self._budget_seen: Budget | None = None
        self.spent_usd = [0.0]
        self.most_reserved_usd = 0.0

    @property
    def explorable_usd(self) -> float:
        """What is not held back for the report."""
        assert self._budget_seen is not None
        return self._budget_seen.exploration.max_cost_usd or 0.0

    def attach(self, budget: Budget) -> None:
        """Keep the accounts."""
        super().attach(budget)
        self._budget_seen = budget

    def see(self, record: JournalRecord) -> None:
        """Check one record."""
        if isinstance(record.event, TurnTaken):
            self.spent_usd.append(self.spent_usd[-1] + (record.event.turn.cost_usd or 0.0))
        if self._budget_seen is None:
            return  # The run's first record comes before its accounts.
        root = self._budget_seen.root
        self.most_reserved_usd = max(self.most_reserved_usd, root.used.cost_usd + root.reserved.cost_usd)


def _dear(asked: Asked, helpers: int) -> Reply:
    reply = steady(asked, helpers)
    return replace(reply, usage={"input": 2_000, "output": 800})


@pytest.mark.slow
@pytest.mark.parametrize(("helpers", "paid"), [(60, 10), pytest.param(500, 40, marks=pytest.mark.slow)])
async def test_many_helpers_at_once_never_overspend(helpers: int, paid: int, tmp_path: Path) -> None:
    """Helpers for many times the money: no record ever shows more spent or reserved than the limit; a report."""
    limit_usd = paid * 3 * REPLY_USD
    ledger = Ledger(limit_usd)
    with WIRES["openai"](lambda asked: _dear(asked, helpers)) as server:
        settings = settings_for(
            tmp_path,
            server,
            max_agents=helpers + 1,
            max_parallel_agents=helpers,
            max_cost_usd=limit_usd,
            max_steps=10 * helpers,
        )
        given = replace(hooks(watch_s=30), stop=ledger, observe=ledger.see)
        result = await start(QUESTION, settings, given)
        check_left_behind(result.folder, server)
    assert max(ledger.spent_usd) <= limit_usd
    assert ledger.most_reserved_usd <= limit_usd + 1e-9
    assert all(before <= after for before, after in pairwise(ledger.spent_usd))
    # The limit is there to be used, but for the report: what is reserved and not needed goes to the next in turn.
    assert ledger.spent_usd[-1] >= 0.8 * ledger.explorable_usd
    assert result.status is Status.PARTIAL
    assert result.reason == "cost limit"
    assert exit_code(result.status.value, result.cause) == 3
    assert result.report is not None
    assert result.agents == helpers + 1 + (1 if "A good May" in result.report_text else 0)


async def test_room_is_waited_for_rather_than_refused() -> None:
    """Requests whose worst cases do not fit side by side go one after another, whole, until the money is spent."""
    account = Account("run", max_cost_usd=1.0)
    most = served = refused = 0.0
    replies: set[int] = set()

    async def ask() -> None:
        nonlocal most, served, refused
        hold = await account.reserve(0, 16_000, lambda _input, output: output * 0.4 / 16_000)
        if isinstance(hold, str):
            refused += 1
            return
        replies.add(hold.max_output_tokens)
        most = max(most, account.used.cost_usd + account.reserved.cost_usd)
        await asyncio.sleep(0)
        account.commit(hold, Amount(1, 100, 0.02))
        served += 1

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask()) for _ in range(100)]
        tasks[40].cancel()
    assert most <= 1.0 + 1e-9
    assert (served, refused) == (49, 50)
    assert max(replies) == 16_000
    assert account.used.cost_usd > 0.9
