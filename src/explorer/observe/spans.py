"""Spans of a run, made from its records: agents, turns and tool calls, with the names of the GenAI conventions.

https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-agent-spans.md (status:
development). Spans contain no prompt, reply, argument or result: the subject of a run is private.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum

from explorer.schema.events import (
    AgentContinued,
    AgentFinished,
    AgentStarted,
    Event,
    JournalRecord,
    RoleLoaded,
    RunForked,
    RunStarted,
    Status,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnTaken,
)
from explorer.schema.messages import Usage

Value = str | bool | int | float | tuple[str, ...]
TOOL_ERROR = "tool_error"
PROVIDER, MODEL = "gen_ai.provider.name", "gen_ai.request.model"
WORK = (AgentStarted, AgentContinued, TurnTaken, TurnFailed, ToolStarted, ToolFinished)
UNFINISHED = "explorer.unfinished"
"""The attribute of an agent or a call that had not ended with the process; a later process has a new span for it."""
PROVIDERS: Mapping[str, str] = {"openai-chat": "openai", "openai-responses": "openai"}
"""The conventions' names for our adapters where they differ."""


class SpanKind(IntEnum):
    """The kinds of spans, with their numbers in OTLP."""

    INTERNAL = 1
    CLIENT = 3


CHAT = "chat"
"""The name of the operation that asks a model."""


@dataclass(frozen=True)
class Span:
    """One operation that has ended."""

    trace_id: bytes
    span_id: bytes
    parent_id: bytes
    """The parent's id; empty for the orchestrator."""
    name: str
    kind: SpanKind
    start: datetime
    end: datetime
    attributes: Mapping[str, Value]
    error: str = ""
    """The kind of error, one of a few words; empty without one."""


@dataclass
class _Agent:
    """The state of an agent up to some record."""

    role: str
    call: str
    """The call that waits for it; empty for the orchestrator."""
    tasks: int = 0
    began: datetime | None = None
    """When its current task began in this session of the run; None without one."""
    ready: datetime | None = None
    """The earliest start of its next operation: the time of its latest record in this session, and the wait after a
    failed attempt.
    """


@dataclass(frozen=True)
class _Done:
    """An operation without the attributes of its span."""

    key: str
    """A key that is unique in the run."""
    name: str
    parent: bytes
    start: datetime
    end: datetime
    error: str = ""


