"""Commands in the background: they outlive the turn that started them, and end with the run."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import Field, ValidationError

from explorer.sandbox.shell import Command, Ended, Shell
from explorer.schema.errors import ToolError
from explorer.schema.messages import Frozen
from explorer.text.rendering import codes, own
from explorer.workspace.safe_open import make_private_folder

MAX_RUNNING = 8
NOTEBOOK = ".explorer/jobs"
OUTPUTS = ".explorer/outputs"
GONE = "it was cut off with the run, before it ended"


Changes = tuple[tuple[str, ...], tuple[str, ...]]
"""Paths of files written, and of files removed."""


class Job(Frozen):
    """A command in the background, as it is noted in the run's folder."""

    id: str = Field(pattern=r"^bash_[0-9]{1,9}$")
    """What the model calls it: `bash_1`."""
    agent: str
    """Id of the agent that started the job."""
    command: str
    output: str
    """The file that holds all it printed."""
    exit_code: int | None = None
    """The exit code; None while the job runs, and when it was cut off."""
    seconds: float = 0.0
    reason: str = ""
    """Why it was ended from outside; empty while it runs, and when it ended by itself."""
    files: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether it has ended, one way or another."""
        return self.exit_code is not None or bool(self.reason)


@dataclass
class _Running:
    command: Command
    task: asyncio.Task[None]


class Jobs:
    """The background jobs of one run. The state of each is on disk, where a later session reads it."""

    def __init__(self, shell: Shell, unrecorded: Callable[[], Changes] = lambda: ((), ())) -> None:
        """Take the shell, and what returns the files written and removed that the journal does not know of."""
        self._shell = shell
        self._unrecorded = unrecorded
        self._folder = shell.place.folder
        self._running: dict[str, _Running] = {}
        self._tasks = asyncio.TaskGroup()
        self._count = 0

    async def __aenter__(self) -> Self:
        """Take over from an earlier session, whose jobs ended with it."""
        await self._tasks.__aenter__()
        for job in self.all():
            self._count = max(self._count, int(job.id.rpartition("_")[2]))
            if not job.is_over:
                files, removed = await asyncio.to_thread(self._unrecorded)
                self._keep(job.model_copy(update={"reason": GONE, "files": files, "removed": removed}))
        return self

    async def __aexit__(self, *_: object) -> None:
        """End all jobs."""
        for running in self._running.values():
            running.command.asked.set()
        # What went wrong in the run is not the jobs' matter: handed on, a task group would wrap it.
        await self._tasks.__aexit__(None, None, None)

    async def start(self, agent: str, command: str) -> Job:
        """Start a job.

        Raises:
            ToolError: It cannot be started, or too many are running.
        """
        if len(self._running) >= MAX_RUNNING:
            names = codes(self._running)
            raise ToolError.of(
                "{max_running} jobs are running already ({names}): wait for one, or end one (kill_shell)",
                max_running=MAX_RUNNING,
                names=names,
            )
        self._count += 1
        name = f"bash_{self._count}"
        job = Job(id=name, agent=agent, command=command, output=f"{OUTPUTS}/{name}.txt")
        path = self._folder / job.output
        make_private_folder(path.parent)
        # Noted before it runs: no later session could say that a job is gone that it does not know.
        self._keep(job)
        try:
            started = await self._shell.start(command, path)
        except ToolError as error:
            self._keep(job.model_copy(update={"reason": error.message}))
            raise
        self._running[name] = _Running(started, self._tasks.create_task(self._follow(job, started), name=name))
        return job

    async def _follow(self, job: Job, command: Command) -> None:
        try:
            await self._shell.follow(command, None)
        finally:
            self._running.pop(job.id, None)
            if command.ended is not None:
                with suppress(OSError):  # a full disk: the job's files are what they are
                    self._keep(_ended(job, command.ended))

    async def wait(self, name: str, timeout_s: float) -> Job:
        """Wait until a job ends, or for some seconds, and return it.

        Raises:
            ToolError: There is no such job.
        """
        job = self.find(name)
        if name in self._running:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await asyncio.shield(self._running[name].task)
            job = self.find(name)
        return job

    async def end(self, name: str) -> Job:
        """End a job, if it has not ended.

        Raises:
            ToolError: There is no such job.
        """
        self.find(name)
        if name in self._running:
            running = self._running[name]
            running.command.asked.set()
            await asyncio.shield(running.task)
        return self.find(name)

    def find(self, name: str) -> Job:
        """Return the job that has an id.

        Raises:
            ToolError: There is none.
        """
        for job in self.all():
            if job.id == name:
                return job
        known = codes(job.id for job in self.all()) or own("none was started")
        raise ToolError.of("there is no job {name}; known: {known}", name=repr(name), known=known)

    def all(self) -> list[Job]:
        """Return every job of the run, in order."""
        return sorted(noted_jobs(self._folder), key=lambda job: int(job.id.rpartition("_")[2]))

    def of(self, agent: str) -> list[Job]:
        """Return one agent's jobs."""
        return [job for job in self.all() if job.agent == agent]

    def _keep(self, job: Job) -> None:
        path = self._folder / NOTEBOOK / f"{job.id}.json"
        make_private_folder(path.parent)
        half = path.with_suffix(".new")
        half.write_text(job.model_dump_json(), encoding="utf-8")
        half.replace(path)


def noted_jobs(folder: Path) -> Iterator[Job]:
    """Yield every background job that is noted in a run's folder, in no order."""
    for path in (folder / NOTEBOOK).glob("bash_*.json"):
        with suppress(OSError, ValidationError):
            yield Job.model_validate_json(path.read_bytes())


def _ended(job: Job, ended: Ended) -> Job:
    reason = ended.reason
    code = None if reason else ended.exit_code
    files = {"files": ended.files, "removed": ended.removed}
    return job.model_copy(update={"exit_code": code, "seconds": ended.seconds, "reason": reason, **files})


def output_path(folder: Path, key: str) -> Path:
    """Return the file for a call's output, and make its folder."""
    path = folder / OUTPUTS / f"{key or 'command'}.txt"
    make_private_folder(path.parent)
    return path
