"""A user's folder and its index: it is indexed at the first request, and later only where it changed."""

import asyncio
import hashlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypeVar

from filelock import AsyncFileLock, Timeout

from explorer.documents.corpus.database import DamagedIndexError, Database, IndexEntry, KnownFile, StoredDocument
from explorer.documents.corpus.folder import (
    NO_TEXT,
    TOO_MANY,
    UNREADABLE,
    FolderLimits,
    FoundFile,
    Skipped,
    read_bytes,
    readable,
    walk,
)
from explorer.documents.corpus.passages import passages_of, understood
from explorer.documents.corpus.reading import read_file
from explorer.documents.corpus.search import Catalogue, CorpusHits, document_at, find, paths_of
from explorer.documents.parsing.parser import DocumentParser
from explorer.schema.errors import ConfigError, RefusedCallError, ToolError
from explorer.text.rendering import ModelText, own
from explorer.workspace.user_key import NO_KEY, UserKey

MAX_ATTEMPTS = 3
"""The number of runs that try to parse a file while its content does not change."""
NOT_PARSED = "could not be parsed"


@dataclass(frozen=True)
class Progress:
    """The progress of the indexing."""

    done: int
    total: int
    """The number of files that are new or changed."""
    path: str
    """The path of the file that is being read; empty at the end."""
    not_searched: str = ""
    """What was left out, and why; said once, at the end."""

    @property
    def words(self) -> str:
        """The progress as one line for people."""
        if self.not_searched:
            return f"not searched in the folder: {self.not_searched}"
        now = f": {self.path}" if self.path else ""
        return f"indexing the folder, {self.done} of {self.total} files{now}"


@dataclass(frozen=True)
class Refresher:
    """Updates the index of a folder."""

    folder: Path
    database: Database
    parser: DocumentParser
    excluded: Collection[Path]
    bounds: FolderLimits
    on_progress: Callable[[Progress], None]

    async def refresh(self) -> Skipped:
        """Index new and changed files, remove missing ones from the index, and return what was left out.

        Each file is stored as soon as it is read, so that a refresh after a cancelled one reads only the rest.
        """
        listing = await asyncio.to_thread(walk, self.folder, self.excluded, self.bounds)
        await asyncio.to_thread(self.database.remove_foreign)
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
        if missing := listing.skipped.described:
            self.on_progress(Progress(len(waiting), len(waiting), "", missing))
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
        """Read one file into the index and return the number of characters added."""
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
    """Return whether a file need not be read: it is unchanged, and was indexed, has no text, or failed too often."""
    if known is None or known.file != file:
        return False
    return not known.problem or known.problem == NO_TEXT or known.attempts >= MAX_ATTEMPTS


WAIT_S = 60.0
"""The longest wait in seconds for another process that indexes the same folder.

After this time both processes index the folder, which is slower but safe.
"""
INDEX_FOLDER = ".corpus"
INDEX_NAME = "corpus name"
Value = TypeVar("Value")


@dataclass(frozen=True)
class Overview:
    """The number of documents in the index of a folder, and what was left out."""

    name: str
    """The name of the folder."""
    documents: int
    skipped: Skipped = field(default_factory=Skipped)


@dataclass(frozen=True)
class Options:
    """The settings of a corpus, without its folder."""

    excluded: Collection[Path] = ()
    """Paths of folders inside the folder that are left out, such as explorer's own."""
    on_progress: Callable[[Progress], None] = lambda _progress: None
    bounds: FolderLimits = field(default_factory=FolderLimits)
    key: UserKey = NO_KEY
    """Marks what the index stores; without one, the index is built anew each time."""


def index_path(workspace: Path, folder: Path, key: UserKey = NO_KEY) -> Path:
    """Return the path of a folder's index in the workspace, which nobody without the user's key can tell."""
    path = str(folder.resolve()).encode("utf-8", "surrogateescape")
    digest = key.mark(INDEX_NAME, path) if key.is_there else hashlib.sha256(path).hexdigest()[:32]
    return workspace / INDEX_FOLDER / f"{digest}.sqlite"


