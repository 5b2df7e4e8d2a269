"""The one way to a file that another process may have exchanged for something else."""

import os
import re
from pathlib import Path

import pytest

from explorer.workspace.safe_open import Opening, opened_below, read_below
from workspace.hostile_folder import OPENINGS, make_folder, opening_called, plant_symlinks

SOURCES = Path(__file__).parents[2] / "src/explorer"
OWN_OPENING = re.compile(r"O_NOFOLLOW|RESOLVE_|os\.open\([^)]*dir_fd")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_folder(tmp_path)


@pytest.fixture(params=OPENINGS)
def opening(request: pytest.FixtureRequest) -> Opening:
    return opening_called(request.param)


def test_only_regular_files_below_the_folder_are_read(folder: Path, opening: Opening) -> None:
    """No link in any place of a path, no `..`, no folder and no pipe; the pipe keeps nobody waiting."""
    os.mkfifo(folder / "pipe")
    outside = ["../secret.txt", "notes/../../secret.txt", "notes/../notes/a.md/..", str(folder.parent / "secret.txt")]
    for path in [*plant_symlinks(folder).values(), *outside, "notes", "pipe", "nothing"]:
        with pytest.raises(OSError, match=r"."):
            read_below(folder, path, 1_000, opening)
    assert read_below(folder, "notes/a.md", 1_000, opening) == b"# A\n\nin the run\n"


def test_no_more_is_read_than_is_allowed(folder: Path, opening: Opening) -> None:
    """A longer file is refused as a whole; who wants its beginning opens it."""
    assert len(read_below(folder, "notes/a.md", 16, opening)) == 16
    with pytest.raises(OSError, match="more than 15 bytes"):
        read_below(folder, "notes/a.md", 15, opening)
    with opened_below(folder, "notes/a.md", opening) as file:
        assert file.read(3) == b"# A"


def test_the_folder_itself_may_be_a_link(folder: Path, opening: Opening) -> None:
    """Whoever named it decides that; below it nothing is one."""
    (folder.parent / "named").symlink_to(folder)
    assert read_below(folder.parent / "named", "notes/a.md", 1_000, opening) == b"# A\n\nin the run\n"


def test_there_is_one_implementation() -> None:
    """Five differed in what they refused: links in the middle of a path, pipes, mounts, sizes.

    `access` changes a mode by a descriptor without opening the file; the launcher of the sandbox runs without the
    package, with what changes files' metadata for the commands in it. `run_copy` shares a lock with others, for which
    the library of locks has no way.
    """
    own = [
        path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.py") if OWN_OPENING.search(path.read_text())
    ]
    assert sorted(own) == [
        "fleet/run_copy.py",
        "sandbox/file_metadata.py",
        "sandbox/landlock_launcher.py",
        "workspace/access.py",
        "workspace/safe_open.py",
    ]
