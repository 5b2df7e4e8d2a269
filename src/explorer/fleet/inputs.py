"""Files that a question of the fleet is about: they travel with it in the database, whatever the store of runs is.

The run's first session takes them into its folder (`inputs/`), as it does with files of the command line. Nothing that
a submission names is opened on a worker: it brings contents, and no paths.
"""

from collections.abc import Mapping
from pathlib import PurePosixPath

import sqlalchemy as sa

from explorer.documents.corpus.folder import MAX_FILE_BYTES
from explorer.fleet.database import INPUTS, FleetDatabase
from explorer.schema.errors import ConfigError
from explorer.workspace.access import MAX_NAME_BYTES

MAX_FILES = 20
MAX_BYTES = 64 * 1024 * 1024
"""The size of all files of one question together."""


def check_inputs(files: Mapping[str, bytes]) -> None:
    """Check that files can travel with a question.

    Raises:
        ConfigError: They are too many or too large.
    """
    _check({name: len(content) for name, content in files.items()})


def _check(sizes: Mapping[str, int]) -> None:
    hint = "give the parts that matter; or put them into a folder that the workers have: explorer worker --corpus DIR"
    if len(sizes) > MAX_FILES:
        raise ConfigError(f"{len(sizes)} files are given, and {MAX_FILES} are taken", hint=hint)
    if sum(sizes.values()) > MAX_BYTES or any(size > MAX_FILE_BYTES for size in sizes.values()):
        limits = f"{MAX_FILE_BYTES} for one, and {MAX_BYTES} for all together"
        raise ConfigError(f"the files have {sum(sizes.values())} bytes; the limits are {limits}", hint=hint)


def keep_inputs(connection: sa.Connection, run_id: str, files: Mapping[str, bytes]) -> None:
    """Put the files of a new run into the database, together with the other changes of a transaction."""
    if files:
        rows = [{"run_id": run_id, "name": name, "content": content} for name, content in files.items()]
        connection.execute(sa.insert(INPUTS), rows)


def inputs_of(database: FleetDatabase, run_id: str) -> dict[str, bytes]:
    """Return the files of a run that has not begun.

    Raises:
        ConfigError: They cannot be used: others may write to the database.
        StorageError: The database does not answer.
    """
    sizes = sa.select(INPUTS.c.name, sa.func.length(INPUTS.c.content)).where(INPUTS.c.run_id == run_id)
    chosen = sa.select(INPUTS.c.name, INPUTS.c.content).where(INPUTS.c.run_id == run_id).order_by(INPUTS.c.name)
    with database.transaction() as connection:
        found = {str(name): int(size) for name, size in connection.execute(sizes)}
        for name in found:
            _check_name(name)
        _check(found)
        return {str(name): bytes(content) for name, content in connection.execute(chosen)} if found else {}


def _check_name(name: str) -> None:
    is_plain = PurePosixPath(name).name == name and name not in {"", ".", ".."} and "\0" not in name
    if not is_plain or len(name.encode(errors="replace")) > MAX_NAME_BYTES:
        raise ConfigError("a file that was submitted with the question has no usable name")
