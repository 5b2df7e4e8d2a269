"""A run's records as lines of the log, for `-v` and for programs that turn the log on.

Each operation has one line: agent, operation, duration and outcome. Lines contain no questions, arguments, results or
texts of pages: these are in the journal.

INFO is for users, DEBUG adds details for engineers, WARNING is for what went wrong.
"""

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

from loguru import logger

from explorer.schema.events import (
    AgentContinued,
    AgentFinished,
    AgentStarted,
    AnyEvent,
    CitationsJudged,
    Compacted,
    JournalRecord,
    NoteAdded,
    Repaired,
    RoleLoaded,
    RunFinished,
    RunForked,
    RunStarted,
    SandboxChosen,
    SourceRecorded,
    Status,
    Steered,
    StopAsked,
    Summarised,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnTaken,
)
from explorer.text.sanitize import single_line
from explorer.text.urls import host_of

Level = Literal["DEBUG", "INFO", "WARNING"]
Line = tuple[Level, str]
FAULT_CHARS = 200


class RunLog:
    """Logs the records of one run as they become durable, as an observer of its journal."""

    def __init__(self) -> None:
        self._started: dict[str, datetime] = {}

    def observe(self, record: JournalRecord) -> None:
        """Log a record."""
        event = record.event
        if isinstance(event, ToolStarted):
            self._started[event.call] = record.at
        if isinstance(event, ToolFinished):
            since = self._started.pop(event.call, record.at)
            line = _tool_line(event, (record.at - since).total_seconds())
        else:
            line = _model_line(event) or _agent_line(event) or _run_line(event)
        if line is not None:
            logger.log(line[0], "{}", line[1])


def log_opened(run_id: str, records: Sequence[JournalRecord]) -> None:
    """Log that this process works on a run, and the size of its journal; observers do not get its repair."""
    logger.info("process {} works on {}", os.getpid(), run_id)
    logger.debug("journal opened: {} records", len(records))
    if records and isinstance(records[-1].event, Repaired):
        logger.warning("journal repaired: {} bytes of a torn tail set aside", records[-1].event.cut_bytes)


def log_written(report: Path | None, citations: int) -> None:
    """Log the path of the report, if there is one."""
    if report is not None:
        logger.info("report written: {}, {} citations", report, citations)


def log_closed(run_id: str) -> None:
    """Log that this process has finished its work on a run."""
    logger.info("process {} is done with {}", os.getpid(), run_id)


def _tool_line(event: ToolFinished, seconds: float) -> Line:
    ending = "finished" if event.success else "failed"
    more = f", {len(event.files)} files" if event.files else ""
    more += f", {len(event.sources)} sources" if event.sources else ""
    return "INFO", f"tool {ending}: {event.agent} {event.name} in {seconds:.2f} s{more}"


def _model_line(event: AnyEvent) -> Line | None:
    match event:
        case TurnTaken():
            return _turn_line(event)
        case TurnFailed():
            wait = f"again in {event.waits_s:.1f} s" if event.waits_s is not None else "no further attempt"
            words = single_line(event.message, FAULT_CHARS)
            return "WARNING", f"model failed: {event.agent} attempt {event.attempt}, {event.fault}, {wait}: {words}"
        case Compacted():
            return "DEBUG", f"conversation shortened: {event.agent} before message {event.before}, {event.why.value}"
        case Summarised():
            return "DEBUG", f"conversation summarised: {event.agent} before message {event.before}"
        case CitationsJudged():
            return "INFO", f"citations judged: {event.asked} by {event.model}" + (event.problem and ", ended early")
        case _:
            return None


def _turn_line(event: TurnTaken) -> Line:
    turn, usage = event.turn, event.turn.usage
    cost = "cost unknown" if turn.cost_usd is None else f"${turn.cost_usd:.4f}"
    tokens = f"{usage.input_tokens} tokens in, {usage.output_tokens} out"
    words = f"model replied: {event.agent} {turn.model} in {event.seconds:.2f} s, {tokens}, {cost}"
    words = f"{words}, {len(turn.calls)} calls"
    if turn.cut_from_tokens:
        return "WARNING", f"{words}; its server read only part of about {turn.cut_from_tokens} tokens"
    return "INFO", words


def _agent_line(event: AnyEvent) -> Line | None:
    match event:
        case RoleLoaded():
            return "DEBUG", f"role loaded: {event.role} on {event.model}, {len(event.tools)} tools"
        case AgentStarted():
            return "INFO", f"agent started: {event.agent} ({event.role})"
        case AgentContinued():
            return "INFO", f"agent continued: {event.agent}"
        case AgentFinished():
            level: Level = "INFO" if event.status is Status.COMPLETE else "WARNING"
            return level, f"agent finished: {event.agent} {event.status.value}"
        case NoteAdded():
            return "DEBUG", f"note added: {event.agent} {event.reason}"
        case _:
            return None


def _run_line(event: AnyEvent) -> Line | None:
    match event:
        case RunStarted():
            return "INFO", f"run started: {event.run_id}, engine {event.engine}"
        case RunFinished():
            level: Level = "INFO" if event.status is Status.COMPLETE else "WARNING"
            return level, f"run finished: {event.status.value}"
        case RunForked():
            return "INFO", f"run forked: {event.run_id} of {event.of} at record {event.shared}"
        case SandboxChosen():
            return ("DEBUG", f"sandbox chosen: {event.tier}") if event.tier else ("WARNING", "sandbox chosen: no shell")
        case _:
            return _outside_line(event)


def _outside_line(event: AnyEvent) -> Line | None:
    match event:
        case SourceRecorded(source=source):
            return "DEBUG", f"source stored: {source.id} of {host_of(source.url) or 'no host'}"
        case ToolStarted():
            return "DEBUG", f"tool started: {event.agent} {event.name}"
        case StopAsked():
            return "INFO", "stop requested by the user"
        case Steered():
            return "INFO", f"user's words added: {event.agent}"
        case _:
            return None
