"""A journal's second place: it takes each line before the file does, and what it refuses is not written."""

import errno
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine_stage import noon
from explorer.journal.journal import Journal, Protection, read
from explorer.schema.errors import StorageError
from explorer.schema.events import JournalRecord, NoteAdded
from explorer.schema.reasons import NoteReason


@dataclass
class Shelf:
    """Keeps lines, or refuses them."""

    is_full: bool = False
    lines: list[bytes] = field(default_factory=list[bytes])

    def write(self, entries: Sequence[tuple[JournalRecord, bytes]], *, is_synced: bool) -> None:  # noqa: ARG002 - the port's
        """Take the lines."""
        if self.is_full:
            raise OSError(errno.ESTALE, "somebody else has the run")
        self.lines += [line for _, line in entries]


async def test_each_line_is_in_both_places(tmp_path: Path) -> None:
    """In the same order, and a repaired tail, too."""
    shelf = Shelf()
    journal = Journal.open(tmp_path, noon, protection=Protection(store=shelf))
    for text in ("one", "two"):
        await journal.append(NoteAdded(text=text, reason=NoteReason.EMPTY_REPLY))
    journal.close()
    path = tmp_path / "journal.jsonl"
    assert b"".join(shelf.lines) == path.read_bytes()
    path.write_bytes(path.read_bytes() + b"torn")
    Journal.open(tmp_path, noon, protection=Protection(store=shelf)).close()
    assert b"".join(shelf.lines) == path.read_bytes()
    assert read(path)[-1].event.type == "repaired"


async def test_what_is_refused_is_not_in_the_file(tmp_path: Path) -> None:
    """The caller gets the reason, and so does every later one."""
    shelf = Shelf()
    journal = Journal.open(tmp_path, noon, protection=Protection(store=shelf))
    await journal.append(NoteAdded(text="kept", reason=NoteReason.EMPTY_REPLY))
    shelf.is_full = True
    for _ in range(2):
        with pytest.raises(StorageError, match="somebody else has the run"):
            await journal.append(NoteAdded(text="refused", reason=NoteReason.EMPTY_REPLY))
        shelf.is_full = False
    journal.close()
    assert b"refused" not in (tmp_path / "journal.jsonl").read_bytes()
