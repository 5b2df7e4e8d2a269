"""What the index holds: documents with their texts and, in FTS5, the words of their passages.

It is a cache: whatever is wrong with it, it is made anew from the folder. A document is replaced in one transaction,
so that a process that is killed, or another one at the same time, leaves or sees whole documents only.
"""

import hashlib
import json
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from explorer.documents.corpus.folder import FoundFile
from explorer.documents.corpus.passages import Passage
from explorer.documents.corpus.schema import DamagedIndexError, connect, remove, sorted_errors, transaction
from explorer.documents.corpus.words import indexed
from explorer.schema.errors import ToolError

TITLE_WEIGHT, NAME_WEIGHT, TEXT_WEIGHT = 4.0, 2.0, 1.0
FILL = (
    "INSERT INTO documents VALUES (NULL, :name, :path, :size, :mtime_ns, :ctime_ns, :sha256, :title, :author,"
    " :published, :language, :flags, :pages, :page_starts, :chars, :text, :digest, :problem, :attempts)"
)
RANK = """
WITH found AS MATERIALIZED (SELECT rowid AS passage, bm25(words, ?, ?, ?) AS score FROM words WHERE words MATCH ?)
SELECT passages.document, passages.id, min(found.score) FROM found JOIN passages ON passages.id = found.passage
{only} GROUP BY passages.document ORDER BY 3, 1 LIMIT ?
"""
ONLY = "WHERE passages.document IN (SELECT value FROM json_each(?))"
KNOWN = "SELECT id, name, path, size, mtime_ns, ctime_ns, sha256, problem, attempts FROM documents"
TOUCH = "UPDATE documents SET path = ?, size = ?, mtime_ns = ?, ctime_ns = ? WHERE name = ?"
DOCUMENT = (
    "SELECT path, title, author, published, language, mtime_ns, flags, pages, page_starts, text, digest FROM documents"
    " WHERE id = ?"
)
Value = TypeVar("Value")


@dataclass(frozen=True)
class KnownFile:
    """What the index knows of a file."""

    id: int
    file: FoundFile
    sha256: str
    problem: str
    """Why it has no text; empty when it has."""
    attempts: int


@dataclass(frozen=True)
class StoredDocument:
    """A document as it was read into the index."""

    path: str
    title: str
    author: str = ""
    published: str = ""
    language: str = ""
    mtime_ns: int = 0
    flags: tuple[str, ...] = ()
    pages: int = 0
    page_starts: tuple[tuple[int, int], ...] = ()
    """Where in the text each page begins, with its number; empty where there are no pages."""
    text: str = ""


@dataclass(frozen=True)
class IndexEntry:
    """A document to be put into the index, or a problem in its place."""

    file: FoundFile
    sha256: str
    document: StoredDocument | None = None
    passages: tuple[Passage, ...] = ()
    problem: str = ""
    attempts: int = 1


@dataclass(frozen=True)
class Ranked:
    """A document's best passage."""

    document: int
    passage: int
    score: float
    """Larger is better."""


