"""What a sandbox is worth is not believed but tried: attempts to break out, which all have to fail."""

import asyncio
import hashlib
import json
import os
import platform
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

from pydantic import ValidationError

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


async def attest(confinement: Confinement, readable: tuple[Path, ...], *, settle_s: float = SETTLE_S) -> Attestation:
    """Try to break out of a sandbox, with harmless aims; takes about a third of a second."""
    began = perf_counter()
    async with AsyncExitStack() as stack:
        top = stack.enter_context(_folder())
        range_ = await stack.enter_async_context(_shooting_range(top))
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
def _folder() -> Generator[Path]:
    """A folder of its own by its real path: /tmp is a link on some systems, and a sandbox deals in real paths."""
    with tempfile.TemporaryDirectory(prefix="explorer-attest-") as name:
        yield Path(name).resolve()


def _attempt(name: str, answer: str, seen: str) -> EscapeAttempt:
    """Held only if the attacker got nothing and nothing was seen from outside either."""
    return EscapeAttempt(
        name=name,
        held=answer == "refused" and not seen,
        said=seen or ("" if answer == "refused" else answer),
    )


def _not_tried(tier: SandboxTier, problem: str, began: float) -> Attestation:
    return Attestation(tier=tier, attempts=(), seconds=round(perf_counter() - began, 3), problem=problem)


class _Range:
    """What the attackers are to aim at."""

    def __init__(self, top: Path, victim: int, port: int) -> None:
        self.folder = top / "run"
        self._top = top
        self._canary = secrets.token_hex(16)
        self.marker = f"explorer-{secrets.token_hex(8)}"
        self.victim = victim
        self.port = port
        self.servers: dict[str, socket.socket] = {}
        """Listening sockets, by the attack that aims at each."""
        (self.folder / ENGINE_FOLDER).mkdir(parents=True)
        (top / "secret").write_text(self._canary, encoding="utf-8")
        (top / "secret").chmod(0o600)

    @property
    def canary(self) -> str:
        """What must not be seen."""
        return self._canary

    @property
    def abstract(self) -> str:
        """The name of the server without a place."""
        return f"{self.marker}-abstract"

    @property
    def path(self) -> Path:
        """The place of the other one."""
        return self._top / "server"

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
            canary=self._canary,
            marker=self.marker,
        )
        source = Path(attacks.__file__).read_text(encoding="utf-8")
        return shlex.join([python_program(), "-I", "-c", source, json.dumps(aims)])

    def seen(self) -> dict[str, str]:
        """Return what the attacks left behind, by attack."""
        visited = [name for name, server in self.servers.items() if _was_visited(server, self.marker)]
        found = dict.fromkeys(visited, "a connection came in")
        if (self._top / "planted").exists():
            found["write_outside"] = "a file was created outside the folder"
        if (self.folder / ENGINE_FOLDER / "planted").exists():
            found["write_journal"] = "a file was made in the engine's folder"
        if _state(self.victim) in {"T", "t", "Z", ""}:
            found["send_signal"] = "a process outside the sandbox was stopped"
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
        for pid in self._left_behind():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)

    def _left_behind(self) -> list[int]:
        """Return the processes that an attack left behind: their last argument is the marker."""
        found: list[int] = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (entry / "cmdline").read_bytes().rstrip(b"\0").endswith(b"\0" + self.marker.encode()):
                    found.append(int(entry.name))
        return found


@asynccontextmanager
async def _shooting_range(top: Path) -> AsyncGenerator[_Range]:
    """Secret files, servers that note who comes, and a process that holds a secret."""
    async with AsyncExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        victim = await asyncio.create_subprocess_exec("/bin/sleep", "60", env={}, start_new_session=True)
        stack.push_async_callback(_end, victim)
        made = _Range(top, victim.pid, listener.getsockname()[1])
        stack.callback(made.clear)
        holder = await asyncio.create_subprocess_exec("/bin/sleep", "60", env={"KEY": made.canary})
        stack.push_async_callback(_end, holder)
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(f"\0{made.abstract}")
        abstract.listen()
        path = stack.enter_context(socket.socket(socket.AF_UNIX))
        path.bind(str(made.path))
        path.listen()
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


def fingerprint(confinement: Confinement, program: str) -> str:
    """Return what an attestation holds for: this host, kernel, user and program."""
    status = Path(program).stat() if program else None
    facts = [
        confinement.tier,
        platform.node(),
        platform.release(),
        platform.version(),
        str(os.geteuid()),
        python_program(),
        hashlib.sha256(Path(attacks.__file__).read_bytes()).hexdigest(),
        f"{program} {status.st_size} {status.st_mtime_ns} {status.st_ino}" if status else "",
    ]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:32]


def remembered(path: Path) -> Attestation | None:
    """Return an attestation of this very host; only one that holds is trusted, the others are tried again."""
    try:
        known = Attestation.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
    return known if known.holds else None


def remember(path: Path, attestation: Attestation) -> None:
    """Keep an attestation; a disk that refuses only costs the next start a third of a second."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(attestation.model_dump_json(), encoding="utf-8")
