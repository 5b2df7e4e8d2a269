"""Orders to runs of a fleet, from any machine: left in the database, and brought by the worker to its run's inbox.

An order stays in the database until it is on record in the run's journal, so that a take-over loses none. Its id keeps
it from being obeyed twice.
"""

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

import sqlalchemy as sa
from loguru import logger

from explorer.fleet.database import ORDERS, FleetDatabase
from explorer.journal.control import ControlKind, ControlMessage, Inbox
from explorer.schema.errors import ConfigError, StorageError
from explorer.schema.events import JournalRecord, Steered, StopAsked
from explorer.workspace.access import ENGINE_FOLDER

ORDER_ID = re.compile(r"[0-9]{20}-[0-9a-f]{6}")


def leave_order(database: FleetDatabase, run_id: str, order: ControlMessage) -> None:
    """Leave an order for the worker that has a run; one that is there already stays as it is.

    Raises:
        StorageError: The database does not answer.
    """
    values = {"order_id": order.id, "run_id": run_id, "kind": str(order.kind), "text": order.text}
    with database.transaction() as connection:
        connection.execute(database.insert_new(ORDERS, **values))


def deliver_orders(database: FleetDatabase, workspace: Path, run_ids: Collection[str]) -> None:
    """Bring the orders to runs into their inboxes.

    Raises:
        StorageError: The database does not answer, or a folder cannot be written.
    """
    if not run_ids:
        return
    chosen = sa.select(ORDERS).where(ORDERS.c.run_id.in_(run_ids)).order_by(ORDERS.c.order_id)
    with database.transaction() as connection:
        found = connection.execute(chosen).all()
    for row in found:
        engine = workspace / row.run_id / ENGINE_FOLDER
        # Others may write to the database, and the id becomes a file's name.
        if engine.is_dir() and row.kind in set(ControlKind) and ORDER_ID.fullmatch(row.order_id):
            with suppress(ConfigError):
                Inbox(engine).put(ControlMessage(row.order_id, ControlKind(row.kind), row.text))


def applied_orders(entries: Sequence[tuple[JournalRecord, bytes]]) -> list[str]:
    """Return the ids of the orders that records put into a journal."""
    events = (record.event for record, _ in entries)
    return [event.order for event in events if isinstance(event, Steered | StopAsked) and event.order]


def forget_orders(database: FleetDatabase, order_ids: Collection[str]) -> None:
    """Remove orders that are on record; where the database does not answer, they are known by their ids."""
    if not order_ids:
        return
    try:
        with database.transaction() as connection:
            connection.execute(sa.delete(ORDERS).where(ORDERS.c.order_id.in_(order_ids)))
    except StorageError as error:
        logger.warning("{}", error.message)
