"""What earlier runs left behind, and which passages of it match a query best, within bounds of time and size.

These are their reports, their findings, and the titles of their sources. They are read only through each run's folder,
so that no link in it leads out, and only as far as time and bytes allow.
"""

import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import yaml

from explorer.journal.codec import examine
from explorer.schema.errors import ToolError
from explorer.schema.events import RunStarted
from explorer.text.frontmatter import split_frontmatter
from explorer.text.ranking import bm25, rarity
from explorer.text.words import CJK_LETTER, count_words, stem, terms_of, words_of
from explorer.workspace.access import ENGINE_FOLDER, JOURNAL, QUESTION
from explorer.workspace.safe_open import opened_below, walk
from explorer.workspace.source_store import SOURCES
from explorer.workspace.workspace import Workspace

NO_FINDINGS = ("inputs", ENGINE_FOLDER)
"""Folders of a run that hold what others wrote, and the engine's own."""
TEXT_SUFFIXES = frozenset({".md", ".txt", ".csv", ".json", ".jsonl", ".html", ".yaml", ".yml", ""})
MAX_FIRST_LINE_BYTES = 4 * 1024 * 1024
MAX_FILES_OF_RUN = 2_000
HEAD_BYTES = 4_096
"""Of a stored source: more than its frontmatter has."""
RUN_DAY = re.compile(r"(\d{4})(\d{2})(\d{2})-\d{6}-")


@dataclass(frozen=True)
class PastRun:
    """An earlier run's folder."""

    run_id: str
    question: str
    day: str
    """When it began, `2026-08-10` (UTC)."""
    is_sample: bool
    """Whether it read invented sample data."""
    folder: Path

    @classmethod
    def of(cls, folder: Path) -> Self | None:
        """The run of a folder; None when its journal does not begin as a run's does."""
        try:
            with opened_below(folder, JOURNAL) as file:
                records = examine(file.readline(MAX_FIRST_LINE_BYTES)).records
        except OSError:
            return None
        if not records or not isinstance(records[0].event, RunStarted):
            return None
        started = records[0].event
        named = RUN_DAY.match(folder.name)
        day = "-".join(named.groups()) if named is not None else f"{records[0].at:%Y-%m-%d}"
        return cls(folder.name, started.question, day, started.settings.get("is_sample") is True, folder)

    def findings(self) -> list[str]:
        """The paths of its report and its findings, the report first."""
        paths = sorted(path for path in self._walk() if path != QUESTION)
        return sorted(paths, key=lambda path: path != "report.md")[:MAX_FILES_OF_RUN]

    def sources(self) -> list[str]:
        """The paths of its stored sources, in the order of their numbers."""
        try:
            names = [name for name in os.listdir(self.folder / SOURCES) if re.fullmatch(r"S\d{1,9}\.md", name)]  # noqa: PTH208 - of thousands
        except OSError:
            return []
        return [f"{SOURCES}/{name}" for name in sorted(names, key=lambda name: int(name[1:-3]))]

    def read(self, path: str) -> str:
        """A file's text.

        Raises:
            ToolError: It is no plain text file of this folder, or too big.
        """
        return Workspace(self.folder).read_text(path)

    def head(self, path: str) -> str:
        """The beginning of a stored source: of all sources of all runs, more would take too long.

        Raises:
            OSError: It cannot be read.
        """
        with opened_below(self.folder, path) as file:
            return file.read(HEAD_BYTES).decode("utf-8", "replace")

    def _walk(self) -> Iterator[str]:
        def is_looked_into(path: str) -> bool:
            return path not in NO_FINDINGS and not path.rpartition("/")[2].startswith(".")

        for entry in walk(self.folder, is_looked_into):
            if not entry.name.startswith(".") and Path(entry.name).suffix.lower() in TEXT_SUFFIXES:
                yield Path(entry.path).relative_to(self.folder).as_posix()


def past_runs(workspace: Path, without: str = "") -> Iterator[PastRun]:
    """The runs of a workspace, newest first, but for one; folders that are none, or damaged, are passed over."""
    try:
        with os.scandir(workspace) as entries:
            names = sorted((entry.name for entry in entries if entry.is_dir(follow_symlinks=False)), reverse=True)
    except OSError:
        return
    for name in names:
        run = PastRun.of(workspace / name) if name != without and not name.startswith(".") else None
        if run is not None:
            yield run


@dataclass(frozen=True)
class PastText:
    """A text that may be found."""

    origin: str
    """A run's id, or `library`."""
    about: str
    """The run's question, or the report's title."""
    day: str
    path: str
    text: str
    is_sample: bool = False
    is_title: bool = False
    """Whether the text is only a stored source's title and address."""


