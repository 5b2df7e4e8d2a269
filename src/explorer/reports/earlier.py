"""Searches earlier runs for the passages that match a query best, within limits of time and size.

The search covers the runs' reports, their findings, and the titles of their sources. Every file is opened through its
run's folder, so that no link in the folder leads out of it.
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
"""The folders of a run without findings: inputs, which others wrote, and the engine's own folder."""
TEXT_SUFFIXES = frozenset({".md", ".txt", ".csv", ".json", ".jsonl", ".html", ".yaml", ".yml", ""})
MAX_FIRST_LINE_BYTES = 4 * 1024 * 1024
MAX_FILES_OF_RUN = 2_000
HEAD_BYTES = 4_096
"""The number of bytes that are read of a stored source, which is more than a frontmatter usually has."""
RUN_DAY = re.compile(r"(\d{4})(\d{2})(\d{2})-\d{6}-")


@dataclass(frozen=True)
class PastRun:
    """An earlier run: its folder, and facts from the beginning of its journal."""

    run_id: str
    question: str
    day: str
    """The day on which the run began, in UTC: `2026-08-10`."""
    is_sample: bool
    """Whether the run read invented sample data."""
    folder: Path

    @classmethod
    def of(cls, folder: Path) -> Self | None:
        """Return the run of a folder; None when the folder has no journal that begins with the start of a run."""
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
        """Return the paths of the report and the findings in the folder, the report first."""
        paths = sorted(path for path in self._walk() if path != QUESTION)
        return sorted(paths, key=lambda path: path != "report.md")[:MAX_FILES_OF_RUN]

    def sources(self) -> list[str]:
        """Return the paths of the stored sources in the folder, in the order of their numbers."""
        try:
            names = [name for name in os.listdir(self.folder / SOURCES) if re.fullmatch(r"S\d{1,9}\.md", name)]  # noqa: PTH208 - of thousands
        except OSError:
            return []
        return [f"{SOURCES}/{name}" for name in sorted(names, key=lambda name: int(name[1:-3]))]

    def read(self, path: str) -> str:
        """Return a file's text.

        Raises:
            ToolError: The path is not a plain text file of this folder, or the file is too big.
        """
        return Workspace(self.folder).read_text(path)

    def head(self, path: str) -> str:
        """Return the beginning of a stored source, because reading all sources whole would take too long.

        Raises:
            OSError: The file cannot be read.
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
    """Yield the runs of a workspace, newest first; the run `without`, damaged runs and other folders are skipped."""
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
    """A text that is searched."""

    origin: str
    """The id of a run, or `library`."""
    about: str
    """The run's question, or the report's title."""
    day: str
    path: str
    text: str
    is_sample: bool = False
    is_title: bool = False
    """Whether the text is only a stored source's title and address."""


def texts_of(runs: Iterable[PastRun]) -> Iterator[PastText]:
    """Yield the texts of runs, run by run: findings in full, sources as title and address."""
    for run in runs:
        for path in (*run.findings(), *run.sources()):
            is_title = path.startswith(SOURCES)
            try:
                text = title_and_address(run.head(path)) if is_title else run.read(path)
            except (ToolError, OSError):
                continue  # a binary file, a link, or one that was just removed
            yield PastText(run.run_id, run.question, run.day, path, text, run.is_sample, is_title)


def title_and_address(stored: str) -> str:
    """Return the title and the address in a stored source's frontmatter; empty when it has neither."""
    head = split_frontmatter(stored).head or stored
    return " | ".join(value for value in (_field(head, "title"), _field(head, "url")) if value)


def _field(head: str, name: str) -> str:
    """Return one field of a frontmatter that the engine wrote; empty when it is missing or not a text.

    The whole frontmatter is not parsed, because parsing it would take most of a search's time.
    """
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
"""The length in characters up to which a word matches only itself, with or without an `s`: `go` does not match `good`.
"""
RUN_ID = re.compile(r"\b\d{8}-\d{6}-[a-z0-9-]*[0-9a-f]{4}\b")
"""The pattern of a run's id, which is removed before the search because it contains words of the question."""
COMMENT = re.compile(r"\s*<!--.*-->\s*")
CITATION = re.compile(r"\[[^\]]*\]")
HITS_OF_A_FILE = 2
SNIPPET_CHARS = 300
USUAL_WORDS = 60
"""The number of words in a passage of usual length."""
ABOUT_WEIGHT = 0.3
"""The weight of a word in the run's question, relative to 1 for a word in the passage."""


@dataclass(frozen=True)
class SearchLimits:
    """The limits of a search: its time, and the characters of text that it reads."""

    seconds: float = 4.0
    chars: int = 64_000_000


@dataclass(frozen=True)
class EarlierHit:
    """A passage that matches a query."""

    found: PastText
    line: int
    """The line of the text that the snippet comes from, counted from 1."""
    snippet: str
    score: float


@dataclass
class SearchResult:
    """The hits of a search, best first, and how much was searched."""

    hits: list[EarlierHit] = field(default_factory=list[EarlierHit])
    texts: int = 0
    """The number of texts searched."""
    origins: set[str] = field(default_factory=set[str])
    """The origins of the texts searched: ids of runs, or `library`."""
    is_cut: bool = False
    """Whether the search reached a limit before the last text."""


def words_sought(query: str) -> list[str]:
    """Return the words of a query to search for, at most `MAX_WORDS`; stop words only when it has no others."""
    return list(dict.fromkeys(words_of(query) or map(stem, terms_of(query))))[:MAX_WORDS]


def words_matched(words: Iterable[str], text: str) -> int:
    """Return how many of the words a text contains."""
    folded = text.casefold()
    return sum(_pattern(word).search(folded) is not None for word in words)


def search(query: str, texts: Iterable[PastText], limit: int, limits: SearchLimits | None = None) -> SearchResult:
    """Return the passages that match a query best: rare words weigh more, and words in one passage add up.

    Raises:
        ToolError: The query has no words.
    """
    words = words_sought(query)
    if not words:
        raise ToolError.of("the query has no words; say what to look for")
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
    """Return a result without hits yet, and the texts that contain any of the words, within the limits."""
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
    """Return the weight of each word by its pattern: the fewer texts contain the word, the higher the weight."""
    folded = [text.text.casefold() for text in holding]
    return {_pattern(word): rarity(count, sum(_root(word) in text for text in folded)) for word in words}


def _root(word: str) -> str:
    """Return the common beginning of a word's forms: `compan` for company and companies."""
    return word[:-1] if len(word) > SHORT_WORD and word.endswith("y") else word


def _pattern(word: str) -> "re.Pattern[str]":
    """Return a pattern that matches a word and, if the word is long enough, longer words that begin with it."""
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
    """Yield the first line's number, from 1, and the lines of each paragraph of a text.

    A frontmatter is skipped, and a heading is a part of the paragraph after it.
    """
    skipped = text[: len(text) - len(split_frontmatter(text).body)].count("\n")
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


def _telling_line(passage: Sequence[str], weights: dict["re.Pattern[str]", float]) -> tuple[int, str]:
    """Return the index of the line whose matched words weigh most, and that line, cut around a matched word.

    If several lines weigh the same, one that is not a heading is preferred.
    """

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
