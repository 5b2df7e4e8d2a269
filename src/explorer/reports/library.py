"""The library's folder: `reports/<date>/<slug>.md`, written by one process at a time and read by any.

The files in it are not trusted: a file that is not a report is listed as unreadable and never written, and no link
leads out of the folder.
"""

import difflib
import os
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from filelock import FileLock, Timeout

from explorer.reports.library_page import (
    MAX_LINE_CHARS,
    UNNAMED,
    Contribution,
    ReportFields,
    ReportPage,
    fields_of,
    first_page,
    is_same_address,
    is_same_title,
    slug_of,
)
from explorer.schema.errors import StorageError, ToolError
from explorer.text.rendering import own
from explorer.text.sanitize import single_line
from explorer.workspace.safe_open import TEMPORARY
from explorer.workspace.workspace import Workspace

PATIENCE_S = 20.0
"""The seconds to wait for another process that is writing."""
MAX_REPORT_CHARS = 1_000_000
MAX_URL_CHARS = 4_000
MAX_LOOKED_AT = 5_000
"""The number of reports that are considered, the newest first."""
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
DAYS = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")
"""The pattern of a day, a month or a year."""
RUN_IDS = re.compile(r"\A---\n.*?\n---\n|<!--.*?-->|^## Update [^\n]*", re.DOTALL | re.MULTILINE)
"""The pattern of the parts of a report that name runs: the frontmatter, the engine's comments, headings of updates."""
HIDDEN = re.compile(r"[.~_]")
"""The pattern of the first character of names that are not reports: files of editors, and of interrupted writes."""


@dataclass(frozen=True)
class NewReport:
    """The subject of a new report."""

    title: str
    story_id: str = ""
    url: str = ""


@dataclass(frozen=True)
class StoredReport:
    """One file of the library."""

    name: str
    """The report's path in the library: `2026-08-10/slug.md`."""
    fields: ReportFields | None
    problem: str = ""
    """The reason why the file cannot be read as a report; empty when it can."""
    text: str = ""

    @property
    def day(self) -> str:
        """The day on which the report was created: `2026-08-10`."""
        return self.name.partition("/")[0]


