"""Opens, replaces, walks and removes files under a folder: no link, `..` or mount leads out, whatever is renamed.

What is made here is its owner's alone: it holds questions, sources and answers.

Linux resolves a whole path under such rules in one step: `openat2(2)`. Where the kernel is older, or a container's
filter forbids the call, each folder of the path is opened by its name from the one before.

A command of a model may nest folders by the thousand. The standard library's walk and removal call themselves for each
level, keep one descriptor open for each, or use paths that are longer than the system takes; these do not.
"""

import ctypes
import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, BinaryIO, Protocol

from explorer.schema.errors import ToolError

FOLDER_MODE = 0o700
FILE_MODE = 0o600
_HOW = {"a": os.O_APPEND, "w": os.O_TRUNC, "x": os.O_EXCL}


def make_private_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing; what is there already keeps its permissions.

    Raises:
        OSError: A file is there, or the disk refused.
    """
    missing: list[Path] = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for one in reversed(missing):
        one.mkdir(FOLDER_MODE, exist_ok=True)


def open_private(path: Path, how: str, *, buffering: int = -1) -> IO[bytes]:
    """Open a file for writing in bytes; one that is made is its owner's alone.

    Args:
        path: The file.
        how: `a` to append, `w` to write anew, `x` to make it.
        buffering: As for `open`.

    Raises:
        OSError: The disk refused, or with `x` the file is there.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | _HOW[how], FILE_MODE)
    return os.fdopen(descriptor, f"{how}b", buffering)


def write_private(path: Path, content: bytes) -> None:
    """Write a file anew.

    Raises:
        OSError: The disk refused.
    """
    with open_private(path, "w") as file:
        file.write(content)


def replace_private(path: Path, content: bytes) -> None:
    """Write a file in place of the one that is there, whole or not at all; its folder is made where it is missing.

    Raises:
        OSError: The disk refused.
    """
    make_private_folder(path.parent)
    new = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        write_private(new, content)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


QUIET = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Flags that follow no link, wait for no other end of a pipe, and pass nothing to child processes."""
A_FOLDER = QUIET | os.O_RDONLY | os.O_DIRECTORY
A_FILE = QUIET | os.O_RDONLY
A_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
"""Flags for the folder that a caller names, which may be reached through a link."""
OPENAT2 = 437
"""The number of the system call, the same on every architecture but Alpha."""
NO_XDEV = 0x01
RESOLVE_RULES = 0x02 | 0x04 | 0x08
"""RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH."""
MOUNT_ID = re.compile(rb"^mnt_id:\s*(\d+)$", re.MULTILINE)
TEMPORARY = re.compile(r"\..+\.\d+-[0-9a-f]{8}\.tmp")
"""Names of files that are being written; see `replace`."""
REASONS = {
    errno.ELOOP: "there is a symbolic link on the way",
    errno.EXDEV: "another file system is mounted there",
    errno.ENXIO: "it is a socket, a pipe or a device",
}


class Opening(Protocol):
    """Opens what is under an open folder."""

    def __call__(self, folder: int, parts: Sequence[str], flags: int, /) -> int:
        """Return the descriptor of what the parts, at least one, lead to.

        Raises:
            OSError: ELOOP or ENOTDIR at a link, EXDEV at a mount, and any other error of opening a file.
        """
        ...


class _How(ctypes.Structure):
    """`struct open_how`."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


class Openat2:
    """Opens with `openat2`: the kernel applies the rules to the whole path at once."""

    def __init__(self, *, enters_mounts: bool = False) -> None:
        self._rules = RESOLVE_RULES if enters_mounts else RESOLVE_RULES | NO_XDEV
        self._call = ctypes.CDLL(None, use_errno=True).syscall
        self._call.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(_How), ctypes.c_size_t)
        self._call.restype = ctypes.c_long

    def __call__(self, folder: int, parts: Sequence[str], flags: int) -> int:
        """Open as `Opening` describes."""
        how = _How(flags, 0, self._rules)
        path = os.fsencode("/".join(parts))
        descriptor = int(self._call(OPENAT2, folder, path, ctypes.byref(how), ctypes.sizeof(how)))
        if descriptor < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return descriptor


class OpenatWalk:
    """Opens folder by folder, each from the one before, and checks each once it is open."""

    def __init__(self, *, enters_mounts: bool = False) -> None:
        self._enters_mounts = enters_mounts

    def __call__(self, folder: int, parts: Sequence[str], flags: int) -> int:
        """Open as `Opening` describes."""
        if ".." in parts:
            raise OSError(errno.EXDEV, "a path has `..`")
        mount = 0 if self._enters_mounts else _mount_of(folder)
        current = folder
        for part, how in [*((part, A_FOLDER) for part in parts[:-1]), (parts[-1], flags | QUIET)]:
            try:
                inner = os.open(part, how, dir_fd=current)
            finally:
                if current != folder:
                    os.close(current)
            current = inner
            if not self._enters_mounts and _mount_of(current) != mount:
                os.close(current)
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return current


def _mount_of(descriptor: int) -> int:
    """Return the number of the mount that an open file is on; its device where /proc does not have it.

    A folder bound into another place has the same device, and on some layered file systems the files of one mount
    have several: the mount's own number is better where there is one.
    """
    with suppress(OSError):
        found = MOUNT_ID.search(Path(f"/proc/self/fdinfo/{descriptor}").read_bytes())
        if found is not None:
            return int(found[1])
    return os.fstat(descriptor).st_dev


