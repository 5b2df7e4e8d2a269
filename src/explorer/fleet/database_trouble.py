"""What it means when the fleet's database refuses: whether that passes by itself, and the command that fixes it."""

import shlex
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoConnectionError

from explorer.schema.errors import StorageError

POSTGRES_PORT = 5432
MAX_WORDS_CHARS = 300
PASSING_SQLSTATES = ("08", "53", "57P", "25006", "25P03")
"""How Postgres' codes begin for: no connection, no disk, memory or connections left, ended or starting, read-only, and
a transaction that did nothing for too long."""
PASSING_SQLITE = ("BUSY", "LOCKED", "FULL", "IOERR", "READONLY", "CANTOPEN")
ADDRESS = "EXPLORER_FLEET_DATABASE"
OTHER_FIX = f"see that it runs and that the address is right: {ADDRESS}"
NO_CHANGES = f"let your user write to the file and its folder, or name another file: {ADDRESS}"
FIXES = {
    ("password",): f"try the user and the password: psql {{place}} {{name}}; then put them into {ADDRESS}",
    ("database", "does not exist"): f"make it: createdb {{place}} {{name}}; or name another one: {ADDRESS}",
    ("refused",): f"see whether it runs there: pg_isready {{server}}; its address: {ADDRESS}",
    ("permission denied for table",): (
        f"to change something, name a user that may: {ADDRESS}; to let this one read: "
        "GRANT pg_read_all_data TO {user}"
    ),
    ("permission denied",): "as an administrator of the database: ALTER DATABASE {name} OWNER TO {user}",
    ("read-only transaction",): f"name the server that takes changes, not a copy of it: {ADDRESS}",
    ("no space",): "free space on the disk of the database",
    ("too many",): "start fewer workers, each has about ten connections; or raise max_connections of the server",
}
"""Words that a refusal of Postgres has, and what fixes it. The words are English: a server that speaks another language
leads to `OTHER_FIX`, because the driver has no code for what happens before there is a connection."""


class DatabaseAwayError(StorageError):
    """The database does not answer, or takes nothing at present; nothing is wrong with what it was asked."""


@contextmanager
def translated(url: sa.URL, place: str) -> Generator[None]:
    """Turn the errors of the database's library inside into those of this package.

    Raises:
        StorageError: The database does not answer or refuses.
    """
    try:
        yield
    except SQLAlchemyError as error:
        raise storage_error(error, url, place) from error


def storage_error(error: SQLAlchemyError, url: sa.URL, place: str) -> StorageError:
    """Return the error of a database that does not answer or refuses, in words, with what fixes it.

    Args:
        error: The library's.
        url: The address of the database.
        place: The same, as it may be shown.
    """
    cause = error.orig if isinstance(error, DBAPIError) else error
    words = " ".join(str(cause).split())[:MAX_WORDS_CHARS] or type(cause).__name__
    kind = DatabaseAwayError if _passes(error) else StorageError
    return kind(f"the fleet's database {place} cannot be used: {words}", hint=_fix(words.lower(), url))


def _passes(error: SQLAlchemyError) -> bool:
    """Return whether the same can succeed later, without a change of what was asked."""
    if not isinstance(error, DBAPIError):
        return isinstance(error, NoConnectionError)
    if isinstance(error.orig, sqlite3.Error):
        return str(getattr(error.orig, "sqlite_errorname", "")).removeprefix("SQLITE_").startswith(PASSING_SQLITE)
    code: str | None = getattr(error.orig, "sqlstate", None)
    if code is None:
        return error.connection_invalidated or isinstance(error, OperationalError)
    return code.startswith(PASSING_SQLSTATES)


def _fix(words: str, url: sa.URL) -> str:
    if url.get_backend_name() == "sqlite":
        return NO_CHANGES if "readonly" in words else OTHER_FIX
    fix = next((fix for parts, fix in FIXES.items() if all(part in words for part in parts)), OTHER_FIX)
    server = f"-h {shlex.quote(url.host or 'localhost')} -p {url.port or POSTGRES_PORT}"
    user, name = url.username or "USER", url.database or "NAME"
    return fix.format(
        server=server, place=f"{server} -U {shlex.quote(user)}", user=shlex.quote(user), name=shlex.quote(name)
    )
