"""Marks by which a run's journal proves that this user's explorer wrote it, and that nobody has changed it since.

Each line has a mark of the line and of the mark before, made with the user's key. Where all lines have theirs, the run
is the user's own, wherever its folder is now. Any other run was carried here: brought by an archive, a repository or a
shared folder, or written before there were marks.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from explorer.journal.codec import GENESIS, encode, examine
from explorer.schema.events import JournalRecord
from explorer.workspace.access import journal_path
from explorer.workspace.user_key import NO_KEY, UserKey

PURPOSE = "journal"
MARK = re.compile(rb',"mark":"([0-9a-f]{32})","crc":"[0-9a-f]{8}"\}$')
"""The end of a marked line; the mark is of all that comes before it."""
MAX_END = 80
"""More characters than the end of a line has."""


@dataclass(frozen=True)
class MarkChain:
    """The place after a marked line, or before the first one."""

    key: UserKey
    last: str = ""
    """The mark of the line before; empty before the first one."""

    def sign(self, head: bytes) -> str:
        """Return the mark of the next line, made of what comes before its mark."""
        return self.key.mark(PURPOSE, self.last.encode() + head)

    def after(self, line: bytes) -> "MarkChain":
        """Return the place after a line that was just signed."""
        found = MARK.search(line.rstrip(b"\n"), max(0, len(line) - MAX_END))
        assert found is not None
        return replace(self, last=found[1].decode())

    def checked_after(self, line: bytes) -> "MarkChain | None":
        """Return the place after a line; None when its mark is missing or was made by somebody else."""
        found = MARK.search(line, max(0, len(line) - MAX_END))
        if found is None or not self.key.made(found[1].decode(), PURPOSE, self.last.encode() + line[: found.start()]):
            return None
        return replace(self, last=found[1].decode())


def chain_of(content: bytes, key: UserKey) -> MarkChain | None:
    """Return the place after the whole lines of a journal; None when not all of them have the key's marks."""
    chain = MarkChain(key) if key.is_there else None
    for line in content.split(b"\n")[:-1]:
        if chain is None:
            return None
        chain = chain.checked_after(line)
    return chain


def encode_marked(records: Iterable[JournalRecord], key: UserKey) -> bytes:
    """Return a whole journal with these records, each marked as the user's own."""
    lines: list[bytes] = []
    crc, chain = GENESIS, MarkChain(key)
    for record in records:
        line, crc = encode(record, crc, sign=chain.sign)
        chain = chain.after(line)
        lines.append(line)
    return b"".join(lines)


def is_own(folder: Path, key: UserKey = NO_KEY) -> bool:
    """Return whether this user's explorer wrote a run's whole journal."""
    try:
        content = journal_path(folder).read_bytes()
    except OSError:
        return False
    return chain_of(content[: examine(content).good_bytes], key) is not None
