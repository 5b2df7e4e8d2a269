"""The screens a run is shown on: none, lines, or the live view; and the records of a run on stdout."""

import os
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Protocol, cast

from explorer.cli.screens.output import emit_json, say
from explorer.cli.screens.plan_page import proposal_line
from explorer.cli.screens.session_lines import approval_line, cut_line, models_words, session_lines
from explorer.cli.settings.options import CommonOptions
from explorer.journal.agent_state import RESULT
from explorer.journal.journal import Observe
from explorer.observe.formatting import as_given, counted, one_line, result_words
from explorer.observe.run_view import RunView, asked, outage_words, outcome
from explorer.schema.events import (
    AgentContinued,
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalDecided,
    JournalRecord,
    NoteAdded,
    PathMoved,
    PlanDecided,
    PlanProposed,
    Repaired,
    RoundAssessed,
    RunFinished,
    RunForked,
    RunStarted,
    SandboxChosen,
    SessionConfigured,
    Steered,
    StopAsked,
    ToolFinished,
    TurnFailed,
    TurnTaken,
)
from explorer.schema.messages import JsonObject
from explorer.text.rendering import without_marks

TASK_CHARS = 100
CLOCK = "%H:%M:%S"


class Screen(Protocol):
    """Shows a run."""

    def shown(self, view: RunView) -> AbstractContextManager[object]:
        """Show the run while inside."""
        ...

    def observe(self, record: JournalRecord, view: RunView) -> None:
        """Show a record that has become durable; `view` is the state just before it."""
        ...

    def say(self, text: str) -> None:
        """Show a line that is no event."""
        ...

    def ask(self, question: str) -> None:
        """Show a question until the next call; none for an empty one."""
        ...

    async def keep_fresh(self) -> None:
        """Refresh the screen until cancelled."""
        ...


class Quiet:
    """Shows nothing."""

    def shown(self, view: RunView) -> AbstractContextManager[object]:  # noqa: ARG002
        """Show nothing."""
        return nullcontext()

    def observe(self, record: JournalRecord, view: RunView) -> None:
        """Stay silent."""

    def say(self, text: str) -> None:
        """Stay silent."""

    def ask(self, question: str) -> None:
        """Stay silent: a question that is not seen is not asked."""

    async def keep_fresh(self) -> None:
        """Return at once: there is nothing to refresh."""


class Lines(Quiet):
    """One line per event: for logs, pipes and dumb terminals."""

    def __init__(self, write: Callable[[str], None] = say) -> None:
        self._write = write
        # The line of a run's start waits for the next record: what the session works with is said before it.
        self._start = ""

    def observe(self, record: JournalRecord, view: RunView) -> None:
        """Write the event's line, if it has one."""
        line = line_of(record, view)
        stamped = f"{record.at.astimezone().strftime(CLOCK)} {line}" if line else ""
        if isinstance(record.event, RunStarted):
            self._start = stamped
            return
        start, self._start = self._start, ""
        texts = [start, stamped]
        if isinstance(record.event, SessionConfigured):
            texts = [*session_lines(record.event), start]
        elif isinstance(record.event, PlanProposed):
            texts += [f"  {one.id}  {one_line(one.question, TASK_CHARS)}" for one in record.event.plan.questions]
        for words in filter(None, texts):
            self._write(words)

    def say(self, text: str) -> None:
        """Write it as a line of its own."""
        self._write(text)

    def ask(self, question: str) -> None:
        """Write it as a line of its own."""
        if question:
            self._write(question)


def line_of(record: JournalRecord, view: RunView) -> str:
    """Return an event in one line; empty for those that tell people nothing."""
    event = record.event
    line = ""
    match event:
        case AgentStarted() | AgentContinued():
            line = f"{event.agent}  task: {one_line(without_marks(event.task), TASK_CHARS)}"
        case ToolFinished():
            line = _tool_line(event, view)
        case TurnFailed():
            line = _failed_turn_line(event, view)
        case AgentFinished():
            reason = f" ({one_line(event.reason, TASK_CHARS)})" if event.reason else ""
            line = f"{event.agent}  {event.status.value}{reason}: {one_line(event.summary, TASK_CHARS)}"
        case TurnTaken():
            line = cut_line(event, view)
        case RunStarted() | SessionConfigured() | RunFinished() | RunForked() | Repaired():
            line = _line_of_run(event)
        case NoteAdded() | Steered() | StopAsked() | SandboxChosen() | PathMoved() | ApprovalDecided():
            line = _line_of_words(event)
        case _:
            line = _line_of_plan(event)
    return as_given(line)


