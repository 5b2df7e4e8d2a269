"""Files and folders of a run, made so that only their owner opens them: they hold questions, sources and answers."""

import os
from pathlib import Path
from typing import IO

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
