"""One fleet, one workspace: with the store `local`, a worker that looks into another folder would begin runs again.

The workspace has an id in a file, and the fleet's database remembers whose runs it has. So a second fleet that was
given the same database by mistake is refused, and so is a machine whose shared folder is not there.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path

import sqlalchemy as sa

from explorer.fleet.database import META, RUNS, WORKERS, FleetDatabase
from explorer.schema.errors import ConfigError, StorageError
from explorer.workspace.safe_open import make_private_folder, open_private

ID_FILE = Path(".fleet") / "workspace-id"
WORKSPACE = "workspace"
"""The name of the fact which workspace the fleet's runs are in."""
MAX_ID_CHARS = 64
EMPTY_S = 600.0
"""The time after which another workspace may take the place of one that no run and no worker ever used."""


def agree_on_workspace(database: FleetDatabase, workspace: Path) -> None:
    """Check that a workspace is the one that the fleet's runs are in; that of the first worker is.

    Raises:
        ConfigError: It is another one.
        StorageError: The disk refused.
    """
    own = _id_of(workspace)
    with database.transaction() as connection:
        database.begin_writing(connection)
        now = database.time(connection)
        connection.execute(database.insert_new(META, name=WORKSPACE, value=f"{own} {now}"))
        value = str(connection.scalar(sa.select(META.c.value).where(META.c.name == WORKSPACE).with_for_update()))
        found, _, since = value.partition(" ")
        if found != own and now - float(since) > EMPTY_S and not _is_used(connection):
            connection.execute(sa.update(META).where(META.c.name == WORKSPACE).values(value=f"{own} {now}"))
            found = own
    if found != own:
        raise ConfigError(
            f"the runs of this fleet are in another workspace than {workspace}",
            hint="give all workers the same --workspace, or --store database; or give each fleet a database of its own",
        )


def _is_used(connection: sa.Connection) -> bool:
    """Return whether any run was at work, or any worker is there."""
    begun = sa.select(RUNS.c.run_id).where(RUNS.c.epoch > 0).limit(1)
    return any(connection.scalar(one) is not None for one in (begun, sa.select(WORKERS.c.worker).limit(1)))


def _id_of(workspace: Path) -> str:
    """Return the id of a workspace, which is made where it has none."""
    file = workspace / ID_FILE
    try:
        make_private_folder(file.parent)
        if not file.exists():
            _make(file)
        with file.open("rb") as written:
            return written.read(MAX_ID_CHARS).decode("ascii", "replace")
    except OSError as error:
        raise StorageError(f"the workspace {workspace} cannot be used: {error.strerror or error}") from error


def _make(file: Path) -> None:
    """Make the file with an id; it gets its name last, so that no process reads half of it."""
    beside = file.with_name(f".{secrets.token_hex(8)}")
    try:
        with open_private(beside, "x") as made:
            made.write(secrets.token_hex(16).encode())
        with suppress(FileExistsError):
            os.link(beside, file)
    finally:
        beside.unlink(missing_ok=True)