def _line_of_plan(event: AnyEvent) -> str:
    match event:
        case PlanProposed():
            return f"{event.agent}  {proposal_line(event.plan.questions)}"
        case PlanDecided():
            who = "by the settings" if event.is_automatic else "by you"
            return f"plan {event.verdict.value} {who}" + (
                f": {one_line(event.words, TASK_CHARS)}" if event.words else ""
            )
        case RoundAssessed():
            states = Counter(one.state.value for one in event.questions)
            counts = ", ".join(f"{count} {state}" for state, count in states.items())
            dull = "" if event.is_interesting else "; nothing of interest"
            return (
                f"{event.agent}  round {event.number}: {counts}; {counted(len(event.new_sources), 'new source')}{dull}"
            )
        case _:
            return ""


def _tool_line(event: ToolFinished, view: RunView) -> str:
    # A helper's end has a line already; its result comes with the answer to its caller.
    if view.is_helper(event.call) and event.success:
        result = event.data.get(RESULT)
        agent = one_line(str(event.data.get("agent_id", "")), TASK_CHARS)
        if not isinstance(result, dict) or not result:
            return ""
        return f"{agent}  returned: {result_words(cast('JsonObject', result))}"
    call = view.call(event.call)
    return f"{event.agent}  {asked(call) if call else event.name} → {outcome(event)}"


def _failed_turn_line(event: TurnFailed, view: RunView) -> str:
    outage = view.outage_met(event)
    if outage is not None:
        return f"{event.agent}  {outage_words(outage)}: {one_line(event.message, TASK_CHARS)}"
    wait = f"; again in {event.waits_s:.1f} s" if event.waits_s is not None else "; no further attempt"
    fault = event.fault.replace("_", " ")
    return f"{event.agent}  attempt {event.attempt}: {fault}: {one_line(event.message, TASK_CHARS)}{wait}"


def _line_of_run(event: RunStarted | SessionConfigured | RunFinished | RunForked | Repaired) -> str:
    match event:
        case RunStarted():
            return f"run {event.run_id} started"
        case SessionConfigured():
            return f"session with {models_words(event.models)}"
        case RunFinished():
            return f"run {event.status.value}" + (f": {one_line(event.reason, TASK_CHARS)}" if event.reason else "")
        case RunForked():
            return f"run {event.run_id} forked from {event.of} at record {event.shared}"
        case Repaired():
            return f"journal repaired: {counted(event.cut_bytes, 'byte')} of a torn tail set aside"


def _line_of_words(event: NoteAdded | Steered | StopAsked | SandboxChosen | PathMoved | ApprovalDecided) -> str:
    match event:
        case NoteAdded():
            return f"{event.agent}  note: {one_line(event.text, TASK_CHARS)}"
        case Steered():
            return f"{event.agent}  from you: {one_line(event.text, TASK_CHARS)}"
        case SandboxChosen():
            return f"shell  {one_line(event.why, TASK_CHARS)}"
        case PathMoved():
            return f"moved {event.path} to {event.to}: it was in the report's place"
        case ApprovalDecided():
            return approval_line(event)
        case StopAsked():
            return f"asked to write up and stop: {one_line(event.reason, TASK_CHARS)}"


def screen_for(options: CommonOptions, keys: str = "", now: Callable[[], datetime] | None = None) -> Screen:
    """Return the screen for a command: none when quiet, a live view on a terminal, lines everywhere else.

    Args:
        options: Of the command.
        keys: What the terminal's keys do, for a run that is not this process's own.
        now: The clock by which the run's age is told; the real one when None.
    """
    if options.quiet:
        return Quiet()
    is_terminal = sys.stderr.isatty() and os.environ.get("TERM", "") not in {"", "dumb"}
    # Log lines and a view that redraws itself would tear each other apart.
    if not is_terminal or options.verbose or options.output_format == "stream-json":
        return Lines()
    from rich.console import Console  # noqa: PLC0415 - the view's stack is slow to import, and often not needed

    from explorer.cli.screens.live import OWN_RUN_KEYS, LiveView  # noqa: PLC0415 - the same

    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    return LiveView(console, keys or OWN_RUN_KEYS, now)


def tap_for(options: CommonOptions) -> Observe | None:
    """Return what each record is given to besides the screen: stdout, when it carries records."""
    return print_record if options.output_format == "stream-json" else None


def print_record(record: JournalRecord) -> None:
    """Write one record to stdout, as it is in the journal."""
    head = {"v": record.v, "seq": record.seq, "at": record.at.isoformat()}
    emit_json(head | record.event.model_dump(mode="json"))
