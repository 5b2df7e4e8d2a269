"""Tier 2: Landlock and seccomp, where namespaces are not allowed. Less comfortable, and just as tight."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from explorer.sandbox import landlock_launcher
from explorer.sandbox.bubblewrap import SETTINGS, SYSTEM, launcher_words
from explorer.sandbox.confinement import Gate, Launch, SandboxSpec, SandboxTier, environment, kernel_limits
from explorer.sandbox.seccomp import Strictness, program

SCRATCH = "scratch"
"""The one folder of a run that a command may write in."""
TEMPORARY = f"{SCRATCH}/.tmp"


@dataclass(frozen=True)
class Landlock:
    """Confines commands with a small process of explorer's own."""

    tier: SandboxTier = SandboxTier.LANDLOCK
    writable: str = f"{SCRATCH}/ in the run's folder, which is the current one; everything else of it can be read"
    walls: str = "Landlock and seccomp"

    def launch(self, command: str, place: SandboxSpec) -> Launch:
        """Prepare to run a command with bash.

        Raises:
            OSError: `scratch/` cannot be made.
        """
        if (place.folder / SCRATCH).is_symlink():
            raise OSError(f"{SCRATCH} is a link")
        temporary = place.folder / TEMPORARY
        temporary.mkdir(parents=True, exist_ok=True)
        signals = landlock_launcher.landlock_version() < landlock_launcher.SCOPES_SINCE
        readable = [f"/{name}" for name in SYSTEM] + [f"/etc/{name}" for name in SETTINGS]
        gate = Gate()
        order = [
            f"wait={gate.waiting}",
            f"folder={place.folder}",
            *(f"limit={limit}" for limit in kernel_limits(place.limits)),
            *(f"read={path}" for path in (*readable, *place.readable, place.folder)),
            *(f"write={path}" for path in place.writable),
            *(f"device={path}" for path in landlock_launcher.DEVICES),
            f"write={(place.folder / SCRATCH).resolve()}",
            f"filter={program(Strictness(outside=True, signals=signals)).hex()}",
        ]
        launcher = (*launcher_words(str(Path(landlock_launcher.__file__).parent)), "supervise")
        arguments = (*launcher, *order, "--", "/bin/bash", "-c", command)
        made = {**environment(str(temporary), place.readable), **place.variables}
        # Root's number is not limited by the kernel, whatever else it has running.
        user = os.getuid() or None
        return Launch(arguments, made, place.folder, signal.SIGTERM, (gate.waiting,), gate.close, gate, user)


def is_offered() -> bool:
    """Return whether this kernel has Landlock in a version that keeps what this tier promises."""
    return hasattr(os, "memfd_create") and landlock_launcher.landlock_version() >= landlock_launcher.NEEDED
