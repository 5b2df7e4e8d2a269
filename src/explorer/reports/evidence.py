"""The evidence behind a report as data: a card for each citation, with the passages of its source and the verdicts.

The verdicts are those of the check (`verify/check.py`); here they are only brought together with the sources. The
check looks into a text that was brought to one form. A reader wants the text as it was stored, so the words are sought
again here, in the stored form.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from explorer.reports.verify.claims import Claim, Finding, TextOf, Verdict, Verification
from explorer.reports.verify.figures import figures
from explorer.reports.verify.indexed_source import IndexedSource
from explorer.reports.verify.plain import STOPS, plain
from explorer.reports.verify.quotations import WINDOW_CHARS, parts_of
from explorer.schema.events import Source
from explorer.schema.messages import Frozen
from explorer.text.calendar_dates import fits
from explorer.text.citations import CITATION, cited_ids, listed_references
from explorer.text.urls import site_of
from explorer.text.words import CJK, sentence_ends
from explorer.workspace.source_store import is_intact, plain_flags

HIDDEN = re.compile(r"\]\([^()\s]{0,2000}\)|<?\bhttps?://[^\s<>()\"']+>?|&#?\w{1,10};")
"""What stands between the words of a text and is none of them: addresses, and signs written as HTML does."""
TOKEN = re.compile(rf"\d+(?:[.,'\u2019\u00a0\u202f]\d+)*|[{CJK}]|[^\W\d_{CJK}]+|[%$€£¥]")
GROUPS = re.compile("(?<=\\d)[,'\u2019\u00a0\u202f](?=\\d{3}(?!\\d))")
MAX_OCCURRENCES = 200
CONTEXT_TOKENS = 30
"""Words on each side of an occurrence that decide which one a sentence means."""
CONTEXT_CHARS = 240
MAX_PASSAGE_CHARS = 1_600
CLOSEST_TOKENS = 60
LEAST_SHARED = 2
"""Words that a passage shares with a sentence, at least, to be called the closest one."""


class Piece(Frozen):
    """A piece of a passage."""

    text: str
    is_match: bool = False


class MatchedPassage(Frozen):
    """A stretch of a stored text."""

    start: int
    """Offset in the stored text."""
    end: int
    pieces: tuple[Piece, ...]
    is_match: bool
    """Whether what was looked up is in it; else it is the passage that shares most words with the sentence."""


class TextRange(NamedTuple):
    """A place in a stored text, by offsets."""

    start: int
    end: int


class StoredText:
    """A stored text with its words, for finding passages in it.

    Args:
        source: The entry in the ledger.
        text: The text as it is stored.
    """

    def __init__(self, source: Source, text: str) -> None:
        self.text = text
        self._indexed = IndexedSource(source, text)
        shown = HIDDEN.sub(lambda found: " " * len(found[0]), text)
        tokens = [(_key(found[0]), TextRange(*found.span())) for found in TOKEN.finditer(shown)]
        self._keys = [key for key, _ in tokens]
        self._spans = [span for _, span in tokens]

    @cached_property
    def _joined(self) -> str:
        return f" {' '.join(self._keys)} "

    @cached_property
    def _offsets(self) -> list[int]:
        """Where each word begins in `_joined`."""
        return list(accumulate((len(key) + 1 for key in self._keys), initial=1))

    def passages(self, sentence: str, findings: Iterable[Finding]) -> tuple[MatchedPassage, ...]:
        """Return the passages with what was found for a sentence; without any, the closest passage, if there is one."""
        about = frozenset(_telling(sentence))
        found = [span for finding in findings for span in self._spans_of(finding, about)]
        if found:
            return tuple(self._passage(group, is_match=True) for group in _grouped(sorted(set(found))))
        return self._closest(about)

    def marked(self, passages: Sequence[MatchedPassage]) -> tuple[Piece, ...]:
        """Return the whole text in pieces, with the matching words of passages marked."""
        spans: list[TextRange] = []
        for passage in passages:
            place = passage.start
            for piece in passage.pieces:
                if piece.is_match:
                    spans.append(TextRange(place, place + len(piece.text)))
                place += len(piece.text)
        return tuple(_pieces(self.text, TextRange(0, len(self.text)), sorted(set(spans))))

    def _spans_of(self, finding: Finding, about: frozenset[str]) -> list[TextRange]:
        """Return where the text has a quote or a figure; of several places, the one that is about the sentence."""
        if finding.passages:
            return [span for passage in finding.passages for span in self._best(self._find(passage), about)]
        if finding.kind == "quote":
            return self._quote(finding.text)
        places = self._find(finding.text)
        if not places:
            places = [place for form in self._other_forms(finding.text) for place in self._find(form)]
        return self._best(places, about)

    def _find(self, text: str) -> list[tuple[int, int]]:
        """Return the places of a text's words, as the first word and the one behind the last."""
        keys = [_key(found) for found in TOKEN.findall(plain(text))]
        if not keys:
            return []
        needle, start = f" {' '.join(keys)} ", 0
        places: list[tuple[int, int]] = []
        while len(places) < MAX_OCCURRENCES and (start := self._joined.find(needle, start)) >= 0:
            first = bisect_left(self._offsets, start + 1)
            places.append((first, first + len(keys)))
            start += 1
        return places

    def _best(self, places: Sequence[tuple[int, int]], about: frozenset[str]) -> list[TextRange]:
        """Return the place with most words of the sentence around it, in a list; an empty one for no place."""
        if not places:
            return []
        first, last = max(places, key=lambda place: self._shared(*place, about))
        return [TextRange(self._spans[first].start, self._spans[last - 1].end)]

    def _shared(self, first: int, last: int, about: frozenset[str]) -> int:
        around = self._keys[max(0, first - CONTEXT_TOKENS) : last + CONTEXT_TOKENS]
        return len(about.intersection(around))

    def _quote(self, quote: str) -> list[TextRange]:
        """Return the places of a quote's parts, each near the one before; empty when one is not there."""
        parts = [self._find(part) for part, _ in parts_of(quote)]
        if not parts or not all(parts):
            return []
        for place in parts[0]:
            chain = [place]
            for later in parts[1:]:
                follows = [one for one in later if one[0] >= chain[-1][1]]
                if not follows:
                    break
                chain.append(follows[0])
            spans = [TextRange(self._spans[first].start, self._spans[last - 1].end) for first, last in chain]
            if len(chain) == len(parts) and spans[-1].start - spans[0].end <= WINDOW_CHARS * len(parts):
                return spans
        return []

    def _other_forms(self, text: str) -> Iterator[str]:
        """Yield how the text writes a figure that it has in another form: `1.2 million` for `1,200,000`."""
        sought = figures(plain(text))
        for one in sought.quantities:
            for value in one.values:
                yield from (known.text for known in self._indexed.by_value.get(value, ()))
        for dated in sought.dates:
            for known in self._indexed.dated:
                if fits(dated.day, known.day):
                    yield self._indexed.plain[known.start : known.end]

    def _closest(self, about: frozenset[str]) -> tuple[MatchedPassage, ...]:
        """Return the stretch that shares most words with a sentence; nothing when it shares hardly any."""
        places = [number for number, key in enumerate(self._keys) if key in about]
        best: tuple[int, int, int] = (0, 0, 0)
        first = 0
        for last, number in enumerate(places):
            while places[first] < number - CLOSEST_TOKENS:
                first += 1
            shared = len({self._keys[place] for place in places[first : last + 1]})
            if shared > best[0]:
                best = (shared, first, last)
        shared, first, last = best
        if shared < min(LEAST_SHARED, len(about)) or not shared:
            return ()
        spans = [self._spans[place] for place in places[first : last + 1]]
        return (self._passage(spans, is_match=False),)

    def _passage(self, spans: Sequence[TextRange], *, is_match: bool) -> MatchedPassage:
        end = min(max(span.end for span in spans), spans[0].start + MAX_PASSAGE_CHARS)
        whole = TextRange(self._start_before(spans[0].start), self._end_after(end))
        return MatchedPassage(
            start=whole.start, end=whole.end, pieces=tuple(_pieces(self.text, whole, spans)), is_match=is_match
        )

    def _start_before(self, place: int) -> int:
        """Return where a passage begins: at a sentence's start, else at a word's."""
        floor = max(0, place - CONTEXT_CHARS)
        if floor == 0:
            return 0
        starts = [found.end for found in sentence_ends(self.text, start=floor, stop=place)]
        line = self.text.find("\n", floor, place)
        starts = sorted([*starts, line + 1] if line >= 0 else starts)
        space = self.text.find(" ", floor, place)
        start = starts[0] if starts else (space + 1 if space >= 0 else floor)
        while start < place and self.text[start].isspace():
            start += 1
        return start

    def _end_after(self, place: int) -> int:
        """Return where a passage ends: at the end of a sentence, else of a word."""
        roof = place + CONTEXT_CHARS
        if roof >= len(self.text):
            return len(self.text)
        line = self.text.rfind("\n", place, roof)
        ends = sorted([*(found.end for found in sentence_ends(self.text, start=place, stop=roof)), line + 1])
        ends = [end for end in ends if end > place]
        space = self.text.rfind(" ", place, roof)
        return ends[-1] if ends else (space if space >= 0 else roof)


