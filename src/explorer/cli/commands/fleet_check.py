"""What `doctor` says of the fleet that the settings name: whether its database answers, and whether its runs get on."""

from explorer.cli.commands.fleet import open_queue
from explorer.cli.commands.probes import CheckResult
from explorer.observe.formatting import counted
from explorer.schema.errors import ExplorerError
from explorer.schema.settings import Settings

NAME = "fleet"


def check_fleet(settings: Settings) -> list[CheckResult]:
    """Check the fleet's database, its workers and its queue; nothing where no database is named."""
    if not settings.secrets.fleet_database.get_secret_value():
        return []
    try:
        return [_fleet(settings)]
    except ExplorerError as error:
        return [CheckResult(NAME, "fail", error.message, error.hint)]


def _fleet(settings: Settings) -> CheckResult:
    from explorer.fleet.runs import QueueState
    from explorer.fleet.store_choice import store_of

    with open_queue(settings) as queue:
        alive = sum(one.is_alive for one in queue.workers())
        waiting = len(queue.runs((QueueState.WAITING,)))
        stuck = len(queue.runs((QueueState.FAILED, QueueState.PARKED)))
        is_paused, store, place = queue.is_paused, store_of(queue.database), queue.database.place
    words = f"{place}: {counted(alive, 'worker')}, {counted(waiting, 'run')} waiting, store {store}"
    if is_paused:
        return CheckResult(NAME, "warn", f"{words}; paused: workers take no further run", "explorer queue start")
    if waiting and not alive:
        return CheckResult(NAME, "warn", f"{words}; no worker takes the runs", "start one: explorer worker")
    if stuck:
        fix = "see why: explorer queue; try again: explorer queue retry"
        return CheckResult(NAME, "warn", f"{words}; {counted(stuck, 'run')} failed or parked", fix)
    return CheckResult(NAME, "ok", words)
