"""The command `serve`: the runs of the workspace in a browser."""

import asyncio
import secrets
import webbrowser
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from explorer.cli.commands.fleet import DATABASE_FILE, PACKAGE, decide_in_fleet, open_queue
from explorer.cli.commands.trust import settings_to_run
from explorer.cli.runs_at_hand import OpenCopies
from explorer.cli.screens.output import say
from explorer.cli.serving import MAX_RUNS, MIN_TOKEN_CHARS, RunsToCome, ServerEnding, check_count
from explorer.cli.settings.configuration import Configuration
from explorer.cli.settings.options import RunOptions, flag_of
from explorer.run.collector import rare_collections
from explorer.run.served import ServedRuns
from explorer.schema.errors import ConfigError
from explorer.schema.settings import Settings
from explorer.server.fleet_status import AskFleet, FleetRun, FleetStatus, FleetWorker
from explorer.workspace.user_key import open_key

AUTO, NO_TOKEN = "auto", "none"
"""Values of `--token` that are no token."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ServeOptions(RunOptions):
    """Flags of the server of the web page."""

    corpus: Annotated[str | None, flag_of("--corpus")] = None
    host: Annotated[str, Parameter(name="--host", metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Parameter(name="--port", metavar="N", help="Port; 0: a free one.")] = 8777
    open_browser: Annotated[bool, Parameter(name="--open", help="Open the page in your browser.")] = False
    token: Annotated[
        str,
        Parameter(
            name="--token",
            metavar="WORD",
            help="What browsers must show, at least 16 characters; `auto`: one of this machine's own; `none`: nothing, "
            "on this machine's own address alone.",
        ),
    ] = AUTO
    approval_wait: Annotated[
        str,
        Parameter(
            name="--approval-wait",
            metavar="TIME",
            help="How long a call that an approval rule asks about waits for you on its run's page; 0: it is refused.",
        ),
    ] = "10m"
    max_runs: Annotated[int, Parameter(name="--max-runs", metavar="N", help="Runs at work at the same time.")] = 2


SERVE = ServeOptions()


if TYPE_CHECKING:
    from explorer.fleet.runs import QueuedRun

ENDED_STATES = frozenset({"done", "cancelled"})
MAX_ENDED = 50


def fleet_of(settings: Settings) -> AskFleet | None:
    """Return what asks the fleet's database; None where the package or the database is missing."""
    has_database = settings.secrets.fleet_database.get_secret_value() or (settings.workspace / DATABASE_FILE).exists()
    if not has_database or find_spec(PACKAGE) is None:
        return None
    return partial(_fleet_status, settings)


def _fleet_status(settings: Settings) -> FleetStatus:
    """Return the fleet as its database has it.

    Raises:
        StorageError: The database does not answer.
    """
    from explorer.cli.screens.shared_limits import shown_keys, shown_limits  # noqa: PLC0415 - its packages are an extra
    from explorer.fleet.limits import SharedLimitBook  # noqa: PLC0415 - the same
    from explorer.fleet.runs import QueueState  # noqa: PLC0415 - the same

    with open_queue(settings) as queue:
        book = SharedLimitBook(queue.database)
        uses, rates = book.uses(), book.rates()
        shown = [one for one in QueueState if str(one) not in ENDED_STATES]
        workers, facts = queue.workers(), queue.throughput()
        found, ended = queue.runs(shown), queue.ended_lately(MAX_ENDED)
        place, is_paused = queue.database.place, queue.is_paused
    return FleetStatus(
        database=place,
        is_paused=is_paused,
        workers=[
            FleetWorker(one.worker, one.runs, one.concurrency, one.age_s, one.silent_s, one.is_alive) for one in workers
        ],
        runs=[_shown(one) for one in found],
        ended=[_shown(one) for one in ended],
        waiting=int(facts["waiting"]),
        running=int(facts["running"]),
        ended_last_hour=int(facts["ended_last_hour"]),
        cost_last_hour=float(facts["cost_last_hour"]),
        limits=shown_limits(uses),
        keys=shown_keys(rates),
    )


def _shown(run: "QueuedRun") -> FleetRun:
    return FleetRun(run.run_id, run.question, str(run.state), run.worker or run.reason, run.cost_usd)


PURPOSE = "web token"
MAX_PORT = 65_535
SERVER_ENDED = "explorer serve ended"


