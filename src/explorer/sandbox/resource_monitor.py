"""What a running command uses, looked at from outside (processes, memory, files), and a limit on its processes."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from explorer.workspace.access import ENGINE_FOLDER

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
Stamp = tuple[int, int, int]
"""Time of a file's last change (ns), its size (bytes), its inode."""


@dataclass(frozen=True)
class Use:
    """Processes and memory that a tree of processes uses now."""

    processes: int
    memory_bytes: int


@dataclass(frozen=True)
class Process:
    """One process, as the kernel tells of it."""

    pid: int
    parent: int
    state: str
    """`T` is stopped, `Z` has ended and is not yet waited for."""
    pages: int
    """Number of pages in memory."""


def family_of(top: int) -> list[Process]:
    """Return a process and all below it, itself first; empty once it is gone."""
    children: dict[int, list[Process]] = {}
    known: dict[int, Process] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            one = Process(int(entry.name), int(fields[1]), fields[0], int(fields[21]))
            known[one.pid] = one
            children.setdefault(one.parent, []).append(one)
    found: dict[int, Process] = {}
    waiting = [known[top]] if top in known else []
    while waiting:
        one = waiting.pop()
        if one.pid not in found:
            found[one.pid] = one
            waiting += children.get(one.pid, [])
    return list(found.values())


def use_of(top: int) -> Use:
    """Return what a process and all below it use; zero once it is gone."""
    found = family_of(top)
    return Use(len(found), sum(one.pages for one in found) * PAGE_BYTES)


def files_of(folder: Path, limit: int) -> dict[str, Stamp]:
    """Return all plain files below a folder by relative path, the engine's own left out; at most `limit`."""
    found: dict[str, Stamp] = {}
    for path, stamp in _walk(folder, ""):
        found[path] = stamp
        if len(found) >= limit:
            break
    return found


def _walk(folder: Path, below: str) -> Iterator[tuple[str, Stamp]]:
    waiting = [below]
    while waiting:
        place = waiting.pop()
        try:
            entries = sorted(os.scandir(folder / place), key=lambda entry: entry.name)
        except OSError:  # it went away while we looked, or may not be read
            continue
        for entry in entries:
            path = f"{place}/{entry.name}" if place else entry.name
            if path == ENGINE_FOLDER:
                continue
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(path)
                elif entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    yield path, (status.st_mtime_ns, status.st_size, status.st_ino)


def changed(before: Mapping[str, Stamp], after: Mapping[str, Stamp]) -> list[str]:
    """Files that are new or not what they were, in order of their paths."""
    return sorted(path for path, stamp in after.items() if before.get(path) != stamp)


def removed_between(before: Mapping[str, Stamp], after: Mapping[str, Stamp]) -> tuple[str, ...]:
    """Files that are there no more, in order of their paths."""
    return tuple(sorted(before.keys() - after.keys()))


def bytes_of(files: Mapping[str, Stamp]) -> int:
    """Return the sum of the files' sizes."""
    return sum(size for _, size, _ in files.values())


HIERARCHIES = (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup"))
"""Version 1's own hierarchy of this controller, and version 2's one for all."""
JOIN = 'echo 0 > "$1" && shift && exec "$@"'


class ProcessGroup:
    """A control group with a limit on its processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def make(cls, name: str, processes: int) -> "ProcessGroup | None":
        """Make a group; return None where this user may not: for ordinary users `ulimit` is the limit."""
        if os.geteuid() != 0:
            return None
        for hierarchy in HIERARCHIES:
            folder = hierarchy / name
            try:
                folder.mkdir()
                (folder / "pids.max").write_text(str(processes))
            except OSError:
                with suppress(OSError):
                    folder.rmdir()
                continue
            return cls(folder)
        return None

    def joining(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        """Return the command that enters the group, then becomes the one given."""
        return ("/bin/sh", "-c", JOIN, "sh", str(self._folder / "cgroup.procs"), *arguments)

    def remove(self) -> None:
        """Remove it, once it is empty."""
        with suppress(OSError):
            self._folder.rmdir()
