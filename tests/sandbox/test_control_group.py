"""A command's memory and processes are limited by the kernel where it lets us; folders that only look so are left."""

import asyncio
import os
import subprocess
import time
from pathlib import Path

import pytest

from explorer.sandbox.control_group import ENGINE_GROUP, MEMBERS_1, ControlGroup, delegated, is_available, sweep
from sandbox.cages import cage, living, room

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


def test_a_process_moves_itself_and_becomes_the_command(tmp_path: Path) -> None:
    """In version 1 as a thread, in version 2 as a process; a group that is gone holds it back."""
    for group in (ControlGroup((tmp_path,), MEMBERS_1), ControlGroup((tmp_path,))):
        done = subprocess.run(group.joining(("/bin/echo", "here")), capture_output=True, text=True, check=True)
        assert done.stdout == "here\n"
        assert (tmp_path / group.members).read_text() == "0\n"
    gone = ControlGroup((tmp_path, tmp_path / "gone"), MEMBERS_1)
    assert subprocess.run(gone.joining(("/bin/echo", "here")), capture_output=True, check=False).stdout == b""


@pytest.mark.slow
@pytest.mark.parametrize("tier", ["bubblewrap", "landlock", "unconfined"])
async def test_a_command_is_in_its_group_with_all_it_starts(tier: str, tmp_path: Path) -> None:
    """Every process of it, also one that hides from its session."""
    cage(tier)
    if not is_available():
        pytest.skip("no control groups for commands here")
    mark = f"9{time.monotonic_ns() % 10**9}.5"
    async with room(tier, tmp_path) as cell:
        command = await cell.shell.start(f"setsid sleep {mark} & sleep {mark}", cell.output)
        async with asyncio.timeout(20):
            while len(living(mark)) < 2 + (tier != "unconfined"):  # noqa: ASYNC110 - processes send no event
                await asyncio.sleep(0.02)
        assert command.group
        for folder in command.group.folders:
            assert set(living(mark)) <= {int(line) for line in (folder / "cgroup.procs").read_text().split()}
        command.asked.set()
        await cell.shell.follow(command, 20)


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