def serve(*, options: ServeOptions = SERVE) -> int:
    """Show runs in your browser: ask, watch, steer, and read reports with the evidence for each sentence.

    Only this machine reaches it, unless `--host` says otherwise. A token is needed, which is a part of the address that
    is printed, so that other users of this machine reach nothing. Runs that it started are saved when it ends, and can
    be resumed.

    Example: `explorer serve --open`

    Example: `explorer serve --model offline --port 9000`
    """
    check_options(options)
    configuration = settings_to_run(options)
    return serve_runs(configuration, options)


def serve_demo(configuration: Configuration, question: str, options: RunOptions) -> int:
    """Serve a run of the sample day on a free port, and open its page, until a signal."""
    flags = ServeOptions(quiet=options.quiet, verbose=options.verbose, tools=options.tools, open_browser=True, port=0)
    return serve_runs(configuration, flags, question)


def check_options(options: ServeOptions) -> None:
    """Check that the flags can be used.

    Raises:
        ConfigError: One cannot.
    """
    check_count("--max-runs", options.max_runs, MAX_RUNS)
    if not 0 <= options.port <= MAX_PORT:
        raise ConfigError(f"--port {options.port} is not a port number", hint=f"give a number from 0 to {MAX_PORT}")
    if options.token not in {AUTO, NO_TOKEN} and len(options.token) < MIN_TOKEN_CHARS:
        raise ConfigError(f"the token has fewer than {MIN_TOKEN_CHARS} characters", hint="use --token auto")
    if options.output is not None:
        raise ConfigError("--output is for one run", hint="download reports in the browser")


def serve_runs(configuration: Configuration, options: ServeOptions, question: str = "") -> int:
    """Serve until a signal; with a question, a run is started first, and its page is the one that is named."""
    to_come = RunsToCome.of(options, configuration)
    with rare_collections():
        return asyncio.run(_serve(to_come, options, question))


async def _serve(to_come: RunsToCome, options: ServeOptions, question: str) -> int:
    from explorer.server.app import build_site  # noqa: PLC0415 - it is slow to import
    from explorer.server.listening import PageServer, open_socket  # noqa: PLC0415 - the same
    from explorer.server.security import ServerAccess  # noqa: PLC0415 - the same

    access = ServerAccess(options.host)
    access = replace(access, token=_token(to_come.configuration, options, is_local=access.is_local))
    plan = to_come.plan(options.max_runs, SERVER_ENDED, options.approval_wait)
    listening = open_socket(options.host, options.port)
    runs = ServedRuns(plan)
    fleet, copies = fleet_of(plan.settings), OpenCopies(plan.settings)
    is_fleet = fleet is not None
    decide = partial(decide_in_fleet, plan.settings) if is_fleet else None
    site = build_site(runs, access, fleet, copies.of if is_fleet else None, decide, copies.queued)
    server = PageServer(listening, site, site.state.site.feeds.close)
    ended = ServerEnding(server.end)
    with ended.by_signals():
        try:
            path = f"/runs/{(await runs.start(question)).name}" if question else "/"
            address = server.address(options.host) + path
            # All users of the machine see with which words a browser is started.
            _announce(options, access.address(address), access.address(address, is_for_once=True), runs)
            await server.serve()
        finally:
            await runs.close()
            copies.close()
    return ended.last_resort()


def _token(configuration: Configuration, options: ServeOptions, *, is_local: bool) -> str:
    """Return what browsers must show; empty where nothing is needed.

    One that stays the same on this machine, so that browsers need not be given it again at each start; without the
    user's key one for this process.

    Raises:
        ConfigError: The address needs one, and none is wanted.
    """
    if options.token == NO_TOKEN:
        if not is_local:
            raise ConfigError(f"--host {options.host} needs a token", hint="leave `--token none` out")
        return ""
    if options.token != AUTO:
        return options.token
    key = open_key(configuration.settings.state_dir)
    return key.mark(PURPOSE, b"") if key.is_there else secrets.token_urlsafe(MIN_TOKEN_CHARS)


def _announce(options: ServeOptions, printed: str, opened: str, runs: ServedRuns) -> None:
    """Say where the page is; with `--open`, open it."""
    if not options.quiet:
        # Straight to the terminal: the token is meant for the user.
        say(f"explorer is at {printed}\n  runs in {runs.workspace}, at most {runs.plan.max_runs} at a time")
    if options.open_browser and not webbrowser.open(opened):
        say("  no browser could be opened; open the address yourself")
