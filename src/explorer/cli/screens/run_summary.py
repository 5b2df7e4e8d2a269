"""How a run ends on the terminal: the result on stdout, a short account on stderr, the exit code."""

import shlex
import shutil
import sys
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path

from explorer.cli.notify import Notifier
from explorer.cli.report_files import write_report
from explorer.cli.screens.output import (
    emit_outcome,
    emit_page,
    print_error,
    print_report,
    say,
)
from explorer.cli.screens.plan_page import plan_page
from explorer.cli.session import SessionEnd
from explorer.cli.settings.options import RunOptions
from explorer.journal.listing import read_records
from explorer.journal.run_state import RunState
from explorer.observe.command_result import CommandResult, described
from explorer.observe.formatting import cached, cited, counted, duration, one_line, spent, tokens
from explorer.observe.run_view import RunView, session_facts
from explorer.run.outcome import resume_command
from explorer.run.results import result_of, seen_outcome
from explorer.run.run import RunResult
from explorer.schema.errors import ConfigError, CredentialsError, ExplorerError, RunLockedError
from explorer.schema.events import Status
from explorer.schema.reasons import LIMIT_WORDS
from explorer.text.citations import without_references
from explorer.workspace.workspace import report_path

FAILURES = {"failed": "the run failed", "sources_unavailable": "sources unavailable"}
"""Ends that are shown as errors."""
CHECKS = {"sources_unavailable": "check the network and the services: explorer doctor"}
"""What to look at before going on."""
SUMMARY_CHARS = 600
ENDINGS = {"nothing_found": "nothing found"}
"""Ends in other words than their status."""


