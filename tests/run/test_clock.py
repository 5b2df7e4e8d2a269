"""A wall clock that jumps: order, limits and resuming do not hang on it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import cycle, pairwise
from pathlib import Path

import pytest

from explorer.journal.listing import read_records
from explorer.run.hooks import RunHooks
from explorer.run.run import resume, start
from explorer.schema.events import Status
from explorer.schema.settings import Limits, Settings

NOON = datetime(2026, 8, 10, 12, tzinfo=UTC)
JUMPS = (timedelta(0), timedelta(hours=-1), timedelta(days=3650), timedelta(seconds=-5))


def jumping() -> Callable[[], datetime]:
    """A clock set back an hour, forward ten years, and back again, over and over."""
    jumps = cycle(JUMPS)
    return lambda: NOON + next(jumps)


@pytest.mark.slow
async def test_a_run_under_a_jumping_clock_is_whole_and_can_be_gone_on_with(tmp_path: Path) -> None:
    """Ten years forward is no time limit, an hour back no disorder; a follow-up finds the run as it was."""
    settings = Settings(workspace=tmp_path, model="offline", is_sample=True, shell="off", limits=Limits(max_time_s=600))
    first = await start("What was notable on the sample day?", settings, RunHooks(now=jumping()))
    assert (first.status, first.reason) == (Status.COMPLETE, "")
    before = read_records(first.folder)
    assert any(late.at < early.at for early, late in pairwise(before))
    again = await resume(first.folder, settings, "What about power cuts?", RunHooks(now=jumping()))
    assert again.status is Status.COMPLETE
    after = read_records(first.folder)
    assert after[: len(before)] == before
    assert [record.seq for record in after] == list(range(1, len(after) + 1))
