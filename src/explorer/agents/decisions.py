"""What is to be done with an agent instead of asking its model: each decision is one event in the journal."""

from dataclasses import dataclass, field
from typing import Any

from explorer.schema.events import (
    AgentFinished,
    AnyEvent,
    Clearing,
    Compacted,
    NoteAdded,
    ReasoningDropped,
    Status,
    Summarised,
)
from explorer.schema.messages import JsonObject
from explorer.schema.reasons import EndCause, NoteReason


@dataclass(frozen=True)
class Note:
    """Words to add to a conversation; `agents/notes.py` makes them."""

    reason: NoteReason
    text: str
    data: JsonObject = field(default_factory=dict[str, Any])
    """The facts its words are made of."""

    def event(self, agent: str) -> AnyEvent:
        """As it goes into the journal."""
        return NoteAdded(agent=agent, text=self.text, reason=self.reason, data=self.data)


@dataclass(frozen=True)
class Ending:
    """How an agent ends."""

    status: Status
    reason: str
    """For people."""
    summary: str
    cause: EndCause = EndCause.OTHER
    """For programs."""

    def event(self, agent: str) -> AgentFinished:
        """As it goes into the journal."""
        return AgentFinished(
            agent=agent, status=self.status, reason=self.reason, summary=self.summary, cause=self.cause
        )


@dataclass(frozen=True)
class Compaction:
    """Old results are to be cleared, up to a message."""

    before: int
    why: Clearing
    tokens: int
    """About how many the conversation has now."""

    def event(self, agent: str) -> AnyEvent:
        """As it goes into the journal."""
        return Compacted(agent=agent, before=self.before, why=self.why, tokens=self.tokens)


@dataclass(frozen=True)
class Summary:
    """Old exchanges are to be left out, up to a message, with words in their place."""

    before: int
    text: str

    def event(self, agent: str) -> AnyEvent:
        """As it goes into the journal."""
        return Summarised(agent=agent, before=self.before, text=self.text)


@dataclass(frozen=True)
class ReasoningDrop:
    """Reasoning of earlier turns is to be left out of requests, up to a message."""

    before: int

    def event(self, agent: str) -> AnyEvent:
        """As it goes into the journal."""
        return ReasoningDropped(agent=agent, before=self.before)


Decision = Note | Ending | Compaction | Summary | ReasoningDrop