@dataclass(frozen=True)
class SummaryPrinter:
    """The end of one command that ran something."""

    options: RunOptions
    workspace: Path
    notifier: Notifier | None = None
    """Where the end is sent, besides the terminal."""

    def print_end(self, ending: SessionEnd) -> int:
        """Print how the run ended, send it where it is to be sent, and return the exit code."""
        result = ending.result
        outcome = replace(result_of(result), session=session_facts(ending.view)) if result else self._stopped(ending)
        try:
            self._print(ending, outcome)
        finally:
            if self.notifier is not None:
                self.notifier.send(ending.view.question, outcome)
        return outcome.exit_code

    def _print(self, ending: SessionEnd, outcome: CommandResult) -> None:
        if ending.result is not None:
            self._result(ending.result, outcome, ending.view)
            return
        if ending.error is not None:
            self._add_next_step(ending.error, ending.view)
            print_error(ending.error, verbose=self.options.verbose)
        elif ending.view.run_id:
            self._print_stopped(ending.view.run_id)
        else:
            say("stopped before the run began")
        emit_outcome(self._stopped(ending), self.options.output_format)

    def _print_stopped(self, run_id: str) -> None:
        report = report_path((self.workspace / run_id).resolve())
        rows = [
            "stopped; everything so far is saved",
            *([f"  report    {report}"] if report else []),
            f"  → continue: {self._resume_command(run_id)}",
        ]
        say("\n".join(rows))

    def _result(self, result: RunResult, outcome: CommandResult, view: RunView) -> None:
        if result.status is Status.WAITING:
            self._waiting(result, outcome, view)
            return
        if self.options.output is not None and (result.report_text or result.words):
            warning = _copy(result, self.options)
            if warning:
                say(warning)
        if self.options.output_format == "text":
            text = result.answer or result.report_text or result.words
            # On a terminal the account of the run, with the path, is the next thing to read.
            print_report(without_references(text) if sys.stdout.isatty() and not self.options.quiet else text)
        else:
            emit_outcome(outcome, self.options.output_format)
        if outcome.status in FAILURES:
            words = f"{FAILURES[outcome.status]}: {one_line(result.reason)}"
            ways = [CHECKS.get(outcome.status, ""), f"continue: {self._next_step(result)}"]
            print_error(ExplorerError(words, hint="\n  → ".join(way for way in ways if way)), verbose=0)
        elif not self.options.quiet:
            self._account(result, outcome, view)

    def _waiting(self, result: RunResult, outcome: CommandResult, view: RunView) -> None:
        """Print the plan that waits, and how to decide about it."""
        if self.options.output_format != "text":
            emit_outcome(outcome, self.options.output_format)
        elif result.plan is not None:
            limit = view.session.limits.get("max_cost_usd") if view.session is not None else None
            emit_page(plan_page(result.plan, limit.value if limit is not None else None))
        if not self.options.quiet:
            command = self._resume_command(result.run_id)
            ways = [
                f"approve: {command} --plan approve",
                f"change: {command} --plan FILE.yaml",
                f'ask for another one: explorer resume {result.run_id} "what is to be different"{self._place()}',
                f"reject: {command} --plan reject",
            ]
            say(
                "\n".join(
                    [f"\nwaiting for your decision on the plan of {result.run_id}", *(f"  → {way}" for way in ways)]
                )
            )

    @staticmethod
    def _summary(result: RunResult, view: RunView) -> list[str]:
        """Return the orchestrator's summary on a terminal, where the list of references is left out."""
        if not sys.stdout.isatty() or result.answer or not result.report or not view.summary:
            return []
        width = shutil.get_terminal_size().columns
        return ["", *textwrap.wrap(f"Summary: {one_line(view.summary, SUMMARY_CHARS)}", width, break_on_hyphens=False)]

    def _account(self, result: RunResult, outcome: CommandResult, view: RunView) -> None:
        ending = ENDINGS.get(outcome.status, outcome.status)
        ending += f" ({one_line(result.reason)})" if result.reason else ""
        usage = result.usage
        used = f"{tokens(usage.total_tokens)} tokens{cached(usage.cache_read_tokens, usage.input_tokens)}"
        figures = [spent(result.cost_usd, result.estimated), used, duration(result.seconds)]
        source_store = [
            counted(result.sources, "source"),
            cited(result.verdicts, result.uncited),
            counted(result.agents, "agent"),
            counted(result.steps, "step"),
        ]
        follow_up = ' "your follow-up"' if outcome.status == "complete" else ""
        rows = [
            *self._summary(result, view),
            f"\n{ending}: {result.report or result.folder}",
            f"  run       {result.run_id}",
            f"  spent     {', '.join(figures)}",
            f"  evidence  {', '.join(source_store)}",
            *([f"  changes   {result.changes}"] if result.changes is not None else []),
            f"  continue  {self._next_step(result)}{follow_up}",
        ]
        say("\n".join(rows))

    def _stopped(self, ending: SessionEnd) -> CommandResult:
        view, error = ending.view, ending.error
        seen = seen_outcome(view, (self.workspace / view.run_id).resolve() if view.run_id else None)
        if error is None:
            code = ending.interrupted or 1
            return replace(seen, status="interrupted", exit_code=code, reason="interrupted")
        words = one_line(error.message)
        return replace(seen, status="error", exit_code=error.exit_code, reason=words, error=described(error))

    def _add_next_step(self, error: ExplorerError, view: RunView) -> None:
        """Say in the hint how to continue a run that exists, unless the words of the command are wrong."""
        is_of_words = isinstance(error, ConfigError | RunLockedError) and not isinstance(error, CredentialsError)
        if not view.run_id or is_of_words:
            return
        command, plain_command = self._resume_command(view.run_id), f"explorer resume {view.run_id}"
        if plain_command in error.hint:
            error.hint = error.hint.replace(plain_command, command)
            return
        if error.hint.startswith("--"):
            # A flag alone would leave it to the reader to join it with the command.
            command, error.hint = f"{command} {error.hint}", ""
        ways = [error.hint, f"nothing is lost; continue: {command}"]
        error.hint = "\n  → ".join(way for way in ways if way)

    def _next_step(self, result: RunResult) -> str:
        """Return how to go on; after a limit with a larger one, which takes what the journal says of the old one."""
        if result.cause not in LIMIT_WORDS:
            return self._resume_command(result.run_id)
        run_state = RunState.of_records(read_records(result.folder))
        return resume_command(run_state, result.run_id, result.cause) + self._place()

    def _resume_command(self, run_id: str) -> str:
        return f"explorer resume {run_id}{self._place()}"

    def _place(self) -> str:
        place = self.options.workspace
        return f" --workspace {shlex.quote(place)}" if place else ""


def _copy(result: RunResult, options: RunOptions) -> str:
    """Write the copy of the report, or of the answer; return a warning, empty without one."""
    from explorer.run.report_document import document_of  # noqa: PLC0415 - slow to import, and few runs need it

    target = Path(options.output or "").expanduser()
    text = result.answer or result.report_text or result.words
    about = {"run_id": result.run_id, "status": result.status.value, "reason": result.reason}
    document = document_of(text, result.folder, None if text == result.report_text else about)
    try:
        return write_report(document, target, overwrite=options.overwrite)
    except ExplorerError as error:
        error.hint = "\n  → ".join(filter(None, [error.hint, f"the report is at {result.report or result.folder}"]))
        raise
