"""What one call stores and writes through its context, so that the journal knows it whatever the tool says."""

from collections.abc import Sequence

from explorer.schema.events import Source, WrittenFile
from explorer.schema.tool import ToolResult
from explorer.schema.tool_context import RunFiles, SourceDraft, Store
from explorer.workspace.source_store import remarks


class CallOutputs:
    """Collects the sources and files of one call. It is the call's store and its `RunFiles`."""

    def __init__(self, store: Store, files: RunFiles) -> None:
        self._store = store
        self._files = files
        self._sources: dict[str, Source] = {}
        self._written: dict[str, WrittenFile] = {}

    async def store(self, drafts: Sequence[SourceDraft]) -> list[Source]:
        """Store evidence in the run; when this returns, it is on disk."""
        sources = await self._store(drafts)
        self._sources.update((source.id, source) for source in sources)
        return sources

    def exists(self, path: str) -> bool:
        """Return whether a file of the run is there."""
        return self._files.exists(path)

    def read_text(self, path: str) -> str:
        """Return a text file's content."""
        return self._files.read_text(path)

    def write_text(self, path: str, text: str) -> WrittenFile:
        """Create or replace a text file of the run."""
        written = self._files.write_text(path, text)
        self._written[written.path] = written
        return written

    def added_to(self, result: ToolResult) -> ToolResult:
        """Return a result with the sources and files of its call, and what the model is told of repeated sources.

        A call that failed has its files, which are there, and no sources: the model was shown none.
        """
        if not self._sources and not self._written:
            return result
        metadata, content = dict(result.metadata), result.content
        if self._written:
            metadata["files"] = [*metadata.get("files", ()), *self._written.values()]
        if self._sources and result.success:
            metadata["sources"] = list(dict.fromkeys([*metadata.get("sources", ()), *self._sources]))
            content = "\n".join([content, *remarks(self._sources.values())])
        return result.model_copy(update={"metadata": metadata, "content": content})
