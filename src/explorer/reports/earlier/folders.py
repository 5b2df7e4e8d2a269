"""The folders of earlier runs: what is in them to be searched, and how it is read.

Read only through each run's folder, so that no link in it leads out, and only as far as time and bytes allow.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import yaml

from explorer.journal.codec import examine
from explorer.schema.errors import ToolError
from explorer.schema.events import RunStarted
from explorer.text.frontmatter import split_frontmatter
from explorer.workspace.deep_folders import walk
from explorer.workspace.workspace import ENGINE_FOLDER, Workspace

SOURCES = f"{ENGINE_FOLDER}/sources"
JOURNAL = f"{ENGINE_FOLDER}/journal.jsonl"
NO_FINDINGS = ("inputs", ENGINE_FOLDER)
"""Folders of a run that hold what others wrote, and the engine's own."""
QUESTION = "question.txt"
TEXT_SUFFIXES = frozenset({".md", ".txt", ".csv", ".json", ".jsonl", ".html", ".yaml", ".yml", ""})
MAX_FIRST_LINE_BYTES = 4 * 1024 * 1024
MAX_FILES_OF_RUN = 2_000
HEAD_BYTES = 4_096
"""Of a stored source: more than its frontmatter has."""
RUN_DAY = re.compile(r"(\d{4})(\d{2})(\d{2})-\d{6}-")


@dataclass(frozen=True)
class PastRun:
    """An earlier run's folder."""

    run_id: str
    question: str
    day: str
    """When it began, `2026-08-10` (UTC)."""
    is_sample: bool
    """Whether it read invented sample data."""
    folder: Path

    @classmethod
    def of(cls, folder: Path) -> Self | None:
        """The run of a folder; None when its journal does not begin as a run's does."""
        try:
            with (folder / JOURNAL).open("rb") as file:
                records = examine(file.readline(MAX_FIRST_LINE_BYTES)).records
        except OSError:
            return None
        if not records or not isinstance(records[0].event, RunStarted):
            return None
        started = records[0].event
        named = RUN_DAY.match(folder.name)
        day = "-".join(named.groups()) if named is not None else f"{records[0].at:%Y-%m-%d}"
        return cls(folder.name, started.question, day, started.settings.get("is_sample") is True, folder)

    def findings(self) -> list[str]:
        """The paths of its report and its findings, the report first."""
        paths = sorted(path for path in self._walk() if path != QUESTION)
        return sorted(paths, key=lambda path: path != "report.md")[:MAX_FILES_OF_RUN]

    def sources(self) -> list[str]:
        """The paths of its stored sources, in the order of their numbers."""
        folder = self.folder / SOURCES
        try:
            if folder.is_symlink() or folder.parent.is_symlink():
                return []
            with os.scandir(folder) as entries:
                names = [entry.name for entry in entries if re.fullmatch(r"S\d{1,9}\.md", entry.name)]
        except OSError:
            return []
        return [f"{SOURCES}/{name}" for name in sorted(names, key=lambda name: int(name[1:-3]))]

    def read(self, path: str) -> str:
        """A file's text.

        Raises:
            ToolError: It is no plain text file of this folder, or too big.
        """
        return Workspace(self.folder).read_text(path)

    def head(self, path: str) -> str:
        """The beginning of a stored source: of all sources of all runs, more would take too long.

        Raises:
            OSError: It cannot be read.
        """
        descriptor = os.open(self.folder / path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(HEAD_BYTES).decode("utf-8", "replace")

    def _walk(self) -> Iterator[str]:
        def is_looked_into(path: str) -> bool:
            return path not in NO_FINDINGS and not path.rpartition("/")[2].startswith(".")

        for entry in walk(self.folder, is_looked_into):
            if not entry.name.startswith(".") and Path(entry.name).suffix.lower() in TEXT_SUFFIXES:
                yield Path(entry.path).relative_to(self.folder).as_posix()


def past_runs(workspace: Path, without: str = "") -> Iterator[PastRun]:
    """The runs of a workspace, newest first, but for one; folders that are none, or damaged, are passed over."""
    try:
        with os.scandir(workspace) as entries:
            names = sorted((entry.name for entry in entries if entry.is_dir(follow_symlinks=False)), reverse=True)
    except OSError:
        return
    for name in names:
        run = PastRun.of(workspace / name) if name != without and not name.startswith(".") else None
        if run is not None:
            yield run


@dataclass(frozen=True)
class PastText:
    """A text that may be found."""

    origin: str
    """A run's id, or `library`."""
    about: str
    """The run's question, or the report's title."""
    day: str
    path: str
    text: str
    is_sample: bool = False
    is_title: bool = False
    """Whether the text is only a stored source's title and address."""


def texts_of(runs: Iterable[PastRun]) -> Iterator[PastText]:
    """All that can be found in runs, run by run: findings as they are, sources by title and address."""
    for run in runs:
        yield from _texts_of(run)


def _texts_of(run: PastRun) -> Iterator[PastText]:
    for path in (*run.findings(), *run.sources()):
        is_title = path.startswith(SOURCES)
        try:
            text = title_and_address(run.head(path)) if is_title else run.read(path)
        except (ToolError, OSError):
            continue  # a binary file, a link, or one that was just removed
        yield PastText(run.run_id, run.question, run.day, path, text, run.is_sample, is_title)


def title_and_address(stored: str) -> str:
    """What a stored source's frontmatter says it is; empty when it says nothing."""
    head = split_frontmatter(stored).head or stored
    return " | ".join(value for value in (_field(head, "title"), _field(head, "url")) if value)


def _field(head: str, name: str) -> str:
    """One field of a frontmatter that the engine wrote: reading all of each would take most of a search's time."""
    found = re.search(rf"^{name}: (.*(?:\n  .*)*)", head, re.MULTILINE)
    if found is None:
        return ""
    try:
        value: object = yaml.safe_load(found[1]) if found[1][:1] in "'\"|>" else " ".join(found[1].split())
    except (yaml.YAMLError, ValueError):
        return ""
    return value if isinstance(value, str) else ""
