"""Which store a fleet has, and for the store `local` which workspace: the database remembers, so that workers agree.

A worker that looks into another folder would begin runs again. So the workspace has an id in a file, and the database
remembers whose runs it has: a second fleet that was given the same database by mistake is refused, and so is a machine
whose shared folder is not there.
"""

import os
import secrets
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

import sqlalchemy as sa

from explorer.fleet.database import BATCHES, META, RUNS, WORKERS, FleetDatabase
from explorer.schema.errors import ConfigError, StorageError
from explorer.workspace.safe_open import make_private_folder, open_private
from explorer.workspace.user_key import UserKey

KEY_PURPOSE = "fleet key"
STORE, KEY = "store", "key"
"""Names of facts about the fleet."""


class StoreKind(StrEnum):
    """Where the journals and files of runs are."""

    LOCAL = "local"
    """In a folder, which all workers share."""
    DATABASE = "database"
    """In the fleet's database; each worker has a folder of its own, made from it."""


def store_of(database: FleetDatabase) -> StoreKind:
    """Return the store that a fleet has.

    Raises:
        ConfigError: It has one that is not known here.
    """
    with database.transaction() as connection:
        return _known(database.fact(connection, STORE) or StoreKind.LOCAL)


def agree_on_store(database: FleetDatabase, wanted: str, key: UserKey) -> StoreKind:
    """Return the store that a worker has to use: the fleet's, or for the first worker the one that it wants.

    Args:
        database: The fleet's.
        wanted: What the worker was told to use; empty: nothing.
        key: The user's, on the worker's machine.

    Raises:
        ConfigError: The fleet has another one, or runs from the other machines would not be this user's own here.
    """
    with database.transaction() as connection:
        is_used = sa.exists().where(RUNS.c.epoch > 0) | sa.exists().where(BATCHES.c.number > 0)
        if wanted:
            # Before the first run is at work, nothing is anywhere yet.
            connection.execute(sa.delete(META).where(META.c.name == STORE, ~is_used))
        connection.execute(database.insert_new(META, name=STORE, value=wanted or StoreKind.LOCAL))
        found = _known(database.fact(connection, STORE) or "")
        if wanted and found != wanted:
            raise ConfigError(
                f"this fleet's runs are in the store {found!s}, and this worker is set to use {wanted}",
                hint=f"set EXPLORER_FLEET_STORE={found!s}, or use another database for another fleet",
            )
        if found is StoreKind.DATABASE:
            _check_key(database, connection, key)
    return found


def _known(name: str) -> StoreKind:
    try:
        return StoreKind(name)
    except ValueError as error:
        message = f"this fleet's runs are in the store {name[:40]!r}, which is not known here"
        raise ConfigError(message, hint="update explorer on this machine: pip install -U 'explorer[fleet]'") from error


def _check_key(database: FleetDatabase, connection: sa.Connection, key: UserKey) -> None:
    """Refuse a machine on which the runs of the others would not be this user's own, and would lose their rights."""
    if not key.is_there:
        raise ConfigError(f"nothing proves that the fleet's runs are yours: there is no key ({key.problem})")
    mark = key.mark(KEY_PURPOSE, b"")
    connection.execute(database.insert_new(META, name=KEY, value=mark))
    if database.fact(connection, KEY) != mark:
        raise ConfigError(
            "this machine has another user key than the fleet: runs of the others would lose their rights here",
            hint="copy the file `key` from the state folder of a machine of the fleet: ~/.local/state/explorer/key",
        )


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
