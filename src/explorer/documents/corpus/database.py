"""The database of the index: documents with their texts, and the words of their passages in an FTS5 table.

The database is a cache: if it is damaged, it is built again from the folder. A document is replaced in one transaction,
so that a killed process leaves only whole documents, and another process reads only whole documents. Each document has
a mark of the user's key, because a folder from elsewhere may bring an index; what has none is read again.
"""

import hashlib
import json
import re
import sqlite3
import threading
import zlib
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from explorer.documents.corpus.folder import FoundFile
from explorer.documents.corpus.passages import Passage, indexed
from explorer.schema.errors import ToolError
from explorer.workspace.user_key import NO_KEY, UserKey

VERSION = 2
"""The version of the tables and of the conversion to text; an index of another version is built again."""
APPLICATION = 0x45585043
WAIT_S = 30.0
"""The longest wait in seconds for another process that writes to the index."""
DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_SCHEMA})
"""SQLite's error codes for a damaged file; most other codes mean a problem with the disk or a lock."""
PART_MISSING = re.compile("no such|vtable constructor failed|file format")
"""Matches messages of `SQLITE_ERROR` that mean a damaged file; SQLite uses this code for wrong queries, too."""
TABLES = """
CREATE TABLE documents (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, path TEXT NOT NULL, size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, sha256 TEXT NOT NULL, title TEXT NOT NULL,
    author TEXT NOT NULL, published TEXT NOT NULL, language TEXT NOT NULL, flags TEXT NOT NULL,
    pages INTEGER NOT NULL, page_starts TEXT NOT NULL, chars INTEGER NOT NULL, text BLOB NOT NULL, digest TEXT NOT NULL,
    problem TEXT NOT NULL, attempts INTEGER NOT NULL, mark TEXT NOT NULL
);
CREATE TABLE passages (
    id INTEGER PRIMARY KEY, document INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL,
    page INTEGER NOT NULL
);
CREATE INDEX passages_by_document ON passages (document);
CREATE VIRTUAL TABLE words USING fts5 (title, name, text, tokenize = 'porter unicode61 remove_diacritics 2');
"""


INCOMPLETE = (
    "SELECT EXISTS (SELECT 1 FROM documents WHERE problem = '' AND id NOT IN (SELECT document FROM passages))",
    "SELECT (SELECT count(*) FROM passages) <> (SELECT count(*) FROM words_docsize)",
)
"""Queries that return 1 for an index with missing parts and 0 for a complete one."""


class DamagedIndexError(Exception):
    """The file is damaged or is not an index, so it must be built again."""


