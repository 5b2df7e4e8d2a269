"""What a session keeps of its run's records: their sum, and the few that are read again."""

import asyncio
import gc
import weakref
from pathlib import Path

import pytest

from explorer.journal.listing import read_records
from explorer.observe.provenance import FILES_INDEX, origins
from explorer.run.hooks import RunHooks
from explorer.run.run import resume, start
from explorer.run.run_journal import SessionRecords
from explorer.schema.events import JournalRecord, RunFinished
from explorer.schema.settings import Settings
from explorer.workspace.workspace import Workspace

FEW = 12
"""Under way when one looks: of a turn's calls and of requests."""


class Watch:
    """Knows which records are still held, without holding any."""

    def __init__(self) -> None:
        self.refs: list[weakref.ref[JournalRecord]] = []
        self.held: list[JournalRecord] = []
        self.seen = 0

    def see(self, record: JournalRecord) -> None:
        """Note a record; look who holds the others when the run ends."""
        self.seen += 1
        if SessionRecords().has_addresses(record.event):
            return
        self.refs.append(weakref.ref(record))
        if isinstance(record.event, RunFinished):
            gc.collect()
            self.held = [one for ref in self.refs if (one := ref()) is not None]


@pytest.mark.slow
def test_a_session_holds_hardly_any_record(tmp_path: Path) -> None:
    """In a new run and in a resumed one; where files come from is collected all the same, as the journal tells it."""
    settings = Settings(workspace=tmp_path, is_sample=True, model="offline", shell="off")
    first, second = Watch(), Watch()
    run = asyncio.run(
        start(
            "What was notable on Hacker News today, and what did people argue about?",
            settings,
            RunHooks(observe=first.see),
        )
    )
    assert first.seen > 100
    assert len(first.held) < FEW
    asyncio.run(resume(run.folder, settings, "What does the court ruling say?", RunHooks(observe=second.see)))
    assert second.seen > 20
    assert len(second.held) < FEW
    kept = (run.folder / FILES_INDEX).read_text("utf-8")
    told = origins(read_records(run.folder), Workspace(run.folder))
    assert kept == "".join(f"{one.model_dump_json()}\n" for one in told)
    assert len(told) > 5
