"""Finds the run that a command names: in the workspace, or in the database of the fleet, from which a copy is made."""

import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from explorer.cli.screens.output import say
from explorer.fleet.own_queue import own_queue
from explorer.journal.codec import scan
from explorer.journal.listing import (
    LATEST,
    RUNNING,
    SEPARATORS,
    RunOverview,
    find_run,
    is_running,
    list_runs,
    overview_of,
)
from explorer.schema.errors import ConfigError, NotFoundError, StorageError
from explorer.schema.settings import Settings
from explorer.text.sanitize import visible
from explorer.workspace.user_key import open_key

if TYPE_CHECKING:
    from explorer.fleet.database import FleetDatabase
    from explorer.fleet.run_copy import RunCopy, RunElsewhere

PACKAGE = "dbos"
FLEET_FOLDER = ".fleet"
DATABASE_FILE = Path(FLEET_FOLDER) / "queue.sqlite"
COPIES = Path(FLEET_FOLDER) / "copies"
UNDECIDED = "undecided"
"""The state of a run of the queue whose plan waits for a decision."""
RunName = Annotated[str, Parameter(help="A run's id, the beginning of one, or `latest`.")]
MAX_OPEN = 20
"""Copies that a server keeps open."""


@contextmanager
def run_at_hand(settings: Settings, name: str) -> Generator[Path]:
    """Give the folder of a run: that of the workspace, or a copy of what the fleet's database has of it.

    A copy is kept current while the run is at work; it counts as running for as long as that.

    Raises:
        NotFoundError: No run matches, or the run's folder is on another machine.
        ConfigError: More than one run matches.
        StorageError: The fleet's database does not answer.
    """
    here, missing = _in_workspace(settings.workspace, name)
    with ExitStack() as stack:
        copy = None if here is not None and _is_this_machines(here, settings) else _copied(settings, here, name, stack)
        if copy is None and here is None:
            assert missing is not None
            raise missing
        yield copy or here or Path()


def _in_workspace(workspace: Path, name: str) -> tuple[Path | None, NotFoundError | None]:
    try:
        return find_run(workspace, name), None
    except NotFoundError as error:
        return None, error


def _is_this_machines(folder: Path, settings: Settings) -> bool:
    """Return whether a folder is what there is of a run: it is at work here, or is not one of the workspace."""
    return is_running(folder) or folder.resolve().parent != settings.workspace.resolve()


def _copied(settings: Settings, here: Path | None, name: str, stack: ExitStack) -> Path | None:
    """Return a copy of a run that the fleet's database has; None when it has none, or the workspace has it."""
    if here is None and any(separator in name for separator in SEPARATORS):
        return None
    try:
        database = stack.enter_context(fleet_database(settings))
        found = None if database is None else _named(database, here.name if here is not None else name)
    except StorageError as error:
        if here is None:
            raise
        say(visible(f"{error.message}; this is what this machine has of the run"))
        return None
    if database is None or found is None:
        return None
    return _copy_of(settings, database, found, stack) if found.store == "database" else _shared(here, found)


def _named(database: "FleetDatabase", name: str) -> "RunElsewhere | None":
    from explorer.fleet.run_copy import find_in_fleet, newest_on_record  # noqa: PLC0415 - its packages are an extra

    return next(iter(newest_on_record(database, 1)), None) if name == LATEST else find_in_fleet(database, name)


def _shared(here: Path | None, found: "RunElsewhere") -> None:
    """Refuse a run that is in the workspace of another machine.

    Raises:
        NotFoundError: It is.
    """
    if here is None:
        place = f"the workspace of {found.worker}" if found.worker else "the workspace of the worker that had it"
        raise NotFoundError(
            visible(f"run {found.run_id} is {found.words}, and what there is of it is in {place}, not on this machine"),
            hint=visible(found.next_step or "use the command there"),
        )


def _copy_of(settings: Settings, database: "FleetDatabase", found: "RunElsewhere", stack: ExitStack) -> Path:
    copy = _new_copy(settings, database, found.run_id)
    stack.callback(copy.close)
    return copy.open()


def _new_copy(settings: Settings, database: "FleetDatabase", run_id: str) -> "RunCopy":
    from explorer.fleet.run_contents import open_objects  # noqa: PLC0415 - its packages are an extra
    from explorer.fleet.run_copy import RunCopy  # noqa: PLC0415 - the same
    from explorer.fleet.run_record import RunRecords  # noqa: PLC0415 - the same

    records = RunRecords(database, open_objects(settings.fleet_objects))
    return RunCopy(database, records, (settings.workspace / COPIES).absolute(), run_id)


