"""What the tests of the sandbox stand on: every way to hold a command, and a run's folder to hold it in."""

import shutil
import subprocess
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from explorer.sandbox.bubblewrap import Bubblewrap
from explorer.sandbox.confinement import MIB, Confinement, SandboxSpec, ShellLimits, Unconfined
from explorer.sandbox.landlock import Landlock, is_offered
from explorer.sandbox.selection import python_folders, unprivileged_user
from explorer.sandbox.shell import Ended, Shell

SMALL = ShellLimits(output_bytes=MIB, written_bytes=8 * MIB, written_files=300, processes=64, cpu_s=20)
"""Bounds that a test reaches in a moment."""


def cage(name: str) -> Confinement:
    """A way to hold commands; the test is skipped where this machine has not got it."""
    if name == "unconfined":
        return Unconfined()
    if name == "landlock":
        if not is_offered():
            pytest.skip("this kernel has no Landlock")
        return Landlock()
    program = shutil.which("bwrap")
    if program is None:
        pytest.skip("bubblewrap is not installed")
    return Bubblewrap(program, unprivileged_user())


class Room:
    """A run's folder and its shell."""

    def __init__(self, folder: Path, confinement: Confinement, limits: ShellLimits) -> None:
        self.folder = folder
        (folder / ".explorer").mkdir(parents=True)
        (folder / "scratch").mkdir()
        self.output = folder / ".explorer" / "output"
        self.shell = Shell(confinement, SandboxSpec(folder, limits, python_folders()))

    async def run(self, command: str, timeout_s: float = 20) -> tuple[Ended, str]:
        """Run a command; how it ended, and what it printed."""
        ended = await self.shell.run(command, self.output, timeout_s)
        return ended, self.output.read_text(encoding="utf-8", errors="replace")

    def inside(self, path: str) -> str:
        """A path of the run's folder as the command sees it."""
        return path if not isinstance(self.shell.confinement, Landlock) else str(self.folder / path)


@asynccontextmanager
async def room(name: str, folder: Path, **limits: int) -> AsyncGenerator[Room]:
    """A room with a way to hold commands, closed at the end."""
    made = Room(folder / "run", cage(name), replace(SMALL, **limits))
    try:
        yield made
    finally:
        await made.shell.aclose()


def living(mark: str) -> list[int]:
    """Processes of this machine whose command line holds a mark."""
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes()
            state = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        except OSError:
            continue
        if mark.encode() in words and state != "Z":
            found.append(int(entry.name))
    return found


def none_is_left(mark: str, seconds: float = 5) -> bool:
    """Whether all processes with a mark are gone within a time."""
    until = time.monotonic() + seconds
    while living(mark):
        if time.monotonic() > until:
            return False
    return True


def kill_with_job(process: "subprocess.Popen[str]", mark: str) -> None:
    """End a run at once in the middle of a job with a mark: SIGKILL ends the job, too."""
    assert living(mark)
    process.kill()
    process.communicate()
    assert none_is_left(mark)