@dataclass
class Spans:
    """Follows a run's records, and emits each span when it ends. All sessions of a run have one trace."""

    emit: Callable[[Span], None]
    _run: str = ""
    _session: int = 0
    """The number of the first record of this session; 0 before it."""
    _seq: int = 0
    _began: datetime | None = None
    _last: datetime | None = None
    _models: dict[str, str] = field(default_factory=dict[str, str])
    """The model of each role, with the provider's prefix."""
    _agents: dict[str, _Agent] = field(default_factory=dict[str, _Agent])
    _calls: dict[str, tuple[ToolStarted, datetime | None]] = field(
        default_factory=dict[str, tuple[ToolStarted, datetime | None]]
    )
    """The calls that are not over, by key, and when they began in this session."""

    def catch_up(self, records: Iterable[JournalRecord]) -> None:
        """Read the records of earlier sessions, without making spans."""
        for record in records:
            self._know(record.event)
            self._forget_or_keep(record.event, None)

    def observe(self, record: JournalRecord) -> None:
        """Add a record of this session."""
        event, now = record.event, record.at
        if not self._session:
            self._session, self._began = record.seq, now
        self._last, self._seq = now, record.seq
        self._know(event)
        agent = self._agents.get(event.agent)
        if agent is None:
            return
        if agent.began is None and isinstance(event, WORK):
            # An agent of an earlier session begins in this one with its first operation.
            agent.began = _asked(event, now)
        match event:
            case TurnTaken():
                self._turn(event, agent, now)
            case TurnFailed():
                self._failed_turn(event, agent, now)
            case ToolFinished():
                _, begun = self._calls.get(event.call, (event, now))
                self._call(event, (begun, now), "" if event.success else TOOL_ERROR, {})
            case AgentFinished():
                error = event.status.value if event.status is Status.FAILED else ""
                self._invocation(event.agent, now, {"explorer.status": event.status.value}, error)
                agent.began = None
            case _:
                pass
        self._forget_or_keep(event, now)
        agent.ready = now + timedelta(seconds=(event.waits_s or 0.0) if isinstance(event, TurnFailed) else 0.0)

    def end(self) -> None:
        """Emit the spans of what is not over; they end with the latest record."""
        if self._last is None:
            return
        for started, begun in self._calls.values():
            self._call(started, (begun, self._last), "", {UNFINISHED: True})
        for name, agent in self._agents.items():
            if agent.began is not None:
                self._invocation(name, self._last, {UNFINISHED: True})
        self._calls, self._last = {}, None

    def _know(self, event: Event) -> None:
        match event:
            case RunStarted() | RunForked():
                self._run = event.run_id
            case RoleLoaded():
                self._models[event.role] = event.model
            case AgentStarted():
                self._agents[event.agent] = _Agent(event.role, event.parent_call, 1)
            case AgentContinued() if event.agent in self._agents:
                agent = self._agents[event.agent]
                agent.call, agent.tasks, agent.began = event.parent_call, agent.tasks + 1, None
            case _:
                pass

    def _forget_or_keep(self, event: Event, now: datetime | None) -> None:
        match event:
            case ToolStarted():
                self._calls[event.call] = (event, now)
            case ToolFinished():
                self._calls.pop(event.call, None)
            case _:
                pass

    def _turn(self, event: TurnTaken, agent: _Agent, now: datetime) -> None:
        turn, asked = event.turn, _asked(event, now)
        more: dict[str, Value] = {
            PROVIDER: PROVIDERS.get(turn.provider, turn.provider),
            MODEL: turn.model,
            "gen_ai.response.model": turn.model,
            "gen_ai.response.finish_reasons": (turn.stop.value,),
            **_usage(turn.usage),
        }
        if turn.cost_usd is not None:
            more["explorer.cost_usd"] = turn.cost_usd
        # After failed attempts, the last attempt brought the turn.
        start = max(asked, min(agent.ready or asked, now))
        done = _Done(f"turn {self._seq}", f"chat {turn.model}", self._of(event), start, now)
        self._emit(done, self._facts(CHAT, event.agent) | more)

    def _failed_turn(self, event: TurnFailed, agent: _Agent, now: datetime) -> None:
        asked = self._model(agent.role)
        key, start = f"turn {self._seq}", agent.ready or now
        done = _Done(key, f"chat {asked[MODEL]}", self._of(event), start, now, event.fault)
        self._emit(done, self._facts(CHAT, event.agent) | asked)

    def _call(
        self,
        event: ToolStarted | ToolFinished,
        times: tuple[datetime | None, datetime],
        error: str,
        more: Mapping[str, Value],
    ) -> None:
        begun, end = times
        start = begun or self._began or end
        done = _Done(f"call {event.call}", f"execute_tool {event.name}", self._of(event), start, end, error)
        facts: dict[str, Value] = {
            "gen_ai.tool.name": event.name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": event.call,
        }
        self._emit(done, {**self._facts("execute_tool", event.agent), **facts, **more})

    def _invocation(self, name: str, now: datetime, more: Mapping[str, Value], error: str = "") -> None:
        agent = self._agents[name]
        parent = self._id(f"call {agent.call}") if agent.call else b""
        key = self._agent_key(name)
        done = _Done(key, f"invoke_agent {agent.role}", parent, agent.began or now, now, error)
        self._emit(done, {**self._facts("invoke_agent", name), **self._model(agent.role), **more})

    def _emit(self, done: _Done, attributes: Mapping[str, Value]) -> None:
        self.emit(
            Span(
                trace_id=hashlib.sha256(f"explorer run {self._run}".encode()).digest()[:16],
                span_id=self._id(done.key),
                parent_id=done.parent,
                name=done.name,
                kind=SpanKind.CLIENT if attributes["gen_ai.operation.name"] == CHAT else SpanKind.INTERNAL,
                start=min(done.start, done.end),
                end=done.end,
                attributes=attributes,
                error=done.error,
            )
        )

    def _of(self, event: Event) -> bytes:
        """Return the id of the span of an event's agent."""
        return self._id(self._agent_key(event.agent))

    def _facts(self, operation: str, agent: str) -> dict[str, Value]:
        known = self._agents.get(agent)
        return {
            "gen_ai.operation.name": operation,
            "gen_ai.conversation.id": self._run,
            "gen_ai.agent.id": agent,
            "gen_ai.agent.name": known.role if known else agent,
        }

    def _model(self, role: str) -> dict[str, Value]:
        """Return the provider and the model of a role; `offline` is both."""
        provider, colon, name = self._models.get(role, "").partition(":")
        return {PROVIDER: PROVIDERS.get(provider, provider), MODEL: name if colon else provider}

    def _agent_key(self, agent: str) -> str:
        known = self._agents.get(agent)
        return f"agent {agent} {known.tasks if known else 0}"

    def _id(self, key: str) -> bytes:
        """Return the id of a span: the same each time this session is read, and different in each session."""
        return hashlib.sha256(f"{self._run} {self._session} {key}".encode()).digest()[:8]


def _asked(event: Event, now: datetime) -> datetime:
    """Return when the operation of a record began."""
    return now - timedelta(seconds=max(0.0, event.seconds)) if isinstance(event, TurnTaken) else now


def _usage(usage: Usage) -> dict[str, Value]:
    found: dict[str, Value] = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
    }
    if usage.cache_read_tokens:
        found["gen_ai.usage.cache_read.input_tokens"] = usage.cache_read_tokens
    if usage.cache_write_tokens:
        found["gen_ai.usage.cache_creation.input_tokens"] = usage.cache_write_tokens
    if usage.reasoning_tokens:
        found["gen_ai.usage.reasoning.output_tokens"] = usage.reasoning_tokens
    return found