@cache
def best_opening(*, enters_mounts: bool = False) -> Opening:
    """Return `Openat2` where the kernel has it, else `OpenatWalk`.

    Args:
        enters_mounts: Whether what is mounted under the folder may be opened: in a user's folder, never in a run's.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            root = os.open("/", A_ROOT)
            try:
                by_kernel = Openat2(enters_mounts=enters_mounts)
                os.close(by_kernel(root, ["."], A_FOLDER))
            finally:
                os.close(root)
            return by_kernel
    return OpenatWalk(enters_mounts=enters_mounts)


class IrregularFileError(OSError):
    """A folder, a pipe, a socket or a device is at a file's path."""


def open_regular(opening: Opening, folder: int, parts: Sequence[str]) -> int:
    """Open a regular file under an open folder for reading, and return its descriptor.

    Raises:
        IrregularFileError: Something else is at its path.
        OSError: It does not exist, may not be read, or the path leads through a link.
    """
    descriptor = opening(folder, parts, A_FILE)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise IrregularFileError(errno.EINVAL, "it is not a regular file")
    return descriptor


@contextmanager
def opened_below(folder: Path, path: str, opening: Opening | None = None) -> Generator[BinaryIO]:
    """Open a regular file under a folder for reading, even if another process replaces parts of its path.

    Args:
        folder: The folder, which may be a link; nothing under it may be one.
        path: The path from the folder, with `/`.
        opening: How files are opened; by default without leaving the folder's file system.

    Raises:
        OSError: `open_regular` cannot open it.
    """
    root = os.open(folder, A_ROOT)
    try:
        descriptor = open_regular(opening or best_opening(), root, path.split("/"))
    finally:
        os.close(root)
    with os.fdopen(descriptor, "rb") as file:
        yield file


def read_below(folder: Path, path: str, max_bytes: int, opening: Opening | None = None) -> bytes:
    """Read a regular file under a folder, opened as `opened_below` does.

    Raises:
        OSError: It cannot be opened, or has more than `max_bytes`.
    """
    with opened_below(folder, path, opening) as file:
        is_long = os.fstat(file.fileno()).st_size > max_bytes
        content = b"" if is_long else file.read(max_bytes + 1)
    if is_long or len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"{path} has more than {max_bytes} bytes")
    return content


def reason(error: OSError) -> str:
    """Return why opening failed, for people."""
    return REASONS.get(error.errno or 0, error.strerror or str(error))


def replace(parent: int, name: str, content: bytes) -> None:
    """Replace a file by temporary file, sync, rename, sync: a crash never leaves a half file or loses one.

    Args:
        parent: The descriptor of its folder.
        name: Its name.
        content: The new content.

    Raises:
        ToolError: The name is a folder's.
        OSError: The disk is full or failing; the old file is unchanged, and no temporary file is left.
    """
    mode = _mode_of(parent, name)
    temporary = f".{name}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
    descriptor = os.open(temporary, QUIET | os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE, dir_fd=parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if mode:
                os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        os.fsync(parent)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=parent)
        raise


def _mode_of(parent: int, name: str) -> int:
    """Return the permissions of an existing file, so that a script stays executable; 0 without a plain file."""
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return 0
    if stat.S_ISDIR(status.st_mode):
        raise ToolError.of("{name} is a folder; choose another name", name=name)
    is_own = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
    return status.st_mode & 0o777 | 0o600 if is_own else 0


def walk(folder: Path, is_entered: Callable[[str], bool]) -> Iterator[os.DirEntry[str]]:
    """Yield everything under a folder that is not a folder, links included; no link is followed.

    Folders that cannot be listed are skipped, and so is what is deeper than the system's limit of a path.

    Args:
        folder: The folder to start from.
        is_entered: Returns whether a folder is entered, by its path from there.
    """
    pending = [""]
    while pending:
        inside = pending.pop()
        with suppress(OSError), os.scandir(folder / inside) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    yield entry
                elif is_entered(path := os.path.join(inside, entry.name)):  # noqa: PTH118 - one for each folder
                    pending.append(path)


def remove_tree(folder: Path) -> None:
    """Remove a folder with its content; folders without their owner's permissions get them.

    Each folder within a folder is moved to the top before the outer one is removed, so no path has more than two
    names, and two descriptors are enough for any depth.

    Raises:
        OSError: Something cannot be removed.
    """
    top = os.open(folder, A_FOLDER)
    try:
        number = 0
        while names := os.listdir(top):  # noqa: PTH208 - by descriptor
            for name in names:
                number = _remove_entry(top, name, number)
    finally:
        os.close(top)
    folder.rmdir()


def _remove_entry(top: int, name: str, number: int) -> int:
    """Remove one entry of the top folder; its folders are moved to the top, numbered. Return the last number."""
    if not _is_folder(name, top):
        os.unlink(name, dir_fd=top)
        return number
    _open_up(name, top)
    inner = os.open(name, A_FOLDER, dir_fd=top)
    try:
        for within in os.listdir(inner):  # noqa: PTH208 - by descriptor
            if not _is_folder(within, inner):
                os.unlink(within, dir_fd=inner)
                continue
            # A folder without its owner's permissions cannot be moved either.
            _open_up(within, inner)
            number = _free_number(top, number)
            os.rename(within, f"{number}", src_dir_fd=inner, dst_dir_fd=top)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=top)
    return number


def _is_folder(name: str, parent: int) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)


def _open_up(name: str, parent: int) -> None:
    mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(name, stat.S_IMODE(mode) | stat.S_IRWXU, dir_fd=parent)


def _free_number(top: int, number: int) -> int:
    """Return the next number that no entry of the top folder has as its name."""
    while True:
        number += 1
        try:
            os.stat(f"{number}", dir_fd=top, follow_symlinks=False)
        except FileNotFoundError:
            return number
