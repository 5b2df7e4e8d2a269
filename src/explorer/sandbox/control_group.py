"""Control groups: limits on the processes and the memory of a whole command, which the kernel enforces.

Version 2 is used where systemd delegated a group to this user (`systemd-run --user --scope -p Delegate=yes explorer`),
or where root has one with the controllers; version 1, where root finds its hierarchies. Everywhere else `setrlimit`
limits each process, and what all of them use together is looked at ten times a second.
"""

import itertools
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from explorer.sandbox.resource_monitor import family_of

TOP = Path("/sys/fs/cgroup")
MEMBERS = "cgroup.procs"
MEMBERS_1 = "tasks"
"""Version 1 takes threads. For one that moves itself, the kernel stops nobody (since Linux 5.5)."""
CONTROLLERS = ("memory", "pids")
ENGINE_GROUP = "explorer-engine"
"""Where the engine itself goes: a group with limits for its groups may hold no process of its own."""
LIMIT_FILES = {"pids": "pids.max", "memory": "memory.max"}
LIMIT_FILES_1 = {"pids": "pids.max", "memory": "memory.limit_in_bytes"}
EVENT_FILES = ("memory.events", "memory.oom_control")
PREFIX = "explorer-"
STALE_S = 3_600
"""Age of a group after which its engine cannot just be about to use it."""
MOST_SWEPT = 2_000
JOIN = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 126; shift; done; shift; exec "$@"'


