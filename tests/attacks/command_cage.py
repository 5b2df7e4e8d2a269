"""Runs the attempts of a hostile command in one sandbox, among victims made for them; prints what was gained.

    python command_cage.py SANDBOX [ABI]

SANDBOX is `bubblewrap`, `masked` (bubblewrap where root's number stays), `landlock`, or `none`. ABI is the version of
Landlock that the kernel is to be taken to have, 0 for none; without it, its own is. A program of its own, so that it
can be started as another user.
"""

import asyncio
import json
import os
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])

import ctypes

from attacks import command_attempts
from attacks.command_attempts import ATTEMPTS, ON_X86, SHARED, Aims
from explorer.sandbox import file_metadata, landlock_launcher
from explorer.sandbox.bubblewrap import Bubblewrap
from explorer.sandbox.confinement import Confinement, SandboxSpec, Unconfined
from explorer.sandbox.landlock import Landlock
from explorer.sandbox.selection import python_folders, unprivileged_user
from explorer.sandbox.self_test import python_program
from explorer.sandbox.shell import Shell

SECONDS = 60.0
SETTLE_S = 10.0
PROCESSES = ("root", "environment", "memory", "stop", "stop-by-thread", "stop-by-queue", "stop-by-descriptor")
MORE_PROCESSES = (
    "stop-for-a-file",
    "stop-for-a-file-by-order",
    "debug",
    "slow-down",
    "limit",
    "pin",
    "take-descriptor",
)
QUEUES = {"shm": "leave-memory", "sem": "leave-semaphore", "msg": "leave-messages"}
KEYCTL = 250 if ON_X86 else 219
GET_KEYRING, OF_THE_USER = 0, -4
"""What is asked of `keyctl`, and of which keyring: numbers of the kernel."""
Known = tuple[object, ...]


def sandbox(name: str) -> Confinement:
    """The sandbox of that name on this machine."""
    if name == "landlock":
        return Landlock()
    program = shutil.which("bwrap") or ""
    found = {"masked": Bubblewrap(program), "bubblewrap": Bubblewrap(program, unprivileged_user())}
    return found.get(name, Unconfined())


def pretend(version: int, folder: Path) -> None:
    """Have engine and launcher take the kernel for one with another version of Landlock."""
    for module in (landlock_launcher, file_metadata):
        shutil.copy(Path(str(module.__file__)), folder)
    path = folder / "landlock_launcher.py"
    text = path.read_text(encoding="utf-8")
    asked = 'return max(0, call("syscall", CREATE_RULESET, None, 0, ASK_VERSION))'
    assert asked in text
    path.write_text(text.replace(asked, f"return {version}"), encoding="utf-8")
    landlock_launcher.__file__ = str(path)
    landlock_launcher.landlock_version = lambda: version


