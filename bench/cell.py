"""One measurement in a process of its own, written to standard output as JSON.

    python bench/cell.py CONTESTANT SCENARIO WIRE URL [--uvloop]

CPU is this process's own, user and system. Imports and a first tiny conversation come before the clock starts.
"""

import asyncio
import gc
import json
import resource
import statistics
import sys
import tempfile
import time
from http.client import HTTPConnection
from itertools import pairwise
from pathlib import Path

from contestant import Variant, play
from floors import FLOORS, open_floor
from scenarios import JsonObject, Scenario, scenario_named

from explorer.run.collector import COLLECTOR

SAMPLE = 10
"""Turns at either end of a long run whose cost is compared."""


async def played(contestant: str, scenario: Scenario, wire: str, url: str, folder: Path) -> JsonObject:
    """What one contestant tells of one scenario."""
    if contestant in FLOORS:
        async with open_floor(contestant, scenario, wire, url, folder) as floor:
            await floor.play()
        return {"turns": scenario.turns, "lead_cpu": floor.lead_cpu}
    return await play(scenario, wire, url, folder, Variant(contestant))


def peak_mb() -> float:
    """Of this process alone; `ru_maxrss` would also count the parent it came from."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def growth(lead_cpu: list[float]) -> JsonObject:
    """How the CPU of a turn grows along one conversation, in milliseconds."""
    steps = [1000 * (later - earlier) for earlier, later in pairwise(lead_cpu)]
    if len(steps) < 4 * SAMPLE:
        return {}
    early, late = (statistics.mean(part) for part in (steps[SAMPLE // 2 : SAMPLE * 3 // 2], steps[-SAMPLE - 2 : -2]))
    return {"early_ms": round(early, 3), "late_ms": round(late, 3), "growth": round(late / early, 2)}


def forget(url: str) -> None:
    """Have the server forget what it was sent so far."""
    connection = HTTPConnection(url.removeprefix("http://"))
    connection.request("GET", "/reset")
    connection.getresponse().read()
    connection.close()


async def measure(contestant: str, name: str, wire: str, url: str) -> JsonObject:
    """Warm up, then play and measure."""
    with tempfile.TemporaryDirectory(prefix="explorer-bench-") as temporary:
        folder = Path(temporary)
        for part in ("first", "second"):
            (folder / part).mkdir()
        await played(contestant, scenario_named("fan-out-1"), wire, url, folder / "first")
        forget(url)
        cpu, wall = time.process_time(), time.perf_counter()
        shown = await played(contestant, scenario_named(name), wire, url, folder / "second")
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    lead_cpu = shown.pop("lead_cpu")
    return {
        **shown,
        "cpu_s": round(cpu, 4),
        "cpu_ms_a_turn": round(1000 * cpu / shown["turns"], 3),
        "wall_s": round(wall, 3),
        "peak_mb": round(peak_mb(), 1),
        **growth(lead_cpu),
    }


def main() -> None:
    """Measure once."""
    contestant, name, wire, url = sys.argv[1:5]
    # The engine sets it for each of its runs; the loops it is compared with have the same.
    if contestant in FLOORS:
        gc.set_threshold(*COLLECTOR)
    run = asyncio.run
    if "--uvloop" in sys.argv[5:]:
        from uvloop import run  # noqa: PLC0415 - only when asked for
    print(json.dumps(run(measure(contestant, name, wire, url))))


if __name__ == "__main__":
    main()
