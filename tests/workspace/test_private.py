"""What a run leaves on the disk is its owner's alone."""

import json
import os
from collections.abc import Generator
from pathlib import Path

import pytest

from command import explorer_here
from explorer.workspace.safe_open import make_private_folder, open_private, replace_private, write_private


@pytest.fixture
def usual_umask() -> Generator[None]:
    """The umask of most systems, which lets everybody read."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def open_to_others(top: Path) -> list[str]:
    """All files and folders from `top` on that somebody else may do anything with."""
    return [f"{path} {path.stat().st_mode:o}" for path in [top, *top.rglob("*")] if path.stat().st_mode & 0o077]


@pytest.mark.usefixtures("usual_umask")
def test_what_is_made_is_the_owners(tmp_path: Path) -> None:
    """Missing folders, new and rewritten files; a folder that was there keeps its permissions."""
    tmp_path.chmod(0o755)
    make_private_folder(tmp_path / "a" / "b")
    with open_private(tmp_path / "a" / "b" / "log", "a") as file:
        file.write(b"one")
    with open_private(tmp_path / "a" / "b" / "log", "a") as file:
        file.write(b"two")
    write_private(tmp_path / "a" / "c", b"3")
    assert (tmp_path / "a" / "b" / "log").read_bytes() == b"onetwo"
    assert open_to_others(tmp_path / "a") == []
    assert tmp_path.stat().st_mode & 0o777 == 0o755
    with pytest.raises(FileExistsError):
        open_private(tmp_path / "a" / "c", "x")
    with pytest.raises(FileExistsError):
        make_private_folder(tmp_path / "a" / "c" / "d")


@pytest.mark.usefixtures("usual_umask")
def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    """The new file is its owner's alone, and a replacement that fails leaves all as it was."""
    folder = tmp_path / "own"
    for content in (b"one", b"two"):
        replace_private(folder / "record", content)
    assert (folder / "record").read_bytes() == b"two"
    assert open_to_others(folder) == []
    (folder / "inner").mkdir()
    with pytest.raises(IsADirectoryError):
        replace_private(folder / "inner", b"three")
    assert sorted(path.name for path in folder.iterdir()) == ["inner", "record"]


@pytest.mark.slow
@pytest.mark.usefixtures("usual_umask")
def test_runs_are_private_however_they_are_made(tmp_path: Path) -> None:
    """A new run, its fork, its archive and what is imported from that."""
    done = explorer_here("demo", "--output-format", "json", cwd=tmp_path)
    run_id = json.loads(done.stdout)["run_id"]
    assert explorer_here("fork", run_id, "--at", "9", cwd=tmp_path).returncode == 0
    assert explorer_here("runs", "export", run_id, cwd=tmp_path).returncode == 0
    (archive,) = tmp_path.glob("*.tar.gz")
    done = explorer_here("runs", "import", archive.name, "--workspace", "other", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("*/*/.explorer"))) == 3
    for top in (tmp_path / "workspace", tmp_path / "other", archive):
        assert open_to_others(top) == []
