"""The tool that searches what earlier runs found, and the library of reports beside them."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field

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
from explorer.reports.library import Library
from explorer.reports.render import SAMPLE_FLAG
from explorer.schema.errors import ToolError
from explorer.schema.tool import Arguments, SourceDraft, Tool, ToolContext, ToolResult
from explorer.text.sanitize import fence, single_line

LIBRARY = "library"
EARLIER_RUN, EARLIER_REPORT = "earlier_run", "earlier_report"
"""Flags of sources that are words of ours: what they rest on is what they cite."""
MAX_STORED_CHARS = 400_000
"""Of a text that is stored as a source."""
LINE_CHARS = 200
QUESTION_CHARS = 100


@dataclass(frozen=True)
class Past:
    """Where earlier findings are."""

    workspace: Path
    """The folder of all runs."""
    run: str
    """This run's id: its own files are no earlier ones."""
    library: Library
    limits: SearchLimits = field(default_factory=SearchLimits)

    def search(self, query: str, limit: int) -> SearchResult:
        """The best passages of the library and of all other runs, newest first where they are equally good."""
        return search(query, self._texts(), limit, self.limits)

    def _texts(self) -> Iterator[PastText]:
        for stored_report in self.library.stored_reports():
            if stored_report.fields is not None:
                fields = stored_report.fields
                yield PastText(LIBRARY, fields.title, stored_report.day, stored_report.name, stored_report.text)
        yield from texts_of(past_runs(self.workspace, self.run))

    def draft(self, found: PastText) -> SourceDraft:
        """A text that was found as a source, said to be an earlier run's: its whole file.

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
    """Of `search_runs`."""

    query: str
    limit: int = Field(default=8, ge=1, le=20)


class SearchRunsTool(Tool[SearchRunsArguments]):
    """`search_runs`."""

    name = "search_runs"
    description = "Search what earlier runs found, and the library. Hits are sources, as earlier findings."
    arguments = SearchRunsArguments
    activity = 'searching earlier runs for "{query}"'
    is_search = True

    def __init__(self, past: Past) -> None:
        self._past = past

    async def execute(self, arguments: SearchRunsArguments, context: ToolContext) -> ToolResult:
        """Search, store what was found, and list it."""
        result = await asyncio.to_thread(self._past.search, arguments.query, arguments.limit)
        hits, drafts = await asyncio.to_thread(self._with_drafts, result.hits)
        sources = await context.store(drafts)
        ids = [source.id for source in sources]
        entries = [_entry(number, name, hit) for number, (name, hit) in enumerate(zip(ids, hits, strict=True), 1)]
        lines = [_head(arguments.query, result, len(hits)), *([fence("\n".join(entries))] if entries else [])]
        return ToolResult(success=True, content="\n".join(lines))

    def _with_drafts(self, hits: list[EarlierHit]) -> tuple[list[EarlierHit], list[SourceDraft]]:
        """The hits whose text is still there: a run may be removed while it is searched."""
        kept: list[EarlierHit] = []
        drafts: list[SourceDraft] = []
        for hit in hits:
            try:
                drafts.append(self._past.draft(hit.found))
            except ToolError:
                continue
            kept.append(hit)
        return kept, drafts


def _head(query: str, result: SearchResult, count: int) -> str:
    runs = len(result.origins - {LIBRARY})
    cut = ", the newest; the rest would have taken too long" if result.is_cut else ""
    asked = single_line(query, LINE_CHARS)
    return f'Earlier findings on "{asked}": {count} hits. Looked through: the library, {runs} runs{cut}.'


def _entry(number: int, identifier: str, hit: EarlierHit) -> str:
    found = hit.found
    what = "report in the library" if found.origin == LIBRARY else f"run {found.origin}"
    place = found.path if found.is_title else f"{found.path}:{hit.line}"
    head = f"{number}. [{identifier}] {what} ({found.day}): {single_line(found.about, QUESTION_CHARS)}"
    return f"{head}\n   {single_line(place, LINE_CHARS)}: {single_line(hit.snippet, 400)}"
