"""What `serve` shows of a fleet: its workers and its queue, as the database has them."""

from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from explorer.cli.commands.fleet import DATABASE_FILE, PACKAGE, open_queue
from explorer.schema.settings import Settings
from explorer.server.fleet_status import AskFleet, FleetRun, FleetStatus, FleetWorker

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
