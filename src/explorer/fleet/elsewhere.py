"""Runs of a fleet that are looked at from a machine on which no worker may have them."""

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from explorer.fleet.database import BATCHES, RUNS, FleetDatabase
from explorer.fleet.names import may_name_run
from explorer.fleet.store_choice import StoreKind, store_of
from explorer.schema.errors import ConfigError

MAX_LISTED = 200
"""The number of runs of a list, the newest: each one's journal is read for it."""


@dataclass(frozen=True)
class RunElsewhere:
    """A run of the queue."""

    run_id: str
    state: str
    worker: str
    store: StoreKind


def find_in_fleet(database: FleetDatabase, name: str) -> RunElsewhere | None:
    """Return a run by its id or the beginning of it; None when the fleet has none.

    Raises:
        ConfigError: Several begin so.
        StorageError: The database does not answer.
    """
    if not may_name_run(name):
        return None
    chosen = sa.select(RUNS.c.run_id, RUNS.c.state, RUNS.c.worker).order_by(RUNS.c.run_id).limit(2)
    with database.transaction() as connection:
        found = connection.execute(chosen.where(RUNS.c.run_id.startswith(name, autoescape=True))).all()
    if not found:
        return None
    if len(found) > 1 and found[0].run_id != name:
        raise ConfigError(f"{name!r} fits several runs of the fleet", hint="give more of the id: explorer queue --all")
    return RunElsewhere(found[0].run_id, found[0].state, found[0].worker, store_of(database))


def newest_on_record(database: FleetDatabase, limit: int = MAX_LISTED) -> Sequence[RunElsewhere]:
    """Return the latest runs whose journals are in the database, oldest first.

    Raises:
        StorageError: The database does not answer.
    """
    is_begun = sa.exists().where(BATCHES.c.run_id == RUNS.c.run_id)
    chosen = sa.select(RUNS.c.run_id, RUNS.c.state, RUNS.c.worker).where(is_begun)
    with database.transaction() as connection:
        found = connection.execute(chosen.order_by(RUNS.c.run_id.desc()).limit(limit)).all()
    return [RunElsewhere(row.run_id, row.state, row.worker, StoreKind.DATABASE) for row in reversed(found)]
