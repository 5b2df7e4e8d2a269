"""A run that somebody else made is resumed with the settings of the command, and one is told so."""

from pathlib import Path

import pytest

from cli.stage import Explorer
from explorer.journal.listing import read_records
from explorer.schema.events import RunStarted, SessionConfigured
from team_script import only_run


def sessions(folder: Path) -> list[SessionConfigured]:
    """What each session worked with."""
    return [one.event for one in read_records(folder) if isinstance(one.event, SessionConfigured)]


@pytest.mark.slow
def test_one_is_told_what_a_carried_run_does_not_get(here: Explorer, tmp_path: Path) -> None:
    """The user who started it has its settings; another one, and one without a key, has those of the command."""
    mine, other = str(tmp_path / "mine"), str(tmp_path / "other")
    assert here("demo", "--max-steps", "2", XDG_STATE_HOME=mine).returncode == 3
    run = only_run(tmp_path / "workspace")
    own = here("resume", "latest", XDG_STATE_HOME=mine)
    assert "carried run" not in own.stderr
    carried = " ".join(here("resume", "latest", "And?", XDG_STATE_HOME=other).stderr.split())
    assert "carried run: nothing proves that you started it, so it has the settings of this command" in carried
    assert "recorded, and not used: limits.max_steps 2" in carried
    assert "as the run was started" not in carried.partition("search none")[2].partition("carried run")[0]
    without = " ".join(here("resume", "latest", "And?", XDG_STATE_HOME="/proc/none").stderr.split())
    assert "nothing proves that you started it (/proc/none/explorer/key: " in without
    assert "carried run" in here("resume", "latest", "And?", XDG_STATE_HOME=mine).stderr, "others have written in it"
    steps = [one.limits["max_steps"] for one in sessions(run)]
    assert [(one.value, one.origin) for one in steps] == [
        (2, "flag --max-steps"),
        (2, "flag --max-steps"),
        (300, "default"),
        (300, "default"),
        (300, "default"),
    ]
    (started,) = (one.event for one in read_records(run) if isinstance(one.event, RunStarted))
    assert "state_dir" not in started.settings, "where the key is, is nobody's business"
