"""Tables and pages fit the terminal; in a pipe they are whole lines, for programs."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

import pytest
from rich.cells import cell_len

from cli.conftest import STORY
from cli.stage import SCRIPT, Explorer, clean_environment
from cli.test_process import read_to_end
from explorer.cli.screens.output import aligned, emit_page

HEADER = ("RUN", "STATUS", "QUESTION")
ROWS = [
    ("20260810-120000-how-was-may-0001", "complete", "How was May for the plant, and what about the battery in June?"),
    ("20260810-120000-how-was-may-0002", "-", "これはテストです。" * 8),
]
PAGES = (
    ("runs",),
    ("show", "latest"),
    ("show", "latest", "--timeline"),
    ("show", "latest", "--files"),
    ("config", "show"),
    ("agents",),
    ("models",),
    ("tools",),
    ("verify", "latest"),
)


@contextmanager
def pseudo_terminal() -> Generator[tuple[int, list[str]]]:
    """A terminal for processes to write to; what it got, in one piece, once it is left, however that is."""
    shown: list[str] = []
    outer, inner = pty.openpty()
    with ThreadPoolExecutor(1) as reader:
        reading = reader.submit(read_to_end, outer)
        try:
            yield inner, shown
        finally:
            # The reader waits for the last writer to go.
            os.close(inner)
    shown.append(reading.result())
    os.close(outer)


@contextmanager
def terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> Generator[list[str]]:
    """A terminal as stdout; the lines that it got, once it is left."""
    lines: list[str] = []
    monkeypatch.setenv("COLUMNS", str(columns))
    with (
        pseudo_terminal() as (inner, shown),
        os.fdopen(os.dup(inner), "w", encoding="utf-8") as file,
        redirect_stdout(file),
    ):
        yield lines
    lines += shown[0].splitlines()


@pytest.mark.parametrize("columns", [30, 40, 66, 80, 200])
def test_a_table_fits_and_loses_nothing(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every width each word is there; only an id that is longer than a line is left whole."""
    with terminal(columns, monkeypatch) as lines:
        emit_page(aligned(HEADER, ROWS))
    assert all(cell_len(line) <= columns or line in {row[0] for row in ROWS} for line in lines)
    words = re.sub(r"\s+", "", "".join(lines))
    for row in ROWS:
        assert all(re.sub(r"\s+", "", cell) in words for cell in row if cell != "-")


def test_a_pipe_gets_whole_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """One line a row, whatever its length."""
    emit_page(aligned(HEADER, ROWS))
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(ROWS)


def test_a_page_is_continued_under_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that begins with a name goes on behind the name."""
    with terminal(40, monkeypatch) as lines:
        emit_page("status  partial (the cost limit was reached while helpers were at work)\n  short")
    assert lines == [
        "status  partial (the cost limit was",
        "        reached while helpers were at",
        "        work)",
        "  short",
    ]


@pytest.mark.slow
def test_pages_at_80_columns(here: Explorer, tmp_path: Path) -> None:
    """No line of any page is wrapped by a terminal of 80 columns."""
    assert here("demo", STORY, "-q").returncode == 0
    for page in PAGES:
        environment = clean_environment(tmp_path) | {"COLUMNS": "80", "TERM": "xterm"}
        with pseudo_terminal() as (inner, shown):
            subprocess.run([SCRIPT, *page], stdout=inner, cwd=tmp_path, env=environment, check=False, timeout=200)
        lines = re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", shown[0]).splitlines()
        assert lines, page
        assert [line for line in lines if cell_len(line.rstrip()) > 80 and " " in line.strip()] == [], page


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 100])
def test_a_run_on_a_terminal(tmp_path: Path, columns: int) -> None:
    """The view fits; the answer ends on the summary and the path, and its references are in the file."""
    environment = clean_environment(tmp_path) | {"TERM": "xterm", "COLUMNS": str(columns)}
    with pseudo_terminal() as (inner, all_shown):
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
        command = [SCRIPT, "demo", STORY, "--no-shell"]
        subprocess.run(command, stdout=inner, stderr=inner, cwd=tmp_path, env=environment, check=True, timeout=200)
    text = re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "\n", re.sub(r"\x1b\[[0-9;]*m", "", all_shown[0]))
    lines = [line.rstrip() for line in text.splitlines()]
    shown, answer = text.partition("This report was made without")[::2]
    assert [line for line in shown.splitlines() if cell_len(line) > columns] == []
    assert re.search(r"^spent +\$0\.00 · ", shown, re.MULTILINE)
    assert "References" not in answer
    assert answer.index("Summary: ") < answer.index("\ncomplete: ") < answer.index("report.md")
    assert next(line for line in reversed(lines) if line).startswith("  continue  explorer resume")
    (report,) = tmp_path.glob("workspace/*/report.md")
    assert "## References" in report.read_text()
