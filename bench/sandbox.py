"""What each sandbox of this machine is worth, and what it costs: attacks tried, and milliseconds a command.

    uv run python bench/sandbox.py [--runs 50] [--json]

As root it measures once more as an ordinary user (`nobody`), where the system has a Python of its own for it.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from explorer.sandbox.confinement import Confinement, SandboxSpec, Unconfined
from explorer.sandbox.selection import candidates, python_folders
from explorer.sandbox.self_test import attest
from explorer.sandbox.shell import Shell

SYSTEM_PYTHON = Path("/usr/bin/python3")


async def overhead(confinement: Confinement, runs: int) -> list[float]:
    """Milliseconds of `true`, from asking to the result, run after run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / ".explorer").mkdir()
        shell = Shell(confinement, SandboxSpec(folder, readable=python_folders()))
        taken: list[float] = []
        for _ in range(runs):
            began = time.perf_counter()
            await shell.run("true", folder / ".explorer" / "output", 10)
            taken.append((time.perf_counter() - began) * 1000)
        return taken


async def measured(runs: int) -> list[dict[str, object]]:
    """A row for each sandbox, and one for none."""
    user = "root" if os.geteuid() == 0 else "user"
    bare = statistics.median(await overhead(Unconfined(), runs))
    rows: list[dict[str, object]] = []
    for confinement, _ in [*candidates(), (Unconfined(), "")]:
        tried = await attest(confinement, python_folders())
        taken = statistics.median(await overhead(confinement, runs)) if not tried.problem else 0.0
        rows.append(
            {
                "user": user,
                "tier": str(confinement.tier),
                "attacks": len(tried.attempts),
                "stopped": sum(attempt.held for attempt in tried.attempts),
                "attest_s": tried.seconds,
                "median_ms": round(taken, 1),
                "ratio": round(taken / bare, 2),
                "problem": tried.problem,
            }
        )
    return rows


def as_nobody(runs: int) -> list[dict[str, object]]:
    """The same rows as an ordinary user; empty where that cannot be."""
    ask = [SYSTEM_PYTHON, "-c", "import sys; print(sys.version_info[:2])"]
    same = subprocess.run(ask, capture_output=True, text=True, check=False)
    if os.geteuid() != 0 or same.stdout.strip() != str(tuple(sys.version_info[:2])):
        return []
    here = Path(__file__).resolve()
    packages = ":".join(path for path in sys.path if path.endswith("site-packages"))
    words = ["runuser", "-u", "nobody", "--", "env", f"PYTHONPATH={here.parents[1] / 'src'}:{packages}", "TMPDIR=/tmp"]
    command = [*words, "PYTHONDONTWRITEBYTECODE=1", str(SYSTEM_PYTHON), str(here), "--runs", str(runs), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    return json.loads(done.stdout) if done.returncode == 0 else []


def main() -> int:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rows = asyncio.run(measured(asked.runs)) + as_nobody(asked.runs)
    if asked.json:
        print(json.dumps(rows))
        return 0
    print(f"{'user':<6}{'tier':<14}{'attacks stopped':>16}{'attest s':>10}{'ms/command':>12}{'ratio':>7}")
    for row in rows:
        stopped = f"{row['stopped']} of {row['attacks']}"
        figures = f"{row['attest_s']:>10}{row['median_ms']:>12}{row['ratio']:>7}"
        print(f"{row['user']:<6}{row['tier']:<14}{stopped:>16}{figures}")
        if row["problem"]:
            print(f"      {row['problem']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
