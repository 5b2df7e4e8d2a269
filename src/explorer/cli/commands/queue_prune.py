"""The command `queue prune`: removes what ended long ago from the queue and from the fleet's database."""

from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from explorer.cli.commands.archive import DEFAULT_AGE, age_of
from explorer.cli.commands.fleet import open_queue, say_unless_quiet
from explorer.cli.screens.output import emit_json, emit_page
from explorer.cli.settings.configuration import changes_runs, configured
from explorer.cli.settings.fleet_options import QUEUE, QueueOptions
from explorer.observe.formatting import counted, size


def prune(
    *,
    older_than: Annotated[
        str, Parameter(name="--older-than", metavar="AGE", help="Age of a run's end: 12h, 30d, 8w.")
    ] = DEFAULT_AGE,
    failed: Annotated[
        bool, Parameter(name="--failed", negative="", help="Also runs that failed, are parked or undecided.")
    ] = False,
    dry_run: Annotated[bool, Parameter(name="--dry-run", negative="", help="Only say what would be removed.")] = False,
    options: QueueOptions = QUEUE,
) -> int:
    """Remove runs that ended long ago from the queue, with what the fleet's database has of them.

    Runs in a workspace stay: `explorer runs gc` removes those. A removed run's idempotency key is new again.

    Example: `explorer queue prune --older-than 90d --dry-run`
    """
    older_than_s = age_of(older_than).total_seconds()
    settings = configured(options, changes_runs).settings
    with open_queue(settings) as queue:
        from explorer.fleet.objects import open_objects  # noqa: PLC0415 - its packages are an extra
        from explorer.fleet.retention import ENDED, STUCK, Retention  # noqa: PLC0415 - the same

        objects = open_objects(settings.fleet_objects)
        retention = Retention(queue, older_than_s, ENDED | STUCK if failed else ENDED, options.tenant, objects)
        found = retention.look() if dry_run else retention.prune()
    if options.output_format != "text":
        emit_json({"removed": not dry_run, **asdict(found)})
        return 0
    would = "would be removed" if dry_run else "removed"
    emit_page(
        f"{counted(found.runs, 'run')} {would}: journals {size(found.journal_bytes)}, files {size(found.file_bytes)}"
    )
    if found.kept_runs:
        words = "have files in an object store, which is not set up here (EXPLORER_FLEET_OBJECTS): they stay"
        say_unless_quiet(options, f"{counted(found.kept_runs, 'run')} {words}")
    return 0
