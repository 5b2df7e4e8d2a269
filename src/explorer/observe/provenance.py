"""Provenance: who wrote a file, in which call, what it cites, and what its writer had seen before.

All of it comes from the journal; `.explorer/files.jsonl` is a copy for people and programs, and can be made again.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from explorer.schema.errors import ToolError
from explorer.schema.events import JournalRecord, ToolFinished, WrittenFile
from explorer.schema.messages import Frozen, JsonObject
from explorer.text.citations import cited_ids
from explorer.workspace.access import DRAFT
from explorer.workspace.workspace import Workspace, sha256

FILES_INDEX = ".explorer/files.jsonl"
"""The index of all files that agents wrote, one JSON object a line."""
ID = re.compile(r"\bS\d+\b")
TEXTS = ("content", "new_string")
"""Arguments with the text that a call wrote."""


class Write(Frozen):
    """One write to a file."""

    agent: str
    role: str
    call: str
    """The engine's key of the call."""
    tool: str
    seq: int
    """The number of its `tool_finished` record."""
    at: datetime
    bytes: int
    """The size of the file after the write."""
    sha256: str
    cites: tuple[str, ...]
    """Ids of sources in the text that this call wrote."""


class FileOrigin(Frozen):
    """A file in its latest state, and its history."""

    path: str
    title: str
    lines: int
    bytes: int
    sha256: str
    writes: tuple[Write, ...]
    """Its writes in order; the first one created it."""
    cites: tuple[str, ...]
    """Ids of sources cited in it, in order."""
    found: tuple[str, ...]
    """The cited ids that a tool of one of its writers had returned before the write."""
    read: tuple[str, ...]
    """The cited ids that its writers had met otherwise: in a task, in files, in results of helpers."""
    unseen: tuple[str, ...]
    """The cited ids that no writer had seen before."""


@dataclass
class _Agent:
    """What an agent had seen up to some record."""

    role: str = ""
    turns: int = 0
    found: set[str] = field(default_factory=set[str])
    read: set[str] = field(default_factory=set[str])


@dataclass
class _File:
    """A file up to some record."""

    last: WrittenFile
    writes: list[Write] = field(default_factory=list[Write])
    found: set[str] = field(default_factory=set[str])
    read: set[str] = field(default_factory=set[str])


@dataclass
class FileOrigins:
    """Collects the provenance of files, record by record, in the order of the journal. Only `apply` changes it."""

    agents: dict[str, _Agent] = field(default_factory=dict[str, _Agent])
    files: dict[str, _File] = field(default_factory=dict[str, _File])
    arguments: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """The arguments of the calls of each agent's latest turn, by the engine's key."""
    stored: set[str] = field(default_factory=set[str])

    def apply(self, record: JournalRecord) -> None:
        """Apply one record."""
        event = record.event
        if event.type == "source_recorded":
            self.stored.add(event.source.id)
            return
        agent = self.agents.setdefault(event.agent, _Agent())
        match event.type:
            case "agent_started":
                agent.role = event.role
                agent.read |= self._ids_in(event.task)
            case "agent_continued":
                agent.read |= self._ids_in(event.task)
            case "note" | "steered":
                agent.read |= self._ids_in(event.text)
            case "turn":
                agent.turns += 1
                for index, call in enumerate(event.turn.calls, 1):
                    self.arguments[f"{event.agent}.t{agent.turns}.{index}"] = call.arguments or {}
            case "tool_finished":
                self._finish(event, agent, record)
            case _:
                pass

    def listed(self, workspace: Workspace) -> list[FileOrigin]:
        """Return each file that agents wrote, in the order of their first writes."""
        return [_origin(file, workspace) for file in self.files.values()]

    def _finish(self, event: ToolFinished, agent: _Agent, record: JournalRecord) -> None:
        arguments = self.arguments.pop(event.call, {})
        for written in event.files:
            self._write(written, event, agent, (record, arguments))
        for path in event.removed:
            self.files.pop(path, None)
        # After the writes: the result of a call was not known when its file was written.
        agent.found.update(event.sources)
        agent.read |= self._ids_in(event.content)

    def _write(
        self, written: WrittenFile, event: ToolFinished, agent: _Agent, origin: tuple[JournalRecord, JsonObject]
    ) -> None:
        record, arguments = origin
        file = self.files.setdefault(written.path, _File(written))
        file.last = written
        file.found |= agent.found
        file.read |= agent.read
        text = "\n".join(str(arguments.get(name, "")) for name in TEXTS)
        write = Write(
            agent=event.agent,
            role=agent.role,
            call=event.call,
            tool=event.name,
            seq=record.seq,
            at=record.at,
            bytes=written.bytes,
            sha256=written.sha256,
            cites=_once(cited_ids(text)),
        )
        file.writes.append(write)

    def _ids_in(self, text: str) -> set[str]:
        """Return the ids of stored sources in a text: a page can contain any id."""
        return self.stored.intersection(ID.findall(text)) if self.stored else set()


def origins(records: Iterable[JournalRecord], workspace: Workspace) -> list[FileOrigin]:
    """Return each file that agents wrote, in the order of their first writes."""
    found = FileOrigins()
    for record in records:
        found.apply(record)
    return found.listed(workspace)


def write_files_index(origins: FileOrigins, workspace: Workspace) -> list[FileOrigin]:
    """Write `.explorer/files.jsonl`, one file a line, and return its content.

    Raises:
        StorageError: The disk is full or failing.
    """
    found = origins.listed(workspace)
    workspace.write_own(FILES_INDEX, "".join(f"{origin.model_dump_json()}\n" for origin in found))
    return found


def _origin(file: _File, workspace: Workspace) -> FileOrigin:
    text = _text_of(file.last, workspace)
    # Something else changed the file since: only what its calls wrote is known.
    cites = _once(cited_ids(text)) if text else _once(name for write in file.writes for name in write.cites)
    return FileOrigin(
        **file.last.model_dump(),
        writes=tuple(file.writes),
        cites=cites,
        found=tuple(name for name in cites if name in file.found),
        read=tuple(name for name in cites if name in file.read - file.found),
        unseen=tuple(name for name in cites if name not in file.read | file.found),
    )


def _text_of(written: WrittenFile, workspace: Workspace) -> str:
    for path in (written.path, DRAFT):
        try:
            text = workspace.read_text(path)
        except ToolError:
            continue
        if sha256(text.encode("utf-8", "replace")) == written.sha256:
            return text
    return ""


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
