"""A disk that is really full: the run stops readable, and goes on once there is space."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from command import explorer
from explorer.journal.journal import read
from small_disk import enlarge, small_disk
from team_script import body_of, only_run

SPACE_BYTES = 96 * 1024


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own."""
    with small_disk(tmp_path / "disk", SPACE_BYTES) as disk:
        yield disk


@pytest.mark.slow
def test_a_run_on_a_full_disk_stops_readable_and_goes_on_after_space_is_made(tmp_path: Path, tiny_disk: Path) -> None:
    """Exit 1 with the way on; every acknowledged record is there; with more room the report is the undisturbed one."""
    stopped = explorer("demo", "-q", "--workspace", str(tiny_disk), cwd=tmp_path)
    assert stopped.returncode == 1, stopped.stderr
    assert "No space left on device" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    folder = only_run(tiny_disk)
    before = read(folder / ".explorer" / "journal.jsonl")
    assert before
    enlarge(tiny_disk)
    resumed = explorer("resume", "latest", "-q", "--workspace", str(tiny_disk), cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert read(folder / ".explorer" / "journal.jsonl")[: len(before)] == before
    whole = explorer("demo", "-q", "--workspace", str(tmp_path / "roomy"), cwd=tmp_path)
    undisturbed = only_run(tmp_path / "roomy") / "report.md"
    assert whole.returncode == 0
    prose = [body_of(path.read_text()).split("## References")[0] for path in (folder / "report.md", undisturbed)]
    assert prose[0] == prose[1]
