"""Paths of agents: which are refused, and which names are the same file.

It also restores access to a run's folder, because a command may have removed the owner's permissions with `chmod`.
"""

import os
import re
import stat
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from explorer.schema.errors import ToolError
from explorer.text.rendering import WrittenBy

ENGINE_FOLDER = ".explorer"
QUESTION = "question.txt"
REPORT = "report.md"
"""The run's report, which may be written however full the folder is: every run ends with one."""
DRAFT = f"{ENGINE_FOLDER}/draft.md"
"""The report as its writer wrote it, with `[S12]` citations."""
JOURNAL = f"{ENGINE_FOLDER}/journal.jsonl"
INPUTS = "inputs"
"""The folder with copies of the user's files."""
MAX_PATH_CHARS = 400
MAX_NAME_BYTES = 200
"""Limit of one file or folder name; the disk takes 255, and a temporary name is a little longer."""
WINDOWS_DRIVE = re.compile(r"^[A-Za-z]:")
UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co"})
"""Categories of characters that are invisible, or shown differently by each program."""


def writer_of(path: str) -> WrittenBy:
    """Return who wrote a file of a run: what is stored and what the user gave is from outside, all else from models."""
    return WrittenBy.OUTSIDER if path.startswith((f"{ENGINE_FOLDER}/", f"{INPUTS}/")) else WrittenBy.MODEL


def journal_path(folder: Path) -> Path:
    """Return where a run's journal is."""
    return folder / JOURNAL


def parts_of(path: str) -> list[str]:
    """Return a relative path's components in one spelling (NFC).

    Raises:
        ToolError: It is absolute, leads out of the folder, or has wrong characters; the message says what is right.
    """
    text = unicodedata.normalize("NFC", path.strip())
    if not text or len(text) > MAX_PATH_CHARS:
        raise ToolError.of(
            "a path needs 1 to {max_path_chars} characters, such as notes/topic.md", max_path_chars=MAX_PATH_CHARS
        )
    if text.startswith(("/", "~")) or "\\" in text or WINDOWS_DRIVE.match(text):
        raise ToolError.of(
            "{path} is not a path inside this run's folder; use a relative one such as notes/topic.md", path=repr(path)
        )
    if any(unicodedata.category(c) in UNSEEN for c in text):
        raise ToolError.of("{path} contains invisible or control characters; use plain letters", path=repr(path))
    parts = [part for part in text.split("/") if part not in {"", "."}]
    if ".." in parts:
        raise ToolError.of("{path} leaves this run's folder; use a relative path without ..", path=repr(path))
    if any(len(part.encode()) > MAX_NAME_BYTES for part in parts):
        raise ToolError.of(
            "{path} contains a name of over {max_name_bytes} bytes; choose a shorter one",
            path=repr(path),
            max_name_bytes=MAX_NAME_BYTES,
        )
    if not parts:
        raise ToolError.of("{path} names the run's folder itself, not a file in it", path=repr(path))
    return parts


def refuse_report_folder(path: str) -> None:
    """Refuse a path under `report.md`, which is a file: a folder of that name would block the report.

    Raises:
        ToolError: The path is under `report.md`.
    """
    first, *rest = parts_of(path)
    if rest and first.casefold() == REPORT:
        raise ToolError.of(
            "{path}: report.md is a file, the run's report; write to another folder, such as notes/", path=path
        )


def is_path(path: str) -> bool:
    """Return whether an agent may use a path."""
    try:
        parts_of(path)
    except ToolError:
        return False
    return True


def clean(path: str) -> str:
    """Return the one spelling of a path.

    Raises:
        ToolError: `parts_of` refuses it.
    """
    return "/".join(parts_of(path))


def refuse_engine_folder(path: str) -> None:
    """Refuse to write in `.explorer/`, which agents may only read.

    Names are compared as file systems may do: some ignore case, invisible marks, or dots at the end.

    Raises:
        ToolError: The path is in that folder.
    """
    name = unicodedata.normalize("NFKD", parts_of(path)[0]).casefold()
    if "".join(character for character in name if character.isascii()).rstrip(". ") == ENGINE_FOLDER:
        raise ToolError.of("{path}: the folder .explorer/ is the engine's own; write somewhere else", path=path)


OWNER = stat.S_IRWXU
"""The permissions of a folder that the engine needs: to list it, to write in it and to reach its files."""
OWN_FILE = stat.S_IRUSR | stat.S_IWUSR


def restore_access(folder: Path) -> bool:
    """Give the owner access to a run's folder, the engine's folders in it and the report.

    Only real folders and files are changed, never the target of a link. Return whether a mode was changed.
    """
    changed = _opened_up(folder)
    engine = folder / ENGINE_FOLDER
    changed = _opened_up(engine) or changed
    for inner in _entries(engine):
        changed = _opened_up(inner) or changed
    return _readable(folder / REPORT) or changed


def reaches(folder: Path, path: Path) -> bool:
    """Return whether a file of a run exists; a folder without its owner's permissions gets them.

    A folder in which no such file is found gets its mode back: it is not a run.
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
    """Give the owner access to a plain file; return whether its mode was changed."""
    with suppress(OSError):
        status = os.lstat(path)
        if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_mode & OWN_FILE != OWN_FILE:
            _change_mode(path, stat.S_IMODE(status.st_mode) | OWN_FILE)
            return True
    return False


def _change_mode(path: Path, mode: int) -> None:
    """Change the mode of a file itself, even if a link replaces it at this moment."""
    if os.chmod in os.supports_follow_symlinks:
        path.chmod(mode, follow_symlinks=False)
        return
    descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not stat.S_ISLNK(os.fstat(descriptor).st_mode):
            Path(f"/proc/self/fd/{descriptor}").chmod(mode)
    finally:
        os.close(descriptor)
