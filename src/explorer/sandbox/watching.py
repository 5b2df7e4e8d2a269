"""What a running command uses, looked at from outside: processes, memory, and what it writes."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
OWN = ".explorer"
Stamp = tuple[int, int, int]
"""Of a file: when it was changed (ns), its size (bytes), its inode."""


@dataclass(frozen=True)
class Use:
    """What a tree of processes uses just now."""

    processes: int
    memory_bytes: int


def use_of(top: int) -> Use:
    """What a process and all below it use; zero once it is gone."""
    parents: dict[int, list[int]] = {}
    pages: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
            pages[int(entry.name)] = int(fields[21])
    found: set[int] = set()
    waiting = [top] if top in pages else []
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += parents.get(pid, [])
    return Use(len(found), sum(pages[pid] for pid in found) * PAGE_BYTES)


def files_of(folder: Path, limit: int) -> dict[str, Stamp]:
    """All plain files below a folder by relative path, the engine's own left out; at most `limit`."""
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
            if path == OWN:
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


def bytes_of(files: Mapping[str, Stamp]) -> int:
    """Their sizes together."""
    return sum(size for _, size, _ in files.values())
