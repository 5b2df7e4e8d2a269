"""Folders of public benchmarks: read as they are published, graded by a model within the limits, and resumable."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from command import explorer_here
from explorer.evaluation.grading import Grade, grade_in, mean_grades
from explorer.evaluation.questions import Criterion, Rubric, read_questions, read_reports
from explorer.schema.errors import ConfigError, NotFoundError
from explorer.schema.messages import JsonObject
from model_servers import Asked, OpenAIServer, Reply

NOTES = "# Ropes\n\nThe main rope costs 412 euros. It was bought in 2024 from a sailmaker in Hull.\n"
QUESTION = "What does the main rope cost?"


def lines(path: Path, *rows: JsonObject) -> None:
    """Write a file of JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def compared_folder(folder: Path) -> Path:
    """DeepResearch Bench's layout, with one question of two qualities and three criteria, and a second without any."""
    prompt = {"id": 7, "prompt": QUESTION}
    lines(
        folder / "data/prompt_data/query.jsonl",
        {**prompt, "language": "en"},
        {"id": 8, "prompt": "Who sold it?", "language": "en"},
    )
    lines(
        folder / "data/criteria_data/criteria.jsonl",
        {
            **prompt,
            "dimension_weight": {"insight": 0.75, "readability": 0.25},
            "criterions": {
                "insight": [
                    {"criterion": "Price", "explanation": "Is it named?", "weight": 0.5},
                    {"criterion": "Seller", "explanation": "Is he named?", "weight": 0.5},
                ],
                "readability": [{"criterion": "Short", "explanation": "Is it short?", "weight": 1.0}],
            },
        },
    )
    lines(folder / "data/test_data/cleaned_data/reference.jsonl", {**prompt, "article": "It costs 412 euros."})
    lines(folder / "data/test_data/raw_data/other.jsonl", {**prompt, "article": "Some ropes cost more than others."})
    (folder / "results/race/other").mkdir(parents=True)
    (folder / "results/race/other/race_result.txt").write_text("Insight: 0.4051\nOverall Score: 0.4218\n")
    return folder


def met_folder(folder: Path) -> Path:
    """DeepResearch Bench II's layout."""
    content = {"rubric": {"info_recall": ["Names 412 euros", "Names 2024"], "analysis": ["Names a blocked figure"]}}
    content |= {"blocked": {"title": "Ropes of Hull", "urls": ["https://ropes.example/"]}}
    lines(folder / "tasks_and_rubrics.jsonl", {"id": "task1", "idx": 3, "prompt": QUESTION, "content": content})
    return folder


def measured(cwd: Path, *words: str, settings: dict[str, str], code: int = 0) -> tuple[JsonObject, str]:
    """The object that the command prints, and what it says."""
    settings = {**settings, "EXPLORER_CORPUS": str(cwd / "notes")}
    done = explorer_here("eval", *words, "--model", "offline", "--output-format", "json", cwd=cwd, settings=settings)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout), done.stderr


def test_benchmarks_are_read_as_they_are_published(tmp_path: Path) -> None:
    """Weights are shares of the whole; a question without criteria has no rubric; the blocked publication is kept."""
    first, second = read_questions(str(compared_folder(tmp_path / "one")))
    assert (first.id, second.rubric) == ("7", None)
    assert first.rubric is not None
    assert [(one.part, one.weight) for one in first.rubric.criteria] == [
        ("insight", 0.375),
        ("insight", 0.375),
        ("readability", 0.25),
    ]
    assert first.rubric.reference == "It costs 412 euros."
    (only,) = read_questions(str(met_folder(tmp_path / "two")))
    assert only.rubric is not None
    assert [one.part for one in only.rubric.criteria] == ["info_recall", "info_recall", "analysis"]
    assert "ropes.example" in only.rubric.blocked
    with pytest.raises(NotFoundError, match="known benchmark"):
        read_questions(str(tmp_path))


def test_reports_of_others_are_read_from_a_file_or_a_folder(tmp_path: Path) -> None:
    """By question; none at all is an error, and so is a line without a report."""
    folder = compared_folder(tmp_path / "one")
    questions = read_questions(str(folder))
    found = read_reports(folder / "data/test_data/raw_data/other.jsonl", questions)
    assert found == {"7": "Some ropes cost more than others.", "8": ""}
    with pytest.raises(NotFoundError, match="has no report"):
        read_reports(tmp_path, questions)
    lines(tmp_path / "broken.jsonl", {"id": 7})
    with pytest.raises(ConfigError, match="line 1 is not a report") as caught:
        read_reports(tmp_path / "broken.jsonl", questions)
    assert '"article"' in caught.value.hint


