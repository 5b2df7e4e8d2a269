"""What lists and searches of all runs read, kept in memory: the line of each run, and its texts.

Each journal is read once, and of one that grows only what came; texts are read again only of runs that have changed.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from explorer.journal.listing import (
    DAMAGED,
    RUNNING,
    UNFINISHED,
    WAITING,
    JournalTail,
    RunOverview,
    is_running,
)
from explorer.observe.run_view import RUNNING as NOT_ENDED
from explorer.observe.run_view import RunView
from explorer.reports.earlier import PastRun, PastText, texts_of
from explorer.run.results import verdicts_of
from explorer.run.served import ServedRuns
from explorer.schema.errors import ExplorerError
from explorer.workspace.access import REPORT, journal_path

MAX_OPEN = 64
"""Runs without an end whose state is kept; of more, those that were not listed lately are read again."""
SETTLED_AFTER_S = 10.0
"""Seconds for which a list of folders is good, as long as none came or went."""
OPEN = frozenset({RUNNING, UNFINISHED, WAITING})


class _OpenRun:
    """A run that has no end yet, as far as its journal was read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tail = JournalTail(folder)
        self._view = RunView()
        self._is_damaged = False

    def overview(self) -> RunOverview:
        """Read what came, and return the run's line."""
        # Before the records are read: a process that let go of the run has written all of them by then.
        is_held = is_running(self._folder)
        try:
            records, damage = ((), None) if self._is_damaged else self._tail.look()
        except ExplorerError as error:
            records, damage = (), error
        self._is_damaged = self._is_damaged or damage is not None
        for record in records:
            self._view.apply(record)
        view = self._view
        return RunOverview(
            run_id=self._folder.name,
            folder=self._folder,
            question=view.question,
            status=self._status(is_held=is_held),
            started=view.started,
            last=view.last,
            cost_usd=view.cost_usd,
            tokens=view.usage.total_tokens,
            agents=len(view.agents),
            sources=len(view.sources),
        )

    def _status(self, *, is_held: bool) -> str:
        if self._is_damaged:
            return DAMAGED
        if self._view.status != NOT_ENDED:
            return self._view.status
        if is_held:
            return RUNNING
        return WAITING if self._view.plan.is_waiting else UNFINISHED


class Overviews:
    """The lines of the runs of a workspace. Pages ask for them in threads, one at a time."""

    def __init__(self) -> None:
        self._ended: dict[Path, tuple[int, RunOverview]] = {}
        self._open: OrderedDict[Path, _OpenRun] = OrderedDict()
        self._verdicts: dict[Path, tuple[int, Mapping[str, int]]] = {}
        self._folders: Sequence[Path] = ()
        self._looked_at = 0.0
        self._lock = threading.Lock()

    def folders(self, runs: ServedRuns) -> Sequence[Path]:
        """Return the folders of all runs, newest first; they are looked for again when one came or went."""
        with self._lock:
            now, changed = time.time(), _changed_at(runs.workspace)
            # A folder is there a moment before it is a run.
            is_settled = changed + SETTLED_AFTER_S < self._looked_at and now < self._looked_at + SETTLED_AFTER_S
            if not is_settled:
                self._folders, self._looked_at = runs.folders(), now
            return self._folders

    def of(self, folder: Path) -> RunOverview:
        """Return the line of a run."""
        with self._lock:
            signature = _signature(folder)
            known = self._ended.get(folder)
            if known is not None and known[0] == signature:
                return known[1]
            reading = self._open.setdefault(folder, _OpenRun(folder))
            self._open.move_to_end(folder)
            found = reading.overview()
            if found.status not in OPEN:
                self._ended[folder] = (signature, found)
                del self._open[folder]
            while len(self._open) > MAX_OPEN:
                self._open.popitem(last=False)
            return found

    def at_work(self) -> set[str]:
        """Return the ids of the listed runs that a process works on now."""
        with self._lock:
            return {folder.name for folder in self._open if is_running(folder)}

    def verdicts(self, run: RunOverview) -> Mapping[str, int]:
        """Return the cited sentences of its report by verdict; empty while it runs, or where nothing was checked."""
        if run.status in {RUNNING, DAMAGED}:
            return {}
        signature = _signature(run.folder)
        known = self._verdicts.get(run.folder)
        if known is None or known[0] != signature:
            known = self._verdicts[run.folder] = (signature, verdicts_of(run.folder))
        return known[1]


def _signature(folder: Path) -> int:
    """Return what changes with each record of a journal, which is only appended to; 0 where there is none."""
    try:
        return journal_path(folder).stat().st_size
    except OSError:
        return 0


def _changed_at(folder: Path) -> float:
    """Return when something came into a folder or left it; 0 where it is not there."""
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0


MAX_KEPT_CHARS = 32_000_000
"""Characters that are kept; what is beyond, which the oldest runs have, is read at each search."""

Signature = tuple[int, int]
Texts = tuple[PastText, ...]


class SearchedTexts:
    """The texts of runs, for a search of all. Pages ask for them in threads."""

    def __init__(self, most_chars: int = MAX_KEPT_CHARS) -> None:
        self._most_chars = most_chars
        self._kept: dict[Path, tuple[Signature, Texts]] = {}
        self._chars = 0
        self._lock = threading.Lock()

    def of(self, folders: Sequence[Path]) -> Iterator[PastText]:
        """Yield the texts of these runs, run by run; runs that are not among them any more are forgotten."""
        self._forget_others(set(folders))
        for folder in folders:
            yield from self._of(folder)

    def _of(self, folder: Path) -> Texts:
        # Before the texts are read: what comes meanwhile is seen at the next search.
        signature = _text_signature(folder)
        known = self._kept.get(folder)
        if known is not None and known[0] == signature:
            return known[1]
        run = PastRun.of(folder)
        texts = tuple(texts_of([run])) if run is not None else ()
        self._keep(folder, signature, texts)
        return texts

    def _keep(self, folder: Path, signature: Signature, texts: Texts) -> None:
        with self._lock:
            self._drop(folder)
            count = _count(texts)
            if self._chars + count <= self._most_chars:
                self._kept[folder] = signature, texts
                self._chars += count

    def _forget_others(self, folders: set[Path]) -> None:
        with self._lock:
            for folder in self._kept.keys() - folders:
                self._drop(folder)

    def _drop(self, folder: Path) -> None:
        known = self._kept.pop(folder, None)
        self._chars -= _count(known[1]) if known is not None else 0


def _count(texts: Texts) -> int:
    return sum(len(one.text) for one in texts)


def _text_signature(folder: Path) -> Signature:
    """Return what changes with each record of the journal, which says what agents write, and with the report."""
    size = _signature(folder)
    try:
        return size, (folder / REPORT).stat(follow_symlinks=False).st_mtime_ns
    except OSError:
        return size, 0
