"""Tier 1: bubblewrap. The command has a process table, a network and a temporary folder of its own, and one folder."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from explorer.sandbox import forwarder
from explorer.sandbox.confinement import Launch, SandboxSpec, SandboxTier, environment, limiting
from explorer.sandbox.seccomp import program
from explorer.workspace.access import ENGINE_FOLDER

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
PROXY = "/proxy"
PROXY_PORT = 3128
FORWARDER = "/forwarder.py"


@dataclass(frozen=True)
class Bubblewrap:
    """Confines commands with the program `bwrap`."""

    program: str
    """Path of the program `bwrap`."""
    tier: SandboxTier = SandboxTier.BUBBLEWRAP
    writable: str = "the run's folder, which is the current one (but not .explorer/), and /tmp, which is emptied"

    def launch(self, command: str, place: SandboxSpec) -> Launch:
        """Prepare to run a command with bash.

        Raises:
            OSError: The filter's file cannot be made.
        """
        made = environment("/tmp", place.readable, f"http://127.0.0.1:{PROXY_PORT}" if place.proxy else "")  # noqa: S108
        options = [
            *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
            *("--unshare-cgroup-try", "--disable-userns", "--die-with-parent", "--new-session"),
            *("--cap-drop", "ALL", "--uid", USER_ID, "--gid", USER_ID, "--hostname", "explorer"),
            *_system(),
            *("--proc", "/proc", "--dev", "/dev"),
            *("--size", str(place.limits.temporary_bytes), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"),  # noqa: S108
            *("--size", str(place.limits.temporary_bytes), "--tmpfs", "/tmp"),  # noqa: S108 - the sandbox's own
            *_readable(place.readable),
            *("--bind", str(place.folder), INSIDE),
            *("--ro-bind", str(place.folder / ENGINE_FOLDER), f"{INSIDE}/{ENGINE_FOLDER}"),
            *(("--bind", str(place.proxy), PROXY) if place.proxy else ()),
            *(("--ro-bind", forwarder.__file__, FORWARDER) if place.proxy else ()),
            *("--remount-ro", "/", "--chdir", INSIDE, "--clearenv"),
            *(word for name, value in made.items() for word in ("--setenv", name, value)),
        ]
        filtering = _file(program())
        # Through a file, not as arguments: a command that looks at its process table need not learn our folders.
        words = _file(b"".join(f"{word}\0".encode() for word in options))
        way_out = f"python3 -I -S {FORWARDER} {PROXY_PORT} {PROXY} && " if place.proxy else ""
        first = f'{limiting(place.limits)} && {way_out}exec /bin/bash -c "$1"'
        shell = ("/bin/bash", "-c", first, "bash", command)
        arguments = (self.program, "--args", str(words), "--seccomp", str(filtering), "--", *shell)

        def close() -> None:
            os.close(words)
            os.close(filtering)

        return Launch(arguments, {}, place.folder, signal.SIGKILL, (words, filtering), close)


def _file(content: bytes) -> int:
    """Return an open file in memory, to be read from its beginning."""
    descriptor = os.memfd_create("explorer")
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _system() -> Iterator[str]:
    """Yield the system, read-only; merged folders are links here as they are outside."""
    for name in SYSTEM:
        path = Path("/", name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    for name in SETTINGS:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


def _readable(folders: tuple[Path, ...]) -> Iterator[str]:
    for folder in folders:
        if folder.is_dir() and not folder.is_relative_to("/usr"):
            yield from ("--ro-bind", str(folder), str(folder))
