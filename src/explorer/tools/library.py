"""The tools over earlier work: the library of reports, and the findings of earlier runs."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, LiteralString, TypeVar

from pydantic import ConfigDict, Field

from explorer.reports.earlier import (
    EarlierHit,
    PastRun,
    PastText,
    SearchLimits,
    SearchResult,
    past_runs,
    search,
    texts_of,
)
from explorer.reports.library import Library, NewReport, StoredReport
from explorer.reports.library_page import Contribution
from explorer.reports.render import SAMPLE_FLAG
from explorer.reports.verify.claims import FAULTS, TextOf, words_for_writer
from explorer.schema.errors import ToolError
from explorer.schema.events import Source
from explorer.schema.text_part import numbered, part_at
from explorer.schema.tool import Arguments, Effect, SourceDraft, Tool, ToolContext, ToolResult
from explorer.text.rendering import ModelText, block, code, inline, own, render
from explorer.text.sanitize import single_line, visible
from explorer.workspace.threads import uninterrupted

PAGE_CHARS = 20_000
MAX_LISTED = 50
LINE_CHARS = 200
EARLIER_REPORT = "earlier_report"
"""The flag of a source that is an earlier report: its references have the evidence."""

CORRECT: LiteralString = (
    "These sentences end with ⚠ in {name}. It is written: say what is right in a further section with append_report."
)
ReportName = Annotated[str, Field(description="Its name, as list_reports shows it")]


Args = TypeVar("Args", bound=Arguments)


@dataclass(frozen=True)
class LibraryAccess:
    """The library, and the run that uses it."""

    library: Library
    run: str
    """The id of the run."""
    sources: Callable[[], Mapping[str, Source]]
    """Returns the run's current sources by id."""
    text_of: TextOf | None = None
    """Returns their stored texts, in which what is written is looked up; None: it is not."""

    async def contribution(self, content: str, verdict: str, call: str) -> Contribution:
        """Return the contribution that a call writes, looked up."""
        sources = dict(self.sources())  # agents may store some while it is looked up and written
        written = Contribution(content, self.run, call, verdict, sources)
        if self.text_of is None:
            return written
        from explorer.reports.verify.check import CitationCheck  # noqa: PLC0415 - slow to import

        return replace(written, checked=await CitationCheck(sources, self.text_of).check_in_thread(written.body))


