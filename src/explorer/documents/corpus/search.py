"""Search in the index of a folder, and the documents in it by their paths.

Documents are ranked by the BM25 scores of their passages; a passage with all words of the question scores higher.
"""

import difflib
import fnmatch
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from explorer.documents.corpus.database import Database, RankedPassage, StoredDocument
from explorer.documents.corpus.passages import PIECE, Query, folded, phrase_of, snippet
from explorer.schema.errors import NoSuchThingError
from explorer.text.rendering import inline, own, render

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
    places = {one.document: one for one in found}
    if found and len(query.terms) > 1:
        for one in database.rank(query.match_all, CANDIDATES, [*places]):
            _raise(places, replace(one, score=one.score * ALL_WORDS_BONUS))
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
        _raise(places, replace(known, score=worth + known.score / 2))


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
        raise NoSuchThingError.of(
            "no document's path matches the glob {glob}; leave it out to search all documents", glob=repr(glob)
        )
    places = ranked(database, query, catalogue, only)
    is_relaxed = not places and query.is_exact
    if is_relaxed:
        places = ranked(database, Query(query.terms), catalogue, only)
    hits = tuple(_hit(database, catalogue, query, place) for place in places[:max_results])
    return CorpusHits(hits, len(catalogue.paths) if only is None else len(only), is_relaxed and bool(hits))


def paths_of(catalogue: Catalogue, glob: str) -> list[str]:
    """Return the paths of all documents, or of those that a glob matches, sorted."""
    numbers = _matching(catalogue, glob) if glob.strip() else catalogue.paths
    return sorted(catalogue.paths[number] for number in numbers)


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
    raise NoSuchThingError.of(
        "there is no document {asked} in the folder's index; {guess}", asked=repr(asked[:200]), guess=guess
    )
