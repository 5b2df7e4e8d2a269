"""`fork`: another run out of the beginning of one."""

import json
import re
from pathlib import Path

import pytest

from cli.stage import Explorer
from explorer.journal.codec import encode_all
from explorer.journal.listing import read_records
from explorer.schema.events import AgentFinished, JournalRecord, RunForked


def record_of_first_end(folder: Path) -> int:
    """The number of the record with which the first helper ended."""
    return next(record.seq for record in read_records(folder) if isinstance(record.event, AgentFinished))


def other_run(folder: Path) -> Path:
    """The one run beside a run."""
    (other,) = [path for path in folder.parent.glob("[!.]*") if path != folder]
    return other


def test_a_fork_goes_on_from_a_record_and_leaves_the_first_alone(
    kept_run: Path, typed: Explorer, here: Explorer
) -> None:
    """The new run's id is told, its past is shared, and it ends with a report of its own."""
    before = (kept_run / ".explorer" / "journal.jsonl").read_bytes()
    at = record_of_first_end(kept_run)
    done = typed("fork", "latest", "--at", str(at), "--output-format", "json")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    new = other_run(kept_run)
    assert (shown["status"], shown["run_id"]) == ("complete", new.name)
    assert f"forked {kept_run.name} at record {at}: {new.name}" in done.stderr
    records = read_records(new)
    assert records[:at] == read_records(kept_run)[:at]
    assert records[at].event == RunForked(run_id=new.name, of=kept_run.name, shared=at)
    assert f"run_id: {new.name}" in (new / "report.md").read_text()
    assert (kept_run / ".explorer" / "journal.jsonl").read_bytes() == before
    assert here("doctor", new.name).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("flags", [["--no-run"], []], ids=["told not to", "complete and no message"])
def test_a_fork_that_is_not_gone_on_with_says_how(kept_run: Path, here: Explorer, flags: list[str]) -> None:
    """Its id is on stdout; report and files are those of the first."""
    done = here("fork", kept_run.name, *flags)
    new = other_run(kept_run)
    assert (done.returncode, done.stdout) == (0, f"{new.name}\n")
    assert f'→ continue: explorer resume {new.name} "your follow-up"' in done.stderr
    assert (new / "report.md").read_text() == (kept_run / "report.md").read_text()
    assert here("doctor", new.name).returncode == 0


@pytest.mark.slow
def test_a_fork_takes_a_message(kept_run: Path, here: Explorer) -> None:
    """A follow-up, in the new run only."""
    done = here("fork", "latest", "What about prices?", "--output-format", "json", "-q")
    assert done.returncode == 0, done.stderr
    new = other_run(kept_run)
    assert "What about prices?" in (new / ".explorer" / "journal.jsonl").read_text()
    assert "What about prices?" not in (kept_run / ".explorer" / "journal.jsonl").read_text()
    assert json.loads(done.stdout)["run_id"] == new.name


def test_a_changed_file_is_made_anew(kept_run: Path, here: Explorer) -> None:
    """From the arguments of its write, which the journal has; programs are told the same."""
    changed = (kept_run / "overview.md").read_text() + "changed"
    (kept_run / "overview.md").write_text(changed)
    shown = json.loads(here("fork", "latest", "--no-run", "--output-format", "json").stdout)
    assert (shown["forked_from"], shown["lost"]) == (kept_run.name, [])
    assert shown["at"] == len(read_records(kept_run))
    assert (Path(shown["folder"]) / "overview.md").read_text() + "changed" == changed


def test_a_file_that_cannot_be_brought_back_is_named(
    small_run: list[JournalRecord], here: Explorer, tmp_path: Path
) -> None:
    """Some other tool wrote it, and it is not what it was."""
    folder = tmp_path / "workspace" / "20260810-120000-x-1234"
    (folder / ".explorer").mkdir(parents=True)
    (folder / ".explorer" / "journal.jsonl").write_bytes(encode_all(small_run))
    done = here("fork", "latest", "--no-run")
    assert done.returncode == 0
    assert "1 file could not be restored: topics/a.md" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("latest", "--at", "0"), r"has records 1 to \d+, not 0"),
        (("latest", "--at", "9999"), "--timeline"),
        (("latest", "--at", "soon"), "--at"),
        (("what about this",), 'explorer fork latest "..."'),
        ((), "see: explorer fork --help"),
    ],
)
def test_a_fork_that_cannot_be_is_refused(
    kept_run: Path, here: Explorer, arguments: tuple[str, ...], words: str
) -> None:
    """Nothing is made, and the hint says where the numbers are."""
    done = here("fork", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(words, done.stderr)
    assert list(kept_run.parent.glob("[!.]*")) == [kept_run]
