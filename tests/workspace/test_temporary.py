"""Folders for the time of a process: none is left, neither at its end nor after a kill."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from explorer.workspace.temporary import LEAST_AGE_S, remove_left_over, temporary_folder

PREFIX = "explorer-test-"
CHILD = f"""
import sys, tempfile
from explorer.workspace.temporary import temporary_folder
tempfile.tempdir = sys.argv[1]
with temporary_folder("{PREFIX}") as folder:
    (folder / "file").write_text("x")
    print(folder, flush=True)
    sys.stdin.read()
"""


def aged(folder: Path) -> Path:
    """The folder, as if it had been made a while ago."""
    then = folder.stat().st_mtime - 2 * LEAST_AGE_S
    os.utime(folder, (then, then))
    return folder


def test_a_folder_of_a_killed_process_is_removed_and_one_in_use_is_not(tmp_path: Path) -> None:
    """What tells them apart is the lock of the process, which no kill leaves behind."""
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        folder = aged(Path(process.stdout.readline().strip()))
        remove_left_over(tmp_path, PREFIX)
        assert (folder / "file").exists(), "its process is at work"
        process.kill()
        process.wait(20)
    assert folder.exists()
    remove_left_over(tmp_path, PREFIX)
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_left_over_stays(tmp_path: Path) -> None:
    """A folder that was just made and is not locked yet, other names, and what links lead to."""
    (tmp_path / "elsewhere").mkdir()
    for name in (f"{PREFIX}new", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / f"{PREFIX}file").write_text("x")
    for name in (f"{PREFIX}link", f"{PREFIX}file"):
        os.utime(tmp_path / name, (1, 1), follow_symlinks=False)
    aged(tmp_path / "other")
    before = sorted(tmp_path.iterdir())
    remove_left_over(tmp_path, PREFIX)
    assert sorted(tmp_path.iterdir()) == before


def test_a_folder_is_made_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next process that wants one removes what is left over."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = tmp_path / f"{PREFIX}left"
    left.mkdir()
    (aged(left)).chmod(0o700)
    with temporary_folder(PREFIX) as folder:
        assert folder.is_dir()
        assert not left.exists()
    assert list(tmp_path.iterdir()) == []
