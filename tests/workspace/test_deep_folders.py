from pathlib import Path

import pytest

from explorer.run.archive import Packed, files_of, pack, remove
from explorer.workspace.safe_open import remove_tree, walk
from nesting import nest

LEVELS = 1_100
"""More than Python calls itself, than a path can say, and than a process may open."""


@pytest.mark.slow
def test_a_run_with_deep_folders_is_measured_and_removed(tmp_path: Path) -> None:
    """However deep a command has nested its folders, nothing of the run is left, and nothing beside it is touched."""
    run, other = tmp_path / "20261122-101500-deep-0000", tmp_path / "other"
    for folder in (run, other):
        folder.mkdir()
        (folder / "report.md").write_text("x")
    nest(run, LEVELS, "deeper", mode=0o000)
    (run / "1").mkdir()
    (run / "link").symlink_to(other)
    assert [path.name for path in files_of(run)] == ["report.md"]
    remove(run)
    assert [path.name for path in tmp_path.iterdir()] == ["other"]
    assert (other / "report.md").read_text() == "x"


def test_what_cannot_be_taken_in_is_not_packed(tmp_path: Path) -> None:
    """A file that a run is packed into can be unpacked: what its rules refuse is left out, and counted."""
    run = tmp_path / "20261122-101500-deep-0000"
    run.mkdir()
    nest(run, 100, "deeper")
    for name in ("report.md", "back\\slash.md", "new\nline.md"):
        (run / name).write_text("x")
    assert pack(run, tmp_path / "run.tar.gz") == Packed(files=1, left_out=3)


def test_no_link_is_followed(tmp_path: Path) -> None:
    """A link to a folder is an entry, in the walk as in the removal."""
    outside, folder = tmp_path / "outside", tmp_path / "run"
    outside.mkdir()
    (outside / "kept.txt").write_text("x")
    folder.mkdir()
    (folder / "link").symlink_to(outside)
    assert [entry.name for entry in walk(folder, lambda _path: True)] == ["link"]
    remove_tree(folder)
    assert (outside / "kept.txt").exists()
    (tmp_path / "run").symlink_to(outside)
    with pytest.raises(OSError, match=r"Not a directory|symbolic"):
        remove_tree(tmp_path / "run")


def test_a_folder_that_looks_away_is_not_walked(tmp_path: Path) -> None:
    """The caller says which folders are looked into, by their paths from the top."""
    for name in ("a/b", "b"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file.txt").write_text("x")
    found = walk(tmp_path, lambda path: path != "b")
    assert [Path(entry.path).relative_to(tmp_path).as_posix() for entry in found] == ["a/b/file.txt"]