def grades(asked: Asked, *, is_compared: bool) -> Reply:
    """A grader that looks for `412` and `2024`, or gives each criterion points by it."""
    if asked.results:
        return Reply(text="Graded.")
    task = str(asked.body["messages"][-1]["content"])
    if not is_compared:
        report = task.split("\nReport:")[1]
        met = ["412" in report, "2024" in report, -1]
        rows: list[Any] = [{"criterion": number, "met": int(one)} for number, one in enumerate(met, start=1)]
    else:
        both = re.split(r"Report [AB]:", task)[1:]
        a, b = (8 if "412" in text else 2 for text in both)
        rows = [{"criterion": number, "a": a, "b": b} for number in (1, 2, 3)]
    return Reply(calls=[("give_answer", {"grades": rows})])


@pytest.mark.slow
def test_a_report_is_compared_with_the_reference_and_with_another_system(tmp_path: Path) -> None:
    """Ours and theirs get points next to the reference; a second command asks nothing; the bill is within the limit."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "ropes.md").write_text(NOTES)
    folder = compared_folder(tmp_path / "bench")
    words = (str(folder), "--limit", "1", "--grader", "openai:any", "--max-total-cost", "1", "--max-cost", "0.5")
    words += ("--against", str(folder / "data/test_data/raw_data/other.jsonl"), "--out", "out")
    with OpenAIServer(lambda asked: grades(asked, is_compared=True)) as server:
        settings = {"OPENAI_BASE_URL": server.url, "EXPLORER_PRICE": "1/5"}
        facts, _ = measured(tmp_path, *words, settings=settings)
        requests = len(server.requests)
        again, _ = measured(tmp_path, *words, settings=settings)
        assert len(server.requests) == requests >= 2
    assert again == facts
    assert facts["grades"]["overall"]["mean"] == pytest.approx(0.5)
    assert facts["grades"]["insight"]["n"] == 1
    assert facts["compared"][0]["grades"]["overall"]["mean"] == pytest.approx(0.2)
    row = json.loads((tmp_path / facts["reports"]).read_text())
    assert (row["id"], row["prompt"]) == (7, QUESTION)
    assert "412 euros" in row["article"]


@pytest.mark.slow
def test_criteria_are_met_or_not(tmp_path: Path) -> None:
    """What rests on the blocked publication counts as not met, and is counted; people see the grade as a table."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "ropes.md").write_text(NOTES)
    name = str(met_folder(tmp_path / "bench"))
    with OpenAIServer(lambda asked: grades(asked, is_compared=False)) as server:
        settings = {"OPENAI_BASE_URL": server.url, "EXPLORER_PRICE": "1/5"}
        facts, _ = measured(tmp_path, name, "--grader", "openai:any", settings=settings)
        grade = facts["questions"][0]["grade"]
        page = explorer_here(
            "eval", name, "--model", "offline", "--grader", "openai:any", cwd=tmp_path, settings=settings
        )
    assert grade["parts"] == {"info_recall": 0.5, "analysis": 0.0}
    assert (grade["graded"], grade["criteria"], grade["blocked"]) == (3, 3, 1)
    assert re.search(r"overall +1 +33\.3", page.stdout), page
    assert "Graded by openai:any: 3 of 3 criteria" in page.stdout


@pytest.mark.slow
def test_a_grader_that_hands_over_nothing_is_named(tmp_path: Path) -> None:
    """The report has no grade, and the command says how to ask again; a set without criteria needs no grader."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "ropes.md").write_text(NOTES)
    name = str(met_folder(tmp_path / "bench"))
    with OpenAIServer(lambda _asked: Reply(text="A fine report.")) as server:
        settings = {"OPENAI_BASE_URL": server.url, "EXPLORER_PRICE": "1/5"}
        facts, _ = measured(tmp_path, name, "--grader", "openai:any", settings=settings)
        assert facts["grades"] == {}
        assert "the grader gave no grades; to ask again, delete" in facts["questions"][0]["error"]
        (journal,) = (tmp_path / "eval").glob("*/grades/*/.explorer/journal.jsonl")
        journal.write_text("no journal\n" + journal.read_text())
        damaged, _ = measured(tmp_path, name, "--grader", "openai:any", settings=settings)
    assert damaged["questions"][0]["status"] == "complete"
    assert "journal" in damaged["questions"][0]["error"]
    refused = explorer_here("eval", "sample", "--model", "offline", "--grader", "offline", cwd=tmp_path)
    assert (refused.returncode, "no criteria" in refused.stderr) == (2, True), refused.stderr


def test_means_have_intervals(tmp_path: Path) -> None:
    """One grade says nothing of the others; the interval of several gets narrower with their number."""
    some = [Grade(total=value, parts={"insight": value}, graded=1, criteria=1) for value in (0.4, 0.5, 0.6)]
    few, many = mean_grades(some)["overall"], mean_grades(some * 10)["overall"]
    assert few.mean == pytest.approx(many.mean) == pytest.approx(0.5)
    assert few.low < many.low < 0.5 < many.high < few.high
    assert mean_grades([]) == {}
    rubric = Rubric(criteria=(Criterion(part="insight", text="Price"),))
    assert grade_in(tmp_path / "nowhere", rubric, "") is None
