"""How much agents may have in a run's folder: counted as they write, and by a look at the folder now and then."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from explorer.schema.errors import ToolError

RECOUNT_AFTER = 64
"""Writes until the folder is looked at again, for what commands wrote and removed."""


@dataclass(frozen=True)
class Quota:
    """What agents may have in a run's folder, the engine's own left out."""

    bytes: int = 1024 * 1024 * 1024
    """As they take room on the disk: the holes of a sparse file do not count."""
    files: int = 20_000
    """Files and folders."""


@dataclass(frozen=True)
class Held:
    """What is in the folder."""

    files: int
    bytes: int


class QuotaTracker:
    """Keeps count. `look` counts what is there; it may stop once there is more than the quota."""

    def __init__(self, quota: Quota, look: Callable[[], Held]) -> None:
        self._quota = quota
        self._look = look
        self._held = Held(0, 0)
        self._writes_left = 0
        self._lock = threading.Lock()

    def take(self, path: str, files: int, size: int) -> None:
        """Count a write in that adds files and bytes; one that adds neither is always let through.

        Raises:
            ToolError: It would be too much; says what would help.
        """
        with self._lock:
            after = self._after(files, size)
            if self._writes_left <= 0 or self._is_too_much(after):
                self._held = self._look()
                self._writes_left = RECOUNT_AFTER
                after = self._after(files, size)
            if (files > 0 or size > 0) and self._is_too_much(after):
                raise ToolError(
                    f"{path} is not written: this run's folder would hold {after.files} files and {after.bytes} bytes, "
                    f"and {self._quota.files} files and {self._quota.bytes} bytes are the limit; "
                    "write into files that are there, shorten them, or remove what is not needed"
                )
            self._held = after
            self._writes_left -= 1

    def _after(self, files: int, size: int) -> Held:
        return Held(self._held.files + files, self._held.bytes + size)

    def _is_too_much(self, held: Held) -> bool:
        return held.files > self._quota.files or held.bytes > self._quota.bytes
