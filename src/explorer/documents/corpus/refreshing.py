"""Bringing an index up to date with its folder: what is new or changed is read, what is gone leaves."""

import asyncio
import hashlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from explorer.documents.corpus.database import Database, IndexEntry, KnownFile
from explorer.documents.corpus.folder import (
    NO_TEXT,
    TOO_MANY,
    UNREADABLE,
    FolderLimits,
    FoundFile,
    Skipped,
    read_bytes,
    walk,
)
from explorer.documents.corpus.passages import passages_of
from explorer.documents.corpus.reading import read_file
from explorer.documents.parsing.parser import DocumentParser
from explorer.schema.errors import ToolError

MAX_ATTEMPTS = 3
"""Runs in which a file that could not be parsed is tried, although it has not changed."""
NOT_PARSED = "could not be parsed"


@dataclass(frozen=True)
class Progress:
    """How far the indexing is."""

    done: int
    total: int
    """Files that are new or changed."""
    path: str
    """The file being read; empty at the end."""

    @property
    def words(self) -> str:
        """One line for people."""
        now = f": {self.path}" if self.path else ""
        return f"indexing the folder, {self.done} of {self.total} files{now}"


@dataclass(frozen=True)
class Refresher:
    """What indexing works with."""

    folder: Path
    database: Database
    parser: DocumentParser
    excluded: Collection[Path]
    bounds: FolderLimits
    on_progress: Callable[[Progress], None]

    async def refresh(self) -> Skipped:
        """Read what is new or changed and forget what is gone; returns what was left out.

        Each file is kept as soon as it is read: what is cancelled goes on where it was.
        """
        listing = await asyncio.to_thread(walk, self.folder, self.excluded, self.bounds)
        known = await asyncio.to_thread(self.database.known)
        here = {file.name for file in listing.files}
        gone = [one.id for name, one in known.items() if name not in here]
        if gone:
            await asyncio.to_thread(self.database.remove, gone)
        waiting = [file for file in listing.files if not _is_settled(file, known.get(file.name))]
        await self._read_all(waiting, known, listing.skipped)
        for one in (await asyncio.to_thread(self.database.known)).values():
            if one.problem:
                is_text = one.problem != NO_TEXT
                listing.skipped.add(
                    *((NOT_PARSED, f"{one.file.path}: {one.problem}") if is_text else (NO_TEXT, one.file.path))
                )
        return listing.skipped

    async def _read_all(self, waiting: Collection[FoundFile], known: dict[str, KnownFile], skipped: Skipped) -> None:
        chars = await asyncio.to_thread(self.database.chars)
        for done, file in enumerate(waiting):
            self.on_progress(Progress(done, len(waiting), file.path))
            if chars >= self.bounds.chars:
                skipped.add(TOO_MANY, file.name)
            else:
                chars += await self._read(file, known.get(file.name), skipped)
        if waiting:
            self.on_progress(Progress(len(waiting), len(waiting), ""))

    async def _read(self, file: FoundFile, known: KnownFile | None, skipped: Skipped) -> int:
        """Read one file into the index; returns the characters it brought."""
        try:
            body = await asyncio.to_thread(read_bytes, self.folder, file.name, self.bounds.file_bytes)
        except OSError:
            skipped.add(UNREADABLE, file.name)
            if known is not None:
                await asyncio.to_thread(self.database.remove, [known.id])
            return 0
        digest = (await asyncio.to_thread(hashlib.sha256, body)).hexdigest()
        same = known if known is not None and known.sha256 == digest else None
        if same is not None and not same.problem and same.file.path == file.path:
            await asyncio.to_thread(self.database.touch, file)
            return 0
        entry = await self._entry(file, body, digest, 1 + (same.attempts if same else 0))
        await asyncio.to_thread(self.database.put, entry)
        return len(entry.document.text) if entry.document else 0

    async def _entry(self, file: FoundFile, body: bytes, digest: str, attempts: int) -> IndexEntry:
        try:
            document = await read_file(self.parser, body, file)
        except ToolError as error:
            return IndexEntry(file, digest, problem=error.message or NOT_PARSED, attempts=attempts)
        spans = await asyncio.to_thread(lambda: tuple(passages_of(document.text, document.page_starts)))
        return IndexEntry(file, digest, document, spans)


def _is_settled(file: FoundFile, known: KnownFile | None) -> bool:
    """Whether a file needs no look: unchanged by size and times, and read, or given up."""
    if known is None or known.file != file:
        return False
    return not known.problem or known.problem == NO_TEXT or known.attempts >= MAX_ATTEMPTS
