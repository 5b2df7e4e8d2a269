"""Finds runs, lists them, and reads their records. It never writes, and never takes a run's lock."""

import os
import re
import secrets
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from explorer.journal import journal
from explorer.journal.codec import GENESIS, examine
from explorer.journal.run_state import RunState
from explorer.schema.errors import ConfigError, JournalDamagedError, NotFoundError, StorageError
from explorer.schema.events import JournalRecord
from explorer.schema.messages import Frozen
from explorer.workspace.access import QUESTION, journal_path, reaches
from explorer.workspace.safe_open import FILE_MODE

LATEST = "latest"
RUNNING = "running"
UNFINISHED = "unfinished"
WAITING = "waiting"
"""Its plan waits for a decision of the user."""
DAMAGED = "damaged"
OPEN_FILES = Path("/proc/self/fd")
"""The folder in which the system lists the open files of a process."""
RUN_ID = re.compile(r"\d{8}-\d{6}-[A-Za-z0-9._-]{1,120}")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,149}")
SLUG_CHARS = 32
SECOND_CHARS = len("20261122-101500")
"""The time at the beginning of an id."""
SEPARATORS = tuple(filter(None, (os.sep, os.altsep)))
"""The characters that make a name a path."""


class RunOverview(Frozen):
    """A run's line in a list."""

    run_id: str
    folder: Path
    question: str
    status: str
    """`running`, `unfinished`, `waiting`, `complete`, `partial`, `failed` or `damaged`."""
    started: datetime | None
    last: datetime | None
    """The time of the latest record."""
    cost_usd: float | None
    tokens: int
    agents: int
    sources: int


def new_run_id(question: str, now: datetime) -> str:
    """Return a sortable, readable id: time (UTC), words of the question, four random hex digits."""
    # An address in the question may have a login or a key in it, and ids are shown and named everywhere.
    words = re.findall(r"[a-z0-9]+", re.sub(r"//[^\s/@]*@|\?\S+", " ", question.lower()))
    telling = [word for word in words if word not in {"what", "is", "s", "the", "a", "an", "of", "on", "in", "are"}]
    slug = "-".join(telling)[:SLUG_CHARS].strip("-") or "run"
    return f"{now:%Y%m%d-%H%M%S}-{slug}-{secrets.token_hex(2)}"


def is_run_id(text: str) -> bool:
    """Return whether a text can be the id of a run: it is a name then, and no path."""
    return RUN_ID.fullmatch(text) is not None


def is_name(text: str) -> bool:
    """Return whether a text can be the name of a run's folder, as a program may choose it."""
    return text != LATEST and NAME.fullmatch(text) is not None


def free_run_id(workspace: Path, question: str, now: datetime) -> str:
    """Return a new id that no run of the workspace has: when many runs start at once, four digits may collide."""
    while (workspace / (run_id := new_run_id(question, now))).exists():
        pass
    return run_id


def is_run(folder: Path) -> bool:
    """Return whether a folder is a run, even if a command has removed its owner's permissions."""
    return reaches(folder, journal_path(folder))


def read_records(folder: Path) -> tuple[JournalRecord, ...]:
    """Return all records of a run.

    Raises:
        NotFoundError: The folder is not a run.
        StorageError: The journal cannot be read, or is damaged.
    """
    path = journal_path(folder)
    if not is_run(folder):
        raise NotFoundError(f"{folder} is not a run: it has no journal", hint="explorer runs")
    return journal.read(path)


def is_running(folder: Path) -> bool:
    """Return whether a process has the run's lock."""
    lock = FileLock(folder / ".explorer" / "lock", blocking=False, mode=FILE_MODE)
    try:
        lock.acquire()
    except Timeout:
        return True
    except OSError:
        return False
    lock.release()
    return False


def holder(folder: Path) -> int | None:
    """Return the process that works on a run; None when it is not running, or not on this machine.

    A number in a file does not prove anything after a crash, so the process must have the run's lock open.
    """
    try:
        process = int((folder / ".explorer" / "holder").read_text())
    except (OSError, ValueError):
        return None
    return process if is_running(folder) and _has_open(process, folder / ".explorer" / "lock") else None


def _has_open(process: int, path: Path) -> bool:
    try:
        if not OPEN_FILES.is_dir():
            os.kill(process, 0)
            return True
        wanted = path.stat()
        return any(os.path.samestat(wanted, found.stat()) for found in _open_files(process))
    except OSError:
        return False


def _open_files(process: int) -> list[Path]:
    """Return the open files of a process; files that are closed meanwhile are not included."""
    links = Path(f"/proc/{process}/fd").iterdir()
    return [link for link in links if link.exists()]


