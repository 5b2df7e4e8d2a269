"""The fleet's database: which runs were submitted, which worker has each, which workers are alive, and shared limits.

The queue itself is the workflow engine's (DBOS), in tables of its own in the same database. A run is in both: the
workflow engine decides who is handed it next, and the row here decides who may work on it.

A limit that all runs share is a row of `LIMITS`. What was spent of it in one day, month or in all is a row of
`SPENDING`. What a run at work may spend without asking again is a row of `HELD`. So what is left of a limit is its
amount, less what is spent, less what is held. Amounts are whole numbers: tokens, requests, and billionths of a dollar.

All times are seconds of the database's clock, so that workers whose clocks differ agree.
"""

import secrets
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Engine
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError

from explorer.fleet.database_trouble import translated
from explorer.schema.errors import ConfigError, StorageError

METADATA = sa.MetaData()
"""All tables of a fleet's database."""


def _limit_columns() -> list[sa.Column[str]]:
    """Return the columns that name a limit."""
    return [sa.Column(name, sa.Text, primary_key=True) for name in ("scope", "subject", "unit", "period")]


LIMITS = sa.Table("explorer_limits", METADATA, *_limit_columns(), sa.Column("amount", sa.BigInteger, nullable=False))
"""One row a limit: of what (`unit`), for whom (`scope`, `subject`), in which time (`period`)."""
SPENDING = sa.Table(
    "explorer_spending",
    METADATA,
    *_limit_columns(),
    sa.Column("window", sa.Text, primary_key=True),
    sa.Column("spent", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("held", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("refused", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("wanted_at", sa.Double, nullable=False, server_default="0"),
)
"""One row a limit and a day or month. `refused` is the latest need for which too little was left; `wanted_at` is when a
request last waited for what others hold."""
HELD = sa.Table(
    "explorer_held",
    METADATA,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("epoch", sa.Integer, primary_key=True, autoincrement=False),
    *_limit_columns(),
    sa.Column("window", sa.Text, primary_key=True),
    sa.Column("held", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("spent", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("after_seq", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("is_presumed", sa.Boolean, nullable=False, server_default=sa.false()),
)
"""What one taking of a run holds of a limit, and what of it was reported as spent. `after_seq` is the last record of
the journal before it. `is_presumed`: its worker died, and what it held counts as spent until its journal is read."""
RATES = sa.Table(
    "explorer_rates",
    METADATA,
    sa.Column("key_id", sa.Text, primary_key=True),
    sa.Column("requests", sa.Integer),
    sa.Column("period_s", sa.Double),
    sa.Column("next_at", sa.Double, nullable=False, server_default="0"),
    sa.Column("closed_until", sa.Double, nullable=False, server_default="0"),
    sa.Column("closed_why", sa.Text, nullable=False, server_default=""),
)
"""One row a provider key with a rate, or that was throttled. `next_at` is when the next request may be sent;
`closed_until` is until when none may, because the provider asked one of the workers to wait."""
TENANTS = sa.Table(
    "explorer_tenants",
    METADATA,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("served_at", sa.Double, nullable=False, server_default="0"),
)
"""One row a tenant, with the time when a run of its was last taken."""
SHARES = sa.Table(
    "explorer_tenant_shares",
    METADATA,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("share", sa.Integer, nullable=False),
)
"""One row a tenant that gets more of the workers than others: so many times as much."""


SCHEMA_VERSION = 1
SQLITE_WAIT_S = 30.0
"""How long a process waits while another one writes to the file."""
CONNECT_S = 10
MAX_IDLE_S = 60
"""Seconds for which a transaction may do nothing; Postgres ends a longer one, whose process is frozen: others wait."""
DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg"}
"""The databases that a fleet can use, and the driver for each."""
SHORT_SCHEME, SCHEME = "postgres://", "postgresql://"
"""Two names of the same: Postgres' own programs take both, and hosting services give the first."""

META = sa.Table(
    "explorer_fleet",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
"""Facts about the fleet: the version of these tables, and whether workers may take runs."""
SALT = "salt"
"""The name of the fact that the ids of provider keys are made with."""
RUNS = sa.Table(
    "explorer_runs",
    METADATA,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("workflow", sa.Text, nullable=False),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("idempotency_key", sa.Text),
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("settings", sa.Text, nullable=False),
    sa.Column("models", sa.Text, nullable=False, server_default=""),
    sa.Column("priority", sa.Integer, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("wanted", sa.Text, nullable=False, server_default=""),
    sa.Column("worker", sa.Text, nullable=False, server_default=""),
    sa.Column("epoch", sa.Integer, nullable=False, server_default="0"),
    sa.Column("deaths", sa.Integer, nullable=False, server_default="0"),
    sa.Column("submitted_at", sa.Double, nullable=False),
    sa.Column("queued_at", sa.Double, nullable=False),
    sa.Column("started_at", sa.Double),
    sa.Column("ended_at", sa.Double),
    sa.Column("status", sa.Text, nullable=False, server_default=""),
    sa.Column("reason", sa.Text, nullable=False, server_default=""),
    sa.Column("cost_usd", sa.Double),
    sa.UniqueConstraint("tenant", "idempotency_key"),
    sa.Index("explorer_runs_by_state", "state", "queued_at"),
    sa.Index("explorer_runs_by_tenant", "state", "tenant", "priority", "submitted_at"),
)
"""One row a run. `workflow` is its id in the queue, another one each time it is handed out again. `epoch` rises with
each worker that takes it; `deaths` counts workers that died with it. `models` is what was submitted of models."""
WORKERS = sa.Table(
    "explorer_workers",
    METADATA,
    sa.Column("worker", sa.Text, primary_key=True),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("process", sa.Integer, nullable=False),
    sa.Column("concurrency", sa.Integer, nullable=False),
    sa.Column("lease_s", sa.Double, nullable=False),
    sa.Column("started_at", sa.Double, nullable=False),
    sa.Column("seen_at", sa.Double, nullable=False),
)
"""One row a worker that has not ended; it is dead when `seen_at` is older than its lease."""

BATCHES = sa.Table(
    "explorer_batches",
    METADATA,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("last_seq", sa.Integer, nullable=False),
    sa.Column("lines", sa.LargeBinary, nullable=False),
    sa.Column("files", sa.Text, nullable=False),
)
"""What one commit of a run's journal added: whole lines, and the versions of the files that are new with them, as JSON.
All lines of a run, in the order of `number`, are its journal. Each write names its worker's epoch."""
CONTENTS = sa.Table(
    "explorer_contents",
    METADATA,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("sha256", sa.Text, primary_key=True),
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Column("place", sa.Text, nullable=False),
)
"""Pieces of files, by their SHA-256. They belong to one run each, so that a run can be removed at once, no run waits
for another one's, and no tenant learns what another has stored. A content with a `place` is in the object store."""
ORDERS = sa.Table(
    "explorer_orders",
    METADATA,
    sa.Column("order_id", sa.Text, primary_key=True),
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Index("explorer_orders_of_run", "run_id"),
)
"""Messages to runs. One is removed in the transaction that puts it on record in the run's journal."""
INPUTS = sa.Table(
    "explorer_inputs",
    METADATA,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("content", sa.LargeBinary, nullable=False),
)
"""Files that were submitted with a question, until its run has ended (`submission.py`)."""


def _limit_idleness(connection: DBAPIConnection, _record: object) -> None:
    # By a statement: the parameter of a connection is refused by poolers such as PgBouncer.
    with closing(connection.cursor()) as cursor:
        cursor.execute(f"SET idle_in_transaction_session_timeout = '{MAX_IDLE_S}s'")
    connection.commit()


class FleetDatabase:
    """A connection to the database, with the fleet's tables in it.

    Args:
        url: `sqlite:///PATH` or `postgresql://USER:PASSWORD@HOST/NAME`.

    Raises:
        ConfigError: The address cannot be used, or the tables are of a newer version.
        StorageError: The database does not answer or refuses.
    """

    def __init__(self, url: str) -> None:
        self.url = _driver_url(url)
        self.place = place_of(self.url)
        is_sqlite = self.url.get_backend_name() == "sqlite"
        arguments = {"timeout": SQLITE_WAIT_S} if is_sqlite else {"connect_timeout": CONNECT_S}
        if is_sqlite:
            add_millisecond_clock()
        if is_sqlite and self.url.database:
            _make_folder(Path(self.url.database).parent, self.place)
        self.engine = sa.create_engine(self.url, connect_args=arguments, pool_pre_ping=not is_sqlite)
        if not is_sqlite:
            event.listen(self.engine, "connect", _limit_idleness)
        self.now: sa.ColumnElement[float] = (
            sa.literal_column("((julianday('now') - 2440587.5) * 86400.0)", sa.Double)
            if is_sqlite
            else sa.literal_column("EXTRACT(EPOCH FROM clock_timestamp())::float8", sa.Double)
        )
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    @property
    def dsn(self) -> str:
        """The address with its password, for the workflow engine."""
        return self.url.render_as_string(hide_password=False)

    @contextmanager
    def transaction(self) -> Generator[sa.Connection]:
        """Give a connection whose changes take effect together at the end, or not at all.

        Raises:
            StorageError: The database does not answer or refuses.
            ConfigError: A text is not Unicode.
        """
        try:
            with translated(self.url, self.place), self.engine.begin() as connection:
                yield connection
        except UnicodeEncodeError as error:
            raise ConfigError("a name has characters that cannot be stored", hint="use letters and digits") from error

    def has_table(self, name: str, schema: str) -> bool:
        """Return whether there is a table; SQLite has no schemas.

        Raises:
            StorageError: The database does not answer or refuses.
        """
        is_sqlite = self.url.get_backend_name() == "sqlite"
        with self.transaction() as connection:
            return sa.inspect(connection).has_table(name, schema=None if is_sqlite else schema)

    def insert_new(self, table: sa.Table, **values: object) -> sa.Insert:
        """Return a statement that adds a row, or nothing where one with its keys is there."""
        if self.url.get_backend_name() == "sqlite":
            return sqlite.insert(table).values(**values).on_conflict_do_nothing()
        return postgresql.insert(table).values(**values).on_conflict_do_nothing()

    def time(self, connection: sa.Connection) -> float:
        """Return the time by the database's clock, in seconds since 1970."""
        return float(connection.scalar(sa.select(self.now)) or 0.0)

    @staticmethod
    def fact(connection: sa.Connection, name: str) -> str | None:
        """Return a fact about the fleet; None when it has none of that name."""
        return connection.scalar(sa.select(META.c.value).where(META.c.name == name))

    @cached_property
    def salt(self) -> str:
        """What the ids of provider keys are made with, so that nobody can look a key up by its id."""
        with self.transaction() as connection:
            return str(self.fact(connection, SALT))

    @staticmethod
    def begin_writing(connection: sa.Connection) -> None:
        """Begin a transaction with a change, so that of two that change one file the second waits for the first.

        SQLite refuses a transaction that reads first and changes then, if another one has changed the file meanwhile.
        """
        connection.execute(sa.delete(META).where(META.c.name == ""))

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def _prepare(self) -> None:
        """Make the tables, if they are not there; else nothing is written: the user may be one that only reads."""
        with self.transaction() as connection:
            are_there = METADATA.tables.keys() <= {*sa.inspect(connection).get_table_names()}
            if not are_there or self.fact(connection, "version") is None:
                METADATA.create_all(connection, checkfirst=True)
                connection.execute(self.insert_new(META, name=SALT, value=secrets.token_hex(16)))
                connection.execute(self.insert_new(META, name="version", value=str(SCHEMA_VERSION)))
            found = self.fact(connection, "version") or "0"
        if int(found) > SCHEMA_VERSION:
            raise ConfigError(
                f"the fleet's database has tables of version {found}; this explorer knows {SCHEMA_VERSION}",
                hint="update explorer on this machine: pip install -U 'explorer[fleet]'",
            )


def _make_folder(folder: Path, place: str) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"the fleet's database {place} cannot be used: no folder {folder} can be made: {error.strerror}",
            hint="name another file: EXPLORER_FLEET_DATABASE",
        ) from error


def place_of(url: sa.URL) -> str:
    """Return an address as it may be shown, without its passwords; of a file, its path."""
    if url.get_backend_name() == "sqlite" and url.database:
        return url.database
    shown = {name: value for name, value in url.query.items() if "pass" not in name.lower()}
    return url.set(drivername=url.get_backend_name(), query=shown).render_as_string(hide_password=True)


def _driver_url(url: str) -> sa.URL:
    try:
        url.encode()
    except UnicodeEncodeError as error:
        hint = "let this terminal use UTF-8: export LC_ALL=C.UTF-8"
        raise ConfigError("the path of the fleet's database cannot be read with this locale", hint=hint) from error
    try:
        parsed = sa.make_url(SCHEME + url.removeprefix(SHORT_SCHEME) if url.startswith(SHORT_SCHEME) else url)
        parsed = parsed.set(drivername=DRIVERS[parsed.get_backend_name()])
    except (ArgumentError, KeyError, ValueError) as error:
        raise ConfigError(
            "the address of the fleet's database cannot be used",
            hint="set EXPLORER_FLEET_DATABASE to sqlite:///PATH or postgresql://USER:PASSWORD@HOST/NAME",
        ) from error
    if "@" in (parsed.host or ""):
        hint = "in EXPLORER_FLEET_DATABASE write the password with percent-encoding, as in a URL: %40 for @"
        raise ConfigError("the password in the address of the fleet's database has an @", hint=hint)
    return parsed


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
