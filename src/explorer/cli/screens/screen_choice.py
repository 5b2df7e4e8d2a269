"""Which screen a command shows a run on, and the records of a run on stdout."""

import os
import sys
from collections.abc import Callable
from datetime import datetime

from explorer.cli.screens.output import emit_json
from explorer.cli.screens.screen import Lines, Quiet, Screen
from explorer.cli.settings.options import CommonOptions
from explorer.journal.journal import Observe
from explorer.schema.events import JournalRecord


def screen_for(options: CommonOptions, keys: str = "", now: Callable[[], datetime] | None = None) -> Screen:
    """Nothing when quiet, a live view on a terminal, lines everywhere else.

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
    """What each record is given to besides the screen: stdout, when it carries records."""
    return print_record if options.output_format == "stream-json" else None


def print_record(record: JournalRecord) -> None:
    """Write one record to stdout, as it stands in the journal."""
    head = {"v": record.v, "seq": record.seq, "at": record.at.isoformat()}
    emit_json(head | record.event.model_dump(mode="json"))
