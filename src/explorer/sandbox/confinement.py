"""The interface of a sandbox: how a command is started so that it can reach its own folder and nothing else."""

import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

MIB = 1024 * 1024


class SandboxTier(StrEnum):
    """Kinds of sandboxes."""

    BUBBLEWRAP = "bubblewrap"
    """Own namespaces, no capabilities, seccomp: sees the system read-only, its folder, and nothing else."""
    LANDLOCK = "landlock"
    """Landlock and seccomp by a small process of our own, where namespaces are not allowed."""
    UNCONFINED = "unconfined"
    """Nothing: only with `--unsafe-shell`."""


@dataclass(frozen=True)
class ShellLimits:
    """Limits of one command."""

    cpu_s: int = 300
    """Seconds of processor time of each process."""
    memory_bytes: int = 4_096 * MIB
    """Address space of each process."""
    processes: int = 128
    file_bytes: int = 256 * MIB
    """Size of each file that the command writes."""
    open_files: int = 512
    temporary_bytes: int = 256 * MIB
    """Size of the temporary folder, and of the shared memory."""
    output_bytes: int = 16 * MIB
    """Size of what the command prints; beyond it, the command is stopped."""
    written_bytes: int = 512 * MIB
    """Bytes by which the run's folder may grow."""
    written_files: int = 5_000
    """Number of files by which the run's folder may grow."""


@dataclass(frozen=True)
class SandboxSpec:
    """The folder, limits and network of a command."""

    folder: Path
    """The run's folder, absolute."""
    limits: ShellLimits = ShellLimits()
    readable: tuple[Path, ...] = ()
    """Further folders it may read and run things from, such as the Python that runs the engine."""
    writable: tuple[Path, ...] = ()
    """Further folders it may write in."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """Further variables of its environment."""
    proxy: Path | None = None
    """The socket of the proxy that is its only way out; None: no network at all."""


class Gate:
    """Holds a command back while its sandbox is made, so that its folder can be looked at meanwhile."""

    def __init__(self) -> None:
        self.waiting, self._opening = os.pipe()
        """The command's end comes first."""

    def open(self, tasks: int = 0) -> None:
        """Let the command begin, and say how many tasks the kernel counts with its own."""
        with suppress(BrokenPipeError):  # its sandbox could not be made
            os.write(self._opening, b"g%d" % tasks)

    def close(self) -> None:
        """Forget it; a command that has not begun will not."""
        os.close(self.waiting)
        os.close(self._opening)


@dataclass(frozen=True)
class Launch:
    """A confined command, ready to be started; `close` what was opened for it once it has begun."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path
    ending: int = signal.SIGKILL
    """The signal that ends it, and with it all it started."""
    descriptors: tuple[int, ...] = ()
    """Open files to hand on, under the same numbers."""
    close: Callable[[], None] = lambda: None
    gate: Gate | None = None
    """What holds the command back; None: it begins at once."""
    counted_user: int | None = None
    """The user whose tasks the kernel counts with the command's; None: the command's are counted alone."""
    is_other_user: bool = False
    """Whether the command belongs to another user than the engine."""


class Confinement(Protocol):
    """Interface of what confines a command."""

    @property
    def tier(self) -> SandboxTier:
        """The kind of sandbox."""
        ...

    @property
    def writable(self) -> str:
        """The folders that a command may write in, in words for the model."""
        ...

    @property
    def walls(self) -> str:
        """What confines a command, in words for the user."""
        ...

    def launch(self, command: str, place: SandboxSpec) -> Launch:
        """Prepare to run a command with bash.

        Raises:
            OSError: Something it needs cannot be opened.
        """
        ...


def environment(home: str, python: tuple[Path, ...], proxy_url: str = "") -> dict[str, str]:
    """Return what a command finds in its environment: made from nothing, so that no key can be in it."""
    folders = [*(str(folder / "bin") for folder in python), "/usr/local/bin", "/usr/bin", "/bin"]
    made = {
        "HOME": home,
        "TMPDIR": home,
        "PATH": ":".join(folders),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "MPLBACKEND": "Agg",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONNOUSERSITE": "1",
        "NO_COLOR": "1",
        # The settings of the machine cannot be read in every tier, and git ends where it may not read them.
        "GIT_CONFIG_NOSYSTEM": "1",
        # Numerical libraries start a thread for each core; the sandbox counts threads.
        "OPENBLAS_NUM_THREADS": "2",
        "OMP_NUM_THREADS": "2",
    }
    if proxy_url:
        names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy")
        made |= dict.fromkeys(names, proxy_url)
    return made


def limiting(limits: ShellLimits) -> str:
    """Return the shell command that sets the limits for itself and all it starts; they cannot be raised again."""
    return (
        f"ulimit -c 0 -t {limits.cpu_s} -v {limits.memory_bytes // 1024} -u {limits.processes} "
        f"-f {limits.file_bytes // 1024} -n {limits.open_files}"
    )


def kernel_limits(limits: ShellLimits) -> list[str]:
    """Return the limits that `setrlimit` enforces, as words for the launcher: the name in `resource`, and the value."""
    values = {
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": limits.cpu_s,
        "RLIMIT_AS": limits.memory_bytes,
        "RLIMIT_NPROC": limits.processes,
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_NOFILE": limits.open_files,
    }
    return [f"{name}:{value}" for name, value in values.items()]


@dataclass(frozen=True)
class Unconfined:
    """Starts commands as they are. They can read and write whatever the engine's user can, and reach the network."""

    tier: SandboxTier = SandboxTier.UNCONFINED
    writable: str = "the run's folder, which is the current one. There is no sandbox: touch nothing else"
    walls: str = "nothing"

    def launch(self, command: str, place: SandboxSpec) -> Launch:
        """Prepare to run a command with bash."""
        shell = ("/bin/bash", "-c", f'{limiting(place.limits)} && exec /bin/bash -c "$1"', "bash", command)
        return Launch(shell, environment(str(place.folder), place.readable), place.folder, signal.SIGKILL)
