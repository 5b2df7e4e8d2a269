"""A second place for the lines of a journal, which each of them reaches before its file."""

from collections.abc import Sequence
from typing import Protocol

from explorer.schema.events import JournalRecord


class JournalStore(Protocol):
    """Takes the lines of a run's journal, in their order, or refuses them.

    It is called in the journal's own thread, and may block. What it refuses does not reach the file, and the run's
    work ends with an error. What it has taken may be missing in the file after a crash: then it is the truth.
    """

    def write(self, entries: Sequence[tuple[JournalRecord, bytes]], *, is_synced: bool) -> None:
        """Take records, each with its line.

        Args:
            entries: The records, and their lines with the newline.
            is_synced: Whether callers wait until they are safe; if not, they may be kept back until the next call.

        Raises:
            OSError: They cannot be written; `strerror` says why.
        """


class NoStore:
    """There is no second place."""

    def write(self, entries: Sequence[tuple[JournalRecord, bytes]], *, is_synced: bool) -> None:
        """Take nothing."""
