"""Answers out of an index: the documents that meet a query, and a document by its path."""

import difflib
import fnmatch
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from explorer.documents.corpus.database import Database, StoredDocument
from explorer.documents.corpus.passages import snippet
from explorer.documents.corpus.ranking import Catalogue, RankedPassage, ranked
from explorer.documents.corpus.words import Query
from explorer.schema.errors import NoSuchThingError

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
        raise NoSuchThingError(f"no document's path meets the glob {glob!r}; leave it out to search all documents")
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