def _key(word: str) -> str:
    return GROUPS.sub("", word.casefold())


def _telling(sentence: str) -> Iterator[str]:
    """Yield the words of a sentence that say what it is about."""
    for found in TOKEN.findall(plain(CITATION.sub(lambda cited: " " if cited["ids"] else cited[0], sentence))):
        key = _key(found)
        if key not in STOPS:
            yield key


def _grouped(spans: Sequence[TextRange]) -> list[list[TextRange]]:
    """Return spans that are near each other together, as one passage shows them."""
    groups: list[list[TextRange]] = []
    for span in spans:
        if groups and span.start - groups[-1][-1].end <= CONTEXT_CHARS:
            groups[-1].append(span)
        else:
            groups.append([span])
    return groups


def _pieces(text: str, whole: TextRange, spans: Sequence[TextRange]) -> Iterator[Piece]:
    """Yield a stretch of a text in pieces, with the spans marked; the spans are in order and may overlap."""
    place = whole.start
    for span in spans:
        start, end = max(span.start, place), min(span.end, whole.end)
        if start >= end:
            continue
        if start > place:
            yield Piece(text=text[place:start])
        yield Piece(text=text[start:end], is_match=True)
        place = end
    if place < whole.end:
        yield Piece(text=text[place : whole.end])


