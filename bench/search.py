"""How well the search over a folder finds what answers a question: recall over 50 questions with known documents.

Each question of `shared/data/qa` brings ten paragraphs; all paragraphs become files of one folder, which is indexed
and asked each question. Run it with `uv run python bench/search.py`.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from explorer.documents.corpus.index import Corpus
from explorer.documents.parsing.parser import Parser

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "qa" / "hotpot50_distractor.jsonl"
DEPTHS = (2, 5, 10)


@dataclass(frozen=True)
class Question:
    """A question, the paragraphs that come with it, and the titles of those that answer it."""

    words: str
    paragraphs: dict[str, str]
    gold: frozenset[str]


@dataclass(frozen=True)
class Scores:
    """Means over the questions."""

    documents: int
    questions: int
    recall: dict[int, float]
    """Share of the gold documents among the first so many results."""
    complete: float
    """Share of the questions with all gold documents among the first ten."""
    reciprocal_rank: float
    """Of the first gold document."""
    index_s: float
    query_ms: float


def questions_in(path: Path, most: int | None = None) -> list[Question]:
    """The questions of a file, or its first ones."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[:most]]
    return [
        Question(
            words=row["question"],
            paragraphs={one["title"]: "".join(one["sentences"]) for one in row["context"]},
            gold=frozenset(title for title, _ in row["supporting_facts"]),
        )
        for row in rows
    ]


async def measure(questions: Iterable[Question], folder: Path) -> Scores:
    """Write the paragraphs as files, index them, ask every question."""
    asked = list(questions)
    texts = {title: text for question in asked for title, text in question.paragraphs.items()}
    names = {f"{number:04d}.md": title for number, title in enumerate(sorted(texts))}
    pages = folder / "pages"
    pages.mkdir()
    for name, title in names.items():
        (pages / name).write_text(f"# {title}\n\n{texts[title]}\n", encoding="utf-8")
    async with Parser() as parser, Corpus(pages, folder / "index.sqlite", parser) as corpus:
        started = time.perf_counter()
        await corpus.overview()
        indexed = time.perf_counter()
        found: list[list[str]] = []
        for question in asked:
            answer = await corpus.search(question.words, max_results=max(DEPTHS))
            found.append([names[hit.path] for hit in answer.hits])
        done = time.perf_counter()
    return _scores(asked, found, len(names), indexed - started, (done - indexed) * 1000 / max(1, len(asked)))


def _scores(asked: list[Question], found: list[list[str]], documents: int, index_s: float, query_ms: float) -> Scores:
    pairs = list(zip(asked, found, strict=True))
    ranks = [
        next((1 / place for place, title in enumerate(titles, 1) if title in question.gold), 0.0)
        for question, titles in pairs
    ]
    return Scores(
        documents=documents,
        questions=len(asked),
        recall={depth: _mean(_recall(question, titles[:depth]) for question, titles in pairs) for depth in DEPTHS},
        complete=_mean(_recall(question, titles) == 1 for question, titles in pairs),
        reciprocal_rank=_mean(ranks),
        index_s=index_s,
        query_ms=query_ms,
    )


def _recall(question: Question, titles: list[str]) -> float:
    return len(question.gold.intersection(titles)) / len(question.gold)


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / max(1, len(numbers))


def table(scores: Scores) -> str:
    """The scores as people read them."""
    rows = [
        ("documents", f"{scores.documents}"),
        ("questions", f"{scores.questions}"),
        *((f"recall@{depth}", f"{value:.3f}") for depth, value in scores.recall.items()),
        ("all gold in 10", f"{scores.complete:.3f}"),
        ("MRR", f"{scores.reciprocal_rank:.3f}"),
        ("indexing", f"{scores.index_s:.2f} s"),
        ("a question", f"{scores.query_ms:.1f} ms"),
    ]
    return "\n".join(f"{name:<16}{value:>10}" for name, value in rows)


def main() -> int:
    """Measure and print; without the data, say so."""
    if not DATA.is_file():
        sys.stdout.write(f"skipped: no questions at {DATA}\n")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        scores = asyncio.run(measure(questions_in(DATA), Path(folder)))
    sys.stdout.write(f"Search over a folder, {DATA.name}\n{table(scores)}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