def checked_folder(folder: Path) -> Path:
    """Return a folder to search as an absolute path without links.

    Raises:
        ConfigError: The folder does not exist or cannot be read.
    """
    try:
        resolved = folder.expanduser().resolve(strict=True)
        next(resolved.iterdir(), None)
    except OSError as error:
        raise ConfigError(
            f"the folder {folder} cannot be searched: {error.strerror}", hint="give a folder of yours: --corpus DIR"
        ) from error
    return resolved


class Corpus:
    """One folder and its index, opened once per run with `async with` and indexed at the first request."""

    def __init__(self, folder: Path, index: Path, parser: DocumentParser, options: Options | None = None) -> None:
        chosen = options or Options()
        resolved = checked_folder(folder)
        self._name = readable(resolved.name)
        self._index = index
        self._database = Database(index, chosen.key)
        excluded = frozenset(path.resolve() for path in chosen.excluded)
        self._refresher = Refresher(resolved, self._database, parser, excluded, chosen.bounds, chosen.on_progress)
        self._turn = asyncio.Lock()
        self._catalogue: Catalogue | None = None
        self._skipped = Skipped()

    async def __aenter__(self) -> Self:
        """Return the corpus; the folder is not read yet."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the index."""
        await asyncio.to_thread(self._database.close)

    async def overview(self) -> Overview:
        """Index the folder if needed, and return its number of documents and what was left out.

        Raises:
            ToolError: The index cannot be used.
        """
        return await self._with_index(lambda catalogue: Overview(self._name, len(catalogue.paths), self._skipped))

    async def line(self) -> ModelText:
        """Index the folder if needed, and return the line about it that an agent reads at its start."""
        try:
            count = (await self.overview()).documents
        except ToolError as error:
            return own("Corpus: {name}: {why}", name=self._name, why=error.words)
        unit = own("document" if count == 1 else "documents")
        return own("Corpus: {name}, {count} {unit} (search_corpus)", name=self._name, count=count, unit=unit)

    async def search(self, question: str, max_results: int = 8, glob: str = "") -> CorpusHits:
        """Return the documents that match a question, best first, with one passage of each.

        Raises:
            ToolError: The question has no word, the glob matches no path, or the index cannot be used.
        """
        query = understood(question)
        if not query.terms:
            raise RefusedCallError.of(
                "there is no word to search for in {question}; give the words you look for",
                question=repr(question[:80]),
            )
        return await self._with_index(lambda catalogue: find(self._database, catalogue, query, max_results, glob))

    async def paths(self, glob: str = "") -> list[str]:
        """Return the paths of the documents in the index, sorted; those that a glob matches where one is given.

        Raises:
            ToolError: The index cannot be used.
        """
        return await self._with_index(lambda catalogue: paths_of(catalogue, glob))

    async def read(self, path: str) -> StoredDocument:
        """Return a document of the index by its path, as the search shows it.

        Raises:
            ToolError: The index has no such document; the message names the most similar paths.
        """
        return await self._with_index(lambda catalogue: document_at(self._database, catalogue, path))

    async def _with_index(self, work: Callable[[Catalogue], Value]) -> Value:
        """Return the result of `work` on an up-to-date index; a damaged index is built again, once."""
        try:
            return await asyncio.to_thread(work, await self._ready())
        except DamagedIndexError:
            await asyncio.to_thread(self._database.discard)
            self._catalogue = None
        try:
            return await asyncio.to_thread(work, await self._ready())
        except DamagedIndexError as error:
            raise ToolError.of(
                "the folder cannot be searched: its index {index} is damaged again", index=self._index
            ) from error

    async def _ready(self) -> Catalogue:
        """Return the catalogue of the updated index; the first caller updates it while the others wait."""
        async with self._turn:
            if self._catalogue is None:
                await asyncio.to_thread(self._database.open)
                try:
                    async with AsyncFileLock(f"{self._index}.lock", timeout=WAIT_S, run_in_executor=False):
                        self._skipped = await self._refresher.refresh()
                except Timeout:
                    self._skipped = await self._refresher.refresh()
                self._catalogue = Catalogue(await asyncio.to_thread(self._database.titles))
            return self._catalogue
