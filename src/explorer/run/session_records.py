"""What a session reads again of its run's records. All of them are on disk; what they add up to is the run's state."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from explorer.observe.provenance import FileOrigins
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
from explorer.tools.answer import answer_of


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
    """Those that say which addresses may be read."""

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
        """Whether an event says of addresses that they may be read, or keeps them from counting as seen."""
        match event:
            case RunStarted() | Steered() | AgentContinued() | SourceRecorded():
                return True
            case TurnTaken():
                return any(self.searches is None or call.name in self.searches for call in event.turn.calls)
            case ToolFinished():
                return event.name in self.other_tools
            case _:
                return False
