"""The command `repl`: lines from a pipe, and a session on a real terminal with a run at work below it."""

import os
import pty
import re
import select
import subprocess
import termios
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.stage import SCRIPT, Explorer, Hold, clean_environment
from explorer.cli.commands.repl import COMMANDS
from explorer.journal.listing import list_runs, read_records
from explorer.schema.events import RunFinished, Steered, StopAsked

ROPES = "# Ropes\n\nA kite rope costs 12 euros. A climbing rope costs 80 euros.\n"
PATIENCE_S = 40
READY, BRACKETED_PASTE = "(ready)", "\x1b[?2004h"
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
CTRL_C, CTRL_D, UP = b"\x03", b"\x04", b"\x1b[A"


@pytest.fixture
def notes(tmp_path: Path) -> dict[str, str]:
    """Settings with which offline mode answers from a folder, without a network."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "ropes.md").write_text(ROPES)
    return {"EXPLORER_CORPUS": "notes", "EXPLORER_MODEL": "offline"}


@pytest.mark.slow
def test_lines_from_a_pipe_are_a_conversation_in_one_run(
    explorer: Explorer, notes: dict[str, str], tmp_path: Path
) -> None:
    """A question, its sources, a follow-up in the same run, a second run; the exit code is the last run's."""
    lines = (
        "What do the ropes cost?", "/sources", "/sources S1", "And a climbing rope?", "/verify", "/cost", "/status",
        "/new What does a kite rope cost?", "/runs",
    )  # fmt: skip
    done = explorer("repl", stdin="\n".join(lines), **notes)
    assert done.returncode == 0, done.stderr
    assert "## Follow-up: And a climbing rope?" in done.stdout
    assert "A climbing rope costs 80 euros." in done.stdout
    assert "file:ropes.md" in done.stdout
    assert "cited sentences, of which" in done.stdout
    runs = list_runs(tmp_path / "workspace")
    assert [run.question for run in runs] == ["What do the ropes cost?", "What does a kite rope cost?"]
    assert not (tmp_path / ".local" / "state" / "explorer" / "repl_history").exists()
    again = explorer("repl", "latest", stdin="/status\n/open nowhere\n/status\n", **notes)
    assert (again.returncode, again.stderr.count("What does a kite rope cost?")) == (0, 1)
    assert "nowhere" in again.stderr


@pytest.mark.slow
def test_files_and_a_folder_are_given_to_new_runs(explorer: Explorer, notes: dict[str, str], tmp_path: Path) -> None:
    """Each new run has them, a follow-up keeps them, `/file` changes them, and a run that was started gets no more."""
    (tmp_path / "knots.txt").write_text("A bowline knot takes 3 seconds.\n")
    del notes["EXPLORER_CORPUS"]
    lines = (
        "What do the ropes cost?",
        "And a climbing rope?",
        "/file",
        "/new What does a kite rope cost?",
        "/file no",
        '/file "x',
    )
    done = explorer("repl", "--file", "knots.txt", "--corpus", "notes", stdin="\n".join(lines), **notes)
    assert done.returncode == 0, done.stderr
    assert "A climbing rope costs 80 euros." in done.stdout
    first, second = (run.folder for run in list_runs(tmp_path / "workspace"))
    assert [path.name for path in (first / "inputs").iterdir()] == ["knots.txt"]
    assert not (second / "inputs").exists()
    assert "A kite rope costs 12 euros." in (second / "report.md").read_text()
    assert "there is no file no" in done.stderr
    assert "put a path with spaces into quotes" in done.stderr
    for words, why in (
        (("--file", "no.txt"), "there is no file no.txt"),
        (("latest", "--file", "knots.txt"), "resumed"),
    ):
        refused = explorer("repl", *words, stdin="What?\n", **notes)
        assert (refused.returncode != 0, why in refused.stderr) == (True, True), refused.stderr


@pytest.mark.slow
def test_a_wrong_line_ends_no_session(explorer: Explorer, tmp_path: Path) -> None:
    """Unknown commands, commands without a run, values that are not allowed: one line each with the way out."""
    lines = (
        "/hlep",
        "/status",
        "/report",
        "/steer now",
        "/stop",
        "/limit cost lots",
        "/limit luck 1",
        "/preset no",
        "/open",
        "/help",
    )
    done = explorer("repl", stdin="\n".join(lines), EXPLORER_MODEL="offline")
    assert done.returncode == 0, done.stderr
    assert "did you mean /help?" in done.stderr
    assert done.stderr.count("there is no run yet") == 2
    assert done.stderr.count("no run is at work") == 2
    assert "'lots' is not allowed" in done.stderr
    assert "for example: /limit cost 2" in done.stderr
    assert "there is no preset 'no'" in done.stderr
    assert all(name in done.stderr for name in COMMANDS)
    assert not (tmp_path / "workspace").exists()


