"""The queue of a fleet: submit runs, list them, cancel, retry, and pause or stop all."""

import json
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, NoReturn

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, EnqueueOptions, WorkflowSerializationFormat
from dbos._serialization import DefaultSerializer

from explorer.fleet.database import META, RUNS, TENANTS, WORKERS, FleetDatabase
from explorer.fleet.database_trouble import translated
from explorer.fleet.submission import check_inputs, check_name, keep_inputs, may_name_run
from explorer.journal.listing import new_run_id
from explorer.run.run import checked_question
from explorer.schema.errors import ConfigError, NotFoundError
from explorer.schema.messages import JsonObject

QUEUE = "explorer-runs"
WORKFLOW = "explore"
WORKFLOW_VERSION = "explorer-1"
"""The same for all releases: a run of an older one is resumed from its journal, which newer ones read."""
WORKFLOW_TABLE, WORKFLOW_SCHEMA = "workflow_status", "dbos"
"""One of the queue's own tables, and its schema in Postgres."""
HANDED_OUT = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
"""The library's own words for what it is done with."""
ENTRIES_AT_ONCE = 1000
NORMAL_PRIORITY = 100
PRIORITIES = (1, 10_000)
"""The lowest number is taken first."""
HOUR_S = 3600.0
PAUSED = "paused"
"""The name of the fact that workers may take no further run."""


class QueueState(StrEnum):
    """Where a run of the queue is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    """It ended by itself; `status` says how."""
    FAILED = "failed"
    """An error ended it; `retry` resumes it."""
    CANCELLED = "cancelled"
    PARKED = "parked"
    """Several workers died with it; it is not tried again by itself."""
    UNDECIDED = "undecided"
    """Its plan waits for a decision (`orders.py`)."""


class Wanted(StrEnum):
    """What a worker is asked to do with a run that it has."""

    NOTHING = ""
    CANCEL = "cancel"
    """Stop it; it is not continued."""
    RETURN = "return"
    """Stop it, and give it back to the queue."""


@dataclass(frozen=True)
class NewRun:
    """A question for the queue."""

    question: str
    settings: JsonObject
    """What was set explicitly for this run, as `Settings.public` gives it."""
    priority: int = NORMAL_PRIORITY
    tenant: str = ""
    idempotency_key: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Files that it is about, by name."""


@dataclass(frozen=True)
class QueuedRun:
    """A run of the queue, as its row says. Times are seconds since 1970 by the database's clock."""

    run_id: str
    tenant: str
    question: str
    settings: JsonObject
    priority: int
    state: QueueState
    wanted: str
    worker: str
    epoch: int
    deaths: int
    submitted_at: float
    started_at: float | None
    ended_at: float | None
    status: str
    reason: str
    cost_usd: float | None


@dataclass(frozen=True)
class WorkerRow:
    """A worker that has not said that it ended."""

    worker: str
    host: str
    process: int
    concurrency: int
    runs: int
    """Runs that it has now."""
    age_s: float
    """Seconds since it started."""
    silent_s: float
    """Seconds since it was last heard of."""
    is_alive: bool


