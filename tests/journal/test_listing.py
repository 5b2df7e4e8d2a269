import asyncio
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from engine_stage import NOON, noon, one_of_each
from explorer.journal.codec import encode_all
from explorer.journal.journal import Journal
from explorer.journal.listing import find_run, free_run_id, is_running, list_runs, new_run_id, overview, read_records
from explorer.schema.errors import ConfigError, NotFoundError
from explorer.schema.events import AgentContinued, AnyEvent, JournalRecord, RunFinished, RunStarted, Status

IDS = ("20260810-120000-may-0001", "20260810-120000-may-0002", "20260811-090000-june-0003")
STARTED = RunStarted(run_id="r", question="How was May?", engine="0", settings={})


def run_at(workspace: Path, run_id: str, events: Sequence[AnyEvent] = (STARTED,)) -> Path:
    """A run's folder with a journal of these events, an hour apart."""
    folder = workspace / run_id
    (folder / ".explorer").mkdir(parents=True)
    records = [
        JournalRecord(v=1, seq=number, at=NOON + timedelta(hours=number), event=event)
        for number, event in enumerate(events, 1)
    ]
    (folder / ".explorer" / "journal.jsonl").write_bytes(encode_all(records))
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Three runs, and what is none."""
    for run_id in IDS:
        run_at(tmp_path, run_id)
    (tmp_path / "not-a-run").mkdir()
    (tmp_path / "zz.txt").write_text("x")
    return tmp_path


def test_a_run_is_found_by_id_prefix_or_as_the_latest(workspace: Path) -> None:
    """Any beginning will do that fits only one; the latest is the one that began last."""
    assert find_run(workspace, IDS[0]) == workspace / IDS[0]
    assert find_run(workspace, "20260811") == workspace / IDS[2]
    assert find_run(workspace, "latest") == workspace / IDS[2]
    run_at(workspace, IDS[0] + "-more")
    assert find_run(workspace, IDS[0]) == workspace / IDS[0]


def test_of_runs_of_one_second_the_latest_began_last(tmp_path: Path) -> None:
    """A fork is made in the second of its run, and its id may sort before: `latest` is still the fork."""
    for suffix in ("0002", "0003", "0001"):
        run_at(tmp_path, f"20260810-120000-may-{suffix}")
        (tmp_path / f"20260810-120000-may-{suffix}" / "question.txt").write_text("How was May?")
        time.sleep(0.02)  # longer than the tick of the clock that stamps files
    assert find_run(tmp_path, "latest").name == "20260810-120000-may-0001"


def test_a_run_is_found_by_any_path_to_it_or_into_it(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As commands print it, as a shell completes it, relative or not; the same folder whichever way it is named."""
    monkeypatch.chdir(workspace.parent)
    relative, wanted = Path(workspace.name), Path(workspace.name) / IDS[0]
    for name in (
        f"{relative}/{IDS[0]}",
        f"./{relative}/{IDS[0]}/",
        f"{relative}/{IDS[0]}/report.md",
        f"{workspace}/{IDS[0]}/.explorer/journal.jsonl",
        f"{IDS[0]}/",
        f"{IDS[0]}/report.md",
    ):
        assert find_run(relative, name) == wanted, name
    assert find_run(relative, f"{relative}/latest") == relative / IDS[2]
    assert find_run(relative, f"{relative}/20260811").name == IDS[2]
    assert find_run(Path("elsewhere"), f"{relative}/{IDS[0]}/") == workspace / IDS[0]
    monkeypatch.chdir(workspace / IDS[0])
    assert find_run(Path("workspace"), "./") == workspace / IDS[0]


def test_a_folder_that_agents_made_look_like_a_run_is_none(workspace: Path) -> None:
    """A path into a run leads to that run, whatever its agents wrote there."""
    run_at(workspace / IDS[0] / "files", "20270101-000000-fake-0001")
    assert find_run(workspace, f"{workspace}/{IDS[0]}/files/20270101-000000-fake-0001") == workspace / IDS[0]


def test_what_is_not_found_is_told(workspace: Path, tmp_path: Path) -> None:
    """Nothing fits, too much fits, there is nothing at all; a folder without a journal is no run."""
    with pytest.raises(ConfigError, match="'20260810' fits 2 runs: 20260810-120000-may-0001, ") as ambiguous:
        find_run(workspace, "20260810")
    assert (ambiguous.value.exit_code, ambiguous.value.hint) == (2, "give more of the id")
    for name in ("2027", "not-a-run", "zz.txt", "../x"):
        with pytest.raises(NotFoundError, match="there is no run") as missing:
            find_run(workspace, name)
        assert missing.value.exit_code == 5
    for empty in (tmp_path / "none", tmp_path / "not-a-run"):
        with pytest.raises(NotFoundError, match="there are no runs in"):
            find_run(empty, "latest")
    with pytest.raises(NotFoundError, match="is not a run"):
        read_records(workspace / "not-a-run")


