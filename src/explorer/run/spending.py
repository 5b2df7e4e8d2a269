"""What the servers of a workspace have spent today, in a file that all their processes share, and the limit on it.

A client such as an editor starts a server for each of its windows, so a limit of one process alone is none.
"""

import hashlib
import secrets
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from explorer.schema.errors import ToolError
from explorer.text.rendering import ModelText, code, codes, inline, own
from explorer.workspace.safe_open import FILE_MODE, make_private_folder, replace_private

FOLDER = "spending"
DAYS_APART = timedelta(days=2)
"""The most that two places on earth are apart in days."""
PATIENCE_S = 10.0
"""Seconds to wait for another process that looks at the file."""


class Reserved(BaseModel):
    """What a session at work may spend."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    holder: str
    """The server process that it belongs to."""
    usd: float
    before_usd: float
    """What its run had cost before."""


class DaySpending(BaseModel):
    """What is spent of a day's limit, and what may still be."""

    model_config = ConfigDict(extra="forbid")

    day: str = ""
    spent_usd: float = 0.0
    reserved: dict[str, Reserved] = Field(default_factory=dict[str, Reserved])
    """What each session at work has reserved; the keys are ids of runs."""

    @property
    def reserved_usd(self) -> float:
        """What all sessions at work may spend."""
        return sum(one.usd for one in self.reserved.values())


def local_day() -> str:
    """Return the day on this machine's clock."""
    return f"{datetime.now().astimezone():%Y-%m-%d}"


class SpendingBook:
    """The spending of a workspace's servers."""

    def __init__(
        self,
        state_dir: Path | None,
        workspace: Path,
        cost_of: Callable[[str], float | None],
        today: Callable[[], str] = local_day,
    ) -> None:
        """Take the place.

        Args:
            state_dir: The user's state folder; None: this process keeps the book for itself.
            workspace: The folder of the runs.
            cost_of: Returns what a run has cost in all, by its id; None: that cannot be known.
            today: Returns the day.
        """
        name = hashlib.sha256(str(workspace.resolve()).encode()).hexdigest()[:40]
        self._path = state_dir / FOLDER / f"{name}.json" if state_dir is not None else None
        self._cost_of = cost_of
        self._today = today
        self._own = DaySpending()
        self.holder = secrets.token_hex(8)
        self._mark: FileLock | None = None
        """Held as long as this process lives, so that others know whether its reservations still count."""

    @contextmanager
    def changed(self) -> Generator[DaySpending]:
        """Yield today's spending; what is changed in it is kept, unless the block fails.

        Raises:
            ToolError: The file is damaged, or cannot be read or written.
        """
        if self._path is None:
            self._begin_day(self._own)
            yield self._own
            return
        try:
            make_private_folder(self._path.parent)
            with FileLock(self._path.with_suffix(".lock"), timeout=PATIENCE_S, mode=FILE_MODE):
                self._hold(self._path)
                spending = _read(self._path)
                self._settle_ended(self._path, spending)
                self._begin_day(spending)
                yield spending
                replace_private(self._path, spending.model_dump_json(indent=1).encode())
        except (OSError, Timeout) as error:
            words = "the limit of all runs of this workspace's servers cannot be kept: {error}"
            raise ToolError(own(words, error=inline(str(error)))) from error

    def _begin_day(self, spending: DaySpending) -> None:
        """Count anew on a later day; what is at work then may still be spent, and so counts for it.

        A day that was is not begun again: processes in other time zones may be at it, or the clock was set back.
        """
        today = self._today()
        if spending.day < today:
            spending.day, spending.spent_usd = today, 0.0
        elif spending.day > f"{date.fromisoformat(today) + DAYS_APART}":
            # The clock was wrong. What was spent then is counted until tomorrow, and not until the day it showed.
            spending.day = today

    def _hold(self, path: Path) -> None:
        """Take this process's mark with its first look, and remove those of processes that are gone."""
        if self._mark is not None:
            return
        mark = FileLock(_mark_of(path, self.holder), blocking=False, mode=FILE_MODE)
        mark.acquire()
        self._mark = mark
        for other in path.parent.glob(f"{path.stem}.*.holder"):
            self._is_alive(path, other.suffixes[0][1:])

    def _settle_ended(self, path: Path, spending: DaySpending) -> None:
        """Count what the sessions of processes that are gone have spent, as their runs' journals say."""
        for holder in {one.holder for one in spending.reserved.values()} - {self.holder}:
            if self._is_alive(path, holder):
                continue
            for run_id, one in [*spending.reserved.items()]:
                if one.holder == holder:
                    settle(spending, run_id, self._cost_of(run_id))

    def _is_alive(self, path: Path, holder: str) -> bool:
        """Return whether a server is there; the mark of one that is gone is removed."""
        if holder == self.holder:
            return True
        mark = _mark_of(path, holder)
        lock = FileLock(mark, blocking=False, mode=FILE_MODE)
        try:
            lock.acquire()
        except Timeout:
            return True
        mark.unlink(missing_ok=True)
        lock.release()
        return False

    def close(self) -> None:
        """Let others know that this process has no session at work any more."""
        if self._mark is not None and self._path is not None:
            _mark_of(self._path, self.holder).unlink(missing_ok=True)
            self._mark.release()
            self._mark = None


