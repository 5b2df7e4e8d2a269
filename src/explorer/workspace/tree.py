"""The files and folders under a run's folder: opens, reads, lists and walks them.

Names that look the same are the same file. Files are read in pieces, so that no file is too big to begin with.
"""

import codecs
import hashlib
import os
import stat
import struct
import unicodedata
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from explorer.schema.errors import ToolError
from explorer.schema.events import WrittenFile
from explorer.text.rendering import ModelText, own
from explorer.workspace.access import ENGINE_FOLDER, clean, parts_of, restore_access
from explorer.workspace.safe_open import (
    A_FOLDER,
    A_ROOT,
    FOLDER_MODE,
    TEMPORARY,
    IrregularFileError,
    Opening,
    open_regular,
    reason,
)

HEAD_BYTES = 8_192
"""The length of a file's beginning that shows whether it is text."""
PIECE_BYTES = 1024 * 1024
MAX_SCANNED_BYTES = 32 * 1024 * 1024
"""The part of one file that can be read by lines; the rest of a bigger file cannot."""
MAX_LINE_KEPT_CHARS = 100_000
"""The length to which one line is cut."""
TITLE_CHARS = 120
IMAGES = {b"\x89PNG\r\n\x1a\n": "a PNG image", b"\xff\xd8\xff": "a JPEG image", b"GIF8": "a GIF image"}
KINDS = IMAGES | {
    b"%PDF-": "a PDF document",
    b"PK\x03\x04": "a ZIP archive or an office document",
    b"\x1f\x8b": "a gzip archive",
    b"SQLite format 3\0": "an SQLite database",
}
PNG_HEADER = struct.Struct(">8x4x4s2L")


@dataclass(frozen=True)
class LineRange:
    """A range of lines of a text file."""

    lines: list[str]
    total: int
    """The number of lines counted in the file."""
    is_whole: bool
    """Whether the file was counted to its end."""


