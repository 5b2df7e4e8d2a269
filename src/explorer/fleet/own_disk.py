"""The disk of a worker: while it has no space for a run, the worker takes none, and its runs go to others."""

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from loguru import logger

from explorer.schema.errors import JournalDamagedError, RunLockedError, StorageError

NEEDED_BYTES = 16_000_000
"""Less is no space for a run."""


@dataclass
class OwnDisk:
    """The disk with a worker's workspace. Its methods block: call them in a thread."""

    workspace: Path
    say: Callable[[str], None]
    """Is told in a line when runs are no longer taken, and when they are again."""
    trouble: str = ""
    """Why no run can be written at present; empty: nothing is known to be wrong."""

    def is_at_fault(self, error: Exception) -> bool:
        """Return whether a run ended because this disk takes nothing more, and not by what is in the run."""
        if not isinstance(error, StorageError) or isinstance(error, JournalDamagedError | RunLockedError):
            return False
        self._look()
        return bool(self.trouble)

    def has_space(self) -> bool:
        """Return whether a run can be written; only where one could not, the disk is tried again."""
        if self.trouble:
            self._look()
        return not self.trouble

    def _look(self) -> None:
        before, self.trouble = self.trouble, _trouble_of(self.workspace)
        if self.trouble and not before:
            logger.warning("no run is taken: {}: {}", self.workspace, self.trouble)
            self.say(f"no run is taken until there is space in {self.workspace}: {self.trouble}")
        elif before and not self.trouble:
            self.say(f"there is space in {self.workspace}: runs are taken again")


def _trouble_of(folder: Path) -> str:
    """Return why a folder has no space for a run; empty where it has."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, NEEDED_BYTES)
    except OSError as error:
        return error.strerror or type(error).__name__
    return ""