def test_runs_are_listed_in_order_with_what_they_are(workspace: Path) -> None:
    """Oldest first; a run nobody works on is unfinished until its end is on record."""
    finished = RunFinished(status=Status.PARTIAL, reason="time limit")
    run_at(workspace, "20260812-000000-x-0004", [STARTED, finished])
    listed = list_runs(workspace)
    assert [run.run_id for run in listed] == [*IDS, "20260812-000000-x-0004"]
    assert [run.status for run in listed] == ["unfinished"] * 3 + ["partial"]
    assert (listed[0].question, listed[0].started) == ("How was May?", NOON + timedelta(hours=1))
    assert list_runs(workspace / "nowhere") == []


def test_an_overview_adds_everything_up(tmp_path: Path) -> None:
    """Tokens, cost, agents and sources of all agents together; asked something further, a run is open again.

    A request without a reply counts as it was reserved: 14 tokens and $0.50.
    """
    full = overview(run_at(tmp_path, "a", one_of_each()))
    assert (full.agents, full.sources, full.tokens, full.cost_usd) == (2, 1, 502, 0.75)
    assert full.status == "unfinished"
    ended = [event for event in one_of_each() if not isinstance(event, AgentContinued)]
    assert overview(run_at(tmp_path, "b", ended)).status == "partial"


def test_a_damaged_journal_does_not_spoil_the_list(workspace: Path) -> None:
    """The damaged run is called so; the others are listed as ever."""
    path = workspace / IDS[1] / ".explorer" / "journal.jsonl"
    run_at(workspace, "20260813-000000-y-0005", [STARTED, STARTED, STARTED])
    content = (workspace / "20260813-000000-y-0005" / ".explorer" / "journal.jsonl").read_bytes()
    path.write_bytes(b"x" + content[1:])
    listed = {run.run_id: run.status for run in list_runs(workspace)}
    assert listed[IDS[1]] == "damaged"
    assert listed[IDS[0]] == "unfinished"
    assert find_run(workspace, IDS[1]).is_dir()


def test_a_torn_or_empty_journal_is_just_unfinished(workspace: Path) -> None:
    """What a crash leaves is no damage, and looking at it changes nothing."""
    path = workspace / IDS[0] / ".explorer" / "journal.jsonl"
    torn = path.read_bytes() + b'{"v":1,"seq":2,"at'
    path.write_bytes(torn)
    assert (overview(workspace / IDS[0]).status, path.read_bytes()) == ("unfinished", torn)
    path.write_bytes(b"")
    empty = overview(workspace / IDS[0])
    assert (empty.status, empty.question, empty.started) == ("unfinished", "", None)


def test_a_run_someone_works_on_is_running(workspace: Path) -> None:
    """Looking does not disturb it, and once it is let go it is running no more."""
    folder = workspace / IDS[0]
    assert not is_running(folder)
    journal = Journal.open(folder / ".explorer", noon)
    try:
        assert is_running(folder)
        assert overview(folder).status == "running"
        asyncio.run(journal.append(RunFinished(status=Status.COMPLETE, reason="")))
        assert overview(folder).status == "complete"
    finally:
        journal.close()
    assert not is_running(folder)
    assert not is_running(workspace / "not-a-run")


def test_ids_tell_when_and_what(tmp_path: Path) -> None:
    """Sortable by time, with words of the question in plain letters, and never the same twice."""
    made = new_run_id("What is the State of the Art on Hacker News today?", NOON)
    assert made.startswith("20260810-120000-state-art-hacker-news-today-")
    assert new_run_id("五月的发电量如何？", NOON).startswith("20260810-120000-run-")
    assert new_run_id("../../etc/passwd \0", NOON).startswith("20260810-120000-etc-passwd-")
    long = new_run_id("word " * 100, NOON)
    assert len(long) < 60
    for _ in range(50):
        (tmp_path / free_run_id(tmp_path, "same", NOON)).mkdir()
    assert new_run_id("b", NOON) < new_run_id("a", NOON + timedelta(seconds=1))
    (tmp_path / made).mkdir()
