"""The sentences of a text, cut into clauses, with what each figure of them is said of.

What a figure is said of are the words of its own clause, of clauses next to it without a figure, and, as far as these
name nobody, of what was said before: `It cost 85 million` is said of the ship of the sentence before.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise, takewhile
from typing import NamedTuple

from explorer.reports.verify.figures import Figures, Quantity
from explorer.reports.verify.numerals import WORDS
from explorer.reports.verify.plain import BOUNDARY, LABELS, STOPS, TermSet, key, term_key, terms_of
from explorer.reports.verify.polarity import Polarity, polarity
from explorer.text.words import CJK_LETTER, sentence_ends

LINE_END = re.compile(r"\n\s*")
UNSPACED_END = re.compile(r"(?<=[a-z]{2})[.!?](?=[A-Z][a-z]+,? )")
"""An end of a sentence without a space behind it, as pages have where lines were joined: `leaves.Although it`."""
SPACE = re.compile(r"\s*")
CLAUSE_END = re.compile(
    r"[;；|]|\b(?:but|while|whereas|although|though|aber|während|mais|tandis que|alors que)\b"
    r"|(?P<weak>,(?! (?:up|down) )(?=\D)|: | - |[()]|，|、"
    r"|\b(?:and|than|against|compared with|which|when|und|et|contre)\b)"
)
MIN_GENERIC = 4
GROUP = re.compile(
    r"(?<![\w.])[A-Z][\w'-]*(?: (?:(?:of|the|de|von|van|&) )?[A-Z\d][\w'-]*)*|(?<!\d)\d+[号期版代季届號]线?"
)
"""A name of one or more words."""
TABLE_ROW = "|"
LABEL_COLON = re.compile(r"\s*(?:[-*|] )?([A-Z][^:\n|]{1,30})[:|] ")
LINE_CHARS = 120
MAX_LINES = 6
MAX_HEADS = 4
"""A name in more lines is no name of one thing of a list."""
THAT_FIGURE = re.compile(r"\b(?:that|this|the same) (?:number|figure|share|rate|total|sum|amount|price|value)\b")
"""What the sentence before gives."""
SAID_CHARS = 300
"""Around a figure, in which something is said of it: what has no end of a sentence may be a whole page of figures."""
MAX_SENTENCE_CHARS = 2_000
"""A longer one is no sentence, but a page without an end of one; it is cut, since each rule reads whole sentences."""
MAX_CLAUSES = 40
"""Clauses before one, of which it may speak."""
MAX_BEFORE = 2
"""Sentences before one that names nobody, of which it may speak."""


INNER_NAME = re.compile(
    r"(?<=[a-z0-9,;:'\")&] )[A-Z][^\W_]*(?:['-][^\W\d_]+)*|(?<=[(\"'])[A-Z][\w'-]*"
    r"|(?<![\w.])[A-Z][\w'-]{0,60}(?= [A-Z])|(?<![A-Z])[A-Z]+\d+|\b[a-z]{1,2}[A-Z][a-z]\w+"
    r"|(?<!\d)\d+[号期版代季届號]线?"
)
LINE_OF = re.compile(r"^[ \t]*(?:- )?(?P<who>[\w.-]{3,30})(?: \([^()\n]{4,60}\))?: ", re.MULTILINE)
"""The beginning of a comment of a thread, with who wrote it."""
SAME_CHARS = 60
MAX_POSTINGS = 60
"""Sentences that are looked at for a word; a word of more says little."""
COMPARISON = re.compile(r"\b(?:than|als)\b")
"""Words of a comparison, whose two sides may change places in another sentence."""
FIRST_NAME = re.compile(r"[A-Z][\w'-]+(?![\w'-]|:)")
SMALL_WORD = re.compile(r"(?<![\w'-])[a-z][\w'-]+")


GERMAN_WORD = re.compile(r"[^\W_]+(?:-[^\W\d_]+)*|[.,;:!?„“\"]")
NOUN_BEFORE = re.compile(
    r"d(?:er|ie|as|en|em|es)|k?ein\w*|ihr\w*|sein\w*|i[mn]s?|am|zu[mr]|vom|beim|alle\w*|dies\w*|jede\w*|viele\w*|mehr"
    r"|weniger|als|und|nur|kaum|\d+|\w+(?:e[rsmn]?|ig|isch)"
)
"""Words after which a German noun is mostly no name: articles, numbers, adjectives."""
NAME_BEFORE = frozenset(["in", "von", "aus", "bei", "nach", "für", "und"])
MIN_SEEN = 2


def german_names(text: str) -> frozenset[str]:
    """Return the words of a German text that are names, as far as that is plain, since all nouns have capital letters.

    They never have an article, a number or an adjective before them, and are written more than once or in pairs.
    """
    seen: Counter[str] = Counter()
    nouns: set[str] = set()
    for before, word in pairwise([".", *GERMAN_WORD.findall(text)]):
        if not word[0].isupper() or word.lower() in STOPS:
            continue
        if before not in NAME_BEFORE and NOUN_BEFORE.fullmatch(before.lower()) and not before[0].isupper():
            nouns.add(key(word))
        seen[key(word)] += MIN_SEEN if before[0].isupper() and before.lower() not in STOPS else 1
    return frozenset(word for word, count in seen.items() if count >= MIN_SEEN and word not in nouns)


def _sentence_starts(text: str) -> list[int]:
    """Return where sentences and lines begin."""
    ends = chain(
        (found.end for found in sentence_ends(text)),
        (found.end() for found in LINE_END.finditer(text)),
        (found.end() for found in UNSPACED_END.finditer(text)),
    )
    starts = {found.end() for end in ends if (found := SPACE.match(text, end))}
    return list(_with_cuts(sorted({0, *starts}), text))


def _with_cuts(starts: Sequence[int], text: str) -> Iterator[int]:
    """Yield where sentences begin, with cuts in those that are too long."""
    for start, end in pairwise([*starts, len(text)]):
        yield start
        while end - start > MAX_SENTENCE_CHARS:
            space = text.rfind(" ", start + 1, start + MAX_SENTENCE_CHARS)
            start = space + 1 if space > 0 else start + MAX_SENTENCE_CHARS  # noqa: PLW2901
            yield start


class Clause(NamedTuple):
    """A part of a sentence."""

    start: int
    end: int
    is_strong: bool
    """Whether a semicolon or the like is before it, which no word reaches over."""


class Figure(NamedTuple):
    """A figure, with what it measures."""

    start: int
    end: int
    unit: str
    value: str


@dataclass(frozen=True)
class Said:
    """What a figure, or a sentence, is said of."""

    words: frozenset[str]
    own: frozenset[str]
    """Words of its own clause, and of those next to it."""
    names: frozenset[str]
    start: int
    end: int
    """Where its own clauses are in the text."""
    named_from: int
    """Where the clause or the sentence begins that has the names."""


class Passages:
    """A text by sentences and clauses."""

    def __init__(self, text: str, figures: Figures, *, has_names: bool = True) -> None:
        """Cut a plain text.

        Args:
            text: The plain text.
            figures: All that are in it.
            has_names: Whether capital letters show names; in German, all nouns have them.
        """
        self.text = text
        self.has_names = has_names
        self._starts = _sentence_starts(text)
        self.figures = sorted([*_amounts(text, figures), *_times(figures), *_nobodies(text)])
        self._figure_starts = [one.start for one in self.figures]
        self._said: dict[tuple[int, int], Said] = {}
        self._clauses: dict[int, list[Clause]] = {}
        self._polarities: dict[tuple[int, int], Polarity] = {}

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self._starts)

    def span(self, number: int) -> tuple[int, int]:
        """Return where a sentence begins and ends."""
        end = self._starts[number + 1] if number + 1 < len(self._starts) else len(self.text)
        return self._starts[number], end

    def number_at(self, place: int) -> int:
        """Return the number of the sentence at a place."""
        return bisect_right(self._starts, place) - 1

    def sentence(self, number: int) -> str:
        """Return a sentence, on one line."""
        return " ".join(self.text[slice(*self.span(number))].split())

    def polarity(self, start: int, end: int) -> Polarity:
        """Return what turns the text between two places round."""
        if (start, end) not in self._polarities:
            self._polarities[start, end] = polarity(" ".join(self.text[start:end].split()))
        return self._polarities[start, end]

    def figures_in(self, start: int, end: int) -> Sequence[Figure]:
        """Return the figures between two places."""
        first, last = (bisect_right(self._figure_starts, place - 1) for place in (start, end))
        return self.figures[first:last]

    @cached_property
    def known_names(self) -> frozenset[str]:
        """Words that have a capital letter within a sentence."""
        if not self.has_names:
            return german_names(self.text)
        return frozenset(key(found) for found in INNER_NAME.findall(self.text)) | self._first_names()

    def _first_names(self) -> frozenset[str]:
        """Return words that begin more than one sentence and never have a small letter."""
        # A title is mostly there twice: what begins the same sentence again is no more of a name.
        begun = {self.text[start : start + SAME_CHARS] for start in self._starts}
        words = (found[0] for one in begun if (found := FIRST_NAME.match(one)) and not WORDS.fullmatch(found[0]))
        first = Counter(key(word) for word in words if term_key(word))
        return frozenset(word for word, count in first.items() if count >= MIN_SEEN and word not in self.small)

    @cached_property
    def small(self) -> frozenset[str]:
        """Words that have a small letter somewhere."""
        return frozenset(key(word) for word in SMALL_WORD.findall(self.text))

    @cached_property
    def generic(self) -> frozenset[str]:
        """Words that are in several names: Insurance, Group."""
        groups = {frozenset(terms_of(found[0]).names) for found in GROUP.finditer(self.text)}
        counts = Counter(word for group in groups if len(group) > 1 for word in group)
        return frozenset(word for word, count in counts.items() if count >= MIN_GENERIC)

    @cached_property
    def title(self) -> frozenset[str]:
        """Words of the title, which is what is before the first boundary; without one, the first sentence."""
        end = self.text.find(BOUNDARY)
        return terms_of(self.text, 0, end).words if end >= 0 else self.terms[0].words

    @cached_property
    def terms(self) -> list[TermSet]:
        """TermSet of each sentence."""
        return [self._terms(*self.span(number)) for number in range(len(self))]

    @cached_property
    def index(self) -> Mapping[str, list[int]]:
        """Sentences by term."""
        table: dict[str, list[int]] = {}
        for number, terms in enumerate(self.terms):
            for term in terms.words:
                table.setdefault(term, []).append(number)
        return table

    @cached_property
    def writers(self) -> frozenset[str]:
        """Who wrote lines of a thread: the first two, which are enough to know of each line that others wrote, too."""
        found: set[str] = set()
        for line in LINE_OF.finditer(self.text):
            found.add(line["who"])
            if len(found) > 1:
                break
        return frozenset(found)

    def shared(self, words: Iterable[str], most: int = MAX_POSTINGS) -> Counter[int]:
        """Count for each sentence how many of some words it has; of a word's sentences, the first `most` count."""
        counts: Counter[int] = Counter()
        for word in words:
            counts.update(self.index.get(word, ())[:most])
        # In the order of the text, since that of a set of words is another one in each process.
        return Counter(dict(sorted(counts.items())))

    def _terms(self, start: int, end: int, without: tuple[int, int] = (-1, -1)) -> TermSet:
        terms = terms_of(self.text, start, end, without=without)
        return TermSet(terms.words, terms.names & self.known_names)

    def clauses(self, number: int) -> list[Clause]:
        """Return the clauses of a sentence; the cells of a table's row are one."""
        if number not in self._clauses:
            self._clauses[number] = self._cut(*self.span(number))
        return self._clauses[number]

    def _cut(self, start: int, end: int) -> list[Clause]:
        if self.text[start : start + 2].strip().startswith(TABLE_ROW):
            return [Clause(start, end, is_strong=True)]
        found: list[Clause] = []
        begin, is_strong = start, True
        for mark in CLAUSE_END.finditer(self.text, start, end):
            if self._is_in_figure(mark.start()) or self._joins_names(mark):
                continue
            if self.text[begin : mark.start()].strip():
                found.append(Clause(begin, mark.start(), is_strong))
                is_strong = False
            is_strong = is_strong or mark["weak"] is None
            begin = mark.end()
        if self.text[begin:end].strip() or not found:
            found.append(Clause(begin, end, is_strong))
        return found

    def _joins_names(self, mark: "re.Match[str]") -> bool:
        """Return whether a word ties two names to one subject: `Apollo and Blackstone built`."""
        return (
            mark[0] in JOINING
            and NAME_END.search(self.text, max(0, mark.start() - NAME_CHARS), mark.start()) is not None
            and NAME_START.match(self.text, mark.end()) is not None
        )

    def _is_in_figure(self, place: int) -> bool:
        before = bisect_right(self._figure_starts, place) - 1
        return before >= 0 and place < self.figures[before].end

    def said_of(self, start: int, end: int) -> Said:
        """Return what a figure between two places is said of."""
        if (start, end) not in self._said:
            self._said[start, end] = self._said_of(start, end)
        return self._said[start, end]

    def _said_of(self, start: int, end: int) -> Said:
        number = self.number_at(start)
        clauses = self.clauses(number)
        mine = max((place for place, clause in enumerate(clauses) if clause.start <= start), default=0)
        first, last = self._around(clauses, mine)
        near = max(clauses[first].start, start - SAID_CHARS), min(clauses[last].end, end + SAID_CHARS)
        own = self._terms(*near, (start, end))
        words, names, named_from = set(own.words), set(own.names), clauses[first].start
        for place in range(first - 1, max(-1, first - 1 - MAX_CLAUSES), -1):
            clause = clauses[place]
            if clauses[place + 1].is_strong and not names and CJK_LETTER.search(self.text, clause.start, clause.end):
                break
            before = self._terms(clause.start, clause.end)
            words |= before.words - before.names if names else before.words
            named_from = named_from if names else clause.start
            names = names or set(before.names)
        if not self._names_one(number) and self.is_line(number) and (head := self._line_head(number)) is not None:
            words, names, named_from = words | head.words, names | head.names, clauses[first].start
        if number and THAT_FIGURE.search(self.text, *self.span(number)):
            words, names = words | self.terms[number - 1].words, names | self.terms[number - 1].names
        for earlier in range(number - 1, max(-1, number - 1 - MAX_BEFORE), -1):
            if names or (self.label(start) and self.figures_in(*self.span(earlier))):
                break
            before = self.terms[earlier]
            words, names, named_from = words | before.words, set(before.names), self.span(earlier)[0]
        spans = clauses[first].start, clauses[last].end, named_from
        return Said(frozenset(words), own.words, frozenset(names), *spans)

    def is_line(self, number: int) -> bool:
        """Return whether a sentence is a line of a list: no full stop, and not long."""
        start, end = self.span(number)
        text = self.text[start:end]
        return (
            (text.endswith("\n") or end == len(self.text))
            and len(text) <= LINE_CHARS
            and text.rstrip()[-1:] not in {".", "!", "?", "。"}
        )

    def _line_head(self, number: int) -> TermSet | None:
        """Return the line that names what the lines below it are about: the product over its price."""
        words, names = frozenset[str](), frozenset[str]()
        begun = {self._first_word(number)}
        for earlier in range(number - 1, max(-1, number - 1 - MAX_LINES), -1):
            first = self._first_word(earlier)
            if not self.is_line(earlier) or (names and first in begun):
                break
            if not LABEL_COLON.match(self.text, *self.span(earlier)) and self._names_one(earlier):
                begun.add(first)
                words, names = words | self.terms[earlier].words, names | self.terms[earlier].names
        return TermSet(words, names) if names else None

    def _first_word(self, number: int) -> str:
        return next(iter(self.sentence(number).split()), "")

    def lines_under(self, number: int) -> Iterable[int]:
        """Return the lines that a line without figures may be the head of."""
        if not self.is_line(number) or self.figures_in(*self.span(number)):
            return ()
        return takewhile(self.is_line, range(number + 1, min(len(self), number + 1 + MAX_LINES)))

    def label(self, place: int) -> frozenset[str]:
        """Return the words before the colon of a line such as `Shipping: $15.47`, which say what its figures are."""
        start, end = self.span(self.number_at(place))
        found = LABEL_COLON.match(self.text, start, end)
        return terms_of(found[1]).words if found and found.end() <= place else frozenset()

    def _names_one(self, number: int) -> bool:
        """Return whether a sentence has a name that few others have."""
        names, words = self.terms[number].names, self.terms[number].words
        if self.is_line(number) and self.figures_in(*self.span(number)):  # `Rating 4.6` names nothing
            words = names = names - {key(self._first_word(number))}
        return bool(names) and any(len(self.index[one]) <= MAX_HEADS for one in words)

    def named_from(self, number: int, start: int) -> int:
        """Return where the clauses of a sentence begin that name whom the text from a place on is about."""
        for clause in reversed([one for one in self.clauses(number) if one.start <= start]):
            if self._terms(clause.start, clause.end).names:
                return clause.start
        return start

    def _around(self, clauses: Sequence[Clause], mine: int) -> tuple[int, int]:
        """Return the first and the last clause of those that have no figure of their own, around one that has."""
        first = last = mine
        while first and not clauses[first].is_strong and not self._has_figure(clauses[first - 1]):
            first -= 1
        while last + 1 < len(clauses) and not clauses[last + 1].is_strong and not self._has_figure(clauses[last + 1]):
            last += 1
        return first, last

    def _has_figure(self, clause: Clause) -> bool:
        return bool(self.figures_in(clause.start, clause.end))