class CreateReportArguments(Arguments):
    """Arguments of `create_report`."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    title: str = Field(description="Name of the story or topic, as it will be looked for")
    content: str = Field(description="Markdown with [S12] citations")
    story_id: str = Field(default="", description="Id of a Hacker News story")
    url: str = Field(default="", description="What it is about")
    verdict: str = Field(default="", description="One line: what it comes to")


class _LibraryTool(Tool[Args]):
    """A tool over the library."""

    def __init__(self, access: LibraryAccess) -> None:
        self._access = access


class _WritingTool(_LibraryTool[Args]):
    """A tool that changes the library. Repeated after a crash, it finds what it wrote and writes nothing."""

    effect = Effect.REPEATABLE
    is_parallel = False


class CreateReportTool(_WritingTool[CreateReportArguments]):
    """`create_report`: begins a report."""

    name = "create_report"
    description = "Begin a report in the library, which later runs read, on one story or topic."
    arguments = CreateReportArguments
    activity = "adding to the library: {title}"

    async def execute(self, arguments: CreateReportArguments, context: ToolContext) -> ToolResult:
        """Write the report."""
        new = NewReport(arguments.title, arguments.story_id, arguments.url)
        content = await self._access.contribution(arguments.content, arguments.verdict, context.call)
        name = await uninterrupted(self._access.library.create, new, content)
        return ToolResult(
            success=True, content=_with_faults(own("Created {name} in the library.", name=name), content, name)
        )


class AppendReportArguments(Arguments):
    """Arguments of `append_report`."""

    report: ReportName
    content: str = Field(description="Only what is new, in markdown with [S12] citations")
    verdict: str = Field(default="", description="One line, where it has changed")


class AppendReportTool(_WritingTool[AppendReportArguments]):
    """`append_report`: adds a section to a report."""

    name = "append_report"
    description = "Add a dated section with what is new to a report of the library."
    arguments = AppendReportArguments
    activity = "adding to the library's {report}"

    async def execute(self, arguments: AppendReportArguments, context: ToolContext) -> ToolResult:
        """Write the section."""
        addition = await self._access.contribution(arguments.content, arguments.verdict, context.call)
        name, title = await uninterrupted(self._access.library.append, arguments.report, addition)
        done = own('Appended to {name}: "{title}".', name=name, title=title)
        return ToolResult(success=True, content=_with_faults(done, addition, name))


def _with_faults(done: ModelText, written: Contribution, name: str) -> ModelText:
    """Return a result with what the check of the written text found, which the report marks."""
    faults = words_for_writer(written.checked, own("{name}", name=name))
    return render(done, faults, own(CORRECT, name=name)) if faults else done


class ReadReportArguments(Arguments):
    """Arguments of `read_report`."""

    report: ReportName
    offset: int = Field(default=0, ge=0)


class ReadReportTool(_LibraryTool[ReadReportArguments]):
    """`read_report`: reads a report."""

    name = "read_report"
    description = (
        "Read a report of an earlier run. Its [1] are its own references: to cite one, have that page read again."
    )
    arguments = ReadReportArguments
    activity = "reading the report {report}"

    async def execute(self, arguments: ReadReportArguments, context: ToolContext) -> ToolResult:
        """Return one part of the report."""
        found = await asyncio.to_thread(self._access.library.find, arguments.report)
        if found.fields is None:
            raise ToolError.of(
                "{name} cannot be read as a report: {problem}",
                name=single_line(found.name),
                problem=single_line(found.problem),
            )
        part = part_at(visible(found.text), arguments.offset, PAGE_CHARS, found.name)
        (source,) = await context.store([draft_of(found)])
        head = own("[{id}] {name}, an earlier report", id=code(source.id), name=found.name)
        return ToolResult(success=True, content=render(head, part.place, part.content))


def draft_of(report: StoredReport) -> SourceDraft:
    """Return a readable report as a source, marked as an earlier report."""
    fields = report.fields
    title = fields.title if fields is not None else report.name
    return SourceDraft(
        url=f"library:{report.name}",
        title=title,
        kind="file",
        via="library",
        published=report.day,
        text=report.text,
        flags=(EARLIER_REPORT,),
    )


class ListReportsArguments(Arguments):
    """Arguments of `list_reports`."""

    date: str = Field(default="", description="2026-08-10, 2026-08, today, yesterday")
    query: str = Field(default="", description="Words that all occur in it")


class ListReportsTool(_LibraryTool[ListReportsArguments]):
    """`list_reports`: lists the reports."""

    name = "list_reports"
    description = "List the library's reports of earlier runs, newest first."
    arguments = ListReportsArguments
    activity = "listing the library"

    async def execute(self, arguments: ListReportsArguments, context: ToolContext) -> ToolResult:
        """Return the list of reports."""
        found = await asyncio.to_thread(self._access.library.stored_reports, arguments.date, arguments.query)
        if not found:
            return ToolResult(success=True, content=own("No such reports in the library."))
        counted = own("1 report") if len(found) == 1 else own("{count} reports", count=len(found))
        head = own("{counted} in the library, newest day first.", counted=counted)
        if len(found) > MAX_LISTED:
            words = "{counted} in the library, the newest {most} here; narrow it by date or query."
            head = own(words, counted=counted, most=MAX_LISTED)
        lines = [_line(stored_report) for stored_report in found[:MAX_LISTED]]
        return ToolResult(success=True, content=render(head, block("\n".join(lines))))


def _line(stored_report: StoredReport) -> str:
    fields = stored_report.fields
    if fields is None:
        return f"{single_line(stored_report.name)} | unreadable: {single_line(stored_report.problem)[:LINE_CHARS]}"
    facts = [
        f"verdict: {fields.verdict}" if fields.verdict else "",
        f"story {fields.story_id}" if fields.story_id else "",
        fields.url,
        f"updated {fields.updated[:16].replace('T', ' ')}" if fields.updated else "",
        f"{len(fields.run)} runs" if len(fields.run) > 1 else "",
        _checked(fields.citations),
    ]
    parts = [stored_report.name, fields.title, *(fact for fact in facts if fact)]
    return " | ".join(single_line(part)[:LINE_CHARS] for part in parts)


def _checked(counts: Mapping[str, int]) -> str:
    """Return how many of a report's cited sentences its sources do not support; empty for none."""
    faults = sum(counts.get(verdict, 0) for verdict in FAULTS)
    return f"{faults} of {counts.get('total', 0)} cited sentences unsupported" if faults else ""


def library_tools(access: LibraryAccess) -> tuple[Tool, ...]:
    """Return all tools over the library."""
    return (ListReportsTool(access), ReadReportTool(access), CreateReportTool(access), AppendReportTool(access))


