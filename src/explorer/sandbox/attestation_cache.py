"""What a sandbox was seen to be worth is kept for the next start, where no agent and no other user can write."""

import hashlib
import os
import platform
import stat
import sys
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from explorer.kernel import bpf
from explorer.sandbox.confinement import Confinement
from explorer.sandbox.self_test import Attestation, python_program
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
