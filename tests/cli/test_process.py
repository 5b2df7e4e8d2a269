"""The installed command, end to end: no key, no network, the bundled sample day."""

import json
import os
import pty
import re
import shlex
import signal
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from cli.conftest import STORY
from cli.stage import SCRIPT, Explorer, Hold, end_of
from command import done_here, environment
from explorer.cli.app import run_tokens
from explorer.cli.question import QUESTION_CHARS
from explorer.observe.command_result import CommandResult
from explorer.run.run import MAX_QUESTION_CHARS
from thoroughness import each_slow_but


@pytest.mark.slow
@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_standard_streams_are_no_fault(tmp_path: Path, closed: tuple[int, ...]) -> None:
    """As `explorer demo <&-` in a script, or a service without streams: the run is complete and its exit code is 0."""
    closing = " ".join(f"{number}>&-" for number in closed)
    for words in ("--help", "demo --no-shell", "runs"):
        command = f"{shlex.quote(str(SCRIPT))} {words} {closing}"
        done = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environment(tmp_path, {}), check=False)
        assert done.returncode == 0, words
    assert len(list((tmp_path / "workspace").glob("*/report.md"))) == 1


def test_an_interrupt_while_modules_are_imported_is_no_traceback(tmp_path: Path) -> None:
    """The process ends by the signal, as a shell expects (130), and says nothing."""
    (tmp_path / "cyclopts.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    variables = environment(tmp_path, {}) | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([str(SCRIPT), "runs"], cwd=tmp_path, env=variables, check=False, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


def test_a_demo_run_can_be_made_listed_shown_told_and_continued(
    typed: Explorer, here: Explorer, tmp_path: Path
) -> None:
    """The whole way: the report on stdout, the run in every list, a follow-up in the same run."""
    done = typed("demo", STORY, "-o", "copy.md")
    assert done.returncode == 0, done.stderr
    assert "[1]" in done.stdout
    assert (tmp_path / "copy.md").read_text().rstrip("\n") == done.stdout.rstrip("\n")
    assert re.search(r"^complete: .*report\.md$", done.stderr, re.MULTILINE)
    assert "\x1b" not in done.stdout + done.stderr
    events = [line for line in done.stderr.splitlines() if re.match(r"\d\d:\d\d:\d\d ", line)]
    assert any("searcher-1  " in line and " → " in line for line in events)
    assert any("run complete" in line for line in events)

    (listed,) = json.loads(here("runs", "--output-format", "json").stdout)
    run_id = listed["run_id"]
    assert run_id in here("runs").stdout
    assert here("runs", "list").stdout == here("runs").stdout
    assert f"explorer resume {run_id}" in done.stderr

    page = here("show", run_id[:-2]).stdout
    for word in ("complete", "orchestrator", "searcher-1", "Files", "Timeline", "report.md"):
        assert word in page
    facts = json.loads(here("show", "latest", "--output-format", "json").stdout)
    assert (facts["run_id"], facts["status"]) == (run_id, "complete")
    assert {agent["status"] for agent in facts["agents"]} == {"complete"}
    assert here("report").stdout == done.stdout

    again = here("-c", "What did people argue about most?", "--model", "offline", "--output-format", "json")
    shown_text = json.loads(again.stdout)
    assert shown_text["run_id"] == run_id
    assert shown_text["agents"] >= listed["agents"]
    assert len(json.loads(here("runs", "--output-format", "json").stdout)) == 1


@pytest.mark.slow
def test_stream_json_is_every_record_and_then_the_result(here: Explorer) -> None:
    """One object a line; numbered without gaps; the last one has the shape of `json`."""
    done = here("demo", STORY, "--output-format", "stream-json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[0]["type"] == "run_started"
    assert lines[-2]["type"] == "run_finished"
    assert [line["seq"] for line in lines[:-1]] == list(range(1, len(lines)))
    assert set(lines[-1]) == {"type", *vars(CommandResult("x", 0))}
    assert (lines[-1]["type"], lines[-1]["status"], lines[-1]["exit_code"]) == ("result", "complete", done.returncode)


@pytest.mark.slow
def test_json_is_one_object_and_quiet_is_silent(here: Explorer, kept_run: Path) -> None:
    """Nothing on stderr, one line on stdout."""
    done = here("resume", kept_run.name, "And who disagreed?", "--output-format", "json", "-q")
    assert done.stderr == ""
    shown_text = json.loads(done.stdout)
    assert Path(shown_text["report"]).name == "report.md"
    assert shown_text["report_text"].startswith("---\n")
    assert shown_text["tokens"]["total"] >= 0


def demo_by_process(inner: int, folder: Path, environment: dict[str, str]) -> int:
    """The demo as a terminal starts it."""
    command = [str(SCRIPT), "demo", STORY]
    return subprocess.run(
        command, stdin=inner, stdout=inner, stderr=inner, cwd=folder, env=environment, check=False
    ).returncode


def demo_here(inner: int, folder: Path, environment: dict[str, str]) -> int:
    """The demo on a terminal, in this process."""
    with open(inner, "w", encoding="utf-8", closefd=False) as screen:

        def run() -> int:
            with redirect_stdout(screen), redirect_stderr(screen):
                return run_tokens(["demo", STORY])

        return done_here(run, folder, environment).returncode


@pytest.mark.parametrize(
    ("demo", "variables"),
    [
        (demo_here, {}),
        pytest.param(demo_by_process, {}, marks=pytest.mark.slow),
        pytest.param(demo_by_process, {"NO_COLOR": "1"}, marks=pytest.mark.slow),
    ],
    ids=["here", "colour", "no colour"],
)
def test_on_a_terminal_the_report_is_rendered_and_the_view_is_live(
    tmp_path: Path, demo: Callable[[int, Path, dict[str, str]], int], variables: dict[str, str]
) -> None:
    """Markdown becomes text; the view draws agents; `NO_COLOR` is honoured."""
    terminal, inner = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "xterm-256color", "COLUMNS": "60"}
    with ThreadPoolExecutor(1) as reader:
        reading = reader.submit(read_to_end, terminal)
        code = demo(inner, tmp_path, environment | variables)
        os.close(inner)
        shown = reading.result()
    os.close(terminal)
    assert code == 0
    words = re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", shown)
    assert "Ctrl-C: stop, report in 30 s" in words
    assert "orchestrator" in words
    assert "run_id:" not in words
    assert re.search(r"^complete: ", words, re.MULTILINE)
    assert bool(re.search(r"\x1b\[[0-9;]*3[0-7]m", shown)) == (not variables)


def read_to_end(terminal: int) -> str:
    """All that a terminal gets; its end is an error on Linux."""
    content = b""
    try:
        while chunk := os.read(terminal, 65536):
            content += chunk
    except OSError:
        pass
    return content.decode("utf-8", "replace")


@pytest.mark.slow
def test_verbose_turns_the_log_on_and_a_limit_ends_early_with_a_report(explorer: Explorer) -> None:
    """A run of few steps is partial: exit code 3, and a report all the same."""
    done = explorer("demo", "--max-steps", "3", "--output-format", "json", "-vv")
    shown_text = json.loads(done.stdout)
    assert (shown_text["status"], shown_text["exit_code"], done.returncode) == ("partial", 3, 3)
    assert shown_text["reason"]
    assert Path(shown_text["report"]).name == "report.md"


@pytest.mark.parametrize("arguments", [(), ("",), ("  ",), ("--", ""), ("-",)])
def test_no_question_is_a_usage_error(here: Explorer, arguments: tuple[str, ...]) -> None:
    """Exit code 2, and how to write one."""
    done = here(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert 'explorer "your question"' in done.stderr


@pytest.mark.parametrize(
    ("arguments", "stdin", "question"),
    [(("-",), "runs\n", "runs"), (("--", "-1", "runs"), "", "-1 runs"), (("--lang", "de", "-"), "é x", "é x")],
)
def test_a_question_comes_from_stdin_or_from_behind_two_dashes(
    here: Explorer, arguments: tuple[str, ...], stdin: str, question: str
) -> None:
    """`-` reads it, whatever it looks like; behind `--` nothing is a flag or a command."""
    done = here("--model", "offline", "--dry-run", "--output-format", "json", *arguments, stdin=stdin)
    assert json.loads(done.stdout)["question"] == question


def test_the_limit_of_a_question_is_the_engines() -> None:
    """It is checked before the engine is loaded, and must not differ."""
    assert QUESTION_CHARS == MAX_QUESTION_CHARS


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    each_slow_but(
        3,
        [
            (("--max-steps", "abc", "q q"), 2, "flag --max-steps: 'abc' is not allowed"),
            (("--model", "sercher=x", "q q"), 2, "sercher"),
            (("--file", "gone.txt", "q q"), 5, "gone.txt"),
            (("-o", "gone/copy.md", "q q"), 2, "cannot write the report"),
            (("--bogus", "q q"), 2, "--bogus"),
            (("-1 is what?",), 2, 'explorer -- "-1 is what?"'),
            (("--output-format", "xml", "q q"), 2, "xml"),
            (("resume",), 5, "there are no runs"),
            (("resume", "what about this"), 2, 'explorer resume latest "..."'),
            (("report", "2026"), 5, "there are no runs"),
            (("show", "latest"), 5, "there are no runs"),
            (("-c",), 5, "there are no runs"),
            (("--model", "anthropic:claude-opus-5-5", "q q"), 4, "ANTHROPIC_API_KEY"),
            (("config", "shwo"), 2, "shwo"),
        ],
    ),
)
def test_errors_are_one_line_and_a_way_out(here: Explorer, arguments: tuple[str, ...], code: int, words: str) -> None:
    """What happened and why, then the hint; never a traceback; the same in JSON."""
    done = here(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    *first, message, hint = done.stderr.splitlines()
    assert first in ([], [f"exploring: {arguments[-1]}"])
    assert message.startswith("explorer: ")
    assert hint.startswith("  → ")
    assert words in done.stderr
    if "xml" in arguments:
        return
    shown_text = json.loads(here(*arguments, "--output-format", "json").stdout or "{}")
    if shown_text:
        assert (shown_text["exit_code"], shown_text["status"]) == (code, "error")
        assert shown_text["error"]["message"]


@pytest.mark.slow
def test_a_model_server_that_is_down_is_exit_code_6_and_resumable(explorer: Explorer) -> None:
    """The hint says how to go on, or the error says that nothing was started."""
    done = explorer("--model", "openai:some-model", "--max-time", "5s", "q q", OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert done.returncode in {6, 124}
    assert "explorer resume 20" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_failure(tmp_path: Path) -> None:
    """`explorer config show | true`: no traceback, no complaint."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run(
            [str(SCRIPT), "config", "show"],
            stdout=pipe,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env=environment,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", ["tools", "--help", "--version", "completion bash"])
def test_a_full_disk_behind_stdout_is_told(tmp_path: Path, words: str) -> None:
    """The result is lost, so the exit code says so."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [str(SCRIPT), *words.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env=environment,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith(b"explorer: could not write to standard output: No space left on device\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signals", "code"),
    [
        ((signal.SIGINT,), 3),
        pytest.param((signal.SIGINT, signal.SIGINT), 130, marks=pytest.mark.slow),
        pytest.param((signal.SIGTERM,), 143, marks=pytest.mark.slow),
    ],
    ids=["once", "twice", "term"],
)
def test_a_run_that_is_stopped_says_how_to_go_on(
    held_run: "subprocess.Popen[str]", hold: Hold, tmp_path: Path, signals: tuple[signal.Signals, ...], code: int
) -> None:
    """In the middle of a request: once leaves a report, twice or SIGTERM stop at once; each can be resumed."""
    assert held_run.stderr is not None
    for count, number in enumerate(signals):
        held_run.send_signal(number)
        if number is signal.SIGINT and count == 0:
            assert any("stopping" in line for line in held_run.stderr)
    if code == 3:
        hold.let_go.set()
    ended, shown_text, error = end_of(held_run)
    assert ended == code
    assert ("reason: interrupted by the user" in shown_text) == (code == 3)
    assert (shown_text == "") == (code != 3)
    match = re.search(r"explorer resume (\S+)", error)
    assert match is not None, error
    folder = tmp_path / "workspace" / match[1]
    assert (folder / ".explorer" / "journal.jsonl").is_file()
    assert (folder / "report.md").is_file()
