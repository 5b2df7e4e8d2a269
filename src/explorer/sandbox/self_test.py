"""What a sandbox is worth is not believed but tried: attempts to break out, which all have to fail."""

import asyncio
import ctypes
import json
import os
import secrets
import shlex
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from time import perf_counter

from explorer.sandbox import attacks
from explorer.sandbox.attacks import ATTACKS, Aims
from explorer.sandbox.bubblewrap import INSIDE
from explorer.sandbox.confinement import Confinement, SandboxSpec, SandboxTier
from explorer.sandbox.shell import Shell
from explorer.schema.errors import ToolError
from explorer.schema.messages import Frozen
from explorer.text.sanitize import single_line
from explorer.workspace.access import ENGINE_FOLDER

TIMEOUT_S = 20.0
SETTLE_S = 5.0
"""How long the kernel may take to end a namespace's processes; a busy machine takes more than a second."""
MARKER_BYTES = 100
LOOK_S = 0.02
QUEUES = ("shm", "msg", "sem")
REMOVE_QUEUE = 0
NAMES = tuple(attack.__name__ for attack in ATTACKS)


class EscapeAttempt(Frozen):
    """One attempt to break out."""

    name: str
    held: bool
    said: str
    """What was seen when it did not hold."""


class Attestation(Frozen):
    """What a sandbox is worth on this machine."""

    tier: SandboxTier
    attempts: tuple[EscapeAttempt, ...]
    seconds: float
    problem: str = ""
    """Why it could not be tried at all."""

    @property
    def holds(self) -> bool:
        """Whether it stopped every attempt."""
        return not self.problem and bool(self.attempts) and all(attempt.held for attempt in self.attempts)

    @property
    def words(self) -> str:
        """One line about it."""
        if self.problem:
            return f"{self.tier}: {self.problem}"
        broken = [attempt.name for attempt in self.attempts if not attempt.held]
        if broken:
            return f"{self.tier}: {len(broken)} of {len(self.attempts)} attacks succeeded: {', '.join(broken)}"
        return f"{self.tier}: stopped all of {len(self.attempts)} attacks"


async def attest(
    confinement: Confinement, readable: tuple[Path, ...], *, beside: Path | None = None, settle_s: float = SETTLE_S
) -> Attestation:
    """Try to break out of a sandbox, with harmless aims; takes about a tenth of a second.

    Args:
        confinement: The sandbox.
        readable: Folders that commands may read.
        beside: Where the folder of the attackers is made, so that it is on the disk of the runs; None: in /tmp.
        settle_s: How long to wait at most for what has been left behind to end.
    """
    began = perf_counter()
    try:
        return await _attest(confinement, readable, beside, settle_s)
    except OSError as error:
        return _not_tried(confinement.tier, f"it could not be tried ({error.strerror or error})", began)


async def _attest(
    confinement: Confinement, readable: tuple[Path, ...], beside: Path | None, settle_s: float
) -> Attestation:
    began = perf_counter()
    async with AsyncExitStack() as stack:
        top = stack.enter_context(_folder(None))
        folder = stack.enter_context(_folder(beside)) if beside else top
        range_ = await stack.enter_async_context(_shooting_range(top, folder / "run"))
        shell = Shell(confinement, SandboxSpec(range_.folder, readable=readable))
        stack.push_async_callback(shell.aclose)
        output = range_.folder / ENGINE_FOLDER / "output"
        try:
            ended = await shell.run(range_.command(confinement.tier), output, TIMEOUT_S)
        except ToolError as error:
            return _not_tried(confinement.tier, error.message, began)
        answer = output.read_text(encoding="utf-8", errors="replace")
        lines = dict(line.split(" ", 1) for line in answer.splitlines() if line.count(" ") == 1)
        if set(NAMES) - set(lines):
            reason = single_line(answer)[-200:] or f"exit code {ended.exit_code}"
            return _not_tried(confinement.tier, f"it does not run here ({reason})", began)
        await range_.settle(settle_s)
        seen = range_.seen()
        attempts = tuple(_attempt(name, lines[name], seen.get(name, "")) for name in NAMES)
        return Attestation(tier=confinement.tier, attempts=attempts, seconds=round(perf_counter() - began, 3))