@dataclass(frozen=True)
class ControlGroup:
    """The groups of one command, one for each hierarchy."""

    folders: tuple[Path, ...]
    members: str = MEMBERS
    """The file that takes members."""

    @classmethod
    def make(cls, name: str, limits: dict[str, int], top: Path = TOP, own: str | None = None) -> "ControlGroup | None":
        """Make a group with limits, by controller; return None where this user may not.

        Args:
            name: Unique on this machine: `explorer-`, the engine's process and a number.
            limits: Number of processes (`pids`), and bytes (`memory`).
            top: Where the hierarchies are mounted.
            own: Content of `/proc/self/cgroup`; None: read it.
        """
        lines = (Path("/proc/self/cgroup").read_text(encoding="utf-8") if own is None else own).splitlines()
        places = {key: path.lstrip("/") for _, key, path in (line.split(":", 2) for line in lines)}
        if "" in places and (parent := delegated(top, places[""])):
            made = _made(parent / name, {LIMIT_FILES[key]: value for key, value in limits.items()})
            return cls((made,)) if made else None
        found = [
            _made(top / key / places[key] / name, {LIMIT_FILES_1[key]: value})
            for key, value in limits.items()
            if key in places and os.geteuid() == 0
        ]
        folders = tuple(one for one in found if one)
        return cls(folders, MEMBERS_1) if folders else None

    @property
    def is_joined_at_once(self) -> bool:
        """Whether a process that joins by itself waits for nothing."""
        return self.members == MEMBERS_1

    def joining(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        """Return the command that enters the groups, then becomes the one given."""
        members = (str(folder / self.members) for folder in self.folders)
        return ("/bin/sh", "-c", JOIN, "sh", *members, "--", *arguments)

    def take(self, top: int) -> None:
        """Move a process and all below it into the groups; who is moved takes along what it starts from then on.

        The first move waits for the kernel, 5 to 15 ms, in which no process of the machine starts or ends. So it is
        done while the sandbox is made, and only where a process cannot join at once.
        """
        moved: set[int] = set()
        while new := set(_below(top)) - moved:
            for pid, folder in itertools.product(sorted(new), self.folders):
                with suppress(OSError):  # it has ended
                    (folder / MEMBERS).write_text(str(pid), encoding="utf-8")
            moved |= new

    def killed_for_memory(self) -> bool:
        """Return whether the kernel ended a process because all of them took too much memory."""
        for path in (folder / name for folder in self.folders for name in EVENT_FILES):
            with suppress(OSError):
                for line in path.read_text(encoding="utf-8").splitlines():
                    if line.startswith("oom_kill ") and line.split()[1] != "0":
                        return True
        return False

    def is_removed(self) -> bool:
        """Remove them; return False while the kernel still ends a process in one."""
        for folder in self.folders:
            with suppress(FileNotFoundError):
                try:
                    folder.rmdir()
                except OSError:
                    return False
        return True


def sweep(parents: Iterable[Path]) -> None:
    """Remove groups of engines that are gone: one that is killed cannot remove its own."""
    for parent in set(parents):
        with suppress(OSError):
            for entry in list(parent.iterdir())[:MOST_SWEPT]:
                engine = entry.name.removeprefix(PREFIX).partition("-")[0]
                if not entry.name.startswith(PREFIX) or not engine.isdecimal() or Path("/proc", engine).exists():
                    continue
                with suppress(OSError):  # the kernel keeps one that is in use
                    if time.time() - entry.stat().st_mtime > STALE_S:
                        entry.rmdir()


def _below(top: int) -> list[int]:
    """Return a process and all below it."""
    if not Path(f"/proc/{top}/task/{top}/children").exists():  # a kernel without these lists
        return [one.pid for one in family_of(top)]
    found = [top]
    for pid in found:
        with suppress(OSError):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8")
            found += [int(child) for child in children.split()]
    return found


def is_available() -> bool:
    """Return whether commands of this process get a control group for their memory, by making one."""
    name = f"explorer-check-{os.getpid()}"
    made = ControlGroup.make(name, {"pids": 1, "memory": 1 << 30})
    if made is None:
        return False
    files = [folder / files["memory"] for folder in made.folders for files in (LIMIT_FILES, LIMIT_FILES_1)]
    has_memory = any(path.exists() for path in files)
    return made.is_removed() and has_memory


def delegated(top: Path, place: str) -> Path | None:
    """Return the group of version 2 in which this process may make groups with limits; None: there is none."""
    for folder in (top / place, top / "unified" / place):
        if folder.name == ENGINE_GROUP:
            folder = folder.parent  # noqa: PLW2901 - moved there by an earlier run of this process
        with suppress(OSError):
            offered = (folder / "cgroup.controllers").read_text(encoding="utf-8").split()
            if set(CONTROLLERS) <= set(offered) and (_has_limits(folder) or _take_over(folder)):
                return folder
    return None


def _has_limits(folder: Path) -> bool:
    """Return whether groups in this one can have limits, and this user may make some."""
    enabled = (folder / "cgroup.subtree_control").read_text(encoding="utf-8").split()
    return set(CONTROLLERS) <= set(enabled) and os.access(folder / MEMBERS, os.W_OK)


def _take_over(folder: Path) -> bool:
    """Move the processes of a delegated group into one below it, so that its groups can have limits."""
    if not is_delegated(folder):
        return False
    leaf = folder / ENGINE_GROUP
    leaf.mkdir(exist_ok=True)
    for pid in (folder / MEMBERS).read_text(encoding="utf-8").split():
        (leaf / MEMBERS).write_text(pid, encoding="utf-8")
    (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in CONTROLLERS), encoding="utf-8")
    return True


def is_delegated(folder: Path) -> bool:
    """Return whether systemd marked a group as this user's to divide."""
    for name in ("user.delegate", "trusted.delegate"):
        with suppress(OSError):
            if os.getxattr(folder, name) == b"1":
                return os.access(folder / MEMBERS, os.W_OK)
    return False


def _made(folder: Path, limits: dict[str, int]) -> Path | None:
    """Make one group; a folder that is no group of the kernel's is removed again."""
    try:
        folder.mkdir()
    except OSError:
        return None
    with suppress(OSError):
        if (folder / MEMBERS).exists():
            for name, value in limits.items():
                (folder / name).write_text(str(value), encoding="utf-8")
            return folder
    with suppress(OSError):
        folder.rmdir()
    return None
