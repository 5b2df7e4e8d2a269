"""A run's folder made again from the database: byte for byte what is on record, and nothing else.

The database decides. What a folder on this machine has besides, because a worker died before the database had it, is
moved to a folder of its own and not lost.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from loguru import logger

from explorer.fleet.folder_changes import NOT_KEPT, FileVersion
from explorer.fleet.run_contents import RunContents
from explorer.fleet.run_record import RunRecord, RunRecords
from explorer.journal.listing import is_run_id
from explorer.schema.errors import StorageError
from explorer.workspace.access import ENGINE_FOLDER, JOURNAL, restore_access
from explorer.workspace.safe_open import (
    TEMPORARY,
    make_private_folder,
    open_private,
    remove_tree,
    replace_private,
    walk,
    write_private,
)

OWN_FOLDER = ".fleet"
"""The folder beside the runs that is the fleet's."""
ASIDE = "aside"
INBOX = f"{ENGINE_FOLDER}/inbox"
"""Orders that were left on this machine and not taken yet."""


@dataclass(frozen=True)
class Restorer:
    """Makes folders of runs in one workspace. All methods block."""

    records: RunRecords
    workspace: Path
    keeps_rest: bool = True
    """Whether what the database does not have is kept."""

    def restore(self, record: RunRecord) -> Path | None:
        """Make a run's folder what the database has of it; without a record there is no folder afterwards.

        Returns:
            Where the rest was moved; None when nothing had to be.

        Raises:
            StorageError: The disk or the database refused, or a content is missing.
        """
        folder = self.workspace / record.run_id
        if not is_run_id(record.run_id):
            raise StorageError("the id of a run in the fleet's database is none")
        restore_access(folder)
        same, rest = _compared(folder, record)
        has_journal = _journal(folder) == record.lines
        if has_journal and not rest and same.keys() == _kept(record).keys() and record.number:
            return None
        try:
            aside = self._move_aside(folder, record, rest)
            if record.number:
                self._build(folder, record, same)
            elif os.path.lexists(folder):
                remove_tree(folder)
        except OSError as error:
            raise StorageError(f"{folder} cannot be made again: {error.strerror or error}") from error
        return aside

    def _move_aside(self, folder: Path, record: RunRecord, rest: list[str]) -> Path | None:
        """Keep what differs from the record, and a journal that is not its beginning."""
        is_other = not record.lines.startswith(_journal(folder))
        names = rest + ([JOURNAL] if is_other else [])
        if not names or not self.keeps_rest:
            return None
        aside = self.workspace / OWN_FOLDER / ASIDE / f"{record.run_id}.{secrets.token_hex(4)}"
        for name in names:
            target = aside / name
            make_private_folder(target.parent)
            (folder / name).rename(target)
        logger.warning("{} files of run {} were not on record, and are kept in {}", len(names), record.run_id, aside)
        return aside

    def _build(self, folder: Path, record: RunRecord, same: dict[str, FileVersion]) -> None:
        """Make the folder beside its place; its name comes last, so that no half folder has it."""
        make_private_folder(self.workspace / OWN_FOLDER)
        beside = self.workspace / OWN_FOLDER / f"{record.run_id}.{secrets.token_hex(4)}.new"
        make_private_folder(beside / ENGINE_FOLDER)
        try:
            for path, version in _kept(record).items():
                if path in same:
                    make_private_folder((beside / path).parent)
                    (folder / path).rename(beside / path)
                else:
                    self.records.write(record.run_id, version, beside)
            write_private(beside / JOURNAL, record.lines)
            with suppress(FileNotFoundError):
                (folder / INBOX).rename(beside / INBOX)
            if os.path.lexists(folder):
                remove_tree(folder)
            beside.rename(folder)
        except BaseException:
            with suppress(OSError):
                remove_tree(beside)
            raise


def _kept(record: RunRecord) -> dict[str, FileVersion]:
    return {path: one for path, one in record.files.items() if not one.problem}


def _journal(folder: Path) -> bytes:
    try:
        return (folder / JOURNAL).read_bytes()
    except OSError:
        return b""


def _compared(folder: Path, record: RunRecord) -> tuple[dict[str, FileVersion], list[str]]:
    """Return the files of a folder that are as on record, and the paths of all others."""
    contents = RunContents(folder, record.run_id, lambda _new: None, stored=set(record.digests), max_bytes=2**63)
    same: dict[str, FileVersion] = {}
    rest: list[str] = []
    for path in _paths(folder):
        known = record.files.get(path)
        if known is not None and _is_same(contents.version_of(path), known):
            same[path] = known
        else:
            rest.append(path)
        contents.take_new()
    return same, rest


def _is_same(found: FileVersion, known: FileVersion) -> bool:
    return (found.sha256, found.bytes, found.mode) == (known.sha256, known.bytes, known.mode) and not known.problem


def _paths(folder: Path) -> Iterator[str]:
    """Yield the paths of all that is in a folder and belongs to the run, links included."""
    for entry in list(walk(folder, lambda path: path not in NOT_KEPT)):
        path = Path(entry.path).relative_to(folder).as_posix()
        if path not in NOT_KEPT and not TEMPORARY.fullmatch(entry.name):
            yield path


def bring_up_to_date(
    records: RunRecords, folder: Path, record: RunRecord, versions: tuple[FileVersion, ...] | None
) -> None:
    """Make a copy of a run in its place what the database has of it, while others may read it.

    Files come before the lines that say so. What is in the copy only is removed: nothing of a run is made in a copy.

    Args:
        records: Give the contents of files.
        folder: The copy, which may be behind or ahead.
        record: All that the database has of the run.
        versions: What is new since the copy was brought up to date; None: all of it is compared.

    Raises:
        StorageError: The disk or the database refused, or a content is missing.
    """
    restore_access(folder)
    try:
        if versions is None:
            same, rest = _compared(folder, record)
            for path in rest:
                (folder / path).unlink()
            versions = tuple(one for path, one in _kept(record).items() if path not in same)
        for version in versions:
            _replace(records, folder, record.run_id, version)
        _append(folder / JOURNAL, record.lines)
    except OSError as error:
        raise StorageError(f"{folder} cannot be brought up to date: {error.strerror or error}") from error


def _replace(records: RunRecords, folder: Path, run_id: str, version: FileVersion) -> None:
    target = folder / version.path
    if not version.sha256:
        target.unlink(missing_ok=True)
        return
    beside = f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp"
    records.write(run_id, version, folder, beside)
    target.with_name(beside).replace(target)


def _append(journal: Path, lines: bytes) -> None:
    """Add what a journal lacks; one with other lines is written anew."""
    there = journal.read_bytes() if journal.exists() else b""
    if lines.startswith(there):
        with open_private(journal, "a") as file:
            file.write(lines[len(there) :])
        return
    replace_private(journal, lines)
