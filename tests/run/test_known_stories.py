"""Which stories of the library a front page repeats."""

from datetime import UTC, datetime

from explorer.reports.library import StoredReport
from explorer.reports.library_page import ReportFields
from explorer.run.known_stories import LibraryBefore, repeated_stories, repetition_problem, without_repeated
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
BEFORE = LibraryBefore(LIBRARY, "tuesday")
SOURCES = {"S1": source("S1", "https://ropes.example/a"), "S2": source("S2", "https://knots.example/")}


def repeated(draft: str) -> list[str]:
    """The names of the reports that a draft of Tuesday repeats."""
    return [one.name.partition("/")[2] for one in repeated_stories(draft, SOURCES, BEFORE)]


def test_a_story_under_a_heading_is_written_up() -> None:
    """By the link to its discussion or its article, or by a citation of either; new and other stories are not."""
    assert repeated(f"# Day\n\n## Ropes\n\nThey hold ([talk]({ITEM})).\n") == ["by-id.md"]
    assert repeated("# Day\n\n## Ropes\n\nThey hold [S1].\n") == ["by-address.md"]
    assert repeated(f"# Day\n\n## Ropes\n\nThey hold: {ITEM}.\n") == repeated(f"## 绳\n\n见 {ITEM}。\n") == ["by-id.md"]
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


def left(draft: str, language: str = "en") -> str:
    """What a draft of Tuesday becomes."""
    return without_repeated(draft, SOURCES, BEFORE, language)


def test_a_story_of_an_earlier_day_is_taken_out() -> None:
    """It becomes a line at the end, with the report that its reader knows; all else stays as it was."""
    new = "## Knots\n\nNew [S2].\n"
    draft = f"# Day\n\nTwo.\n\n## Ropes\n\nThey hold [S1].\n\n{new}"
    expected = f"# Day\n\nTwo.\n\n{new}\n## Written up on an earlier day\n\n- by-address (`2026-03-16/by-address.md`)\n"
    assert left(draft) == expected
    assert left(f"# Day\n\n{new}") == f"# Day\n\n{new}"
    assert "已在库中" in left(draft, "zh")


def test_headings_that_then_head_nothing_go_too() -> None:
    """A heading over known stories alone; one that has words of its own, or a new story below it, stays."""
    story = f"### Ropes\n\nThey hold, {ITEM}.\n\n"
    assert "## Old" not in left(f"# Day\n\n## Old\n\n{story}## Knots\n\nNew [S2].\n")
    assert "## Old\n\nWords." in left(f"# Day\n\n## Old\n\nWords.\n\n{story}")
    kept = left(f"# Day\n\n## Old\n\n{story}### Knots\n\nNew [S2].\n")
    assert ("## Old" in kept, "### Knots" in kept, "### Ropes" in kept) == (True, True, False)


def test_a_section_with_other_pages_is_marked() -> None:
    """It may say something new of a known story; its reader sees which report they know already."""
    marked = left("# Day\n\n## Ropes\nThey hold [S1], and knots too [S2].\n")
    line = "*Written up on an earlier day: `2026-03-16/by-address.md`*"
    assert marked == f"# Day\n\n## Ropes\n\n{line}\n\nThey hold [S1], and knots too [S2].\n"


def test_between_fences_nothing_is_taken_out() -> None:
    """What looks like a heading there is none, and half a fence would swallow the rest: such a draft is marked."""
    draft = "# Day\n\n## Ropes\n\nThey hold [S1].\n\n~~~\n## no heading\n~~~\n"
    assert "They hold [S1]." in left(draft)
    assert "*Written up on an earlier day:" in left(draft)


def test_what_the_library_says_is_words() -> None:
    """Its files are not trusted: no link, image or citation of a title reaches the report as one."""
    title = "![x](http://evil.example/a) [S1] <b>Ropes</b>"
    fields = ReportFields(title=title, url="https://ropes.example/a", created=MOMENT, updated=MOMENT, run=("monday",))
    library = [StoredReport("2026-03-16/a`b.md", fields)]
    text = without_repeated("# Day\n\n## Ropes\n\nThey hold [S1].\n", SOURCES, LibraryBefore(library, "tuesday"), "en")
    assert text.endswith("- \\!\\[x\\](http://evil.example/a) \\<b\\>Ropes\\</b\\> (`2026-03-16/a'b.md`)\n")


def test_what_later_runs_wrote_was_not_known() -> None:
    """A run that is asked further later loses nothing to the runs between; odd moments count as before."""
    draft = "# Day\n\n## Ropes\n\nThey hold [S1].\n"
    before, after = "2026-03-15T09:00:00+00:00", "2026-03-17T09:00:00+00:00"
    assert without_repeated(draft, SOURCES, LibraryBefore(LIBRARY, "sunday", before), "en") == draft
    assert "[S1]" not in without_repeated(draft, SOURCES, LibraryBefore(LIBRARY, "tuesday", after), "en")
    for moment in ("yesterday", "2026-03-17T09:00:00"):
        fields = LIBRARY[1].fields
        assert fields is not None
        odd = [StoredReport("a.md", fields.model_copy(update={"created": moment}))]
        assert "[S1]" not in without_repeated(draft, SOURCES, LibraryBefore(odd, "tuesday", after), "en")
