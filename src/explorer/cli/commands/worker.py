"""The command `worker`: works on runs of a fleet's queue."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from explorer.cli.commands.catalog import check_team, named_tools
from explorer.cli.commands.fleet import open_queue, say_unless_quiet
from explorer.cli.commands.mcp_serve import ServerEnding
from explorer.cli.commands.trust import settings_to_run
from explorer.cli.launch import LastResort, settings_to_continue
from explorer.cli.session import crash_point
from explorer.cli.settings.configuration import Configuration
from explorer.cli.settings.fleet_options import WORKER, WorkerOptions
from explorer.cli.telemetry import show_logs, tracing_to
from explorer.run.hooks import RunHooks
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
    configuration = settings_to_run(options)
    tools = named_tools(options, configuration.settings)
    check_team(configuration.settings, tools)
    show_logs(options.verbose)

    def hooks() -> RunHooks:
        return RunHooks(tools=tools, origins=configuration.origins, on_checkpoint=crash_point())

    with open_queue(configuration.settings) as queue:
        return asyncio.run(_work(queue, configuration, options, hooks))


def _check(options: WorkerOptions) -> None:
    if not 1 <= options.concurrency <= MAX_CONCURRENCY:
        hint = f"give a number from 1 to {MAX_CONCURRENCY}"
        raise ConfigError(f"--concurrency {options.concurrency} is not allowed", hint=hint)
    if options.output is not None or options.notify:
        raise ConfigError("--output and --notify are for one run", hint="read a report with: explorer report RUN")


async def _work(
    queue: "FleetQueue", configuration: Configuration, options: WorkerOptions, hooks: Callable[[], RunHooks]
) -> int:
    from explorer.fleet.exploration import WorkerPlan  # noqa: PLC0415 - its packages are an extra
    from explorer.fleet.objects import open_objects  # noqa: PLC0415 - its packages are an extra
    from explorer.fleet.one_workspace import agree_on_workspace  # noqa: PLC0415 - the same
    from explorer.fleet.store_choice import agree_on_store  # noqa: PLC0415 - the same
    from explorer.fleet.worker import Worker  # noqa: PLC0415 - the same

    settings = configuration.settings
    store = agree_on_store(queue.database, settings.fleet_store, open_key(settings.state_dir))
    if store != DATABASE:
        agree_on_workspace(queue.database, settings.workspace)
    plan = WorkerPlan(
        configuration.settings,
        hooks,
        lambda folder: settings_to_continue(folder, configuration),
        options.concurrency,
        _lease_s(options.lease),
        store,
        open_objects(settings.fleet_objects),
        options.until_empty,
        lambda: tracing_to(settings, partial(say_unless_quiet, options)),
        partial(say_unless_quiet, options),
    )
    one = Worker(queue, plan)
    say_unless_quiet(
        options, f"worker {one.name}\n  queue {queue.database.place}\n  runs in {_place_of_runs(settings, store)}"
    )
    ended = ServerEnding(one.end)
    with ended.by_signals():
        await one.work()
    LastResort().begin(ended.code)
    return ended.code


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
