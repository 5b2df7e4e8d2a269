"""The index's file: opened, checked, laid out anew when it is not what it should be, and its errors sorted."""

import re
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

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
    """Remove an index with what SQLite keeps beside it.

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
