"""Files that are submitted with a question: what travels, what is refused, and that the run reads them."""

from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="the extra fleet is not installed")

import sqlalchemy as sa

from command import explorer_here
from explorer.fleet import submission
from explorer.fleet.database import INPUTS
from explorer.fleet.exploration import Exploration, WorkerPlan, explore
from explorer.fleet.leases import Ending
from explorer.fleet.runs import FleetQueue, NewRun, QueueState
from explorer.fleet.submission import inputs_of
from explorer.run.hooks import RunHooks
from explorer.schema.errors import ConfigError
from explorer.schema.settings import Settings
from fleet.test_queue import queue, tables, worker

_ = (queue, tables)
HARBOUR = b"# Harbour\n\nThe new quay cost 410 million euros in 2025, said the harbour master.\n"


async def test_a_worker_reads_the_files_that_were_submitted(queue: FleetQueue, tmp_path: Path) -> None:
    """They are in the run's folder and in its report, and gone from the queue once the run has ended."""
    question = NewRun("What did the new quay cost?", {}, files={"harbour.md": HARBOUR, "höfe 2.txt": b"Nothing."})
    run_id, _new = queue.submit(question)
    leases = worker(queue, "one")
    taken = leases.take(run_id)
    assert taken is not None
    settings = Settings(workspace=tmp_path / "workspace", model="offline", shell="off")
    plan = WorkerPlan(settings, RunHooks, lambda _folder: settings)
    folder = settings.workspace / run_id
    ending = await explore(Exploration(plan, queue.database, taken, folder), RunHooks(run_id=run_id))
    assert ending.state is QueueState.DONE
    assert (folder / "inputs" / "harbour.md").read_bytes() == HARBOUR
    assert (folder / "inputs" / "höfe 2.txt").read_text() == "Nothing."
    assert "410 million euros" in (folder / "report.md").read_text()
    assert set(inputs_of(queue.database, run_id)) == set(question.files)
    leases.settle(taken, ending)
    assert inputs_of(queue.database, run_id) == {}


def test_a_run_that_failed_keeps_its_files(queue: FleetQueue) -> None:
    """It may not have begun, and is tried again with them."""
    run_id, _new = queue.submit(NewRun("What did it cost?", {}, files={"a.md": b"a"}))
    leases = worker(queue, "one")
    taken = leases.take(run_id)
    assert taken is not None
    leases.settle(taken, Ending(QueueState.FAILED, reason="no key"))
    assert inputs_of(queue.database, run_id) == {"a.md": b"a"}


def test_too_much_is_refused_before_anything_is_submitted(queue: FleetQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    """By number and by size."""
    monkeypatch.setattr(submission, "MAX_BYTES", 10)
    for files in ({f"{number}.md": b"" for number in range(21)}, {"a.md": b"a" * 6, "b.md": b"b" * 6}):
        with pytest.raises(ConfigError, match=r"files"):
            queue.submit(NewRun("What did it cost?", {}, files=files))
    assert queue.runs() == []


@pytest.mark.parametrize("name", ["../../outside.md", "/etc/passwd", "..", "", "a\0b", "a" * 300])
def test_a_name_that_others_wrote_is_no_path(queue: FleetQueue, name: str) -> None:
    """A row of the database names no place on a worker."""
    run_id, _new = queue.submit(NewRun("What did it cost?", {}))
    with queue.database.transaction() as connection:
        connection.execute(sa.insert(INPUTS).values(run_id=run_id, name=name, content=b"x"))
    with pytest.raises(ConfigError, match="no usable name"):
        inputs_of(queue.database, run_id)


def test_more_than_is_taken_is_not_read_from_the_database(queue: FleetQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that others wrote fills no worker's memory."""
    run_id, _new = queue.submit(NewRun("What did it cost?", {}, files={"a.md": b"a" * 12}))
    monkeypatch.setattr(submission, "MAX_BYTES", 10)
    with pytest.raises(ConfigError, match="12 bytes"):
        inputs_of(queue.database, run_id)


def test_files_are_submitted_on_the_command_line(queue: FleetQueue, tmp_path: Path) -> None:
    """With their last names; what cannot be read is refused, and a corpus is, with what to do instead."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "harbour.md").write_bytes(HARBOUR)
    (tmp_path / "notes" / "tool.bin").write_bytes(b"\0\1\2")
    known = {"EXPLORER_FLEET_DATABASE": queue.database.dsn}

    def submit(*words: str) -> tuple[int, str, str]:
        done = explorer_here("submit", *words, "What did it cost?", cwd=tmp_path, settings=known)
        return done.returncode, done.stdout.strip(), done.stderr

    code, run_id, problem = submit("--file", "notes/harbour.md")
    assert code == 0, problem
    assert inputs_of(queue.database, run_id) == {"harbour.md": HARBOUR}
    for flags, exit_code, words in (
        (("--file", "notes/tool.bin"), 2, "is none of"),
        (("--file", "missing.md"), 5, "there is no file"),
        (("--corpus", "notes"), 2, "explorer worker --corpus DIR"),
    ):
        code, _run, problem = submit(*flags)
        assert (code, words in problem) == (exit_code, True), problem
    assert len(queue.runs()) == 1
