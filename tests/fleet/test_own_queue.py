"""The queue's file in the folder with the runs: the user's own, or none at all."""

import shlex
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from explorer.fleet.own_queue import own_queue
from explorer.schema.errors import ConfigError
from explorer.workspace.user_key import NO_KEY, UserKey

KEY = UserKey(b"k" * 32)


def test_a_queue_is_made_once_and_known_again(tmp_path: Path) -> None:
    """An empty file with a mark is made for its owner alone; what is written to it later does not matter."""
    file = tmp_path / "runs" / ".fleet" / "queue.sqlite"
    assert own_queue(file, KEY) == file
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    file.write_bytes(b"rows")
    assert own_queue(file, KEY).read_bytes() == b"rows"
    assert len(list(file.parent.iterdir())) == 2


def test_many_workers_make_one_queue(tmp_path: Path) -> None:
    """Workers that start at once use the same file, and none finds it without its mark."""
    file = tmp_path / "queue.sqlite"
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(own_queue, [file] * 64, [KEY] * 64))
    assert set(found) == {file}
    assert len(list(tmp_path.glob("queue.sqlite"))) == 1


def test_a_queue_of_somebody_else_is_not_used(tmp_path: Path) -> None:
    """Neither a file without a mark, nor one with another's mark, a copy with its marks, or a link to one's own."""
    own = own_queue(tmp_path / "own" / "queue.sqlite", KEY)
    bare = tmp_path / "the bare one" / "queue.sqlite"
    bare.parent.mkdir()
    bare.touch()
    copied = tmp_path / "copied"
    shutil.copytree(own.parent, copied)
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "queue.sqlite").symlink_to(own)
    (tmp_path / "folder").symlink_to(own.parent)
    others = own_queue(tmp_path / "others" / "queue.sqlite", UserKey(b"o" * 32))
    for file in (bare, copied / "queue.sqlite", linked / "queue.sqlite", tmp_path / "folder" / "queue.sqlite", others):
        with pytest.raises(ConfigError, match="not made by your explorer") as caught:
            own_queue(file, KEY)
        assert shlex.split(caught.value.hint or "")[-1] == f"EXPLORER_FLEET_DATABASE=sqlite:///{file}"


def test_a_mark_is_for_one_file(tmp_path: Path) -> None:
    """A file that takes the place of the user's own has no mark, also under the name of the old one."""
    file = own_queue(tmp_path / "queue.sqlite", KEY)
    old = file.stat().st_ino
    other = tmp_path / "other"
    other.touch()
    other.replace(file)
    (tmp_path / f"queue.sqlite.{old}.mark").rename(tmp_path / f"queue.sqlite.{file.stat().st_ino}.mark")
    with pytest.raises(ConfigError, match="not made by your explorer"):
        own_queue(file, KEY)


def test_without_a_key_no_queue_is_used(tmp_path: Path) -> None:
    """Where nothing can prove whose a queue is, the user has to name one."""
    with pytest.raises(ConfigError, match="no folder for the user's key") as refused:
        own_queue(tmp_path / "queue.sqlite", NO_KEY)
    assert refused.value.hint.startswith(
        "set HOME, or XDG_STATE_HOME, to a folder of yours for the key; if it is yours"
    )
