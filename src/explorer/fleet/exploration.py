"""The session of a run that a worker has: begun, or resumed with what was decided about its plan."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from explorer.fleet.database import FleetDatabase
from explorer.fleet.leases import Ending, TakenRun
from explorer.fleet.orders import decision_for, waiting_call
from explorer.fleet.run_contents import ObjectStore
from explorer.fleet.runs import QueueState
from explorer.fleet.store_choice import StoreKind
from explorer.fleet.submission import inputs_of, settings_of
from explorer.journal.listing import is_run, is_run_id, read_records
from explorer.journal.run_state import RunState
from explorer.observe.tracing import Tracing
from explorer.run.hooks import RunHooks
from explorer.run.run import RunResult, resume, start
from explorer.run.served import traced
from explorer.schema.errors import ConfigError
from explorer.schema.events import Status
from explorer.schema.plan import PlanDecision
from explorer.schema.settings import Settings
from explorer.workspace.safe_open import remove_tree

PLAN_WAITS = "its plan waits for a decision: explorer resume {run_id} --plan approve"


@dataclass(frozen=True)
class WorkerPlan:
    """The settings of a worker, and what the command line does for its runs."""

    settings: Settings
    hooks: Callable[[], RunHooks]
    """Makes the hooks of each run."""
    settings_to_resume: Callable[[Path], Settings]
    """Return the settings to resume a run with; it raises `ConfigError` where they would free it of its sandbox."""
    concurrency: int = 2
    """Runs at the same time."""
    lease_s: float = 30.0
    """Seconds without a word after which others take the worker's runs."""
    store: StoreKind = StoreKind.LOCAL
    """Where the journals and files of runs are."""
    objects: ObjectStore | None = None
    """Where large files of runs are, with the store in the database."""
    is_until_empty: bool = False
    """Whether it ends when no run waits or is at work anywhere."""
    tracing: Callable[[], Tracing | None] = lambda: None
    """Makes what sends the spans of one session of a run; None: none are sent."""
    say: Callable[[str], None] = lambda _words: None
    """Is told in a line of each run that begins or ends."""


@dataclass(frozen=True)
class Exploration:
    """A run that a worker has taken, and where its folder is."""

    plan: WorkerPlan
    database: FleetDatabase
    taken: TakenRun
    folder: Path


async def explore(work: Exploration, hooks: RunHooks) -> Ending:
    """Start a run, or resume what an earlier worker left of it.

    Raises:
        ExplorerError: It cannot be started, or an error ended it.
    """
    records = await asyncio.to_thread(_records, work.folder)
    if records is None:
        settings = settings_of(work.taken.settings, work.plan.settings)
        files = await asyncio.to_thread(inputs_of, work.database, work.taken.run_id)
        hooks = replace(hooks, files=files)
        return _ending_of(await _with_spans(work, hooks, partial(start, work.taken.question, settings)))
    if records.finished is not None:
        # The worker died between the end of the run and its record in the queue.
        finished = records.finished
        return Ending(QueueState.DONE, finished.status, finished.reason, records.cost_usd)
    decision = await asyncio.to_thread(decision_for, work.database, work.taken.run_id, records)
    return await _resumed(work, replace(hooks, plan_decision=decision), decision)


async def _resumed(work: Exploration, hooks: RunHooks, decision: PlanDecision | None) -> Ending:
    try:
        settings = settings_of(work.taken.settings, work.plan.settings_to_resume(work.folder))
        return _ending_of(await _with_spans(work, hooks, partial(resume, work.folder, settings, "")))
    except ConfigError as error:
        records = None if decision is None else await asyncio.to_thread(_records, work.folder)
        if records is None or not waiting_call(records):
            raise
        # The decision cannot be used, such as an edited plan with an unknown helper: another one may be made.
        return Ending(QueueState.UNDECIDED, Status.WAITING, f"{error.message} -> {error.hint}", records.cost_usd)


async def _with_spans(
    work: Exploration, hooks: RunHooks, session: Callable[[RunHooks], Coroutine[Any, Any, RunResult]]
) -> RunResult:
    """Do the work of a session; where a collector is configured, send its spans meanwhile."""
    tracing = work.plan.tracing()
    if tracing is None:
        return await session(hooks)
    return await traced(session(replace(hooks, observe=tracing.observe, catch_up=tracing.catch_up)), tracing)


def checked_run_id(run_id: str) -> str:
    """Return the id of a run, which becomes the name of a folder.

    Raises:
        ConfigError: It is none: others may write to the database.
    """
    if not is_run_id(run_id):
        raise ConfigError("its id is not that of a run")
    return run_id


def _ending_of(result: RunResult) -> Ending:
    if result.status is Status.WAITING:
        return Ending(QueueState.UNDECIDED, result.status, PLAN_WAITS.format(run_id=result.run_id), result.cost_usd)
    return Ending(QueueState.DONE, result.status, result.reason, result.cost_usd)


def _records(folder: Path) -> RunState | None:
    """Return the state of a run that has begun; of one that has not, nothing is left behind."""
    records = read_records(folder) if is_run(folder) else ()
    if records:
        return RunState.of_records(records)
    if folder.exists():
        remove_tree(folder)
    return None
