"""The command `grep`: lines of runs by pattern, for people and for programs."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cyclopts import App

from cli.stage import Process
from explorer.cli.commands.grep import MAX_REPEATS, SECONDS_A_FILE, _compiled, _search, grep
from explorer.schema.errors import ConfigError, NotFoundError
from reports.library.stage import FIRST, SECOND, past_run, stored

Typed = Callable[..., Process]
REPORT = "# SQLite\n\nAfter a power cut the log\x1b[2J\u202e is replayed.\nPower is cheap.\n"


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """Type a command line in a folder with two runs and something that is none."""
    workspace = tmp_path / "workspace"
    page = stored("S1", "Logs", "https://wal.example/", "A power cut is survived.")
    past_run(workspace, FIRST, "What is new?", {"report.md": REPORT, "topics/a.md": "No power here\n", **page})
    past_run(workspace, SECOND, "Ropes?", {"report.md": "Ropes (strong) need no power.\n"})
    (workspace / "foreign").mkdir()
    (workspace / "foreign" / "report.md").write_text("power")
    monkeypatch.chdir(tmp_path)
    app = App(result_action="return_value", exit_on_error=False)
    app.command(grep, name="grep")

    def run(*words: str) -> Process:
        capsys.readouterr()
        code = app(["grep", *words])
        shown = capsys.readouterr()
        return Process([*words], code or 0, shown.out, shown.err)

    return run


def test_lines_are_found_and_shown_safely(typed: Typed) -> None:
    """Run, path, line and text, the newest run last; what would steer a terminal is gone; the end says found."""
    done = typed("power")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"{FIRST}/report.md:3: After a power cut the log is replayed.",
        f"{FIRST}/topics/a.md:1: No power here",
        f"{SECOND}/report.md:1: Ropes (strong) need no power.",
    ]


@pytest.mark.parametrize(
    ("words", "places"),
    [
        (("-i", "^power"), [f"{FIRST}/report.md:4"]),
        (("(strong)", "--fixed"), [f"{SECOND}/report.md:1"]),
        (("power", SECOND[:12]), [f"{SECOND}/report.md:1"]),
        (
            ("power", "latest", FIRST, "latest", "-l"),
            [f"{SECOND}/report.md", f"{FIRST}/report.md", f"{FIRST}/topics/a.md"],
        ),
        (("survived", "--sources"), [f"{FIRST}/.explorer/sources/S1.md:15"]),
    ],
)
def test_what_is_looked_through_can_be_chosen(typed: Typed, words: tuple[str, ...], places: list[str]) -> None:
    """Case, plain text, runs, files only, stored sources."""
    assert [line.partition(": ")[0] for line in typed(*words).stdout.splitlines()] == places


def test_nothing_found_is_told_by_the_end(typed: Typed) -> None:
    """As other tools of this kind do: 1, and silence; sources only when asked for; no words of an empty list."""
    assert (typed("survived").returncode, typed("survived").stdout) == (1, "")
    assert (typed("xyz", "--output-format", "json").returncode, typed("xyz", "--output-format", "json").stdout) == (
        1,
        "[]\n",
    )


def test_programs_get_fields(typed: Typed) -> None:
    """One list, or a line each; the text as it stands in the file."""
    whole = json.loads(typed("cut", "--output-format", "json").stdout)
    text = "After a power cut the log\x1b[2J\u202e is replayed."
    assert whole == [{"run_id": FIRST, "path": "report.md", "line": 3, "text": text}]
    assert json.loads(typed("cut", "--output-format", "stream-json").stdout) == whole[0]
    assert json.loads(typed("cut", "-l", "--output-format", "json").stdout) == [{"run_id": FIRST, "path": "report.md"}]


@pytest.mark.parametrize("pattern", ["(", "a{9999}{9999}", f"a{{{MAX_REPEATS + 1}}}", "x{99999999999999999999}"])
def test_a_bad_pattern_is_the_users(typed: Typed, pattern: str) -> None:
    """Exit code 2, with a way out; as plain text it is none."""
    with pytest.raises(ConfigError) as refused:
        typed(pattern)
    assert (refused.value.exit_code, bool(refused.value.hint)) == (2, True)
    assert typed(pattern, "--fixed").returncode in {0, 1}


def test_a_pattern_that_would_never_end_is_stopped() -> None:
    """It backtracks without end; the time is up, and the user is told."""
    endless = _compiled("(a|aa)+$", is_fixed=False, ignores_case=False)
    with pytest.raises(ConfigError, match="takes too long"):
        _search(endless, "a" * 5_000 + "!", time.monotonic() + 0.05)


@pytest.mark.slow
def test_a_command_with_such_a_pattern_ends(typed: Typed, tmp_path: Path) -> None:
    """In the seconds a file may take, and with the user's exit code."""
    past_run(tmp_path / "workspace", "20260811-120000-long-0007", "Long", {"a.md": "a" * 5_000 + "!\n"})
    begun = time.process_time()
    with pytest.raises(ConfigError, match="takes too long"):
        typed("(a|aa)+$", "20260811")
    assert time.process_time() - begun < 4 * SECONDS_A_FILE


def test_without_runs_it_says_so(typed: Typed) -> None:
    """An empty folder, and a run that is not there."""
    with pytest.raises(NotFoundError, match="there are no runs in"):
        typed("x", "--workspace", "elsewhere")
    with pytest.raises(NotFoundError, match="there is no run"):
        typed("x", "2031")


def test_a_terminal_gets_colours(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fits is marked where it stands, in a long line too, and no line is broken."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    past_run(Path("workspace"), "20260811-120000-long-0007", "Long", {"a.md": "x " * 300 + "zebra" + " y" * 300})
    (line,) = typed("zebra").stdout.splitlines()
    assert "\x1b[1;31mzebra\x1b[0m" in line
    assert "\x1b[35m20260811-120000-long-0007/a.md\x1b[0m" in line
    (name,) = typed("zebra", "-l").stdout.splitlines()
    assert name == "\x1b[35m20260811-120000-long-0007/a.md\x1b[0m"


def test_a_damaged_run_can_still_be_read(typed: Typed) -> None:
    """Its journal is broken, its findings are there: a person who looks for them finds them."""
    (Path("workspace") / FIRST / ".explorer" / "journal.jsonl").write_text("broken\n")
    assert f"{FIRST}/report.md:3" in typed("power").stdout
