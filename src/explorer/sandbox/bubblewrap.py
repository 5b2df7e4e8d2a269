"""Tier 1: bubblewrap. The command has a process table, a network and a temporary folder of its own, and one folder.

Where root runs the engine, commands run as a user whose number is nobody's. In a namespace of users, root's number
still opens what root owns, such as the kernel's settings in /proc/sys. So `bwrap` itself is started as a user without
rights, in a mount namespace where ID-mapped mounts make that user the owner of the run's folder.
"""

import os
import signal
import stat
import subprocess
import sys
import weakref
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from explorer.sandbox import forwarder, idmapped_mounts, landlock_launcher
from explorer.sandbox.confinement import (
    Gate,
    Launch,
    SandboxSpec,
    SandboxTier,
    environment,
    kernel_limits,
    limiting,
)
from explorer.sandbox.seccomp import program
from explorer.workspace.access import ENGINE_FOLDER

FIRST_USER = 0x70000000
"""Numbers of users from here on belong to nobody: systemd leaves them unused."""
USERS = 0x10000
READY = b"ready\n"
READ_WRITE, READ_ONLY = "rw", "ro"
NOT_MAPPED = "the file system of {} has no ID-mapped mounts"


@dataclass(frozen=True)
class StagedFolder:
    """A folder or a file that a command needs."""

    name: str
    path: Path
    access: str = READ_ONLY

    @property
    def place(self) -> str:
        """Where it is found on the stage."""
        return str(idmapped_mounts.TOP / self.name)


@dataclass(eq=False)
class Stage:
    """A mount namespace with folders in it, held open until it is not needed any more."""

    descriptor: int
    is_reached_by_path: bool = field(init=False)
    """Whether a child reaches it through the engine's folder in /proc, and need not be handed it."""

    def __post_init__(self) -> None:
        """Close it with the last reference."""
        weakref.finalize(self, os.close, self.descriptor)
        # The engine hides what it holds: root then needs a right for it that some containers do not give.
        words = ["/bin/sh", "-c", 'test -r "$1"', "sh", self._path(os.getpid())]
        looking = subprocess.run(words, check=False, env={})  # noqa: S603 - words of our own
        self.is_reached_by_path = looking.returncode == 0

    @property
    def path(self) -> str:
        """The file by which a program enters it."""
        return self._path(os.getpid() if self.is_reached_by_path else "self")

    def _path(self, process: int | str) -> str:
        return f"/proc/{process}/fd/{self.descriptor}"


@dataclass(eq=False)
class UnprivilegedUser:
    """A user without rights of its own for this process's commands."""

    program: str
    """Path of the program `nsenter`."""
    number: int = field(repr=False, default_factory=lambda: FIRST_USER + os.getpid() % USERS)
    _stages: dict[tuple[object, ...], Stage] = field(repr=False, default_factory=dict[tuple[object, ...], Stage])

    def stage(self, folders: tuple[StagedFolder, ...]) -> Stage:
        """Return a namespace in which these folders belong to the user; made at the first call.

        Raises:
            OSError: The kernel or the file system of a folder has no ID-mapped mounts.
        """
        key = tuple((one, status.st_dev, status.st_ino) for one in folders for status in [one.path.stat()])
        if key not in self._stages:
            self._stages[key] = _made(self.number, folders)
        return self._stages[key]

    def starting(self, stage: Stage) -> tuple[str, ...]:
        """Return the words that start a program on the stage as the user."""
        number = str(self.number)
        return (
            self.program,
            f"--mount={stage.path}",
            *("--setgid", number, "--setuid", number, "--"),
        )