def figure_of(one: Quantity) -> Figure:
    """Return a number with its unit."""
    return Figure(one.start, one.end, one.unit, str(max(one.values)))


JOINING = frozenset(["and", "und", "et"])
NAME_END = re.compile(r"\b[A-Z][\w'-]* $")
NAME_START = re.compile(r" [A-Z]")
LABEL_BEFORE = re.compile(r"[A-Z][\w'-]* $")
NAME_CHARS = 24
FEW = 12
NOBODY = re.compile(r"\b(?:nobody|no one|none)\b", re.IGNORECASE)


def alone(text: str) -> Counter[str]:
    """Count the words with a capital letter that no number follows."""
    return Counter(CAPITAL_ALONE.findall(text))


CAPITAL_ALONE = re.compile(r"(?<![\w'-])[A-Z][\w'-]*(?![\w'-]| \d)")


def is_label(one: Quantity, text: str, without_number: Counter[str] | None = None) -> bool:
    """Return whether a number is a part of a name: `Lyra 7`, `3号线`.

    Args:
        one: The number.
        text: What it is in.
        without_number: How often the text has each name `alone`: of `Millstone 140` the number is none of the name's.
    """
    if one.unit or one.scale != 1:
        return False
    if text[one.end : one.end + 1] in {*LABELS}:
        return True
    found = LABEL_BEFORE.search(text[max(0, one.start - NAME_CHARS) : one.start])
    if one.is_word or found is None or max(one.values) >= LEAST_AMOUNT:
        return False
    counts = alone(text) if without_number is None else without_number
    return counts[found[0].strip()] <= 1


LEAST_AMOUNT = 10_000
"""A larger number is no part of a name."""


def _amounts(text: str, figures: Figures) -> Iterable[Figure]:
    without_number = alone(text)
    for one in figures.quantities:
        is_few = one.is_word and not one.unit and max(one.values) <= FEW
        if not is_few and not is_label(one, text, without_number):
            yield figure_of(one)


def _nobodies(text: str) -> Iterable[Figure]:
    """Yield words that say that there is none, as figures: of `nobody was killed`, nobody is the number."""
    return (Figure(*found.span(), "", "0") for found in NOBODY.finditer(text))


def _times(figures: Figures) -> Iterable[Figure]:
    for dated in figures.dates:
        yield Figure(dated.start, dated.end, "date", "-".join(map(str, dated.day)))
    for named, clock in figures.times:
        yield Figure(named.start, named.end, "clock", clock)
