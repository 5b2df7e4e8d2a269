"""A folder of the user's, searchable: indexed when it is first asked for, brought up to date where it changed.

Documents match a question by BM25 over their passages, and more where all words are together.
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

CANDIDATES = 100
"""Documents that are weighed."""
ALL_WORDS_BONUS = 1.25
"""For a passage that holds every word of the question."""
NAMING_DOCUMENTS = 2
NAMED_SHARE = 0.5
"""Of the score of the document that names another by its title, for the other."""
MIN_TITLE_CHARS = 6
MAX_NAMINGS = 5
"""Passages a title may be in: a title that is everywhere is a common word."""


@dataclass(frozen=True)
class RankedPassage:
    """A document among the results."""

    document: int
    passage: int
    score: float
    """Larger is better."""
    named_in: int = 0
    """The document that brought it here by naming its title; 0 when its own words did."""


class Catalogue:
    """The documents of an index by number, path and title, as they were when it was last refreshed."""

    def __init__(self, titles: Sequence[tuple[int, str, str]]) -> None:
        self.paths = {number: path for number, path, _ in titles}
        self.numbers = {path: number for number, path, _ in titles}
        bare = {number: _spaced(title.partition(" (")[0]) for number, _, title in titles}
        shared = Counter(bare.values())
        self._titles = {
            number: title for number, title in bare.items() if len(title) >= MIN_TITLE_CHARS and shared[title] == 1
        }

    def named_in(self, text: str) -> list[tuple[int, str]]:
        """The documents whose title is in a text, with that title as the index has its words."""
        words = _spaced(text)
        return [(number, phrase_of(title)) for number, title in self._titles.items() if title in words]


def _spaced(text: str) -> str:
    """The words of a text, folded, between single spaces, so that whole words are found."""
    return f" {' '.join(PIECE.findall(folded(text)))} "


def ranked(database: Database, query: Query, catalogue: Catalogue, only: Sequence[int] | None) -> list[RankedPassage]:
    """The documents that meet a query, best first; among all, or among some."""
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
    """The other documents that a result's passage names, each with what that is worth."""
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
    """A document that meets a query, by its best passage."""

    path: str
    title: str
    snippet: str
    offset: int
    """Where in the document's text the passage begins."""
    page: int
    """From 1; 0 where there are no pages."""
    score: float
    """Larger is better."""
    modified: str
    """A date."""
    document: StoredDocument
    named_in: str = ""
    """The path of the result that names this one by its title, when nothing else brought it here."""


@dataclass(frozen=True)
class CorpusHits:
    """The answer to a query."""

    hits: tuple[CorpusHit, ...]
    documents: int
    """How many were searched."""
    is_relaxed: bool = False
    """The quoted words stand nowhere as they were quoted: these documents hold some of them."""


def find(database: Database, catalogue: Catalogue, query: Query, max_results: int, glob: str) -> CorpusHits:
    """The documents that meet a query, best first, one passage of each.

    Raises:
        NoSuchThingError: No document's path meets the glob.
    """
    only = sorted(_matching(catalogue, glob)) if glob.strip() else None
    if only is not None and not only:
        raise NoSuchThingError(f"no document's path matches the glob {glob!r}; leave it out to search all documents")
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
    """The day a document's file was last changed, in UTC."""
    return f"{datetime.fromtimestamp(document.mtime_ns // 1_000_000_000, UTC):%Y-%m-%d}"


def document_at(database: Database, catalogue: Catalogue, path: str) -> StoredDocument:
    """A document by its path; only what is in the index has one, so that no path leads anywhere else.

    Raises:
        NoSuchThingError: The index has no such document; the message names the closest.
    """
    asked = unicodedata.normalize("NFC", path.strip()).removeprefix("file:").removeprefix("./")
    number = catalogue.numbers.get(asked)
    if number is not None:
        return database.document(number)
    close = difflib.get_close_matches(asked, catalogue.numbers, n=CLOSE_NAMES, cutoff=CLOSE_CUTOFF)
    guess = f"did you mean {', '.join(close)}?" if close else "search_corpus shows the paths there are."
    raise NoSuchThingError(f"there is no document {asked[:200]!r} in the folder's index; {guess}")


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


WAIT_S = 60.0
"""For another process that indexes the same folder; after that both do, which is slower and no harm."""
INDEX_FOLDER = ".corpus"
Value = TypeVar("Value")


@dataclass(frozen=True)
class Overview:
    """What the index of a folder holds, and what was left out."""

    name: str
    """The folder's."""
    documents: int
    skipped: Skipped = field(default_factory=Skipped)


@dataclass(frozen=True)
class Options:
    """What can be set for a corpus, apart from its folder."""

    excluded: Collection[Path] = ()
    """Folders in it that are left out: explorer's own."""
    on_progress: Callable[[Progress], None] = lambda _progress: None
    bounds: FolderLimits = field(default_factory=FolderLimits)


def index_path(workspace: Path, folder: Path) -> Path:
    """Where the index of a folder is kept."""
    digest = hashlib.sha256(str(folder.resolve()).encode("utf-8", "surrogateescape")).hexdigest()
    return workspace / INDEX_FOLDER / f"{digest[:32]}.sqlite"


def checked_folder(folder: Path) -> Path:
    """A folder to search, as an absolute path without links.

    Raises:
        ConfigError: There is no such folder, or it may not be read.
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
    """One folder and its index; opened once a run, with `async with`, and indexed when it is first asked."""

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
        """Nothing is read yet."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the index."""
        await asyncio.to_thread(self._database.close)

    async def overview(self) -> Overview:
        """How many documents there are, once the folder is indexed.

        Raises:
            ToolError: The disk is in the way.
        """
        return await self._with_index(lambda catalogue: Overview(self._name, len(catalogue.paths), self._skipped))

    async def line(self) -> str:
        """What an agent is shown of the folder at its start; the folder is indexed for it."""
        try:
            count = (await self.overview()).documents
        except ToolError as error:
            return f"Corpus: {self._name}: {error.message}"
        return f"Corpus: {self._name}, {count} document{'s' * (count != 1)} (search_corpus)"

    async def search(self, question: str, max_results: int = 8, glob: str = "") -> CorpusHits:
        """The documents that meet a question, best first, one passage of each.

        Raises:
            ToolError: The question holds no word, no path meets the glob, or the disk is in the way.
        """
        query = understood(question)
        if not query.terms:
            raise RefusedCallError(f"there is no word to search for in {question[:80]!r}; give the words you look for")
        return await self._with_index(lambda catalogue: find(self._database, catalogue, query, max_results, glob))

    async def read(self, path: str) -> StoredDocument:
        """A document of the index, by its path as the search shows it.

        Raises:
            ToolError: The index has no such document; the message names the closest.
        """
        return await self._with_index(lambda catalogue: document_at(self._database, catalogue, path))

    async def _with_index(self, work: Callable[[Catalogue], Value]) -> Value:
        """Do something with a sound index: one that is found damaged is made anew, once."""
        try:
            return await asyncio.to_thread(work, await self._ready())
        except DamagedIndexError:
            await asyncio.to_thread(self._database.discard)
            self._catalogue = None
        try:
            return await asyncio.to_thread(work, await self._ready())
        except DamagedIndexError as error:
            raise ToolError(f"the folder cannot be searched: its index {self._index} is damaged again") from error

    async def _ready(self) -> Catalogue:
        """The catalogue, once the index is up to date; whoever asks first has it brought there."""
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
