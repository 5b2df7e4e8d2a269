"""A worker: takes runs from the queue, works on several at a time, and keeps their leases.

The workflow engine hands runs out in threads of its own; the work itself is done on the worker's one event loop.
"""

import asyncio
import os
import secrets
import socket
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import monotonic

from dbos import DBOS, DBOSConfig, WorkflowSerializationFormat
from loguru import logger

from explorer.fleet.database_trouble import DatabaseAwayError, translated
from explorer.fleet.exploration import Exploration, WorkerPlan, checked_run_id, explore
from explorer.fleet.leases import NO_LONGER_OURS, Ending, Leases, TakenRun
from explorer.fleet.orders import deliver_orders
from explorer.fleet.own_disk import OwnDisk
from explorer.fleet.picking import Ticket, has_waiting
from explorer.fleet.run_limits import WorkerLimits
from explorer.fleet.runs import QUEUE, WORKFLOW, WORKFLOW_VERSION, FleetQueue, QueueState, Wanted
from explorer.fleet.stores import RunStore, Stores
from explorer.journal.listing import is_running
from explorer.llm.clients import RetrySettings
from explorer.run.hooks import StopSignal
from explorer.schema.errors import ExplorerError, PausedError, StorageError
from explorer.text.sanitize import single_line

APPLICATION = "explorer-fleet"
RETRY = "explorer queue retry {run}"
"""Puts a run that failed into the queue again."""
POLL_S = 1.0
"""How often the queue is asked for runs."""
LOOK_EVERY_S = 2.0
"""How often a worker asks what is wanted of its runs; oftener with a short lease."""
LEASES_A_LOOK = 4
STOPPED = "the worker stopped"
CANCELLED = "cancelled in the queue"
AWAY = "the database was away for too long; the run continues where it stopped"


@dataclass
class _AtWork:
    taken: TakenRun
    task: asyncio.Task[Ending]
    stop: StopSignal
    ending: Ending | None = None
    """How it ends when it is stopped from outside."""
    is_lost: bool = False
    """Whether another worker has it now."""
    store: RunStore | None = None
    """Where its journal and files are; None until its folder is made."""

    def cut(self, reason: str, ending: Ending | None) -> None:
        """Stop the work at once; what is on record stays."""
        self.ending = self.ending or ending
        self.is_lost = self.is_lost or ending is None
        self.stop.stop_at_once(reason)
        self.task.cancel()


