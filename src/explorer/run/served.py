"""The runs of a server: tasks of its process, so many at a time, saved and resumable when the process ends.

The MCP server and the web page start, resume and stop runs with it.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, LiteralString

from loguru import logger

from explorer.journal.control import Inbox
from explorer.journal.listing import find_run, free_run_id, is_run, is_run_id, is_running, read_records, run_folders
from explorer.journal.run_state import RunState
from explorer.observe.tracing import Tracing
from explorer.reports.earlier import PastRun, past_runs
from explorer.run.hooks import RunHooks, StopSignal
from explorer.run.run import RunResult, resume, start
from explorer.run.spending import SpendingBook, TotalCost
from explorer.run.waiting_calls import WaitingCalls
from explorer.schema.errors import ExplorerError, ToolError
from explorer.schema.events import ORCHESTRATOR, AnyEvent, JournalRecord
from explorer.schema.limits import DEFAULT_COST_USD, Limits, claimed_limits
from explorer.schema.plan import PlanDecision
from explorer.schema.settings import Settings
from explorer.text.rendering import NOTHING, ModelText, code, codes, inline, own

DEFAULT_MAX_RUNS = 2
AT_WORK_EVENTS = frozenset({"agent_continued", "agent_started", "request_sent", "tool_started", "run_finished"})
"""Types of the events that end the setting up of a session: the run's state shows from then on what it does."""
AT_WORK: LiteralString = "run {id} is at work; steer sends it a message"
SERVER_ENDED = "the server ended"
RELEASE_S = 10.0
"""How long a session may take to release its run, after its end is on record."""
LOOK_EVERY_S = 0.05
SHOWN_CHARS = 120
"""Characters of a client's name in the answer that there is nothing of that name."""
RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")
"""A run's id, or the beginning of one: never a path."""

Work = Callable[[RunHooks], Coroutine[Any, Any, RunResult]]
Acknowledges = Callable[[AnyEvent], bool]


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What a client may ask for in a session of a run. Limits lower those of the server, and never raise them."""

    max_cost_usd: float | None = None
    max_time_s: float | None = None
    max_steps: int | None = None
    waits_with_plan: bool = False
    """Whether a new run proposes a plan and waits for a decision, whatever the settings say."""
    model: str = ""
    """The model of a new run; empty: that of the server."""
    language: str = ""
    """The language of a new run's report; empty: as the server's settings say."""
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Files that a new run's question is about, by name."""
    decision: PlanDecision | None = None
    """What was decided about the plan that a resumed run waits with."""


NO_WISHES = Wishes()


@dataclass(frozen=True)
class ServerPlan:
    """The settings of a server, and what the command line does for its runs."""

    settings: Settings
    hooks: Callable[[], RunHooks]
    """Makes the hooks of each run."""
    settings_to_resume: Callable[[Path], Settings]
    """Return the settings to resume a run with; it raises `ConfigError` where they would free it of its sandbox."""
    max_runs: int = DEFAULT_MAX_RUNS
    """Runs at work at the same time."""
    ended_because: str = SERVER_ENDED
    """Why runs stop when the server ends."""
    approval_wait_s: float = 0.0
    """How long a call that a rule asks about waits for an answer; 0: it is refused at once."""
    tracing: Callable[[], Tracing | None] = lambda: None
    """Makes what sends the spans of one session of a run; None: none are sent."""
    max_total_usd: float | None = None
    """What all runs together may cost that servers of the workspace start in a day; None: there is no such limit."""


@dataclass(frozen=True)
class _RunAtWork:
    task: asyncio.Task[RunResult]
    stop: StopSignal


