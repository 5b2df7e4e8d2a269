"""Stories that a report writes up although an earlier day has them, where the library has one report a story for good.

The library itself refuses a second report. The front page of the day is a file like any other, so it is looked at here.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from explorer.reports.library import StoredReport
from explorer.schema.errors import ToolError
from explorer.schema.events import Source
from explorer.schema.reasons import ErrorCode
from explorer.text.citations import cited_ids
from explorer.text.rendering import own
from explorer.text.urls import page_key

HEADING = re.compile(r"^#{2,6} ", re.MULTILINE)
"""Headings below a report's title: each begins what is written up as a story of its own."""
ADDRESS = re.compile(r"https?://[^\s<>\"')\]]+")
DISCUSSION = "https://news.ycombinator.com/item?id="
MAX_NAMED = 5


def repeated_stories(
    draft: str, sources: Mapping[str, Source], reports: Iterable[StoredReport], run_id: str
) -> list[StoredReport]:
    """Return the reports on stories that a draft has under a heading, and that this run added nothing to.

    A story that is only mentioned, such as in the sentence that says what was known already, is none of them.

    Args:
        draft: The report, with citations of sources.
        sources: The sources of the run.
        reports: The library.
        run_id: The run; what it wrote into the library itself is new.
    """
    written_up = {key for section in HEADING.split(draft)[1:] for key in _pages_of(section, sources)}
    return [
        one
        for one in reports
        if one.fields is not None and run_id not in one.fields.run and not written_up.isdisjoint(_pages_of_report(one))
    ]


def _pages_of(section: str, sources: Mapping[str, Source]) -> Iterator[str]:
    """Yield the pages that a part of a draft links or cites."""
    yield from map(page_key, ADDRESS.findall(section))
    yield from (page_key(sources[one].url) for one in cited_ids(section) if one in sources)


def _pages_of_report(report: StoredReport) -> Iterator[str]:
    """Yield the addresses of a report's story: the article's, and the discussion's."""
    if report.fields is not None and report.fields.url:
        yield page_key(report.fields.url)
    if report.fields is not None and report.fields.story_id:
        yield page_key(f"{DISCUSSION}{report.fields.story_id}")


def repetition_problem(repeated: Iterable[StoredReport]) -> ToolError | None:
    """Return what the writer is to correct; None where nothing is repeated."""
    names = [one.name for one in repeated]
    if not names:
        return None
    words = (
        "not finished yet, and this is said once: report.md writes up what the library had before this run: {names}. "
        "The reader has read it. Leave it out; or, if something about it is new, add that with append_report and say "
        "in one line what it is. Then finish again."
    )
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    message = own(words, names=f"{', '.join(names[:MAX_NAMED])}{more}")
    return ToolError(message, data={"code": ErrorCode.KNOWN_STORIES})
