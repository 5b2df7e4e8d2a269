"""One life of a run, in a process of its own that is forked from a warm one, and the traces it leaves."""

import asyncio
import gc
import hashlib
import json
import os
import shutil
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from pydantic import Field
from scenarios import QUESTION, Scenario
from stand_ins import JOURNALS, Asked, live_with

from explorer.cli.screens.screen import Quiet
from explorer.cli.session import Session
from explorer.journal import journal
from explorer.journal.crash_points import crash_at
from explorer.journal.run_state import RunState
from explorer.run.hooks import RunHooks
from explorer.run.run import RunResult, resume, start
from explorer.schema.events import AgentContinued, AnyEvent, JournalRecord, Status
from explorer.schema.messages import Request, Turn
from explorer.schema.settings import Settings
from explorer.schema.tool import Arguments, Effect, Tool, ToolContext, ToolResult
from explorer.testing import ScriptedClient
from explorer.workspace.access import journal_path

RUN_ID = "20260810-120000-how-was-may-0001"
NOON = datetime(2026, 8, 10, 12, 0, tzinfo=UTC)
MAX_LIFE_S = 30
"""A life that takes longer hangs, and is ended."""
TURNS_OF_THE_LOOP = 6
"""How long the model thinks."""
EXIT_CODES = {Status.COMPLETE: 0, Status.PARTIAL: 3, Status.FAILED: 1}
NOT_WAITED_FOR = "not-waited-for"
T = TypeVar("T")


