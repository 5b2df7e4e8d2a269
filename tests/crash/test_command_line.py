"""The product as users have it, ended at a point by `EXPLORER_CRASH`, and taken up again."""

import re
import signal
import subprocess
from pathlib import Path

import pytest

from command import explorer
from explorer.journal.crash_points import crash_at
from explorer.journal.journal import CHECKPOINTS
from explorer.schema.errors import ConfigError
from model_servers import AnthropicServer
from team_script import NOTES, body_of, only_run, records_of, team

QUESTION = "How was May for the plant?"
SEARCHERS = 3
"""At work at once: so many model calls may be in flight."""


def check_stopped(cut: "subprocess.CompletedProcess[str]", exit_code: int, folder: Path) -> None:
    """Stopped by a signal, said so, named the way on, and nothing else."""
    assert cut.returncode == exit_code, cut.stderr
    assert cut.stdout == ""
    assert "Traceback" not in cut.stderr
    assert f"explorer resume {folder.name}" in cut.stderr


def report_of(workspace: Path) -> str:
    """The body of the only run's report."""
    return body_of((only_run(workspace) / "report.md").read_text())


@pytest.mark.slow
def test_sigterm_saves_and_stops_and_the_run_is_taken_up_again(tmp_path: Path) -> None:
    """It ends with 143 in the middle of a fan-out; resumed, no model call is made again but those in flight."""
    notes = tmp_path / "notes.md"
    notes.write_text(NOTES)
    with AnthropicServer(team) as server:
        settings = {"ANTHROPIC_BASE_URL": server.url}
        crash = {"EXPLORER_CRASH": "before_sync:20:TERM"}
        cut = explorer(QUESTION, "--file", str(notes), cwd=tmp_path, settings=settings | crash)
        folder = only_run(tmp_path / "workspace")
        check_stopped(cut, 143, folder)
        before = records_of(folder)
        resumed = explorer("resume", "latest", cwd=tmp_path, settings=settings)
        asked = len(server.requests)
        whole = explorer(QUESTION, "--file", str(notes), "--workspace", "whole", cwd=tmp_path, settings=settings)
        asked_undisturbed = len(server.requests) - asked
    assert (resumed.returncode, whole.returncode) == (0, 0), resumed.stderr
    assert records_of(folder)[: len(before)] == before
    assert asked - asked_undisturbed <= SEARCHERS
    assert report_of(tmp_path / "workspace") == report_of(tmp_path / "whole")


@pytest.mark.slow
def test_two_interrupts_save_and_stop(tmp_path: Path) -> None:
    """They end with 130 among helpers that read pages, and what was recorded before is whole."""
    cut = explorer("demo", cwd=tmp_path, settings={"EXPLORER_CRASH": "mid_write:60:INT"})
    folder = only_run(tmp_path / "workspace")
    check_stopped(cut, 130, folder)
    assert [record.seq for record in records_of(folder)] == list(range(1, len(records_of(folder)) + 1))


@pytest.mark.slow
def test_two_interrupts_save_and_stop_and_the_run_is_taken_up_again(tmp_path: Path) -> None:
    """They end with 130 among helpers that read pages; resumed, the report says the same from the same sources."""
    cut = explorer("demo", cwd=tmp_path, settings={"EXPLORER_CRASH": "mid_write:60:INT"})
    check_stopped(cut, 130, only_run(tmp_path / "workspace"))
    resumed = explorer("resume", "latest", cwd=tmp_path)
    whole = explorer("demo", "--workspace", "whole", cwd=tmp_path)
    assert (resumed.returncode, whole.returncode) == (0, 0), resumed.stderr
    # Sources get their ids in the order of arrival, which differs from run to run.
    reports = [re.sub(r"`S\d+`", "", report_of(tmp_path / name)) for name in ("workspace", "whole")]
    assert reports[0] == reports[1]


@pytest.mark.parametrize("text", ["", "mid_write", "mid_write:0", "mid_write:1:HUP", "mid_write:-1", "Mid_write:1"])
def test_only_points_with_a_count_are_taken(text: str) -> None:
    """Anything else is an error of whoever set the variable."""
    with pytest.raises(ConfigError, match="names no point"):
        crash_at(text)


def test_it_ends_where_and_when_it_is_told() -> None:
    """It ends at the named point, the named time, and once."""
    reach = crash_at("mid_write:2:TERM")
    ended: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: ended.append(number))
    try:
        for point in CHECKPOINTS:
            reach(point)
        assert ended == []
        reach("mid_write")
        reach("mid_write")
        assert ended == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)