class Library:
    """The reports in a folder.

    Args:
        folder: The library's folder, which is created with the first report.
        now: The clock in the user's zone; its date is the name of a new report's folder.
        max_wait_s: The seconds to wait for another process that is writing.
        is_once: Whether a story or topic gets one report ever, and not one a day.
    """

    def __init__(
        self, folder: Path, now: Callable[[], datetime], max_wait_s: float = PATIENCE_S, *, is_once: bool = False
    ) -> None:
        self.folder = folder
        self._now = now
        self._max_wait_s = max_wait_s
        self._is_once = is_once
        self._space = Workspace(folder)

    def create(self, new: NewReport, content: Contribution) -> str:
        """Create a report and return its name; a repeated call returns the name of the report that it created.

        Raises:
            ToolError: The text is empty, too long, or cites an id that no source of the run has; there is a report with
                the same subject, of today or, where a subject gets one report ever, of any day; or the disk refused.
        """
        with self._writing():
            made = self._made_by(content)
            if made:
                return made
            day = f"{self._now():%Y-%m-%d}"
            for stored in self._of("" if self._is_once else day):
                _refuse_double(new, stored, day)
            moment = self._now().isoformat(timespec="seconds")
            fields = ReportFields(
                title=single_line(new.title, MAX_LINE_CHARS) or UNNAMED,
                story_id=single_line(new.story_id, MAX_LINE_CHARS),
                url=single_line(new.url, MAX_URL_CHARS),
                verdict=single_line(content.verdict, MAX_LINE_CHARS),
                created=moment,
                updated=moment,
                run=(content.run,),
            )
            name = self._free_name(day, slug_of(new.title))
            self._put(name, first_page(fields, content))
            return name

    def append(self, name: str, addition: Contribution) -> tuple[str, str]:
        """Add a dated section to a report; a repeated call adds nothing.

        Returns:
            The report's name and the section's heading.

        Raises:
            ToolError: The report does not exist or is not readable; the text is empty, too long, already in the report,
                or cites an id that no source of the run has; or the disk refused.
        """
        with self._writing():
            stored = self.find(name)
            if stored.fields is None:
                raise ToolError.of(
                    "{name} cannot be added to: {problem}; it is left as it is",
                    name=stored.name,
                    problem=stored.problem,
                )
            page = ReportPage.parse(stored.text)
            title = page.update_of(addition.mark) if addition.mark else ""
            if not title:
                page, title = page.with_update(addition, self._now())
                self._put(stored.name, page)
            return stored.name, title

    def find(self, name: str) -> StoredReport:
        """Return a report by its path in the library, or by its name alone when only one report has that name.

        Raises:
            ToolError: No report matches, and the message names the closest; or several match.
        """
        wanted = name.strip().removeprefix("./").removeprefix(f"{self.folder.name}/").removesuffix(".md") + ".md"
        names = list(self._names())
        fitting = [known for known in names if known == wanted or known.partition("/")[2] == wanted]
        exact = [known for known in fitting if known == wanted]
        if len(exact or fitting) == 1:
            return self._look((exact or fitting)[0])
        if fitting:
            raise ToolError.of(
                "{name} fits {count} reports: {fitting}; give the date too",
                name=repr(name),
                count=len(fitting),
                fitting=", ".join(fitting[:5]),
            )
        close = difflib.get_close_matches(wanted, names, n=3, cutoff=0.5)
        guess = own("; close: {names}", names=", ".join(close)) if close else own("")
        raise ToolError.of("there is no report {name} in the library{guess}", name=repr(name[:200]), guess=guess)

    def stored_reports(self, date: str = "", query: str = "") -> list[StoredReport]:
        """Return the reports of a day, month or year that contain all words of a query, newest first.

        Raises:
            ToolError: The date is not valid.
        """
        words = query.casefold().split()
        return [found for found in self._of(self.days(date)) if all(word in _all_of(found) for word in words)]

    def days(self, date: str) -> str:
        """Return the beginning of the folder names that a date matches: a day for `today`, else the date as given.

        Raises:
            ToolError: The date is not valid.
        """
        ago = {"today": 0, "yesterday": 1}.get(date.strip().lower())
        if ago is not None:
            return f"{self._now() - timedelta(days=ago):%Y-%m-%d}"
        if date.strip() and not DAYS.fullmatch(date.strip()):
            raise ToolError.of(
                "date={date} is not understood: write 2026-08-10, 2026-08, today or yesterday", date=repr(date[:40])
            )
        return date.strip()

    def _of(self, days: str) -> Iterator[StoredReport]:
        return (self._look(name) for name in self._names(days))

    def _names(self, days: str = "") -> Iterator[str]:
        """Yield the names of reports, newest day first, by name within a day; links to folders are not followed."""
        found = 0
        for folder in sorted(_entries(self.folder), key=lambda entry: entry.name, reverse=True):
            if not DAY.fullmatch(folder.name) or not folder.name.startswith(days) or not _is_folder(folder):
                continue
            for file in sorted(_entries(Path(folder.path)), key=lambda entry: entry.name):
                if file.name.endswith(".md") and not HIDDEN.match(file.name) and found < MAX_LOOKED_AT:
                    found += 1
                    yield f"{folder.name}/{file.name}"

    def _look(self, name: str) -> StoredReport:
        try:
            text = self._space.read_text(name)
        except ToolError as error:
            # Without the advice on what to do instead, which is about a run's files.
            return StoredReport(name, None, error.message.partition(";")[0])
        try:
            return StoredReport(name, fields_of(text), text=text)
        except ValueError as error:
            return StoredReport(name, None, str(error), text)

    def _made_by(self, content: Contribution) -> str:
        """Return the name of the report that a call created before a crash of its run; empty when there is none."""
        if not content.mark:
            return ""
        return next((name for name in self._names() if content.mark in self._text(name)), "")

    def _text(self, name: str) -> str:
        """Return a file's text; empty when it cannot be read."""
        try:
            return self._space.read_text(name)
        except ToolError:
            return ""

    def _free_name(self, day: str, slug: str) -> str:
        number, name = 1, f"{day}/{slug}.md"
        while os.path.lexists(self.folder / name):
            number += 1
            name = f"{day}/{slug}-{number}.md"
        return name

    def _put(self, name: str, page: ReportPage) -> None:
        text = page.text()
        if len(text) > MAX_REPORT_CHARS:
            raise ToolError.of(
                "{name} would have {count} characters; the limit is {max_report_chars}: begin another",
                name=name,
                count=len(text),
                max_report_chars=MAX_REPORT_CHARS,
            )
        for entry in _entries(self.folder / name.partition("/")[0]):
            if TEMPORARY.fullmatch(entry.name):  # of a write that was cut off: nobody else writes now
                Path(entry.path).unlink(missing_ok=True)
        try:
            self._space.write_own(name, text)
        except StorageError as error:
            raise ToolError.of("the library was not changed: {why}", why=error) from error

    @contextmanager
    def _writing(self) -> Generator[None]:
        """Lock the library against all other writers, in this process and in others.

        Raises:
            ToolError: Another process writes for too long, or the folder cannot be written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder / ".lock", timeout=self._max_wait_s)
            lock.acquire()
        except Timeout as error:
            raise ToolError.of("another process is writing in the library; try again in a moment") from error
        except OSError as error:
            words = error.strerror or "not possible"
            raise ToolError.of(
                "the library {folder} cannot be written: {words}; continue without it", folder=self.folder, words=words
            ) from error
        try:
            yield
        finally:
            lock.release()


def _refuse_double(new: NewReport, stored: StoredReport, today: str) -> None:
    fields = stored.fields
    reason = _likeness(new, fields) if fields is not None else ""
    if reason:
        raise ToolError.of(
            "{where} has a report on this already: {name} ({reason}). Nothing was written: read it "
            'with read_report, then add what is new with append_report(report="{name}", ...)',
            where=own("today's library" if stored.day == today else "the library"),
            name=stored.name,
            reason=reason,
        )


def _likeness(new: NewReport, fields: ReportFields) -> str:
    """Return the reason why two reports have the same subject; empty when they do not."""
    ours = single_line(new.story_id, MAX_LINE_CHARS)
    if ours and ours == fields.story_id:
        return "the same story_id"
    if is_same_address(new.url.strip(), fields.url):
        return "the same address"
    is_another_story = bool(ours and fields.story_id)
    return "" if is_another_story or not is_same_title(new.title, fields.title) else "nearly the same title"


def _all_of(stored: StoredReport) -> str:
    """Return the text that a query is searched in, without ids of runs, because these contain words too."""
    text = stored.text
    if stored.fields is not None:
        fields = stored.fields
        text = "\n".join([fields.title, fields.story_id, fields.url, fields.verdict, RUN_IDS.sub("", text)])
    return f"{stored.name}\n{text}".casefold()


def _entries(folder: Path) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False
