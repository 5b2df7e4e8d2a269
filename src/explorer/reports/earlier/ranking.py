"""Which passages of past texts fit a query best: plain words, the rare ones first, within bounds of time and size."""

import math
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from explorer.reports.earlier.folders import PastText
from explorer.schema.errors import ToolError
from explorer.text.frontmatter import split_frontmatter
from explorer.text.words import CJK, CJK_LETTER

WORD = re.compile(rf"[{CJK}]+|[^\W_{CJK}]+")
COMMON_WORDS = re.compile(
    "an?|and|are|about|as|at|be|by|did|do|does|for|from|ha[ds]|have|how|in|is|its?|of|on|or|that|the|their|there|this|"
    "to|was|were|what|when|where|which|who|why|will|with|your?"
)
MAX_WORDS = 24
SHORT_WORD = 3
"""So short a word is only found whole, or with an `s`: `go` is no beginning of `good`."""
RUN_ID = re.compile(r"\b\d{8}-\d{6}-[a-z0-9-]*[0-9a-f]{4}\b")
"""Made of the question's words, and no finding."""
COMMENT = re.compile(r"\s*<!--.*-->\s*")
CITATION = re.compile(r"\[[^\]]*\]")
HITS_OF_A_FILE = 2
SNIPPET_CHARS = 300
SATURATION, LENGTH_WEIGHT, USUAL_WORDS = 1.2, 0.5, 60
"""As in BM25: how fast repetition stops to count, how much length does, and the length that is neither."""
ABOUT_WEIGHT = 0.3
"""Of a word that stands in the run's question, beside one that stands in the passage."""


@dataclass(frozen=True)
class SearchLimits:
    """How far a search goes."""

    seconds: float = 4.0
    chars: int = 64_000_000


@dataclass(frozen=True)
class EarlierHit:
    """A passage that fits."""

    found: PastText
    line: int
    """Of the snippet, from 1."""
    snippet: str
    score: float


@dataclass
class SearchResult:
    """What a search found."""

    hits: list[EarlierHit] = field(default_factory=list[EarlierHit])
    texts: int = 0
    """Looked through."""
    origins: set[str] = field(default_factory=set[str])
    """The runs they are of."""
    is_cut: bool = False
    """Whether time or bytes ran out before all was looked through."""


def words_of(query: str) -> list[str]:
    """The words a query is searched by: without the commonest, plurals as singulars, East Asian text by pairs."""
    words: list[str] = []
    for word in WORD.findall(query.casefold()):
        if CJK_LETTER.match(word):
            words += [word[start : start + 2] for start in range(max(1, len(word) - 1))]
        else:
            words.append(word[:-1] if len(word) > SHORT_WORD and word.endswith("s") else word)
    telling = [word for word in words if not COMMON_WORDS.fullmatch(word)]
    return list(dict.fromkeys(telling or words))[:MAX_WORDS]


def search(query: str, texts: Iterable[PastText], limit: int, limits: SearchLimits | None = None) -> SearchResult:
    """The passages that fit a query best: rare words count more, and those of one passage together.

    Raises:
        ToolError: The query has no words.
    """
    words = words_of(query)
    if not words:
        raise ToolError("the query has no words; say what to look for")
    result, holding = _gather(words, texts, limits or SearchLimits())
    weights = _weights(words, holding, result.texts)
    hits = [hit for found in holding for hit in _best_of(found, weights)]
    hits.sort(key=lambda hit: (hit.score, hit.found.day), reverse=True)
    seen: set[str] = set()
    for hit in hits:
        words_alone = CITATION.sub("", hit.snippet).casefold()
        if words_alone not in seen and len(result.hits) < limit:
            seen.add(words_alone)
            result.hits.append(hit)
    return result


