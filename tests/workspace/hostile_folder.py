"""What the attacks on a run's folder stand on: a folder with a secret beside it, and what an attacker does to it."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from explorer.workspace.safe_open import Openat2, OpenatWalk, Opening, best_opening

SECRET = "the secret outside"
OPENINGS = ["kernel", "walk"]


def opening_called(name: str) -> Opening:
    """A way to open files beneath a folder; the test is skipped where this machine has not got it."""
    if name == "walk":
        return OpenatWalk()
    if not isinstance(best_opening(), Openat2):
        pytest.skip("no openat2 on this machine")
    return Openat2()


def make_folder(beside: Path) -> Path:
    """A run's folder with a note in it, and a secret in a file and in a folder beside it."""
    run = beside / "run"
    (run / ".explorer").mkdir(parents=True)
    (run / "notes").mkdir()
    (run / "notes" / "a.md").write_text("# A\n\nin the run\n")
    (beside / "secret.txt").write_text(SECRET)
    (beside / "outside").mkdir()
    (beside / "outside" / "a.md").write_text(SECRET)
    return run


def outside_is_intact(folder: Path) -> bool:
    """Nothing beside the run's folder was changed or added."""
    beside = folder.parent
    names = sorted(path.name for path in beside.iterdir())
    texts = [(beside / "secret.txt").read_text(), (beside / "outside" / "a.md").read_text()]
    return (names, texts, len(list((beside / "outside").iterdir()))) == (
        ["outside", "run", "secret.txt"],
        [SECRET, SECRET],
        1,
    )


def plant_symlinks(folder: Path) -> dict[str, str]:
    """Links as an attacker would leave them: by name, the path that goes through each."""
    links = {
        "file": ("secret.md", folder.parent / "secret.txt", "secret.md"),
        "folder": ("out", folder.parent / "outside", "out/a.md"),
        "dangling": ("new.md", folder.parent / "not-there.txt", "new.md"),
        "loop": ("loop", folder / "loop", "loop/a.md"),
        "parent": ("up", Path(".."), "up/secret.txt"),
        "process": ("env.md", Path("/proc/self/environ"), "env.md"),
        "process root": ("root", Path("/proc/self/root"), "root/etc/passwd"),
        "inside": ("alias", folder / "notes", "alias/a.md"),
    }
    for name, target, _ in links.values():
        (folder / name).symlink_to(target)
    return {label: path for label, (_, _, path) in links.items()}


EXCHANGER = """
import ctypes, sys
one, other = (name.encode() for name in sys.argv[1:])
swap = ctypes.CDLL(None).renameat2
print(swap(-100, one, -100, other, 2), flush=True)
while True:
    swap(-100, one, -100, other, 2)
"""
"""Swaps two names in one step, RENAME_EXCHANGE, again and again."""


@contextmanager
def swapping(one: Path, other: Path) -> Generator[None]:
    """Another process swaps two names all the time."""
    command = [sys.executable, "-S", "-c", EXCHANGER, str(one), str(other)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() != b"0\n":
                pytest.skip("no RENAME_EXCHANGE on this file system")
            yield
        finally:
            process.kill()


@contextmanager
def as_nobody() -> Generator[None]:
    """Without root's right to write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def mounted(place: Path, options: str, kind: str = "tmpfs") -> Generator[None]:
    """A file system of its own at a place; the test is skipped where none may be mounted."""
    command = ["mount", "-t", kind, "-o", options, "tmpfs" if kind == "tmpfs" else options, str(place)]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no file system may be mounted here: {os.fsdecode(done.stderr).strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
