"""A fleet under kills: many offline runs on several workers, a worker killed every few seconds, and what is lost.

    uv run python bench/fleet.py [--runs 200] [--workers 4] [--kill-every 3] [--store NAME] [--postgres] [--json]
    uv run python bench/fleet.py --floor | --limits | --sizing [--postgres | --database URL] [--json]
    uv run python bench/fleet.py --overhead [--scenario fan-out-100] [--repeat 5] [--database URL] [--json]

Each run explores the bundled sample day. At the end each report is compared with that of a run that nothing disturbed,
and each journal is searched for a tool's effect or a model's turn that is there twice. With `--store database` each
worker is a machine of its own: another folder with nothing in it but the user's key. `--overhead` measures instead
what a step costs with the store in the database (`fleet_overhead.py`), and `--limits` what is spent and sent under
limits that all workers share (`fleet_limits.py`).
"""

import argparse
import importlib.util
import json
import os
import random
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from explorer.fleet.database import FleetDatabase
from explorer.fleet.leases import MAX_DEATHS
from explorer.fleet.restore import Restorer
from explorer.fleet.run_record import RunRecords
from explorer.fleet.runs import FleetQueue, NewRun, QueueState
from explorer.journal.listing import read_records
from explorer.schema.errors import StorageError
from explorer.schema.events import JournalRecord
from explorer.text.frontmatter import without_frontmatter

QUESTION = "What do people say about Tern TLS?"
SAMPLE = {"model": "offline", "is_sample": True, "lean": "off"}
LEASE_S = 4
CONCURRENCY = 2
LOOK_S = 0.25
RESTARTED_AT = (2, 4)
"""Kills at which the database is restarted."""
MAX_S = 3600.0


@dataclass(frozen=True)
class Figures:
    """What came of it."""

    runs: int
    workers: int
    kills: int
    """Workers ended with SIGKILL."""
    done: int
    equal: int
    """Reports that are those of an undisturbed run."""
    resumed: int
    """Runs that more than one session worked on."""
    effects_twice: int
    """Calls of tools with two results."""
    requests_repeated: int
    """Requests without an answer on record: those in flight at a kill."""
    parked: int
    seconds: float


def main() -> int:
    """Measure and print."""
    given = _parser().parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        between: Callable[[int], None] = lambda _kills: None  # noqa: E731 - there is nothing to restart
        if given.postgres:
            postgres = stack.enter_context(_own_postgres())
            given.database, between = postgres.url, Restarts(postgres)
        return _measure(Path(folder), given, between)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kill-every", type=float, default=3.0, help="seconds; 0: no kills")
    parser.add_argument("--database", default="", help="default: a file")
    parser.add_argument("--postgres", action="store_true", help="a Postgres of its own, restarted twice under kills")
    parser.add_argument("--store", default="local", choices=["local", "database"])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--overhead", action="store_true", help="CPU of a step with the store in the database")
    parser.add_argument("--sizing", action="store_true", help="what a run takes of its worker and of Postgres")
    parser.add_argument("--floor", action="store_true", help="runs a second, beside the workflow engine's own")
    parser.add_argument("--count", type=int, default=200, help="runs of --floor")
    parser.add_argument("--limits", action="store_true", help="money and requests a second over all workers")
    parser.add_argument("--scenario", default="fan-out-100")
    parser.add_argument("--repeat", type=int, default=5)
    return parser


def _measure(folder: Path, given: argparse.Namespace, between: Callable[[int], None]) -> int:
    """Measure what was asked for; what it needs of the bench's other files is imported here."""
    url = given.database or f"sqlite:///{folder}/queue.sqlite"
    is_json: bool = given.json
    if given.floor:
        from fleet_floor import floor  # noqa: PLC0415 - as said

        _show(floor(given.database or "sqlite", given.count), is_json=is_json)
    elif given.limits:
        from fleet_limits import money, rate  # noqa: PLC0415 - as said

        _show(asdict(money(folder, url, given.runs, given.workers)), is_json=is_json)
        _show(asdict(rate(folder, url, given.runs, given.workers)), is_json=is_json)
    elif given.overhead:
        from fleet_overhead import overhead  # noqa: PLC0415 - as said

        _show(asdict(overhead(url, given.scenario, given.repeat)), is_json=is_json)
    elif given.sizing:
        from fleet_sizing import sizing  # noqa: PLC0415 - as said

        _show(asdict(sizing(folder, url, SAMPLE, QUESTION, given.runs)), is_json=is_json)
    else:
        figures = under_kills(folder, url, given.runs, given.workers, given.kill_every, between, store=given.store)
        _show(asdict(figures), is_json=is_json)
        return 0 if figures.equal == figures.done == figures.runs and figures.effects_twice == 0 else 1
    return 0


