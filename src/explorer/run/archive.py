"""Runs as things to carry and to throw away: pack one into a file, unpack one from a file, remove one.

A file from elsewhere is outside text like any other: nothing in it is trusted with a path or a size, and its settings
are those of a run that was carried here (`run/resumed_settings.py`).
"""

import gzip
import io
import os
import tarfile
import tempfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import IO

from explorer.documents.parsing.archives import ArchiveEntry, ArchiveError, opened_archive
from explorer.documents.parsing.unpack_worker import TOO_MUCH
from explorer.journal.codec import EVENTS, encode_all, examine, scan
from explorer.journal.listing import is_run_id, is_running
from explorer.journal.run_state import RunState
from explorer.schema.errors import ConfigError, StorageError
from explorer.schema.events import AnyEvent, JournalRecord, RunStarted
from explorer.schema.network import secrets_in
from explorer.schema.settings import Settings
from explorer.sources.http.url_allowlist import addresses_in, given_by_user
from explorer.text.sanitize import Redactor
from explorer.workspace.access import ENGINE_FOLDER, journal_path
from explorer.workspace.safe_open import FILE_MODE, make_private_folder, open_private, opened_below, remove_tree, walk

MAX_BYTES = 64 * 1024 * 1024
"""Larger files are packed as they are: agents write none of that size."""


def redactor_of(folder: Path) -> Redactor:
    """Return what finds the logins and keys in the addresses that the user gave a run, wherever it repeats them."""
    try:
        records = examine(journal_path(folder).read_bytes()).records
    except OSError:
        records = ()
    return Redactor(_secrets(record.event for record in records))


def _secrets(events: Iterable[AnyEvent]) -> set[str]:
    found: set[str] = set()
    for event in events:
        for url in addresses_in(given_by_user(event)):
            secrets = secrets_in(url)
            found.update(secrets)
            found.update(one.partition(":")[2] for one in secrets)
    return found - {""}


def redacted(path: str, content: bytes, redactor: Redactor) -> bytes:
    """Return a file's content without what the redactor finds; a journal stays readable, and loses its marks."""
    if not redactor.is_in(content):
        return content
    if path == f"{ENGINE_FOLDER}/journal.jsonl":
        found = examine(content)
        return encode_all(_cleaned(record, redactor) for record in found.records) + _text(found.torn, redactor)
    return _text(content, redactor)


def _cleaned(record: JournalRecord, redactor: Redactor) -> JournalRecord:
    clean = redactor.clean(record.event.model_dump_json())
    return record.model_copy(update={"event": EVENTS.validate_json(clean)})


