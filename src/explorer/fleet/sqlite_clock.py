"""Gives an old SQLite the clock that the queue's library asks it for."""

import sqlite3
import time
from contextlib import closing

from sqlalchemy import event
from sqlalchemy.engine import Engine

SINCE = (3, 42)
"""The first SQLite with `unixepoch('subsec')`; see https://sqlite.org/lang_datefunc.html."""


def add_millisecond_clock() -> None:
    """Add `unixepoch('subsec')` to each connection to SQLite that this process opens from now on.

    On Python 3.12 and later the library stores times by that call. The SQLite of Debian 12, 3.40, answers it with NULL,
    and every submission failed. The library opens connections of its own, so the call is added to all.
    """
    if sqlite3.sqlite_version_info < SINCE and not event.contains(Engine, "connect", _add_clock):
        event.listen(Engine, "connect", _add_clock)


def _add_clock(connection: object, _record: object) -> None:
    native = getattr(connection, "driver_connection", connection)
    if isinstance(native, sqlite3.Connection):
        native.create_function("unixepoch", 1, _unixepoch)


def _unixepoch(moment: str | float | None) -> float | None:
    """Return seconds since 1970; of any moment but `subsec` as SQLite itself does."""
    if moment == "subsec":
        return time.time()
    with closing(sqlite3.connect(":memory:")) as clock:
        return clock.execute("SELECT unixepoch(?)", (moment,)).fetchone()[0]
