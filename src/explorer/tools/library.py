"""The tools over the library of reports: look what there is, read it, begin a report, add to one."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from explorer.reports.library import Contribution, Library, NewReport, StoredReport
from explorer.schema.errors import ToolError
from explorer.schema.events import Source
from explorer.schema.tool import CURRENT_CALL, Arguments, Effect, Tool, ToolResult
from explorer.text.sanitize import fence, single_line, visible
from explorer.workspace.source_store import SourceDraft, Store

PAGE_CHARS = 20_000
MAX_LISTED = 50
LINE_CHARS = 200
EARLIER_REPORT = "earlier_report"
"""Flag of a source that is a report of ours: what it rests on is in its references."""

ReportName = Annotated[str, Field(description="Its name")]


@dataclass(frozen=True)
class LibraryContext:
    """What the library's tools work with."""

    library: Library
    run: str
    """The run's id."""
    sources: Callable[[], Mapping[str, Source]]
    """The run's sources as they are now, by id."""
    store: Store

    def contribution(self, content: str, verdict: str) -> Contribution:
        """What the call being executed writes."""
        return Contribution(content, self.run, CURRENT_CALL.get(), verdict, self.sources())


class CreateReportArguments(Arguments):
    """Of `create_report`."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    title: str
    content: str
    story_id: str = ""
    url: str = ""
    verdict: str = ""


class _WritingTool(Tool):
    """What changes the library: made again after a crash, it finds what it wrote and writes nothing."""

    effect: ClassVar[Effect] = Effect.REPEATABLE
    is_parallel: ClassVar[bool] = False

    def __init__(self, context: LibraryContext) -> None:
        self._context = context


class CreateReportTool(_WritingTool):
    """`create_report`."""

    name: ClassVar[str] = "create_report"
    description = "Begin a library report on one story or topic."
    arguments: ClassVar[type[Arguments]] = CreateReportArguments

    async def execute(self, **arguments: Any) -> ToolResult:
        """Write it."""
        asked = CreateReportArguments(**arguments)
        new = NewReport(asked.title, asked.story_id, asked.url)
        content = self._context.contribution(asked.content, asked.verdict)
        name = await asyncio.to_thread(self._context.library.create, new, content)
        return ToolResult(success=True, content=f"Created {name} in the library.")


class AppendReportArguments(Arguments):
    """Of `append_report`."""

    report: ReportName
    content: str
    verdict: str = ""


class AppendReportTool(_WritingTool):
    """`append_report`."""

    name: ClassVar[str] = "append_report"
    description = "Add what is new to a library report."
    arguments: ClassVar[type[Arguments]] = AppendReportArguments

    async def execute(self, **arguments: Any) -> ToolResult:
        """Write the section."""
        asked = AppendReportArguments(**arguments)
        addition = self._context.contribution(asked.content, asked.verdict)
        name, title = await asyncio.to_thread(self._context.library.append, asked.report, addition)
        return ToolResult(success=True, content=f'Appended to {name}: "{title}".')


class ReadReportArguments(Arguments):
    """Of `read_report`."""

    report: ReportName
    offset: int = Field(default=0, ge=0)


class ReadReportTool(Tool):
    """`read_report`."""

    name: ClassVar[str] = "read_report"
    description = "Read a library report. Its [1] are its own: to cite one, read that page anew."
    arguments: ClassVar[type[Arguments]] = ReadReportArguments

    def __init__(self, context: LibraryContext) -> None:
        self._context = context

    async def execute(self, **arguments: Any) -> ToolResult:
        """Read one stretch of it."""
        asked = ReadReportArguments(**arguments)
        found = await asyncio.to_thread(self._context.library.find, asked.report)
        if found.fields is None:
            raise ToolError(f"{single_line(found.name)} cannot be read as a report: {single_line(found.problem)}")
        text = visible(found.text)
        if asked.offset and asked.offset >= len(text):
            raise ToolError(f"offset={asked.offset} is behind the end: {found.name} has {len(text)} characters")
        (source,) = await self._context.store([draft_of(found)])
        end = min(asked.offset + PAGE_CHARS, len(text))
        more = f"; read on with offset={end}" if end < len(text) else ""
        lines = [
            f"[{source.id}] {single_line(found.name)}, an earlier report",
            f"characters {asked.offset}-{end} of {len(text)}{more}",
            fence(text[asked.offset : end]),
        ]
        return ToolResult(success=True, content="\n".join(lines), metadata={"sources": [source.id]})


def draft_of(report: StoredReport) -> SourceDraft:
    """A readable report as a source, said to be an earlier report."""
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
    """Of `list_reports`."""

    date: str = Field(default="", description="2026-08-10, 2026-08, today, yesterday")
    query: str = ""


class ListReportsTool(Tool):
    """`list_reports`."""

    name: ClassVar[str] = "list_reports"
    description = "List the library's reports of earlier runs, newest first."
    arguments: ClassVar[type[Arguments]] = ListReportsArguments

    def __init__(self, context: LibraryContext) -> None:
        self._context = context

    async def execute(self, **arguments: Any) -> ToolResult:
        """List them."""
        asked = ListReportsArguments(**arguments)
        found = await asyncio.to_thread(self._context.library.stored_reports, asked.date, asked.query)
        if not found:
            return ToolResult(success=True, content="No such reports in the library.")
        counted = "1 report" if len(found) == 1 else f"{len(found)} reports"
        head = f"{counted} in the library, newest day first."
        if len(found) > MAX_LISTED:
            head = f"{counted} in the library, the newest {MAX_LISTED} here; narrow it by date or query."
        lines = [_line(stored_report) for stored_report in found[:MAX_LISTED]]
        return ToolResult(success=True, content="\n".join([head, fence("\n".join(lines))]))


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
    ]
    parts = [stored_report.name, fields.title, *(fact for fact in facts if fact)]
    return " | ".join(single_line(part)[:LINE_CHARS] for part in parts)


def library_tools(context: LibraryContext) -> tuple[Tool, ...]:
    """All tools over the library."""
    return (ListReportsTool(context), ReadReportTool(context), CreateReportTool(context), AppendReportTool(context))
