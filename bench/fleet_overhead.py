"""What a step costs with the store in the database, beside the store in a folder: the same run in other processes.

    uv run python bench/fleet.py --overhead [--database URL] [--scenario fan-out-100] [--repeat 5] [--json]

CPU is the worker's own, user and system, of all of its threads. Postgres's own is shown beside it, where the server is
on this machine.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import sqlalchemy as sa
from contestant import RUN, play
from scenarios import scenario_named
from wires import OPENAI

from explorer.fleet.database import BATCHES, CONTENTS, FleetDatabase
from explorer.fleet.group_commit import GroupCommit
from explorer.fleet.leases import Ending, Leases
from explorer.fleet.run_record import RunRecord
from explorer.fleet.runs import FleetQueue, NewRun, QueueState
from explorer.fleet.stores import DatabaseStore, LeaseGuard
from run import model_server

LOCAL, DATABASE = "local", "database"
CELL_S = 600
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cell:
    """One run."""

    turns: int
    cpu_s: float
    """The worker's own."""
    wall_s: float
    server_cpu_s: float
    """That of the database's server; 0 where it is not on this machine."""
    batches: int
    database_bytes: int
    """Lines and contents, as they were sent."""


@dataclass(frozen=True)
class Overhead:
    """Medians of several runs of each."""

    scenario: str
    turns: int
    local_ms_a_turn: float
    database_ms_a_turn: float
    ratio: float
    """CPU of the worker a turn, with the store in the database to that in a folder."""
    server_ms_a_turn: float
    batches_a_turn: float
    database_bytes_a_turn: int
    load: float
    """The machine's load at the end: figures of a busy machine are no final ones."""


def overhead(url: str, scenario: str, repeat: int) -> Overhead:
    """Play a scenario with each store in turn, so that what the machine does besides meets both."""
    cells: dict[str, list[Cell]] = {LOCAL: [], DATABASE: []}
    for _ in range(repeat):
        for store, known in cells.items():
            known.append(_in_process(url, scenario, store))
    local, database = (statistics.median(one.cpu_s / one.turns for one in cells[store]) for store in cells)
    last = cells[DATABASE][-1]
    return Overhead(
        scenario,
        last.turns,
        round(1000 * local, 3),
        round(1000 * database, 3),
        round(database / local, 2),
        round(1000 * statistics.median(one.server_cpu_s / one.turns for one in cells[DATABASE]), 3),
        round(last.batches / last.turns, 2),
        round(last.database_bytes / last.turns),
        round(os.getloadavg()[0], 1),
    )


def _in_process(url: str, scenario: str, store: str) -> Cell:
    with model_server(scenario_named(scenario).latency_s) as models:
        command = [sys.executable, __file__, store, scenario, models]
        variables = {**os.environ, "BENCH_DATABASE": url}  # noqa: TID251 - not on the command line: it has a password
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=CELL_S, env=variables)
    if done.returncode:
        raise SystemExit(f"{store} on {scenario} failed:\n{done.stderr[-3000:]}")
    return Cell(**json.loads(done.stdout))


async def _measure(url: str, scenario: str, models: str, store: str, folder: Path) -> Cell:
    queue = FleetQueue(FleetDatabase(url))
    leases = Leases(queue, f"bench-{os.getpid()}", 10 * CELL_S)
    leases.enter("bench", os.getpid(), 1)
    taken = leases.take(queue.submit(NewRun("bench", {}))[0])
    assert taken is not None
    commits = GroupCommit(queue.database, leases.worker)
    record = RunRecord(taken.run_id)
    kept = (
        LeaseGuard(leases, taken)
        if store == LOCAL
        else DatabaseStore(commits, taken, folder / "second" / "workspace" / RUN, record)
    )
    await play(scenario_named("fan-out-1"), OPENAI, models, folder / "first")
    before, cpu, wall = server_cpu_s(queue), time.process_time(), time.perf_counter()
    shown = await play(scenario_named(scenario), OPENAI, models, folder / "second", store=kept)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    server = server_cpu_s(queue) - before
    commits.close()
    mine = BATCHES.c.run_id == taken.run_id
    with queue.database.transaction() as connection:
        batches, lines = connection.execute(
            sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(sa.func.length(BATCHES.c.lines)), 0)).where(mine)
        ).one()
        size = sa.func.coalesce(sa.func.sum(sa.func.length(CONTENTS.c.content)), 0)
        contents = connection.scalar(sa.select(size).where(CONTENTS.c.run_id == taken.run_id))
    leases.settle(taken, Ending(QueueState.CANCELLED))
    leases.leave()
    queue.close()
    size_bytes = int(lines) + int(contents or 0)
    return Cell(shown["turns"], round(cpu, 4), round(wall, 3), round(server, 3), batches, size_bytes)


def server_cpu_s(queue: FleetQueue) -> float:
    """CPU of a Postgres server on this machine, of its sessions that ended, too."""
    if queue.database.url.get_backend_name() == "sqlite":
        return 0.0
    with queue.database.transaction() as connection:
        session = Path(f"/proc/{connection.scalar(sa.text('SELECT pg_backend_pid()'))}")
        if not session.is_dir() or (session / "comm").read_text().strip() != "postgres":
            return 0.0
        server = _stat(session)[1]
        found = [one for one in Path("/proc").iterdir() if one.name.isdecimal()]
        fields = {one.name: _stat(one) for one in found}
    ticks = sum(sum(map(int, one[11:13])) for one in fields.values() if one and one[1] == server)
    return (ticks + sum(map(int, _stat(Path(f"/proc/{server}"))[11:15]))) / TICKS_A_SECOND


def _stat(process: Path) -> list[str]:
    """Return the fields of a process after its name; empty when it has ended."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def main() -> None:
    """Measure once, in this process."""
    store, scenario, models = sys.argv[1:]
    url = os.environ["BENCH_DATABASE"]  # noqa: TID251 - as above
    with tempfile.TemporaryDirectory(prefix="explorer-bench-") as folder:
        cell = asyncio.run(_measure(url, scenario, models, store, Path(folder)))
    print(json.dumps(asdict(cell)))


if __name__ == "__main__":
    main()
