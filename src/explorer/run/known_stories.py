"""Stories that a report writes up although an earlier day has them, where the library has one report a story for good.

The library itself refuses a second report. The front page of the day is a file like any other, so it is looked at here:
a writer is told once, and what is in it then all the same is taken out, or marked, when the run's report is made.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from explorer.reports.library import StoredReport
from explorer.schema.errors import ToolError
from explorer.schema.events import Source
from explorer.schema.reasons import ErrorCode
from explorer.text.citations import CITATION, cited_ids
from explorer.text.rendering import own
from explorer.text.sanitize import single_line
from explorer.text.urls import page_key

HEADING = re.compile(r"^(?=#{2,6} )", re.MULTILINE)
"""The places of headings below a report's title: each begins what is written up as a story of its own."""
FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
ADDRESS = re.compile(r"https?://[^\s<>\"')\]。，；：！？、）】》]*[^\s<>\"')\]。，；：！？、）】》.,;:!?*_]")
"""An address in a text, without the punctuation behind it."""
DISCUSSION = "https://news.ycombinator.com/item?id="
MARKUP = re.compile(r"[\[\]\\`*_<>!]")
MAX_NAMED = 5
KNOWN = {"en": "Written up on an earlier day", "zh": "已在库中，此前已报道", "de": "An einem früheren Tag beschrieben"}
"""The heading of the list of what was taken out."""
MARK = {
    "en": "Written up on an earlier day: {names}",
    "zh": "此前已报道：{names}",
    "de": "An einem früheren Tag beschrieben: {names}",
}
"""What stands in a section that has something else, too."""


@dataclass(frozen=True)
class LibraryBefore:
    """The library as it was before a run."""

    reports: Iterable[StoredReport]
    """All its reports now."""
    run_id: str
    """The run; what it wrote itself is new."""
    began: str = ""
    """When the run began, in ISO form: what came later is no news of before. Empty: it is not known."""

    def stories(self) -> Iterator[StoredReport]:
        """Yield the reports that were there."""
        return (one for one in self.reports if self._was_there(one))

    def _was_there(self, report: StoredReport) -> bool:
        fields = report.fields
        if fields is None or self.run_id in fields.run:
            return False
        try:
            return not self.began or datetime.fromisoformat(fields.created) < datetime.fromisoformat(self.began)
        except (ValueError, TypeError):  # a file that somebody wrote by hand: no moment, or one without a zone
            return True


def repeated_stories(draft: str, sources: Mapping[str, Source], library: LibraryBefore) -> list[StoredReport]:
    """Return the reports on stories that a draft has under a heading, and that this run added nothing to.

    A story that is only mentioned, such as in the sentence that says what was known already, is none of them.

    Args:
        draft: The report, with citations of sources.
        sources: The sources of the run.
        library: The library before the run.
    """
    written_up = {key for section in HEADING.split(draft)[1:] for key in _pages_of(section, sources)}
    return [one for one in library.stories() if not written_up.isdisjoint(_pages_of_report(one))]


@dataclass
class _Section:
    """A heading of a draft with what follows it, up to the next one."""

    text: str
    repeated: Sequence[StoredReport]
    """The earlier reports on the stories in it."""
    has_other_pages: bool

    @property
    def level(self) -> int:
        """The level of its heading."""
        return len(self.text) - len(self.text.lstrip("#"))

    @property
    def is_heading_alone(self) -> bool:
        """Whether nothing follows its heading."""
        return not self.text.partition("\n")[2].strip()

    @property
    def is_known(self) -> bool:
        """Whether all pages in it are of stories of earlier days."""
        return bool(self.repeated) and not self.has_other_pages

    def marked(self, language: str) -> str:
        """Return its text, with the reports that its reader knows below the heading."""
        if not self.repeated:
            return self.text
        head, _, rest = self.text.partition("\n")
        names = ", ".join(map(_name_of, self.repeated))
        line = f"*{MARK[language].format(names=names)}*"
        return f"{head}\n\n{line}\n\n" + rest.removeprefix("\n")


def without_repeated(draft: str, sources: Mapping[str, Source], library: LibraryBefore, language: str) -> str:
    """Return a draft without the sections on stories that the library had before the run.

    They become a list at its end, with the names of the earlier reports. A section that cites other pages as well may
    say something new, so it stays, with a line that names the earlier reports.

    Args:
        draft: The report, with citations of sources.
        sources: The sources of the run.
        library: The library before the run.
        language: The language of the fixed words: `en` or `zh`.
    """
    known = _by_page(library.stories())
    beginning, *texts = HEADING.split(draft)
    sections = [_section(text, frozenset(_pages_of(text, sources)), known) for text in texts]
    # What is between fences is no heading; a draft with fences keeps its text, and its sections are marked only.
    taken_out = set[int]() if FENCE.search(draft) else _known(sections)
    kept = [one.marked(language) for number, one in enumerate(sections) if number not in taken_out]
    gone = {one.name: one for number in sorted(taken_out) for one in sections[number].repeated}
    text = "".join([beginning, *kept])
    if not gone:
        return text
    lines = "\n".join(f"- {_title_of(one)} ({_name_of(one)})" for one in gone.values())
    return f"{text.rstrip()}\n\n## {KNOWN[language]}\n\n{lines}\n"


def _by_page(reports: Iterable[StoredReport]) -> Mapping[str, list[StoredReport]]:
    """Return reports by the pages of their stories."""
    found: dict[str, list[StoredReport]] = {}
    for one in reports:
        for page in _pages_of_report(one):
            found.setdefault(page, []).append(one)
    return found


def _section(text: str, pages: frozenset[str], known: Mapping[str, list[StoredReport]]) -> _Section:
    repeated = {one.name: one for page in sorted(pages) for one in known.get(page, ())}
    return _Section(text, list(repeated.values()), not all(page in known for page in pages))


def _known(sections: Sequence[_Section]) -> set[int]:
    """Return the numbers of the sections that have nothing but known stories, with headings that then head nothing."""
    found = {number for number, one in enumerate(sections) if one.is_known}
    for number in reversed(range(len(sections))):
        one = sections[number]
        below = list[int]()
        for other in range(number + 1, len(sections)):
            if sections[other].level <= one.level:
                break
            below.append(other)
        if below and one.is_heading_alone and found.issuperset(below):
            found.add(number)
    return found


def _title_of(report: StoredReport) -> str:
    """Return a report's title as plain words, without links and images: the library's files are not trusted."""
    title = report.fields.title if report.fields is not None else ""
    return MARKUP.sub(r"\\\g<0>", single_line(CITATION.sub("", title)).strip())


def _name_of(report: StoredReport) -> str:
    """Return a report's name as code."""
    name = single_line(report.name).replace("`", "'")
    return f"`{name}`"


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
