"""`steer`, `stop` and `watch`: other processes and a run that is at work."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from cli.conftest import NOON
from cli.stage import Explorer, Hold, begin_explorer, end_of
from explorer.cli.commands.steer_stop import STOP_REASON
from explorer.journal.control import ControlKind, Inbox
from explorer.journal.journal import Journal
from explorer.journal.listing import JournalTail, holder, is_running, read_records
from explorer.schema.errors import ConfigError
from explorer.schema.events import StopAsked
from team_script import only_run

Running = subprocess.Popen[str]


def first_line(process: Running) -> str:
    """What a process says first."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_run_at_work_is_steered_and_nothing_else_is_done_to_it(kept_run: Path, here: Explorer) -> None:
    """Whoever holds its lock is named, and the way to speak to it; removal and export are refused; words are queued."""
    journal = Journal.open(kept_run / ".explorer", lambda: NOON)
    try:
        refused = here("resume", "latest", "--model", "offline")
        assert refused.returncode == 2
        assert f"process {os.getpid()} is working on this run" in refused.stderr
        assert f"explorer steer {kept_run.name}" in refused.stderr
        assert "is running and cannot be removed" in here("runs", "rm", "latest", "--yes").stderr
        assert here("runs", "gc", "--keep", "0", "--unfinished", "--yes").stdout == "nothing to remove\n"
        assert "is running and cannot be packed" in here("runs", "export", "latest").stderr
        looked_at = here("doctor", "latest")
        assert looked_at.returncode == 0
        assert f"locked by process {os.getpid()}" in looked_at.stdout
        queued = json.loads(here("steer", "latest", "First words", "--wait", "0", "--output-format", "json").stdout)
        assert (queued["state"], queued["record"]) == ("queued", None)
    finally:
        journal.close()
    assert [order.text for order in Inbox(kept_run / ".explorer").waiting()] == ["First words"]


@pytest.mark.slow
def test_a_running_run_is_watched_and_steered_and_nothing_else_is_done_to_it(
    held_run: Running, hold: Hold, here: Explorer, tmp_path: Path
) -> None:
    """A watcher sees every record; words are queued, then applied; a second process, removal and export are refused."""
    folder = only_run(tmp_path / "workspace")
    refused = here("resume", "latest", "--model", "offline")
    assert refused.returncode == 2
    assert f"process {held_run.pid} is working on this run" in refused.stderr
    assert f"explorer steer {folder.name}" in refused.stderr
    assert "is running and cannot be removed" in here("runs", "rm", "latest", "--yes").stderr
    assert here("runs", "gc", "--keep", "0", "--unfinished", "--yes").stdout == "nothing to remove\n"
    assert "is running and cannot be packed" in here("runs", "export", "latest").stderr
    looked_at = here("doctor", "latest")
    assert looked_at.returncode == 0
    assert f"locked by process {held_run.pid}" in looked_at.stdout
    queued = json.loads(here("steer", "latest", "First words", "--wait", "0", "--output-format", "json").stdout)
    assert (queued["state"], queued["record"]) == ("queued", None)

    watching = begin_explorer("watch", "latest", "--output-format", "stream-json", cwd=tmp_path)
    # A record on its stdout says that it follows.
    assert json.loads(first_line(watching))["type"] == "run_started"
    steering = begin_explorer("steer", "latest", "Second words", cwd=tmp_path)
    assert first_line(steering) == "queued"
    hold.let_go.set()
    code, shown, error = end_of(steering)
    assert code == 0, error
    # The only service hung up: no source could be reached.
    assert end_of(held_run)[0] == 6
    code, seen, _ = end_of(watching)
    assert code == 6

    records = read_records(folder)
    heard = [record for record in records if record.event.type == "steered"]
    assert [record.event.text for record in heard if record.event.type == "steered"] == ["First words", "Second words"]
    assert shown.strip() == f"applied at record {heard[-1].seq}"
    lines = [json.loads(line) for line in seen.splitlines()]
    assert [line["seq"] for line in lines[:-1]] == list(range(2, len(records) + 1))
    assert (lines[-1]["type"], lines[-1]["status"]) == ("result", "sources_unavailable")
    facts = json.loads(here("show", "latest", "--output-format", "json").stdout)
    assert [order["text"] for order in facts["orders"]] == ["First words", "Second words"]


