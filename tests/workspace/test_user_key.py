"""The user's key: made once, for the user alone; what is not theirs is no key."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from explorer.workspace.user_key import KEY_BYTES, NO_KEY, open_key


def test_it_is_made_once(tmp_path: Path) -> None:
    """At the first use, in a folder that is made for it, readable by nobody else; then it stays."""
    folder = tmp_path / "state" / "explorer"
    key = open_key(folder)
    assert key.is_there
    assert open_key(folder) == key
    (path,) = folder.iterdir()
    assert (len(key.secret), path.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (KEY_BYTES, 0o600, 0o700)
    assert key.secret.hex() not in repr(key)
    assert key.secret != open_key(tmp_path / "other").secret


def test_many_processes_make_one(tmp_path: Path) -> None:
    """Those that start at the same time agree on a key."""
    with ThreadPoolExecutor(8) as threads:
        keys = list(threads.map(open_key, [tmp_path / "state"] * 8))
    assert len({key.secret for key in keys}) == 1
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["key"]


def test_a_mark_is_for_one_purpose_and_one_content(tmp_path: Path) -> None:
    """Another content, another purpose, another key: no mark; and without a key nothing is marked."""
    key, other = open_key(tmp_path / "one"), open_key(tmp_path / "other")
    mark = key.mark("page", b"x")
    assert key.made(mark, "page", b"x")
    assert not any((key.made(mark, "page", b"y"), key.made(mark, "run", b"x"), other.made(mark, "page", b"x")))
    assert not NO_KEY.made(NO_KEY.mark("page", b"x"), "page", b"x")


def _readable(path: Path) -> None:
    path.chmod(0o644)


def _short(path: Path) -> None:
    path.write_bytes(b"k")


def _linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def _a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


@pytest.mark.parametrize("spoil", [_readable, _short, _linked, _a_pipe])
def test_what_is_not_a_key_of_the_users_alone(tmp_path: Path, spoil: object) -> None:
    """A key that others can read, a file that is none, a link or a device: there is no key, and why is said."""
    assert open_key(tmp_path).is_there
    assert callable(spoil)
    spoil(tmp_path / "key")
    key = open_key(tmp_path)
    assert not key.is_there
    assert str(tmp_path / "key") in key.problem


def test_where_no_key_can_be(tmp_path: Path) -> None:
    """No folder, or one that cannot be made: no key, in words."""
    (tmp_path / "file").write_text("")
    for folder in (None, tmp_path / "file" / "state", Path("/proc/explorer")):
        key = open_key(folder)
        assert (key.is_there, bool(key.problem)) == (False, True)
