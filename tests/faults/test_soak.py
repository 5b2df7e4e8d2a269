import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from command import environment
from explorer.journal.listing import read_records
from explorer.schema.events import AgentFinished, AgentStarted
from faults.chaos import Chaos
from faults.stage import WatchfulAnthropic, check_left_behind, events_of, only_run

MOST_GROWTH_MB = 15
MOST_LEFT_MB = 5
"""Of what is allocated and not freed: five kilobytes a helper."""
ALLOCATOR = {
    "PYTHONMALLOC": "malloc",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "131072",
    "MALLOC_TRIM_THRESHOLD_": "131072",
}
LIFE = Path(__file__).with_name("soak_life.py")


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("helpers", "cancels"),
    [pytest.param(4, 2, marks=pytest.mark.slow), pytest.param(1_000, 40, marks=pytest.mark.slow)],
    ids=["few", "many"],
)
def test_a_storm_of_cancels_leaves_nothing_behind(helpers: int, cancels: int, tmp_path: Path) -> None:
    """Faults at random, cancels, resumes: a report in the end, and no task, handle, process or memory left.

    With the C library's allocator, which gives free pages back: the interpreter's own keeps a megabyte for the sake of
    one small object in it, so how much is resident after a storm says little of what is held. In one arena, and with a
    fixed size from which a block has pages of its own: else the library raises that size with each large block that is
    freed, and small objects then hold the places of large ones (18 MB resident, 1 MB of it in use).
    """
    chaos = Chaos(3, 0.1, helpers)
    tests = os.pathsep.join([str(LIFE.parents[1]), *sys.path])
    with WatchfulAnthropic(chaos) as server:
        done = subprocess.run(
            [sys.executable, LIFE, server.url, tmp_path, str(helpers), str(cancels)],
            env=environment(tmp_path, {"PYTHONPATH": tests, "PYTHONTRACEMALLOC": "0"} | ALLOCATOR),
            capture_output=True,
            text=True,
            timeout=850,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        shown = json.loads(done.stdout)
        for folder in (tmp_path / "warm", tmp_path / "storm"):
            check_left_behind(only_run(folder), server)
    assert shown["status"] == "complete"
    assert shown["stray"] == []
    before, after = shown["before"], shown["after"]
    assert after["resident_mb"] - before["resident_mb"] < MOST_GROWTH_MB, done.stdout
    assert after["used_mb"] - before["used_mb"] < MOST_LEFT_MB, done.stdout
    for kind in ("descriptors", "threads", "children"):
        assert after[kind] == before[kind], shown
    run = only_run(tmp_path / "storm")
    assert len(events_of(run, AgentStarted)) == len({r.event.agent for r in read_records(run) if _is_start(r.event)})
    assert len(events_of(run, AgentFinished)) >= helpers


def _is_start(event: object) -> bool:
    return isinstance(event, AgentStarted)
