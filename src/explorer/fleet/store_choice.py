"""Which store a fleet has: its database remembers it, so that all workers agree."""

from enum import StrEnum

import sqlalchemy as sa

from explorer.fleet.database import BATCHES, META, RUNS, FleetDatabase
from explorer.schema.errors import ConfigError
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