@pytest.mark.slow
def test_a_stop_is_queued_then_applied_and_the_run_writes_up(
    held_run: Running, hold: Hold, here: Explorer, tmp_path: Path
) -> None:
    """The run ends with a report and says why; speaking to it afterwards is refused with the way on."""
    stopping = begin_explorer("stop", "latest", cwd=tmp_path)
    assert first_line(stopping) == "queued"
    hold.let_go.set()
    code, shown, error = end_of(stopping)
    assert code == 0, error
    run_code, report, _ = end_of(held_run)
    assert run_code == 3
    assert f"reason: {STOP_REASON}" in report
    folder = only_run(tmp_path / "workspace")
    (applied,) = [record for record in read_records(folder) if isinstance(record.event, StopAsked)]
    assert shown.strip() == f"applied at record {applied.seq}"
    late = here("steer", "latest", "too late")
    assert late.returncode == 2
    assert f'explorer resume {folder.name} "your message"' in late.stderr
    assert here("stop", "latest").returncode == 2


@pytest.mark.slow
def test_stop_now_ends_the_process(held_run: Running, here: Explorer, tmp_path: Path) -> None:
    """The one that holds the lock gets SIGTERM; words that it had no time to hear wait; the run can be resumed."""
    waiting = here("steer", "latest", "Hello?", "--wait", "0.2s")
    assert (waiting.returncode, waiting.stdout) == (0, "queued\n")
    assert "not applied within 0.2 s" in waiting.stderr
    done = here("stop", "latest", "--now")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"asked process {held_run.pid} to end\nended\n"
    assert "explorer resume" in done.stderr
    assert end_of(held_run)[0] == 143
    assert not is_running(only_run(tmp_path / "workspace"))


@pytest.mark.slow
def test_words_for_a_run_that_dies_are_said_to_be_unheard(held_run: Running, tmp_path: Path) -> None:
    """And they are taken back, so that a later life does not obey them."""
    steering = begin_explorer("steer", "latest", "Are you there?", cwd=tmp_path)
    stopping = begin_explorer("stop", "latest", "--wait", "none", cwd=tmp_path)
    assert [first_line(steering), first_line(stopping)] == ["queued", "queued"]
    held_run.send_signal(signal.SIGKILL)
    code, _, error = end_of(steering)
    assert code == 1
    assert "ended before it read the message" in error
    assert "explorer resume 20" in error
    assert end_of(stopping) == (0, "the run ended by itself meanwhile\n", "")
    assert Inbox(only_run(tmp_path / "workspace") / ".explorer").waiting() == []


@pytest.mark.slow
def test_a_stop_that_came_too_late_does_not_stop_the_next_life(kept_run: Path, here: Explorer) -> None:
    """An order to stop is meant for the process that was at work."""
    Inbox(kept_run / ".explorer").leave(ControlKind.STOP, STOP_REASON, lambda: 1)
    assert "1 order waiting" in here("doctor", "latest").stdout
    shown = json.loads(here("resume", "latest", "And then?", "-q", "--output-format", "json").stdout)
    assert shown["status"] == "complete"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("steer", "latest"), "no message"),
        (("steer", "latest", "x", "--wait", "soon"), "--wait"),
        (("steer", "latest", "hello"), "is not running"),
        (("stop", "latest"), "is not running"),
        (("stop", "latest", "--now"), "is not running"),
    ],
)
def test_what_cannot_be_said_is_refused(kept_run: Path, here: Explorer, arguments: tuple[str, ...], words: str) -> None:
    """One line, and what to do instead; the run is as it was."""
    before = (kept_run / ".explorer" / "journal.jsonl").read_bytes()
    done = here(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "\n  → " in done.stderr
    assert (kept_run / ".explorer" / "journal.jsonl").read_bytes() == before


def test_words_that_no_run_would_take_are_refused(tmp_path: Path) -> None:
    """They would lie in the inbox for ever."""
    with pytest.raises(ConfigError, match="70,0"):
        Inbox(tmp_path).leave(ControlKind.STEER, "x" * 70_000, lambda: 1)
    assert list(tmp_path.iterdir()) == []


def test_a_stale_holder_is_nobody(kept_run: Path) -> None:
    """A number in a file after a crash may be another program's by now."""
    (kept_run / ".explorer" / "holder").write_text("1")
    assert holder(kept_run) is None


def test_a_journal_is_read_record_by_record_as_it_grows(kept_run: Path, tmp_path: Path) -> None:
    """Also when it is read in the middle of a line."""
    content = (kept_run / ".explorer" / "journal.jsonl").read_bytes()
    growing = tmp_path / "growing" / ".explorer"
    growing.mkdir(parents=True)
    tail = JournalTail(growing.parent)
    seen: list[int] = []
    for end in (*range(0, len(content), len(content) // 7 + 1), len(content)):
        (growing / "journal.jsonl").write_bytes(content[:end])
        seen += [record.seq for record in tail.read()]
    assert seen == list(range(1, len(read_records(kept_run)) + 1))