@dataclass
class Victims:
    """What the attempts aim at, and what became of it."""

    folder: Path
    stack: ExitStack
    queue: int = field(default_factory=lambda: int.from_bytes(os.urandom(3)) | 0x6000000)
    before: dict[str, Known] = field(default_factory=dict[str, Known])
    processes: dict[str, int] = field(default_factory=dict[str, int])
    sockets: dict[str, socket.socket] = field(default_factory=dict[str, socket.socket])

    def make(self) -> Aims:
        """Make everything."""
        libc = ctypes.CDLL(None)
        outside, engine = self.folder / "outside", self.folder / "run" / ".explorer"
        for place in (outside, engine, self.folder / "run" / "scratch"):
            place.mkdir(parents=True)
        for name in ATTEMPTS:
            path = (engine if name.startswith("engine-") else outside) / name
            path.write_bytes(b"outside")
            path.chmod(0o600)
            with suppress(OSError):
                os.setxattr(path, "user.there", b"there")
        self.before = self.files()
        self._listen()
        for name in (*PROCESSES, *MORE_PROCESSES):
            self.processes[name] = os.posix_spawn("/bin/sleep", ["sleep", "300"], {"KEY": "secret"}, setsid=True)
            self.stack.callback(self._end, self.processes[name])
        libc.syscall(KEYCTL, GET_KEYRING, OF_THE_USER, 1)  # so that the user has a key to be seen
        memory = libc.shmget(self.queue + 1, 4096, 0o1644)
        self.stack.callback(libc.shmctl, memory, 0, None)
        libc.shmat.restype = ctypes.c_void_p
        address = libc.shmat(memory, None, 0)
        ctypes.memmove(address, SHARED, len(SHARED))
        libc.shmdt(ctypes.c_void_p(address))
        return Aims(
            victims=str(outside),
            processes=self.processes,
            port=self.sockets["connect"].getsockname()[1],
            abstract=f"victim-{self.queue}",
            path=str(self.folder / "path"),
            datagrams=str(self.folder / "datagrams"),
            queue=self.queue,
            memory=memory,
            mark=f"mark-{self.queue}",
        )

    def _listen(self) -> None:
        places: tuple[tuple[str, socket.AddressFamily, tuple[str, int] | str], ...] = (
            ("connect", socket.AF_INET, ("127.0.0.1", 0)),
            ("connect-path", socket.AF_UNIX, str(self.folder / "path")),
            ("connect-abstract", socket.AF_UNIX, f"\0victim-{self.queue}"),
        )
        for name, family, address in places:
            server = self.sockets[name] = self.stack.enter_context(socket.socket(family))
            server.bind(address)
            server.listen()
        port = self.sockets["connect"].getsockname()[1]
        for name, family, address in (
            ("send-udp", socket.AF_INET, ("127.0.0.1", port)),
            ("send-datagram", socket.AF_UNIX, str(self.folder / "datagrams")),
        ):
            taker = self.sockets[name] = self.stack.enter_context(socket.socket(family, socket.SOCK_DGRAM))
            taker.bind(address)
        for one in self.sockets.values():
            one.settimeout(0)

    def _end(self, pid: int) -> None:
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def files(self) -> dict[str, Known]:
        """What is known about each file, by the attempt that aims at it."""
        found: dict[str, Known] = {}
        for path in (*(self.folder / "outside").iterdir(), *(self.folder / "run" / ".explorer").iterdir()):
            status = path.lstat()
            marks: list[str] = []
            with suppress(OSError):
                marks = os.listxattr(path)
            content = path.read_bytes() if path.is_file() else b""
            known = (status.st_mode, status.st_mtime_ns, status.st_uid, status.st_nlink, tuple(marks), content)
            found[path.name.removesuffix(".new")] = (*found.get(path.name.removesuffix(".new"), ()), *known)
        found.pop("output", None)
        return found

    def changed(self) -> set[str]:
        """The attempts that left something outside, seen from there."""
        after = self.files()
        found = {name for name, known in self.before.items() if after.get(name) != known}
        found |= {name for name, pid in self.processes.items() if _state(pid) in "Tt" and name.startswith("stop")}
        for name, one in self.sockets.items():
            with suppress(OSError):
                if name.startswith("send"):
                    one.recv(100)
                else:
                    one.accept()[0].close()
                found.add(name)
        for kind, name in QUEUES.items():
            found |= {name} if self._removed_queue(kind) else set()
        libc = ctypes.CDLL(None)
        if libc.mq_unlink(f"/here-{self.queue}".encode()) == 0:
            found.add("leave-posix-queue")
        return found | ({"stay-behind"} if self._ended_behind() else set())

    def _removed_queue(self, kind: str) -> bool:
        """Whether a queue was left; it is removed."""
        libc = ctypes.CDLL(None)
        for line in Path(f"/proc/sysvipc/{kind}").read_text(encoding="utf-8").splitlines()[1:]:
            key, number = (int(word) for word in line.split()[:2])
            if key == self.queue:
                getattr(libc, f"{kind}ctl")(number, *([0] if kind == "sem" else []), 0, None)
                return True
        return False

    def settle(self) -> None:
        """Give the kernel time: it ends the processes of a namespace after the one that led it."""
        until = time.monotonic() + SETTLE_S
        while self._behind() and time.monotonic() < until:
            time.sleep(0.05)

    def _ended_behind(self) -> bool:
        """Whether a process was left; it is ended."""
        found = self._behind()
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return bool(found)

    def _behind(self) -> list[int]:
        found: list[int] = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (entry / "cmdline").read_bytes().rstrip(b"\0").endswith(f"mark-{self.queue}".encode()):
                    found.append(int(entry.name))
        return found


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]


async def run(confinement: Confinement, place: SandboxSpec, command: str, output: Path, seconds: float) -> None:
    """Run one command."""
    shell = Shell(confinement, place)
    try:
        await shell.run(command, output, seconds)
    finally:
        await shell.aclose()


def gained(name: str, version: int | None) -> dict[str, bool]:
    """Run all attempts; what each gained."""
    with ExitStack() as stack:
        # Not in pytest's folder, which other users may not enter.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="explorer-cage-", dir="/tmp"))).resolve()
        if version is not None:
            (folder / "launcher").mkdir()
            pretend(version, folder / "launcher")
        victims = Victims(folder, stack)
        aims = victims.make()
        output = folder / "run" / ".explorer" / "output"
        source = Path(command_attempts.__file__).read_text(encoding="utf-8")
        words = [python_program(), "-I", "-c", source, json.dumps(aims)]
        place = SandboxSpec(folder / "run", readable=python_folders())
        asyncio.run(run(sandbox(name), place, shlex.join(words), output, SECONDS))
        lines = output.read_text(encoding="utf-8", errors="replace").splitlines()
        said = {line.split(" ")[0]: line.endswith(" DONE") for line in lines if line.endswith((" DONE", " refused"))}
        assert set(said) == set(ATTEMPTS), (set(ATTEMPTS) - set(said), lines[-5:])
        victims.settle()
        seen = victims.changed()
        return {attempt: is_done or attempt in seen for attempt, is_done in said.items()}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(gained(sys.argv[1], next(map(int, sys.argv[2:]), None))))
