"""A run's folder, and the only access to it: every path is opened under the folder, descriptor by descriptor.

No `..`, absolute path, link, mount, device or pipe leads a caller out of the folder or blocks the engine, even if
another process replaces folders and links meanwhile. Agents may read `.explorer/`, the engine's own folder, but never
write it. A quota limits what agents write: it is counted with each write, and the folder is measured now and then.
"""

import asyncio
import errno
import fnmatch
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from explorer.schema.errors import StorageError, ToolError
from explorer.schema.events import FileChange, WrittenFile
from explorer.workspace.access import (
    ENGINE_FOLDER,
    REPORT,
    clean,
    is_path,
    parts_of,
    refuse_engine_folder,
    refuse_report_folder,
    restore_access,
)
from explorer.workspace.safe_open import Opening, best_opening, reason, replace
from explorer.workspace.tree import (
    HEAD_BYTES,
    MAX_SCANNED_BYTES,
    LineRange,
    RunTree,
    describe,
    head_of,
    kind_of,
    lines_in,
    no_text,
    passage,
    sha256,
)

RECOUNT_AFTER = 64
"""The number of writes after which the folder is measured again, because commands write and remove files."""


@dataclass(frozen=True)
class Quota:
    """The limits of agents' files in a run's folder, without the engine's own."""

    bytes: int = 1024 * 1024 * 1024
    """Bytes on the disk: the holes of a sparse file do not count."""
    files: int = 20_000
    """The number of files and folders."""


@dataclass(frozen=True)
class FolderUsage:
    """The size of a run's folder."""

    files: int
    bytes: int


class QuotaTracker:
    """Counts writes against a quota. `measure` measures the folder, and may stop above the quota."""

    def __init__(self, quota: Quota, measure: Callable[[], FolderUsage]) -> None:
        self._quota = quota
        self._measure = measure
        self._used = FolderUsage(0, 0)
        self._writes_left = 0
        self._lock = threading.Lock()

    def take(self, path: str, files: int, size: int) -> None:
        """Count a write that adds files and bytes; a write that adds neither is always allowed.

        Raises:
            ToolError: It exceeds the quota; the message says what would help.
        """
        with self._lock:
            after = self._after(files, size)
            if self._writes_left <= 0 or self._is_too_much(after):
                self._used = self._measure()
                self._writes_left = RECOUNT_AFTER
                after = self._after(files, size)
            if (files > 0 or size > 0) and self._is_too_much(after):
                raise ToolError.of(
                    "{path} is not written: this run's folder would have {files} files and {bytes} bytes, and "
                    "{files2} files and {bytes2} bytes are the limit; write into files that are there, shorten "
                    "them, or remove what is not needed",
                    path=path,
                    files=after.files,
                    bytes=after.bytes,
                    files2=self._quota.files,
                    bytes2=self._quota.bytes,
                )
            self._used = after
            self._writes_left -= 1

    def _after(self, files: int, size: int) -> FolderUsage:
        return FolderUsage(self._used.files + files, self._used.bytes + size)

    def _is_too_much(self, used: FolderUsage) -> bool:
        return used.files > self._quota.files or used.bytes > self._quota.bytes


MAX_FILE_BYTES = 8 * 1024 * 1024
"""Limit of one file that is read or written whole."""
MAX_LISTED = 2_000
MAX_COUNTED_BYTES = 256 * 1024 * 1024
"""Limit of the bytes that one listing reads to count lines."""
AGENTS_OWN = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY, errno.ELOOP, errno.EXDEV}
)
"""Errors that come from the files that agents made, not from the disk."""
CLOSED = frozenset({errno.EACCES, errno.EPERM})
"""Errors that come from agents only in a folder that agents made."""


@dataclass(frozen=True)
class FileInfo:
    """A file of the run, for listings."""

    path: str
    bytes: int
    lines: int
    """0 for a file that is not text, or is too big to be counted."""


