"""What is to be done with an agent instead of asking its model: each decision is one event in the journal."""

from dataclasses import dataclass

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

ANSWERED = "answered"
"""The reason of an end in words."""
FINISHED = "finished"
FOUND_NOTHING = "found nothing"
"""The reason of an end whose agent says that the services answered and had nothing relevant."""

ACT, CORRECT = "act", "correct"
"""The reasons of notes to an orchestrator that replied in words: there is no report, or it has faults."""


@dataclass(frozen=True)
class Note:
    """Words to add to a conversation."""

    reason: str
    text: str

    def event(self, agent: str) -> AnyEvent:
        """As it goes into the journal."""
        return NoteAdded(agent=agent, text=self.text, reason=self.reason)


@dataclass(frozen=True)
class Ending:
    """How an agent ends."""

    status: Status
    reason: str
    summary: str

    def event(self, agent: str) -> AnyEvent:
        """As it goes into the journal."""
        return AgentFinished(agent=agent, status=self.status, reason=self.reason, summary=self.summary)


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
