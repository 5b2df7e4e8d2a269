"""Runs a second of one worker, beside the workflow engine's own bare workflow as the floor.

    uv run python bench/fleet.py --floor [--database URL] [--count 200] [--json]

A run here is the smallest there is: a scripted model that answers at once writes a report and finishes. What a real run
does takes longer by far, so these figures say what the fleet itself costs: queue, lease, folder, journal, store.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSConfig, WorkflowSerializationFormat

from explorer import Settings
from explorer.fleet.database import FleetDatabase
from explorer.fleet.exploration import WorkerPlan
from explorer.fleet.runs import FleetQueue, NewRun
from explorer.fleet.stores import StoreKind
from explorer.fleet.worker import POLL_S, Worker
from explorer.run.hooks import RunHooks
from explorer.testing import ScriptedClient, says

BARE = "bare"
KINDS = (BARE, StoreKind.LOCAL, StoreKind.DATABASE)
CONCURRENCY = 8
MOST_S = 900
REPORT = "# Nothing\n\nNothing was looked up.\n"


@dataclass(frozen=True)
class Rate:
    """What one worker did of one kind."""

    count: int
    seconds: float
    cpu_s: float
    """The worker's own, all of its threads."""

    @property
    def per_second(self) -> float:
        """How many ended a second."""
        return round(self.count / self.seconds, 1)


def floor(url: str, count: int) -> dict[str, object]:
    """Measure each kind in a process of its own, on an empty queue."""
    found: dict[str, object] = {"count": count, "concurrency": CONCURRENCY}
    for kind in KINDS:
        rate = _in_process(url, kind, count)
        found[f"{kind}_per_second"] = rate.per_second
        found[f"{kind}_cpu_ms"] = round(1000 * rate.cpu_s / rate.count, 1)
    return {**found, "load": round(os.getloadavg()[0], 1)}


def _in_process(url: str, kind: str, count: int) -> Rate:
    variables = {**os.environ, "BENCH_DATABASE": _empty(url, kind)}  # noqa: TID251 - not on the command line: it has a password
    command = [sys.executable, __file__, kind, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=MOST_S, env=variables)
    if done.returncode:
        raise SystemExit(f"{kind} failed:\n{done.stderr[-3000:]}")
    return Rate(**json.loads(done.stdout))


def _empty(url: str, kind: str) -> str:
    """Return the address of an empty database: on a server one of its own for each kind."""
    if url == "sqlite":
        return url
    name = f"floor_{kind}_{os.getpid()}"
    engine = sa.create_engine(FleetDatabase(url).url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return engine.url.set(drivername="postgresql", database=name).render_as_string(hide_password=False)


def _measured(count: int, work: Callable[[], object]) -> Rate:
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return Rate(count, time.perf_counter() - wall, time.process_time() - cpu)


def _bare(queue: FleetQueue, count: int) -> Rate:
    """Let the workflow engine hand out as many workflows that do nothing, as its documentation shows."""
    ended = threading.Semaphore(0)
    config: DBOSConfig = {
        "name": "bench-floor", "system_database_url": queue.database.dsn, "application_version": "bench",
        "executor_id": "bench", "log_level": "CRITICAL", "console_log_level": "CRITICAL",
    }  # fmt: skip
    DBOS(config=config)

    @DBOS.workflow(name="bench-nothing", serialization_type=WorkflowSerializationFormat.PORTABLE)
    def nothing(number: str) -> str:
        ended.release()
        return number

    _ = nothing
    DBOS.listen_queues(["bench-floor"])
    DBOS.launch()
    DBOS.register_queue(
        "bench-floor", worker_concurrency=CONCURRENCY, polling_interval_sec=POLL_S, on_conflict="always_update"
    )
    client = DBOSClient(system_database_url=queue.database.dsn)
    for number in range(count):
        client.enqueue(
            {
                "workflow_name": "bench-nothing",
                "queue_name": "bench-floor",
                "app_version": "bench",
                "serialization_type": WorkflowSerializationFormat.PORTABLE,
            },
            str(number),
        )
    rate = _measured(count, lambda: [ended.acquire() for _ in range(count)])
    client.destroy()
    DBOS.destroy()
    return rate


def _fleet(queue: FleetQueue, count: int, kind: StoreKind, folder: Path) -> Rate:
    """Let a worker do as many smallest runs."""
    settings = Settings(workspace=folder / "workspace", shell="off")

    def hooks() -> RunHooks:
        finished = says("", ("finish_exploration", {"summary": "Done."}))
        # Finished twice: a report without sources is sent back once.
        script = [says("", ("write_file", {"filepath": "report.md", "content": REPORT})), finished, finished]
        return RunHooks(client=ScriptedClient({"orchestrator": script}))

    for number in range(count):
        queue.submit(NewRun(f"bench {number}", {}))
    plan = WorkerPlan(settings, hooks, lambda _folder: settings, CONCURRENCY, store=kind, is_until_empty=True)
    rate = _measured(count, lambda: asyncio.run(Worker(queue, plan).work()))
    states = {one.status for one in queue.runs()}
    if not states <= {"complete", "partial", "nothing_found"}:
        raise SystemExit(f"the runs ended as {sorted(states)}: {queue.runs()[0].reason}")
    return rate


def main() -> None:
    """Measure one kind in this process."""
    kind, count = sys.argv[1], int(sys.argv[2])
    url = os.environ["BENCH_DATABASE"]  # noqa: TID251 - as above
    with tempfile.TemporaryDirectory(prefix="explorer-bench-") as folder:
        place = f"sqlite:///{folder}/queue.sqlite" if url == "sqlite" else url
        queue = FleetQueue(FleetDatabase(place))
        queue.prepare()
        rate = _bare(queue, count) if kind == BARE else _fleet(queue, count, StoreKind(kind), Path(folder))
        queue.close()
    print(json.dumps(asdict(rate)))


if __name__ == "__main__":
    main()
