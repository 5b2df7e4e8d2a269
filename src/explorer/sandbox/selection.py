"""Which sandbox this machine has: the best that was seen to hold."""

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from explorer.sandbox.bubblewrap import Bubblewrap
from explorer.sandbox.confinement import Confinement, SandboxTier, Unconfined
from explorer.sandbox.landlock import Landlock, is_offered
from explorer.sandbox.seatbelt import Seatbelt
from explorer.sandbox.seccomp import supported
from explorer.sandbox.self_test import Attestation, attest, fingerprint, remember, remembered

GET_IT = "install bubblewrap (Debian and Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap)"

ALLOW_IT = "allow bubblewrap to make user namespaces (in a container: its security profile forbids them)"


@dataclass(frozen=True)
class Sandbox:
    """The chosen sandbox, and why it was chosen."""

    confinement: Confinement | None
    """None: this machine has no sandbox that holds, and there is no shell."""
    reason: str
    """One line for people."""
    attestations: tuple[Attestation, ...] = ()
    """Everything that was tried, in order."""
    fix: str = ""
    """What to do to have a sandbox; empty where there is one, or where the user wants no shell."""

    @property
    def why(self) -> str:
        """The reason, and the fix where there is one, in one line."""
        return f"{self.reason}. To have a shell, {self.fix}" if self.fix else self.reason


async def choose_sandbox(memory: Path | None, *, unsafe: bool = False) -> Sandbox:
    """Take the first sandbox that stops every attack.

    Args:
        memory: The folder where attestations of this host are kept; None: always try anew.
        unsafe: Do without, because the user said so.
    """
    if unsafe:
        return Sandbox(Unconfined(), "there is no sandbox, because --unsafe-shell was given")
    tried: list[Attestation] = []
    for confinement, program in candidates():
        attestation = await _attested(confinement, program, memory)
        tried.append(attestation)
        if attestation.holds:
            return Sandbox(confinement, "; ".join(one.words for one in tried), tuple(tried))
    reasons = "; ".join(attestation.words for attestation in tried) or "this machine has no sandbox"
    is_installed = any(attestation.tier is SandboxTier.BUBBLEWRAP for attestation in tried)
    return Sandbox(None, reasons, tuple(tried), ALLOW_IT if is_installed else GET_IT)


def python_folders() -> tuple[Path, ...]:
    """Return the Python that runs the engine, so that commands have it with its libraries."""
    return tuple(dict.fromkeys((Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve())))


def candidates() -> list[tuple[Confinement, str]]:
    """Return what this machine might have, the best first, each with its program if it is one."""
    found: list[tuple[Confinement, str]] = []
    if sys.platform == "darwin":
        program = shutil.which("sandbox-exec")
        return [(Seatbelt(program), program)] if program else []
    if not supported():
        return []
    bubblewrap = shutil.which("bwrap", path="/usr/bin:/usr/local/bin:/bin")
    if bubblewrap:
        found.append((Bubblewrap(bubblewrap), bubblewrap))
    if is_offered():
        found.append((Landlock(), ""))
    return found


async def _attested(confinement: Confinement, program: str, memory: Path | None) -> Attestation:
    path = memory / f"sandbox-{fingerprint(confinement, program)}.json" if memory else None
    known = remembered(path) if path else None
    if known:
        return known
    attestation = await attest(confinement, python_folders())
    if path:
        remember(path, attestation)
    return attestation