class JournalTail:
    """Reads a journal that another process is writing: each record once, as it becomes durable."""

    def __init__(self, folder: Path) -> None:
        self._path = journal_path(folder)
        self._position = self._count = 0
        self._crc = GENESIS

    def read(self) -> tuple[JournalRecord, ...]:
        """Return the records that came since the last call.

        Raises:
            StorageError: The journal cannot be read, or is damaged.
        """
        records, damage = self.look()
        if damage is not None:
            raise damage
        return records

    def look(self) -> tuple[tuple[JournalRecord, ...], JournalDamagedError | None]:
        """Return the records that came since the last call, up to the damage where there is one.

        Raises:
            StorageError: The journal cannot be read.
        """
        try:
            with self._path.open("rb") as file:
                file.seek(self._position)
                found = examine(file.read(), self._crc, self._count)
        except OSError as error:
            raise StorageError(f"cannot read {self._path}: {error.strerror}") from error
        self._position += found.good_bytes
        self._count += len(found.records)
        self._crc = found.last_crc
        return found.records, found.damage


def list_runs(workspace: Path) -> list[RunOverview]:
    """Return all runs of a workspace, oldest first."""
    return [overview(folder) for folder in run_folders(workspace)]


def run_folders(workspace: Path) -> list[Path]:
    """Return the folders of all runs of a workspace, oldest first."""
    return sorted(folder for folder in workspace.iterdir() if is_run(folder)) if workspace.is_dir() else []


def overview(folder: Path) -> RunOverview:
    """Return a run's line in a list."""
    try:
        records = read_records(folder)
    except (JournalDamagedError, StorageError):
        return RunOverview(
            run_id=folder.name, folder=folder, question="", status=DAMAGED, started=None, last=None,
            cost_usd=None, tokens=0, agents=0, sources=0,
        )  # fmt: skip
    return overview_of(records, folder, lambda: is_running(folder))


def overview_of(records: Sequence[JournalRecord], folder: Path, is_at_work: Callable[[], bool]) -> RunOverview:
    """Return the line of a run that has these records; whether it is at work is asked where it has no end."""
    run_state = RunState.of_records(records)
    return RunOverview(
        run_id=folder.name,
        folder=folder,
        question=run_state.question,
        status=_status(run_state, is_at_work),
        started=records[0].at if records else None,
        last=records[-1].at if records else None,
        cost_usd=run_state.cost_usd,
        tokens=run_state.usage.total_tokens,
        agents=len(run_state.agents),
        sources=len(run_state.sources),
    )


def status_of(run_state: RunState, folder: Path) -> str:
    """Return a run's status as in `RunOverview`."""
    return _status(run_state, lambda: is_running(folder))


def _status(run_state: RunState, is_at_work: Callable[[], bool]) -> str:
    if run_state.finished is not None:
        return str(run_state.finished.status)
    if is_at_work():
        return RUNNING
    return WAITING if run_state.plan.is_waiting else UNFINISHED


def find_run(workspace: Path, name: str) -> Path:
    """Return the folder of a run, by id, unique prefix, `latest`, or any path to or into it, as commands print them.

    Raises:
        NotFoundError: No run matches.
        ConfigError: More than one run matches.
    """
    if any(separator in name for separator in SEPARATORS):
        return _at_path(workspace, name)
    names = [folder.name for folder in run_folders(workspace)]
    if not names:
        raise NotFoundError(f"there are no runs in {workspace}", hint='start one: explorer "your question"')
    if name == LATEST:
        return _latest(workspace, names)
    if name in names:
        return workspace / name
    fitting = [known for known in names if known.startswith(name)]
    if not fitting:
        raise NotFoundError(f"there is no run {name!r} in {workspace}", hint="explorer runs")
    if len(fitting) > 1:
        raise ConfigError(f"{name!r} fits {len(fitting)} runs: {', '.join(fitting[:4])}", hint="give more of the id")
    return workspace / fitting[0]


def _latest(workspace: Path, names: Sequence[str]) -> Path:
    """Return the run that began last; of those that began in the same second, such as a fork, the newer folder."""
    second = names[-1][:SECOND_CHARS]
    return max((workspace / name for name in names if name[:SECOND_CHARS] == second), key=_began)


def _began(folder: Path) -> tuple[int, str]:
    try:
        return (folder / QUESTION).lstat().st_ctime_ns, folder.name
    except OSError:
        return 0, folder.name


def _at_path(workspace: Path, name: str) -> Path:
    """Return the run that a path leads to or into; its last part may also be the beginning of an id, or `latest`."""
    path = Path(name).expanduser()
    for place in (path.resolve(), (workspace / path).resolve()):
        # The outermost one: agents can write a folder that looks like a run into the folder of theirs.
        runs = [folder for folder in (place, *place.parents) if is_run(folder)]
        if runs:
            folder = runs[-1]
            return workspace / folder.name if folder.parent == workspace.resolve() else folder
    try:
        if path.name and path.name != "..":
            return find_run(workspace if path.parent == Path() else path.parent, path.name)
    except NotFoundError:
        pass
    raise NotFoundError(f"there is no run at {name!r}", hint="explorer runs")
