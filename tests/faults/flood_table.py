"""Sends every flood to every adapter and measures what it costs: prints the table as a command.

PYTHONPATH=tests uv run python -m faults.flood_table [WORDS OF A NAME...]
"""

import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from command import done_by, forked, prepared
from faults.floods import FLOODS, Flood, flooding
from llm.conversations import BOTH

MOST_MB = 300
"""Of memory, for a process that has been sent anything at all."""
MOST_S = 240
"""For one flood on a machine that does other things, too."""
CLIENT = Path(__file__).parent / "flood_client.py"
CLIENT_IMPORTS = ("faults.flood_client", "anyio._backends._asyncio")
"""What the process imports before it is forked: so much memory it has before it is sent anything."""


@dataclass(frozen=True)
class Measured:
    """What one flood came to on one adapter."""

    fault: str
    message: str
    peak_mb: float
    seconds: float

    def problem(self, flood: Flood) -> str:
        """Say what is wrong with it; nothing when it is as it should be."""
        if self.peak_mb >= MOST_MB:
            return f"took {self.peak_mb:.0f} MB"
        if not self.fault or not re.search(flood.says, self.message):
            return f"not the expected error: {self.message}"
        return "" if "127.0.0.1" in self.message or "nested" in self.message else "the error names no server"


def measure(flood: Flood, wire: str) -> Measured:
    """Ask a flooding server once, in a process of its own.

    Raises:
        subprocess.CalledProcessError: The process crashed: a raw exception.
    """
    retry_settings = "short" if flood.is_slow else "long"
    with flooding(flood, wire) as url:
        words = (str(CLIENT), wire, url, retry_settings)
        process = forked(*words, cwd=Path.cwd(), variables=os.environ, source=prepared(imported=CLIENT_IMPORTS))
        done = done_by(process, None, MOST_S)
    done.check_returncode()
    return Measured(**json.loads(done.stdout))


def main(words: list[str]) -> int:
    """Print a row for each flood on each adapter; the exit code says whether all are as they should be."""
    row = "{:<38} {:<10} {:>6} {:>7}  {}"
    problems = 0
    print(row.format("flood", "wire", "MB", "s", "what it ended with"))  # noqa: T201 - a command
    for name, flood in FLOODS.items():
        for wire in BOTH if all(word in name for word in words) else ():
            measured = measure(flood, wire)
            problem = measured.problem(flood)
            problems += bool(problem)
            ended = f"NOT AS EXPECTED: {problem}" if problem else f"{measured.fault}: {measured.message[:110]}"
            print(row.format(name, wire, round(measured.peak_mb), round(measured.seconds, 1), ended))  # noqa: T201
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
