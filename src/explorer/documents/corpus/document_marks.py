"""The marks of the user's key on the documents of an index, by which one that a stranger stored is found out."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from explorer.workspace.user_key import UserKey

COLUMNS = (
    "name, path, size, mtime_ns, ctime_ns, sha256, title, author, published, language, flags, pages, page_starts,"
    " chars, digest, problem, attempts"
)
"""What the mark of a document is of; its text is in it by the digest."""
MARKED = f"SELECT id, mark, {COLUMNS} FROM documents"  # noqa: S608 - our own columns
PURPOSE = "corpus"


@dataclass(frozen=True)
class DocumentMarks:
    """Makes and checks the marks of one index."""

    index: str
    """The name of the index's file, which is in each mark, so that no document of another folder's index counts."""
    key: UserKey

    def of(self, values: Sequence[object]) -> str:
        """Return the mark of a document, given the values of `COLUMNS`."""
        return self.key.mark(PURPOSE, self._content(values))

    def is_own(self, mark: str, values: Sequence[object]) -> bool:
        """Return whether this user's explorer stored a document with these values."""
        return self.key.made(mark, PURPOSE, self._content(values))

    def _content(self, values: Sequence[object]) -> bytes:
        return json.dumps([self.index, *values], default=str).encode()
