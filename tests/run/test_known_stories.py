"""Which stories of the library a front page repeats."""

from datetime import UTC, datetime

from explorer.reports.library import StoredReport
from explorer.reports.library_page import ReportFields
from explorer.run.known_stories import repeated_stories, repetition_problem
from explorer.schema.events import Source

WHEN = datetime(2026, 3, 16, 9, tzinfo=UTC)
MOMENT = WHEN.isoformat()
ITEM = "https://news.ycombinator.com/item?id=7"


def report(name: str, run: str = "monday", story_id: str = "", url: str = "") -> StoredReport:
    fields = ReportFields(title=name, story_id=story_id, url=url, created=MOMENT, updated=MOMENT, run=(run,))
    return StoredReport(f"2026-03-16/{name}.md", fields)


def source(name: str, url: str) -> Source:
    return Source(id=name, url=url, title="t", kind="page", via="direct", retrieved=WHEN, sha256="0" * 64, chars=9)


LIBRARY = [
    report("by-id", story_id="7"),
    report("by-address", url="http://www.ropes.example/a"),
    report("of-today", run="tuesday", story_id="8"),
    StoredReport("2026-03-16/broken.md", None, "it has no frontmatter"),
]
SOURCES = {"S1": source("S1", "https://ropes.example/a"), "S2": source("S2", "https://knots.example/")}


def repeated(draft: str) -> list[str]:
    """The names of the reports that a draft of Tuesday repeats."""
    return [one.name.partition("/")[2] for one in repeated_stories(draft, SOURCES, LIBRARY, "tuesday")]


def test_a_story_under_a_heading_is_written_up() -> None:
    """By the link to its discussion or its article, or by a citation of either; new and other stories are not."""
    assert repeated(f"# Day\n\n## Ropes\n\nThey hold ([talk]({ITEM})).\n") == ["by-id.md"]
    assert repeated("# Day\n\n## Ropes\n\nThey hold [S1].\n") == ["by-address.md"]
    assert repeated("# Day\n\n## Knots\n\nThey hold [S2], see https://news.ycombinator.com/item?id=8\n") == []


def test_a_mention_repeats_nothing() -> None:
    """What is above the first heading says what was known: without headings there is no story."""
    assert repeated(f"# Day\n\nRopes are in the library [S1], {ITEM}.\n\n## Knots\n\nNew [S2].\n") == []


def test_the_problem_names_a_few_reports() -> None:
    """With the way out: leave it out, or say what is new."""
    assert repetition_problem([]) is None
    problem = repetition_problem([report(str(number)) for number in range(7)])
    assert problem is not None
    assert "2026-03-16/4.md and 2 more" in problem.message
    assert "append_report" in problem.message