@dataclass
class Worker:
    """One worker of the fleet. Use `work` once."""

    queue: FleetQueue
    plan: WorkerPlan
    name: str = field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}")
    at_work: dict[str, _AtWork] = field(default_factory=dict[str, _AtWork])
    _ended: asyncio.Event = field(default_factory=asyncio.Event)
    _looked_up_at: float = field(default_factory=monotonic)
    _unknown: dict[str, int] = field(default_factory=dict[str, int])
    """The epochs of runs that were this worker's at the last look, and that it did not know of."""
    _is_away: bool = False
    """Whether the database did not answer at the last look."""

    @cached_property
    def leases(self) -> Leases:
        """What this worker may work on."""
        return Leases(self.queue, self.name, self.plan.lease_s)

    @cached_property
    def stores(self) -> Stores:
        """Where journals and files of its runs are."""
        return Stores(self.leases, self.plan.settings.workspace, self.plan.store, self.plan.objects)

    @cached_property
    def limits(self) -> WorkerLimits:
        """The limits that its runs share with all others of the fleet."""
        return WorkerLimits(self.leases, self.plan.settings)

    @cached_property
    def disk(self) -> OwnDisk:
        """Where its runs are written."""
        return OwnDisk(self.plan.settings.workspace, self.plan.say)

    def end(self) -> None:
        """Take no further run, and give those at work back to the queue."""
        self._ended.set()
        self.stores.stop_waiting()

    async def work(self) -> None:
        """Work until `end` is called, or the queue is empty where that was asked for.

        Raises:
            StorageError: The database does not answer at the start.
        """
        loop = asyncio.get_running_loop()
        await asyncio.to_thread(self.leases.enter, socket.gethostname(), os.getpid(), self.plan.concurrency)
        try:
            async with self.limits.shares.served():
                await asyncio.to_thread(self._launch, loop)
                try:
                    await self._watch()
                finally:
                    await self._give_back()
                    await asyncio.to_thread(DBOS.destroy, workflow_completion_timeout_sec=5)
        finally:
            await asyncio.to_thread(self.stores.close)
            await asyncio.to_thread(self.leases.leave)

    def _launch(self, loop: asyncio.AbstractEventLoop) -> None:
        config: DBOSConfig = {
            "name": APPLICATION,
            "system_database_url": self.queue.database.dsn,
            "application_version": WORKFLOW_VERSION,
            "executor_id": self.name,
            "log_level": "CRITICAL",
            "console_log_level": "CRITICAL",
        }
        DBOS(config=config)

        @DBOS.workflow(name=WORKFLOW, serialization_type=WorkflowSerializationFormat.PORTABLE)
        def explore(run_id: str) -> str:
            ticket = Ticket(run_id, DBOS.workflow_id or "")
            return asyncio.run_coroutine_threadsafe(self._take(ticket), loop).result()

        DBOS.listen_queues([QUEUE])
        with translated(self.queue.database.url, self.queue.database.place):
            DBOS.launch()
            DBOS.register_queue(
                QUEUE,
                worker_concurrency=self.plan.concurrency,
                polling_interval_sec=POLL_S,
                on_conflict="always_update",
            )

    async def _watch(self) -> None:
        """Renew the leases, do what is wanted of the runs, and take over from the dead, until the end."""
        every_s = min(LOOK_EVERY_S, self.plan.lease_s / LEASES_A_LOOK)
        while not self._ended.is_set():
            try:
                await self._look()
                self._note_outage("")
            except StorageError as error:
                # The runs go on as long as the lease is trusted; what they write is checked after that.
                logger.warning("{}", error.message)
                self._note_outage(error.message)
            try:
                await asyncio.wait_for(self._ended.wait(), every_s)
            except TimeoutError:
                continue

    def _note_outage(self, trouble: str) -> None:
        """Say once that the database does not answer, and once that it does again."""
        if trouble and not self._is_away:
            self.plan.say(single_line(f"waiting for the database: {trouble}"))
        elif self._is_away and not trouble:
            self.plan.say("the database answers again")
        self._is_away = bool(trouble)

    async def _look(self) -> None:
        # Those that are taken while the database is asked are not in its answer.
        known = dict(self.at_work)
        ours = await asyncio.to_thread(self.leases.renew)
        await self._give_up_unknown({run_id: epoch for run_id, (epoch, _) in ours.items()})
        for run_id, at_work in known.items():
            epoch, wanted = ours.get(run_id, (None, Wanted.NOTHING))
            if epoch != at_work.taken.epoch:
                at_work.cut(NO_LONGER_OURS, None)
            elif wanted is Wanted.CANCEL:
                at_work.cut(CANCELLED, Ending(QueueState.CANCELLED, reason=CANCELLED))
            elif wanted is Wanted.RETURN:
                at_work.cut(STOPPED, Ending(QueueState.WAITING))
        await asyncio.to_thread(deliver_orders, self.queue.database, self.plan.settings.workspace, list(self.at_work))
        taken = await asyncio.to_thread(self.leases.take_from_dead)
        await asyncio.to_thread(self.queue.drop, taken)
        if monotonic() - self._looked_up_at > self.plan.lease_s:
            self._looked_up_at = monotonic()
            await asyncio.to_thread(self.leases.hand_out_again)
        if self.plan.is_until_empty:
            await self._end_if_empty()

    async def _give_up_unknown(self, ours: dict[str, int]) -> None:
        """Give back runs that the database says are this worker's, and that it does not know of.

        It took them, and no answer came, because the database was about to go away; or it could not say how they ended.
        """
        unknown = {run_id: epoch for run_id, epoch in ours.items() if run_id not in self.at_work}
        for run_id, epoch in unknown.items():
            # One that is being taken or settled in this moment is known, or ended, by the next look.
            if self._unknown.get(run_id) == epoch:
                await asyncio.to_thread(self.leases.settle, TakenRun(run_id, epoch, "", ""), Ending(QueueState.WAITING))
        self._unknown = unknown

    async def _end_if_empty(self) -> None:
        if not await asyncio.to_thread(lambda: self.queue.has_work):
            self.end()
        elif await self.limits.is_stalled():
            self.plan.say("all runs that wait are held back by limits: explorer fleet limit")
            self.end()

    async def _give_back(self) -> None:
        at_work = list(self.at_work.values())
        for one in at_work:
            one.cut(STOPPED, Ending(QueueState.WAITING))
        if at_work:
            await asyncio.wait([one.task for one in at_work])

    async def _take(self, ticket: Ticket) -> str:
        """Work on the run whose turn it is, if one may be taken; return how it ended."""
        while (taken := await self._take_next(ticket)) is None:
            if self._ended.is_set():
                await asyncio.to_thread(self.leases.return_unstarted, ticket.run_id)
                return "returned to the queue"
            await asyncio.sleep(POLL_S)
        if isinstance(taken, str):
            return taken
        run_id, stop = taken.run_id, StopSignal()
        task = asyncio.ensure_future(self._explore(taken, stop))
        if run_id in self.at_work:
            # This worker was silent for too long, and takes the run over from itself.
            self.at_work[run_id].cut(NO_LONGER_OURS, None)
        at_work = self.at_work[run_id] = _AtWork(taken, task, stop)
        self.plan.say(single_line(f"{run_id}: {'taken' if taken.epoch == 1 else 'taken over'}"))
        if self._ended.is_set():
            at_work.cut(STOPPED, Ending(QueueState.WAITING))
        ending = await self._ending(at_work)
        if self.at_work.get(run_id) is at_work:
            del self.at_work[run_id]
        if not at_work.is_lost:
            await self._flush(at_work)
            await self._settle(taken, ending)
        self.limits.shares.drop(run_id, taken.epoch)
        words = NO_LONGER_OURS if at_work.is_lost else f"{ending.state} {ending.status or ending.reason}".strip()
        self.plan.say(single_line(f"{run_id}: {words}"))
        return words

    async def _take_next(self, ticket: Ticket) -> TakenRun | str | None:
        """Take a run; return words when none waits, and None when one is to be taken later."""
        if not await asyncio.to_thread(self.disk.has_space):
            return None
        try:
            taken = await self.limits.take_next(ticket)
            if taken is None and not await asyncio.to_thread(has_waiting, self.leases):
                return "nothing waits"
        except StorageError as error:
            logger.warning("{}", error.message)
            return None
        return taken

    async def _flush(self, at_work: _AtWork) -> None:
        """Store what was written after the last record, such as the report of a run that was cut short."""
        try:
            if at_work.store is not None:
                await asyncio.to_thread(at_work.store.flush)
        except StorageError as error:
            logger.warning("run {}: {}", at_work.taken.run_id, error.message)

    async def _settle(self, taken: TakenRun, ending: Ending) -> None:
        """Record how the work ended, as soon as the database answers."""
        last_spending = await self.limits.release(taken)
        while True:
            try:
                await asyncio.to_thread(self.leases.settle, taken, ending, last_spending)
            except StorageError as error:
                if self._ended.is_set():
                    # The lease ends by itself, and another worker takes the run over.
                    raise
                logger.warning("{}", error.message)
                await asyncio.sleep(POLL_S)
            else:
                return

    async def _ending(self, at_work: _AtWork) -> Ending:
        await asyncio.wait([at_work.task])
        if at_work.ending is not None:
            return at_work.ending
        if at_work.task.cancelled():
            return Ending(QueueState.WAITING)
        error = at_work.task.exception()
        if error is None:
            return at_work.task.result()
        if isinstance(error, PausedError):
            return Ending(QueueState.WAITING, reason=error.message)
        return await self._ending_by(error, at_work)

    async def _ending_by(self, error: BaseException, at_work: _AtWork) -> Ending:
        """Return how a run ends whose session was ended by an error."""
        if isinstance(error, ExplorerError):
            if isinstance(error, DatabaseAwayError) or (at_work.store is not None and at_work.store.is_away):
                return Ending(QueueState.WAITING, reason=AWAY)
            if await asyncio.to_thread(self.disk.is_at_fault, error):
                return Ending(QueueState.WAITING, reason=f"the disk of {self.name} is full: {error.message}")
            hint = f" -> {error.hint}" if error.hint else ""
            return Ending(QueueState.FAILED, reason=f"{error.message}{hint}")
        logger.opt(exception=error).error("run {} ended by something unforeseen", at_work.taken.run_id)
        return Ending(QueueState.FAILED, reason=f"something unforeseen happened: {type(error).__name__}")

    async def _explore(self, taken: TakenRun, stop: StopSignal) -> Ending:
        """Make the folder of a run from its store, and explore."""
        folder = self.plan.settings.workspace / checked_run_id(taken.run_id)
        while await asyncio.to_thread(is_running, folder):  # noqa: ASYNC110 - another process has the lock
            # A worker on this machine that was frozen, or is about to notice that its lease is over.
            await asyncio.sleep(POLL_S)
        store = await asyncio.to_thread(self.stores.open, taken)
        at_work = self.at_work.get(taken.run_id)
        if at_work is not None and at_work.taken is taken:
            at_work.store = store
        limits = await self.limits.begin(taken, folder)
        hooks = replace(self.plan.hooks(), run_id=taken.run_id, stop=stop, store=store, way_on=RETRY)
        hooks = replace(hooks, retry_settings=replace(hooks.retry_settings or RetrySettings(), shared=limits))
        return await explore(Exploration(self.plan, self.queue.database, taken, folder), hooks)