def _text(content: bytes, redactor: Redactor) -> bytes:
    return redactor.clean(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


LEFT_OUT = ("lock", "holder", "inbox")
"""Files of the engine's folder that belong to a process at work, and not to the run."""
MAX_PATH_CHARS = 500
HEADER_BYTES = 4_096
"""Room a file's headers may take in an archive."""
HOW_TO_PACK = "make such a file with: explorer runs export RUN"


@dataclass(frozen=True)
class ArchiveLimits:
    """Limits on what a file may unpack to."""

    files: int = 20_000
    bytes: int = 512 * 1024**2


BOUNDS = ArchiveLimits()
IMPORTING, REMOVING = ".import-", ".removed-"
"""Beginnings of the names of folders next to the runs that are there while a run comes or goes."""
ABANDONED_AFTER = timedelta(hours=2)
"""Longer than any import or removal takes: what made an older one was killed."""


def files_of(folder: Path) -> list[Path]:
    """Return the regular files of a run's folder that belong to the run, sorted; links and devices are left out."""
    left_out = {f"{ENGINE_FOLDER}/{name}" for name in LEFT_OUT}
    entries = walk(folder, lambda path: path not in left_out)
    found = (Path(entry.path) for entry in entries if entry.is_file(follow_symlinks=False))
    return sorted(path for path in found if path.relative_to(folder).as_posix() not in left_out)


def size_of(folder: Path) -> int:
    """Return the bytes of all files of a run."""
    return sum(path.lstat().st_size for path in files_of(folder))


@dataclass(frozen=True)
class Packed:
    """The result of packing a run."""

    files: int
    left_out: int
    """Files whose paths are too long or unprintable; `unpacked` would refuse the whole file for one of them."""


def pack(folder: Path, target: Path) -> Packed:
    """Write a run into a tar.gz file, whole or not at all; the same run always gives the same bytes.

    What opens something in an address that the user gave the run is left out.

    Raises:
        ConfigError: The run is running.
        StorageError: The disk refused.
    """
    _refuse_running(folder, "packed")
    named = {f"{folder.name}/{path.relative_to(folder).as_posix()}": path for path in files_of(folder)}
    kept = {name: path for name, path in named.items() if _is_plain(name)}
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    redactor = redactor_of(folder)
    try:
        with (
            open_private(beside, "w") as raw,
            gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for path in kept.values():
                _add(archive, path.relative_to(folder).as_posix(), folder, redactor)
        beside.replace(target)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise StorageError(f"{target} could not be written: {error.strerror or error}") from error
    return Packed(len(kept), len(named) - len(kept))


def _is_plain(name: str) -> bool:
    return name.isprintable() and "\\" not in name and len(name) <= MAX_PATH_CHARS


def _add(archive: tarfile.TarFile, path: str, folder: Path, redactor: Redactor) -> None:
    with opened_below(folder, path) as file:
        status = os.fstat(file.fileno())
        content: IO[bytes] = file
        entry = tarfile.TarInfo(f"{folder.name}/{path}")
        entry.size, entry.mtime, entry.mode = status.st_size, int(status.st_mtime), FILE_MODE
        if redactor.longest and status.st_size <= MAX_BYTES:
            clean = redacted(path, file.read(), redactor)
            content, entry.size = io.BytesIO(clean), len(clean)
        archive.addfile(entry, content)


@contextmanager
def unpacked(source: Path, workspace: Path, bounds: ArchiveLimits = BOUNDS) -> Generator[Path]:
    """Unpack a run into a checked folder next to the other runs; what is not moved out of it is removed afterwards.

    Raises:
        ConfigError: The file is no run's, or holds what none does: a link, a device, a path that leads out, too much.
        JournalDamagedError: Its journal is damaged.
        StorageError: The disk refused.
    """
    try:
        make_private_folder(workspace)
        staging = Path(tempfile.mkdtemp(prefix=IMPORTING, dir=workspace))
    except OSError as error:
        raise ConfigError(
            f"cannot write in {workspace}: {error.strerror}", hint="choose another folder: --workspace DIR"
        ) from error
    try:
        folder = _extract(source, staging, bounds)
        _check_journal(folder)
        yield folder
    finally:
        with suppress(OSError):
            remove_tree(staging)


def move_in(folder: Path, workspace: Path) -> Path:
    """Give an unpacked run its place among the others.

    Raises:
        ConfigError: A run of this id is there.
        StorageError: The disk refused.
    """
    target = workspace / folder.name
    if os.path.lexists(target):
        raise ConfigError(f"run {folder.name} is there already", hint="take it in under a new id: --as-new")
    try:
        folder.rename(target)
    except OSError as error:
        raise StorageError(f"cannot write {target}: {error.strerror}") from error
    return target


def remove(folder: Path) -> None:
    """Remove a run; it is out of every list before its first file goes.

    Raises:
        ConfigError: It is running.
        StorageError: The disk refused.
    """
    _refuse_running(folder, "removed")
    try:
        if folder.is_symlink():
            folder.unlink()
            return
        aside = Path(tempfile.mkdtemp(prefix=REMOVING, dir=folder.parent))
        folder.rename(aside / folder.name)
        remove_tree(aside)
    except OSError as error:
        raise StorageError(f"{folder} could not be removed: {error.strerror}") from error


def abandoned(workspace: Path, now: datetime) -> list[Path]:
    """Return the folders that imports and removals left next to the runs when they were killed."""
    before = (now - ABANDONED_AFTER).timestamp()
    found = [one for start in (IMPORTING, REMOVING) for one in workspace.glob(f"{start}*")]
    return sorted(one for one in found if one.is_dir() and not one.is_symlink() and one.lstat().st_mtime < before)


def remove_abandoned(folders: Iterable[Path]) -> int:
    """Remove such folders; return their bytes.

    Raises:
        StorageError: The disk refused.
    """
    freed = 0
    for folder in folders:
        try:
            freed += size_of(folder)
            remove_tree(folder)
        except OSError as error:
            raise StorageError(f"{folder} could not be removed: {error.strerror}") from error
    return freed


def _refuse_running(folder: Path, done: str) -> None:
    if is_running(folder):
        raise ConfigError(
            f"run {folder.name} is running and cannot be {done}", hint=f"stop it first: explorer stop {folder.name}"
        )


def _too_much() -> ConfigError:
    return ConfigError("the file unpacks to more than a run may have", hint=HOW_TO_PACK)


def _no_run(source: Path, why: object) -> ConfigError:
    return ConfigError(f"{source} is not a packed run: {why}", hint=HOW_TO_PACK)


def _extract(source: Path, staging: Path, bounds: ArchiveLimits) -> Path:
    """Unpack into an empty folder of our own; returns the run's folder in it."""
    limit = bounds.bytes + bounds.files * HEADER_BYTES
    try:
        with opened_archive(source, limit) as entries:
            names = _extract_all(entries, staging, bounds)
    except FileNotFoundError as error:
        raise ConfigError(f"there is no file {source}", hint="check the path") from error
    except ArchiveError as error:
        raise _too_much() if str(error) == TOO_MUCH else _no_run(source, error) from error
    except OSError as error:
        raise _no_run(source, error) from error
    if len(names) != 1:
        raise _no_run(source, f"it contains {len(names)} folders")
    return staging / names.pop()


def _extract_all(entries: Iterable[ArchiveEntry], staging: Path, bounds: ArchiveLimits) -> set[str]:
    """Extract the entries, and return the names of the topmost folders."""
    names: set[str] = set()
    left_files, left_bytes = bounds.files, bounds.bytes
    for entry in entries:
        parts = _safe_parts(entry)
        left_files, left_bytes = left_files - 1, left_bytes - entry.size
        if left_files < 0 or left_bytes < 0:
            raise _too_much()
        names.add(parts[0])
        if parts[1] == ENGINE_FOLDER and parts[2:3] and parts[2] in LEFT_OUT:
            continue
        _write(staging.joinpath(*parts), entry)
    return names


def _safe_parts(entry: ArchiveEntry) -> tuple[str, ...]:
    """Return the folders and the name of a plain file; everything else is refused."""
    shown = ascii(entry.name[:80])
    if not entry.is_plain:
        raise ConfigError(f"the file contains {shown}, which is not a plain file", hint=HOW_TO_PACK)
    parts = PurePosixPath(entry.name).parts
    if not _is_plain(entry.name) or entry.name.startswith("/") or ".." in parts or len(parts) < 2:  # noqa: PLR2004 - a run and a file
        raise ConfigError(f"the file contains {shown}, which is not a path inside a run", hint=HOW_TO_PACK)
    if not is_run_id(parts[0]):
        raise ConfigError(f"the file contains {shown}, whose folder is not a run's id", hint=HOW_TO_PACK)
    return parts


def _write(path: Path, content: ArchiveEntry) -> None:
    try:
        make_private_folder(path.parent)
        target = open_private(path, "x")
    except OSError as error:
        # A name twice, or once as a file and once as a folder: no run has that. A full disk is told as one.
        raise StorageError(f"{path.name} could not be unpacked: {error.strerror}") from error
    with target:
        while piece := content.read(1024 * 1024):
            _write_piece(target, piece)


def _write_piece(target: IO[bytes], piece: bytes) -> None:
    try:
        target.write(piece)
    except OSError as error:
        raise StorageError(f"the run could not be unpacked: {error.strerror}", hint="free space on the disk") from error


def _check_journal(folder: Path) -> None:
    """Check that the journal is sound and this run's; its settings count for nothing, unless it is the user's own."""
    path = journal_path(folder)
    if not path.is_file():
        raise ConfigError("the file contains no run: there is no journal in it", hint=HOW_TO_PACK)
    found = scan(path.read_bytes())
    started = found.records[0].event if found.records else None
    run_state = RunState.of_records(found.records)
    if not isinstance(started, RunStarted) or run_state.started is None or run_state.started.run_id != folder.name:
        raise ConfigError(f"the file's journal is not that of run {folder.name}", hint=HOW_TO_PACK)
    Settings.recorded(started.settings)
