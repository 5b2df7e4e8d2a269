"""Paths as agents give them: what is refused, and which names mean the same file; and a folder made accessible again.

A command may have taken the owner's access away with `chmod`.
"""

import os
import re
import stat
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from explorer.schema.errors import ToolError

ENGINE_FOLDER = ".explorer"
QUESTION = "question.txt"
REPORT = "report.md"
"""May be written however full the folder is: every ending leaves a report."""
DRAFT = f"{ENGINE_FOLDER}/draft.md"
"""The report as its writer left it, with `[S12]` citations."""
JOURNAL = f"{ENGINE_FOLDER}/journal.jsonl"
INPUTS = "inputs"
"""The user's files, which the engine put there."""
MAX_PATH_CHARS = 400
MAX_NAME_BYTES = 200
"""Of one file or folder name; the disk takes 255, and a temporary name is longer by some."""
WINDOWS_DRIVE = re.compile(r"^[A-Za-z]:")
UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co"})
"""Categories of characters that nobody sees, or everybody sees differently."""


def journal_path(folder: Path) -> Path:
    """Return where a run's journal is."""
    return folder / JOURNAL


def parts_of(path: str) -> list[str]:
    """A relative path's components in one spelling (NFC), or a refusal that says what would be right.

    Raises:
        ToolError: It is absolute, leads out, or holds what a path should not.
    """
    text = unicodedata.normalize("NFC", path.strip())
    if not text or len(text) > MAX_PATH_CHARS:
        raise ToolError(f"a path needs 1 to {MAX_PATH_CHARS} characters, such as notes/topic.md")
    if text.startswith(("/", "~")) or "\\" in text or WINDOWS_DRIVE.match(text):
        raise ToolError(f"{path!r} is not a path inside this run's folder; use a relative one such as notes/topic.md")
    if any(unicodedata.category(c) in UNSEEN for c in text):
        raise ToolError(f"{path!r} holds invisible or control characters; use plain letters")
    parts = [part for part in text.split("/") if part not in {"", "."}]
    if ".." in parts:
        raise ToolError(f"{path!r} leaves this run's folder; use a relative path without ..")
    if any(len(part.encode()) > MAX_NAME_BYTES for part in parts):
        raise ToolError(f"{path!r} holds a name of over {MAX_NAME_BYTES} bytes; choose a shorter one")
    if not parts:
        raise ToolError(f"{path!r} names the run's folder itself, not a file in it")
    return parts


def refuse_report_folder(path: str) -> None:
    """Refuse a path below `report.md`, which is a file: a folder of that name would stand in the report's way.

    Raises:
        ToolError: It is such a path.
    """
    first, *rest = parts_of(path)
    if rest and first.casefold() == REPORT:
        raise ToolError(f"{path}: {REPORT} is a file, the run's report; write to another folder, such as notes/")


def is_path(path: str) -> bool:
    """Whether an agent could name it so."""
    try:
        parts_of(path)
    except ToolError:
        return False
    return True


def clean(path: str) -> str:
    """The one spelling of a path.

    Raises:
        ToolError: As `parts_of`.
    """
    return "/".join(parts_of(path))


def refuse_engine_folder(path: str) -> None:
    """Agents read `.explorer/` and never write it.

    Compared is what a file system may take for the same name: some ignore case, marks nobody sees, or dots at the end.
    """
    name = unicodedata.normalize("NFKD", parts_of(path)[0]).casefold()
    if "".join(character for character in name if character.isascii()).rstrip(". ") == ENGINE_FOLDER:
        raise ToolError(f"{path}: the folder {ENGINE_FOLDER}/ is the engine's own; write somewhere else")


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
