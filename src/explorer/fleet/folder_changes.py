"""The files of a run's folder that a store keeps: which there are, which changed, and what each holds.

The engine replaces whole files by renaming, which changes their folder's time. So a look asks each folder for its time,
and lists those that changed. Commands of agents may write into files: after those each file is looked at.
"""

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from explorer.schema.messages import Frozen
from explorer.workspace.access import ENGINE_FOLDER, JOURNAL
from explorer.workspace.safe_open import TEMPORARY, opened_below

NOT_KEPT = frozenset({f"{ENGINE_FOLDER}/{name}" for name in ("lock", "holder", "inbox", "journal.torn")} | {JOURNAL})
"""What belongs to a process at work and not to the run; the journal is kept as lines."""
WRITTEN_ONCE = f"{ENGINE_FOLDER}/sources"
"""A folder whose files a session writes once: only new names in it are looked at, because it may hold thousands."""
FRESH_NS = 20_000_000
"""Disks count time in steps of some milliseconds: what changed so lately may change again without another time."""
PIECE_BYTES = 8 * 1024 * 1024


class FileVersion(Frozen):
    """A file of a run as it was at one moment."""

    path: str
    """The path in the run's folder, with `/`."""
    sha256: str = ""
    """The digest of the whole file; empty: it was removed."""
    bytes: int = 0
    mode: int = 0
    """Its permissions."""
    pieces: tuple[str, ...] = ()
    """The digests of its pieces, of `PIECE_BYTES` each but the last; empty where it is kept in one."""
    problem: str = ""
    """Why its content is not kept; empty when it is."""

    @property
    def is_removed(self) -> bool:
        """Whether the file is gone."""
        return not self.sha256 and not self.problem


FILE_VERSIONS: TypeAdapter[tuple[FileVersion, ...]] = TypeAdapter(tuple[FileVersion, ...])
"""Reads and writes what a batch says of files."""


@dataclass
class FolderChanges:
    """Finds what changed in a run's folder since the last look. Only `look` changes it."""

    folder: Path
    now_ns: Callable[[], int] = time.time_ns
    _files: dict[str, dict[str, tuple[int, ...] | None]] = field(
        default_factory=dict[str, dict[str, tuple[int, ...] | None]]
    )
    """What each file looked like, by folder and name; None: it has to be looked at again."""
    _folders: dict[str, int] = field(default_factory=dict[str, int])
    """The time of each known folder; 0: it has to be listed again."""

    def know(self, path: str) -> None:
        """Take a file as known, so that it is found when it is gone; the next look reads it."""
        place, _, name = path.rpartition("/")
        self._files.setdefault(place, {})[name] = None
        while place and place not in self._folders:
            self._folders[place] = 0
            place = place.rpartition("/")[0]

    def look(self, *, is_full: bool) -> tuple[list[str], list[str]]:
        """Return the paths of files that may have changed, and of those that are gone.

        Args:
            is_full: Whether files that were written into are found, too, and not only those that were replaced.
        """
        changed: list[str] = []
        gone: list[str] = []
        pending = list({"": 0, **self._folders})
        seen: set[str] = set()
        while pending:
            place = pending.pop()
            if place in seen:
                continue
            seen.add(place)
            status = self._status(place)
            if status is None:
                gone += [_joined(place, name) for name in self._files.pop(place, {})]
                self._folders.pop(place, None)
            elif is_full or status.st_mtime_ns != self._folders.get(place, 0):
                is_fresh = status.st_mtime_ns > self.now_ns() - FRESH_NS
                self._folders[place] = 0 if is_fresh else status.st_mtime_ns
                pending += self._listed(place, changed, gone, is_full=is_full)
        return changed, gone

    def _status(self, place: str) -> os.stat_result | None:
        with suppress(OSError):
            status = os.stat(f"{self.folder}/{place}", follow_symlinks=not place)  # noqa: PTH116 - at each commit
            return status if stat.S_ISDIR(status.st_mode) else None
        return None

    def _listed(self, place: str, changed: list[str], gone: list[str], *, is_full: bool) -> list[str]:
        """Look at the files of one folder; return the folders in it."""
        known = self._files.setdefault(place, {})
        is_trusted = place == WRITTEN_ONCE and not is_full
        inner: list[str] = []
        there: set[str] = set()
        for entry in self._entries(place):
            path = _joined(place, entry.name)
            if path in NOT_KEPT or TEMPORARY.fullmatch(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                inner.append(path)
            elif entry.is_file(follow_symlinks=False):
                there.add(entry.name)
                if not (is_trusted and entry.name in known) and self._is_new(known, entry):
                    changed.append(path)
        for name in known.keys() - there:
            del known[name]
            gone.append(_joined(place, name))
        return inner

    def _entries(self, place: str) -> Iterator[os.DirEntry[str]]:
        with suppress(OSError), os.scandir(f"{self.folder}/{place}") as entries:
            yield from entries

    def _is_new(self, known: dict[str, tuple[int, ...] | None], entry: os.DirEntry[str]) -> bool:
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            return False
        signature = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_mode)
        if known.get(entry.name) == signature:
            return False
        is_fresh = max(status.st_mtime_ns, status.st_ctime_ns) > self.now_ns() - FRESH_NS
        known[entry.name] = None if is_fresh else signature
        return True


def _joined(place: str, name: str) -> str:
    return f"{place}/{name}" if place else name


def digest_of(content: bytes) -> str:
    """Return the SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def pieces_of(folder: Path, path: str) -> Iterator[bytes]:
    """Yield the content of a file in pieces; none for an empty one.

    Raises:
        OSError: It cannot be read.
    """
    with opened_below(folder, path) as file:
        while piece := file.read(PIECE_BYTES):
            yield piece


def mode_of(folder: Path, path: str) -> int:
    """Return the permissions of a file.

    Raises:
        OSError: It is not there.
    """
    return stat.S_IMODE(os.lstat(folder / path).st_mode)
