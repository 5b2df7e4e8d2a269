import asyncio
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from cli.conftest import STORY
from cli.stage import Process
from explorer.journal.listing import list_runs, read_records
from explorer.journal.run_state import RunState
from explorer.reports.compare import Comparison
from explorer.run.run import RunResult, start
from explorer.run.since import changes_path, write_changes
from explorer.schema.errors import NotFoundError
from explorer.schema.events import AgentStarted, RunStarted, Status
from explorer.schema.settings import Settings
from explorer.workspace.source_store import stored_text
from made_runs import A, B, two_runs

Explorer = Callable[..., Process]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Where the two runs are."""
    asyncio.run(two_runs(tmp_path / "workspace"))
    return tmp_path / "workspace"


@pytest.mark.usefixtures("workspace")
def test_two_runs_that_differ_are_told_with_exit_code_1(here: Explorer) -> None:
    """The page on stdout and nothing beside it; ids may be shortened, and `latest` is one."""
    done = here("diff", "20260601", "latest")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith(f"# What changed\n\n- A: `{A}`, 2026-06-01 09:00 UTC, complete: How is the plant?\n")
    assert re.search(r"^- A line \d+: The harbour plant fed 12 % more", done.stdout, re.MULTILINE)
    assert re.search(r"^  B line \d+: The harbour plant fed 21 % more", done.stdout, re.MULTILINE)
    assert "  differs: points 120 → 340; comments 33 → 88\n" in done.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("workspace")
def test_json_has_everything_for_programs(here: Explorer) -> None:
    """Both texts of each claim, and the ids of each source in both runs."""
    done = here("diff", A, B, "--output-format", "json")
    shown = json.loads(done.stdout)
    assert done.returncode == 1
    assert shown.pop("differs") is True
    found = Comparison.model_validate(shown)
    assert (found.first.run_id, found.second.run_id, found.second.status) == (A, B, "complete")
    assert len(found.changed_claims) == 4
    assert found.changed_sources[2].after == "S6"


@pytest.mark.slow
def test_runs_that_do_not_differ_are_told_with_exit_code_0(here: Explorer, kept_run: Path) -> None:
    """The same run under another id: all is the same, and how much that is."""
    copy = kept_run.with_name("20990101-000000-copy-0000")
    shutil.copytree(kept_run, copy)
    done = here("diff", kept_run.name, copy.name)
    assert done.returncode == 0
    assert "## Claims: 0 new, 0 gone, 0 changed, " in done.stdout
    assert "## Sources: 0 new, 0 gone, 0 changed, " in done.stdout


def test_a_run_without_a_report_is_told(here: Explorer, workspace: Path) -> None:
    """On stderr, and not when quiet."""
    (workspace / A / "report.md").unlink()
    assert here("diff", A, B).stderr == f"run {A} has no report: only sources are compared\n"
    assert here("diff", A, B, "--quiet").stderr == ""


@pytest.mark.slow
@pytest.mark.usefixtures("workspace")
@pytest.mark.parametrize(
    ("words", "code"), [((A, A), 2), ((A, "latest", "more"), 2), ((A,), 2), ((A, "2099"), 5), (("2026", B), 2)]
)
def test_wrong_words_are_told_as_such(here: Explorer, words: tuple[str, ...], code: int) -> None:
    """One run twice, too many, too few, none of that id, an id that fits two."""
    done = here("diff", *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr


@pytest.mark.slow
def test_titles_from_outside_cannot_steer_the_terminal(here: Explorer, workspace: Path) -> None:
    """Control sequences in a title or a report are shown nowhere."""
    report = workspace / B / "report.md"
    report.write_text(report.read_text().replace("A second field", "\x1b[2J\x1b]0;owned\x07A second field"))
    assert "\x1b" not in here("diff", A, B).stdout


@pytest.mark.slow
def test_show_tells_where_each_file_comes_from(here: Explorer, kept_run: Path) -> None:
    """Who wrote it, in which call, at which record, and that no citation came from nowhere."""
    done = here("show", kept_run.name, "--files")
    assert done.returncode == 0
    assert "report.md  " in done.stdout
    assert "\n  write_file  writer-1 (writer)  record " in done.stdout
    assert "unseen" not in done.stdout
    facts = json.loads(here("show", kept_run.name, "--output-format", "json").stdout)
    paths = [origin["path"] for origin in facts["origins"]]
    assert sorted(paths) == sorted(file["path"] for file in facts["files"])
    assert all(not origin["unseen"] for origin in facts["origins"])
    index = (kept_run / ".explorer" / "files.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in index] == facts["origins"]


async def again(earlier: Path, since: str) -> RunResult:
    """The sample day once more, since an earlier run."""
    settings = Settings(workspace=earlier.parent, model="offline", is_sample=True, since_run=since, shell="off")
    return await start(STORY, settings)


@pytest.mark.slow
async def test_a_run_since_another_knows_that_one_and_tells_the_changes(kept_run: Path) -> None:
    """Its report is a source, its addresses a file; the offline rules still see the same question."""
    # As if the first run had seen another state of one story.
    report = kept_run / "report.md"
    report.write_text(report.read_text().replace("811 points", "701 points", 1))
    done = await again(kept_run, kept_run.name)
    assert done.status is Status.COMPLETE
    records = read_records(done.folder)
    started = records[0].event
    assert isinstance(started, RunStarted)
    assert started.settings["since_run"] == kept_run.name
    task = next(record.event.task for record in records if isinstance(record.event, AgentStarted))
    assert f"\nEarlier run: <<{kept_run.name}>>, started 20" in task
    assert "Its report: <<inputs/since-report.md>> [S1] (" in task
    assert "Files from the user" not in task
    stored = (done.folder / ".explorer" / "sources" / "S1.md").read_text()
    assert yaml.safe_load(stored.split("---\n")[1])["via"] == "run"
    assert stored_text(stored) == report.read_text()
    addresses = (done.folder / "inputs" / "since-sources.md").read_text()
    assert "https://tern-tls.example/blog/stepping-down" in addresses
    assert done.changes == done.folder / "changes.md"
    tail = (done.folder / "report.md").read_text().partition("### Since the run of ")[2]
    assert "\n0 new, 0 gone, 0 moved, 0 with more comments, 30 the same: `changes.md`\n" in tail
    page = (done.folder / "changes.md").read_text()
    assert "## Claims: 0 new, 0 gone, 1 changed, " in page
    assert "differs: points 701 → 811" in page
    assert "## Sources: 0 new, 0 gone, 0 changed, " in page


@pytest.mark.slow
def test_the_changes_are_told_at_the_end(here: Explorer, tmp_path: Path) -> None:
    """On the terminal and to programs: a file that was mended meanwhile, by its figures."""
    notes = tmp_path / "notes.md"
    asked = ("--model", "offline", "--file", str(notes), "What do the notes say about the plant?")
    text = "The harbour plant fed 12 % more power into the grid in May than a year before, as its log says.\n"
    notes.write_text(text)
    assert json.loads(here("--output-format", "json", *asked).stdout)["changes"] is None
    (first,) = list_runs(tmp_path / "workspace")
    notes.write_text(text.replace("12 %", "21 %"))
    done = here("--since-run", "latest", *asked)
    assert done.returncode == 0
    (second,) = (run.folder for run in list_runs(tmp_path / "workspace") if run.run_id != first.run_id)
    assert f"  changes   {second / 'changes.md'}\n" in done.stderr
    assert "differs: 12 → 21" in (second / "changes.md").read_text()
    shown = json.loads(here("--since-run", first.run_id, "--output-format", "json", *asked).stdout)
    assert Path(shown["changes"]).name == "changes.md"


def test_an_earlier_run_that_is_gone_by_the_end_costs_no_report(kept_run: Path) -> None:
    """There is nothing to compare with any more, and no page that says so wrongly; an agent's own file stays."""
    run_state = RunState.of_records(read_records(kept_run))
    assert write_changes(kept_run, "20200101-000000-none-0000", run_state, None, "complete") == ""
    assert changes_path(kept_run, run_state) is None
    copy = kept_run.with_name("20990101-000000-copy-0000")
    shutil.copytree(kept_run, copy)
    run_state.files["changes.md"] = run_state.files["report.md"]
    assert write_changes(kept_run, copy.name, run_state, None, "complete") == ".explorer/changes.md"
    assert not (kept_run / "changes.md").exists()


async def test_an_earlier_run_that_is_not_there_is_told_at_once(kept_run: Path) -> None:
    """Also one that is named by a path: only a run beside this one is meant."""
    for name in ("20200101-000000-none-0000", f"../{kept_run.parent.name}/{kept_run.name}", "."):
        with pytest.raises(NotFoundError, match="there is no run"):
            await again(kept_run, name)


@pytest.mark.slow
def test_the_earlier_run_may_be_named_in_short(here: Explorer, kept_run: Path) -> None:
    """The plan of a run names what would be done before anything is paid; a wrong id is told at once."""
    assert here("--model", "offline", "--since-run", kept_run.name[:15], "--dry-run", "What is new?").returncode == 0
    done = here("--model", "offline", "--since-run", "2020", "What is new?")
    assert done.returncode == 5
    assert "there is no run '2020'" in done.stderr
    done = here("-c", "--since-run", "latest", "And now?")
    assert done.returncode == 2
