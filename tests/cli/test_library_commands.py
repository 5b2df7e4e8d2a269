"""The commands `report list` and `report show`."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from cyclopts import App

from cli.stage import Process
from explorer.cli.commands.library import list_reports, show_report
from explorer.reports.library import NewReport
from explorer.schema.errors import NotFoundError
from reports.library.stage import FIRST, NOON, SECOND, begun, library, said

Typed = Callable[..., Process]
NAME = "2026-08-10/sqlite-4-is-out.md"


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """Type a command line in a folder with a library of two days and a file of somebody else's."""
    reports = tmp_path / "reports"
    begun(reports, "It is out [S1].")
    library(reports, NOON + timedelta(hours=3)).append(NAME, said("More \x1b[2J[S2].", SECOND, verdict="read it"))
    library(reports, NOON - timedelta(days=1)).create(
        NewReport("Postgres \x1b]0;x\x07"), said("Vacuum.", call="w.t1.1")
    )
    (reports / "2026-08-09" / "mine.md").write_text("mine\n")
    monkeypatch.chdir(tmp_path)
    app = App(result_action="return_value", exit_on_error=False)
    app.command(list_reports, name="list")
    app.command(show_report, name="show")

    def run(*words: str) -> Process:
        capsys.readouterr()
        code = app([*words])
        shown = capsys.readouterr()
        return Process([*words], code or 0, shown.out, shown.err)

    return run


def test_the_list(typed: Typed) -> None:
    """Newest day first: name, time of the last change, verdict, runs, title; a stranger's file is said to be one."""
    assert typed("list").stdout.splitlines() == [
        "REPORT                         UPDATED           VERDICT  RUNS  TITLE",
        f"{NAME}  2026-08-10 15:00  read it  2     SQLite 4 is out",
        "2026-08-09/mine.md             ?                                unreadable: it has no frontmatter",
        "2026-08-09/postgres-0-x.md     2026-08-09 12:00           1     Postgres ]0;x",
    ]


@pytest.mark.parametrize(
    ("words", "days"),
    [
        (("2026-08-09",), ["2026-08-09", "2026-08-09"]),
        (("2026-08", "sqlite"), ["2026-08-10"]),
        (("vacuum",), ["2026-08-09"]),
        (("is", "OUT"), ["2026-08-10"]),
        (("today",), []),
        (("zebra",), []),
    ],
)
def test_the_list_by_day_and_words(typed: Typed, words: tuple[str, ...], days: list[str]) -> None:
    """A date or words, or both; nothing found is told beside the result, which is empty."""
    done = typed("list", *words)
    assert [line[:10] for line in done.stdout.splitlines()[1:]] == days
    assert done.returncode == 0
    assert ("no such reports in reports" in done.stderr) is not bool(days)
    found = json.loads(typed("list", *words, "--output-format", "json").stdout)
    assert [facts["report"][:10] for facts in found] == days


def test_one_report(typed: Typed, tmp_path: Path) -> None:
    """As the file is, by any of its names; for programs with its fields."""
    text = (tmp_path / "reports" / NAME).read_text()
    assert typed("show", NAME).stdout == typed("show", "sqlite-4-is-out").stdout == text
    facts = json.loads(typed("show", NAME, "--output-format", "json").stdout)
    assert (facts["report"], facts["verdict"], facts["run"]) == (NAME, "read it", [FIRST, SECOND])
    assert facts["report_text"] == text
    assert typed("show", "mine").stdout == "mine\n"


@pytest.mark.parametrize("name", ["sqlite-4", "../../etc/passwd", "2026-08-10"])
def test_a_report_that_is_not_there(typed: Typed, name: str) -> None:
    """Exit code 5, with what is close, and the command that lists them."""
    with pytest.raises(NotFoundError, match="there is no report") as refused:
        typed("show", name)
    assert (refused.value.exit_code, refused.value.hint) == (5, "explorer report list")


def test_a_file_that_cannot_be_read_is_said(typed: Typed, tmp_path: Path) -> None:
    """A link that leads out is not followed."""
    (tmp_path / "reports" / "2026-08-10" / "out.md").symlink_to("/etc/passwd")
    with pytest.raises(NotFoundError, match="not a plain file"):
        typed("show", "out")


def test_an_empty_library_is_said(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder that was looked into, which a variable sets; nothing with -q."""
    monkeypatch.setenv("EXPLORER_REPORTS_DIR", "elsewhere")
    monkeypatch.setenv("EXPLORER_TIMEZONE", "Asia/Shanghai")
    assert typed("list").stderr == "no reports in elsewhere\n"
    assert (typed("list", "-q").stderr, typed("list", "-q").stdout) == ("", "")


def test_the_words_of_the_command_line(here: Typed, kept_run: Path, tmp_path: Path) -> None:
    """`report list`, `report show`, `report RUN`, `grep`: each reaches its command; errors end as everywhere."""
    begun(tmp_path / "reports", "It is out [S1].")
    assert NAME in here("report", "list", "sqlite").stdout
    assert "It is out [1]." in here("report", "show", "sqlite-4-is-out").stdout
    for words in (("report",), ("report", "latest"), ("report", kept_run.name)):
        assert here(*words).stdout == (kept_run / "report.md").read_text()
    assert here("report", "--format", "html").stdout.count("<details><summary>Evidence: ") == 3
    assert here("report", "--format", "html", "-o", "x.html").returncode == 2
    assert f"{kept_run.name}/report.md:" in here("grep", "maintainer").stdout
    ends = {
        words: here(*words).returncode
        for words in (("grep", "nothing like it"), ("grep", "("), ("report", "show", "x"))
    }
    assert list(ends.values()) == [1, 2, 5]
