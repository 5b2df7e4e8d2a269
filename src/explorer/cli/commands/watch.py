"""The command `watch`: a running run followed live, or an ended one shown again, without a model."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from explorer.cli.runs_at_hand import run_at_hand
from explorer.cli.screens.output import INTERRUPTED, emit_outcome, print_error, print_report, say
from explorer.cli.screens.screen import Screen, screen_for, tap_for
from explorer.cli.settings.configuration import configured, looks_at_runs
from explorer.cli.settings.options import COMMON, CommonOptions
from explorer.journal.journal import Observe
from explorer.journal.listing import LATEST, UNFINISHED, WAITING, JournalTail, is_running, read_records
from explorer.observe.command_result import CommandResult
from explorer.observe.formatting import one_line
from explorer.observe.run_view import RUNNING, RunView
from explorer.run.results import seen_outcome, stored_result
from explorer.schema.errors import ConfigError, ExplorerError
from explorer.schema.events import JournalRecord

LOOK_EVERY_S = 0.05
LONGEST_PAUSE_S = 2.0
AT_ONCE = "max"
KEYS = "Ctrl-C: stop watching; the run is not touched"


def watch(
    run: Annotated[str, Parameter(help="A run's id, the beginning of one, or `latest`.")] = LATEST,
    /,
    *,
    speed: Annotated[
        str, Parameter(name="--speed", help="Replay speed of an ended run: a factor such as 20, or `max`.")
    ] = "10",
    options: CommonOptions = COMMON,
) -> int:
    """Follow a running run, or show an ended one again from its journal; no model is asked.

    Ctrl-C ends the watching and nothing else. The report comes at the end.

    Example: `explorer watch latest --speed 20`
    """
    times = _times(speed)
    with run_at_hand(configured(options, looks_at_runs).settings, run) as folder:
        return _watch(folder, times, options)


def _watch(folder: Path, times: float | None, options: CommonOptions) -> int:
    view = RunView()
    is_live = is_running(folder)
    screen = screen_for(options, KEYS, lambda: datetime.now(UTC) if is_live else view.last or datetime.now(UTC))
    watched = Watch(screen, tap_for(options), view)
    records = following(folder) if is_live else replay(read_records(folder), times)
    try:
        asyncio.run(watched.show(records))
    except KeyboardInterrupt:
        say("no longer watching")
        outcome = replace(seen_outcome(view, folder.resolve()), status="interrupted", exit_code=INTERRUPTED)
        emit_outcome(outcome, options.output_format)
        return INTERRUPTED
    return _print_result(view, folder, options)


def _times(speed: str) -> float | None:
    """Parse the factor of the replay's speed; None: at once."""
    if speed == AT_ONCE:
        return None
    try:
        times = float(speed)
    except ValueError:
        times = 0.0
    if not 0 < times < float("inf"):
        raise ConfigError(f"flag --speed: {speed[:80]!r} is not allowed", hint="allowed is a number above 0, or `max`")
    return times


async def following(folder: Path) -> AsyncIterator[JournalRecord]:
    """Yield the records of a running run as they come, from the first on, until no process works on it."""
    tail = JournalTail(folder)
    is_alive = True
    while is_alive:
        # Asked before reading: what was written before the end is then read.
        is_alive = is_running(folder)
        for record in tail.read():
            yield record
        if is_alive:
            await asyncio.sleep(LOOK_EVERY_S)


async def replay(records: Sequence[JournalRecord], times: float | None) -> AsyncIterator[JournalRecord]:
    """Yield the records of an ended run, at so many times its own speed; long pauses are cut short."""
    for before, record in zip((None, *records), records, strict=False):
        if before is not None and times is not None:
            await asyncio.sleep(pause_s(before, record, times))
        yield record


def pause_s(before: JournalRecord, after: JournalRecord, times: float) -> float:
    """Return the seconds between two records of a run shown so many times as fast; long ones are cut short."""
    return min(max((after.at - before.at).total_seconds() / times, 0.0), LONGEST_PAUSE_S)


@dataclass
class Watch:
    """Shows records of another process, or of an ended run."""

    screen: Screen
    tap: Observe | None
    view: RunView
    error: ExplorerError | None = field(default=None)

    async def show(self, records: AsyncIterator[JournalRecord]) -> None:
        """Show all of them.

        Raises:
            StorageError: The journal cannot be read, or is damaged.
        """
        with self.screen.shown(self.view):
            async with asyncio.TaskGroup() as group:
                ticker = group.create_task(self.screen.keep_fresh())
                try:
                    await self._show_each(records)
                except ExplorerError as error:
                    # Inside the group: leaving it, the error would come out wrapped.
                    self.error = error
                finally:
                    ticker.cancel()
        if self.error is not None:
            raise self.error

    async def _show_each(self, records: AsyncIterator[JournalRecord]) -> None:
        async for record in records:
            self.screen.observe(record, self.view)
            self.view.apply(record)
            if self.tap is not None:
                self.tap(record)


def _print_result(view: RunView, folder: Path, options: CommonOptions) -> int:
    """Print the report and how the run ended; return the run's exit code."""
    if view.status == RUNNING:
        view.status = WAITING if view.plan.is_waiting else UNFINISHED
    outcome = stored_result(view, folder.resolve())
    if options.output_format == "text":
        print_report(view.answer or outcome.report_text)
    else:
        emit_outcome(outcome, options.output_format)
    _say_ending(outcome, options)
    return outcome.exit_code


def _say_ending(outcome: CommandResult, options: CommonOptions) -> None:
    if outcome.status == UNFINISHED:
        failure = ExplorerError(
            f"run {outcome.run_id} stopped without an end", hint=f"continue: explorer resume {outcome.run_id}"
        )
        print_error(failure, verbose=0)
    elif not options.quiet:
        reason = f" ({one_line(outcome.reason)})" if outcome.reason else ""
        say(f"\n{outcome.status}{reason}: {outcome.report or outcome.folder}")