@dataclass(frozen=True)
class Place:
    """Where one case is run and where its lives leave traces: the run's folder, and beside it what outlives a kill."""

    home: Path
    roles: Path

    @property
    def run(self) -> Path:
        """The run's folder."""
        return self.home / "workspace" / RUN_ID

    def records(self) -> tuple[JournalRecord, ...]:
        """All of the journal, as another process would read it."""
        path = journal_path(self.run)
        return journal.read(path) if path.is_file() else ()

    def note(self, name: str, line: str) -> None:
        """Add a line to a file of traces in one write, which a kill of this process does not undo."""
        descriptor = os.open(self.home / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(descriptor, f"{line}\n".encode())
        finally:
            os.close(descriptor)

    def notes(self, name: str) -> list[str]:
        """All lines of a file of traces."""
        path = self.home / name
        return path.read_text().splitlines() if path.is_file() else []

    def lose_what_was_not_synced(self) -> None:
        """Do to the journal what a power cut does; what nobody waits for, such as a request's record, may be lost."""
        path = journal_path(self.run)
        synced = self.notes("synced")
        if path.is_file():
            os.truncate(path, min(int(synced[-1]) if synced else 0, path.stat().st_size))
        there = {fingerprint(record) for record in self.records()}
        kept = [line for line in self.notes("acknowledged") if line in there or not line.endswith(NOT_WAITED_FOR)]
        (self.home / "acknowledged").write_text("".join(f"{line}\n" for line in kept))


@dataclass(frozen=True)
class Step:
    """What is to be done with a run as its journal stands."""

    stage: int
    """0: the question; 1: the follow-up."""
    begins: bool
    message: str = ""


def next_step(place: Place, scenario: Scenario) -> Step | None:
    """As a user would go on; None when the run has answered everything."""
    events = [record.event for record in place.records()]
    run_state = RunState.of(events)
    if run_state.started is None:
        # Nothing was acknowledged, so there is nothing to resume: the question is asked again.
        shutil.rmtree(place.run, ignore_errors=True)
        return Step(0, begins=True)
    stage = stage_of(events, scenario)
    if run_state.finished is None:
        return Step(stage, begins=False)
    return Step(1, begins=False, message=scenario.message) if scenario.message and stage == 0 else None


def stage_of(events: Sequence[AnyEvent], scenario: Scenario) -> int:
    """Which stage a run has come to: 1 once the follow-up is on disk."""
    return int(any(isinstance(event, AgentContinued) and event.task == scenario.message for event in events))


class PostArguments(Arguments):
    """Of `post_line`."""

    words: str = Field(description="What to post")


class PostTool(Tool[PostArguments]):
    """Does something outside the run that nobody can look up."""

    name = "post_line"
    description = "Post a line."
    arguments = PostArguments
    effect = Effect.EXTERNAL

    def __init__(self, place: Place) -> None:
        self._place = place

    async def execute(self, arguments: PostArguments, context: ToolContext) -> ToolResult:  # noqa: ARG002 - that it is posted is all that counts
        """Post it, and take a moment."""
        self._place.note("posted", context.call)
        await _a_moment()
        return ToolResult(success=True, content="Posted.")


class NotedModel:
    """A scripted model that takes a moment, and whose requests are noted where no kill undoes it."""

    def __init__(self, scenario: Scenario, place: Place) -> None:
        self._model = ScriptedClient(dict(scenario.scripts))
        self._place = place

    async def generate(self, request: Request) -> Turn:
        """Note the request and answer."""
        # Without a task's data, which no model is told: it has the paths of the user's files, which differ here.
        words = json.dumps(
            [message.model_dump(mode="json", exclude={"task"}) for message in request.history], sort_keys=True
        )
        self._place.note("requests", f"{request.agent} {hashlib.sha256(words.encode()).hexdigest()}")
        await _a_moment()
        return await self._model.generate(request)


async def _a_moment() -> None:
    """Let others go first."""
    for _ in range(TURNS_OF_THE_LOOP):
        await asyncio.sleep(0)


def fingerprint(record: JournalRecord) -> str:
    """A record in one line; at its end, whether it is waited for until it is on disk."""
    digest = hashlib.sha256(record.model_dump_json().encode()).hexdigest()
    return f"{record.seq} {digest} {record.event.type} {'waited-for' if record.event.is_barrier else NOT_WAITED_FOR}"


@dataclass(frozen=True)
class Watch:
    """Sees every point of no return: counts them, notes what is synced, ends the process where it is told to."""

    place: Place
    crash: str
    counts: Counter[str]

    def reach(self) -> Callable[[str], None]:
        """What to hand to the journal."""
        end = crash_at(self.crash) if self.crash else None
        size = 0

        def reached(point: str) -> None:
            nonlocal size
            self.counts[point] += 1
            if point == "before_sync":
                size = journal_path(self.place.run).stat().st_size
            elif point == "after_sync":
                self.place.note("synced", str(size))
            if end is not None:
                end(point)

        return reached


def live(place: Place, scenario: Scenario, step: Step, crash: str, stand_in: str) -> int:
    """Live one life in a forked process, to its end or to its crash; the exit code, negative for a signal."""
    return in_child(place, lambda: _live(place, scenario, step, crash, stand_in))


def in_child(place: Place, work: Callable[[], Awaitable[int]]) -> int:
    """Do something in a forked process; its exit code, negative for a signal. What it says goes to a file."""
    child = os.fork()
    if child == 0:
        _be_the_child(place, work)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _be_the_child(place: Place, work: Callable[[], Awaitable[int]]) -> None:
    code = 70
    try:
        output = os.open(place.home / "stderr", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(output, 2)
        signal.alarm(MAX_LIFE_S)
        code = asyncio.run(_awaited(work))
    except BaseException:  # noqa: BLE001 - whatever it is, it must not come out into the parent's code
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


async def _awaited(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


async def _live(place: Place, scenario: Scenario, step: Step, crash: str, stand_in: str) -> int:
    watch = Watch(place, crash, Counter())
    session = Session(Quiet())
    try:
        if stand_in:
            hooks = _extras(RunHooks(), place, scenario, watch)
            asked = Asked(_settings(place, scenario), hooks, step.begins, step.message or QUESTION)
            return EXIT_CODES[await live_with(JOURNALS[stand_in], asked)]

        async def work(hooks: RunHooks) -> RunResult:
            ours = _extras(hooks, place, scenario, watch)
            settings = _settings(place, scenario)
            if step.begins:
                return await start(QUESTION, settings, ours)
            return await resume(place.run, settings, step.message, ours)

        ending = await session.drive(work)
    finally:
        place.note("points", json.dumps(watch.counts))
    if ending.error is not None:
        sys.stderr.write(f"{type(ending.error).__name__}: {ending.error.message}\n")
        return 1
    return ending.interrupted or (EXIT_CODES[ending.result.status] if ending.result is not None else 1)


def _settings(place: Place, scenario: Scenario) -> Settings:
    files = tuple(place.home / name for name in scenario.inputs)
    for path in files:
        path.write_text(scenario.inputs[path.name])
    # On the sample day no life has to load the certificates that the network would need, and without a shell none has
    # to try out the sandbox: most of its time, and what another process on a busy machine could change.
    return Settings(
        workspace=place.home / "workspace",
        roles_dir=place.roles,
        files=files,
        is_sample=True,
        shell="off",
        state_dir=place.home / "state",
    )


def _extras(hooks: RunHooks, place: Place, scenario: Scenario, watch: Watch) -> RunHooks:
    """A clock that stands still, the scripted model, and eyes on everything."""

    def observe(record: JournalRecord) -> None:
        place.note("acknowledged", fingerprint(record))
        if hooks.observe is not None:
            hooks.observe(record)

    return replace(
        hooks,
        tools=[PostTool(place)],
        client=NotedModel(scenario, place),
        observe=observe,
        now=lambda: NOON,
        clock=lambda: 0.0,
        run_id=RUN_ID,
        on_checkpoint=watch.reach(),
    )


def warm_up(place: Place, scenario: Scenario) -> None:
    """Live once in this very process, so that forked ones find everything imported that is imported on the way."""
    place.home.mkdir()
    while (step := next_step(place, scenario)) is not None:
        asyncio.run(_live(place, scenario, step, "", ""))
    shutil.rmtree(place.home)
    # What is there stays: no child then copies memory only to look through it.
    gc.collect()
    gc.freeze()
