"""`watch` on a run that has ended, and what `show` tells of one."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from cli.stage import SCRIPT, Explorer, clean_environment
from explorer.cli.commands.watch import pause_s
from explorer.cli.screens.screen import line_of
from explorer.journal.listing import read_records
from explorer.observe.run_view import AppliedOrder, RunView
from explorer.schema.events import JournalRecord, RunForked, Steered, StopAsked, TurnFailed


def cut_journal(folder: Path, records: int) -> None:
    """Leave only so many records, as a killed process would."""
    path = folder / ".explorer" / "journal.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:records]))


def test_a_complete_run_is_shown_again_without_a_model(kept_run: Path, here: Explorer) -> None:
    """The lines of a run of its own, then the report; nothing is written."""
    before = sorted((path, path.stat().st_mtime_ns) for path in kept_run.rglob("*") if path.name != "lock")
    done = here("watch", "latest", "--speed", "max")
    assert done.returncode == 0
    assert done.stdout == (kept_run / "report.md").read_text()
    lines = done.stderr.splitlines()
    assert lines[0].startswith("model offline for all roles: ")
    assert re.match(r"\d\d:\d\d:\d\d run \S+ started", next(line for line in lines if " run " in line))
    assert re.search(r"^\d\d:\d\d:\d\d run complete$", done.stderr, re.MULTILINE)
    assert lines[-1].startswith("complete: ")
    assert before == sorted((path, path.stat().st_mtime_ns) for path in kept_run.rglob("*") if path.name != "lock")


def test_records_and_result_are_there_for_programs(kept_run: Path, here: Explorer) -> None:
    """`stream-json` is the journal; the result has the one shape, with the figures of the run."""
    lines = [
        json.loads(line)
        for line in here("watch", "--speed", "500", "--output-format", "stream-json", "-q").stdout.splitlines()
    ]
    assert [line["seq"] for line in lines[:-1]] == [record.seq for record in read_records(kept_run)]
    shown_text = json.loads(here("watch", "--speed", "max", "--output-format", "json").stdout)
    assert shown_text | {"type": "result"} == lines[-1]
    assert (shown_text["status"], shown_text["run_id"]) == ("complete", kept_run.name)
    assert shown_text["citations"] > 0
    assert shown_text["sources"] > 0


def test_a_run_without_an_end_says_so(kept_run: Path, here: Explorer) -> None:
    """Exit code 1, and how to go on; `show` calls it unfinished, and not running."""
    cut_journal(kept_run, 40)
    (kept_run / "report.md").unlink()
    done = here("watch", "latest", "--speed", "max")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"stopped without an end\n  → continue: explorer resume {kept_run.name}" in done.stderr
    assert re.search(r"^status +unfinished$", here("show").stdout, re.MULTILINE)


@pytest.mark.parametrize("speed", ["0", "-1", "fast", "inf", "nan"])
def test_a_speed_is_a_number_above_zero(kept_run: Path, here: Explorer, speed: str) -> None:
    """Or `max`."""
    assert kept_run.is_dir()
    done = here("watch", f"--speed={speed}")
    assert (done.returncode, done.stdout) == (2, "")
    assert "`max`" in done.stderr


def test_long_pauses_are_cut_short(small_run: list[JournalRecord]) -> None:
    """A follow-up of the next day is two seconds away."""
    first, second = small_run[:2]
    late = second.model_copy(update={"at": first.at + timedelta(days=1)})
    assert pause_s(first, second, 10) == pytest.approx(0.1)
    assert pause_s(first, late, 10) == 2.0
    assert pause_s(late, first, 10) == 0.0


@pytest.mark.slow
def test_ctrl_c_ends_the_watching_on_a_terminal(kept_run: Path, tmp_path: Path) -> None:
    """The live view says what the key does; the exit code is 130, and the run is as it was."""
    terminal, inner = pty.openpty()
    environment = clean_environment(tmp_path) | {"TERM": "xterm-256color"}
    command = [str(SCRIPT), "watch", "latest", "--speed", "0.001"]
    with subprocess.Popen(command, stdin=inner, stdout=inner, stderr=inner, cwd=tmp_path, env=environment) as process:
        os.close(inner)
        shown = b""
        while b"stop watching" not in shown:
            shown += os.read(terminal, 65536)
        process.send_signal(signal.SIGINT)
        while b"no longer watching" not in shown:
            shown += os.read(terminal, 65536)
    os.close(terminal)
    assert process.returncode == 130
    assert kept_run.is_dir()


def test_show_tells_figures_and_record_numbers(kept_run: Path, here: Explorer) -> None:
    """Slowest helper, failed attempts, orders; the timeline has every record by its number."""
    page = here("show").stdout
    for head in ("slowest", "failed", "orders"):
        assert re.search(rf"^{head} +\S", page, re.MULTILINE)
    timeline = here("show", "--timeline").stdout.splitlines()
    assert [int(line.split()[0]) for line in timeline] == [record.seq for record in read_records(kept_run)]
    facts = json.loads(here("show", "--output-format", "json").stdout)
    assert facts["slowest_agent"] in {agent["id"] for agent in facts["agents"]}
    assert set(facts["tokens_by_role"]) == {agent["role"] for agent in facts["agents"]}
    assert (facts["failed_attempts"], facts["orders"]) == (0, [])
    assert facts["timeline"][-1] == facts["timeline"][-1] | {"seq": facts["records"], "words": "run complete"}


def test_figures_are_folded_from_the_records(small_run: list[JournalRecord]) -> None:
    """Attempts that failed, words from outside; a fork has its own id."""
    view, lines = RunView(), list[str]()
    last = small_run[-1]
    events = [
        TurnFailed(agent="searcher-1", fault="overloaded", message="busy", attempt=1, waits_s=1.0),
        Steered(agent="orchestrator", text="look north", order="1-a"),
        Steered(agent="orchestrator", text="of the resume itself"),
        StopAsked(order="2-b", reason="enough"),
        RunForked(run_id="20260811-120000-y-5678", of="20260810-120000-x-1234", shared=16),
    ]
    more = [
        JournalRecord(v=1, seq=last.seq + n, at=last.at + timedelta(seconds=n), event=e)
        for n, e in enumerate(events, 1)
    ]
    for record in [*small_run, *more]:
        lines.append(line_of(record, view))
        view.apply(record)
    assert view.failed_attempts == 1
    assert view.orders == [AppliedOrder(18, "steer", "look north"), AppliedOrder(20, "stop", "enough")]
    assert view.run_id == "20260811-120000-y-5678"
    assert lines[-2:] == [
        "asked to write up and stop: enough",
        "run 20260811-120000-y-5678 forked from 20260810-120000-x-1234 at record 16",
    ]


@pytest.mark.slow
def test_a_run_that_is_named_by_its_beginning_is_found(kept_run: Path, here: Explorer, tmp_path: Path) -> None:
    """Unless two begin so."""
    assert here("watch", kept_run.name[:-3], "--speed", "max", "-q").returncode == 0
    shutil.copytree(kept_run, tmp_path / "workspace" / f"{kept_run.name}-b")
    done = here("watch", kept_run.name[:-3])
    assert (done.returncode, "fits 2 runs" in done.stderr) == (2, True)
