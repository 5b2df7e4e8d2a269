"""A file system of its own with hardly any room, for tests of a disk that is really full."""

import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size_bytes: int) -> Generator[Path]:
    """Mount it at a folder; the test is skipped where none may be mounted."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"no file system may be mounted here: {os.fsdecode(mounted.stderr).strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def write_protect(disk: Path) -> None:
    """Mount it read-only."""
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)


def enlarge(disk: Path) -> None:
    """Give it room."""
    subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
