"""A command of a model puts a link at report.md: nothing shows what the link leads to."""

import json
from pathlib import Path

import pytest

from cli.stage import Explorer
from cli.test_watch import cut_journal
from explorer import open_run

SECRET = "PRIVATE KEY of someone else"


def put_link(run: Path, kind: str) -> None:
    """Put a link in the report's place, to a file outside the run."""
    outside = run.parent.parent / "id_ed25519"
    outside.write_text(f"# Report\n\n{SECRET}\n")
    (run / "report.md").unlink()
    if kind == "symbolic":
        (run / "report.md").symlink_to(outside)
    else:
        (run / "report.md").hardlink_to(outside)


@pytest.mark.parametrize("kind", ["symbolic", "hard"])
def test_no_command_follows_a_link_at_the_report(kept_run: Path, here: Explorer, kind: str) -> None:
    """`watch` and the Python API take it for no report; `report` moves it aside and puts one there."""
    put_link(kept_run, kind)
    watched = here("watch", "latest", "--speed", "max")
    shown = json.loads(here("watch", "latest", "--speed", "max", "--output-format", "json").stdout)
    assert (watched.stdout, shown["report_text"]) == ("", "")
    assert open_run(kept_run).report == ""
    reported = here("report", "latest")
    assert SECRET not in reported.stdout + reported.stderr
    assert "replaced after the run had ended" in reported.stdout
    outside = kept_run.parent.parent / "id_ed25519"
    assert not (kept_run / "report.md").samefile(outside)
    assert outside.read_text() == f"# Report\n\n{SECRET}\n"


def test_a_link_left_by_a_killed_run_is_moved_aside(kept_run: Path, here: Explorer) -> None:
    """`report` writes the report of such a run from what was saved, and keeps the link under another name."""
    cut_journal(kept_run, 40)
    put_link(kept_run, "symbolic")
    done = here("report", "latest")
    assert done.returncode == 0
    assert SECRET not in done.stdout
    assert not (kept_run / "report.md").is_symlink()
    assert "its process ended before the run did" in done.stdout
