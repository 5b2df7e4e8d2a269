"""The command `worker`: works on runs of a fleet's queue."""

import asyncio
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from explorer.cli.commands.fleet import open_queue, say_unless_quiet
from explorer.cli.serving import RunsToCome, ServerEnding, check_count
from explorer.cli.settings.fleet_options import WORKER, WorkerOptions
from explorer.cli.telemetry import tracing_to
from explorer.schema.errors import ConfigError
from explorer.schema.setting import seconds
from explorer.schema.settings import Settings
from explorer.workspace.user_key import open_key

if TYPE_CHECKING:
    from explorer.fleet.runs import FleetQueue

MAX_CONCURRENCY = 200
MIN_LEASE_S = 1.0
DATABASE = "database"


def worker(*, options: WorkerOptions = WORKER) -> int:
    """Work on runs of the fleet's queue, until a signal ends the worker or, with `--until-empty`, no run is left.

    Start as many workers as you like. When one dies, the others resume its runs after its lease. Ctrl-C and SIGTERM
    give its runs back to the queue; what they found is kept.

    Example: `explorer worker --concurrency 4 --until-empty`
    """
    _check(options)
    to_come = RunsToCome.of(options)
    with open_queue(to_come.configuration.settings) as queue:
        return asyncio.run(_work(queue, to_come, options))


def _check(options: WorkerOptions) -> None:
    check_count("--concurrency", options.concurrency, MAX_CONCURRENCY)
    if options.output is not None or options.notify:
        raise ConfigError("--output and --notify are for one run", hint="read a report with: explorer report RUN")


async def _work(queue: "FleetQueue", to_come: RunsToCome, options: WorkerOptions) -> int:
    from explorer.fleet.exploration import WorkerPlan  # noqa: PLC0415 - its packages are an extra
    from explorer.fleet.run_contents import open_objects  # noqa: PLC0415 - the same
    from explorer.fleet.store_choice import agree_on_store, agree_on_workspace  # noqa: PLC0415 - the same
    from explorer.fleet.worker import Worker  # noqa: PLC0415 - the same

    settings = to_come.configuration.settings
    store = agree_on_store(queue.database, settings.fleet_store, open_key(settings.state_dir))
    if store != DATABASE:
        agree_on_workspace(queue.database, settings.workspace)
    plan = WorkerPlan(
        settings,
        to_come.hooks,
        to_come.settings_to_resume,
        options.concurrency,
        _lease_s(options.lease),
        store,
        open_objects(settings.fleet_objects),
        options.until_empty,
        lambda: tracing_to(settings, partial(say_unless_quiet, options)),
        partial(_say_with_time, options),
    )
    one = Worker(queue, plan)
    say_unless_quiet(
        options, f"worker {one.name}\n  queue {queue.database.place}\n  runs in {_place_of_runs(settings, store)}"
    )
    ended = ServerEnding(one.end)
    with ended.by_signals():
        await one.work()
    return ended.last_resort()


def _say_with_time(options: WorkerOptions, words: str) -> None:
    """Print a line of a worker, which is at work for days, with the time."""
    say_unless_quiet(options, f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S} {words}")


def _place_of_runs(settings: Settings, store: str) -> str:
    """Return where a worker's runs are, for its first lines."""
    return (
        f"the database; folders made from it in {settings.workspace}" if store == DATABASE else str(settings.workspace)
    )


def _lease_s(raw: str) -> float:
    try:
        found = seconds(raw)
    except ValueError:
        found = 0.0
    if found < MIN_LEASE_S:
        raise ConfigError(f"--lease {raw[:40]!r} is not allowed", hint="give a time of a second or more: 30s, 2m")
    return found
