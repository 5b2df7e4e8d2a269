"""The forum's tables, and all SQL of the example: agents and tools call these methods, and nothing else."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

MAX_NOTES = 20
"""Short-term notes of a persona; of more, the oldest are forgotten."""
BUSY_S = 30.0
"""Seconds to wait for another process that writes."""
TABLES = """
CREATE TABLE IF NOT EXISTS personas (name TEXT PRIMARY KEY, profile TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS policy (rule TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS threads (id INTEGER PRIMARY KEY, title TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS posts (
    id INTEGER PRIMARY KEY,
    thread_id INTEGER NOT NULL REFERENCES threads (id),
    parent_id INTEGER REFERENCES posts (id),
    author TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at TEXT NOT NULL,
    idempotency_key TEXT UNIQUE
);
CREATE TABLE IF NOT EXISTS votes (
    voter TEXT NOT NULL,
    post_id INTEGER NOT NULL REFERENCES posts (id),
    value INTEGER NOT NULL CHECK (value IN (-1, 1)),
    created_at TEXT NOT NULL,
    PRIMARY KEY (voter, post_id)
);
CREATE TABLE IF NOT EXISTS notes (
    persona TEXT NOT NULL REFERENCES personas (name),
    topic TEXT NOT NULL,
    note TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (persona, topic)
);
"""
POSTS = """
SELECT posts.id AS post_id, thread_id, parent_id, title, author, body, posts.created_at AS at,
    COALESCE((SELECT SUM(value) FROM votes WHERE post_id = posts.id), 0) AS score
FROM posts JOIN threads ON threads.id = thread_id
"""
Row = dict[str, Any]


class ForumError(Exception):
    """What was asked for is not there, or the policy does not allow it; says what would be right."""


class Forum:
    """A forum in a SQLite file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        """Yield a connection that writes all or nothing, and nothing at the same time as another process."""
        with closing(sqlite3.connect(self._path, timeout=BUSY_S, isolation_level=None)) as connection:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def create(self, personas: Row, policy: Row, threads: Row) -> None:
        """Make the tables and fill them, unless there are posts already.

        Args:
            personas: Profiles by name.
            policy: Values by rule.
            threads: The posts of each thread by its title, as pairs of author and body; each answers the one before.
        """
        with closing(sqlite3.connect(self._path)) as connection:
            connection.executescript(TABLES)
        with self._transaction() as connection:
            if connection.execute("SELECT 1 FROM posts").fetchone():
                return
            connection.executemany("INSERT INTO personas VALUES (?, ?)", personas.items())
            connection.executemany("INSERT INTO policy VALUES (?, ?)", policy.items())
            for title, posts in threads.items():
                thread = connection.execute("INSERT INTO threads (title) VALUES (?)", (title,)).lastrowid
                parent: int | None = None
                for author, body in posts:
                    values = (thread, parent, author, body, _now(), None)
                    parent = connection.execute(_INSERT_POST, values).lastrowid

    def recent_posts(self, limit: int, involving: str) -> list[Row]:
        """Return the newest posts, the newest first; of a persona: its own, and answers to them."""
        where = "WHERE ? = '' OR author = ? OR parent_id IN (SELECT id FROM posts WHERE author = ?)"
        with self._transaction() as connection:
            found = connection.execute(f"{POSTS} {where} ORDER BY posts.id DESC LIMIT ?", (*[involving] * 3, limit))
            return [dict(row) for row in found]

    def thread(self, thread_id: int, limit: int) -> list[Row]:
        """Return the posts of a thread, the oldest first; of a long one, the first and the newest ones.

        Raises:
            ForumError: There is no such thread.
        """
        with self._transaction() as connection:
            found = [
                dict(row) for row in connection.execute(f"{POSTS} WHERE thread_id = ? ORDER BY posts.id", (thread_id,))
            ]
        if not found:
            raise ForumError(f"there is no thread {thread_id}; get_recent_interactions lists threads")
        return found if len(found) <= limit else [found[0], *found[len(found) - limit + 1 :]]

    def persona(self, name: str) -> tuple[str, list[Row]]:
        """Return a persona's profile, and its short-term notes, the newest first.

        Raises:
            ForumError: There is no such persona.
        """
        with self._transaction() as connection:
            profile = _profile(connection, name)
            notes = connection.execute(
                "SELECT topic, note, updated_at FROM notes WHERE persona = ? ORDER BY updated_at DESC, rowid DESC",
                (name,),
            )
            return profile, [dict(row) for row in notes]

    def policy(self) -> dict[str, str]:
        """Return the rules that hold for all."""
        with self._transaction() as connection:
            return {row["rule"]: row["value"] for row in connection.execute("SELECT rule, value FROM policy")}

    def reply(self, author: str, parent_id: int, body: str, key: str) -> tuple[Row, bool]:
        """Write a reply, once for each key; return it, and whether it is new.

        Raises:
            ForumError: The post or the persona is not there, the reply is too long, or the key belongs to another one.
        """
        with self._transaction() as connection:
            _profile(connection, author)
            before = connection.execute(f"{POSTS} WHERE idempotency_key = ?", (key,)).fetchone()
            if before is not None:
                if (before["author"], before["parent_id"], before["body"]) != (author, parent_id, body):
                    raise ForumError(
                        f"the key {key!r} belongs to another reply, post {before['post_id']}; use a new one"
                    )
                return dict(before), False
            limit = connection.execute("SELECT value FROM policy WHERE rule = 'max_reply_chars'").fetchone()
            if limit is not None and len(body) > int(limit["value"]):
                raise ForumError(f"the reply has {len(body)} characters; the policy allows {limit['value']}")
            values = (_post(connection, parent_id)["thread_id"], parent_id, author, body, _now(), key)
            new = connection.execute(_INSERT_POST, values).lastrowid
            return _post(connection, new), True

    def vote(self, voter: str, post_id: int, value: int) -> int:
        """Set a persona's vote on a post (1, -1, or 0 to take it back); return the post's score.

        Raises:
            ForumError: The post or the persona is not there, or the post is the voter's own.
        """
        with self._transaction() as connection:
            _profile(connection, voter)
            if _post(connection, post_id)["author"] == voter:
                raise ForumError(f"post {post_id} is by {voter}: nobody votes on their own posts")
            connection.execute("DELETE FROM votes WHERE voter = ? AND post_id = ?", (voter, post_id))
            if value:
                connection.execute("INSERT INTO votes VALUES (?, ?, ?, ?)", (voter, post_id, value, _now()))
            return int(_post(connection, post_id)["score"])

    def remember(self, persona: str, topic: str, note: str) -> int:
        """Set a short-term note of a persona, or remove it where it is empty; return how many there are.

        Raises:
            ForumError: There is no such persona.
        """
        with self._transaction() as connection:
            _profile(connection, persona)
            connection.execute("DELETE FROM notes WHERE persona = ? AND topic = ?", (persona, topic))
            if note:
                connection.execute("INSERT INTO notes VALUES (?, ?, ?, ?)", (persona, topic, note, _now()))
            connection.execute(
                "DELETE FROM notes WHERE persona = ? AND rowid NOT IN "
                "(SELECT rowid FROM notes WHERE persona = ? ORDER BY rowid DESC LIMIT ?)",
                (persona, persona, MAX_NOTES),
            )
            return int(connection.execute("SELECT COUNT(*) FROM notes WHERE persona = ?", (persona,)).fetchone()[0])


_INSERT_POST = (
    "INSERT INTO posts (thread_id, parent_id, author, body, created_at, idempotency_key) VALUES (?, ?, ?, ?, ?, ?)"
)


def _profile(connection: sqlite3.Connection, name: str) -> str:
    row = connection.execute("SELECT profile FROM personas WHERE name = ?", (name,)).fetchone()
    if row is None:
        names = ", ".join(one["name"] for one in connection.execute("SELECT name FROM personas ORDER BY name"))
        raise ForumError(f"there is no persona {name!r}; there are: {names}")
    return str(row["profile"])


def _post(connection: sqlite3.Connection, post_id: int | None) -> Row:
    row = connection.execute(f"{POSTS} WHERE posts.id = ?", (post_id,)).fetchone()
    if row is None:
        raise ForumError(f"there is no post {post_id}; get_recent_interactions lists posts")
    return dict(row)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
