"""The user's own key, with which explorer marks what it writes, and knows it again: a run, a page of the cache.

What lies in a folder may come from anybody. The key is in a folder of the user's alone, so nobody else can make a mark.
"""

import errno
import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from explorer.workspace.safe_open import make_private_folder, open_private, opened_below

KEY_FILE = "key"
KEY_BYTES = 32
MARK_BYTES = 16
"""Bytes of a mark; it is written as twice as many hexadecimal digits."""
NOT_OURS = 0o077
"""Permissions of anybody but the owner."""


@dataclass(frozen=True)
class UserKey:
    """A key that only this user has; without a secret it marks nothing, and no mark is valid."""

    secret: bytes = field(default=b"", repr=False)
    problem: str = ""
    """Why there is no key; empty when there is one."""

    @property
    def is_there(self) -> bool:
        """Whether marks can be made and checked."""
        return bool(self.secret)

    def mark(self, purpose: str, content: bytes) -> str:
        """Return the mark of a content for one purpose, of at most 16 letters: a mark for one is none for another."""
        person = purpose.encode()
        return hashlib.blake2b(content, key=self.secret, person=person, digest_size=MARK_BYTES).hexdigest()

    def made(self, mark: str, purpose: str, content: bytes) -> bool:
        """Return whether a mark of a content was made with this key."""
        return self.is_there and hmac.compare_digest(mark.encode(), self.mark(purpose, content).encode())


NO_KEY = UserKey(problem="no folder for the user's key is known")


def open_key(folder: Path | None) -> UserKey:
    """Return the key in a folder, which is made when there is none.

    Args:
        folder: The user's own; None: there is none, and no key either.
    """
    if folder is None:
        return NO_KEY
    path = folder / KEY_FILE
    try:
        with suppress(FileNotFoundError):
            return UserKey(_read(path))
        _make(path)
        return UserKey(_read(path))
    except OSError as error:
        return UserKey(problem=f"{path}: {error.strerror or error}")


def _read(path: Path) -> bytes:
    """Return the key in a file of this user's alone.

    Raises:
        OSError: The file is missing, is no key, or somebody else may have written or read it.
    """
    with opened_below(path.parent, path.name) as file:
        status = os.fstat(file.fileno())
        if status.st_uid != os.geteuid() or status.st_mode & NOT_OURS:
            raise PermissionError(errno.EPERM, "it is not a file of this user's alone (chmod 600)")
        content = file.read(KEY_BYTES + 1)
    if len(content) != KEY_BYTES:
        raise OSError(errno.EINVAL, f"it does not have {KEY_BYTES} bytes; remove it, and another one is made")
    return content


def _make(path: Path) -> None:
    """Make a key, whole or not at all; one that another process made meanwhile stays.

    Raises:
        OSError: The disk refused, or the folder is not the user's: under sudo it may be another user's.
    """
    above = next(folder for folder in path.parents if folder.exists())
    if above.stat().st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, f"{above} belongs to another user")
    make_private_folder(path.parent)
    beside = path.with_name(f".{KEY_FILE}.{secrets.token_hex(8)}")
    try:
        with open_private(beside, "x") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(beside, path)
    finally:
        beside.unlink(missing_ok=True)
