"""What is recorded of a call's result: its data in their types, with what the call stored, its text cut to size."""

import json
from collections.abc import Sequence
from typing import NamedTuple, cast

from pydantic import TypeAdapter

from explorer.schema.events import Source, WrittenFile
from explorer.schema.messages import JsonObject
from explorer.schema.tool import RunFiles, SourceDraft, Store, ToolResult
from explorer.text.rendering import ModelText, code, fenced, fenced_lines, first_chars, last_chars, own, render
from explorer.workspace.source_store import remarks
from explorer.workspace.threads import uninterrupted
from explorer.workspace.workspace import Workspace

MAX_RESULT_CHARS = 40_000
"""Limit of one result in a conversation. A longer result is kept in a file, and the model gets its start and end."""
MAX_TURN_CHARS = 100_000
"""Limit of all results of one turn, each with an equal share: two hundred calls at once must not fill a window."""
MIN_RESULT_CHARS = 400
MAX_ERROR_CHARS = 6_500
MAX_SPILL_CHARS = 2_000_000
"""Limit of one file with a part of a result: in any script no more bytes than a file of a run may have."""
START_CHARS = 12_000
END_CHARS = 4_000
MAX_NOTE_CHARS = 320
"""Limit of the note between start and end, and of the fence that is closed before it and opened again after it."""
MAX_DATA_BYTES = 256 * 1024
"""Limit of the metadata without `OWN_FIELDS`, as JSON."""
OWN_FIELDS = frozenset({"files", "removed", "sources"})
"""Metadata that are fields of `tool_finished` itself."""
_FILES: TypeAdapter[tuple[WrittenFile, ...]] = TypeAdapter(tuple[WrittenFile, ...])
_NAMES: TypeAdapter[tuple[str, ...]] = TypeAdapter(tuple[str, ...])


class CallOutputs:
    """Collects the sources and files of one call, so that the journal has them whatever the tool returns.

    It is the call's store and its `RunFiles`.
    """

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
        """Return whether a file of the run exists."""
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
        """Return a result with the sources and files of its call, and with remarks on repeated sources for the model.

        The result of a failed call gets its files, which exist, and no sources: the model was shown none.
        """
        if not self._sources and not self._written:
            return result
        metadata, content = dict(result.metadata), result.content
        if self._written:
            metadata["files"] = [*metadata.get("files", ()), *self._written.values()]
        if self._sources and result.success:
            metadata["sources"] = list(dict.fromkeys([*metadata.get("sources", ()), *self._sources]))
            content = render(fenced(content), *remarks(self._sources.values()))
        return result.model_copy(update={"metadata": metadata, "content": content})


class Recorded(NamedTuple):
    """The metadata of a result in the types of `tool_finished`."""

    files: tuple[WrittenFile, ...]
    removed: tuple[str, ...]
    sources: tuple[str, ...]
    data: JsonObject
    """A copy of the metadata that has no field of its own."""


def recorded(result: ToolResult) -> Recorded:
    """Read a result's metadata.

    Raises:
        ValueError: A field has the wrong type, or the rest is not JSON or too long.
    """
    if not result.metadata:
        return Recorded((), (), (), {})
    written = json.dumps({name: value for name, value in result.metadata.items() if name not in OWN_FIELDS})
    if len(written) > MAX_DATA_BYTES:
        raise ValueError(f"the result's metadata takes {len(written)} bytes; the limit is {MAX_DATA_BYTES}")
    return Recorded(
        files=_FILES.validate_python(result.metadata.get("files", ())),
        removed=_NAMES.validate_python(result.metadata.get("removed", ())),
        sources=_NAMES.validate_python(result.metadata.get("sources", ())),
        data=cast("JsonObject", json.loads(written)),
    )


def well_formed(result: ToolResult) -> ToolResult:
    """Check the result of a tool that is not ours, while an error in it still belongs to the tool.

    Raises:
        ValueError: It is not a result, or its metadata cannot be recorded.
    """
    checked = ToolResult.model_validate(result)
    recorded(checked)
    return checked


def share_of_turn(calls: int, most: int) -> int:
    """Return how many characters each result of a turn may have.

    It depends on the number of calls alone, so that a resumed turn has the same share.
    """
    return min(most, max(MIN_RESULT_CHARS, MAX_TURN_CHARS // max(1, calls)))


async def spilled(content: ModelText, key: str, workspace: Workspace, max_chars: int) -> tuple[ModelText, JsonObject]:
    """Keep a long result in files, and cut it to its start and end.

    Returns:
        What the model reads; and what is left out of it, for programs: `characters`, the `files` with the whole
        result, and how many of the `fenced_lines` are complete.
    """
    starts = range(0, len(content), MAX_SPILL_CHARS)
    paths: list[ModelText] = []
    for number, start in enumerate(starts, 1):
        path = own(".explorer/outputs/{name}.txt", name=code(f"{key}-{number}" if start else key))
        await uninterrupted(workspace.write_own, path, content[start : start + MAX_SPILL_CHARS])
        paths.append(path)
    left = max_chars - MAX_NOTE_CHARS
    if len(content) > MAX_RESULT_CHARS:
        # So long a result is rather looked up in its file than read up to the limit.
        left = min(left, START_CHARS + END_CHARS)
    start, end = left * 3 // 4, left // 4
    shown = render(
        first_chars(content, start),
        own(
            "\n[{left} of {total} characters are left out here; all of it is in {paths}: "
            'read_file(filepath="{first}", start_line=...)]\n',
            left=len(content) - start - end,
            total=len(content),
            paths=render(*paths, between=", "),
            first=paths[0],
        ),
        last_chars(content, end),
    )
    whole_lines = max(0, len(fenced_lines(content[:start])) - 1)
    return shown, {"characters": len(content) - start - end, "files": paths, "fenced_lines": whole_lines}


def first_page(content: ModelText, max_chars: int) -> tuple[ModelText, JsonObject]:
    """Cut the result of a tool that pages itself at the end of a line: in a file it would be a copy of what was read.

    Returns:
        What the model reads; and what is left out of it, for programs: `characters`.
    """
    left = max_chars - MAX_NOTE_CHARS
    kept = content[:left].rfind("\n") + 1 or left
    words = "[cut here, at {kept} of {total} characters: read on from here, in smaller parts]"
    shown = render(first_chars(content, kept), own(words, kept=kept, total=len(content)))
    return shown, {"characters": len(content) - len(shown)}
