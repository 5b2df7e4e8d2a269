"""Starting confined commands, watching what they use, and seeing that none outlives its call or the run."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from explorer.sandbox.confinement import Confinement, Launch, SandboxSpec
from explorer.sandbox.control_group import ControlGroup, sweep
from explorer.sandbox.resource_monitor import (
    OtherEntries,
    Stamp,
    bytes_of,
    changed,
    family_of,
    files_of,
    removed_between,
    tasks_of,
    unlinked_bytes,
    use_of,
)
from explorer.schema.errors import ToolError
from explorer.workspace.access import OWN_FILE, restore_access

LOOK_S = 0.1
LOOK_AT_FILES_S = 0.5
GRACE_S = 2.0
REMOVALS = 100
MAX_FILES = 100_000
STOP_LOOKS = 500
STOP_LOOK_S = 0.002
STANDING_STILL = "TtZX"
"""States in which a process starts nothing."""
READ_AND_WRITE = 0o666
OUR_OWN = 5
"""Processes of the sandbox itself, at most."""
TIMED_OUT = "timeout"
TOO_MANY_FILES = "it wrote more than {} files"
TOO_MANY_BYTES = "it wrote more than {} bytes"
TOO_MUCH_MEMORY = "it took more than {} bytes of memory"
STOPPED = "stopped"


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    exit_code: int
    """Exit code of the shell; above 128: 128 and a signal's number."""
    seconds: float
    reason: str
    """Why it was ended from outside; empty when it ended by itself."""
    files: tuple[str, ...]
    """What it wrote in the run's folder, by path."""
    removed: tuple[str, ...] = ()
    """What it removed from there or moved away."""


