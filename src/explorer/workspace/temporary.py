"""Folders for the time of a process: removed at its end, and by the next one where a process was killed.

The process locks its folder. A lock ends with its process, so a folder without one is left over.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from explorer.workspace.safe_open import A_FOLDER

PROXY_FOLDER = "explorer-proxy-"
"""The beginning of the names of folders with a proxy's socket: short, because a socket's path must be."""
LEAST_AGE_S = 60.0
"""A folder without a lock may have just been made; older ones are left over."""


@contextmanager
def temporary_folder(prefix: str) -> Generator[Path]:
    """Provide an empty folder, after removing those that killed processes left.

    Args:
        prefix: The beginning of its name, which nothing else has.
    """
    remove_left_over(Path(tempfile.gettempdir()), prefix)
    with tempfile.TemporaryDirectory(prefix=prefix) as name:
        descriptor = _locked(Path(name))
        try:
            yield Path(name).resolve()
        finally:
            if descriptor is not None:
                os.close(descriptor)


def remove_left_over(place: Path, prefix: str) -> None:
    """Remove the user's folders of that name on which no process works."""
    for path in place.glob(f"{prefix}*"):
        with suppress(OSError):
            state = path.lstat()
            if state.st_uid != os.geteuid() or time.time() - state.st_mtime < LEAST_AGE_S:
                continue
            descriptor = _locked(path)
            if descriptor is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(descriptor)


def _locked(path: Path) -> int | None:
    """Lock a folder and return what keeps the lock; None where another process has it, or it is not a folder."""
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError:
        return None
    try:
        descriptor = os.open(path, A_FOLDER)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
