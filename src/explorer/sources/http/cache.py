"""Answers that are kept: in memory for a process, bounded in bytes and age, and on disk for all runs of a workspace.

A body is kept under its own hash, and entries lead from an address to it. Everything is checked when it is read, so
what a crash, a full disk or another process left unfinished counts as absent. An entry has the mark of the user's key:
a page that somebody else laid into the folder was never fetched. Nothing here makes a fetch fail.
"""

import asyncio
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Hashable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Generic, Literal, TypeVar

from filelock import AsyncFileLock
from pydantic import AwareDatetime, ValidationError

from explorer.schema.messages import Frozen
from explorer.schema.network import secrets_in
from explorer.sources.http.fetched import DAY_S, Fetched, FetchLimits
from explorer.workspace.safe_open import read_below
from explorer.workspace.user_key import UserKey

MAX_BYTES = 64_000_000
MAX_AGE_S = 900.0

T = TypeVar("T")


@dataclass(frozen=True)
class _Kept(Generic[T]):
    value: T
    size: int
    stored_at: float


class ResponseCache(Generic[T]):
    """Values by key for a quarter of an hour, so that many agents who read one page fetch it once."""

    def __init__(self, clock: Callable[[], float], *, max_bytes: int = MAX_BYTES, max_age_s: float = MAX_AGE_S) -> None:
        self._clock = clock
        self._max_bytes = max_bytes
        self._max_age_s = max_age_s
        self._kept: OrderedDict[Hashable, _Kept[T]] = OrderedDict()
        self._bytes = 0

    def get(self, key: Hashable) -> T | None:
        """Return the value, unless it is absent or too old."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        if self._clock() - kept.stored_at > self._max_age_s:
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return kept.value

    def put(self, key: Hashable, value: T, *, size: int) -> None:
        """Keep a value; one larger than the whole cache is not kept."""
        if key in self._kept:
            self._drop(key)
        if size > self._max_bytes:
            return
        self._kept[key] = _Kept(value, size, self._clock())
        self._bytes += size
        while self._bytes > self._max_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: Hashable) -> None:
        self._bytes -= self._kept.pop(key).size


CACHE_FOLDER = ".cache/pages"
"""The folder in the workspace, next to the runs."""
MAX_DISK_BYTES = 500_000_000
ENOUGH = 0.8
"""The part of the limit that remains after cleaning; the longest unused are removed first."""
LARGEST = 8
"""The largest body is this part of the limit: one eighth."""
LONGEST_WAIT_S = 30.0
"""The seconds to wait for another process that fetches the same; then this process fetches, too."""
LEFT_BEHIND_S = 3600.0
"""The seconds after which files of an unfinished write or lock are removed."""
MAX_ENTRY_BYTES = 64_000
PURPOSE = "page"
"""What entries are marked for."""


class CacheEntry(Frozen):
    """The facts of a kept body."""

    v: Literal[1] = 1
    asked: str
    accept: str
    is_opened: bool = False
    """Whether the user allowed the host for this machine."""
    url: str
    """The address after redirects."""
    status: int
    content_type: str
    is_truncated: bool
    fetched_at: AwareDatetime
    keep_s: float
    sha256: str
    mark: str = ""
    """The mark of all other fields, with the user's key."""

    def marked(self, key: UserKey) -> "CacheEntry":
        """Return this entry with its mark."""
        return self.model_copy(update={"mark": key.mark(PURPOSE, self._content)})

    def is_own(self, key: UserKey) -> bool:
        """Return whether this user's explorer kept the entry."""
        return key.made(self.mark, PURPOSE, self._content)

    @property
    def _content(self) -> bytes:
        return self.model_dump_json(exclude={"mark"}).encode()


@dataclass(frozen=True)
class CacheKey:
    """The request that an answer belongs to."""

    url: str
    accept: str
    is_opened: bool = False
    """Whether the user allowed the host for this machine: a workspace that no longer does is not shown its pages."""

    @property
    def digest(self) -> str:
        """The name of the entry."""
        return hashlib.sha256(json.dumps([self.url, self.accept, self.is_opened]).encode()).hexdigest()

    @property
    def is_secret(self) -> bool:
        """Whether the address contains something that grants access, and is not written to disk."""
        return bool(secrets_in(self.url))


