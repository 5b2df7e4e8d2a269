"""The turns of one agent for a page: what it said, each call with its arguments and result, and where both are read."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from explorer.observe.formatting import cost, one_line, short_time, tokens
from explorer.observe.run_view import outcome
from explorer.schema.events import (
    AgentContinued,
    AgentFinished,
    AgentStarted,
    AnyEvent,
    JournalRecord,
    NoteAdded,
    Steered,
    ToolFinished,
    TurnFailed,
    TurnTaken,
)
from explorer.schema.messages import ToolCall
from explorer.text.rendering import without_marks

MAX_TEXT_CHARS = 20_000
MAX_ARGUMENT_CHARS = 6_000


@dataclass
class CallEntry:
    """A call of a tool."""

    key: str
    name: str
    arguments: str
    """The arguments as JSON."""
    outcome: str = "not finished"
    result: str = ""
    is_error: bool = False
    sources: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    helper: str = ""
    """The agent that did its work."""


@dataclass
class TurnEntry:
    """A turn of an agent, or something that it was given."""

    seq: int
    head: str
    text: str = ""
    calls: list[CallEntry] = field(default_factory=list[CallEntry])


def turns_of(records: Iterable[JournalRecord], agent: str) -> list[TurnEntry]:
    """Return what an agent was given, said and did, in order."""
    reading = _TurnReading(agent)
    for record in records:
        reading.see(record)
    return reading.entries


class _TurnReading:
    """Makes entries from records."""

    def __init__(self, agent: str) -> None:
        self.entries: list[TurnEntry] = []
        self._agent = agent
        self._calls: dict[str, CallEntry] = {}
        self._turns = 0

    def see(self, record: JournalRecord) -> None:
        """Add one record."""
        event = record.event
        if isinstance(event, AgentStarted | AgentContinued) and event.parent_call in self._calls:
            self._calls[event.parent_call].helper = event.agent
        if event.agent != self._agent:
            return
        if isinstance(event, TurnTaken):
            self._take(event, record.seq)
        elif isinstance(event, ToolFinished):
            if event.call in self._calls:
                _finish(self._calls[event.call], event)
        elif (said := _said(event)) is not None:
            self.entries.append(TurnEntry(record.seq, said[0], _cut(without_marks(said[1]).strip(), MAX_TEXT_CHARS)))

    def _take(self, event: TurnTaken, seq: int) -> None:
        self._turns += 1
        turn = event.turn
        price = "unknown cost" if turn.cost_usd is None else cost(turn.cost_usd)
        usage = f"{tokens(turn.usage.total_tokens)} tokens, {price}, {short_time(event.seconds)}"
        entry = TurnEntry(seq, f"turn {self._turns}: {one_line(turn.model)}, {usage}", _cut(turn.text, MAX_TEXT_CHARS))
        entry.calls = [_call(f"{self._agent}.t{self._turns}.{place}", call) for place, call in enumerate(turn.calls, 1)]
        self._calls |= {call.key: call for call in entry.calls}
        self.entries.append(entry)


def _said(event: AnyEvent) -> tuple[str, str] | None:
    """Return the head and the text of what is no turn; None for what is not shown."""
    match event:
        case AgentStarted() | AgentContinued():
            return "task", event.task
        case NoteAdded():
            return "note of the engine", event.text
        case Steered():
            return "message of the user", event.text
        case TurnFailed():
            return "request that failed", event.message
        case AgentFinished():
            return f"end: {event.status.value}", "\n".join(filter(None, [event.reason, event.summary]))
        case _:
            return None


def _call(key: str, call: ToolCall) -> CallEntry:
    arguments = call.problem if call.arguments is None else json.dumps(call.arguments, ensure_ascii=False, indent=2)
    return CallEntry(key, call.name, _cut(arguments, MAX_ARGUMENT_CHARS))


def _finish(call: CallEntry, event: ToolFinished) -> None:
    call.outcome, call.is_error = outcome(event) or "done", not event.success
    call.result = _cut(without_marks(event.content), MAX_TEXT_CHARS)
    call.sources, call.files = event.sources, tuple(file.path for file in event.files)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n... {len(text) - most:,} more characters"