@contextmanager
def _folder(above: Path | None) -> Generator[Path]:
    """Make a temporary folder, and yield its real path: /tmp is a link on some systems."""
    with tempfile.TemporaryDirectory(prefix=".explorer-attest-", dir=above) as name:
        yield Path(name).resolve()


def _attempt(name: str, answer: str, seen: str) -> EscapeAttempt:
    """Return how an attempt went; it failed only if the attacker got nothing and nothing was seen outside either."""
    return EscapeAttempt(
        name=name,
        held=answer == "refused" and not seen,
        said=seen or ("" if answer == "refused" else answer),
    )


def _not_tried(tier: SandboxTier, problem: str, began: float) -> Attestation:
    return Attestation(tier=tier, attempts=(), seconds=round(perf_counter() - began, 3), problem=problem)


class _Range:
    """What the attackers are to aim at."""

    def __init__(self, top: Path, folder: Path, victims: tuple[int, int], port: int) -> None:
        self.folder = folder
        self._top = top
        self.canary = secrets.token_hex(16)
        """What must not be seen."""
        self.marker = f"explorer-{secrets.token_hex(8)}"
        self.abstract = f"{self.marker}-abstract"
        """The name of the server without a place."""
        self.path = top / "server"
        """The place of the other one."""
        self.datagrams = top / "datagrams"
        """The place of the one that takes datagrams."""
        self.victim, self.other_victim = victims
        self.queue = secrets.randbits(31) | 1
        self.port = port
        self.servers: dict[str, socket.socket] = {}
        """Listening sockets, by the attack that aims at each."""
        self.takers: dict[str, socket.socket] = {}
        """Sockets for datagrams, by the attack that aims at each."""
        (self.folder / ENGINE_FOLDER).mkdir(parents=True)
        (top / "secret").write_text(self.canary, encoding="utf-8")
        (top / "secret").chmod(0o600)
        self._secret = _metadata(top / "secret")

    def command(self, tier: SandboxTier) -> str:
        """Return the attackers, as a command."""
        inside = INSIDE if tier is SandboxTier.BUBBLEWRAP else str(self.folder)
        aims = Aims(
            secret=str(self._top / "secret"),
            outside=str(self._top / "planted"),
            own=f"{inside}/{ENGINE_FOLDER}/planted",
            port=self.port,
            abstract=self.abstract,
            socket=str(self.path),
            victim=self.victim,
            other_victim=self.other_victim,
            datagrams=str(self.datagrams),
            queue=self.queue,
            canary=self.canary,
            marker=self.marker,
        )
        source = Path(attacks.__file__).read_text(encoding="utf-8")
        return shlex.join([python_program(), "-I", "-c", source, json.dumps(aims)])

    def seen(self) -> dict[str, str]:
        """Return what the attacks left behind, by attack."""
        visited = [name for name, server in self.servers.items() if _was_visited(server, self.marker)]
        found = dict.fromkeys(visited, "a connection came in")
        found |= {name: "a datagram came in" for name, taker in self.takers.items() if _was_sent(taker)}
        if (self._top / "planted").exists():
            found["write_outside"] = "a file was created outside the folder"
        if (self.folder / ENGINE_FOLDER / "planted").exists():
            found["write_journal"] = "a file was made in the engine's folder"
        if _metadata(self._top / "secret") != self._secret:
            found["change_metadata"] = "mode, times, owner or marks of a file outside were changed"
        if any(self._queues()):
            found["leave_queue"] = "a queue is still there"
        for attack, victim in (("send_signal", self.victim), ("send_signal_for_file", self.other_victim)):
            if _state(victim) in {"T", "t", "Z", ""}:
                found[attack] = "a process outside the sandbox was stopped"
        if self._left_behind():
            found["stay_behind"] = "a process is still running"
        return found

    async def settle(self, seconds: float) -> None:
        """Give the kernel a moment: it ends the processes of a namespace after the one that led it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._left_behind():  # noqa: ASYNC110 - nobody tells us when they are gone
                    await asyncio.sleep(LOOK_S)

    def clear(self) -> None:
        """End what an attack left behind."""
        libc = ctypes.CDLL(None)
        for kind, number in zip(QUEUES, self._queues(), strict=True):
            if number is not None:
                # semctl has a number before the order.
                getattr(libc, f"{kind}ctl")(number, *([0] if kind == "sem" else []), REMOVE_QUEUE, None)
        for pid in self._left_behind():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)

    def _queues(self) -> list[int | None]:
        """Return the number of each kind of queue that an attack left behind; None: there is none of this kind."""
        found: list[int | None] = []
        for kind in QUEUES:
            with suppress(OSError):
                lines = Path(f"/proc/sysvipc/{kind}").read_text(encoding="utf-8").splitlines()[1:]
                numbers = [int(line.split()[1]) for line in lines if int(line.split()[0]) == self.queue]
                found.append(numbers[0] if numbers else None)
                continue
            found.append(None)
        return found

    def _left_behind(self) -> list[int]:
        """Return the processes that an attack left behind: their last argument is the marker."""
        found: list[int] = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (entry / "cmdline").read_bytes().rstrip(b"\0").endswith(b"\0" + self.marker.encode()):
                    found.append(int(entry.name))
        return found


@asynccontextmanager
async def _shooting_range(top: Path, folder: Path) -> AsyncGenerator[_Range]:
    """Provide what attackers aim at: secret files, servers that note who comes, a process with a secret."""
    async with AsyncExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        victims: list[int] = []
        for _ in range(2):
            victim = await asyncio.create_subprocess_exec("/bin/sleep", "60", env={}, start_new_session=True)
            stack.push_async_callback(_end, victim)
            victims.append(victim.pid)
        made = _Range(top, folder, (victims[0], victims[1]), listener.getsockname()[1])
        stack.callback(made.clear)
        holder = await asyncio.create_subprocess_exec("/bin/sleep", "60", env={"KEY": made.canary})
        stack.push_async_callback(_end, holder)
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(f"\0{made.abstract}")
        abstract.listen()
        path = stack.enter_context(socket.socket(socket.AF_UNIX))
        path.bind(str(made.path))
        path.listen()
        datagrams = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        datagrams.bind(str(made.datagrams))
        made.takers.update(send_datagram=datagrams)
        made.servers.update(connect=listener, connect_abstract=abstract, connect_path=path)
        yield made


def _was_visited(server: socket.socket, marker: str) -> bool:
    """Return whether an attacker connected: the kernel took it in, and what it sent before it ended has arrived.

    Only its marker counts: on a busy machine another program may call this port because it had another owner before.
    """
    server.settimeout(0)
    found = False
    with suppress(OSError):
        while True:
            visitor, _ = server.accept()
            with visitor, suppress(OSError):
                visitor.settimeout(0)
                found = visitor.recv(MARKER_BYTES) == marker.encode() or found
    return found


def _was_sent(taker: socket.socket) -> bool:
    """Return whether a datagram came: nobody else knows the socket's place."""
    taker.settimeout(0)
    with suppress(OSError):
        return bool(taker.recv(MARKER_BYTES))
    return False


def _metadata(path: Path) -> tuple[object, ...]:
    """Return what is known about a file besides its content."""
    status = path.stat()
    with suppress(OSError):
        return status.st_mode, status.st_mtime_ns, status.st_uid, status.st_gid, os.listxattr(path)
    return status.st_mode, status.st_mtime_ns, status.st_uid, status.st_gid


async def _end(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()


def _state(pid: int) -> str:
    """Return the letter of a process's state; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return ""


def python_program() -> str:
    """Return the path of the Python that runs the engine, as it is found in a sandbox.

    A path such as `/srv/old/../env/bin/python` names a folder on its way that the sandbox does not have. Only the
    folder is resolved: the program itself may be a link, and a virtual environment is found by the link's place.
    """
    program = Path(sys.executable)
    return str(program.parent.resolve() / program.name)
