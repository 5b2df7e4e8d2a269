"""Which documents match a question (BM25 over passages, more for all words together), and the answers made of them."""

import difflib
import fnmatch
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from explorer.documents.corpus.database import Database, StoredDocument
from explorer.documents.corpus.passages import PIECE, Query, folded, phrase_of, snippet
from explorer.schema.errors import NoSuchThingError

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
