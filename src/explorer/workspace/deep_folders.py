"""Walks and removes folders of any depth: a command of a model may nest them by the thousand.

The standard library's walk and removal call themselves for each level, hold one descriptor open for each, or write
paths that are longer than the system takes.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def walk(folder: Path, is_entered: Callable[[str], bool]) -> Iterator[os.DirEntry[str]]:
    """Yield everything beneath a folder that is no folder, links included; no link is followed.

    What cannot be listed is passed over, and so is what lies deeper than a path of the system can say.

    Args:
        folder: Where to begin.
        is_entered: Says of a folder, by its path from there, whether it is looked into.
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
    """Remove a folder with all that is in it; folders that are closed to their owner are opened.

    Each folder within a folder is moved to the top before the outer one is removed, so no path has more than two
    names, and two descriptors are enough for any depth.

    Raises:
        OSError: Something cannot be removed.
    """
    top = os.open(folder, _OPEN)
    try:
        number = 0
        while names := os.listdir(top):  # noqa: PTH208 - by descriptor
            for name in names:
                number = _remove_entry(top, name, number)
    finally:
        os.close(top)
    folder.rmdir()


def _remove_entry(top: int, name: str, number: int) -> int:
    """Remove one entry of the top folder; what it holds of folders stays there under a number. Return the next one."""
    if not _is_folder(name, top):
        os.unlink(name, dir_fd=top)
        return number
    _open_up(name, top)
    inner = os.open(name, _OPEN, dir_fd=top)
    try:
        for within in os.listdir(inner):  # noqa: PTH208 - by descriptor
            if not _is_folder(within, inner):
                os.unlink(within, dir_fd=inner)
                continue
            # A folder that is closed to its owner cannot be moved either.
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
