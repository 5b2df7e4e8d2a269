"""Paths as agents give them: what is right, what is refused, and which names mean the same file."""

import re
import unicodedata

from explorer.schema.errors import ToolError

ENGINE_FOLDER = ".explorer"
QUESTION = "question.txt"
REPORT = "report.md"
"""May be written however full the folder is: every ending leaves a report."""
INPUTS = "inputs"
"""The user's files, which the engine put there."""
MAX_PATH_CHARS = 400
MAX_NAME_BYTES = 200
"""Of one file or folder name; the disk takes 255, and a temporary name is longer by some."""
WINDOWS_DRIVE = re.compile(r"^[A-Za-z]:")
UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co"})
"""Categories of characters that nobody sees, or everybody sees differently."""


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