class Database:
    """The file, open; its methods block, and may be called from any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def open(self) -> None:
        """Open the file, made anew when it is missing, of another version or damaged.

        Raises:
            ToolError: The disk is in the way.
        """
        with self._lock:
            if self._connection is not None:
                return
            try:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise ToolError(
                    f"the folder cannot be searched: no index can be kept in {self._path.parent}"
                ) from error
            try:
                self._connection = connect(self._path)
            except DamagedIndexError:
                remove(self._path)
                self._connection = connect(self._path)

    def close(self) -> None:
        """Close the file, when it is open."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def discard(self) -> None:
        """Close and remove a file that was found damaged."""
        self.close()
        remove(self._path)

    def _run(self, work: Callable[[sqlite3.Connection], Value]) -> Value:
        with self._lock:
            if self._connection is None:
                raise ToolError("the index of the folder is closed")
            with sorted_errors(self._path):
                return work(self._connection)

    def _all(self, ask: str, *values: object) -> list[tuple[Any, ...]]:
        return self._run(lambda db: db.execute(ask, values).fetchall())

    def _one(self, ask: str, *values: object) -> tuple[Any, ...]:
        """A row that has to be there.

        Raises:
            DamagedIndexError: It is not.
        """
        rows = self._all(ask, *values)
        if not rows or rows[0][0] is None:
            raise DamagedIndexError("a part of the index is missing")
        return rows[0]

    def known(self) -> dict[str, KnownFile]:
        """Every file the index knows, by its name on disk."""
        rows = self._all(KNOWN)
        return {row[1]: KnownFile(row[0], FoundFile(*row[1:6]), *row[6:]) for row in rows}

    def remove(self, documents: Iterable[int]) -> None:
        """Forget files that are gone."""

        def forget(db: sqlite3.Connection) -> None:
            with transaction(db):
                for document in documents:
                    _forget(db, document)

        self._run(forget)

    def touch(self, file: FoundFile) -> None:
        """Note a file's new times: its content is the same."""
        self._all(TOUCH, file.path, file.size, file.mtime_ns, file.ctime_ns, file.name)

    def put(self, entry: IndexEntry) -> None:
        """Replace what is known of a file, all of it or nothing."""

        def replace(db: sqlite3.Connection) -> None:
            with transaction(db):
                _put(db, entry)

        self._run(replace)

    def titles(self) -> list[tuple[int, str, str]]:
        """Id, path and title of each document that has text."""
        rows = self._all("SELECT id, path, title FROM documents WHERE problem = '' ORDER BY path")
        return [(row[0], row[1], row[2]) for row in rows]

    def chars(self) -> int:
        """Of all texts together."""
        return int(self._one("SELECT coalesce(sum(chars), 0) FROM documents")[0])

    def rank(self, match: str, limit: int, documents: Sequence[int] | None = None) -> list[Ranked]:
        """The documents with the best passages for an FTS5 query, best first; among all, or among some."""
        only = [] if documents is None else [json.dumps(documents)]
        ask = RANK.format(only=ONLY if only else "")
        rows = self._all(ask, TITLE_WEIGHT, NAME_WEIGHT, TEXT_WEIGHT, match, *only, limit)
        return [Ranked(document, passage, -score) for document, passage, score in rows]

    def count(self, match: str, most: int) -> int:
        """How many passages meet an FTS5 query; counted no further than `most`."""
        ask = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)"
        return int(self._one(ask, match, most)[0])

    def passage(self, identifier: int) -> Passage:
        """One passage's place in its text."""
        start, end, page = self._one("SELECT start, end, page FROM passages WHERE id = ?", identifier)
        return Passage(start, end, page)

    def first_passage(self, document: int) -> int:
        """The id of a document's first passage."""
        return int(self._one("SELECT min(id) FROM passages WHERE document = ?", document)[0])

    def document(self, identifier: int) -> StoredDocument:
        """A document with its text, which is checked to be the one that was stored."""
        path, title, author, published, language, mtime_ns, *more = self._one(DOCUMENT, identifier)
        flags, pages, starts, packed, digest = more
        try:
            text = zlib.decompress(packed)
            marks = tuple(json.loads(flags))
            borders = tuple((offset, number) for offset, number in json.loads(starts))
        except (zlib.error, ValueError, TypeError) as error:
            raise DamagedIndexError(str(error)) from error
        if hashlib.sha256(text).hexdigest() != digest:
            raise DamagedIndexError(f"the text of {path} is not the one that was stored")
        return StoredDocument(
            path, title, author, published, language, mtime_ns, marks, pages, borders, text.decode("utf-8", "replace")
        )


def _put(db: sqlite3.Connection, entry: IndexEntry) -> None:
    for (old,) in db.execute("SELECT id FROM documents WHERE name = ?", (entry.file.name,)).fetchall():
        _forget(db, old)
    identifier = db.execute(FILL, _values(entry)).lastrowid
    if entry.document is None:
        return
    title, name = indexed(entry.document.title), indexed(entry.file.path)
    for passage in entry.passages:
        row = (identifier, passage.start, passage.end, passage.page)
        place = db.execute("INSERT INTO passages (document, start, end, page) VALUES (?, ?, ?, ?)", row).lastrowid
        text = indexed(entry.document.text[passage.start : passage.end])
        db.execute("INSERT INTO words (rowid, title, name, text) VALUES (?, ?, ?, ?)", (place, title, name, text))


def _values(entry: IndexEntry) -> dict[str, object]:
    document = entry.document or StoredDocument(entry.file.path, "")
    text = document.text.encode()
    return {
        **{name: getattr(entry.file, name) for name in ("name", "path", "size", "mtime_ns", "ctime_ns")},
        **{name: getattr(document, name) for name in ("title", "author", "published", "language")},
        "sha256": entry.sha256,
        "flags": json.dumps(document.flags),
        "pages": document.pages,
        "page_starts": json.dumps(document.page_starts),
        "chars": len(document.text),
        "text": zlib.compress(text, 3),
        "digest": hashlib.sha256(text).hexdigest(),
        "problem": entry.problem,
        "attempts": entry.attempts,
    }


def _forget(db: sqlite3.Connection, document: int) -> None:
    db.execute("DELETE FROM words WHERE rowid IN (SELECT id FROM passages WHERE document = ?)", (document,))
    db.execute("DELETE FROM passages WHERE document = ?", (document,))
    db.execute("DELETE FROM documents WHERE id = ?", (document,))