class ServedRuns:
    """Starts and resumes runs, and owns their tasks."""

    def __init__(self, plan: ServerPlan) -> None:
        self._plan = plan
        self.calls = WaitingCalls(plan.approval_wait_s)
        """The calls that wait for approval."""
        book = SpendingBook(plan.settings.state_dir, plan.settings.workspace, self._cost_of)
        self.total = TotalCost(plan.max_total_usd, book)
        """What of the limit over all runs is spent."""
        self._at_work: dict[str, _RunAtWork] = {}
        self._errors: dict[str, ModelText] = {}
        """The error that ended the latest session of a run in this process."""

    @property
    def workspace(self) -> Path:
        """The folder of all runs."""
        return self._plan.settings.workspace

    @property
    def secrets(self) -> list[str]:
        """Every key that is set."""
        return self._plan.settings.secret_texts()

    def past(self) -> Iterator[PastRun]:
        """Yield the runs of the workspace, newest first; those in folders that no run makes are left out."""
        return (run for run in past_runs(self.workspace) if RUN_NAME.fullmatch(run.run_id))

    def folders(self) -> list[Path]:
        """Return the folders of all runs, newest first, damaged ones too."""
        found = run_folders(self.workspace)
        return [one for one in reversed(found) if RUN_NAME.fullmatch(one.name) and not one.is_symlink()]

    def folder_of(self, name: str) -> Path:
        """Return the folder of a run of the workspace, by its id or the beginning of it.

        Raises:
            ToolError: There is no such run.
        """
        try:
            folder = self._named(name) if RUN_NAME.fullmatch(name) else None
        except ExplorerError as error:
            raise ToolError(in_words(error)) from error
        if folder is None or folder.is_symlink():
            words: LiteralString = "{name} is not the id of a run; exploration_status lists all runs"
            raise ToolError(own(words, name=inline(name, SHOWN_CHARS)))
        return folder

    def _named(self, name: str) -> Path:
        # With thousands of runs it takes long to look at all of them.
        exact = self.workspace / name
        return exact if is_run_id(name) and is_run(exact) else find_run(self.workspace, name)

    def error_of(self, run_id: str) -> ModelText:
        """Return what ended the latest session of a run in this process; empty when no error did."""
        return self._errors.get(run_id, NOTHING)

    async def start(self, question: str, wishes: Wishes = NO_WISHES) -> Path:
        """Start a run; return its folder once its question is on disk.

        Raises:
            ToolError: Too many runs are at work, or the run could not be started.
        """
        settings = self._plan.settings
        update: dict[str, object] = {"limits": lowered(settings.limits, wishes)}
        update |= {"plan": "ask"} if wishes.waits_with_plan else {}
        update |= {name: value for name in ("model", "language") if (value := getattr(wishes, name))}
        settings = settings.model_copy(update=update)
        folder = self.workspace / free_run_id(self.workspace, question, datetime.now(UTC))
        settings = self._within_total(folder, settings, NOTHING_SPENT)
        await self._begin(
            folder,
            lambda hooks: start(question, settings, replace(hooks, run_id=folder.name, files=wishes.files)),
            lambda event: event.type == "run_started",
        )
        return folder

    async def resume(self, folder: Path, message: str, wishes: Wishes = NO_WISHES) -> None:
        """Resume a run, or ask it further; return once the message or the decision about its plan is on disk.

        Raises:
            ToolError: Too many runs are at work, the run is one of them, or it could not be resumed.
        """
        await self._released(folder)
        if await asyncio.to_thread(is_running, folder):
            raise ToolError(own(AT_WORK, id=code(folder.name)))
        # One whose plan waits has no end on record.
        await self.settled(folder)
        try:
            settings = self._plan.settings_to_resume(folder)
            run_state = RunState.of_records(await asyncio.to_thread(read_records, folder))
        except ExplorerError as error:
            raise ToolError(in_words(error)) from error
        started, before = run_state.started, SpentBefore.of(run_state, message)
        recorded = claimed_limits(started.settings.get("limits")) if started is not None else None
        settings = settings.model_copy(update={"limits": lowered(settings.limits, wishes, recorded)})
        settings = self._within_total(folder, settings, before)
        Inbox(folder / ".explorer").drop_stops()
        await self._begin(
            folder,
            lambda hooks: resume(folder, settings, message, replace(hooks, plan_decision=wishes.decision)),
            _takes_message if message or wishes.decision else lambda event: event.type in AT_WORK_EVENTS,
        )

    async def _released(self, folder: Path) -> None:
        """Wait while a session whose end is on record lets go of its run: who has read that may ask at once."""
        with suppress(TimeoutError, ExplorerError):
            async with asyncio.timeout(RELEASE_S):
                while self._is_held(folder) and await asyncio.to_thread(_is_ended, folder):  # noqa: ASYNC110 - another process
                    await asyncio.sleep(LOOK_EVERY_S)

    async def settled(self, folder: Path) -> None:
        """Wait while a session that has let go of its run is not over: `error_of` says only then what ended it."""
        run = self._at_work.get(folder.name)
        if run is not None and not await asyncio.to_thread(is_running, folder):
            await asyncio.wait([run.task], timeout=RELEASE_S)

    def _is_held(self, folder: Path) -> bool:
        """Return whether a session of this process or another one, which sends no signal, still has a run."""
        return self.owns(folder.name) or is_running(folder)

    def _within_total(self, folder: Path, settings: Settings, before: "SpentBefore") -> Settings:
        """Reserve what a session may spend; return the settings with no higher limit.

        Raises:
            ToolError: The session cannot start now, or nothing is left for it.
        """
        self._check_place(folder)
        limit = _explicit(settings.limits, "max_cost_usd")
        wanted = None if limit is None else max(0.0, limit - before.counted_usd)
        allowed = self.total.reserve(folder.name, wanted, before.run_usd)
        if allowed is None:
            return settings
        limits = settings.limits.model_copy(update={"max_cost_usd": before.counted_usd + allowed})
        return settings.model_copy(update={"limits": limits})

    def _check_place(self, folder: Path) -> None:
        if folder.name in self._at_work:
            raise ToolError(own(AT_WORK, id=code(folder.name)))
        if len(self._at_work) >= self._plan.max_runs:
            words = "{count} runs are at work, and no more are allowed: {ids}. Wait for one, or stop one."
            raise ToolError(own(words, count=len(self._at_work), ids=codes(self._at_work)))

    def owns(self, run_id: str) -> bool:
        """Return whether a task of this process works on a run."""
        return run_id in self._at_work

    def stop_now(self, run_id: str, why: str) -> bool:
        """Stop a run of this process at once: all that was recorded is kept, and it can be resumed.

        Returns:
            Whether a task of this process worked on it.
        """
        run = self._at_work.get(run_id)
        if run is not None:
            run.stop.stop_at_once(why)
            run.task.cancel()
        return run is not None

    @property
    def at_work(self) -> tuple[str, ...]:
        """Ids of the runs that tasks of this process work on."""
        return tuple(self._at_work)

    async def ended(self) -> None:
        """Wait until no task of this process works on a run."""
        while self._at_work:
            await asyncio.wait([run.task for run in self._at_work.values()])

    @property
    def plan(self) -> ServerPlan:
        """What the server was started with."""
        return self._plan

    async def _begin(self, folder: Path, work: Work, acknowledges: Acknowledges) -> None:
        """Start the task of a session; wait for the record that acknowledges it, or for its end."""
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def begin() -> None:
            if not begun.done():
                begun.set_result(None)

        tracing = self._plan.tracing()

        def observe(record: JournalRecord) -> None:
            self.calls.note(folder.name, record.event)
            if tracing is not None:
                tracing.observe(record)
            if acknowledges(record.event):
                begin()

        self._errors.pop(folder.name, None)
        stop = StopSignal()
        hooks = self._plan.hooks()
        approve = self.calls.asker(folder.name, begin) or hooks.approve
        hooks = replace(hooks, observe=observe, stop=stop, approve=approve)
        session = work(hooks) if tracing is None else traced(work(replace(hooks, catch_up=tracing.catch_up)), tracing)
        task = asyncio.ensure_future(self._settled(folder, session))
        self._at_work[folder.name] = _RunAtWork(task, stop)
        task.add_done_callback(partial(self._note_end, folder.name))
        await asyncio.wait({task, begun}, return_when=asyncio.FIRST_COMPLETED)
        if error := self.error_of(folder.name):
            raise ToolError(error)

    async def _settled(self, folder: Path, session: Coroutine[Any, Any, RunResult]) -> RunResult:
        """Do the work of a session, and count what it has cost, however it ends."""
        try:
            return await session
        finally:
            if self.total.limit_usd is not None:
                cost_usd = await asyncio.to_thread(self._cost_of, folder.name)
                # Not settled, it counts in full until this process ends; then another one reads the journal.
                with suppress(ToolError):
                    self.total.settle(folder.name, cost_usd)

    def _cost_of(self, run_id: str) -> float | None:
        """Return what a run of the workspace has cost; None where its journal cannot be read."""
        try:
            records = read_records(self.workspace / run_id)
        except ExplorerError:
            return None
        return RunState.of_records(records).known_cost_usd

    def _note_end(self, run_id: str, task: asyncio.Task[RunResult]) -> None:
        self._at_work.pop(run_id, None)
        self.calls.forget(run_id)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, ExplorerError):
            self._errors[run_id] = in_words(error)
        elif error is not None:
            logger.opt(exception=error).error("run {} ended by something unforeseen", run_id)
            self._errors[run_id] = own("something unforeseen happened: {kind}", kind=type(error).__name__)

    async def close(self) -> None:
        """Stop all runs at once: what was recorded is on disk, each gets its partial report, and can be resumed."""
        at_work = list(self._at_work.values())
        for run in at_work:
            run.stop.stop_at_once(self._plan.ended_because)
            run.task.cancel()
        await self.ended()
        self.total.close()


