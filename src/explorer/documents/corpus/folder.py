"""The files of a folder, and safe access to their bytes: no links, no devices, nothing outside the folder."""

import os
import unicodedata
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from explorer.text.rendering import own
from explorer.text.sanitize import visible
from explorer.workspace.safe_open import best_opening, read_below

MAX_FILE_BYTES = 32 * 1024 * 1024
MAX_FILES = 20_000
MAX_CHARS = 400_000_000
"""The largest number of characters in all texts together."""
MAX_ENTRIES = 500_000
"""The largest number of files and folders that a walk visits."""
MAX_DEPTH = 40
EXAMPLES = 3
PACKAGE_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages"})
HIDDEN = "hidden"
PACKAGES = "folders of software packages"
LINK = "links"
SPECIAL = "neither files nor folders"
EMPTY = "empty"
TOO_BIG = f"larger than {MAX_FILE_BYTES // 2**20} MB"
RUNS = "explorer's own runs and reports"
READ_FILES = "text, HTML, PDF, Word, PowerPoint, Excel or EPUB"
"""What a file may be."""
NO_TEXT = own("not text, HTML, PDF, Word, PowerPoint, Excel or EPUB")
UNREADABLE = "not readable"
BAD_NAME = "names that are not UTF-8"
TOO_DEEP = "folders in folders too deep"
TOO_MANY = "more than the limit"
EXPECTED = frozenset({HIDDEN, PACKAGES, EMPTY, RUNS})
"""Reasons that are not reported to the user."""


@dataclass(frozen=True)
class FolderLimits:
    """Limits for the part of a folder that is indexed."""

    files: int = MAX_FILES
    file_bytes: int = MAX_FILE_BYTES
    chars: int = MAX_CHARS
    entries: int = MAX_ENTRIES


@dataclass(frozen=True)
class FoundFile:
    """A file of the folder at the time of the walk."""

    name: str
    """The path relative to the folder, spelled as on disk."""
    path: str
    """The relative path for people and models: in Unicode's composed form, without invisible characters."""
    size: int
    mtime_ns: int
    ctime_ns: int


@dataclass
class Skipped:
    """The files and folders left out: their number for each reason, and the first names as examples."""

    counts: dict[str, int] = field(default_factory=dict[str, int])
    examples: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def add(self, reason: str, name: str) -> None:
        """Count a file or a folder, and keep its name if there are few examples."""
        self.counts[reason] = self.counts.get(reason, 0) + 1
        shown = self.examples.setdefault(reason, [])
        if len(shown) < EXAMPLES:
            shown.append(readable(name))

    @property
    def described(self) -> str:
        """The files and folders that the user should know are missing, on one line; empty when there are none."""
        return "; ".join(
            f"{reason}: {', '.join(self.examples[reason])}{f', ... ({count} in all)' if count > EXAMPLES else ''}"
            for reason, count in self.counts.items()
            if reason not in EXPECTED
        )


@dataclass
class Listing:
    """The result of a walk: the files found, what was left out, and the number of entries visited."""

    files: list[FoundFile] = field(default_factory=list[FoundFile])
    skipped: Skipped = field(default_factory=Skipped)
    entries: int = 0


def readable(name: str) -> str:
    """Return a file's name on one line, spelled so that people and models can read and write it."""
    shown = visible(name.encode("utf-8", "replace").decode())
    return " ".join(unicodedata.normalize("NFC", shown).split()) or "?"


def walk(folder: Path, excluded: Collection[Path] = (), bounds: FolderLimits | None = None) -> Listing:
    """Return the files that may have text, sorted by name; with too many, those nearest to the top folder are kept."""
    limits = bounds or FolderLimits()
    listing = Listing()
    waiting = deque([""])
    while waiting and listing.entries < limits.entries:
        inside = waiting.popleft()
        for entry in _entries(folder, inside, listing):
            listing.entries += 1
            name = f"{inside}/{entry.name}" if inside else entry.name
            reason = _refusal(entry, name, excluded)
            if reason:
                listing.skipped.add(reason, name)
            elif entry.is_dir(follow_symlinks=False):
                waiting.append(name)
            else:
                _take(entry, name, listing, limits)
    for name in waiting:
        listing.skipped.add(TOO_MANY, name)
    listing.files.sort(key=lambda file: file.name)
    listing.files[:] = _distinct(listing.files)
    return listing


def _entries(folder: Path, inside: str, listing: Listing) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder / inside) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        listing.skipped.add(UNREADABLE, inside)
        return []


def _refusal(entry: "os.DirEntry[str]", name: str, excluded: Collection[Path]) -> str:
    """Return the reason why an entry is left out; empty when it is included."""
    reasons = {
        BAD_NAME: not _is_utf8(entry.name),
        HIDDEN: entry.name.startswith("."),
        LINK: entry.is_symlink(),
    }
    if any(reasons.values()):
        return next(reason for reason, holds in reasons.items() if holds)
    if entry.is_dir(follow_symlinks=False):
        return _refusal_of_folder(Path(entry.path), name, excluded)
    return "" if entry.is_file(follow_symlinks=False) else SPECIAL


def _refusal_of_folder(path: Path, name: str, excluded: Collection[Path]) -> str:
    if path.name in PACKAGE_FOLDERS:
        return PACKAGES
    if path in excluded or (path / ".explorer").is_dir():
        return RUNS
    return TOO_DEEP if name.count("/") >= MAX_DEPTH else ""


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _take(entry: "os.DirEntry[str]", name: str, listing: Listing, limits: FolderLimits) -> None:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        listing.skipped.add(UNREADABLE, name)
        return
    if not status.st_size:
        listing.skipped.add(EMPTY, name)
    elif status.st_size > limits.file_bytes:
        listing.skipped.add(TOO_BIG, name)
    elif len(listing.files) >= limits.files:
        listing.skipped.add(TOO_MANY, name)
    else:
        found = FoundFile(name, readable(name), status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        listing.files.append(found)


def _distinct(files: list[FoundFile]) -> Iterator[FoundFile]:
    """Yield the files with distinct paths: a path that is already used gets a number at its end."""
    seen: dict[str, int] = {}
    for file in files:
        count = seen[file.path] = seen.get(file.path, 0) + 1
        path = file.path if count == 1 else f"{file.path} ({count})"
        yield file if count == 1 else FoundFile(file.name, path, file.size, file.mtime_ns, file.ctime_ns)


def read_bytes(folder: Path, name: str, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Return the content of a file in the folder; disks mounted inside the folder are part of it.

    Raises:
        OSError: The file is missing, is not a regular file, cannot be read, or is larger than `max_bytes`.
    """
    return read_below(folder, name, max_bytes, best_opening(enters_mounts=True))
