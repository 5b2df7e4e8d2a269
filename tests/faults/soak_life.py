"""One process that starts a run, is cancelled again and again, resumes, and tells what it holds on to afterwards.

python soak_life.py URL FOLDER HELPERS CANCELS
"""

import asyncio
import ctypes
import gc
import json
import os
import random
import sys
import threading
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from explorer.run.run import resume, start
from explorer.schema.events import RunFinished
from explorer.schema.settings import Settings
from faults.stage import QUESTION, WATCH_S, events_of, hooks, only_run, settings_at

LONGEST_LIFE_S = 1.5


class _Allocated(ctypes.Structure):
    """What the C library's `mallinfo2` returns."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()  # noqa: SIM905
    )


@dataclass(frozen=True)
class Holdings:
    """What a process holds on to."""

    descriptors: int
    threads: int
    children: int
    resident_mb: float
    used_mb: float
    """What is allocated and not freed."""

    @classmethod
    def now(cls) -> "Holdings":
        """Count."""
        gc.collect()
        libc = ctypes.CDLL(None)
        libc.malloc_trim(0)
        libc.mallinfo2.restype = _Allocated
        allocated = libc.mallinfo2()
        tasks = Path(f"/proc/{os.getpid()}/task")
        children = sum(len((task / "children").read_text().split()) for task in tasks.iterdir())
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        resident_mb = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
        descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        used_mb = (allocated.uordblks + allocated.hblkhd) / 1e6
        return cls(descriptors, threading.active_count(), children, resident_mb, used_mb)


async def _life(folder: Path, settings: Settings, cancel_after_s: float | None) -> str:
    """Start or resume, perhaps cancelled on the way; the status, empty when cancelled."""
    status = ""
    begun = any((folder / "workspace").glob("*/.explorer/journal.jsonl"))
    if begun and events_of(only_run(folder), RunFinished):
        # A cancel after the last record changes nothing.
        return "complete"
    work = (
        resume(only_run(folder), settings, hooks=hooks(WATCH_S)) if begun else start(QUESTION, settings, hooks(WATCH_S))
    )
    task = asyncio.create_task(work)
    if cancel_after_s is not None:
        asyncio.get_running_loop().call_later(cancel_after_s, task.cancel)
    with suppress(asyncio.CancelledError):
        status = (await task).status.value
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, left
    return status


def _settings(url: str, folder: Path, helpers: int) -> Settings:
    folder.mkdir(parents=True, exist_ok=True)
    limits = {"max_agents": helpers + 10, "max_parallel_agents": 64, "max_steps": 20 * helpers + 100, "max_time_s": 900}
    # A request that a cancel leaves without an answer is charged as the most it can have cost: forty cancels of dozens
    # of requests use up the default limit, and how many are open then depends on the machine.
    limits["max_cost_usd"] = 1_000
    # Its clock runs fast, and a third of the replies fail: that no pause comes of it is not what is shown here.
    settings = settings_at(url, folder, is_anthropic=True, **limits, max_outage_s=1e9)
    # With a key of the user's own, as from the command line: a run without is not resumed as one's own.
    return settings.model_copy(update={"state_dir": folder / "state"})


def _storm(url: str, folder: Path, helpers: int, cancels: int, chance: random.Random) -> str:
    """Start, cancel and resume so often, then let it end; how it ended."""
    settings = _settings(url, folder, helpers)
    for _ in range(cancels):
        if status := asyncio.run(_life(folder, settings, chance.random() * LONGEST_LIFE_S)):
            return status
    return asyncio.run(_life(folder, settings, None))


def main(url: str, folder: Path, helpers: int, cancels: int) -> None:
    """Warm up, then the storm; what is held before and after, and how the run ended, on stdout as JSON.

    The warm-up is a storm as well: what a process keeps once for all of its sessions is no growth.
    """
    stray: list[str] = []
    warnings.simplefilter("always", ResourceWarning)
    warnings.showwarning = lambda message, category, filename, lineno, file=None, line=None: stray.append(str(message))  # noqa: ARG005
    sys.unraisablehook = lambda found: stray.append(repr(found.exc_value))
    threading.excepthook = lambda found: stray.append(repr(found.exc_value))
    chance = random.Random(11)  # noqa: S311 - a test's dice
    _storm(url, folder / "warm", helpers, cancels // 4, chance)
    before = Holdings.now()
    status = _storm(url, folder / "storm", helpers, cancels, chance)
    after = Holdings.now()
    print(json.dumps({"before": vars(before), "after": vars(after), "stray": stray, "status": status}))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