class FleetQueue:
    """The runs of a fleet."""

    def __init__(self, database: FleetDatabase) -> None:
        refuse_pickle()
        self.database = database

    @cached_property
    def _client(self) -> DBOSClient:
        """What hands runs out. Made only where needed: its threads take a second to end."""
        is_new = not self.database.has_table(WORKFLOW_TABLE, WORKFLOW_SCHEMA)
        with translated(self.database.url, self.database.place):
            if is_new:
                DBOS.migrate(self.database.dsn)
            return DBOSClient(system_database_url=self.database.dsn)

    def prepare(self) -> None:
        """Make the queue's own tables, if they are not there. Not inside a transaction: it changes the database."""
        _ = self._client

    def close(self) -> None:
        """Close all connections."""
        if "_client" in self.__dict__:
            self._client.destroy()
        self.database.close()

    def submit(self, submission: NewRun) -> tuple[str, bool]:
        """Put a question into the queue.

        Returns:
            The run's id, and whether it is new: a known idempotency key gives the run that it was first used for.

        Raises:
            ConfigError: Something of it cannot be used, or the key was used for another question.
            StorageError: The database refused; nothing was submitted.
        """
        question = checked_question(submission.question).replace("\0", "\ufffd")
        low, high = PRIORITIES
        if not low <= submission.priority <= high:
            raise ConfigError(
                f"priority {submission.priority} is not allowed", hint=f"give a number from {low} to {high}"
            )
        check_inputs(submission.files)
        for what, name in (("tenant", submission.tenant), ("idempotency key", submission.idempotency_key)):
            check_name(what, name)
        run_id = new_run_id(question, datetime.now(UTC))
        self.prepare()
        with self.database.transaction() as connection:
            connection.execute(self.database.insert_new(TENANTS, tenant=submission.tenant))
            if self._insert(connection, run_id, question, submission):
                keep_inputs(connection, run_id, submission.files)
                self.enqueue(connection, run_id, submission.priority, workflow=run_id)
                return run_id, True
            known = connection.execute(
                sa.select(RUNS.c.run_id, RUNS.c.question).where(
                    RUNS.c.tenant == submission.tenant, RUNS.c.idempotency_key == submission.idempotency_key
                )
            ).one()
        if known.question != question:
            raise ConfigError(
                f"the idempotency key {submission.idempotency_key!r} belongs to another question: run {known.run_id}",
                hint="use another key",
            )
        return known.run_id, False

    def _insert(self, connection: sa.Connection, run_id: str, question: str, submission: NewRun) -> bool:
        """Add the row of a run; return whether its idempotency key is new."""
        statement = self.database.insert_new(
            RUNS,
            run_id=run_id,
            workflow=run_id,
            tenant=submission.tenant,
            idempotency_key=submission.idempotency_key or None,
            question=question,
            settings=json.dumps(submission.settings),
            models=_models_of(submission.settings),
            priority=submission.priority,
            state=QueueState.WAITING,
            submitted_at=self.database.now,
            queued_at=self.database.now,
        )
        return connection.execute(statement.returning(RUNS.c.run_id)).one_or_none() is not None

    def enqueue(self, connection: sa.Connection, run_id: str, priority: int, *, workflow: str = "") -> str:
        """Hand a run to the queue, together with the other changes of a transaction.

        Returns:
            Its id in the queue: the run's own at first, a new one each time it is handed out again.
        """
        workflow = workflow or f"{run_id}:{secrets.token_hex(4)}"
        options: EnqueueOptions = {
            "workflow_name": WORKFLOW,
            "queue_name": QUEUE,
            "workflow_id": workflow,
            "app_version": WORKFLOW_VERSION,
            "priority": priority,
            # Not the default, pickle: who can write to the database must not run code on workers (`refuse_pickle`).
            "serialization_type": WorkflowSerializationFormat.PORTABLE,
        }
        self._client.enqueue_in_transaction(connection, options, run_id)
        return workflow

    def hand_out(self, connection: sa.Connection, run_id: str, priority: int) -> None:
        """Hand a run that was handed out before to the queue again."""
        workflow = self.enqueue(connection, run_id, priority)
        connection.execute(sa.update(RUNS).where(RUNS.c.run_id == run_id).values(workflow=workflow))

    def drop(self, workflows: Sequence[str]) -> None:
        """Take what dead workers were handed out of the queue's list of work in progress."""
        if workflows:
            self._client.cancel_workflows(list(workflows))

    def still_queued(self, workflows: Collection[str]) -> set[str]:
        """Return those that no worker was handed yet."""
        if not workflows:
            return set()
        found = self._client.list_workflows(
            workflow_ids=list(workflows), status=["ENQUEUED", "DELAYED"], load_input=False, load_output=False
        )
        return {one.workflow_id for one in found}

    def forget_ended(self, until: str) -> int:
        """Remove what the queue keeps of runs handed out before a time (ISO 8601); return how many entries."""
        count = 0
        while found := self._client.list_workflows(
            status=HANDED_OUT, end_time=until, limit=ENTRIES_AT_ONCE, load_input=False, load_output=False
        ):
            self._client.delete_workflows([one.workflow_id for one in found])
            count += len(found)
        return count

    @property
    def has_work(self) -> bool:
        """Whether any run waits or is at work."""
        unfinished = sa.select(RUNS.c.run_id).where(RUNS.c.state.in_((QueueState.WAITING, QueueState.RUNNING))).limit(1)
        with self.database.transaction() as connection:
            return connection.scalar(unfinished) is not None

    def runs(self, states: Collection[QueueState] = tuple(QueueState), tenant: str | None = None) -> list[QueuedRun]:
        """Return the runs in these states, first submitted first."""
        chosen = sa.select(RUNS).where(RUNS.c.state.in_(states)).order_by(RUNS.c.submitted_at, RUNS.c.run_id)
        if tenant is not None:
            chosen = chosen.where(RUNS.c.tenant == tenant)
        with self.database.transaction() as connection:
            return [_queued(row) for row in connection.execute(chosen)]

    def ended_lately(self, limit: int) -> list[QueuedRun]:
        """Return the latest runs that are done or cancelled, newest first."""
        is_ended = RUNS.c.state.in_((QueueState.DONE, QueueState.CANCELLED))
        chosen = sa.select(RUNS).where(is_ended).order_by(RUNS.c.ended_at.desc(), RUNS.c.run_id).limit(limit)
        with self.database.transaction() as connection:
            return [_queued(row) for row in connection.execute(chosen)]

    def run(self, name: str, tenant: str | None = None) -> QueuedRun:
        """Return a run by its id, or the beginning of it.

        Raises:
            NotFoundError: There is none, or it is another tenant's.
            ConfigError: Several begin so.
        """
        if not may_name_run(name):
            raise NotFoundError("the queue has no run of such a name", hint="list its runs: explorer queue")
        chosen = sa.select(RUNS).where(RUNS.c.run_id.startswith(name, autoescape=True)).limit(2)
        if tenant is not None:
            chosen = chosen.where(RUNS.c.tenant == tenant)
        with self.database.transaction() as connection:
            found = [_queued(row) for row in connection.execute(chosen)]
        exact = [one for one in found if one.run_id == name]
        if not found:
            raise NotFoundError(f"the queue has no run {name!r}", hint="list its runs: explorer queue")
        if len(found) > 1 and not exact:
            raise ConfigError(f"several runs begin with {name!r}", hint="give more of the id: explorer queue")
        return (exact or found)[0]

    def cancel(self, run_id: str) -> QueueState:
        """Cancel a run: one that waits at once, one at work as soon as its worker hears of it.

        Returns:
            `CANCELLED`, or `RUNNING` where a worker has to stop it first.

        Raises:
            ConfigError: It has ended.
        """
        idle = (QueueState.WAITING, QueueState.FAILED, QueueState.PARKED, QueueState.UNDECIDED)
        with self.database.transaction() as connection:
            now_idle = sa.update(RUNS).where(RUNS.c.run_id == run_id, RUNS.c.state.in_(idle))
            if connection.execute(now_idle.values(state=QueueState.CANCELLED, ended_at=self.database.now)).rowcount:
                # What the queue still has of it is handed to a worker, which finds that it is cancelled.
                return QueueState.CANCELLED
            at_work = sa.update(RUNS).where(RUNS.c.run_id == run_id, RUNS.c.state == QueueState.RUNNING)
            if connection.execute(at_work.values(wanted=Wanted.CANCEL)).rowcount:
                return QueueState.RUNNING
        raise ConfigError(f"run {run_id} has ended", hint=f"see: explorer show {run_id}")

    def retry(self, run_id: str) -> None:
        """Put a run that failed, was cancelled or is parked into the queue again; it continues where it stopped.

        Raises:
            ConfigError: It is in another state.
        """
        again = (QueueState.FAILED, QueueState.CANCELLED, QueueState.PARKED)
        self.prepare()
        with self.database.transaction() as connection:
            if self.put_back(connection, run_id, again):
                return
        state = self.run(run_id).state
        raise ConfigError(
            f"run {run_id} did not fail: it is {state}",
            hint=f"explorer resume {run_id} --plan approve"
            if state is QueueState.UNDECIDED
            else "failed, cancelled and parked runs can be tried again",
        )

    def put_back(self, connection: sa.Connection, run_id: str, states: Collection[QueueState]) -> bool:
        """Let a run wait again, as if nothing had ended it; return whether it was in one of these states."""
        again = sa.update(RUNS).where(RUNS.c.run_id == run_id, RUNS.c.state.in_(states)).returning(RUNS.c.priority)
        values = {"state": QueueState.WAITING, "wanted": Wanted.NOTHING, "deaths": 0, "ended_at": None, "reason": ""}
        row = connection.execute(again.values(**values, queued_at=self.database.now)).one_or_none()
        if row is not None:
            self.hand_out(connection, run_id, row.priority)
        return row is not None

    def pause(self, *, is_paused: bool) -> None:
        """Let workers take no further run, or let them again; runs at work go on."""
        with self.database.transaction() as connection:
            connection.execute(sa.delete(META).where(META.c.name == PAUSED))
            if is_paused:
                connection.execute(sa.insert(META).values(name=PAUSED, value="1"))

    @property
    def is_paused(self) -> bool:
        """Whether workers take no further run."""
        with self.database.transaction() as connection:
            return self.database.fact(connection, PAUSED) is not None

    def stop_all(self) -> int:
        """Stop all runs at work, and take no further one; return how many are stopped.

        What they did is saved, and they are back in the queue.
        """
        self.pause(is_paused=True)
        at_work = sa.update(RUNS).where(RUNS.c.state == QueueState.RUNNING, RUNS.c.wanted == Wanted.NOTHING)
        with self.database.transaction() as connection:
            return connection.execute(at_work.values(wanted=Wanted.RETURN)).rowcount

    def now(self) -> float:
        """Return the time by the database's clock, in seconds since 1970."""
        with self.database.transaction() as connection:
            return self.database.time(connection)

    def throughput(self) -> dict[str, float]:
        """Return how many runs wait and are at work, and how many ended in the last hour, with their cost."""
        ended = sa.and_(RUNS.c.state == QueueState.DONE, RUNS.c.ended_at > self.database.now - HOUR_S)
        chosen = sa.select(
            *(
                sa.func.count().filter(RUNS.c.state == state).label(str(state))
                for state in (QueueState.WAITING, QueueState.RUNNING)
            ),
            sa.func.count().filter(ended).label("ended_last_hour"),
            sa.func.coalesce(sa.func.sum(RUNS.c.cost_usd).filter(ended), 0.0).label("cost_last_hour"),
        )
        with self.database.transaction() as connection:
            return dict(connection.execute(chosen).one()._mapping)  # noqa: SLF001 - its public name

    def workers(self) -> list[WorkerRow]:
        """Return the workers, the longest at work first."""
        now = self.database.now
        mine = (RUNS.c.worker == WORKERS.c.worker) & (RUNS.c.state == QueueState.RUNNING)
        runs = sa.select(sa.func.count()).where(mine).scalar_subquery()
        chosen = sa.select(
            *(WORKERS.c[name] for name in ("worker", "host", "process", "concurrency")),
            runs.label("runs"),
            (now - WORKERS.c.started_at).label("age_s"),
            (now - WORKERS.c.seen_at).label("silent_s"),
            (WORKERS.c.seen_at > now - WORKERS.c.lease_s).label("is_alive"),
        ).order_by(WORKERS.c.started_at)
        with self.database.transaction() as connection:
            return [WorkerRow(**row._mapping) for row in connection.execute(chosen)]  # noqa: SLF001 - its public name


def _models_of(settings: JsonObject) -> str:
    """Return what settings say of models, as text that is equal for runs that use the same ones."""
    chosen = {name: settings[name] for name in ("model", "role_models", "judge") if settings.get(name)}
    return json.dumps(chosen, sort_keys=True)


def _queued(row: sa.Row[Any]) -> QueuedRun:
    values: dict[str, Any] = {one.name: getattr(row, one.name) for one in fields(QueuedRun)}
    values |= {"settings": json.loads(values["settings"]), "state": QueueState(values["state"])}
    return QueuedRun(**values)


def refuse_pickle() -> None:
    """Make the library refuse pickled data in this process.

    Each row of the database says in which form it is written, and the library obeys, whatever form was asked for. What
    explorer writes there is JSON. The library has no setting for it, so its reader is replaced.
    """
    DefaultSerializer.deserialize = _refused


def _refused(cls: DefaultSerializer, serialized_data: str) -> NoReturn:  # noqa: ARG001 - the library's name
    raise ValueError(f"{len(serialized_data)} characters in the queue's database are code, which is not run")