def _gather(
    words: Sequence[str], texts: Iterable[PastText], limits: SearchLimits
) -> tuple[SearchResult, list[PastText]]:
    """The texts that hold any of the words, as far as the search reaches."""
    result, holding, chars = SearchResult(), list[PastText](), 0
    deadline = time.monotonic() + limits.seconds
    for text in texts:
        if time.monotonic() > deadline or chars > limits.chars:
            result.is_cut = True
            break
        result.texts += 1
        result.origins.add(text.origin)
        chars += len(text.text)
        folded = text.text.casefold()
        if any(word in folded for word in words):
            holding.append(text)
    return result, holding


def _weights(words: Sequence[str], holding: Sequence[PastText], count: int) -> dict["re.Pattern[str]", float]:
    """How telling each word is: the fewer texts hold it, the more."""
    folded = [text.text.casefold() for text in holding]
    weights: dict[re.Pattern[str], float] = {}
    for word in words:
        holders = sum(word in text for text in folded)
        end = r"s?(?![^\W_])" if len(word) <= SHORT_WORD and not CJK_LETTER.match(word) else ""
        start = "" if CJK_LETTER.match(word) else r"(?<![^\W_])"
        weight = math.log(1 + (count - holders + 0.5) / (holders + 0.5))
        weights[re.compile(f"{start}{re.escape(word)}{end}")] = weight
    return weights


def _best_of(found: PastText, weights: dict["re.Pattern[str]", float]) -> list[EarlierHit]:
    about = found.about.casefold()
    known = ABOUT_WEIGHT * sum(weight for word, weight in weights.items() if word.search(about))
    hits: list[EarlierHit] = []
    for first, passage in _passages(found.text):
        score = _score("\n".join(passage).casefold(), weights)
        if score > 0:
            place, snippet = _telling_line(passage, weights)
            hits.append(EarlierHit(found, first + place, snippet, score + known))
    return sorted(hits, key=lambda hit: hit.score, reverse=True)[:HITS_OF_A_FILE]


def _score(passage: str, weights: dict["re.Pattern[str]", float]) -> float:
    length = 1 - LENGTH_WEIGHT + LENGTH_WEIGHT * len(passage.split()) / USUAL_WORDS
    score = 0.0
    for word, weight in weights.items():
        count = len(word.findall(passage))
        score += weight * count * (SATURATION + 1) / (count + SATURATION * length)
    return score


def _passages(text: str) -> Iterator[tuple[int, list[str]]]:
    """Paragraphs with the number of their first line; a frontmatter is none, a heading goes with what follows."""
    skipped = _lines_of_frontmatter(text)
    passage: list[str] = []
    start = 1
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if number <= skipped:
            continue
        if line.strip() and not COMMENT.fullmatch(line):
            start = start if passage else number
            passage.append(RUN_ID.sub("", line))
        elif passage and not (len(passage) == 1 and passage[0].startswith("#")):
            yield start, passage
            passage = []
        elif passage:
            passage.append(line)
    if any(line.strip() for line in passage):
        yield start, passage


def _lines_of_frontmatter(text: str) -> int:
    return text[: len(text) - len(split_frontmatter(text).body)].count("\n")


def _telling_line(passage: Sequence[str], weights: dict["re.Pattern[str]", float]) -> tuple[int, str]:
    """The place of the line that says most of what is sought, a heading last, and that line, cut around a word."""

    def value(line: str) -> tuple[float, bool]:
        folded = line.casefold()
        return sum(weight for word, weight in weights.items() if word.search(folded)), not line.startswith("#")

    place = max(range(len(passage)), key=lambda index: value(passage[index]))
    line = " ".join(passage[place].split())
    if len(line) <= SNIPPET_CHARS:
        return place, line
    places = [found.start() for word in weights if (found := word.search(line.casefold()))]
    start = max(0, min(places, default=0) - SNIPPET_CHARS // 3)
    end = start + SNIPPET_CHARS
    return place, f"{'... ' if start else ''}{line[start:end]}{' ...' if end < len(line) else ''}"