def connect(path: Path, *, is_kept: bool = True) -> sqlite3.Connection:
    """Open an index; the tables of an empty file, or of a file of another version, are created again.

    Args:
        path: The file.
        is_kept: Whether it is used; else a file without a name is, which is gone when it is closed.

    Raises:
        DamagedIndexError: The file is damaged or is not an index.
        ToolError: The disk or another process prevents the use of the file, or this machine's SQLite has no FTS5.
    """
    with sorted_errors(path):
        # Each statement is a transaction of its own unless one is begun.
        connection = sqlite3.connect(
            path if is_kept else "", timeout=WAIT_S, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            _lay_out(connection)
            _check(connection)
        except BaseException:
            connection.close()
            raise
    return connection


def _lay_out(connection: sqlite3.Connection) -> None:
    with transaction(connection):
        if _mark(connection) == (APPLICATION, VERSION):
            if _schema(connection) != _own_schema():
                raise DamagedIndexError("it has other tables than an index")
            return
        names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        for (name,) in connection.execute(f"{names} ORDER BY sql LIKE 'CREATE VIRTUAL%' DESC").fetchall():
            quoted = name.replace('"', '""')
            connection.execute(f'DROP TABLE IF EXISTS "{quoted}"')
        _make_tables(connection)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")


def _schema(connection: sqlite3.Connection) -> list[tuple[str, str, str | None]]:
    return connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()


def _own_schema() -> list[tuple[str, str, str | None]]:
    """Return the tables of an index as this SQLite makes them: nothing else, such as a trigger, may be in a file."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        _make_tables(connection)
        return _schema(connection)


def _make_tables(connection: sqlite3.Connection) -> None:
    try:
        for statement in TABLES.strip().split(";\n"):
            connection.execute(statement)
    except sqlite3.OperationalError as error:
        if "fts5" not in str(error):
            raise
        raise ToolError.of("a folder cannot be searched: the SQLite of this Python has no FTS5") from error


def _mark(connection: sqlite3.Connection) -> tuple[int, int]:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return application, version


def _check(connection: sqlite3.Connection) -> None:
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise DamagedIndexError(str(found))
    connection.execute("SELECT rowid FROM words WHERE words MATCH 'a' LIMIT 1").fetchall()
    for incomplete in INCOMPLETE:
        if connection.execute(incomplete).fetchone()[0]:
            raise DamagedIndexError("parts of the index are missing")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None]:
    """Run a block as one transaction: all of its changes are stored, or none; other writers wait from its start."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


@contextmanager
def sorted_errors(path: Path) -> Generator[None]:
    """Turn SQLite's errors into `DamagedIndexError` for a damaged index, or `ToolError` for a disk or a lock."""
    try:
        yield
    except sqlite3.ProgrammingError:  # a mistake of ours
        raise
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code in DAMAGED or (code == sqlite3.SQLITE_ERROR and PART_MISSING.search(str(error))):
            raise DamagedIndexError(str(error)) from error
        if code == sqlite3.SQLITE_ERROR:
            raise
        raise ToolError.of(
            "the folder cannot be searched: its index {path} cannot be used ({error})", path=path, error=error
        ) from error


def remove(path: Path) -> None:
    """Remove an index and the files that SQLite keeps next to it.

    Raises:
        ToolError: The system does not allow the removal.
    """
    for suffix in ("", "-wal", "-shm"):
        try:
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        except (IsADirectoryError, PermissionError) as error:
            words = "the folder cannot be searched: its index {path} cannot be replaced ({error})"
            raise ToolError.of(words, path=path, error=error) from error


WEIGHTS = (4.0, 2.0, 1.0)
"""The weights of a word in the title, in the name and in the text of a document."""
FILL = (
    "INSERT INTO documents VALUES (NULL, :name, :path, :size, :mtime_ns, :ctime_ns, :sha256, :title, :author,"
    " :published, :language, :flags, :pages, :page_starts, :chars, :text, :digest, :problem, :attempts, :mark)"
)
RANK = """
WITH found AS MATERIALIZED (SELECT rowid AS passage, bm25(words, ?, ?, ?) AS score FROM words WHERE words MATCH ?)
SELECT passages.document, passages.id, min(found.score) FROM found JOIN passages ON passages.id = found.passage
{only} GROUP BY passages.document ORDER BY 3, 1 LIMIT ?
"""
ONLY = "WHERE passages.document IN (SELECT value FROM json_each(?))"
KNOWN = "SELECT id, name, path, size, mtime_ns, ctime_ns, sha256, problem, attempts FROM documents"
COLUMNS = (
    "name, path, size, mtime_ns, ctime_ns, sha256, title, author, published, language, flags, pages, page_starts,"
    " chars, digest, problem, attempts"
)
"""What the mark of a document is of; its text is in it by the digest."""
MARKED = f"SELECT id, mark, {COLUMNS} FROM documents"  # noqa: S608 - our own columns
PURPOSE = "corpus"
TOUCH = "UPDATE documents SET path = ?, size = ?, mtime_ns = ?, ctime_ns = ?, mark = ? WHERE name = ?"
DOCUMENT = (
    "SELECT path, title, author, published, language, mtime_ns, flags, pages, page_starts, text, digest FROM documents"
    " WHERE id = ?"
)
Value = TypeVar("Value")


@dataclass(frozen=True)
class KnownFile:
    """A file in the index."""

    id: int
    file: FoundFile
    sha256: str
    problem: str
    """The reason why the file has no text; empty when it has text."""
    attempts: int


@dataclass(frozen=True)
class StoredDocument:
    """A document as the index stores it."""

    path: str
    title: str
    author: str = ""
    published: str = ""
    language: str = ""
    mtime_ns: int = 0
    flags: tuple[str, ...] = ()
    pages: int = 0
    page_starts: tuple[tuple[int, int], ...] = ()
    """Pairs of the offset in the text where a page begins and the page's number; empty for a text without pages."""
    text: str = ""


@dataclass(frozen=True)
class IndexEntry:
    """A document to store in the index, or the problem with its file."""

    file: FoundFile
    sha256: str
    document: StoredDocument | None = None
    passages: tuple[Passage, ...] = ()
    problem: str = ""
    attempts: int = 1


@dataclass(frozen=True)
class RankedPassage:
    """A document in a ranking, with its best passage."""

    document: int
    passage: int
    score: float
    """The score of the document; larger is better."""
    named_in: int = 0
    """The id of the document that names this one by its title; 0 when this one matches the query itself."""


class Database:
    """The database of an index; its methods block, and any thread may call them.

    Args:
        path: The file.
        key: Marks what is stored; without one, nothing is kept.
    """

    def __init__(self, path: Path, key: UserKey = NO_KEY) -> None:
        self._path = path
        self._key = key
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def open(self) -> None:
        """Open the file; a missing or damaged file, or one of another version, is created again.

        Raises:
            ToolError: The disk or another process prevents the use of the file.
        """
        with self._lock:
            if self._connection is not None:
                return
            try:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise ToolError.of(
                    "the folder cannot be searched: no index can be kept in {parent}", parent=self._path.parent
                ) from error
            is_kept = self._key.is_there
            try:
                self._connection = connect(self._path, is_kept=is_kept)
            except DamagedIndexError:
                remove(self._path)
                self._connection = connect(self._path, is_kept=is_kept)

    def close(self) -> None:
        """Close the file if it is open."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def discard(self) -> None:
        """Close and remove a damaged file."""
        self.close()
        remove(self._path)

    def _run(self, work: Callable[[sqlite3.Connection], Value]) -> Value:
        with self._lock:
            if self._connection is None:
                raise ToolError.of("the index of the folder is closed")
            with sorted_errors(self._path):
                return work(self._connection)

    def _all(self, ask: str, *values: object) -> list[tuple[Any, ...]]:
        return self._run(lambda db: db.execute(ask, values).fetchall())

    def _one(self, ask: str, *values: object) -> tuple[Any, ...]:
        """Return the first row of a query that must have one.

        Raises:
            DamagedIndexError: The row is missing.
        """
        rows = self._all(ask, *values)
        if not rows or rows[0][0] is None:
            raise DamagedIndexError("a part of the index is missing")
        return rows[0]

    def known(self) -> dict[str, KnownFile]:
        """Return every file in the index, by its name on disk."""
        return {row[1]: KnownFile(row[0], FoundFile(*row[1:6]), *row[6:]) for row in self._all(KNOWN)}

    def remove(self, documents: Iterable[int]) -> None:
        """Remove the documents with these ids."""

        def forget(db: sqlite3.Connection) -> None:
            with transaction(db):
                for document in documents:
                    _forget(db, document)

        self._run(forget)

    def remove_foreign(self) -> None:
        """Remove the documents that this user's explorer did not store as they are."""
        if self._key.is_there:
            rows, made = self._all(MARKED), self._key.made
            self.remove([row[0] for row in rows if not made(str(row[1]), PURPOSE, self._marked(row[2:]))])

    def touch(self, file: FoundFile) -> None:
        """Store the new path, size and times of a file whose content is unchanged."""
        row = self._one(f"{MARKED} WHERE name = ?", file.name)
        here = (file.path, file.size, file.mtime_ns, file.ctime_ns)
        mark = self._key.mark(PURPOSE, self._marked((file.name, *here, *row[7:])))
        self._all(TOUCH, *here, mark, file.name)

    def put(self, entry: IndexEntry) -> None:
        """Replace everything that the index stores about a file, in one transaction."""
        values = _values(entry)
        values["mark"] = self._key.mark(PURPOSE, self._marked([values[name] for name in COLUMNS.split(", ")]))

        def replace(db: sqlite3.Connection) -> None:
            with transaction(db):
                _put(db, entry, values)

        self._run(replace)

    def _marked(self, values: Sequence[object]) -> bytes:
        """Return what a mark is of; with the index's name, so that no document of another folder's index counts."""
        return json.dumps([self._path.name, *values], default=str).encode()

    def titles(self) -> list[tuple[int, str, str]]:
        """Return the id, path and title of each document with text, sorted by path."""
        rows = self._all("SELECT id, path, title FROM documents WHERE problem = '' ORDER BY path")
        return [(row[0], row[1], row[2]) for row in rows]

    def chars(self) -> int:
        """Return the number of characters in all texts together."""
        return int(self._one("SELECT coalesce(sum(chars), 0) FROM documents")[0])

    def rank(self, match: str, limit: int, documents: Sequence[int] | None = None) -> list[RankedPassage]:
        """Return the documents with the best passages for an FTS5 query, best first; `documents` limits their ids."""
        only = [] if documents is None else [json.dumps(documents)]
        rows = self._all(RANK.format(only=ONLY if only else ""), *WEIGHTS, match, *only, limit)
        return [RankedPassage(document, passage, -score) for document, passage, score in rows]

    def count(self, match: str, most: int) -> int:
        """Return the number of passages that match an FTS5 query, but at most `most`."""
        ask = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)"
        return int(self._one(ask, match, most)[0])

    def passage(self, identifier: int) -> Passage:
        """Return the position of a passage in its text."""
        start, end, page = self._one("SELECT start, end, page FROM passages WHERE id = ?", identifier)
        return Passage(start, end, page)

    def first_passage(self, document: int) -> int:
        """Return the id of a document's first passage."""
        return int(self._one("SELECT min(id) FROM passages WHERE document = ?", document)[0])

    def document(self, identifier: int) -> StoredDocument:
        """Return a document with its text, after a check that the text is the one that was stored."""
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


def _put(db: sqlite3.Connection, entry: IndexEntry, values: dict[str, object]) -> None:
    for (old,) in db.execute("SELECT id FROM documents WHERE name = ?", (entry.file.name,)).fetchall():
        _forget(db, old)
    identifier = db.execute(FILL, values).lastrowid
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
