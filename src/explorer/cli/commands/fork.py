"""The command `fork`: another run out of the beginning of one."""

import asyncio
from datetime import UTC, datetime
from typing import Annotated

from cyclopts import Parameter

from explorer.cli.commands.trust import settings_to_run
from explorer.cli.question import as_asked
from explorer.cli.runs_at_hand import run_at_hand, workspace_for
from explorer.cli.screens.output import emit_json, emit_page, say
from explorer.cli.settings.options import RUN, RunOptions
from explorer.journal.listing import read_records
from explorer.journal.run_state import RunState
from explorer.observe.formatting import counted
from explorer.run.fork import Forked
from explorer.run.fork import fork as fork_run
from explorer.schema.errors import ConfigError
from explorer.schema.events import Status
from explorer.workspace.user_key import open_key


def fork(
    run: Annotated[str, Parameter(help="A run's id, the beginning of one, or `latest`.")],
    /,
    *message: Annotated[str, Parameter(help="A follow-up question, or a message to an unfinished run.")],
    at: Annotated[
        int | None, Parameter(name="--at", help="The last record shared; `show RUN --timeline` has the numbers.")
    ] = None,
    no_run: Annotated[bool, Parameter(name="--no-run", help="Only create the new run; do not continue it.")] = False,
    options: RunOptions = RUN,
) -> int:
    """Start a new run from an earlier point of a run; the first run stays unchanged.

    Files have the content they had at that record. Works on a damaged run too, up to its last good record.

    Example: `explorer fork latest "Look at prices instead" --at 42`
    """
    if len(run.split()) > 1:
        raise ConfigError("the run comes first, and its name has no spaces", hint='write: explorer fork latest "..."')
    configuration = settings_to_run(options)
    from explorer.cli.launch import check_before_paying, continue_run  # noqa: PLC0415 - it loads the engine
    from explorer.cli.telemetry import show_logs  # noqa: PLC0415 - as above

    check_before_paying(options)
    words = as_asked(" ".join(message))
    show_logs(options.verbose)
    key = open_key(configuration.settings.state_dir)
    with run_at_hand(configuration.settings, run) as folder:
        forked = asyncio.run(
            fork_run(folder, at, datetime.now(UTC), key, workspace_for(folder, configuration.settings))
        )
    _print_result(forked, folder.name, options)
    if no_run or (not words and _is_complete(forked)):
        return _left_as_it_is(forked, folder.name, options)
    return continue_run(forked.folder, words, configuration, options)


def _is_complete(forked: Forked) -> bool:
    finished = RunState.of_records(read_records(forked.folder)).finished
    return finished is not None and finished.status is Status.COMPLETE


def _print_result(forked: Forked, of: str, options: RunOptions) -> None:
    if options.quiet:
        return
    say(f"forked {of} at record {forked.at}: {forked.folder.name}")
    if forked.lost:
        say(f"{counted(len(forked.lost), 'file')} could not be restored: {', '.join(forked.lost)}")


def _left_as_it_is(forked: Forked, of: str, options: RunOptions) -> int:
    run_id = forked.folder.name
    if options.output_format != "text":
        facts = {"run_id": run_id, "folder": str(forked.folder.resolve()), "forked_from": of, "at": forked.at}
        emit_json({**facts, "lost": list(forked.lost)})
        return 0
    emit_page(run_id)
    if not options.quiet:
        words = ' "your follow-up"' if _is_complete(forked) else ""
        say(f"  → continue: explorer resume {run_id}{words}")
    return 0
