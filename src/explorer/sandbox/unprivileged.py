"""The user that commands run as where root runs the engine: nobody's number, and owner of nothing but the run's folder.

In a namespace of users, root's number still opens what root owns, such as the kernel's settings in /proc/sys. So
`bwrap` itself is started as a user without rights, in a mount namespace where ID-mapped mounts make that user the owner
of the run's folder.
"""

import os
import subprocess
import sys
import weakref
from dataclasses import dataclass, field
from pathlib import Path

from explorer.sandbox import idmapped_mounts

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

    def __post_init__(self) -> None:
        """Close it with the last reference."""
        weakref.finalize(self, os.close, self.descriptor)


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
            f"--mount=/proc/self/fd/{stage.descriptor}",
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
