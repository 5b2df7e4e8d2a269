"""The queue's file in the folder with the runs: only one that this user's explorer made is used.

The folder may have come from somebody else, such as with a checkout. Whose queue it is decides which questions are
explored at the user's cost. A file that the user names is the user's choice.
"""

import os
import secrets
import shlex
from contextlib import suppress
from pathlib import Path

from explorer.schema.errors import ConfigError, StorageError
from explorer.workspace.safe_open import make_private_folder, open_private
from explorer.workspace.user_key import UserKey

PURPOSE = "fleet queue"
MAX_MARK_BYTES = 100


def own_queue(file: Path, key: UserKey) -> Path:
    """Return the file of a queue, empty and marked with the user's key where there was none.

    The mark names the file by its number on the disk: a copy of it is another file.

    Raises:
        ConfigError: The file was not made by this user's explorer, or the user has no key.
        StorageError: The disk refused.
    """
    hint = f"if it is yours, name it yourself: export EXPLORER_FLEET_DATABASE={shlex.quote(f'sqlite:///{file}')}"
    if not key.is_there:
        words = f"nothing proves whose queue {file} is: there is no key ({key.problem})"
        raise ConfigError(words, hint=f"set HOME, or XDG_STATE_HOME, to a folder of yours for the key; {hint}")
    try:
        if not file.parent.exists():
            make_private_folder(file.parent)
        with suppress(FileExistsError):
            if not os.path.lexists(file):
                _make(file, key)
        is_own = _is_own(file, key)
    except OSError as error:
        raise StorageError(
            f"the queue {file} cannot be used: {error.strerror or error}", hint="choose another folder: --workspace DIR"
        ) from error
    if not is_own:
        raise ConfigError(f"the queue {file} was not made by your explorer, and is not used", hint=hint)
    return file


def _make(file: Path, key: UserKey) -> None:
    """Make an empty file and its mark; the file gets its name last, so that no process finds it without its mark."""
    beside = file.with_name(f".{secrets.token_hex(8)}")
    try:
        with open_private(beside, "x") as made:
            number = os.fstat(made.fileno()).st_ino
        mark = _mark_of(file, number)
        mark.unlink(missing_ok=True)
        with open_private(mark, "x") as written:
            written.write(key.mark(PURPOSE, str(number).encode()).encode())
        os.link(beside, file)
    finally:
        beside.unlink(missing_ok=True)


def _is_own(file: Path, key: UserKey) -> bool:
    if file.is_symlink() or file.parent.is_symlink() or not file.is_file():
        return False
    number = file.stat().st_ino
    try:
        with _mark_of(file, number).open("rb") as written:
            mark = written.read(MAX_MARK_BYTES).decode("ascii", "replace")
    except FileNotFoundError:
        return False
    return key.made(mark, PURPOSE, str(number).encode())


def _mark_of(file: Path, number: int) -> Path:
    return file.with_name(f"{file.name}.{number}.mark")
