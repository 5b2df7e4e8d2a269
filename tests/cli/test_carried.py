"""A run that somebody else made is resumed with the settings of the command, and one is told so."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from cli.stage import Explorer
from explorer.journal.codec import encode_all
from explorer.journal.listing import read_records
from explorer.schema.events import JournalRecord, RunStarted, SessionConfigured
from explorer.schema.settings import Settings
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


@pytest.mark.slow
@pytest.mark.parametrize("toml", ["", "[limits]\nmax_steps = 5\n"], ids=["alone", "in a folder that is not trusted"])
def test_settings_that_nobody_understands_are_an_error_with_a_name(here: Explorer, tmp_path: Path, toml: str) -> None:
    """Whether the folder has settings of its own or not: one line, and no traceback."""
    settings = Settings().public() | {"timezone": ["not", "a", "name"]}
    began = datetime(2026, 8, 10, 12, tzinfo=UTC)
    started = RunStarted(run_id="20260810-120000-kites-0000", question="Why?", settings=settings, engine="0.2")
    folder = tmp_path / "workspace" / started.run_id
    (folder / ".explorer").mkdir(parents=True)
    (folder / "question.txt").write_text("Why?")
    (folder / ".explorer" / "journal.jsonl").write_bytes(
        encode_all([JournalRecord(v=1, seq=1, at=began, event=started)])
    )
    (tmp_path / "explorer.toml").write_text(toml)
    done = here("resume", "latest", "And?")
    assert done.returncode == 2
    assert "explorer: the run's settings are not understood here: `timezone`" in done.stderr