class OpenCopies:
    """Copies of runs of the fleet, kept open for a server. Call it in any thread, and `close` it at the end."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stack = ExitStack()
        self._copies: dict[str, RunCopy] = {}
        self._lock = threading.Lock()
        self._database: FleetDatabase | None = None

    def of(self, name: str) -> Path | None:
        """Return a current copy of a run; None where the workspace has the run, or the fleet has none of it.

        Raises:
            StorageError: The fleet's database does not answer.
        """
        here, _ = _in_workspace(self._settings.workspace, name)
        if here is not None and is_running(here):
            return None
        with self._lock:
            self._database = self._database or self._stack.enter_context(fleet_database(self._settings))
            found = None if self._database is None else _named(self._database, name)
            if self._database is None or found is None or found.store != "database":
                return None
            if found.run_id not in self._copies:
                self._make_room()
                self._copies[found.run_id] = _new_copy(self._settings, self._database, found.run_id)
            return self._copies[found.run_id].open()

    def queued(self, run_id: str) -> str:
        """Return what the fleet's queue knows of a run, and the next command; empty where neither is needed."""
        with self._lock, suppress(StorageError, ConfigError):
            self._database = self._database or self._stack.enter_context(fleet_database(self._settings))
            found = _of_queue(self._database, run_id)
            return f"{found.words} → {found.next_step}" if found is not None and found.next_step else ""
        return ""

    def _make_room(self) -> None:
        while len(self._copies) >= MAX_OPEN:
            self._copies.pop(next(iter(self._copies))).close()

    def close(self) -> None:
        """Close all of them."""
        with self._lock:
            for copy in self._copies.values():
                copy.close()
            self._copies.clear()
            self._stack.close()


def in_queue(settings: Settings, folder: Path) -> "RunElsewhere | None":
    """Return what the fleet's queue knows of the run in a folder; None where it has none, or does not answer."""
    with suppress(StorageError, ConfigError), fleet_database(settings) as database:
        return _of_queue(database, folder.name)
    return None


def _of_queue(database: "FleetDatabase | None", run_id: str) -> "RunElsewhere | None":
    found = None if database is None else _named(database, run_id)
    return found if found is not None and found.run_id == run_id else None


@contextmanager
def fleet_database(settings: Settings) -> Generator["FleetDatabase | None"]:
    """Open the database of the fleet that the settings name; None where there is none, or one of somebody else.

    Raises:
        StorageError: The database does not answer.
    """
    url = settings.secrets.fleet_database.get_secret_value()
    file = (settings.workspace / DATABASE_FILE).absolute()
    if not (url or file.exists()) or find_spec(PACKAGE) is None:
        yield None
        return
    try:
        url = url or f"sqlite:///{own_queue(file, open_key(settings.state_dir))}"
    except ConfigError:
        # It came with the folder: its runs are not this user's.
        yield None
        return
    from explorer.fleet.database import FleetDatabase  # noqa: PLC0415 - its packages are an extra

    database = FleetDatabase(url)
    try:
        yield database
    finally:
        database.close()


def workspace_for(folder: Path, settings: Settings) -> Path:
    """Return where a new run made from this one belongs: beside it, or for a copy in the workspace."""
    copies = (settings.workspace / COPIES).resolve()
    return settings.workspace if folder.resolve().parent == copies else folder.parent


def run_to_resume(settings: Settings, name: str) -> Path:
    """Return the folder of a run that is resumed on this machine.

    Raises:
        NotFoundError: No run matches.
        ConfigError: It is in the fleet's database: what is added here would not be there; or its plan waits.
        StorageError: The fleet's database does not answer.
    """
    here, missing = _in_workspace(settings.workspace, name)
    if here is not None and here.resolve().parent != settings.workspace.resolve():
        return here
    with fleet_database(settings) as database:
        found = None if database is None else _named(database, here.name if here is not None else name)
        if found is not None and found.state == UNDECIDED:
            raise ConfigError(
                f"the plan of run {found.run_id} waits for a decision, and then a worker of the fleet continues it",
                hint=f"explorer resume {found.run_id} --plan approve; see it: explorer show {found.run_id}",
            )
        if found is not None and found.store == "database":
            raise ConfigError(
                f"run {found.run_id} is in the fleet's database, and a worker of the fleet continues it",
                hint="explorer queue retry RUN, where it failed; to ask it further in a new run: explorer fork RUN",
            )
    if here is None:
        assert missing is not None
        raise missing
    return here


def waits_in_fleet(settings: Settings, name: str) -> str:
    """Return the id of a run of the fleet whose plan waits for a decision; empty where the name is another run's.

    Raises:
        ConfigError: More than one run matches.
        StorageError: The fleet's database does not answer.
    """
    here, _ = _in_workspace(settings.workspace, name)
    if here is not None and here.resolve().parent != settings.workspace.resolve():
        return ""
    with fleet_database(settings) as database:
        found = None if database is None else _named(database, here.name if here is not None else name)
    return found.run_id if found is not None and found.state == UNDECIDED else ""


def all_runs(settings: Settings) -> list[RunOverview]:
    """Return the runs of the workspace and those that the fleet's database has, oldest first."""
    found = {one.run_id: one for one in list_runs(settings.workspace)}
    try:
        with fleet_database(settings) as database:
            if database is not None:
                found |= {one.run_id: one for one in _in_database(database, settings, found)}
    except StorageError as error:
        say(visible(f"{error.message}; these are the runs of this machine"))
    return [found[run_id] for run_id in sorted(found)]


def _in_database(database: "FleetDatabase", settings: Settings, here: dict[str, RunOverview]) -> Generator[RunOverview]:
    """Yield the runs that the database has, but for those that are at work here."""
    from explorer.fleet.run_copy import AT_WORK, newest_on_record  # noqa: PLC0415 - its packages are an extra
    from explorer.fleet.run_record import RunRecords  # noqa: PLC0415 - the same

    for one in newest_on_record(database):
        if one.run_id not in here or here[one.run_id].status != RUNNING:
            records = scan(RunRecords(database).of(one.run_id).lines).records
            folder = settings.workspace / COPIES / one.run_id
            is_at_work = one.state in AT_WORK
            yield overview_of(records, folder, lambda is_so=is_at_work: is_so)