def _mark_of(path: Path, holder: str) -> Path:
    """Return the file that a server of a workspace holds locked."""
    return path.with_name(f"{path.stem}.{holder}.holder")


def settle(spending: DaySpending, run_id: str, cost_usd: float | None) -> None:
    """Count what a session has spent in place of what it could.

    Args:
        spending: The book.
        run_id: The run of the session.
        cost_usd: What the run has cost in all; None: that is not known, so all that was reserved counts.
    """
    reserved = spending.reserved.pop(run_id, None)
    if reserved is not None:
        spent = reserved.usd if cost_usd is None else cost_usd - reserved.before_usd
        spending.spent_usd += max(0.0, spent)


def _read(path: Path) -> DaySpending:
    try:
        return DaySpending.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return DaySpending()
    except ValidationError as error:
        words = "{path} is damaged, so it is not known what is left of today's limit; the user can remove it"
        raise ToolError(own(words, path=inline(str(path)))) from error


LEAST_USD = 0.01
"""With less than a cent, no run is started: it would end before it could find anything."""


class TotalCost:
    """What of the limit is spent, and what the sessions at work may still spend."""

    def __init__(self, limit_usd: float | None, book: SpendingBook) -> None:
        """Take the limit, and where is counted; None: there is no limit."""
        self.limit_usd = limit_usd
        self._book = book

    @property
    def spent_usd(self) -> float:
        """What is spent today.

        Raises:
            ToolError: It cannot be known.
        """
        with self._book.changed() as spending:
            return spending.spent_usd

    def reserve(self, run_id: str, wanted_usd: float | None, before_usd: float = 0.0) -> float | None:
        """Return what the session of a run may spend; None: as much as its own limit says.

        Args:
            run_id: The run.
            wanted_usd: What its own limit leaves it; None: it has no limit.
            before_usd: What the run has cost before this session.

        Raises:
            ToolError: Nothing is left, or what is left cannot be known.
        """
        if self.limit_usd is None:
            return None
        with self._book.changed() as spending:
            left = self.limit_usd - spending.spent_usd - spending.reserved_usd
            if left < LEAST_USD:
                raise ToolError(self._refusal(run_id, spending))
            allowed = left if wanted_usd is None else min(wanted_usd, left)
            spending.reserved[run_id] = Reserved(holder=self._book.holder, usd=allowed, before_usd=before_usd)
        return allowed

    def _refusal(self, run_id: str, spending: DaySpending) -> ModelText:
        spent = own(
            "run {id} is not started: ${limit:.2f} is the limit of all runs together that servers of this workspace "
            "start in a day, and ${spent:.2f} is spent",
            id=code(run_id),
            limit=self.limit_usd or 0.0,
            spent=spending.spent_usd,
        )
        if not spending.reserved:
            return own("{spent}. The user can start the server with a higher --max-total-cost", spent=spent)
        words = "{spent}; the rest, ${reserved:.2f}, is for the runs at work: {ids}. Wait for one of them"
        return own(words, spent=spent, reserved=spending.reserved_usd, ids=codes(spending.reserved))

    def settle(self, run_id: str, cost_usd: float | None) -> None:
        """Count what a session has spent in place of what it could.

        Args:
            run_id: The run of the session.
            cost_usd: What the run has cost in all; None: that is not known, so all that was reserved counts.
        """
        if self.limit_usd is not None:
            with self._book.changed() as spending:
                settle(spending, run_id, cost_usd)

    def close(self) -> None:
        """Let other servers know that no session of this one is at work any more."""
        self._book.close()
