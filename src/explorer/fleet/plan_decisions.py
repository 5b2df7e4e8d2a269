"""Decisions about plans, from any machine: left in the database with the run's return to the queue.

The worker that resumes the run hands the decision to it. It names the call that proposed the plan, so that one which
is on record already, or was meant for an earlier plan, is not obeyed again.
"""

import secrets
import time

import sqlalchemy as sa
from loguru import logger
from pydantic import ValidationError

from explorer.fleet.database import ORDERS, FleetDatabase
from explorer.fleet.runs import FleetQueue, QueueState
from explorer.journal.run_state import RunState
from explorer.schema.errors import ConfigError
from explorer.schema.messages import Frozen
from explorer.schema.plan import PlanDecision

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
