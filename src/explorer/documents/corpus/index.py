"""Search in a user's folder: the folder is indexed at the first request, and later only where it changed.

Documents are ranked by the BM25 scores of their passages; a passage with all words of the question scores higher.
"""

import asyncio
import difflib
import fnmatch
import hashlib
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
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
from explorer.documents.corpus.passages import PIECE, Query, folded, passages_of, phrase_of, snippet, understood
from explorer.documents.corpus.reading import read_file
from explorer.documents.parsing.parser import DocumentParser
from explorer.schema.errors import ConfigError, NoSuchThingError, RefusedCallError, ToolError
from explorer.text.rendering import ModelText, inline, own, render

CANDIDATES = 100
"""The largest number of documents that one query ranks, without those found by their titles."""
ALL_WORDS_BONUS = 1.25
"""The factor for the score of a passage that has every word of the question."""
NAMING_DOCUMENTS = 2
NAMED_SHARE = 0.5
"""The share of a document's score that goes to another document whose title it names."""
MIN_TITLE_CHARS = 6
MAX_NAMINGS = 5
"""The largest number of passages that may have a title; a title in more passages is a common word."""


@dataclass(frozen=True)
class RankedPassage:
    """A document in a ranking, with its best passage."""

    document: int
    passage: int
    score: float
    """The score of the document; larger is better."""
    named_in: int = 0
    """The id of the document that names this one by its title; 0 when this one matches the query itself."""


class Catalogue:
    """The documents of an index at its last refresh, by id, path and title."""

    def __init__(self, titles: Sequence[tuple[int, str, str]]) -> None:
        self.paths = {number: path for number, path, _ in titles}
        self.numbers = {path: number for number, path, _ in titles}
        bare = {number: _spaced(title.partition(" (")[0]) for number, _, title in titles}
        shared = Counter(bare.values())
        self._titles = {
            number: title for number, title in bare.items() if len(title) >= MIN_TITLE_CHARS and shared[title] == 1
        }

    def named_in(self, text: str) -> list[tuple[int, str]]:
        """Return the id and title of each document whose title is in a text; the title is written as a search term."""
        words = _spaced(text)
        return [(number, phrase_of(title)) for number, title in self._titles.items() if title in words]


def _spaced(text: str) -> str:
    """Return the words of a text in lower case, without accents, between single spaces, so that whole words match."""
    return f" {' '.join(PIECE.findall(folded(text)))} "


def ranked(database: Database, query: Query, catalogue: Catalogue, only: Sequence[int] | None) -> list[RankedPassage]:
    """Return the documents that match a query, best first; `only` limits them to these ids, None does not."""
    found = database.rank(query.match, CANDIDATES, only)
    places = {one.document: RankedPassage(one.document, one.passage, one.score) for one in found}
    if found and len(query.terms) > 1:
        for one in database.rank(query.match_all, CANDIDATES, [*places]):
            _raise(places, RankedPassage(one.document, one.passage, one.score * ALL_WORDS_BONUS))
    for place in _best_first(places)[:NAMING_DOCUMENTS]:
        for number, score in _named_by(database, place, catalogue):
            if only is None or number in only:
                _add_named(database, places, place, number, score)
    return _best_first(places)


def _named_by(database: Database, place: RankedPassage, catalogue: Catalogue) -> list[tuple[int, float]]:
    """Return the id and score of each other document whose title is in a result's passage."""
    span = database.passage(place.passage)
    text = database.document(place.document).text[span.start : span.end]
    return [
        (number, place.score * NAMED_SHARE)
        for number, title in catalogue.named_in(text)
        if number != place.document and database.count(f'"{title}"', MAX_NAMINGS + 1) <= MAX_NAMINGS
    ]


def _add_named(
    database: Database, places: dict[int, RankedPassage], by: RankedPassage, number: int, worth: float
) -> None:
    known = places.get(number)
    if known is None:
        places[number] = RankedPassage(number, database.first_passage(number), worth, named_in=by.document)
    else:
        _raise(places, RankedPassage(number, known.passage, worth + known.score / 2, known.named_in))


def _best_first(places: dict[int, RankedPassage]) -> list[RankedPassage]:
    return sorted(places.values(), key=lambda place: (-place.score, place.document))


def _raise(places: dict[int, RankedPassage], place: RankedPassage) -> None:
    known = places.get(place.document)
    if known is None or place.score > known.score:
        places[place.document] = place


CLOSE_NAMES = 3
CLOSE_CUTOFF = 0.5