class Workspace:
    """One run's folder. `opening` opens files in it; the default is the best that this machine has."""

    def __init__(self, folder: Path, opening: Opening | None = None, quota: Quota | None = None) -> None:
        self.folder = folder
        self._tree = RunTree(folder, opening or best_opening())
        self._quota = quota or Quota()
        self._quota_left = QuotaTracker(self._quota, self._usage)
        self._locks: dict[str, asyncio.Lock] = {}
        self.set_aside: list[str] = []
        """New paths of what was moved away from the report's path."""

    def lock(self, path: str) -> asyncio.Lock:
        """Return the lock for reading and then writing a file, so that no edit is lost."""
        key = clean(path)
        return self._locks.setdefault(key.casefold() if self._is_case_blind() else key, asyncio.Lock())

    def _is_case_blind(self) -> bool:
        """Return whether `A` and `a` are one file: the engine's folder, which every run has, shows it."""
        with suppress(OSError):
            return (self.folder / ENGINE_FOLDER).samefile(self.folder / ENGINE_FOLDER.upper())
        return False

    def read_bytes(self, path: str) -> bytes:
        """Return a file's content.

        Raises:
            ToolError: It does not exist, is not a plain file of this folder, or is too big.
        """
        with self._tree.opened(path) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as file:
            size = os.fstat(descriptor).st_size
            content = b"" if size > MAX_FILE_BYTES else file.read(MAX_FILE_BYTES + 1)
        if max(size, len(content)) > MAX_FILE_BYTES:
            raise ToolError.of(
                "{path} has {size} bytes; the limit is {max_file_bytes} for a file as a whole",
                path=path,
                size=size,
                max_file_bytes=MAX_FILE_BYTES,
            )
        return content

    def read_text(self, path: str) -> str:
        """Return a text file's content.

        Raises:
            ToolError: It cannot be read, or is binary.
        """
        content = self.read_bytes(path)
        kind = kind_of(content[:HEAD_BYTES])
        if kind:
            raise ToolError(no_text(path, kind, len(content)))
        return content.decode("utf-8", "replace")

    def read_lines(self, path: str, first: int, last: int) -> LineRange:
        """Return some lines of a text file of any size; of a very big one, only lines near its beginning.

        Raises:
            ToolError: It cannot be read, is binary, or the lines are after its first `MAX_SCANNED_BYTES`.
        """
        with self._tree.opened(path) as descriptor:
            size = os.fstat(descriptor).st_size
            kind = kind_of(head_of(descriptor))
            if kind:
                raise ToolError(no_text(path, kind, size))
            found = passage(descriptor, first, last)
        if not found.is_whole and first > found.total:
            raise ToolError.of(
                "{path} has {size} bytes; only the {total} lines within its first {max_scanned_bytes} bytes can "
                "be read here; for what is further in, have a command cut out a part",
                path=path,
                size=size,
                total=found.total,
                max_scanned_bytes=MAX_SCANNED_BYTES,
            )
        return found

    def digest(self, path: str) -> str:
        """Return the SHA-256 of a file for a `FileChange`; empty when it does not exist."""
        try:
            return sha256(self.read_bytes(path))
        except ToolError:
            return ""

    def write_text(self, path: str, text: str) -> WrittenFile:
        """Replace a file's content for an agent: a reader sees the old or the new one, never a half.

        Raises:
            ToolError: The path is not the agent's to write, the content is too big, or the folder is full.
        """
        refuse_engine_folder(path)
        refuse_report_folder(path)
        text = _readable(text)
        self._admit(path, len(text.encode("utf-8", "replace")))
        return self.write_own(path, text)

    def _admit(self, path: str, size: int) -> None:
        """Refuse a path that is in the engine's folder under another name, and a write above the quota."""
        if self._tree.is_engines(path):
            raise ToolError.of("{path} is in the engine's own folder .explorer/; write somewhere else", path=path)
        if clean(path) != REPORT:
            old = self._tree.status(path)
            self._quota_left.take(path, 0 if old else 1, size - (_quota_of(old) if old else 0))

    def write_own(self, path: str, text: str) -> WrittenFile:
        """Replace a file's content for the engine, which may write `.explorer/`.

        Raises:
            ToolError: The content is too big, or files of agents are in the way.
            StorageError: The disk is full or failing.
        """
        content = text.encode("utf-8", "replace")
        if len(content) > MAX_FILE_BYTES:
            raise ToolError.of(
                "{path} would have {count} bytes; the limit is {max_file_bytes}: split it",
                path=path,
                count=len(content),
                max_file_bytes=MAX_FILE_BYTES,
            )
        if clean(path) == REPORT:
            self.clear_report_path()
        try:
            self._replace(path, content)
        except OSError as error:
            if error.errno in AGENTS_OWN or (error.errno in CLOSED and _is_in_agents_folder(path)):
                raise ToolError.of(
                    "{path} could not be written: {error}; list_files, then try again", path=path, error=reason(error)
                ) from error
            raise StorageError(f"{path} could not be written: {error.strerror}; what was there is unchanged") from error
        return describe(path, text)

    def _replace(self, path: str, content: bytes) -> None:
        """Write a file; if the folder lacks its owner's permissions, restore them and try again."""
        try:
            with self._tree.opened_parent(path, create=True) as (parent, name):
                replace(parent, name, content)
        except PermissionError:
            if not restore_access(self.folder):
                raise
            with self._tree.opened_parent(path, create=True) as (parent, name):
                replace(parent, name, content)

    def clear_report_path(self) -> None:
        """Move away what is at `report.md` and cannot be a report: a folder, a link, a device, a binary file.

        Its new name is added to `set_aside`.

        Raises:
            StorageError: The disk is failing.
        """
        status = self._tree.status(REPORT)
        if status is None or (stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and not self._is_binary(REPORT)):
            return
        try:
            restore_access(self.folder)
            self.set_aside.append(self._tree.move_aside(REPORT))
        except OSError as error:
            raise StorageError(f"{REPORT} could not be moved aside: {error.strerror}") from error

    def _is_binary(self, path: str) -> bool:
        try:
            with self._tree.opened(path) as descriptor:
                return bool(kind_of(head_of(descriptor)))
        except ToolError:
            return False

    def remove(self, path: str) -> None:
        """Remove a plain file if it exists."""
        if self.exists(path):
            with self._tree.opened_parent(path) as (parent, name):
                os.unlink(name, dir_fd=parent)
                os.fsync(parent)

    def sweep(self) -> None:
        """Remove temporary files of writes that a crash interrupted: agents would see them in listings."""
        self._tree.sweep()

    def foresee(self, path: str, text: str) -> FileChange:
        """Return the change that writing `text` would make."""
        refuse_engine_folder(path)
        refuse_report_folder(path)
        after = sha256(_readable(text).encode("utf-8", "replace"))
        return FileChange(path=clean(path), before=self.digest(path), after=after)

    def exists(self, path: str) -> bool:
        """Return whether a plain file exists."""
        status = self._tree.status(path)
        return status is not None and stat.S_ISREG(status.st_mode)

    def files(self, path: str = "", pattern: str = "") -> list[FileInfo]:
        """Return the plain files under `path`, sorted; the engine's own only if `path` is its folder.

        Raises:
            ToolError: `path` is not a folder of this run.
        """
        left = MAX_COUNTED_BYTES
        found: list[FileInfo] = []
        for name, status in islice(self._plain_files(path, pattern), MAX_LISTED):
            lines = 0
            if status.st_size <= min(left, MAX_SCANNED_BYTES):
                left -= status.st_size
                with suppress(ToolError), self._tree.opened(name) as descriptor:
                    lines = lines_in(descriptor)
            found.append(FileInfo(name, status.st_size, lines))
        return found

    def sizes(self, pattern: str = "") -> dict[str, int]:
        """Return the bytes of each file, by path, without opening it."""
        return {name: status.st_size for name, status in islice(self._plain_files("", pattern), MAX_LISTED)}

    def _plain_files(self, path: str, pattern: str) -> Iterator[tuple[str, os.stat_result]]:
        root = "" if path.strip() in {"", ".", "./", "/"} else clean(path)
        if root:
            try:
                with self._tree.opened_parent(f"{root}/x"):
                    pass
            except ToolError as error:
                raise ToolError.of(
                    "there is no folder {root}; list_files without a path shows all files", root=root
                ) from error
        for name, status in self._tree.walk(root):
            if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1 or not is_path(name):
                continue
            if not pattern or fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(name.split("/")[-1], pattern):
                yield name, status

    def _usage(self) -> FolderUsage:
        files = size = 0
        for _, status in self._tree.walk():
            files += 1
            size += _quota_of(status)
            if files > self._quota.files or size > self._quota.bytes:
                break
        return FolderUsage(files, size)


def _is_in_agents_folder(path: str) -> bool:
    """Return whether a file is in a folder that agents made, and whose mode they can change."""
    first, *rest = parts_of(path)
    return bool(rest) and first != ENGINE_FOLDER


def _readable(text: str) -> str:
    """Replace NUL, which would make a text file a binary one that no tool can read."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _quota_of(status: os.stat_result) -> int:
    """Return the bytes of a file on the disk, without holes; 0 for a folder."""
    return min(status.st_size, status.st_blocks * 512) if stat.S_ISREG(status.st_mode) else 0


def report_path(folder: Path) -> Path | None:
    """Return where a run's report is; None where there is none, or a link or a folder has its name."""
    return folder / REPORT if Workspace(folder).exists(REPORT) else None


def report_text(folder: Path) -> str:
    """Return the text of a run's report, opened without following a link; empty where no plain file has its name."""
    try:
        return Workspace(folder).read_text(REPORT)
    except ToolError:
        return ""
