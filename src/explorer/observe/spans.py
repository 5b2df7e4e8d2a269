"""Spans of a run, made of its records: agents, turns, tool calls, under the names of the GenAI conventions.

https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-agent-spans.md (status:
development). No prompt, reply, argument or result is in them: what a run is about is its user's own.
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
WORK = (AgentStarted, AgentContinued, TurnTaken, TurnFailed, ToolStarted, ToolFinished)
UNFINISHED = "explorer.unfinished"
"""Is true where the process ended before the agent or the call did; a later one goes on with it in a new span."""
PROVIDERS: Mapping[str, str] = {"openai-chat": "openai", "openai-responses": "openai"}
"""The conventions' names for our adapters, where they differ."""


class SpanKind(IntEnum):
    """As OTLP numbers them."""

    INTERNAL = 1
    CLIENT = 3


CHAT = "chat"
"""The operation that asks a model."""


@dataclass(frozen=True)
class Span:
    """One thing that was done, over and done with."""

    trace_id: bytes
    span_id: bytes
    parent_id: bytes
    """Empty for the orchestrator."""
    name: str
    kind: SpanKind
    start: datetime
    end: datetime
    attributes: Mapping[str, Value]
    error: str = ""
    """What went wrong, one of few words; empty when nothing did."""


@dataclass
class _Agent:
    """What is known of an agent."""

    role: str
    call: str
    """The call that waits for it; empty for the orchestrator."""
    tasks: int = 0
    began: datetime | None = None
    """When its present task began, in this session of the run; None when it has none."""
    ready: datetime | None = None
    """When its latest record was made, in this session, and the wait after a failed attempt was over: nothing it does
    later began before."""


@dataclass(frozen=True)
class _Done:
    """What a span is of."""

    key: str
    """Unique in the run."""
    name: str
    parent: bytes
    start: datetime
    end: datetime
    error: str = ""


@dataclass
class Spans:
    """Follows a run's records, and hands on each span as it is over. The trace is the run's, in all of its sessions."""

    emit: Callable[[Span], None]
    _run: str = ""
    _life: int = 0
    """The first record seen of this session; 0 before that."""
    _seq: int = 0
    _began: datetime | None = None
    _last: datetime | None = None
    _models: dict[str, str] = field(default_factory=dict[str, str])
    """By role, with the provider's prefix."""
    _agents: dict[str, _Agent] = field(default_factory=dict[str, _Agent])
    _calls: dict[str, tuple[ToolStarted, datetime | None]] = field(
        default_factory=dict[str, tuple[ToolStarted, datetime | None]]
    )
    """By key, the calls that are not over, and when they began in this session."""

    def catch_up(self, records: Iterable[JournalRecord]) -> None:
        """Know what happened in earlier sessions; no spans are made of it."""
        for record in records:
            self._know(record.event)
            self._forget_or_keep(record.event, None)

    def observe(self, record: JournalRecord) -> None:
        """Take in a record of this session, as it comes."""
        event, now = record.event, record.at
        if not self._life:
            self._life, self._began = record.seq, now
        self._last, self._seq = now, record.seq
        self._know(event)
        agent = self._agents.get(event.agent)
        if agent is None:
            return
        if agent.began is None and isinstance(event, WORK):
            # One that was at work in an earlier session begins in this one with what it does first.
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
        """Hand on what is not over, as it is at the latest record: no process is going to end it."""
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
            "gen_ai.provider.name": PROVIDERS.get(turn.provider, turn.provider),
            "gen_ai.request.model": turn.model,
            "gen_ai.response.model": turn.model,
            "gen_ai.response.finish_reasons": (turn.stop.value,),
            **_usage(turn.usage),
        }
        if turn.cost_usd is not None:
            more["explorer.cost_usd"] = turn.cost_usd
        # After failed attempts it is the last one that brought the turn.
        start = max(asked, min(agent.ready or asked, now))
        done = _Done(f"turn {self._seq}", f"chat {turn.model}", self._of(event), start, now)
        self._hand_on(done, self._facts(CHAT, event.agent) | more)

    def _failed_turn(self, event: TurnFailed, agent: _Agent, now: datetime) -> None:
        provider, model = self._model(agent.role)
        key, start = f"turn {self._seq}", agent.ready or now
        done = _Done(key, f"chat {model}", self._of(event), start, now, event.fault)
        more: dict[str, Value] = {"gen_ai.provider.name": provider, "gen_ai.request.model": model}
        self._hand_on(done, self._facts(CHAT, event.agent) | more)

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
        self._hand_on(done, {**self._facts("execute_tool", event.agent), **facts, **more})

    def _invocation(self, name: str, now: datetime, more: Mapping[str, Value], error: str = "") -> None:
        agent = self._agents[name]
        provider, model = self._model(agent.role)
        facts: dict[str, Value] = {"gen_ai.provider.name": provider, "gen_ai.request.model": model}
        parent = self._id(f"call {agent.call}") if agent.call else b""
        key = self._agent_key(name)
        done = _Done(key, f"invoke_agent {agent.role}", parent, agent.began or now, now, error)
        self._hand_on(done, {**self._facts("invoke_agent", name), **facts, **more})

    def _hand_on(self, done: _Done, attributes: Mapping[str, Value]) -> None:
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
        """The span of the agent whose event it is."""
        return self._id(self._agent_key(event.agent))

    def _facts(self, operation: str, agent: str) -> dict[str, Value]:
        known = self._agents.get(agent)
        return {
            "gen_ai.operation.name": operation,
            "gen_ai.conversation.id": self._run,
            "gen_ai.agent.id": agent,
            "gen_ai.agent.name": known.role if known else agent,
        }

    def _model(self, role: str) -> tuple[str, str]:
        """Provider and model of a role; `offline` is both."""
        provider, colon, name = self._models.get(role, "").partition(":")
        return PROVIDERS.get(provider, provider), name if colon else provider

    def _agent_key(self, agent: str) -> str:
        known = self._agents.get(agent)
        return f"agent {agent} {known.tasks if known else 0}"

    def _id(self, key: str) -> bytes:
        """The same whenever this session is read, and another one in every session."""
        return hashlib.sha256(f"{self._run} {self._life} {key}".encode()).digest()[:8]


def _asked(event: Event, now: datetime) -> datetime:
    """When a record's own work began."""
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
