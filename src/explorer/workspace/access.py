"""Gives the owner of a run's folder access to it again: a command may have taken it away with `chmod`."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from explorer.workspace.paths import ENGINE_FOLDER, REPORT

OWNER = stat.S_IRWXU
"""What the engine needs of a folder: to list it, to write in it and to reach what is in it."""
OWN_FILE = stat.S_IRUSR | stat.S_IWUSR


def restore_access(folder: Path) -> bool:
    """Give the owner access to a run's folder, the engine's folders in it and the report; whether a mode was changed.

    Only real folders and files are changed, never what a link leads to.
    """
    changed = _opened_up(folder)
    engine = folder / ENGINE_FOLDER
    changed = _opened_up(engine) or changed
    for inner in _entries(engine):
        changed = _opened_up(inner) or changed
    return _readable(folder / REPORT) or changed


def reaches(folder: Path, path: Path) -> bool:
    """Whether a file of a run is there; a folder that is closed to its owner is opened for the look.

    A folder in which no such file is found gets its mode back: it is no run's.
    """
    with suppress(PermissionError):
        return path.is_file()
    try:
        mode = stat.S_IMODE(os.lstat(folder).st_mode)
        if restore_access(folder) and path.is_file():
            return True
        folder.chmod(mode)
    except OSError:
        pass
    return False


def _entries(folder: Path) -> Iterator[Path]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            yield Path(entry.path)


def _opened_up(path: Path) -> bool:
    with suppress(OSError):
        status = os.lstat(path)
        if stat.S_ISDIR(status.st_mode) and status.st_mode & OWNER != OWNER:
            path.chmod(stat.S_IMODE(status.st_mode) | OWNER)
            return True
    return False


def _readable(path: Path) -> bool:
    """Give the owner of a plain file its content again; whether its mode was changed."""
    with suppress(OSError):
        status = os.lstat(path)
        if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_mode & OWN_FILE != OWN_FILE:
            _change_mode(path, stat.S_IMODE(status.st_mode) | OWN_FILE)
            return True
    return False


def _change_mode(path: Path, mode: int) -> None:
    """Change the mode of a file itself, also when a link is put in its place in this moment."""
    if os.chmod in os.supports_follow_symlinks:
        path.chmod(mode, follow_symlinks=False)
        return
    descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not stat.S_ISLNK(os.fstat(descriptor).st_mode):
            Path(f"/proc/self/fd/{descriptor}").chmod(mode)
    finally:
        os.close(descriptor)
