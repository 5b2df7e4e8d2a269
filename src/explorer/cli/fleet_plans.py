"""Decisions about plans of a fleet's runs: handed to the worker that resumes the run."""

from explorer.cli.commands.fleet import open_queue
from explorer.cli.runs_at_hand import run_at_hand, waits_in_fleet
from explorer.journal.listing import read_records
from explorer.journal.run_state import RunState
from explorer.schema.errors import ConfigError
from explorer.schema.plan import PlanDecision
from explorer.schema.settings import Settings


def decide_in_fleet(settings: Settings, name: str, decision: PlanDecision) -> str:
    """Hand a decision to the fleet; return the run's id, which is empty where no plan of such a run waits.

    Raises:
        ConfigError: Another decision was first.
        StorageError: The fleet's database does not answer.
    """
    run_id = waits_in_fleet(settings, name)
    if not run_id:
        return ""
    from explorer.fleet.plan_decisions import leave_decision, waiting_call  # noqa: PLC0415 - its packages are an extra

    with run_at_hand(settings, run_id) as folder:
        run_state = RunState.of(record.event for record in read_records(folder))
    call = waiting_call(run_state)
    if not call:
        raise ConfigError("no plan of this run waits for a decision", hint=f"its state: explorer show {run_id}")
    with open_queue(settings) as queue:
        leave_decision(queue, run_id, call, decision)
    return run_id