class DiskCache:
    """Answers on disk, for several processes at once.

    Args:
        folder: Where they are kept.
        open_key: Returns the user's key, without which nothing is kept or found; called when it is first needed.
        now: The time.
        max_bytes: The size of the cache.
        longest_wait_s: The seconds to wait for another process that fetches the same.
    """

    def __init__(
        self,
        folder: Path,
        open_key: Callable[[], UserKey],
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        max_bytes: int = MAX_DISK_BYTES,
        longest_wait_s: float = LONGEST_WAIT_S,
    ) -> None:
        self._folder = folder
        self._open_key = open_key
        self._now = now
        self._max_bytes = max_bytes
        self._longest_wait_s = longest_wait_s
        self._unswept = max_bytes

    @cached_property
    def _key(self) -> UserKey:
        return self._open_key()

    async def get(self, key: CacheKey, limits: FetchLimits) -> Fetched | None:
        """Return a kept answer that is whole, recent and long enough."""
        return None if key.is_secret else await asyncio.to_thread(self._get, key, limits)

    async def put(self, key: CacheKey, fetched: Fetched) -> None:
        """Keep an answer, also under the address after redirects, unless it must not be kept."""
        last = replace(key, url=fetched.url.partition("#")[0])
        if (
            self._key.is_there
            and fetched.keep_s > 0
            and len(fetched.body) <= self._max_bytes // LARGEST
            and not (key.is_secret or last.is_secret)
        ):
            await asyncio.to_thread(self._put, dict.fromkeys((key, last)), fetched)

    @asynccontextmanager
    async def alone(self, key: CacheKey) -> AsyncGenerator[None]:
        """Keep other processes from fetching the same meanwhile; after a long wait, continue without the lock."""
        async with AsyncExitStack() as stack:
            # A disk that refuses, and a wait that is over, which is an OSError too.
            with suppress(OSError):
                folder = self._made("locks")
                lock = AsyncFileLock(
                    folder / f"{key.digest}.lock", timeout=self._longest_wait_s, mode=0o600, run_in_executor=False
                )
                await stack.enter_async_context(lock)
            yield

    def _get(self, key: CacheKey, limits: FetchLimits) -> Fetched | None:
        try:
            path = self._place("entries", key.digest)
            entry = CacheEntry.model_validate_json(self._read(path, MAX_ENTRY_BYTES))
            asked = (entry.asked, entry.accept, entry.is_opened)
            if asked != (key.url, key.accept, key.is_opened) or not entry.is_own(self._key):
                return None
            if not self._is_young(entry, limits):
                return None
            body_path = self._place("bodies", entry.sha256)
            body = self._read(body_path, self._max_bytes // LARGEST)
            if hashlib.sha256(body).hexdigest() != entry.sha256:
                return None
            _date(body_path, self._now().timestamp())
        except (OSError, ValidationError):
            return None
        fetched = Fetched(
            url=entry.url,
            status=entry.status,
            content_type=entry.content_type,
            body=body,
            is_truncated=entry.is_truncated,
            fetched_at=entry.fetched_at,
            from_cache=True,
            keep_s=entry.keep_s,
        )
        return fetched if fetched.serves(limits) else None

    def _is_young(self, entry: CacheEntry, limits: FetchLimits) -> bool:
        age_s = (self._now() - entry.fetched_at).total_seconds()
        return 0 <= age_s <= min(entry.keep_s, limits.keep_s)

    def _put(self, keys: dict[CacheKey, None], fetched: Fetched) -> None:
        digest = hashlib.sha256(fetched.body).hexdigest()
        with suppress(OSError):  # a full or read-only disk: then there is no cache
            fetched_at = fetched.fetched_at or self._now()
            _write(self._place("bodies", digest, made=True), fetched.body, self._now().timestamp())
            for key in keys:
                entry = CacheEntry(
                    asked=key.url,
                    accept=key.accept,
                    is_opened=key.is_opened,
                    url=fetched.url,
                    status=fetched.status,
                    content_type=fetched.content_type,
                    is_truncated=fetched.is_truncated,
                    fetched_at=fetched_at,
                    keep_s=fetched.keep_s,
                    sha256=digest,
                )
                path = self._place("entries", key.digest, made=True)
                _write(
                    path, entry.marked(self._key).model_dump_json().encode(), fetched_at.timestamp() + fetched.keep_s
                )
            self._unswept += len(fetched.body)
            if self._unswept > self._max_bytes // 10:
                self._unswept = 0
                self._sweep()

    def _sweep(self) -> None:
        """Remove what is out of date, then the bodies that were not used for longest, until there is space again.

        The time of a body is its latest use, and the time of an entry is its end, so no file has to be read.
        """
        now = self._now().timestamp()
        for path, stat in _files(self._folder / "entries"):
            if stat.st_mtime < now:
                path.unlink(missing_ok=True)
        for path, stat in (*_files(self._folder, "*/*/*.tmp"), *_files(self._folder, "locks/*.lock")):
            if stat.st_mtime < now - LEFT_BEHIND_S:
                path.unlink(missing_ok=True)
        bodies = sorted(_files(self._folder / "bodies"), key=lambda found: found[1].st_mtime)
        excess = sum(stat.st_size for _, stat in bodies) - self._max_bytes
        excess = excess + int(self._max_bytes * (1 - ENOUGH)) if excess > 0 else 0
        for path, stat in bodies:
            if excess > 0 or stat.st_mtime < now - DAY_S:
                path.unlink(missing_ok=True)
                excess -= stat.st_size

    def _place(self, kind: str, digest: str, *, made: bool = False) -> Path:
        """Return the place of a file; folders are divided so that they stay small."""
        if not re.fullmatch(r"[0-9a-f]{64}", digest):
            raise OSError(f"{digest} is not a name in the cache")
        return (self._made(kind, digest[:2]) if made else self._folder / kind / digest[:2]) / digest

    def _read(self, path: Path, limit: int) -> bytes:
        return read_below(self._folder, path.relative_to(self._folder).as_posix(), limit)

    def _made(self, *names: str) -> Path:
        """Return a folder of the cache, made for the user alone."""
        path = self._folder
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in names:
            path /= name
            path.mkdir(mode=0o700, exist_ok=True)
        return path


def clear(workspace: Path) -> int:
    """Remove a workspace's cache, and return its size in bytes. Running processes continue, and fetch again."""
    folder = workspace / CACHE_FOLDER
    size = sum(stat.st_size for _, stat in _files(folder))
    shutil.rmtree(folder, ignore_errors=True)
    return size


def _files(folder: Path, pattern: str = "**/*") -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the regular files of a folder, without those that vanish meanwhile."""
    for path in folder.glob(pattern):
        with suppress(OSError):
            stat = path.lstat()
            if path.is_file() and not path.is_symlink():
                yield path, stat


def _write(path: Path, content: bytes, moment: float) -> None:
    """Replace a file as a whole, readable by the user alone: another process reads the old one or the new one."""
    opened, name = tempfile.mkstemp(suffix=".tmp", dir=path.parent)
    try:
        with open(opened, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
            file.write(content)
        _date(Path(name), moment)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _date(path: Path, moment: float) -> None:
    os.utime(path, (moment, moment))