async def traced(session: Coroutine[Any, Any, RunResult], tracing: Tracing) -> RunResult:
    """Do the work of a session, and send its spans meanwhile."""
    async with tracing.open():
        try:
            return await session
        except ExplorerError as error:
            failed = error
    # Outside of what sends: an error that leaves its group would come out wrapped.
    raise failed


@dataclass(frozen=True)
class SpentBefore:
    """What a run has cost before a session."""

    run_usd: float = 0.0
    """All of it."""
    counted_usd: float = 0.0
    """The part that counts for the limit of the session."""

    @classmethod
    def of(cls, run_state: RunState, message: str) -> "SpentBefore":
        """Return what a run has cost; a follow-up to one that has ended has its limits for itself."""
        lead = run_state.lead
        renews = message and lead is not None and lead.finished is not None
        cost = run_state.known_cost_usd
        return cls(cost, 0.0 if renews else max(0.0, cost - run_state.paid_before.cost_usd))


NOTHING_SPENT = SpentBefore()


def _is_ended(folder: Path) -> bool:
    return RunState.of_records(read_records(folder)).finished is not None


def _takes_message(event: AnyEvent) -> bool:
    return event.type == "plan_decided" or (
        event.type in {"agent_continued", "steered"} and event.agent == ORCHESTRATOR
    )


