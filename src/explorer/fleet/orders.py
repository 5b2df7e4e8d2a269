"""Orders to runs of a fleet, from any machine: left in the database, and brought by the worker to its run's inbox.

An order stays in the database until it is on record in the run's journal, so that a take-over loses none. Its id keeps
it from being obeyed twice.

A decision about a plan is left with the run's return to the queue, and handed to the session that resumes the run. It
names the call that proposed the plan, so that one which is on record already, or was meant for an earlier plan, is not
obeyed again.
"""

import re
import secrets
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

import sqlalchemy as sa
from loguru import logger
from pydantic import ValidationError

from explorer.fleet.database import ORDERS, FleetDatabase
from explorer.fleet.runs import FleetQueue, QueueState
from explorer.journal.control import ControlKind, ControlMessage, Inbox
from explorer.journal.run_state import RunState
from explorer.schema.errors import ConfigError, StorageError
from explorer.schema.events import JournalRecord, Steered, StopAsked
from explorer.schema.messages import Frozen
from explorer.schema.plan import PlanDecision
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


KIND = "plan"
"""The kind of an order that is a decision about a plan."""


class DecidedPlan(Frozen):
    """A decision, and the call that proposed the plan."""

    call: str
    decision: PlanDecision


def waiting_call(run_state: RunState) -> str:
    """Return the call that proposed the plan which waits for a decision; empty when none waits."""
    proposal = run_state.plan.proposal
    return proposal.call if proposal is not None and run_state.plan.is_waiting else ""


def leave_decision(queue: FleetQueue, run_id: str, call: str, decision: PlanDecision) -> None:
    """Leave a decision for the worker that resumes the run, and put the run back into the queue.

    Raises:
        ConfigError: Its plan does not wait: another decision was first, or the run was cancelled.
        StorageError: The database does not answer.
    """
    text = DecidedPlan(call=call, decision=decision).model_dump_json()
    order_id = f"{time.time_ns():020d}-{secrets.token_hex(3)}"
    queue.prepare()
    with queue.database.transaction() as connection:
        if not queue.put_back(connection, run_id, [QueueState.UNDECIDED]):
            raise ConfigError("no plan of this run waits for a decision", hint=f"its state: explorer show {run_id}")
        connection.execute(sa.insert(ORDERS).values(order_id=order_id, run_id=run_id, kind=KIND, text=text))


def decision_for(database: FleetDatabase, run_id: str, run_state: RunState) -> PlanDecision | None:
    """Return what was decided about the plan that a run waits with; None: nothing was.

    Raises:
        StorageError: The database does not answer.
    """
    call = waiting_call(run_state)
    if not call:
        return None
    chosen = sa.select(ORDERS.c.text).where(ORDERS.c.run_id == run_id, ORDERS.c.kind == KIND)
    with database.transaction() as connection:
        texts = connection.scalars(chosen.order_by(ORDERS.c.order_id)).all()
    decided = [one for text in texts if (one := _read(run_id, text)) is not None]
    return next((one.decision for one in decided if one.call == call), None)


def _read(run_id: str, text: str) -> DecidedPlan | None:
    try:
        return DecidedPlan.model_validate_json(text)
    except ValidationError:
        # Others may write to the database.
        logger.warning("run {}: an order about its plan is not understood", run_id)
        return None
