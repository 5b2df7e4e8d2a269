"""Which files of a folder are looked at, and the way to their bytes: no link, no device, nothing outside the folder."""

import os
import unicodedata
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from explorer.text.sanitize import visible
from explorer.workspace.safe_open import best_opening, read_below

MAX_FILE_BYTES = 32 * 1024 * 1024
MAX_FILES = 20_000
MAX_CHARS = 400_000_000
"""Of all texts together."""
MAX_ENTRIES = 500_000
"""Of files and folders walked over."""
MAX_DEPTH = 40
EXAMPLES = 3
PACKAGE_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages"})
HIDDEN = "hidden"
PACKAGES = "folders of software packages"
LINK = "links"
SPECIAL = "neither files nor folders"
EMPTY = "empty"
TOO_BIG = "too big"
RUNS = "explorer's own runs and reports"
NO_TEXT = "not text, HTML or PDF"
UNREADABLE = "not readable"
BAD_NAME = "names that are not UTF-8"
TOO_DEEP = "folders in folders too deep"
TOO_MANY = "more than the limit"
EXPECTED = frozenset({HIDDEN, PACKAGES, EMPTY, RUNS})
"""Reasons that nobody needs to know."""


@dataclass(frozen=True)
class FolderLimits:
    """How much of a folder is looked at."""

    files: int = MAX_FILES
    file_bytes: int = MAX_FILE_BYTES
    chars: int = MAX_CHARS
    entries: int = MAX_ENTRIES


@dataclass(frozen=True)
class FoundFile:
    """A file of the folder, as the walk saw it."""

    name: str
    """Relative, as the disk spells it."""
    path: str
    """The same for people and models: composed, without characters that nobody sees."""
    size: int
    mtime_ns: int
    ctime_ns: int


@dataclass
class Skipped:
    """What was left out, by reason: how many, and the first few."""

    counts: dict[str, int] = field(default_factory=dict[str, int])
    examples: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def add(self, reason: str, name: str) -> None:
        """Count one."""
        self.counts[reason] = self.counts.get(reason, 0) + 1
        shown = self.examples.setdefault(reason, [])
        if len(shown) < EXAMPLES:
            shown.append(readable(name))

    @property
    def described(self) -> str:
        """What a reader should know is missing, on one line; empty when nothing is."""
        return "; ".join(
            f"{count} {reason} ({', '.join(self.examples[reason])}{', ...' if count > EXAMPLES else ''})"
            for reason, count in self.counts.items()
            if reason not in EXPECTED
        )


@dataclass
class Listing:
    """What a walk found."""

    files: list[FoundFile] = field(default_factory=list[FoundFile])
    skipped: Skipped = field(default_factory=Skipped)
    entries: int = 0


def readable(name: str) -> str:
    """A file's name on one line, as people and models read and write it."""
    shown = visible(name.encode("utf-8", "replace").decode())
    return " ".join(unicodedata.normalize("NFC", shown).split()) or "?"


def walk(folder: Path, excluded: Collection[Path] = (), bounds: FolderLimits | None = None) -> Listing:
    """The files of a folder that may hold text, nearest to its top first when there are too many; sorted by name."""
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
    """Why an entry is left out; empty when it is not."""
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
    """Names that look the same get a number, so that each can be asked for."""
    seen: dict[str, int] = {}
    for file in files:
        count = seen[file.path] = seen.get(file.path, 0) + 1
        path = file.path if count == 1 else f"{file.path} ({count})"
        yield file if count == 1 else FoundFile(file.name, path, file.size, file.mtime_ns, file.ctime_ns)


def read_bytes(folder: Path, name: str, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """A file's content; a disk that is mounted in the user's folder belongs to it.

    Raises:
        OSError: It is gone, is no plain file any more, may not be read, or grew beyond `max_bytes`.
    """
    return read_below(folder, name, max_bytes, best_opening(enters_mounts=True))
