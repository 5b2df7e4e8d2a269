"""What a running command uses, looked at from outside: processes, memory, files."""

import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import ENAMETOOLONG
from operator import itemgetter
from pathlib import Path

from explorer.workspace.access import ENGINE_FOLDER

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
BLOCK_BYTES = 512
"""The unit in which `stat` counts what a file takes on the disk."""
DELETED = b" (deleted)"
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
    for name in filter(str.isdecimal, os.listdir("/proc")):  # noqa: PTH208 - hundreds, ten times a second
        with suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", encoding="utf-8") as file:  # noqa: PTH123
            fields = file.read().rpartition(")")[2].split()
            one = Process(int(name), int(fields[1]), fields[0], int(fields[21]))
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


def tasks_of(user: int) -> int:
    """Return how many tasks a user has, threads included: what the kernel counts for the limit on processes."""
    found = 0
    for name in filter(str.isdecimal, os.listdir("/proc")):  # noqa: PTH208 - hundreds, for each command
        with suppress(OSError):
            if os.stat(f"/proc/{name}").st_uid == user:  # noqa: PTH116
                # A folder has two links, and one more for each folder in it.
                found += os.stat(f"/proc/{name}/task").st_nlink - 2  # noqa: PTH116
    return found


@dataclass
class OtherEntries:
    """Entries of a folder that are no plain files."""

    count: int = 0
    """Number of folders, links, pipes and the like."""
    too_deep: str = ""
    """A folder in which some are nested deeper than a path can name; empty: none is."""


def files_of(folder: Path, limit: int, others: OtherEntries | None = None) -> dict[str, Stamp]:
    """Return all plain files below a folder by relative path, the engine's own left out; at most `limit`.

    It is called before and after each command, so it asks the kernel for as little as it can. What else there is, is
    counted in `others`.
    """
    others = others or OtherEntries()
    found: dict[str, Stamp] = {}
    waiting = [""]
    while waiting and len(found) + others.count < limit:
        place = waiting.pop()
        with _entries(folder, place, others) as entries:
            for entry in entries:
                path = place + entry.name
                if entry.is_dir(follow_symlinks=False):
                    others.count += 1
                    waiting += [f"{path}/"] if path != ENGINE_FOLDER else []
                elif entry.is_file(follow_symlinks=False):
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue
                    found[path] = (status.st_mtime_ns, status.st_size, status.st_ino)
                else:
                    others.count += 1
    return found if len(found) <= limit else dict(list(found.items())[:limit])


@contextmanager
def _entries(folder: Path, place: str, others: OtherEntries) -> Generator[Iterable["os.DirEntry[str]"]]:
    """Open a folder's entries; none where it went away meanwhile."""
    try:
        # By a descriptor: the kernel then follows no path for each file, which takes a fifth of the time.
        descriptor = os.open(f"{folder}/{place}", os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        if error.errno == ENAMETOOLONG:
            others.too_deep = place.partition("/")[0]
        yield ()
        return
    try:
        with os.scandir(descriptor) as entries, suppress(OSError):
            yield entries
    finally:
        os.close(descriptor)


def unlinked_bytes(top: int, device: int) -> int:
    """Return the bytes on a disk of files without a name that a process or one below it holds open or mapped."""
    found: dict[int, int] = {}
    for one in family_of(top):
        with suppress(OSError):
            for name in os.listdir(f"/proc/{one.pid}/fd"):  # noqa: PTH208 - thousands, twice a second
                with suppress(OSError):
                    status = os.stat(f"/proc/{one.pid}/fd/{name}")  # noqa: PTH116
                    if not status.st_nlink and status.st_dev == device:
                        found[status.st_ino] = status.st_blocks * BLOCK_BYTES
        with suppress(OSError):
            maps = Path(f"/proc/{one.pid}/maps").read_bytes()
            found |= _mapped(maps, device, found) if DELETED in maps else {}
    return sum(found.values())


def _mapped(maps: bytes, device: int, known: Mapping[int, int]) -> dict[int, int]:
    """Return the sizes of mapped files without a name, by inode, that are not known yet."""
    found: dict[int, int] = {}
    for line in maps.splitlines():
        if line.endswith(DELETED):
            addresses, _, _, place, inode = line.split(None, 5)[:5]
            major, minor = (int(part, 16) for part in place.split(b":"))
            start, end = (int(part, 16) for part in addresses.split(b"-"))
            if os.makedev(major, minor) == device and int(inode) not in known:
                found[int(inode)] = found.get(int(inode), 0) + end - start
    return found


def changed(before: Mapping[str, Stamp], after: Mapping[str, Stamp]) -> list[str]:
    """Return files that are new or not what they were, in order of their paths."""
    # Most commands change nothing: that is seen in a quarter of the time.
    return [] if before == after else sorted(path for path, stamp in after.items() if before.get(path) != stamp)


def removed_between(before: Mapping[str, Stamp], after: Mapping[str, Stamp]) -> tuple[str, ...]:
    """Return files that are gone, in order of their paths."""
    return tuple(sorted(before.keys() - after.keys()))


def bytes_of(files: Mapping[str, Stamp]) -> int:
    """Return the sum of the files' sizes."""
    return sum(map(itemgetter(1), files.values()))
