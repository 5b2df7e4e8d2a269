"""Approval rules as a user has them: from all origins, asked in a terminal, and answered by no one elsewhere."""

import fcntl
import json
import os
import pty
import signal
import subprocess
import termios
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli.conftest import STORY
from cli.stage import SCRIPT, Explorer, clean_environment
from explorer.cli.settings.configuration import read_configuration
from explorer.cli.settings.layers import NO_FLAGS, Flags
from explorer.journal.listing import read_records
from explorer.journal.run_state import RunState
from explorer.observe.formatting import approval_words
from explorer.run.resumed_settings import as_started
from explorer.schema.approvals import ApprovalRequest
from explorer.schema.events import ApprovalAnswer, ApprovalDecided, RunStarted, ToolStarted
from explorer.schema.settings import Settings

QUESTION = b"?  y: yes"
ASK = ("--approval", "ask write_file(*.md)")


def decided(folder: Path) -> list[ApprovalDecided]:
    """The answers in the journal of the one run there is."""
    (run,) = (folder / "workspace").glob("2*")
    return [one.event for one in read_records(run) if isinstance(one.event, ApprovalDecided)]


@contextmanager
def at_terminal(folder: Path, *words: str) -> Generator[tuple["subprocess.Popen[bytes]", int]]:
    """The command in a terminal of its own, as its foreground program."""
    terminal, inner = pty.openpty()
    environment = clean_environment(folder) | {"TERM": "xterm-256color", "LINES": "40"}
    process = subprocess.Popen(
        [str(SCRIPT), *words],
        stdin=inner,
        stdout=inner,
        stderr=inner,
        cwd=folder,
        env=environment,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - the child makes it its terminal
    )
    os.close(inner)
    with process:
        yield process, terminal
    os.close(terminal)


def answer(terminal: int, key: str) -> bytes:
    """Press a key whenever the question is drawn, until the program ends; return what it showed."""
    shown = b""
    while True:
        try:
            new = os.read(terminal, 65536)
        except OSError:
            return shown
        shown += new
        if QUESTION in new:
            os.write(terminal, key.encode())


def wait_for_question(terminal: int) -> None:
    """Read until the question is drawn."""
    shown = b""
    while QUESTION not in shown:
        shown = shown[-100:] + os.read(terminal, 65536)


@pytest.mark.slow
def test_a_key_in_the_terminal_answers(tmp_path: Path) -> None:
    """The whole call is shown above the live view, `a` holds for the run, and the terminal is as it was before."""
    with at_terminal(tmp_path, "demo", STORY, *ASK) as (process, terminal):
        shown = answer(terminal, "a").decode()
        modes = termios.tcgetattr(terminal)[3]
    assert process.returncode == 0, shown
    assert "searcher-1 needs your approval: write_file (your rule: ask write_file(*.md))" in shown
    assert "  filepath: " in shown
    assert modes & termios.ICANON
    assert modes & termios.ECHO
    assert [one.answer for one in decided(tmp_path)] == [ApprovalAnswer.RUN]


@pytest.mark.slow
def test_no_is_no(tmp_path: Path) -> None:
    """Every call that asks is refused, and none has begun."""
    with at_terminal(tmp_path, "demo", STORY, *ASK) as (_, terminal):
        answer(terminal, "n")
    answers = decided(tmp_path)
    assert answers
    assert {one.answer for one in answers} == {ApprovalAnswer.NO}
    (run,) = (tmp_path / "workspace").glob("2*")
    begun = {one.event.call for one in read_records(run) if isinstance(one.event, ToolStarted)}
    assert begun.isdisjoint(one.call for one in answers)