def in_words(error: ExplorerError) -> ModelText:
    """Return an error with its hint for the client's model."""
    if isinstance(error, ToolError):
        return error.words
    hint = own(" -> {hint}", hint=error.hint) if error.hint else NOTHING
    return own("{message}{hint}", message=inline(error.message), hint=hint)


LimitName = Literal["max_cost_usd", "max_time_s", "max_steps", "max_tokens", "max_tool_calls", "max_agents"]
LIMITS: tuple[LimitName, ...] = (
    "max_cost_usd", "max_time_s", "max_steps", "max_tokens", "max_tool_calls", "max_agents",
)  # fmt: skip


def lowered(limits: Limits, wishes: Wishes, recorded: Limits | None = None) -> Limits:
    """Return the limits of a session: what the client asks, else what the run started with, within those of the server.

    A limit that none of them sets stays unset, so that its default is found when the models are known.
    """
    found: dict[str, object] = {name: getattr(limits, name) for name in limits.model_fields_set}
    started = recorded.model_fields_set if recorded is not None else set[str]()
    for name in LIMITS:
        value = getattr(wishes, name, None)
        is_asked = value is not None
        value = getattr(recorded, name) if not is_asked and name in started else value
        if value is not None and value < _bound(limits, name):
            found[name] = value
        elif name in started:
            # What the run started with would hold otherwise, and it may allow more.
            found[name] = _explicit(limits, name)
    return Limits.model_validate(found)


def _bound(limits: Limits, name: LimitName) -> float:
    value = _explicit(limits, name)
    return float("inf") if value is None else value


def _explicit(limits: Limits, name: LimitName) -> float | None:
    is_default_cost = name == "max_cost_usd" and name not in limits.model_fields_set
    return DEFAULT_COST_USD if is_default_cost else getattr(limits, name)
