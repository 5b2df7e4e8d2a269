"""What the database has of a run: its journal and its files, for a folder that is made again from it."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import sqlalchemy as sa
from pydantic import ValidationError

from explorer.fleet.database import BATCHES, CONTENTS, FleetDatabase
from explorer.fleet.folder_changes import FILE_VERSIONS, NOT_KEPT, FileVersion
from explorer.fleet.run_contents import ObjectStore
from explorer.schema.errors import StorageError
from explorer.workspace.safe_open import FILE_MODE, make_private_folder, open_private

GET_OBJECTS = "it is in the object store, which is not set up here (EXPLORER_FLEET_OBJECTS)"


@dataclass
class RunRecord:
    """A run as the database has it. Only `add` changes it."""

    run_id: str
    lines: bytes = b""
    files: dict[str, FileVersion] = field(default_factory=dict[str, FileVersion])
    """The latest version of each file that is there."""
    digests: set[str] = field(default_factory=set[str])
    """The digests of all contents that its batches name."""
    number: int = 0
    """The number of the latest batch; 0: there is none."""
    last_seq: int = 0

    def add(self, number: int, last_seq: int, lines: bytes, files: str) -> tuple[FileVersion, ...]:
        """Add a batch, and return the versions of files in it.

        Raises:
            StorageError: The batch cannot be understood, or names a file outside the run.
        """
        versions = self._versions(files)
        self.lines += lines
        for one in versions:
            if one.is_removed:
                self.files.pop(one.path, None)
            else:
                self.files[one.path] = one
            self.digests.update(one.pieces or (one.sha256,))
        self.number, self.last_seq = number, last_seq
        return versions

    def _versions(self, files: str) -> tuple[FileVersion, ...]:
        try:
            versions = FILE_VERSIONS.validate_json(files) if files else ()
        except ValidationError as error:
            raise StorageError(f"the database's record of run {self.run_id} is not understood") from error
        for one in versions:
            if not is_inside(one.path):
                raise StorageError(f"the database's record of run {self.run_id} has a file that is not the run's")
        return versions


def is_inside(path: str) -> bool:
    """Return whether a path is that of a file of a run: others may write to the database."""
    parts = path.split("/")
    return path not in NOT_KEPT and "\0" not in path and not {"", ".", ".."} & {*parts}


class RunRecords:
    """Reads what the database has of runs. All methods block."""

    def __init__(self, database: FleetDatabase, objects: ObjectStore | None = None) -> None:
        self._database = database
        self._objects = objects

    def of(self, run_id: str) -> RunRecord:
        """Return all that the database has of a run; an empty record where it has nothing.

        Raises:
            StorageError: The database does not answer, or what it has is not understood.
        """
        record = RunRecord(run_id)
        self.catch_up(record)
        return record

    def catch_up(self, record: RunRecord) -> tuple[FileVersion, ...]:
        """Add what is new; return the versions of files in it."""
        columns = (BATCHES.c.number, BATCHES.c.last_seq, BATCHES.c.lines, BATCHES.c.files)
        newer = (BATCHES.c.run_id == record.run_id, BATCHES.c.number > record.number)
        with self._database.transaction() as connection:
            rows = connection.execute(sa.select(*columns).where(*newer).order_by(BATCHES.c.number)).all()
        lines = bytearray()
        versions: list[FileVersion] = []
        for row in rows:
            lines += row.lines
            versions += record.add(row.number, row.last_seq, b"", row.files)
        record.lines += bytes(lines)
        return tuple(versions)

    def write(self, run_id: str, version: FileVersion, folder: Path, name: str = "") -> None:
        """Write a file as a version says, into a folder in which it is not yet.

        Args:
            run_id: The run's.
            version: What is to be there.
            folder: The run's.
            name: The name of the file, in the place of its own.

        Raises:
            StorageError: Its content is missing or damaged, or the disk refused.
        """
        if version.problem:
            return
        path = folder / version.path
        path = path.with_name(name) if name else path
        try:
            make_private_folder(path.parent)
            with open_private(path, "x") as file:
                digest = self._copy(run_id, version, file)
            path.chmod(version.mode & 0o777 or FILE_MODE)
        except OSError as error:
            reason = error.strerror or error
            raise StorageError(f"{version.path} of run {run_id} cannot be written: {reason}") from error
        if digest != version.sha256:
            raise StorageError(f"{version.path} of run {run_id} is damaged in the fleet's database")

    def _copy(self, run_id: str, version: FileVersion, file: IO[bytes]) -> str:
        found = hashlib.sha256()
        for piece in self._pieces(run_id, version):
            found.update(piece)
            file.write(piece)
        return found.hexdigest()

    def _pieces(self, run_id: str, version: FileVersion) -> Iterator[bytes]:
        for digest in version.pieces or ((version.sha256,) if version.bytes else ()):
            chosen = sa.select(CONTENTS.c.content, CONTENTS.c.place)
            with self._database.transaction() as connection:
                found = connection.execute(
                    chosen.where(CONTENTS.c.run_id == run_id, CONTENTS.c.sha256 == digest)
                ).one_or_none()
            if found is None:
                raise StorageError(f"{version.path} of run {run_id} is missing in the fleet's database")
            if not found.place:
                yield found.content
            elif self._objects is None:
                raise StorageError(f"{version.path} of run {run_id} cannot be read: {GET_OBJECTS}")
            else:
                yield from self._objects.get(found.place)