@dataclass(frozen=True)
class CorpusHit:
    """A document that matches a query, with its best passage."""

    path: str
    title: str
    snippet: str
    offset: int
    """The offset in characters where the passage begins in the document's text."""
    page: int
    """The page number from 1; 0 for a document without pages."""
    score: float
    """The score of the document; larger is better."""
    modified: str
    """The UTC date of the file's last change, as YYYY-MM-DD."""
    document: StoredDocument
    named_in: str = ""
    """The path of the result that names this document by its title; empty if the document matches the query itself."""


@dataclass(frozen=True)
class CorpusHits:
    """The result of a query."""

    hits: tuple[CorpusHit, ...]
    documents: int
    """The number of documents searched."""
    is_relaxed: bool = False
    """Whether no document has the quoted phrases as quoted, so that the hits have only some of their words."""


def find(database: Database, catalogue: Catalogue, query: Query, max_results: int, glob: str) -> CorpusHits:
    """Return the documents that match a query, best first, with one passage of each.

    Raises:
        NoSuchThingError: The glob matches no document's path.
    """
    only = sorted(_matching(catalogue, glob)) if glob.strip() else None
    if only is not None and not only:
        raise NoSuchThingError(
            own("no document's path matches the glob {glob}; leave it out to search all documents", glob=repr(glob))
        )
    places = ranked(database, query, catalogue, only)
    is_relaxed = not places and query.is_exact
    if is_relaxed:
        places = ranked(database, Query(query.terms), catalogue, only)
    hits = tuple(_hit(database, catalogue, query, place) for place in places[:max_results])
    return CorpusHits(hits, len(catalogue.paths) if only is None else len(only), is_relaxed and bool(hits))


def _matching(catalogue: Catalogue, glob: str) -> Iterator[int]:
    pattern = unicodedata.normalize("NFC", glob.strip()).removeprefix("file:").removeprefix("./")
    for number, path in catalogue.paths.items():
        if fnmatch.fnmatch(path, pattern) or fnmatch.fnmatch(path.rpartition("/")[2], pattern):
            yield number


def _hit(database: Database, catalogue: Catalogue, query: Query, place: RankedPassage) -> CorpusHit:
    document, span = database.document(place.document), database.passage(place.passage)
    return CorpusHit(
        path=document.path,
        title=document.title,
        snippet=snippet(document.text[span.start : span.end], query.terms),
        offset=span.start,
        page=span.page,
        score=round(place.score, 3),
        modified=modified_date(document),
        document=document,
        named_in=catalogue.paths.get(place.named_in, ""),
    )


def modified_date(document: StoredDocument) -> str:
    """Return the UTC date of the last change of a document's file, as YYYY-MM-DD."""
    return f"{datetime.fromtimestamp(document.mtime_ns // 1_000_000_000, UTC):%Y-%m-%d}"


def document_at(database: Database, catalogue: Catalogue, path: str) -> StoredDocument:
    """Return a document by its path; only paths in the index are accepted, so that no other file can be read.

    Raises:
        NoSuchThingError: The index has no such document; the message names the most similar paths.
    """
    asked = unicodedata.normalize("NFC", path.strip()).removeprefix("file:").removeprefix("./")
    number = catalogue.numbers.get(asked)
    if number is not None:
        return database.document(number)
    close = difflib.get_close_matches(asked, catalogue.numbers, n=CLOSE_NAMES, cutoff=CLOSE_CUTOFF)
    names = render(*map(inline, close), between=", ")
    guess = own("did you mean {names}?", names=names) if close else own("search_corpus shows the paths there are.")
    raise NoSuchThingError(
        own("there is no document {asked} in the folder's index; {guess}", asked=repr(asked[:200]), guess=guess)
    )


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

    @property
    def words(self) -> str:
        """The progress as one line for people."""
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


def index_path(workspace: Path, folder: Path) -> Path:
    """Return the path of a folder's index in the workspace."""
    digest = hashlib.sha256(str(folder.resolve()).encode("utf-8", "surrogateescape")).hexdigest()
    return workspace / INDEX_FOLDER / f"{digest[:32]}.sqlite"


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
        self._database = Database(index)
        excluded = frozenset(path.resolve() for path in chosen.excluded)
        self._refresher = Refresher(resolved, self._database, parser, excluded, chosen.bounds, chosen.on_progress)
        self._turn = asyncio.Lock()
        self._catalogue: Catalogue | None = None
        self._skipped = Skipped()

    async def __aenter__(self) -> Self:
        """Return the corpus; the folder is not read yet."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
            raise RefusedCallError(
                own(
                    "there is no word to search for in {question}; give the words you look for",
                    question=repr(question[:80]),
                )
            )
        return await self._with_index(lambda catalogue: find(self._database, catalogue, query, max_results, glob))

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
            raise ToolError(
                own("the folder cannot be searched: its index {index} is damaged again", index=self._index)
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
