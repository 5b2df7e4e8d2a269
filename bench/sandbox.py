"""What each sandbox of this machine is worth, and what it costs: attacks tried, and milliseconds a command.

    uv run python bench/sandbox.py [--runs 50] [--files 2000] [--json]

The contenders take turns, so that whatever else the machine does burdens all of them alike: bare `bash`, bare `bwrap`,
and each sandbox in an empty folder and in one with many files. As root it measures once more as an ordinary user
(`nobody`), where the system has a Python of its own for it.
"""

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from explorer.sandbox.confinement import SandboxSpec, Unconfined
from explorer.sandbox.selection import candidates, python_folders
from explorer.sandbox.self_test import attest
from explorer.sandbox.shell import Shell

SYSTEM_PYTHON = Path("/usr/bin/python3")
BARE_BASH = ("/bin/bash", "-c", "true")
SYSTEM = ("usr", "bin", "lib", "lib64")
FILES_A_FOLDER = 100
Contender = Callable[[], Awaitable[None]]


def bare_bwrap() -> tuple[str, ...]:
    """The least that `bwrap` can do and still be a sandbox: own namespaces, the system read-only."""
    binds = [word for name in SYSTEM if Path("/", name).exists() for word in ("--ro-bind", f"/{name}", f"/{name}")]
    return ("bwrap", "--unshare-all", *binds, "--proc", "/proc", "--dev", "/dev", "--", *BARE_BASH)


def program(words: tuple[str, ...]) -> Contender:
    """A contender that starts a program and waits for it."""

    async def run() -> None:
        await (await asyncio.create_subprocess_exec(*words)).wait()

    return run


def command(shell: Shell) -> Contender:
    """A contender that has a sandbox run nothing, from asking to the result."""

    async def run() -> None:
        await shell.run("true", shell.place.folder / ".explorer" / "output", 20)

    return run


def fill(folder: Path, files: int) -> Path:
    """A run's folder with so many small files, a hundred in each folder."""
    (folder / ".explorer").mkdir(parents=True)
    for number in range(files):
        path = folder / f"part-{number // FILES_A_FOLDER}" / f"{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    return folder


async def measured(runs: int, files: int) -> list[dict[str, object]]:
    """A row for each contender."""
    rows: list[dict[str, object]] = []
    found: dict[str, Contender] = {"bash": program(BARE_BASH)}
    found |= {"bwrap": program(bare_bwrap())} if shutil.which("bwrap") else {}
    async with AsyncExitStack() as stack:
        top = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for number, confinement in enumerate([*(one for one, _ in candidates()), Unconfined()]):
            tried = await attest(confinement, python_folders())
            name = f"{confinement.tier}{', own user' if getattr(confinement, 'user', None) else ''}"
            rows.append(
                {
                    "tier": str(confinement.tier),
                    "name": name,
                    "attacks": len(tried.attempts),
                    "stopped": sum(attempt.held for attempt in tried.attempts),
                    "attest_s": tried.seconds,
                    "problem": tried.problem,
                }
            )
            for kind, count in (("empty", 0), ("full", files)):
                place = SandboxSpec(fill(top / f"{number}-{kind}", count), readable=python_folders())
                shell = Shell(confinement, place)
                stack.push_async_callback(shell.aclose)
                found |= {} if tried.problem else {f"{name}, {kind}": command(shell)}
        taken = await alternating(found, runs)
    user = "root" if os.geteuid() == 0 else "user"
    attested = {row["name"]: row for row in rows}
    return [
        {
            "user": user,
            "contender": name,
            "median_ms": round(statistics.median(times), 1),
            "least_ms": round(min(times), 1),
            **{key: value for key, value in attested.get(name.rpartition(", ")[0], {}).items() if key != "name"},
        }
        for name, times in taken.items()
    ]


async def alternating(found: dict[str, Contender], runs: int) -> dict[str, list[float]]:
    """Milliseconds of each contender, turn by turn; the first turn does not count."""
    taken: dict[str, list[float]] = {name: [] for name in found}
    for turn in range(runs + 1):
        for name, run in found.items():
            began = time.perf_counter()
            await run()
            if turn:
                taken[name].append((time.perf_counter() - began) * 1000)
    return taken


def as_nobody(runs: int, files: int) -> list[dict[str, object]]:
    """The same rows as an ordinary user; empty where that cannot be."""
    ask = [SYSTEM_PYTHON, "-c", "import sys; print(sys.version_info[:2])"]
    same = subprocess.run(ask, capture_output=True, text=True, check=False)
    if os.geteuid() != 0 or same.stdout.strip() != str(tuple(sys.version_info[:2])):
        return []
    here = Path(__file__).resolve()
    packages = ":".join(path for path in sys.path if path.endswith("site-packages"))
    words = ["runuser", "-u", "nobody", "--", "env", f"PYTHONPATH={here.parents[1] / 'src'}:{packages}", "TMPDIR=/tmp"]
    asked = ["--runs", str(runs), "--files", str(files), "--json"]
    line = [*words, "PYTHONDONTWRITEBYTECODE=1", str(SYSTEM_PYTHON), str(here), *asked]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd="/")
    return json.loads(done.stdout) if done.returncode == 0 else []


def main() -> int:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rows = asyncio.run(measured(asked.runs, asked.files)) + as_nobody(asked.runs, asked.files)
    if asked.json:
        print(json.dumps(rows))
        return 0
    print(f"{'user':<6}{'contender':<32}{'median ms':>10}{'least ms':>10}{'attacks stopped':>17}{'attest s':>10}")
    for row in rows:
        stopped = f"{row['stopped']} of {row['attacks']}" if "stopped" in row else ""
        figures = f"{row['median_ms']:>10}{row['least_ms']:>10}{stopped:>17}{row.get('attest_s', ''):>10}"
        print(f"{row['user']:<6}{row['contender']:<32}{figures}")
    print(f"load of this machine (1 min): {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return 0


if __name__ == "__main__":
    sys.exit(main())