LIBRARY = "library"
EARLIER_RUN = "earlier_run"
"""The flag of a source that is an earlier run's text: the evidence is in what it cites."""
MAX_STORED_CHARS = 400_000
"""The characters of a text that is stored as a source."""
QUESTION_CHARS = 100


@dataclass(frozen=True)
class Past:
    """The places of earlier findings."""

    workspace: Path
    """The folder of all runs."""
    run: str
    """The id of this run, whose own files are not earlier ones."""
    library: Library
    limits: SearchLimits = field(default_factory=SearchLimits)

    def search(self, query: str, limit: int) -> SearchResult:
        """Return the best passages of the library and of all other runs; of equally good ones, the newest first."""
        return search(query, self._texts(), limit, self.limits)

    def _texts(self) -> Iterator[PastText]:
        for stored_report in self.library.stored_reports():
            if stored_report.fields is not None:
                fields = stored_report.fields
                yield PastText(LIBRARY, fields.title, stored_report.day, stored_report.name, stored_report.text)
        yield from texts_of(past_runs(self.workspace, self.run))

    def draft(self, found: PastText) -> SourceDraft:
        """Return a found text as a source, marked as an earlier run's: its whole file.

        Raises:
            ToolError: It is not there any more.
        """
        name = found.path.rpartition("/")[2]
        text, title, flags = found.text, f"Earlier run: {found.about} ({name})", (EARLIER_RUN,)
        if found.origin == LIBRARY:
            title, flags = found.about, (EARLIER_REPORT,)
        elif found.is_title:
            run = PastRun.of(self.workspace / found.origin)
            text = run.read(found.path) if run is not None else found.text
            title = f"{found.text.partition(' | ')[0]} (stored by an earlier run)"
        if len(text) > MAX_STORED_CHARS:
            text, flags = text[:MAX_STORED_CHARS], (*flags, "truncated")
        address = f"{LIBRARY}:{found.path}" if found.origin == LIBRARY else f"run:{found.origin}/{found.path}"
        return SourceDraft(
            url=address,
            title=title,
            kind="file",
            via=LIBRARY if found.origin == LIBRARY else "earlier run",
            published=found.day,
            text=text,
            flags=(*flags, SAMPLE_FLAG) if found.is_sample else flags,
        )


class SearchRunsArguments(Arguments):
    """Arguments of `search_runs`."""

    query: str = Field(description="Few specific words")
    limit: int = Field(default=8, ge=1, le=20)


class SearchRunsTool(Tool[SearchRunsArguments]):
    """`search_runs`: searches earlier findings."""

    name = "search_runs"
    description = (
        "Search the files and reports of earlier runs. A hit is an earlier finding, a lead: its own sources are the "
        "evidence."
    )
    arguments = SearchRunsArguments
    activity = 'searching earlier runs for "{query}"'
    is_search = True

    def __init__(self, past: Past) -> None:
        self._past = past

    async def execute(self, arguments: SearchRunsArguments, context: ToolContext) -> ToolResult:
        """Search, store the findings, and return them as a list."""
        result = await asyncio.to_thread(self._past.search, arguments.query, arguments.limit)
        hits, drafts = await asyncio.to_thread(self._with_drafts, result.hits)
        sources = await context.store(drafts)
        content = render(_head(arguments.query, result, len(hits)), block(numbered(sources, hits, _entry)))
        return ToolResult(success=True, content=content)

    def _with_drafts(self, hits: list[EarlierHit]) -> tuple[list[EarlierHit], list[SourceDraft]]:
        """Return the hits whose text still exists: a run may be removed during the search."""
        kept: list[EarlierHit] = []
        drafts: list[SourceDraft] = []
        for hit in hits:
            try:
                drafts.append(self._past.draft(hit.found))
            except ToolError:
                continue
            kept.append(hit)
        return kept, drafts


def _head(query: str, result: SearchResult, count: int) -> ModelText:
    return own(
        'Earlier findings on "{asked}": {count} hits. Looked through: the library, {runs} runs{cut}.',
        asked=inline(query, LINE_CHARS),
        count=count,
        runs=len(result.origins - {LIBRARY}),
        cut=own(", the newest; the rest would have taken too long" if result.is_cut else ""),
    )


def _entry(number: int, identifier: str, hit: EarlierHit) -> str:
    found = hit.found
    what = "report in the library" if found.origin == LIBRARY else f"run {found.origin}"
    place = found.path if found.is_title else f"{found.path}:{hit.line}"
    head = f"{number}. [{identifier}] {what} ({found.day}): {single_line(found.about, QUESTION_CHARS)}"
    return f"{head}\n   {single_line(place, LINE_CHARS)}: {single_line(hit.snippet, 400)}"
