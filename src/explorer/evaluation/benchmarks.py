"""Public benchmarks in the folders that their users downloaded: questions, criteria, and reports of other systems.

DeepResearch Bench (github.com/Ayanami0730/deep_research_bench): weighted criteria, and a reference report to compare
with. DeepResearch Bench II (github.com/imlrz/DeepResearch-Bench-II): criteria that a report meets or not.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from explorer.evaluation.news_days import is_days, read_days
from explorer.evaluation.questions import Criterion, EvalQuestion, Rubric, checked_set, read_lines, read_set
from explorer.schema.errors import NotFoundError
from explorer.schema.messages import JsonObject
from explorer.text.frontmatter import without_frontmatter

T = TypeVar("T")
QUERIES = Path("data", "prompt_data", "query.jsonl")
CRITERIA = Path("data", "criteria_data", "criteria.jsonl")
REFERENCES = Path("data", "test_data", "cleaned_data", "reference.jsonl")
RACE_FILE = Path("results", "race")
FACT_FILE = Path("results", "fact")
RUBRICS = "tasks_and_rubrics.jsonl"
REPORTS_FILE = "reports.jsonl"
AS_PUBLISHED = "take the file as the benchmark's authors publish it"
REPORT_FORM = 'a line is, for example: {"id": "q1", "article": "# The report ..."}'


def read_questions(name: str, limit: int = 0) -> tuple[EvalQuestion, ...]:
    """Read a set of questions, or those of a benchmark's folder.

    Args:
        name: `sample`, a file with one JSON object a line, or the folder of a benchmark.
        limit: The number of questions to take from the beginning; 0: all.

    Returns:
        At least one question, in the file's order.

    Raises:
        NotFoundError: There is no such file, or the folder is of no known benchmark.
        ConfigError: A line is not as it should be, or two questions have the same id.
    """
    folder = Path(name).expanduser()
    if not folder.is_dir():
        return read_set(name, limit)
    if (folder / QUERIES).is_file():
        return checked_set(folder, _compared(folder), limit)
    if (folder / RUBRICS).is_file():
        return checked_set(folder, read_lines(folder / RUBRICS, _with_rubrics, form=AS_PUBLISHED), limit)
    if is_days(folder):
        return checked_set(folder, read_days(folder), limit)
    hint = f"DeepResearch Bench has {QUERIES}, DeepResearch Bench II has {RUBRICS}, recorded days are YYYY-MM-DD.json"
    raise NotFoundError(f"{folder} is not the folder of a known benchmark", hint=hint)


def _compared(folder: Path) -> Iterator[EvalQuestion]:
    """Yield the questions of DeepResearch Bench; one without criteria or reference has no rubric."""
    criteria = _by_prompt(folder / CRITERIA, _weighted, "the criteria of a question")
    references = _by_prompt(folder / REFERENCES, _article, "a report")
    for one in read_lines(folder / QUERIES, _plain, form=AS_PUBLISHED):
        found, reference = criteria.get(one.question, ()), references.get(one.question, "")
        rubric = Rubric(criteria=found, reference=reference) if found and reference else None
        yield one.model_copy(update={"rubric": rubric})


def _by_prompt(path: Path, read: Callable[[Mapping[str, Any]], T], kind: str) -> dict[str, T]:
    if not path.is_file():
        return {}
    return dict(read_lines(path, lambda line, _number: (str(line["prompt"]).strip(), read(line)), kind, AS_PUBLISHED))


def _plain(line: Mapping[str, Any], _number: int) -> EvalQuestion:
    return EvalQuestion(id=str(int(line["id"])), question=str(line["prompt"]).strip())


def _article(line: Mapping[str, Any]) -> str:
    return str(line["article"]).strip()


def _weighted(line: Mapping[str, Any]) -> tuple[Criterion, ...]:
    """Return criteria whose weights are their shares of the whole grade."""
    found: list[Criterion] = []
    for part, share in line["dimension_weight"].items():
        some = line["criterions"][part]
        total = sum(float(one["weight"]) for one in some)
        found += [
            Criterion(
                part=str(part),
                text=f"{one['criterion']}: {one['explanation']}",
                weight=float(share) * float(one["weight"]) / total,
            )
            for one in some
        ]
    return tuple(found)


def _with_rubrics(line: Mapping[str, Any], _number: int) -> EvalQuestion:
    content = line["content"]
    criteria = tuple(
        Criterion(part=str(part), text=str(text)) for part, texts in content["rubric"].items() for text in texts
    )
    blocked = json.dumps(content["blocked"], ensure_ascii=False) if content.get("blocked") else ""
    return EvalQuestion(
        id=str(int(line["idx"])),
        question=str(line["prompt"]).strip(),
        rubric=Rubric(criteria=criteria, blocked=blocked) if criteria else None,
    )


def read_reports(path: Path, questions: Sequence[EvalQuestion]) -> dict[str, str]:
    """Read reports of another system: a folder with one `ID.md` a question, or a file of lines with `id` and `article`.

    Returns:
        The reports by question; empty texts where there is none.

    Raises:
        NotFoundError: None of the questions has a report there.
        ConfigError: A line is not a report.
    """
    if path.is_file():
        found = dict(read_lines(path, lambda line, _number: (str(line["id"]), _article(line)), "a report", REPORT_FORM))
    else:
        files = {question.id: path / f"{question.id}.md" for question in questions}
        found = {
            name: file.read_text(encoding="utf-8", errors="replace") for name, file in files.items() if file.is_file()
        }
    if not any(question.id in found for question in questions):
        raise NotFoundError(f"{path} has no report", hint=f"name each by its question: {questions[0].id}.md")
    return {question.id: found.get(question.id, "") for question in questions}


def published(folder: Path, system: str) -> str:
    """Return what a benchmark's folder says of a system itself: one line for people; empty where it says nothing."""
    files = [folder / RACE_FILE / system / "race_result.txt", folder / FACT_FILE / system / "fact_result.txt"]
    return "; ".join(
        ", ".join(line.strip() for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if line)
        for path in files
        if path.is_file()
    )


def write_reports(folder: Path, questions: Sequence[EvalQuestion]) -> Path | None:
    """Write the reports of a set's runs as one file, in the form that DeepResearch Bench's own scripts read.

    Args:
        folder: The folder of the evaluation.
        questions: The set.

    Returns:
        The file; None when there is no report yet.
    """
    rows: list[JsonObject] = []
    for one in questions:
        path = folder / "runs" / one.id / "report.md"
        if path.is_file():
            article = without_frontmatter(path.read_text(encoding="utf-8", errors="replace"))
            rows.append({"id": int(one.id) if one.id.isdigit() else one.id, "prompt": one.question, "article": article})
    if not rows:
        return None
    target = folder / REPORTS_FILE
    target.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return target
