"""Which documents meet a question: BM25 over passages, more for all words together, and what the best ones name."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from explorer.documents.corpus.database import Database
from explorer.documents.corpus.words import PIECE, Query, folded, phrase_of

CANDIDATES = 100
"""Documents that are weighed."""
ALL_WORDS_BONUS = 1.25
"""For a passage that holds every word of the question."""
NAMING_DOCUMENTS = 2
NAMED_SHARE = 0.5
"""Of the score of the document that names another by its title, for the other."""
MIN_TITLE_CHARS = 6
MAX_NAMINGS = 5
"""Passages a title may stand in: a title that stands everywhere is a common word."""


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
        """The documents whose title stands in a text, with that title as the index has its words."""
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