def texts_of(runs: Iterable[PastRun]) -> Iterator[PastText]:
    """All that can be found in runs, run by run: findings as they are, sources by title and address."""
    for run in runs:
        yield from _texts_of(run)


def _texts_of(run: PastRun) -> Iterator[PastText]:
    for path in (*run.findings(), *run.sources()):
        is_title = path.startswith(SOURCES)
        try:
            text = title_and_address(run.head(path)) if is_title else run.read(path)
        except (ToolError, OSError):
            continue  # a binary file, a link, or one that was just removed
        yield PastText(run.run_id, run.question, run.day, path, text, run.is_sample, is_title)


def title_and_address(stored: str) -> str:
    """What a stored source's frontmatter says it is; empty when it says nothing."""
    head = split_frontmatter(stored).head or stored
    return " | ".join(value for value in (_field(head, "title"), _field(head, "url")) if value)


def _field(head: str, name: str) -> str:
    """One field of a frontmatter that the engine wrote: reading all of each would take most of a search's time."""
    found = re.search(rf"^{name}: (.*(?:\n  .*)*)", head, re.MULTILINE)
    if found is None:
        return ""
    try:
        value: object = yaml.safe_load(found[1]) if found[1][:1] in "'\"|>" else " ".join(found[1].split())
    except (yaml.YAMLError, ValueError):
        return ""
    return value if isinstance(value, str) else ""


MAX_WORDS = 24
SHORT_WORD = 3
"""So short a word is only found whole, or with an `s`: `go` is no beginning of `good`."""
RUN_ID = re.compile(r"\b\d{8}-\d{6}-[a-z0-9-]*[0-9a-f]{4}\b")
"""Made of the question's words, and no finding."""
COMMENT = re.compile(r"\s*<!--.*-->\s*")
CITATION = re.compile(r"\[[^\]]*\]")
HITS_OF_A_FILE = 2
SNIPPET_CHARS = 300
USUAL_WORDS = 60
"""Of a passage, neither long nor short."""
ABOUT_WEIGHT = 0.3
"""Weight of a word that is in the run's question, next to 1 for one that is in the passage."""


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


def words_sought(query: str) -> list[str]:
    """The words a query is searched by; stop words only where there are no others."""
    return list(dict.fromkeys(words_of(query) or map(stem, terms_of(query))))[:MAX_WORDS]


def search(query: str, texts: Iterable[PastText], limit: int, limits: SearchLimits | None = None) -> SearchResult:
    """The passages that fit a query best: rare words count more, and those of one passage together.

    Raises:
        ToolError: The query has no words.
    """
    words = words_sought(query)
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
    roots = [_root(word) for word in words]
    deadline = time.monotonic() + limits.seconds
    for text in texts:
        if time.monotonic() > deadline or chars > limits.chars:
            result.is_cut = True
            break
        result.texts += 1
        result.origins.add(text.origin)
        chars += len(text.text)
        folded = text.text.casefold()
        if any(root in folded for root in roots):
            holding.append(text)
    return result, holding


def _weights(words: Sequence[str], holding: Sequence[PastText], count: int) -> dict["re.Pattern[str]", float]:
    """How telling each word is: the fewer texts hold it, the more."""
    folded = [text.text.casefold() for text in holding]
    return {_pattern(word): rarity(count, sum(_root(word) in text for text in folded)) for word in words}


def _root(word: str) -> str:
    """What all forms of a word begin with: `compan` of company and companies."""
    return word[:-1] if len(word) > SHORT_WORD and word.endswith("y") else word


def _pattern(word: str) -> "re.Pattern[str]":
    """A word, and longer ones that begin with it."""
    if CJK_LETTER.match(word):
        return re.compile(re.escape(word))
    end = r"s?(?![^\W_])" if len(word) <= SHORT_WORD else "(?:y|ie)" if _root(word) != word else ""
    return re.compile(rf"(?<![^\W_]){re.escape(_root(word))}{end}")


def _best_of(found: PastText, weights: dict["re.Pattern[str]", float]) -> list[EarlierHit]:
    about = found.about.casefold()
    known = ABOUT_WEIGHT * sum(weight for word, weight in weights.items() if word.search(about))
    hits: list[EarlierHit] = []
    for first, passage in _passages(found.text):
        text = "\n".join(passage).casefold()
        counts = {word: count for word in weights if (count := len(word.findall(text)))}
        if counts:
            place, snippet = _telling_line(passage, weights)
            score = bm25(counts, weights, count_words(text) / USUAL_WORDS)
            hits.append(EarlierHit(found, first + place, snippet, score + known))
    return sorted(hits, key=lambda hit: hit.score, reverse=True)[:HITS_OF_A_FILE]


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