NO_TEXT = "its stored text is missing or cannot be read"
ALTERED_TEXT = "its stored text is not as it was stored (sha256)"
NO_SOURCE = "it is not a source of this run"


class CitingSentence(Frozen):
    """A sentence that cites a source, what was found of it, and the passages of this source."""

    claim: Claim
    passages: tuple[MatchedPassage, ...] = ()


class Card(Frozen):
    """A citation: its source, and each sentence that cites it."""

    number: int
    """The number in the list of references."""
    id: str
    title: str
    url: str = ""
    site: str = ""
    kind: str = ""
    author: str = ""
    published: str = ""
    retrieved: datetime | None = None
    via: str = ""
    flags: tuple[str, ...] = ()
    """What a reader should know of the text, such as `truncated`, in words."""
    problem: str = ""
    """Why the stored text cannot be shown; empty when it can."""
    sentences: tuple[CitingSentence, ...] = ()

    @property
    def counts(self) -> dict[Verdict, int]:
        """Sentences by verdict; verdicts that none has are left out."""
        verdicts = [one.claim.verdict for one in self.sentences]
        return {verdict: verdicts.count(verdict) for verdict in Verdict if verdict in verdicts}


class Evidence(Frozen):
    """All citations of a report, and the check of each of its sentences."""

    cards: tuple[Card, ...] = ()
    claims: tuple[Claim, ...] = ()
    """Sentences that cite, in the order of the report."""
    uncited: tuple[Claim, ...] = ()
    """Sentences with a quote or a figure and no citation."""

    @property
    def verification(self) -> Verification:
        """The check, with its counts."""
        return Verification(claims=self.claims, uncited=self.uncited)

    def card(self, number: int) -> Card | None:
        """Return the card of a number; None when the report has no such reference."""
        return next((card for card in self.cards if card.number == number), None)


def evidence_of(report: str, verification: Verification, sources: Mapping[str, Source], text_of: TextOf) -> Evidence:
    """Return the evidence behind a report.

    Args:
        report: The report with its list of references, or a draft with `[S12]` citations.
        verification: What the check of it found.
        sources: All sources of the run, by id.
        text_of: Reads a stored text by its source's id.
    """
    cards = tuple(
        card_of(number, name, sources.get(name), text_of(name), verification.claims)
        for number, name in references(report)
    )
    return Evidence(cards=cards, claims=verification.claims, uncited=verification.uncited)


def references(report: str) -> list[tuple[int, str]]:
    """Return the number and the id of each reference; a draft's citations are numbered in order of first use."""
    listed = [(int(number), name) for number, name in listed_references(report)]
    return listed or list(enumerate(dict.fromkeys(cited_ids(report)), 1))


def stored(source: Source | None, text: str | None) -> tuple[StoredText | None, str]:
    """Return a source's text for look-ups, or why there is none."""
    if source is None or text is None:
        return None, NO_SOURCE if source is None else NO_TEXT
    return (StoredText(source, text), "") if is_intact(source, text) else (None, ALTERED_TEXT)


def passages_of(claim: Claim, identifier: str, text: StoredText | None) -> tuple[MatchedPassage, ...]:
    """Return the passages of one source for a sentence that cites it."""
    findings = [one for one in claim.findings if one.source == identifier]
    return text.passages(claim.sentence, findings) if text is not None else ()


def card_of(number: int, identifier: str, source: Source | None, content: str | None, claims: Iterable[Claim]) -> Card:
    """Return a citation's card, with those of these sentences that cite it."""
    text, problem = stored(source, content)
    sentences = tuple(
        CitingSentence(claim=claim, passages=passages_of(claim, identifier, text))
        for claim in claims
        if identifier in claim.ids
    )
    if source is None:
        return Card(number=number, id=identifier, title=identifier, problem=problem, sentences=sentences)
    return Card(
        number=number,
        id=identifier,
        title=source.title,
        url=source.url,
        site=site_of(source.url),
        kind=source.kind,
        author=source.author,
        published=source.published,
        retrieved=source.retrieved,
        via=source.via,
        flags=tuple(plain_flags(source.flags)),
        problem=problem,
        sentences=sentences,
    )
