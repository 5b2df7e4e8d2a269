"""The files of a skill's folder, by content: no link is followed, nothing special is opened, and sizes have limits."""

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from explorer.workspace.access import MAX_PATH_CHARS, journal_path
from explorer.workspace.safe_open import best_opening, read_below, reason

SKILL_FILE = "SKILL.md"
SKILLS = "skills"
"""The folder of a preset's skills."""
MAX_SKILLS = 100
"""Limit of the skills of one folder, and of all: each has a line in the prompt of each agent."""
MAX_FILES = 200
"""Limit of the files of one skill."""
MAX_DEPTH = 4
MAX_FILE_BYTES = 4 * 1024 * 1024
MAX_BYTES = 16 * 1024 * 1024
"""Limit of all files of one skill."""
PROJECT_PLACES = ("skills", ".agents/skills", ".explorer/skills")
"""Where skills are in a project's folder; of two with one name, the one in the first place counts."""
SKIPPED = frozenset({"__pycache__", "node_modules"})
"""Folders that are no part of a skill, besides hidden ones."""


class UnusableSkillError(Exception):
    """A skill's folder cannot be used; `problems` says each reason in one line."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def skill_names(place: Path) -> list[str]:
    """Return the names of the folders in a place that have a `SKILL.md`, links included; sorted."""
    try:
        with os.scandir(place) as entries:
            names = [entry.name for entry in entries if not entry.name.startswith(".")]
    except OSError:
        return []
    return sorted(name for name in names if os.path.lexists(place / name / SKILL_FILE))


def files_of(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a skill, by its path from the skill's folder.

    Raises:
        UnusableSkillError: It has a link or a device, or is too big.
    """
    found: dict[str, str] = {}
    size = 0
    for path in sorted(_paths(folder)):
        content = read_file(folder, path)
        found[path], size = hashlib.sha256(content).hexdigest(), size + len(content)
        if size > MAX_BYTES:
            raise UnusableSkillError(f"its files have more than {MAX_BYTES:,} bytes")
    return found


def read_file(folder: Path, path: str) -> bytes:
    """Return the content of a file of a skill.

    Raises:
        UnusableSkillError: It cannot be read, is no plain file of this folder, or is too big.
    """
    try:
        return read_below(folder, path, MAX_FILE_BYTES, best_opening(enters_mounts=True))
    except OSError as error:
        raise UnusableSkillError(f"{path} cannot be read: {reason(error)}") from error


def _paths(folder: Path) -> Iterator[str]:
    """Yield the paths of all files; a folder that is a link is refused before anything in it is read."""
    if folder.is_symlink():
        raise UnusableSkillError("it is a link, and links are not followed")
    waiting, count = [""], 0
    while waiting:
        inside = waiting.pop()
        for entry in _entries(folder / inside):
            path = f"{inside}{entry.name}"
            if entry.name.startswith(".") or entry.name in SKIPPED:
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(f"{path}/")
                if path.count("/") >= MAX_DEPTH:
                    raise UnusableSkillError(f"{path} is more than {MAX_DEPTH} folders deep")
                continue
            _check(path, entry)
            count += 1
            if count > MAX_FILES:
                raise UnusableSkillError(f"it has more than {MAX_FILES} files")
            yield path


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError as error:
        raise UnusableSkillError(f"{folder} cannot be listed: {error.strerror}") from error


def _check(path: str, entry: os.DirEntry[str]) -> None:
    status = entry.stat(follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        raise UnusableSkillError(f"{path} is a link, and links are not followed")
    if not stat.S_ISREG(status.st_mode):
        raise UnusableSkillError(f"{path} is not a plain file")
    if status.st_size > MAX_FILE_BYTES:
        raise UnusableSkillError(f"{path} has {status.st_size:,} bytes; the limit is {MAX_FILE_BYTES:,}")
    if not path.isprintable() or len(path) > MAX_PATH_CHARS:
        raise UnusableSkillError(f"{path!r} is not a usable name of a file")


def contents(place: Path) -> dict[str, Mapping[str, str] | UnusableSkillError]:
    """Return what each skill of a place consists of: the SHA-256 of its files by path, or why it cannot be used."""
    found: dict[str, Mapping[str, str] | UnusableSkillError] = {}
    for name in skill_names(place)[:MAX_SKILLS]:
        try:
            found[name] = files_of(place / name)
        except UnusableSkillError as error:
            found[name] = error
    return found


def digest_of(skills: Mapping[str, Mapping[str, str] | UnusableSkillError]) -> str:
    """Return one SHA-256 of what `contents` returns."""
    total = hashlib.sha256()
    for name, files in sorted(skills.items()):
        parts = (
            [str(files)] if isinstance(files, UnusableSkillError) else [one for pair in files.items() for one in pair]
        )
        for part in (name, *parts):
            total.update(f"{len(part)}:{part}".encode("utf-8", "surrogateescape"))
    return total.hexdigest()


def project_places(folder: Path) -> list[Path]:
    """Return where a project has skills: places that are there, and reached without a link."""
    root = folder.resolve()
    places = [folder / place for place in PROJECT_PLACES]
    return [place for place in places if place.is_dir() and place.resolve() == root / place.relative_to(folder)]


def folder_digest(place: Path) -> str:
    """Return the SHA-256 of all skills in a place, whatever is wrong with them."""
    return digest_of(contents(place))


def is_in_run(place: Path) -> bool:
    """Return whether a folder is, or is in, a run's, where agents write."""
    here = place.resolve()
    return any(journal_path(folder).exists() for folder in (here, *here.parents))
