"""What the index holds: documents with their texts and, in FTS5, the words of their passages.

It is a cache: whatever is wrong with it, it is made anew from the folder. A document is replaced in one transaction,
so that a process that is killed, or another one at the same time, leaves or sees whole documents only.
"""

import hashlib
import json
import re
import sqlite3
import threading
import zlib
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from explorer.documents.corpus.folder import FoundFile
from explorer.documents.corpus.passages import Passage, indexed
from explorer.schema.errors import ToolError

VERSION = 1
"""Of the tables and of the way texts are made: another one in a file, older or newer, has it made anew."""
APPLICATION = 0x45585043
WAIT_S = 30.0
"""For another process that is writing."""
DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_SCHEMA})
"""Codes that say the file is not what it should be; the others say that the disk or a lock is in the way."""
PART_MISSING = re.compile("no such|vtable constructor failed|file format")
"""Words that say the same, under the code that mistakes of ours have too."""
TABLES = """
CREATE TABLE documents (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, path TEXT NOT NULL, size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, sha256 TEXT NOT NULL, title TEXT NOT NULL,
    author TEXT NOT NULL, published TEXT NOT NULL, language TEXT NOT NULL, flags TEXT NOT NULL,
    pages INTEGER NOT NULL, page_starts TEXT NOT NULL, chars INTEGER NOT NULL, text BLOB NOT NULL, digest TEXT NOT NULL,
    problem TEXT NOT NULL, attempts INTEGER NOT NULL
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
"""What holds of no index that is whole."""


class DamagedIndexError(Exception):
    """The file is no index of ours, or a damaged one: it has to be made anew."""


def connect(path: Path) -> sqlite3.Connection:
    """Open an index; an empty file, or one of another version, is laid out anew.

    Raises:
        DamagedIndexError: It is damaged, or no index at all.
        ToolError: The disk or another process is in the way, or this machine's SQLite cannot search texts.
    """
    with sorted_errors(path):
        # Each statement is a transaction of its own unless one is begun.
        connection = sqlite3.connect(path, timeout=WAIT_S, isolation_level=None, check_same_thread=False)
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
            return
        names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        for (name,) in connection.execute(f"{names} ORDER BY sql LIKE 'CREATE VIRTUAL%' DESC").fetchall():
            quoted = name.replace('"', '""')
            connection.execute(f'DROP TABLE IF EXISTS "{quoted}"')
        _make_tables(connection)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")


def _make_tables(connection: sqlite3.Connection) -> None:
    try:
        for statement in TABLES.strip().split(";\n"):
            connection.execute(statement)
    except sqlite3.OperationalError as error:
        if "fts5" not in str(error):
            raise
        raise ToolError("a folder cannot be searched: the SQLite of this Python has no FTS5") from error


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
    """All of what is done inside, or nothing; others wait from the beginning on."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


@contextmanager
def sorted_errors(path: Path) -> Generator[None]:
    """SQLite's errors, sorted by what mends them: a new index, or someone who looks after the disk."""
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
        raise ToolError(f"the folder cannot be searched: its index {path} cannot be used ({error})") from error


def remove(path: Path) -> None:
    """Remove an index with what SQLite keeps next to it.

    Raises:
        ToolError: The disk refuses.
    """
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            try:
                Path(f"{path}{suffix}").unlink()
            except (IsADirectoryError, PermissionError) as error:
                raise ToolError(
                    f"the folder cannot be searched: its index {path} cannot be replaced ({error})"
                ) from error


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
