"""A run as the check of addresses sees it: a question, a ledger of sources, and the tool that reads pages."""

from dataclasses import replace

from explorer.documents.parsing.parser import TrustingParser
from explorer.schema.events import AnyEvent, JournalRecord, RunStarted
from explorer.schema.tool import ToolResult
from explorer.sources.http.fetch import Web
from explorer.sources.http.url_allowlist import UrlAllowlist
from explorer.sources.pages import PageReader
from explorer.tools.web import ReadWebpageTool
from explorer.workspace.source_store import SourceStore, stored_at
from sources.loopback import NOW
from tool_call import NO_RUN, call_tool


class SeenRun:
    """Its records grow with what is stored; pages are read after a check of their address, or without one."""

    def __init__(self, question: str, web: Web, *, is_checked: bool = True) -> None:
        self._records = [JournalRecord(v=1, seq=1, at=NOW, event=_started(question))]
        self._files: dict[str, str] = {}
        self._evidence = SourceStore(self._append, self._write, lambda: NOW)
        self._seen = UrlAllowlist(self._records, lambda one: self._files[stored_at(one)]) if is_checked else None
        self._context = replace(NO_RUN, store=self._evidence.store, now=lambda: NOW)
        self._tool = ReadWebpageTool(PageReader(web, TrustingParser()))

    async def read(self, url: str) -> ToolResult:
        """`read_webpage`, whole."""
        return await call_tool(self._tool, self._context, url=await self._seen.check(url) if self._seen else url)

    async def _append(self, event: AnyEvent) -> None:
        self._records.append(JournalRecord(v=1, seq=len(self._records) + 1, at=NOW, event=event))

    async def _write(self, path: str, text: str) -> None:
        self._files[path] = text


def _started(question: str) -> RunStarted:
    return RunStarted(run_id="r", question=question, engine="0", settings={})
