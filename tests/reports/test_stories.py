"""Stories of two runs are paired by their page or their article, never by their words."""

from collections.abc import Sequence
from datetime import UTC, datetime

from explorer.journal.run_state import LookupRecord, RunState
from explorer.reports.compare import RunSnapshot, RunSummary, compare_runs, comparison_page
from explorer.reports.stories import RankedStory, StoryChange, compared_stories, listed_stories, story_lines
from explorer.schema.events import Lookup, Source
from explorer.schema.messages import JsonObject

HN = "https://news.ycombinator.com/item?id={}"


def source(name: str, url: str) -> Source:
    """A stored story."""
    at = datetime(2026, 8, 10, tzinfo=UTC)
    return Source(id=name, url=url, title="", kind="story", via="hackernews", retrieved=at, sha256="", chars=1)


def run(
    *stories: tuple[int, str, int, int], asked: JsonObject | None = None
) -> tuple[list[RankedStory], dict[str, Source]]:
    """The stories of a list, given by id, title, points and comments, and their sources."""
    sources = {f"S{place}": source(f"S{place}", HN.format(one[0])) for place, one in enumerate(stories, 1)}
    facts = tuple(
        {"source": f"S{place}", "id": item, "title": title, "url": f"https://a.example/{title}", "points": points}
        | {"comments": comments}
        for place, (item, title, points, comments) in enumerate(stories, 1)
    )
    record = LookupRecord("get_hn_stories", asked or {"story_type": "top"}, Lookup.FOUND, "", facts)
    return listed_stories([record], sources), sources


def changes(before: Sequence[RankedStory], after: Sequence[RankedStory]) -> dict[str, str]:
    """The difference of each story by its title."""
    found = compared_stories(before, after)
    return {story.title: str(one.change) for one in found if (story := one.after or one.before)}


def test_each_story_has_one_difference() -> None:
    """New, gone, moved, more comments, same: by its id, whatever its title and figures are."""
    before, _ = run((1, "one", 10, 5), (2, "two", 10, 5), (3, "three", 10, 5), (4, "four", 10, 5), (9, "last", 10, 5))
    after, _ = run((1, "one", 90, 5), (2, "two", 10, 8), (4, "four", 10, 5), (3, "three", 12, 9), (5, "five", 10, 5))
    assert changes(before, after) == {
        "one": "same",
        "two": "more comments",
        "four": "moved",
        "three": "moved",
        "five": "new",
        "last": "gone",
    }


def test_a_story_submitted_again_is_the_same_by_its_article() -> None:
    """Its page on the site is another one, but what it links to is not; `www` and tracking do not count."""
    before, _ = run((1, "one", 10, 5))
    after, _ = run((7, "one", 3, 9))
    (found,) = compared_stories(before, after)
    assert (found.change, found.before and found.before.url) == (StoryChange.MORE_COMMENTS, HN.format(1))
    assert list(story_lines([found]))[-1].endswith(": place 1, points 10 → 3, comments 5 → 9 `S1`")


def test_places_of_different_lists_are_not_compared() -> None:
    """The third of the newest has not moved to the first of the best; the result of a search has no place at all."""
    before, _ = run((1, "one", 10, 5), (2, "two", 10, 5))
    after, _ = run((2, "two", 10, 5), (1, "one", 10, 5), asked={"story_type": "new"})
    assert set(changes(before, after).values()) == {"same"}
    longer, _ = run((2, "two", 10, 5), (1, "one", 10, 5), asked={"story_type": "top", "limit": 9})
    assert set(changes(before, longer).values()) == {"moved"}
    searched, _ = run((2, "two", 10, 5), (1, "one", 10, 5), asked={"query": "one"})
    assert {one.place for one in searched} == {None}


def test_what_is_not_a_story_is_passed_over() -> None:
    """Data of another version, or of a tool of somebody's own, breaks nothing."""
    odd: tuple[JsonObject, ...] = ({"title": 7}, {"source": "S1", "title": "no such source"})
    assert listed_stories([LookupRecord("mine", {}, Lookup.FOUND, "", odd)], {}) == []
    assert listed_stories(RunState().lookups.values(), {}) == []


def snapshot(name: str, stories: Sequence[RankedStory], sources: dict[str, Source], report: str) -> RunSnapshot:
    """A run with a report."""
    return RunSnapshot(RunSummary(run_id=name, question="?", started=None, status=""), sources, report, str, stories)


def test_sentences_about_different_stories_are_never_paired() -> None:
    """Alike but for their figures, they are about different things; what is said of new stories is not said twice."""
    line = "# T\n\n**Why notable:** it has {} points and {} comments so far, and rose at {} points an hour [1].\n\n"
    refs = "## References\n\n1. Title. a.example `S1`\n"
    sides = [
        snapshot(name, *run((item, name, points, 7)), line.format(points, 7, points) + refs)
        for name, item, points in (("one", 1, 451), ("two", 2, 440))
    ]
    found = compare_runs(*sides)
    assert (found.changed_claims, found.new_claims, found.gone_claims) == ((), (), ())
    assert found.differs
    page = comparison_page(found)
    assert "## Stories: 1 new, 1 gone, 0 moved, 0 with more comments, 0 the same" in page
    assert f"\nNew:\n\n- two, {HN.format(2)}: place 1, points 440, comments 7 `S1`\n" in page
    apart = compare_runs(*(RunSnapshot(one.summary, one.sources, one.report, str) for one in sides))
    assert (len(apart.changed_claims), len(apart.new_claims), len(apart.gone_claims)) == (0, 1, 1)


def test_the_page_is_cut_and_says_so() -> None:
    """A list of hundreds is not printed whole."""
    after, _ = run(*((n, f"n{n}", 1, 1) for n in range(60)))
    lines = list(story_lines(compared_stories([], after)))
    assert lines[-1] == "- ... and 20 more"


def test_a_title_stays_on_its_line() -> None:
    """Line breaks in what a site says start no line of ours."""
    stories, _ = run((1, "one\n## Gone\n- x", 1, 1))
    assert stories[0].title == "one ## Gone - x"
