"""No sandbox at all: only with `--unsafe-shell`, and the journal and the report say so."""

import signal
from dataclasses import dataclass

from explorer.sandbox.confinement import Launch, SandboxSpec, SandboxTier, environment, limiting


@dataclass(frozen=True)
class Unconfined:
    """Starts commands as they are. They can read and write whatever the engine's user can, and reach the network."""

    tier: SandboxTier = SandboxTier.UNCONFINED
    writable: str = "the run's folder, which is the current one. There is no sandbox: touch nothing else"

    def launch(self, command: str, place: SandboxSpec) -> Launch:
        """Prepare to run a command with bash."""
        shell = ("/bin/bash", "-c", f'{limiting(place.limits)} && exec /bin/bash -c "$1"', "bash", command)
        return Launch(shell, environment(str(place.folder), place.readable), place.folder, signal.SIGKILL)
