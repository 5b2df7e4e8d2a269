"""A command's memory and processes are limited by the kernel where it lets us; folders that only look so are left."""

import os
from pathlib import Path

import pytest

from explorer.sandbox.control_group import ENGINE_GROUP, ControlGroup, delegated, is_available, sweep
from sandbox.cages import cage, room

OWN = "0::/user.slice/explorer.scope\n"
PROCESSES = "4711\n4712\n"


def tree(top: Path, *, enabled: str = "", mark: bool = True) -> Path:
    """A group of version 2 as the kernel shows it, in plain files: here the controllers belong to version 1."""
    folder = top / "user.slice" / "explorer.scope"
    folder.mkdir(parents=True)
    for name, content in {
        "cgroup.controllers": "cpu memory pids\n",
        "cgroup.subtree_control": enabled,
        "cgroup.procs": PROCESSES,
    }.items():
        (folder / name).write_text(content)
    if mark:
        os.setxattr(folder, "user.delegate", b"1")
    return folder


def test_a_delegated_group_is_divided(tmp_path: Path) -> None:
    """The engine's processes go into a group below it, and the groups of commands get controllers; once is enough."""
    folder = tree(tmp_path)
    (folder / ENGINE_GROUP).mkdir()
    (folder / ENGINE_GROUP / "cgroup.procs").touch()
    assert delegated(tmp_path, "user.slice/explorer.scope") == folder
    assert (folder / "cgroup.subtree_control").read_text() == "+memory +pids"
    assert (folder / ENGINE_GROUP / "cgroup.procs").read_text() in PROCESSES
    (folder / "cgroup.subtree_control").write_text("memory pids\n")
    assert delegated(tmp_path, f"user.slice/explorer.scope/{ENGINE_GROUP}") == folder


def test_a_group_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    """Without the mark of systemd nothing is moved and nothing is enabled."""
    folder = tree(tmp_path, mark=False)
    assert delegated(tmp_path, "user.slice/explorer.scope") is None
    assert (folder / "cgroup.subtree_control").read_text() == ""
    assert not (folder / ENGINE_GROUP).exists()


def test_a_folder_that_is_no_group_is_not_believed(tmp_path: Path) -> None:
    """Where the kernel puts no files into a new folder, there is no limit, and the folder is removed again."""
    folder = tree(tmp_path, enabled="memory pids\n")
    assert ControlGroup.make("command", {"pids": 5, "memory": 1 << 20}, tmp_path, OWN) is None
    assert not (folder / "command").exists()
    (tmp_path / "pids").mkdir()
    assert ControlGroup.make("command", {"pids": 5}, tmp_path, "8:pids:/\n") is None
    assert not list((tmp_path / "pids").iterdir())


def test_groups_of_engines_that_were_killed_are_removed(tmp_path: Path) -> None:
    """After an hour, and only where the engine is gone: another one may have made its group this moment."""
    child = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(child, 0)
    names = (f"explorer-{child}-1", f"explorer-{child}-2", f"explorer-{os.getpid()}-1", "explorer-engine", "other")
    for name in names:
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (1, 1))
    os.utime(tmp_path / names[1])
    sweep([tmp_path])
    assert {path.name for path in tmp_path.iterdir()} == set(names[1:])


@pytest.mark.slow
@pytest.mark.parametrize("tier", ["bubblewrap", "landlock"])
async def test_no_group_is_left_behind(tier: str, tmp_path: Path) -> None:
    """After the last command the kernel has no group of this process, also of a command that was ended."""
    cage(tier)
    if not is_available():
        pytest.skip("no control groups for commands here")
    before = _groups()
    async with room(tier, tmp_path) as cell:
        await cell.run("true")
        await cell.run("sleep 9", 0.2)
    assert _groups() <= before


def _groups() -> set[Path]:
    """The groups of this process's commands."""
    return {path for top in Path("/sys/fs/cgroup").iterdir() for path in top.rglob(f"explorer-{os.getpid()}-*")}
