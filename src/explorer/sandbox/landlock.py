"""Tier 2: Landlock and seccomp, where namespaces are not allowed. Less comfortable, and just as tight."""

import json
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from explorer.sandbox import landlock_launcher as jailer
from explorer.sandbox.bubblewrap import SETTINGS, SYSTEM
from explorer.sandbox.confinement import Launch, SandboxSpec, SandboxTier, ShellLimits, environment
from explorer.sandbox.seccomp import Strictness, program

SCRATCH = "scratch"
"""The one folder of a run that a command may write in."""
TEMPORARY = f"{SCRATCH}/.tmp"


@dataclass(frozen=True)
class Landlock:
    """Confines commands with a small process of explorer's own."""

    tier: SandboxTier = SandboxTier.LANDLOCK
    writable: str = f"{SCRATCH}/ in the run's folder, which is the current one; everything else of it can be read"

    def launch(self, command: str, place: SandboxSpec) -> Launch:
        """Prepare to run a command with bash.

        Raises:
            OSError: `scratch/` cannot be made.
        """
        if (place.folder / SCRATCH).is_symlink():
            raise OSError(f"{SCRATCH} is a link")
        temporary = place.folder / TEMPORARY
        temporary.mkdir(parents=True, exist_ok=True)
        strictness = Strictness(sockets=True, others=True, signals=jailer.landlock_version() < jailer.SCOPES_SINCE)
        readable = [f"/{name}" for name in SYSTEM] + [f"/etc/{name}" for name in SETTINGS]
        order = {
            "command": command,
            "folder": str(place.folder),
            "readable": [*readable, *map(str, place.readable), str(place.folder)],
            "writable": [str(place.folder / SCRATCH)],
            "filter": program(strictness).hex(),
            "limits": _limits(place.limits),
        }
        arguments = (sys.executable, "-I", "-S", str(Path(jailer.__file__)), json.dumps(order))
        made = environment(str(temporary), place.readable)
        return Launch(arguments, made, place.folder, signal.SIGTERM)


def is_offered() -> bool:
    """Return whether this kernel has Landlock."""
    return hasattr(os, "memfd_create") and jailer.landlock_version() > 0


def _limits(limits: ShellLimits) -> dict[str, int]:
    return {
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": limits.cpu_s,
        "RLIMIT_AS": limits.memory_bytes,
        "RLIMIT_NPROC": limits.processes,
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_NOFILE": limits.open_files,
    }
