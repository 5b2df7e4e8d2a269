"""Which sandbox this machine has: the best that was seen to hold, which is kept for the next start."""

import hashlib
import os
import platform
import shutil
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from explorer.kernel import bpf
from explorer.sandbox import landlock_launcher
from explorer.sandbox.bubblewrap import Bubblewrap, UnprivilegedUser
from explorer.sandbox.confinement import Confinement, SandboxTier, Unconfined
from explorer.sandbox.landlock import Landlock, is_offered
from explorer.sandbox.seccomp import supported
from explorer.sandbox.self_test import Attestation, attest, python_program
from explorer.workspace.safe_open import make_private_folder, write_private

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def fingerprint(confinement: Confinement, program: str, beside: Path | None) -> str:
    """Return what an attestation holds for: this boot of this kernel, this user, disk, program, and our own code."""
    facts = [
        repr(confinement),
        platform.node(),
        platform.release(),
        platform.version(),
        _content(BOOT_ID).decode("ascii", "replace"),
        str(os.geteuid()),
        str(beside.stat().st_dev) if beside else "",
        python_program(),
        sys.version,
        program,
        *(hashlib.sha256(_content(path)).hexdigest() for path in (Path(program), *_own_code()) if path.is_file()),
    ]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:32]


def _own_code() -> list[Path]:
    return sorted((*Path(__file__).parent.glob("*.py"), Path(bpf.__file__)))


def _content(path: Path) -> bytes:
    with suppress(OSError):
        return path.read_bytes()
    return b""


def remembered(path: Path) -> Attestation | None:
    """Return an attestation of this very host; only one that holds is believed, and only from a file of one's own."""
    try:
        if not all(_is_own(one) for one in (path, path.parent)):
            return None
        known = Attestation.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
    return known if known.holds else None


def _is_own(path: Path) -> bool:
    """Return whether a file or a folder is this user's, is no link, and nobody else can write it."""
    status = path.lstat()
    return status.st_uid == os.geteuid() and not stat.S_ISLNK(status.st_mode) and not status.st_mode & OTHERS_WRITE


def remember(path: Path, attestation: Attestation) -> None:
    """Keep an attestation; a disk that refuses only costs the next start a tenth of a second."""
    with suppress(OSError):
        make_private_folder(path.parent)
        if _is_own(path.parent) and not path.is_symlink():
            write_private(path, attestation.model_dump_json().encode())


GET_IT = "install bubblewrap (Debian and Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap)"

PROGRAMS = "/usr/bin:/usr/local/bin:/bin"
NOTHING = "this machine has no sandbox"
GO_ELSEWHERE = "run explorer on Linux (x86_64 or aarch64), also in a container or a virtual machine: docs/docker.md"
TOO_OLD = f"landlock: version {{}} of this kernel is too old; {landlock_launcher.NEEDED} is needed (Linux 6.2)"
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
    set_by: str = ""
    """The flag, variable or file that decided it; empty where the machine did, or where that is not known."""

    @property
    def because(self) -> str:
        """The reason, and who decided it."""
        return f"{self.reason} by {self.set_by}" if self.set_by else self.reason

    @property
    def why(self) -> str:
        """The reason, who decided it, and the fix where there is one, in one line."""
        return f"{self.because}. To have a shell, {self.fix}" if self.fix else self.because


async def choose_sandbox(memory: Path | None, *, beside: Path | None = None, unsafe: bool = False) -> Sandbox:
    """Take the first sandbox that stops every attack.

    Args:
        memory: The user's own folder where attestations of this host are kept; None: always try anew.
        beside: The folder of the runs, because it depends on the disk what a sandbox can do; None: /tmp.
        unsafe: Do without, because the user said so.
    """
    if unsafe:
        return Sandbox(Unconfined(), "there is no sandbox, because the shell is set to unsafe")
    tried: list[Attestation] = []
    for confinement, program in candidates():
        attestation = await _attested(confinement, program, memory, beside)
        tried.append(attestation)
        if attestation.holds:
            return Sandbox(confinement, "; ".join(one.words for one in tried), tuple(tried))
    reasons = "; ".join([*(attestation.words for attestation in tried), *missing()])
    is_installed = any(attestation.tier is SandboxTier.BUBBLEWRAP for attestation in tried)
    fix = ALLOW_IT if is_installed else GET_IT
    return Sandbox(None, reasons or NOTHING, tuple(tried), fix if is_known_system() else GO_ELSEWHERE)


def is_known_system() -> bool:
    """Return whether sandboxes for this system are known."""
    return sys.platform.startswith("linux") and supported()


def missing() -> list[str]:
    """Return why Landlock is no candidate, where it is there and too old."""
    version = landlock_launcher.landlock_version() if is_known_system() else 0
    return [TOO_OLD.format(version)] if 0 < version < landlock_launcher.NEEDED else []


def python_folders() -> tuple[Path, ...]:
    """Return the Python that runs the engine, so that commands have it with its libraries."""
    return tuple(dict.fromkeys((Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve())))


def candidates() -> list[tuple[Confinement, str]]:
    """Return what this machine might have, the best first, each with its program if it is one."""
    found: list[tuple[Confinement, str]] = []
    if not is_known_system():
        return []
    bubblewrap = shutil.which("bwrap", path=PROGRAMS)
    if bubblewrap:
        user = unprivileged_user()
        found += [(Bubblewrap(bubblewrap, user), bubblewrap)] if user else []
        found.append((Bubblewrap(bubblewrap), bubblewrap))
    if is_offered():
        found.append((Landlock(), ""))
    return found


def unprivileged_user() -> UnprivilegedUser | None:
    """Return the user that commands run as where root runs the engine; None: the engine's own user has no rights."""
    program = shutil.which("nsenter", path=PROGRAMS) if os.geteuid() == 0 else None
    return UnprivilegedUser(program) if program else None


async def _attested(confinement: Confinement, program: str, memory: Path | None, beside: Path | None) -> Attestation:
    path = memory / f"sandbox-{fingerprint(confinement, program, beside)}.json" if memory else None
    known = remembered(path) if path else None
    if known:
        return known
    attestation = await attest(confinement, python_folders(), beside=beside)
    if path:
        remember(path, attestation)
    return attestation
