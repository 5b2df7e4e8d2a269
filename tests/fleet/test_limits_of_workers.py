"""Limits that eight worker processes share, against a provider that keeps its own account, on SQLite and Postgres."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dbos", reason="the extra fleet is not installed")

from fleet.postgres import server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
BENCH = Path(__file__).resolve().parents[2] / "bench" / "fleet_limits.py"
WORKERS = 8


def bench() -> Any:  # noqa: ANN401 - a script's module, which no package holds
    """The measurement, loaded from its file."""
    spec = importlib.util.spec_from_file_location("bench_fleet_limits", BENCH)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def check_money(found: Any) -> None:  # noqa: ANN401 - the figures of that module
    """See that nothing above the limit was billed, that the limit was used, and that all went on when it was raised."""
    assert found.overshoot_usd == 0
    # A request that was in flight at a kill counts with all that it can have cost, and was mostly billed with less.
    assert found.limit_usd / 5 < found.billed_usd <= found.limit_usd
    assert found.waiting_at_limit > 0
    assert found.billed_in_all_usd > found.limit_usd
    assert found.recorded >= found.requests, "each request is on record before it is sent"


def test_eight_workers_spend_no_more_than_one_limit_while_they_are_killed(tmp_path: Path) -> None:
    """On a file; a request that was in flight at a kill is billed, and counts with all that it can have cost."""
    check_money(bench().money(tmp_path, f"sqlite:///{tmp_path}/queue.sqlite", 8, WORKERS, kill_every=6))


def test_the_same_on_postgres(tmp_path: Path) -> None:
    """Where the workers' transactions are at work at the same time."""
    with server() as postgres:
        check_money(bench().money(tmp_path, postgres.url, 8, WORKERS, kill_every=6))


def test_eight_workers_send_no_faster_than_one_rate_and_all_wait_when_one_is_throttled(tmp_path: Path) -> None:
    """No ten seconds have more than the rate; after one answer 429, nothing is sent for as long as it asked."""
    with server() as postgres:
        found = bench().rate(tmp_path, postgres.url, 8, WORKERS)
    assert found.done == found.runs
    assert found.requests == 96, "each run asks twelve times"
    assert found.most_per_s <= found.limit_per_s
    assert found.silent_s > found.retry_after_s / 2, "requests that were under way arrive before"