@pytest.mark.slow
def test_a_question_outlives_a_kill_and_an_answer_does_too(tmp_path: Path) -> None:
    """Killed while it asks, the run asks again; `a` from the session before holds in the next, whose rules it keeps."""
    with at_terminal(tmp_path, "demo", STORY, *ASK) as (process, terminal):
        wait_for_question(terminal)
        process.kill()
    assert decided(tmp_path) == []
    with at_terminal(tmp_path, "resume", "latest") as (process, terminal):
        assert process.poll() is None
        wait_for_question(terminal)
        os.write(terminal, b"a")
        while not decided(tmp_path):
            os.read(terminal, 65536)
        process.kill()
    resumed = subprocess.run(
        [str(SCRIPT), "resume", "latest"],
        cwd=tmp_path,
        env=clean_environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert resumed.returncode == 0, resumed.stderr
    assert [one.answer for one in decided(tmp_path)] == [ApprovalAnswer.RUN]


@pytest.mark.slow
def test_ctrl_c_while_asking_ends_the_question(tmp_path: Path) -> None:
    """The run is stopped with a report, nothing is decided, and nobody waits for a key."""
    with at_terminal(tmp_path, "demo", STORY, *ASK) as (process, terminal):
        wait_for_question(terminal)
        process.send_signal(signal.SIGINT)
        answer(terminal, "")
    (run,) = (tmp_path / "workspace").glob("2*")
    assert (run / "report.md").exists()
    assert ApprovalAnswer.ONCE not in {one.answer for one in decided(tmp_path)}


def test_without_a_terminal_the_call_is_refused(here: Explorer, tmp_path: Path) -> None:
    """One line names the rule and the way out, the agent is told, the record says it, and `show` shows it."""
    done = here("demo", STORY, *ASK)
    assert "write_file refused: `ask write_file(*.md)` asks, and there is no one to ask" in done.stderr
    assert "--approval 'allow write_file'" in done.stderr
    assert {one.answer for one in decided(tmp_path)} == {ApprovalAnswer.UNASKED}
    assert "asks, and there is no one to ask" in here("show", "--timeline").stdout


@pytest.mark.slow
@pytest.mark.usefixtures("kept_run")
def test_tools_shows_the_rules(here: Explorer) -> None:
    """Each tool with the rules that can decide on it, in order; a mistyped rule is refused."""
    rules = ("--approval", "allow read_file(*.md)", "--approval", "deny read_*")
    assert "read_file     allow read_file(*.md); deny read_*" in here("tools", *rules).stdout
    listed = {
        one["name"]: one["approval"] for one in json.loads(here("tools", *rules, "--output-format", "json").stdout)
    }
    assert (listed["read_source"], listed["web_search"]) == (["deny read_*"], [])
    wrong = here("tools", "--approval", "ask wirte_file")
    assert (wrong.returncode, "did you mean write_file?" in wrong.stderr) == (2, True)
    wrong = here("demo", "--approval", "ask write_file(path: x)")
    assert (wrong.returncode, "its arguments: filepath, content, mode" in wrong.stderr) == (2, True)
    wrong = here("resume", "latest", "More.", "--approval", "ask wirte_file")
    assert (wrong.returncode, "did you mean write_file?" in wrong.stderr) == (2, True)
    wrong = here("demo", "--approval", "never write_file")
    assert (wrong.returncode, "flag --approval: 'never write_file' is not allowed" in wrong.stderr) == (2, True)


def test_rules_of_all_origins_add_to_each_other(tmp_path: Path) -> None:
    """In the order in which origins count; those of a folder only tighten until it is trusted."""
    mine = tmp_path / ".config" / "explorer" / "config.toml"
    mine.parent.mkdir(parents=True)
    mine.write_text('approval_rules = ["deny a", "ask b"]\n')
    (tmp_path / "explorer.toml").write_text('approval_rules = ["allow a", "deny c"]\n')
    home = {"HOME": str(tmp_path), "EXPLORER_APPROVAL_RULES": "ask d"}
    flags = Flags({"approval_rules": "ask e"}, {})
    found = read_configuration(flags, home, tmp_path)
    assert found.withheld == ()
    assert found.settings.approval_rules == ("ask e", "ask d", "deny a", "ask b")
    assert found.settings.tightening_rules == ("allow a", "deny c")
    assert [one.value for one in found.values if one.name == "tightening_rules"] == ["allow a,deny c"]
    trusted = read_configuration(Flags({}, {}, trusts_folder=True), home, tmp_path).settings
    assert (trusted.approval_rules, trusted.tightening_rules) == (("ask d", "allow a", "deny c", "deny a", "ask b"), ())
    only = read_configuration(NO_FLAGS, {"HOME": "/nowhere"}, tmp_path).settings
    assert (only.approval_rules, only.tightening_rules) == ((), ("allow a", "deny c"))


def test_a_resumed_run_keeps_its_rules() -> None:
    """Rules given now come first; those of a journal that was carried here are not taken."""
    begun = Settings(approval_rules=("deny a", "ask b"), tightening_rules=("deny c",))
    run_state = RunState.of([RunStarted(run_id="r", question="q", engine="0", settings=begun.public())])
    resumed = as_started(Settings(approval_rules=("allow a",)), run_state, is_own=True)
    assert (resumed.approval_rules, resumed.tightening_rules) == (("allow a", "deny a", "ask b"), ("deny c",))
    assert as_started(Settings(), run_state, is_own=False).approval_rules == ()


def test_what_is_shown_is_what_is_done() -> None:
    """Nothing in a call can hide a part of it, or draw a question of its own."""
    command = "echo hi\nsearcher-1: ok?  y: yes\x1b[2K\u202etxt\u200b\ttail"
    request = ApprovalRequest(
        agent="a", role="r", call="c", tool="execute_shell", arguments={"command": command}, rule="ask *"
    )
    assert approval_words(request) == (
        "a needs your approval: execute_shell (your rule: ask *)\n"
        "  command: echo hi\n"
        "         | searcher-1: ok?  y: yes\\x1b[2K\\u202etxt\\u200b\\ttail"
    )
    long = request.model_copy(update={"arguments": {"content": "x" * 30_000}})
    assert approval_words(long).endswith("and 6000 characters more that are not shown")


def test_a_rule_for_a_tool_of_a_server_is_checked_by_the_roles(here: Explorer, tmp_path: Path) -> None:
    """`tools` shows the rules of what role files name, and a slip in such a name is found; no server is started."""
    (tmp_path / "roles").mkdir()
    role = "---\nname: clerk\ndescription: Writes.\ntools: [mcp__desk__write]\nmodel: fast\n---\nWrite."
    (tmp_path / "roles" / "clerk.md").write_text(role)
    rules = ("--roles", "roles", "--approval")
    assert "mcp__desk__write  ask mcp__*" in here("tools", *rules, "ask mcp__*").stdout
    assert "did you mean mcp__desk__write?" in here("tools", *rules, "ask mcp__desk__wriet").stderr