def _made(user: int, folders: tuple[StagedFolder, ...]) -> Stage:
    wanted = [f"{one.access}={one.name}={one.path}" for one in folders]
    words = [sys.executable, "-I", "-S", idmapped_mounts.__file__, str(user), *wanted]
    with subprocess.Popen(  # noqa: S603 - a program of our own
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}
    ) as made:
        assert made.stdout is not None
        if made.stdout.readline() != READY:
            raise OSError(NOT_MAPPED.format(folders[0].path))
        return Stage(os.open(f"/proc/{made.pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC))


INSIDE = "/workspace"
"""Where the command finds the run's folder."""
USER_ID = "1000"
SYSTEM = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
SETTINGS = (
    "alternatives",
    "ca-certificates",
    "fonts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "pki",
    "ssl",
    "timezone",
)
"""Files of /etc that programs need to start and to look right; users, hosts and everything else are left out."""
COPIED_BYTES = 256 * 1024
PROXY = "/proxy"
PROXY_PORT = 3128
LAUNCHER = "/launcher"
"""The folder of this module, for the programs in it that run inside."""
FORWARDER = Path(forwarder.__file__).name
UNCHANGEABLE = ("sys", "bus", "fs", "irq", "sysrq-trigger")
"""Parts of /proc that root's number may write, with or without rights of root."""
HIDDEN_FOLDERS = ("acpi", "asound", "scsi")
HIDDEN_FILES = ("interrupts", "kallsyms", "kcore", "keys", "kmsg", "latency_stats", "sched_debug", "timer_list")
"""Parts of /proc that describe the machine or other users' processes."""


@dataclass(frozen=True)
class Bubblewrap:
    """Confines commands with the program `bwrap`, and with Landlock inside of it where the kernel has it."""

    program: str
    """Path of the program `bwrap`."""
    user: UnprivilegedUser | None = None
    """Who starts `bwrap` where the engine runs as root; None: the engine's own user."""
    tier: SandboxTier = SandboxTier.BUBBLEWRAP
    writable: str = "the run's folder, which is the current one (but not .explorer/), and /tmp, which is emptied"

    @property
    def walls(self) -> str:
        """What confines a command, in words for the user."""
        who = ", as a user without rights" if self.user else ""
        has_landlock = landlock_launcher.landlock_version() >= landlock_launcher.NEEDED
        return f"namespaces and seccomp{who}; {'Landlock inside' if has_landlock else 'no Landlock in this kernel'}"

    def launch(self, command: str, place: SandboxSpec) -> Launch:
        """Prepare to run a command with bash.

        Raises:
            OSError: The filter's file cannot be made, or the folder cannot be given to the unprivileged user.
        """
        staged = _staged(place)
        stage = self.user.stage(tuple(staged.values())) if self.user else None
        paths = {path: one.place if stage else str(one.path) for path, one in staged.items()}
        filtering = _file(program())
        copied = _copied()
        # Through a file, not as arguments: a command that looks at its process table need not learn our folders.
        words = _file(b"".join(f"{word}\0".encode() for word in _options(place, paths, copied)))
        bwrap = (self.program, "--args", str(words), "--seccomp", str(filtering), "--")
        gate = Gate() if has_second_wall(place) else None
        opened = (words, filtering, *copied.values())
        starting = self.user.starting(stage) if self.user and stage else ()

        def close() -> None:
            for descriptor in opened:
                os.close(descriptor)
            if gate:
                gate.close()

        # What is handed on stays open in the command, too: only if there is no other way.
        handed = [stage.descriptor] if stage and not stage.is_reached_by_path else []
        passed = (*opened, *handed, *([gate.waiting] if gate else []))
        arguments = (*starting, *bwrap, *_first(command, place, gate))
        return Launch(arguments, {}, place.folder, signal.SIGKILL, passed, close, gate, stage is not None)


def _staged(place: SandboxSpec) -> dict[str, StagedFolder]:
    """Return what a command needs besides the system, by the path at which it finds it."""
    readable = [one for one in place.readable if one.is_dir() and not one.is_relative_to("/usr")]
    found = {
        INSIDE: StagedFolder("workspace", place.folder, READ_WRITE),
        LAUNCHER: StagedFolder("launcher", Path(landlock_launcher.__file__).parent),
        **{str(one): StagedFolder(f"readable-{number}", one) for number, one in enumerate(readable)},
        **{str(one): StagedFolder(f"writable-{number}", one, READ_WRITE) for number, one in enumerate(place.writable)},
    }
    return found | ({PROXY: StagedFolder("proxy", place.proxy, READ_WRITE)} if place.proxy else {})


def _options(place: SandboxSpec, paths: Mapping[str, str], copied: Mapping[str, int]) -> list[str]:
    """Return the options of `bwrap`, given where each folder is outside, and the open files that are copied."""
    size = ("--size", str(place.limits.temporary_bytes))
    made = environment("/tmp", place.readable, f"http://127.0.0.1:{PROXY_PORT}" if place.proxy else "")  # noqa: S108
    made |= place.variables
    writable = (INSIDE, PROXY, *map(str, place.writable))
    binds = ((f"--{'' if path in writable else 'ro-'}bind", outside, path) for path, outside in paths.items())
    return [
        *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
        *("--unshare-cgroup-try", "--disable-userns", "--die-with-parent", "--new-session"),
        *("--cap-drop", "ALL", "--uid", USER_ID, "--gid", USER_ID, "--hostname", "explorer"),
        *_system(copied),
        *("--proc", "/proc", *_masked(), "--dev", "/dev"),
        *(*size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"),  # noqa: S108
        *(*size, "--tmpfs", "/tmp"),  # noqa: S108 - the sandbox's own
        *(word for bind in binds for word in bind),
        *("--ro-bind", f"{paths[INSIDE]}/{ENGINE_FOLDER}", f"{INSIDE}/{ENGINE_FOLDER}"),
        *("--remount-ro", "/", "--chdir", INSIDE, "--clearenv"),
        *(word for name, value in made.items() for word in ("--setenv", name, value)),
    ]


def _masked() -> Iterator[str]:
    """Yield what covers parts of /proc."""
    for path in (Path("/proc", name) for name in UNCHANGEABLE):
        if path.exists():
            yield from ("--ro-bind", str(path), str(path))
    for path in (Path("/proc", name) for name in HIDDEN_FOLDERS):
        if path.exists():
            yield from ("--tmpfs", str(path), "--remount-ro", str(path))
    for path in (Path("/proc", name) for name in HIDDEN_FILES):
        if path.exists():
            yield from ("--ro-bind", os.devnull, str(path))


def _first(command: str, place: SandboxSpec, gate: Gate | None) -> tuple[str, ...]:
    """Return what runs first inside: it sets the limits and the second wall, and becomes the command."""
    way_out = f'python3 -I -S {LAUNCHER}/{FORWARDER} {PROXY_PORT} {PROXY} && exec /bin/bash -c "$1"'
    shell = ("/bin/bash", "-c", way_out, "bash", command) if place.proxy else ("/bin/bash", "-c", command)
    if gate is None:
        return ("/bin/bash", "-c", f'{limiting(place.limits)} && exec "$@"', "bash", *shell)
    readable = [*(f"/{name}" for name in SYSTEM), "/etc", "/proc", LAUNCHER, *map(str, place.readable)]
    order = [
        f"wait={gate.waiting}",
        *(f"limit={limit}" for limit in kernel_limits(place.limits)),
        *(f"read={path}" for path in (*readable, *((PROXY,) if place.proxy else ()))),
        *("list=/", "device=/dev"),
        *(f"write={path}" for path in (INSIDE, "/tmp", "/dev/shm", *place.writable)),  # noqa: S108 - the sandbox's own
    ]
    return (*launcher_words(LAUNCHER), "enter", *order, "--", *shell)


def has_second_wall(place: SandboxSpec) -> bool:
    """Return whether commands get Landlock inside: the kernel has it, and the engine's Python is found there."""
    is_found = any(Path(_python()).is_relative_to(folder) for folder in (*place.readable, "/usr"))
    return is_found and landlock_launcher.landlock_version() >= landlock_launcher.NEEDED


def launcher_words(folder: str) -> tuple[str, ...]:
    """Return the command that starts the launcher, which is in a folder."""
    return (_python(), "-I", "-S", "-c", landlock_launcher.STARTER, folder)


@lru_cache(maxsize=1)
def _python() -> str:
    """Return the engine's Python itself, not that of a virtual environment: it starts a little faster."""
    return str(Path(sys.executable).resolve())


def _file(content: bytes) -> int:
    """Return an open file in memory, to be read from its beginning."""
    descriptor = os.memfd_create("explorer")
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _copied() -> dict[str, int]:
    """Open the files of /etc that are copied, by name: a copy takes a tenth of a mount's time."""
    found: dict[str, int] = {}
    for name in SETTINGS:
        with suppress(OSError):
            status = os.stat(f"/etc/{name}")  # noqa: PTH116 - for each command
            if stat.S_ISREG(status.st_mode) and status.st_mode & stat.S_IROTH and status.st_size <= COPIED_BYTES:
                found[name] = os.open(f"/etc/{name}", os.O_RDONLY)
    return found


def _system(copied: Mapping[str, int]) -> Iterator[str]:
    """Yield the system, read-only; merged folders are links here as they are outside."""
    for name in SYSTEM:
        path = Path("/", name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    for name in SETTINGS:
        way = ("--file", str(copied[name])) if name in copied else ("--ro-bind-try", f"/etc/{name}")
        yield from (*way, f"/etc/{name}")