def kind_of(head: bytes) -> str:
    """Return the kind of a file by its beginning, for people; empty for text."""
    for mark, words in KINDS.items():
        if head.startswith(mark):
            return words + _dimensions(head)
    undecodable = len(head) - len(head.decode("utf-8", "ignore").encode())
    return "a binary file" if b"\0" in head or undecodable > max(4, len(head) // 10) else ""


def _dimensions(head: bytes) -> str:
    if head.startswith(b"\x89PNG") and len(head) >= PNG_HEADER.size:
        mark, width, height = PNG_HEADER.unpack_from(head)
        return f" of {width} x {height} pixels" if mark == b"IHDR" else ""
    return ""


def no_text(path: str, kind: str, size: int) -> ModelText:
    """Return the error for reading a file as text that is not text."""
    is_image = kind.startswith(tuple(IMAGES.values()))
    way = own("; to show it in a report, write ![what it shows]({path})", path=path) if is_image else own("")
    return own(
        "{path} is {kind} ({size} bytes); it cannot be read as text{way}", path=path, kind=kind, size=size, way=way
    )


def head_of(descriptor: int) -> bytes:
    """Return a file's first bytes."""
    return os.pread(descriptor, HEAD_BYTES, 0)


def _pieces(descriptor: int) -> Iterator[bytes]:
    place = 0
    while place < MAX_SCANNED_BYTES and (piece := os.pread(descriptor, PIECE_BYTES, place)):
        place += len(piece)
        yield piece


def lines_in(descriptor: int) -> int:
    """Count the lines of an open file as an editor does; 0 if it is not text."""
    if kind_of(head_of(descriptor)):
        return 0
    count, last = 0, b""
    for piece in _pieces(descriptor):
        count += piece.count(b"\n")
        last = piece[-1:]
    return count + (last not in {b"", b"\n"})


def passage(descriptor: int, first: int, last: int) -> LineRange:
    """Return the lines from `first` to `last`, counted from 1, of an open text file."""
    wanted = _Lines(first, last)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in _pieces(descriptor):
        wanted.take(decoder.decode(piece))
    is_whole = os.fstat(descriptor).st_size <= MAX_SCANNED_BYTES
    if is_whole:
        wanted.end(decoder.decode(b"", final=True))
    return LineRange(wanted.kept, wanted.count, is_whole)


@dataclass
class _Lines:
    """Collects the wanted lines of a text that comes in pieces."""

    first: int
    last: int
    count: int = 0
    kept: list[str] = field(default_factory=list[str])
    _open: str = ""
    """The beginning of a line whose end has not come yet."""

    def take(self, text: str) -> None:
        """Add a piece."""
        lines = (self._open + text).splitlines(keepends=True)
        self._open = lines.pop() if lines and not _is_ended(lines[-1]) else ""
        if not self._open.endswith("\r"):
            self._open = self._open[:MAX_LINE_KEPT_CHARS]
        self._add(lines)

    def end(self, text: str) -> None:
        """Add the last piece: an open line is complete."""
        self._add((self._open + text).splitlines(keepends=True))

    def _add(self, lines: list[str]) -> None:
        begin, end = max(0, self.first - 1 - self.count), max(0, self.last - self.count)
        self.kept += [line.splitlines()[0][:MAX_LINE_KEPT_CHARS] for line in lines[begin:end]]
        self.count += len(lines)


def _is_ended(line: str) -> bool:
    """Return whether a line has its end; after a carriage return a line feed may still come."""
    return not line.endswith("\r") and line.splitlines()[0] != line


def sha256(content: bytes) -> str:
    """Return the SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def count_lines(content: bytes) -> int:
    """Count lines as an editor does."""
    return content.count(b"\n") + (not content.endswith(b"\n") and bool(content))


def describe(path: str, text: str) -> WrittenFile:
    """Return the journal's description of a written file."""
    content = text.encode("utf-8", "replace")
    first = next((line.strip("# \t*-") for line in text.splitlines() if line.strip("# \t*-")), "")
    return WrittenFile(
        path=clean(path),
        title=first[:TITLE_CHARS],
        lines=count_lines(content),
        bytes=len(content),
        sha256=sha256(content),
    )


MAX_SEEN = 100_000
"""Limit of the files and folders of one walk, in all and in one folder."""
Entry = tuple[str, os.stat_result]
"""A name or a path, and its status."""


class RunTree:
    """The content of one folder. `parts_of` checks each path."""

    def __init__(self, folder: Path, opening: Opening) -> None:
        self._folder = folder
        self._open = opening

    @contextmanager
    def opened(self, path: str) -> Generator[int]:
        """Provide the descriptor of a plain file, for reading.

        Raises:
            ToolError: It does not exist, or is something else: a link, a second name, a pipe.
        """
        with self._root() as root:
            try:
                descriptor = open_regular(self._open, root, self._spelled(root, parts_of(path)))
            except FileNotFoundError as error:
                raise ToolError.of("there is no file {path}; list_files shows all files", path=path) from error
            except IrregularFileError as error:
                raise ToolError.of("{path} is not a plain file", path=path) from error
            except OSError as error:
                raise ToolError.of(
                    "{path} cannot be read: it is not a plain file ({error})", path=path, error=reason(error)
                ) from error
        try:
            if os.fstat(descriptor).st_nlink > 1:
                raise ToolError.of("{path} is a hard link; copies are read, links are not", path=path)
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def opened_parent(self, path: str, *, create: bool = False) -> Generator[tuple[int, str]]:
        """Provide the descriptor of the folder of `path`, and the name in it.

        Raises:
            ToolError: The folder does not exist, or cannot be made.
        """
        with self._root() as root:
            *folders, name = self._spelled(root, parts_of(path))
            parent = self._made(root, folders, path) if create else self._there(root, folders, path)
        try:
            yield parent, name
        finally:
            os.close(parent)

    def _there(self, root: int, folders: Sequence[str], path: str) -> int:
        try:
            return self._open(root, folders or ["."], A_FOLDER)
        except FileNotFoundError as error:
            raise ToolError.of("there is no file {path}; list_files shows all files", path=path) from error
        except OSError as error:
            raise _unreachable(path, "/".join(folders), error) from error

    def _made(self, root: int, folders: Sequence[str], path: str) -> int:
        descriptor = self._open(root, ["."], A_FOLDER)
        for folder in folders:
            try:
                inner = self._entered(descriptor, folder, path)
            finally:
                os.close(descriptor)
            descriptor = inner
        return descriptor

    def _entered(self, parent: int, folder: str, path: str) -> int:
        try:
            os.mkdir(folder, FOLDER_MODE, dir_fd=parent)
            os.fsync(parent)
        except FileExistsError:
            pass
        except PermissionError as error:
            raise ToolError.of(
                "cannot make the folder of {path}: {strerror}", path=path, strerror=error.strerror or ""
            ) from error
        try:
            return self._open(parent, [folder], A_FOLDER)
        except OSError as error:
            raise _unreachable(path, folder, error) from error

    def status(self, path: str) -> os.stat_result | None:
        """Return the status of a path, of a link itself and not its target; None when it cannot be reached."""
        try:
            with self.opened_parent(path) as (parent, name):
                return os.stat(name, dir_fd=parent, follow_symlinks=False)
        except (ToolError, OSError):
            return None

    def is_engines(self, path: str) -> bool:
        """Return whether a path's first part is the engine's folder, by any name that the file system accepts."""
        first, engine = self.status(parts_of(path)[0]), self.status(ENGINE_FOLDER)
        return first is not None and engine is not None and os.path.samestat(first, engine)

    def walk(self, path: str = "") -> Iterator[Entry]:
        """Yield everything under a folder by path, each folder's entries before those of its folders; follow no link.

        The engine's folder is left out unless `path` is in it, and so are temporary files.
        """
        with self._root() as root:
            waiting = [self._spelled(root, parts_of(path)) if path else []]
        seen = 0
        while waiting and seen < MAX_SEEN:
            place = waiting.pop()
            folders: list[list[str]] = []
            for name, status in self._entries(place):
                seen += 1
                if name == ENGINE_FOLDER and not place:
                    continue
                if stat.S_ISDIR(status.st_mode):
                    folders.append([*place, name])
                if not TEMPORARY.fullmatch(name):
                    yield unicodedata.normalize("NFC", "/".join([*place, name])), status
            waiting += reversed(folders)

    def sweep(self) -> None:
        """Remove temporary files of writes that a crash interrupted, in the engine's folder too."""
        waiting: list[list[str]] = [[]]
        seen = 0
        while waiting and seen < MAX_SEEN:
            place = waiting.pop()
            entries = self._entries(place)
            seen += len(entries)
            waiting += [[*place, name] for name, status in entries if stat.S_ISDIR(status.st_mode)]
            for name, _ in entries:
                if TEMPORARY.fullmatch(name):
                    self._unlink([*place, name])

    def _unlink(self, parts: Sequence[str]) -> None:
        with suppress(OSError), self._folder_at(parts[:-1]) as parent:
            os.unlink(parts[-1], dir_fd=parent)

    def move_aside(self, name: str) -> str:
        """Rename what is at the top of the folder to `name.moved-1`, or the next number that is free.

        Raises:
            OSError: The disk is failing.
        """
        with self._root() as root:
            number = 1
            while _exists(root, moved := f"{name}.moved-{number}"):
                number += 1
            os.rename(name, moved, src_dir_fd=root, dst_dir_fd=root)
            os.fsync(root)
        return moved

    def _entries(self, place: Sequence[str]) -> list[Entry]:
        """Return the entries of a folder, sorted by name; empty when it does not exist or cannot be read."""
        found: list[Entry] = []
        with suppress(OSError), self._folder_at(place) as descriptor, os.scandir(descriptor) as entries:
            for entry in islice(entries, MAX_SEEN):
                with suppress(OSError):
                    found.append((entry.name, entry.stat(follow_symlinks=False)))
        return sorted(found, key=lambda entry: entry[0])

    def _spelled(self, root: int, parts: list[str]) -> list[str]:
        """Return the parts as they are on the disk, where a command may have written `é` as two characters."""
        spelled: list[str] = []
        for part in parts:
            spelled.append(part if part.isascii() else self._twin(root, spelled, part))
        return spelled

    def _twin(self, root: int, place: Sequence[str], name: str) -> str:
        try:
            descriptor = self._open(root, place or ["."], A_FOLDER)
        except OSError:
            return name
        try:
            with suppress(FileNotFoundError):
                os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                return name
            with os.scandir(descriptor) as entries:
                twins = [one.name for one in entries if unicodedata.normalize("NFC", one.name) == name]
        except OSError:
            return name
        finally:
            os.close(descriptor)
        return min(twins, default=name)

    @contextmanager
    def _folder_at(self, place: Sequence[str]) -> Generator[int]:
        with self._root() as root:
            descriptor = self._open(root, place or ["."], A_FOLDER)
            try:
                yield descriptor
            finally:
                os.close(descriptor)

    @contextmanager
    def _root(self) -> Generator[int]:
        try:
            descriptor = os.open(self._folder, A_ROOT)
        except PermissionError:
            if not restore_access(self._folder):
                raise
            descriptor = os.open(self._folder, A_ROOT)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _unreachable(path: str, folder: str, error: OSError) -> ToolError:
    words = "{path} cannot be reached: {folder} is not a plain folder ({error})"
    return ToolError.of(words, path=path, folder=folder, error=reason(error))


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