class Terminal:
    """A terminal with a session on it: what is typed, and what it shows."""

    def __init__(self, leader: int) -> None:
        self._leader = leader
        self.shown = b""
        self._read = 0

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._leader, keys)

    def wait_for(self, *words: str) -> None:
        """Read until each was shown since the last time, in any order."""
        until = time.monotonic() + PATIENCE_S
        while not all(one in self._new() for one in words):
            assert time.monotonic() < until, (words, self._new())
            if select.select([self._leader], [], [], 1)[0]:
                self.shown += os.read(self._leader, 65_536)
        self._read = len(self.shown)

    def _new(self) -> str:
        """What was shown since the last time, without what moves the cursor or colours; a prompt is READY."""
        text = self.shown[self._read :].decode(errors="replace").replace(BRACKETED_PASTE, READY)
        return ESCAPES.sub("", text)


@contextmanager
def session(folder: Path, **variables: str) -> Generator[tuple[Terminal, "subprocess.Popen[bytes]", Any]]:
    """A session on a terminal of its own, and how the terminal was set before it."""
    leader, follower = pty.openpty()
    before = termios.tcgetattr(follower)
    environment = clean_environment(folder) | variables | {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
    with subprocess.Popen(
        [str(SCRIPT), "repl", "--model", "offline"],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        cwd=folder,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            yield Terminal(leader), process, (follower, before)
        finally:
            process.kill()
            os.close(leader)
            os.close(follower)


@pytest.mark.slow
def test_a_session_on_a_terminal(hold: Hold, tmp_path: Path) -> None:
    """While a run works its tree is shown and words go to it; Ctrl-C once and twice stop the run, not the session."""
    services = {
        "EXPLORER_HN_API_URL": f"{hold.url}/v0",
        "EXPLORER_HN_SEARCH_URL": f"{hold.url}/api/v1",
        "EXPLORER_ALLOW_HOSTS": "127.0.0.1",
        "EXPLORER_TAVILY_URL": hold.url,
    }
    with session(tmp_path, **services) as (terminal, process, (follower, before)):
        terminal.wait_for("/help lists commands", READY)
        terminal.type(b"not this" + CTRL_C + b"What is notable on Hacker News today?\r")
        assert hold.asked.wait(PATIENCE_S)
        terminal.wait_for("searcher-1", "Ctrl-C: stop", READY)
        terminal.type(b"only databases\r/report\r/status\r" + CTRL_D + CTRL_C)
        terminal.wait_for(
            "sent to the run: only databases",
            "/report waits for the end of the run",
            "at work",
            "the run is at work",
            "stopping: helpers are cut off",
            "continue  explorer resume",
            READY,
        )
        hold.asked.clear()
        terminal.type(b"/new What was notable on Hacker News yesterday?\r")
        assert hold.asked.wait(PATIENCE_S)
        terminal.wait_for("searcher-1")
        terminal.type(CTRL_C + CTRL_C)
        terminal.wait_for("stopped; everything so far is saved", READY)
        terminal.type(UP)
        terminal.wait_for("yesterday?")
        terminal.type(CTRL_C + b"/quit\r")
        assert process.wait(PATIENCE_S) == 0
        assert termios.tcgetattr(follower)[3] == before[3], "the terminal echoes again"
    first, second = (tmp_path / "workspace" / run.run_id for run in list_runs(tmp_path / "workspace"))
    events = [record.event for record in read_records(first)]
    assert [event.text for event in events if isinstance(event, Steered)] in ([], ["only databases"])
    assert any(isinstance(event, RunFinished) for event in events)
    assert not any(isinstance(record.event, RunFinished | StopAsked) for record in read_records(second))
    history = tmp_path / ".local" / "state" / "explorer" / "repl_history"
    assert history.stat().st_mode & 0o777 == 0o600
    text = history.read_text()
    assert "What is notable on Hacker News today?" in text
    assert "not this" not in text
