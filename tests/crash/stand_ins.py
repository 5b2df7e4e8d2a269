"""Journals that break a promise each, to see that the checks notice."""

import asyncio
from dataclasses import dataclass

from explorer.agents.budget import Budget
from explorer.journal.journal import Journal
from explorer.run.hooks import RunHooks
from explorer.run.resources import open_resources
from explorer.run.run_journal import RunJournal, SessionRecords
from explorer.run.session import INPUTS, RunSession
from explorer.schema.events import AnyEvent, JournalRecord, RunStarted, Status
from explorer.schema.settings import Settings
from explorer.workspace.workspace import Workspace

BUFFERED_RECORDS = 10


class CarelessJournal(Journal):
    """Acknowledges before it writes, and writes in tens."""

    async def append(self, event: AnyEvent) -> JournalRecord:
        """Keep the event in memory and call it safe."""
        self._on_checkpoint("before_append")
        self._waiting.append(self._seal(event))
        record = self._waiting[-1][0]
        for observe in self._observers:
            observe(record)
        if len(self._waiting) >= BUFFERED_RECORDS:
            await asyncio.to_thread(self._flush)
        self._on_checkpoint("after_append")
        return record

    def _flush(self) -> None:
        batch, self._waiting = self._waiting, []
        self._write_all(batch)
        self._sync()

    def close(self) -> None:
        """Write the rest."""
        if self._file is not None and self._waiting:
            self._flush()
        super().close()


class UnsyncedJournal(Journal):
    """Writes before it acknowledges, and leaves it to the system when that reaches the disk."""

    def _sync(self) -> None:
        """Do nothing."""


JOURNALS: dict[str, type[Journal]] = {"careless": CarelessJournal, "unsynced": UnsyncedJournal}


@dataclass(frozen=True)
class Asked:
    """What a life is to do."""

    settings: Settings
    hooks: RunHooks
    begins: bool
    message: str


async def live_with(journal_class: type[Journal], asked: Asked) -> Status:
    """One life of a run as `run` joins it, but for the journal."""
    hooks, settings = asked.hooks, asked.settings
    folder = settings.workspace / hooks.run_id
    async with open_resources(settings, hooks.tools, hooks.client) as resources:
        if asked.begins:
            (folder / ".explorer").mkdir(parents=True)
            for path in settings.files:
                Workspace(folder).write_own(f"{INPUTS}/{path.name}", path.read_text())
        records = SessionRecords()
        observers = [records.see, *([hooks.observe] if hooks.observe else [])]
        journal = journal_class.open(folder / ".explorer", hooks.now, observers, hooks.on_checkpoint)
        try:
            opened = RunJournal(journal, folder, records, hooks.catch_up)
            if asked.begins:
                await opened.record(
                    RunStarted(run_id=hooks.run_id, question=asked.message, engine="0", settings=settings.public())
                )
            budget = Budget(settings.limits, hooks.clock)
            life = RunSession(Workspace(folder), resources, budget, opened, hooks)
            message = "" if asked.begins else asked.message
            return (await life.work(message)).status
        finally:
            journal.close()
