"""A run's journal in the hands of the session that works on it: the state it adds up to, and what is read again."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from explorer.journal.journal import Journal
from explorer.journal.listing import read_records
from explorer.journal.run_state import RunState
from explorer.observe.provenance import FileOrigins
from explorer.observe.run_log import log_opened
from explorer.schema.events import (
    AgentContinued,
    AnyEvent,
    JournalRecord,
    RunStarted,
    SessionConfigured,
    SourceRecorded,
    Steered,
    ToolFinished,
    TurnTaken,
)
from explorer.schema.messages import JsonObject
from explorer.tools.finish import answer_of


@dataclass
class SessionRecords:
    """Takes in the records of a run, in the order of its journal. Only `see` changes it."""

    other_tools: Collection[str] = ()
    """Names of tools that show addresses without storing sources, as a program's own may."""
    searches: Collection[str] | None = None
    """Names of tools whose results can repeat what they were asked for; None until they are known."""
    first_at: datetime | None = None
    """When the run began."""
    latest: AnyEvent | None = None
    """The latest event, configurations of sessions left out."""
    answer: JsonObject | None = None
    """The latest answer in the form that a program asked for."""
    origins: FileOrigins = field(default_factory=FileOrigins)
    """Where each file comes from."""
    with_addresses: list[JournalRecord] = field(default_factory=list[JournalRecord])
    """Records that say which addresses may be read."""
    carried: int = 0
    """The number of records at opening of a run that this user is not known to have made; 0: it is the user's own."""

    def see(self, record: JournalRecord) -> None:
        """Take in one record."""
        event = record.event
        self.first_at = self.first_at or record.at
        if not isinstance(event, SessionConfigured):
            self.latest = event
        self.answer = answer_of(event) or self.answer
        self.origins.apply(record)
        if self.has_addresses(event):
            self.with_addresses.append(record)

    def know_searches(self, searches: Collection[str]) -> None:
        """Keep only those turns from now on that search."""
        self.searches = searches
        self.with_addresses[:] = [one for one in self.with_addresses if self.has_addresses(one.event)]

    def has_addresses(self, event: AnyEvent) -> bool:
        """Return whether an event says of addresses that they may be read, or keeps them from counting as seen."""
        match event:
            case RunStarted() | Steered() | AgentContinued() | SourceRecorded():
                return True
            case TurnTaken():
                return any(self.searches is None or call.name in self.searches for call in event.turn.calls)
            case ToolFinished():
                return event.name in self.other_tools
            case _:
                return False


class RunJournal:
    """A run's open journal and the state that its records add up to; no record itself is kept.

    Args:
        journal: Just opened; what it holds is taken from it.
        folder: The run's.
        records: What is read again; sees the records that are there, and observes the journal for those to come.
        catch_up: Is given the records that are there.
    """

    def __init__(
        self,
        journal: Journal,
        folder: Path,
        records: SessionRecords,
        catch_up: Callable[[Sequence[JournalRecord]], None],
    ) -> None:
        self._journal = journal
        self._folder = folder
        self.records = records
        past = journal.take_records()
        records.carried = 0 if journal.is_own else len(past)
        log_opened(folder.name, past)
        catch_up(past)
        self.run_state = RunState()
        for record in past:
            self.run_state.apply(record.event)
            records.see(record)
        self._applied = journal.last_seq

    async def record(self, event: AnyEvent) -> None:
        """Put an event on disk, then apply it to the state."""
        kept = await self._journal.append(event)
        self._applied += 1
        self.run_state.apply(kept.event)

    def state_on_disk(self) -> RunState:
        """Return the state by all that is on disk, for which this may wait."""
        # Who is cancelled while its record is written does not see that it was: such a run may have ended.
        self._journal.finish_writing()
        if self._journal.last_seq == self._applied:
            return self.run_state
        return RunState.of_records(read_records(self._folder))


def stored_answer(folder: Path) -> JsonObject | None:
    """Return the latest answer in the form that a program asked for, by a run's journal; None where it has none."""
    answer: JsonObject | None = None
    for record in read_records(folder):
        answer = answer_of(record.event) or answer
    return answer
