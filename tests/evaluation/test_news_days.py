"""News days: a recorded day is served to a run without the network, and its digest is measured against the day."""

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from command import explorer_here
from conftest import SHARED_DATA
from explorer.evaluation.news_days import biggest
from explorer.evaluation.questions import read_questions
from explorer.evaluation.scoring import score_text, shares
from explorer.schema.messages import JsonObject

NOON = 1_786_449_600
"""12:00 UTC on 11 August 2026."""


def hit(number: int, **fields: object) -> JsonObject:
    """A story as the search service gives it."""
    return {
        "objectID": str(number),
        "title": f"Story number {number} of ropes",
        "url": f"https://ropes.example/{number}",
        "author": "ann",
        "points": 500 - number,
        "num_comments": 300 - number,
        "created_at_i": NOON - 60 * number,
        "_tags": ["story", "author_ann"],
        **fields,
    }


@pytest.fixture
def days(tmp_path: Path) -> Path:
    """A folder with an invented day of forty stories; one of them is big by its comments, another one by neither."""
    folder = tmp_path / "days"
    folder.mkdir()
    stories = [hit(number) for number in range(101, 139)]
    stories += [hit(139, points=3, num_comments=900), hit(140, points=1, num_comments=0)]
    articles = {str(number): f"Rope {number} holds {number} kilograms. " * 8 for number in range(101, 106)}
    (folder / "2026-08-11.json").write_text(json.dumps({"hits": stories, "articles": articles}))
    return folder


def measured(cwd: Path, *words: str, code: int = 0) -> JsonObject:
    """The object that the command prints."""
    done = explorer_here("eval", *words, "--output-format", "json", cwd=cwd)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def test_a_digest_is_measured_against_its_day(days: Path) -> None:
    """Names, links, discussions of other days, and figures: each mistake is counted where it was made."""
    (question,) = read_questions(str(days))
    assert question.question == "What was notable on Hacker News on 11 August 2026?"
    assert question.day is not None
    wanted = [story.id for story in biggest(question.day, 10)]
    assert (wanted[:3], 139 in wanted, 140 in wanted) == ([101, 102, 103], False, False)
    item = "https://news.ycombinator.com/item?id="
    report = "\n".join(
        [
            f"- [A rope]({item}101): 399 points and 198 comments.",  # the second figure is wrong
            "- “Story Number 102 of ropes” is discussed. 12 points",  # of no story that is linked
            f"- See https://ropes.example/103 and [more]({item}135), [other]({item}7).",
            f"- [Both]({item}104) and [both]({item}105): 395 points",  # whose they are is not said
        ]
    )
    score = score_text(question, report)
    assert (score.stories, score.stories_of, score.discussed) == (5, 10, 3)
    assert (score.linked, score.linked_of_day, score.linked_notable) == (5, 4, 3)
    assert (score.figures, score.figures_right) == (2, 1)
    assert shares([score])["biggest stories named"].count == 5
    assert score_text(question, "").stories == 0


@pytest.mark.slow
def test_a_recorded_day_is_explored_without_the_network(days: Path, tmp_path: Path) -> None:
    """Offline mode finds the day's stories, their figures and articles; measured again, nothing changes."""
    first = measured(tmp_path, str(days), "--model", "offline")
    found: dict[str, Any] = first["measures"]
    assert found["biggest stories named"]["count"] >= 8
    assert found["discussions of that day"]["share"] == found["points and comments right"]["share"] == 1.0
    assert found["points and comments right"]["n"] >= 10
    assert "right" in found
    assert measured(tmp_path, str(days), "--model", "offline") == first
    report = (tmp_path / "eval/days/runs/day-2026-08-11/report.md").read_text()
    assert "Rope 101 holds 101 kilograms." in report
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/day-2026-08-11.md").write_text("- Story number 101 of ropes")
    compared = explorer_here("eval", str(days), "--model", "offline", "--against", "theirs", cwd=tmp_path)
    assert "biggest stories named" in compared.stdout.split("QUESTION BY QUESTION")[1]


@pytest.mark.slow
def test_real_days_are_explored(tmp_path: Path) -> None:
    """Seven days as the search service gave them: no wrong figure and no discussion of another day."""
    hits = SHARED_DATA / "hn_snapshot/algolia/hits_2026-08-10_16.verbatim.jsonl.gz"
    if not hits.is_file():
        pytest.skip(f"there are no recorded days at {hits}")
    stories: dict[str, list[JsonObject]] = defaultdict(list)
    for line in gzip.decompress(hits.read_bytes()).splitlines():
        story = json.loads(line)
        if "story" in story["_tags"]:
            stories[story["created_at"][:10]].append(story)
    folder = tmp_path / "days"
    folder.mkdir()
    for day in ("2026-08-11", "2026-08-13"):
        (folder / f"{day}.json").write_text(json.dumps({"hits": stories[day]}))
    found: dict[str, Any] = measured(tmp_path, "days", "--model", "offline")["measures"]
    assert found["report present"]["count"] == 2
    assert found["biggest stories named"]["count"] >= 12
    assert found["discussions of that day"]["share"] == found["points and comments right"]["share"] == 1.0


@pytest.mark.parametrize("content", ["", "[]", '{"hits": []}', '{"hits": [{"objectID": "x"}]}', '{"hits": 7}'])
def test_a_file_that_is_no_day_is_named(tmp_path: Path, content: str) -> None:
    """2, with the form of a day."""
    folder = tmp_path / "days"
    folder.mkdir()
    (folder / "2026-08-11.json").write_text(content)
    done = explorer_here("eval", "days", "--model", "offline", cwd=tmp_path)
    assert (done.returncode, "2026-08-11.json" in done.stderr, '{"hits": [...]}' in done.stderr) == (2, True, True)
