"""The runs of an MCP server: tasks of its process, so many at a time, saved and resumable when the process ends."""

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, LiteralString

from loguru import logger
from pydantic import Field

from explorer.journal.control import Inbox
from explorer.journal.listing import find_run, free_run_id, is_running, read_records
from explorer.journal.run_state import RunState
from explorer.reports.earlier import PastRun, past_runs
from explorer.run.run import RunHooks, RunResult, StopSignal, resume, start
from explorer.schema.errors import ExplorerError, ToolError
from explorer.schema.events import ORCHESTRATOR, AnyEvent, JournalRecord
from explorer.schema.limits import DEFAULT_COST_USD, Limits, claimed_limits
from explorer.schema.plan import PlanDecision
from explorer.schema.settings import Settings
from explorer.schema.tool import Arguments
from explorer.text.rendering import NOTHING, ModelText, code, codes, inline, own

DEFAULT_MAX_RUNS = 2
AT_WORK_EVENTS = frozenset({"agent_continued", "agent_started", "request_sent", "tool_started", "run_finished"})
"""Types of the events that end the setting up of a session: the run's state shows from then on what it does."""
AT_WORK: LiteralString = "run {id} is at work; steer sends it a message"
SERVER_ENDED = "the MCP server ended"
RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")
"""A run's id, or the beginning of one: never a path."""

Work = Callable[[RunHooks], Coroutine[Any, Any, RunResult]]
Acknowledges = Callable[[AnyEvent], bool]


class LimitArguments(Arguments):
    """The limits that a client may ask for. They lower those of the server's settings, and never raise them."""

    max_cost_usd: float | None = Field(default=None, gt=0, description="US dollars; only lowers the server's limit")
    max_time_s: float | None = Field(default=None, gt=0, description="Seconds; only lowers the server's limit")
    max_steps: int | None = Field(default=None, ge=1, description="Model turns; only lowers the server's limit")


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


@dataclass(frozen=True)
class _RunAtWork:
    task: asyncio.Task[RunResult]
    stop: StopSignal


class ServedRuns:
    """Starts and resumes runs, and owns their tasks."""

    def __init__(self, plan: ServerPlan) -> None:
        self._plan = plan
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

    def folder_of(self, name: str) -> Path:
        """Return the folder of a run of the workspace, by its id or the beginning of it.

        Raises:
            ToolError: There is no such run.
        """
        try:
            folder = find_run(self.workspace, name) if RUN_NAME.fullmatch(name) else None
        except ExplorerError as error:
            raise ToolError(in_words(error)) from error
        if folder is None or folder.is_symlink():
            raise ToolError(own("{name} is not the id of a run; exploration_status lists all runs", name=name))
        return folder

    def error_of(self, run_id: str) -> ModelText:
        """Return what ended the latest session of a run in this process; empty when no error did."""
        return self._errors.get(run_id, NOTHING)

    async def start(self, question: str, asked: LimitArguments, *, waits_with_plan: bool) -> Path:
        """Start a run; return its folder once its question is on disk.

        Args:
            question: The question.
            asked: The limits that the client asks for.
            waits_with_plan: Whether the run proposes a plan and waits for a decision, whatever the settings say.

        Raises:
            ToolError: Too many runs are at work, or the run could not be started.
        """
        settings = self._plan.settings
        update: dict[str, object] = {"limits": lowered(settings.limits, asked)}
        settings = settings.model_copy(update=update | ({"plan": "ask"} if waits_with_plan else {}))
        folder = self.workspace / free_run_id(self.workspace, question, datetime.now(UTC))
        await self._begin(
            folder,
            lambda hooks: start(question, settings, replace(hooks, run_id=folder.name)),
            lambda event: event.type == "run_started",
        )
        return folder

    async def resume(self, folder: Path, message: str, asked: LimitArguments, decision: PlanDecision | None) -> None:
        """Resume a run, or ask it further; return once the message or the decision about its plan is on disk.

        Raises:
            ToolError: Too many runs are at work, the run is one of them, or it could not be resumed.
        """
        if await asyncio.to_thread(is_running, folder):
            raise ToolError(own(AT_WORK, id=code(folder.name)))
        try:
            settings = self._plan.settings_to_resume(folder)
            started = RunState.of(record.event for record in await asyncio.to_thread(read_records, folder)).started
        except ExplorerError as error:
            raise ToolError(in_words(error)) from error
        recorded = claimed_limits(started.settings.get("limits")) if started is not None else None
        settings = settings.model_copy(update={"limits": lowered(settings.limits, asked, recorded)})
        Inbox(folder / ".explorer").drop_stops()
        await self._begin(
            folder,
            lambda hooks: resume(folder, settings, message, replace(hooks, plan_decision=decision)),
            _takes_message if message or decision else lambda event: event.type in AT_WORK_EVENTS,
        )

    async def _begin(self, folder: Path, work: Work, acknowledges: Acknowledges) -> None:
        """Start the task of a session; wait for the record that acknowledges it, or for its end."""
        if folder.name in self._at_work:
            raise ToolError(own(AT_WORK, id=code(folder.name)))
        if len(self._at_work) >= self._plan.max_runs:
            words = "{count} runs are at work, and no more are allowed: {ids}. Wait for one, or stop one."
            raise ToolError(own(words, count=len(self._at_work), ids=codes(self._at_work)))
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def observe(record: JournalRecord) -> None:
            if not begun.done() and acknowledges(record.event):
                begun.set_result(None)

        self._errors.pop(folder.name, None)
        stop = StopSignal()
        task = asyncio.ensure_future(work(replace(self._plan.hooks(), observe=observe, stop=stop)))
        self._at_work[folder.name] = _RunAtWork(task, stop)
        task.add_done_callback(partial(self._note_end, folder.name))
        await asyncio.wait({task, begun}, return_when=asyncio.FIRST_COMPLETED)
        if error := self.error_of(folder.name):
            raise ToolError(error)

    def _note_end(self, run_id: str, task: asyncio.Task[RunResult]) -> None:
        self._at_work.pop(run_id, None)
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
            run.stop.stop_at_once(SERVER_ENDED)
            run.task.cancel()
        if at_work:
            await asyncio.wait([run.task for run in at_work])


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


def lowered(limits: Limits, asked: LimitArguments, recorded: Limits | None = None) -> Limits:
    """Return the limits of a session: what the client asks, else what the run started with, within those of the server.

    A limit that none of them sets stays unset, so that its default is found when the models are known.
    """
    found: dict[str, object] = {name: getattr(limits, name) for name in limits.model_fields_set}
    started = recorded.model_fields_set if recorded is not None else set[str]()
    for name in LIMITS:
        value = getattr(asked, name, None)
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
