"""The texts that a search of all runs reads: kept in memory, and read again only of runs that have changed."""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from explorer.reports.earlier import PastRun, PastText, texts_of
from explorer.workspace.access import REPORT, journal_path

MAX_KEPT_CHARS = 32_000_000
"""Characters that are kept; what is beyond, which the oldest runs have, is read at each search."""

Signature = tuple[int, int]
Texts = tuple[PastText, ...]


class SearchedTexts:
    """The texts of runs. Pages ask for them in threads."""

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
        signature = _signature(folder)
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


def _signature(folder: Path) -> Signature:
    """Return what changes with each record of the journal, which says what agents write, and with the report."""
    try:
        size = journal_path(folder).stat().st_size
    except OSError:
        size = 0
    try:
        return size, (folder / REPORT).stat(follow_symlinks=False).st_mtime_ns
    except OSError:
        return size, 0