class Restarts:
    """Restarts a database at two kills: first as a crash would."""

    def __init__(self, postgres: Any) -> None:  # noqa: ANN401 - of a module of the tests, which is loaded by its path
        self._postgres = postgres
        self.count = 0

    def __call__(self, kills: int) -> None:
        """Restart it at the second and the fourth kill."""
        if kills in RESTARTED_AT:
            self._postgres.stop("immediate" if kills == RESTARTED_AT[0] else "fast")
            self._postgres.start()
            self.count += 1


def _own_postgres() -> AbstractContextManager[Any]:
    """Start a Postgres server as the tests do."""
    path = Path(__file__).resolve().parents[1] / "tests" / "fleet" / "postgres.py"
    spec = importlib.util.spec_from_file_location("bench_postgres", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded.server()


def _show(figures: dict[str, object], *, is_json: bool) -> None:
    if is_json:
        print(json.dumps(figures))
    else:
        print("\n".join(f"{name.replace('_', ' '):>22}  {value}" for name, value in figures.items()))


def under_kills(  # noqa: PLR0913, PLR0917 - what the measurement is made of
    folder: Path,
    url: str,
    runs: int,
    workers: int,
    kill_every_s: float,
    between: Callable[[int], None] = lambda _n: None,
    store: str = "local",
    least_kills: int = 0,
) -> Figures:
    """Submit the runs, let workers work on them and kill some, until none is left.

    Args:
        folder: Where the runs go.
        url: The fleet's database.
        runs: How many.
        workers: How many at a time; a killed one is replaced.
        kill_every_s: Seconds between two kills; 0: none.
        between: Called after each kill with their number, e.g. to restart the database.
        store: Where the runs are; with `database`, each worker has a folder of its own.
        least_kills: While there were fewer, another run is submitted when none is left.
    """
    queue = FleetQueue(FleetDatabase(url))
    chance = random.Random(7)  # noqa: S311 - which worker dies
    began = time.monotonic()
    submitted = [_submit(queue) for _ in range(runs)]
    machines = Machines(folder, url, store)
    alive = [machines.worker() for _ in range(workers)]
    kills, last = 0, time.monotonic()
    try:
        while (_has_work(queue) or kills < least_kills) and time.monotonic() - began < MAX_S:
            if not _has_work(queue):
                submitted.append(_submit(queue))
            time.sleep(LOOK_S)  # noqa: TID251 - other processes work meanwhile
            if kill_every_s and time.monotonic() - last > kill_every_s:
                victim = chance.choice(alive)
                last = time.monotonic()
                if not _killed(victim, queue):
                    continue
                alive[alive.index(victim)] = machines.worker()
                kills += 1
                between(kills)
            alive = [one if one.poll() is None else machines.worker() for one in alive]
    finally:
        for one in alive:
            one.terminate()
        for one in alive:
            one.wait()
    if store == "database":
        restore_all(queue, folder / "workspace", submitted)
    found = _figures(folder / "workspace", queue, submitted, workers, kills, time.monotonic() - began)
    queue.close()
    return found


def _killed(victim: "subprocess.Popen[bytes]", queue: FleetQueue) -> bool:
    """Kill a worker, unless the queue would park a run of its; return whether it was killed.

    On a slow machine no run would come to its end before the third worker died with it, which is a test of its own.
    """
    # Stopped first: meanwhile it takes no run that was not looked at.
    victim.send_signal(signal.SIGSTOP)
    try:
        theirs = [one for one in queue.runs([QueueState.RUNNING]) if f"-{victim.pid}-" in one.worker]
        may_die = all(one.deaths < MAX_DEATHS - 1 for one in theirs)
    except StorageError:
        may_die = False
    victim.send_signal(signal.SIGKILL if may_die else signal.SIGCONT)
    if may_die:
        victim.wait()
    return may_die


def _submit(queue: FleetQueue) -> str:
    return queue.submit(NewRun(QUESTION, dict(SAMPLE)))[0]


def _has_work(queue: FleetQueue) -> bool:
    try:
        return queue.has_work
    except StorageError:
        # The database is being restarted.
        return True


@dataclass
class Machines:
    """Starts workers."""

    folder: Path
    url: str
    store: str
    count: int = 0
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def worker(self) -> "subprocess.Popen[bytes]":
        """Start a worker; with the store in the database in a folder where nothing is but the user's key."""
        self.count += 1
        place = self.folder / f"machine-{self.count}" if self.store == "database" else self.folder
        state = place / ".local" / "state" / "explorer"
        state.mkdir(parents=True, exist_ok=True)
        if not (state / "key").exists():
            (state / "key").touch(0o600)
            (state / "key").write_bytes(self.key)
        flags = ("worker", "--quiet", "--no-shell", f"--concurrency={CONCURRENCY}", f"--lease={LEASE_S}s")
        variables = _plain(place) | {"EXPLORER_FLEET_DATABASE": self.url, "EXPLORER_FLEET_STORE": self.store}
        command = [sys.executable, "-m", "explorer", *flags]
        with (self.folder / "workers.log").open("ab") as log:
            return subprocess.Popen(command, cwd=place, env=variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def restore_all(queue: FleetQueue, workspace: Path, run_ids: list[str]) -> None:
    """Make the folders of runs from the database."""
    records = RunRecords(queue.database)
    for run_id in run_ids:
        Restorer(records, workspace).restore(records.of(run_id))


def _plain(folder: Path) -> dict[str, str]:
    """Return the environment of a user without keys and settings."""
    return {"PATH": os.environ["PATH"], "HOME": str(folder)}  # noqa: TID251 - to find programs


def _figures(  # noqa: PLR0913, PLR0917 - all that was measured
    workspace: Path, queue: FleetQueue, submitted: list[str], workers: int, kills: int, seconds: float
) -> Figures:
    states = Counter(one.state for one in queue.runs())
    records = {run_id: read_records(workspace / run_id) for run_id in submitted if (workspace / run_id).is_dir()}
    reports = {
        run_id: compared((workspace / run_id / "report.md").read_text())
        for run_id in records
        if (workspace / run_id / "report.md").is_file()
    }
    undisturbed = _undisturbed(workspace.parent)
    return Figures(
        runs=len(submitted),
        workers=workers,
        kills=kills,
        done=states[QueueState.DONE],
        equal=sum(report == undisturbed for report in reports.values()),
        resumed=sum(_count(one, "session_configured") > 1 for one in records.values()),
        effects_twice=sum(_twice(one) for one in records.values()),
        requests_repeated=sum(_count(one, "request_sent") - _count(one, "turn_taken") for one in records.values()),
        parked=states[QueueState.PARKED],
        seconds=round(seconds, 1),
    )


def _undisturbed(folder: Path) -> str:
    """Return the report of the same question outside the fleet."""
    place = folder / "undisturbed"
    subprocess.run(
        [sys.executable, "-m", "explorer", "demo", QUESTION, "--quiet", "--no-shell", "--workspace", str(place)],
        cwd=folder,
        env=_plain(folder),
        check=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    return compared(next(place.glob("*/report.md")).read_text())


def compared(report: str) -> str:
    """Return what is compared of a report: a resumed run may give two sources their ids in another order."""
    return re.sub(r"`S\d+`", "`S`", without_frontmatter(report)).strip()


def _count(records: tuple[JournalRecord, ...], kind: str) -> int:
    return sum(record.event.type == kind for record in records)


def _twice(records: tuple[JournalRecord, ...]) -> int:
    """Return how many calls have more than one result."""
    results = Counter((one.event.agent, one.event.call) for one in records if one.event.type == "tool_finished")
    return sum(count > 1 for count in results.values())


if __name__ == "__main__":
    sys.exit(main())
