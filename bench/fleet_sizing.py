"""What a run of a fleet takes of its worker and of the database: the inputs for planning one.

    uv run python bench/fleet.py --sizing (--postgres | --database URL) [--runs 40] [--json]

Runs of the sample day in offline mode: 4 agents, 15 turns, 32 stored sources, without the time that a model takes.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from fleet_overhead import server_cpu_s

from explorer.fleet.database import BATCHES, CONTENTS, FleetDatabase
from explorer.fleet.runs import FleetQueue, NewRun

CONCURRENCY = 4
MB = 1024 * 1024


@dataclass(frozen=True)
class Sizing:
    """Per run, but for the memory."""

    runs: int
    worker_cpu_s: float
    """User and system, with its parsers; without the start of the worker."""
    server_cpu_s: float
    """Of Postgres, where it is on this machine."""
    commits: float
    """Transactions of the database, those of the queue and of leases included."""
    batches: float
    """Commits that wrote lines of the journal."""
    lines_kb: float
    files_kb: float
    database_kb: float
    """What the database grew by, with indexes and the queue's own tables."""
    worker_mb: float
    """The largest memory of a worker with several runs at work."""
    load: float


def sizing(folder: Path, url: str, sample: Mapping[str, Any], question: str, runs: int) -> Sizing:
    """Let one worker do the runs, and divide what it and the database took."""
    queue = FleetQueue(FleetDatabase(url))
    queue.prepare()
    _work(folder, url)
    started_s = _children_cpu_s()
    for _ in range(runs):
        queue.submit(NewRun(question, dict(sample)))
    before = _Facts.of(queue)
    started = _children_cpu_s()
    _work(folder, url)
    worker_s = _children_cpu_s() - started - started_s
    after = _Facts.of(queue)
    with queue.database.transaction() as connection:
        size = sa.func.sum(sa.func.length(BATCHES.c.lines))
        batches, lines = connection.execute(sa.select(sa.func.count(), size).select_from(BATCHES)).one()
        files = connection.scalar(sa.select(sa.func.sum(sa.func.length(CONTENTS.c.content)))) or 0
    queue.close()
    return Sizing(
        runs,
        round(worker_s / runs, 2),
        round((after.cpu_s - before.cpu_s) / runs, 3),
        round((after.commits - before.commits) / runs, 1),
        round(batches / runs, 1),
        round(lines / runs / 1000, 1),
        round(files / runs / 1000, 1),
        round((after.size - before.size) / runs / 1000, 1),
        round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / MB, 0),
        round(os.getloadavg()[0], 1),
    )


@dataclass(frozen=True)
class _Facts:
    cpu_s: float
    commits: int
    size: int

    @classmethod
    def of(cls, queue: FleetQueue) -> "_Facts":
        with queue.database.transaction() as connection:
            # Counters reach the view when a session ends or is idle for a second.
            connection.execute(sa.text("SELECT pg_stat_clear_snapshot(), pg_sleep(2)"))
            name = sa.text(
                "SELECT xact_commit, pg_database_size(datname) FROM pg_stat_database WHERE datname = current_database()"
            )
            commits, size = connection.execute(name).one()
        return cls(server_cpu_s(queue), int(commits), int(size))


def _work(folder: Path, url: str) -> None:
    """Let a worker work until the queue is empty."""
    variables = {
        "PATH": os.environ["PATH"],  # noqa: TID251 - to find programs
        "HOME": str(folder),
        "EXPLORER_FLEET_DATABASE": url,
    }
    flags = ["--quiet", "--no-shell", f"--concurrency={CONCURRENCY}", "--store=database", "--until-empty"]
    command = [sys.executable, "-m", "explorer", "worker", *flags]
    subprocess.run(command, cwd=folder, env=variables, check=True, stdin=subprocess.DEVNULL)


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