@dataclass(eq=False)
class Command:
    """A command at work; `Shell` owns it."""

    process: asyncio.subprocess.Process
    launch: Launch
    output: Path
    group: ControlGroup | None
    before: dict[str, Stamp]
    began: float
    others: OtherEntries
    """What was in the folder besides files when it began."""
    ended: Ended | None = None
    reason: str = ""
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it is to end."""


class Shell:
    """Runs the commands of one run; when it is closed, none is left."""

    def __init__(
        self, confinement: Confinement, place: SandboxSpec, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.confinement = confinement
        self.place = place
        self._clock = clock
        self._commands: set[Command] = set()
        self._groups: list[ControlGroup] = []
        """Groups of commands that have ended, while the kernel still needs them."""
        self._parents: set[Path] = set()
        """Where its groups are made."""

    async def run(self, command: str, output: Path, timeout_s: float) -> Ended:
        """Run a command to its end, its output going to a file.

        Raises:
            ToolError: It cannot be started.
        """
        return await self.follow(await self.start(command, output), timeout_s)

    async def start(self, command: str, output: Path) -> Command:
        """Start a command; `follow` takes it to its end.

        Raises:
            ToolError: It cannot be started.
        """
        if threading.current_thread() is not threading.main_thread():
            # The kernel ends a command with the thread that started it: a worker's would take it along.
            raise RuntimeError("commands are started from the main thread")
        if "\0" in command:
            raise ToolError.of("a command cannot contain a NUL character")
        limits = self.place.limits
        bounds = {"pids": limits.processes + OUR_OWN, "memory": limits.memory_bytes}
        try:
            launch = self.confinement.launch(command, self.place)
        except OSError as error:
            raise ToolError.of("the sandbox cannot be made: {error}", error=error) from error
        group = ControlGroup.make(f"explorer-{os.getpid()}-{time.monotonic_ns()}", bounds)
        starting = asyncio.ensure_future(self._begin(launch, output, group))
        try:
            return await asyncio.shield(starting)
        except OSError as error:
            self._groups += [group] if group else []
            raise ToolError.of("the command cannot be started: {error}", error=error) from error
        except asyncio.CancelledError:
            # A sandbox that is ended while it is being made can leave behind what it is about to hold.
            with suppress(OSError):
                await asyncio.shield(self._finish(await asyncio.shield(starting)))
            raise
        finally:
            launch.close()

    async def _begin(self, launch: Launch, output: Path, group: ControlGroup | None) -> Command:
        """Start a command; where its sandbox holds it back, its folder is looked at while the sandbox is made."""
        others = OtherEntries()
        before = {} if launch.gate else await self._files(others)
        joins = group and (group.is_joined_at_once or not launch.gate)
        began = self._clock()
        with output.open("wb") as emptied:
            emptied.flush()
        # For appending: a program that opens its output again does not write over what is there.
        with output.open("ab") as file:
            if launch.is_other_user:  # so that it can; nobody else comes into the engine's folder
                os.fchmod(file.fileno(), READ_AND_WRITE)
            process = await asyncio.create_subprocess_exec(
                *(group.joining(launch.arguments) if group and joins else launch.arguments),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=file,
                stderr=asyncio.subprocess.STDOUT,
                cwd=launch.folder,
                env=dict(launch.environment),
                pass_fds=launch.descriptors,
                start_new_session=True,
            )
        started = Command(process, launch, output, group, before, began, others)
        self._commands.add(started)
        if launch.gate:
            async with asyncio.TaskGroup() as meanwhile:
                looking = meanwhile.create_task(self._files(others))
                counting = meanwhile.create_task(asyncio.to_thread(_tasks_beside, launch))
                if group and not joins:
                    meanwhile.create_task(asyncio.to_thread(group.take, process.pid))
            started.before = looking.result()
            launch.gate.open(counting.result())
        return started

    async def _files(self, others: OtherEntries) -> dict[str, Stamp]:
        return await asyncio.to_thread(files_of, self.place.folder, MAX_FILES, others)

    async def follow(self, command: Command, timeout_s: float | None) -> Ended:
        """Watch a command to its end, and end it when its time is over or it takes too much."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._watch(command)
        except TimeoutError:
            command.reason = TIMED_OUT
        finally:
            await asyncio.shield(self._finish(command))
        assert command.ended is not None
        return command.ended

    async def _watch(self, command: Command) -> None:
        """Return when it ended, was asked to end, or takes too much."""
        since_files = 0.0
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await command.process.wait()
                    return
            if command.asked.is_set():
                command.reason = STOPPED
                return
            since_files += LOOK_S
            with_files = since_files >= LOOK_AT_FILES_S
            since_files = 0.0 if with_files else since_files
            command.reason = await asyncio.to_thread(self._excess, command, with_files=with_files)
            if command.reason:
                return

    def _excess(self, command: Command, *, with_files: bool) -> str:
        """Return what a command takes too much of; empty for nothing."""
        limits = self.place.limits
        restore_access(self.place.folder)
        if command.output.stat().st_size > limits.output_bytes:
            return f"it printed more than {limits.output_bytes} bytes"
        use = use_of(command.process.pid)
        if use.processes > limits.processes + OUR_OWN:
            return f"it started more than {limits.processes} processes"
        if use.memory_bytes > limits.memory_bytes:
            return TOO_MUCH_MEMORY.format(limits.memory_bytes)
        return self._excess_of_files(command) if with_files else ""

    def _excess_of_files(self, command: Command) -> str:
        others = OtherEntries()
        most = len(command.before) + command.others.count + self.place.limits.written_files
        files = files_of(self.place.folder, most + 1, others)
        if others.too_deep:
            return f"folders in {others.too_deep} are nested deeper than a path can name; remove it"
        hidden = unlinked_bytes(command.process.pid, self.place.folder.stat().st_dev)
        return self._too_much(command, files, others, hidden)

    def _too_much(self, command: Command, files: Mapping[str, Stamp], others: OtherEntries, hidden: int = 0) -> str:
        """Return what a command has written too much of; empty for nothing.

        Args:
            command: The command.
            files: All files there are now.
            others: What else there is.
            hidden: Bytes of files without a name.
        """
        limits = self.place.limits
        if len(files) + others.count > len(command.before) + command.others.count + limits.written_files:
            return TOO_MANY_FILES.format(limits.written_files)
        if bytes_of(files) + hidden > bytes_of(command.before) + limits.written_bytes:
            return TOO_MANY_BYTES.format(limits.written_bytes)
        return ""

    async def _finish(self, command: Command) -> None:
        if command.ended is not None:
            return
        code = await self._end(command)
        restore_access(self.place.folder)
        others = OtherEntries()
        after = await self._files(others)
        if command.group and command.group.killed_for_memory():
            command.reason = command.reason or TOO_MUCH_MEMORY.format(self.place.limits.memory_bytes)
        command.reason = command.reason or self._too_much(command, after, others)
        files = tuple(changed(command.before, after))
        removed = removed_between(command.before, after) if len(after) < MAX_FILES else ()
        command.ended = Ended(code, round(self._clock() - command.began, 3), command.reason, files, removed)
        if command.launch.is_other_user:
            with suppress(OSError):
                command.output.chmod(OWN_FILE)
        self._groups += [command.group] if command.group else []
        self._parents |= {folder.parent for folder in command.group.folders} if command.group else set()
        self._groups = [group for group in self._groups if not group.is_removed()]
        self._commands.discard(command)

    async def _end(self, command: Command) -> int:
        """End it if it has not ended; the shell's exit code."""
        process = command.process
        if process.returncode is None:
            if command.launch.ending == signal.SIGKILL:  # the others see to it themselves, and have to be running
                await _kill_below(process.pid)
            with suppress(ProcessLookupError):
                process.send_signal(command.launch.ending)
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE_S):
                    await process.wait()
        # What is left of its group: nothing where there is a sandbox, whatever it was without one.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        code = await process.wait()
        return 128 - code if code < 0 else code

    def end_all(self) -> None:
        """Ask every command to end; each is reported by whoever follows it."""
        for command in self._commands:
            command.asked.set()

    async def aclose(self) -> None:
        """End every command."""
        async with asyncio.TaskGroup() as group:
            for command in list(self._commands):
                command.reason = command.reason or STOPPED
                group.create_task(self._finish(command))
        for _ in range(REMOVALS):
            self._groups = [group for group in self._groups if not group.is_removed()]
            if not self._groups:
                break
            await asyncio.sleep(LOOK_S)
        await asyncio.to_thread(sweep, self._parents)


def _tasks_beside(launch: Launch) -> int:
    return 0 if launch.counted_user is None else tasks_of(launch.counted_user)


async def _kill_below(top: int) -> None:
    """Kill what a process has started, and let it start nothing more.

    bubblewrap ties what it holds to its own life, but only some milliseconds after starting it: killed in between,
    it would leave a command running that nobody knows of. So it is stopped first; stopped, it starts nothing.
    """
    with suppress(ProcessLookupError):
        os.kill(top, signal.SIGSTOP)
    stands_still = False
    for _ in range(STOP_LOOKS):
        family = await asyncio.to_thread(family_of, top)
        for one in family[1:]:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(one.pid, signal.SIGKILL)
        # Looked at once more after it stood still: what it had just started may not have been seen yet.
        if not family or stands_still:
            return
        stands_still = family[0].state in STANDING_STILL
        await asyncio.sleep(STOP_LOOK_S)
