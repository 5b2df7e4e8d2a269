import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from engine_stage import NOON, source
from explorer.observe.provenance import FILES_INDEX, FileOrigin, FileOrigins, origins, write_files_index
from explorer.schema.events import (
    AgentStarted,
    AnyEvent,
    JournalRecord,
    SourceRecorded,
    Steered,
    ToolFinished,
    TurnTaken,
    WrittenFile,
)
from explorer.testing import says
from explorer.workspace.access import DRAFT
from explorer.workspace.workspace import Workspace

TEXT = "# Part\n\nIt rose by 12 % [S1], says the log [S2]; others doubt it [S3] or guess [S7].\n"


def numbered(events: Sequence[AnyEvent]) -> list[JournalRecord]:
    """Records of events, a second apart."""
    return [
        JournalRecord(v=1, seq=seq, at=NOON + timedelta(seconds=seq), event=event)
        for seq, event in enumerate(events, 1)
    ]


def finished(agent: str, call: str, name: str, content: str = "", **fields: object) -> ToolFinished:
    """A call's result."""
    facts = {"agent": agent, "call": f"{agent}.{call}", "name": name, "success": True, "content": content, **fields}
    return ToolFinished.model_validate(facts)


class Desk:
    """A searcher and an editor who work on one file in a real folder."""

    def __init__(self, folder: Path) -> None:
        self.workspace = Workspace(folder)
        self.events: list[AnyEvent] = []

    def search_and_write(self) -> WrittenFile:
        """S1 is found, S2 is read in a file, S3 comes too late, S7 was never there."""
        one, path = "searcher-1", {"filepath": "parts/a.md"}
        written = self.workspace.write_text("parts/a.md", TEXT)
        self.events += [
            AgentStarted(agent=one, role="searcher", task="look", max_steps=5),
            SourceRecorded(source=source("S1")),
            SourceRecorded(source=source("S2")),
            SourceRecorded(source=source("S3")),
            TurnTaken(agent=one, turn=says("", ("search", {}), ("read_file", path)), seconds=1.0),
            finished(one, "t1.1", "search", "1. [S1] a hit\n<<untrusted>> cites [S7] <<end>>", sources=("S1",)),
            finished(one, "t1.2", "read_file", "     1\tThe log [S2]."),
            TurnTaken(agent=one, turn=says("", ("write_file", {**path, "content": TEXT})), seconds=1.0),
            finished(one, "t2.1", "write_file", "Wrote", files=(written,)),
            TurnTaken(agent=one, turn=says("", ("search", {})), seconds=1.0),
            finished(one, "t3.1", "search", "1. [S3] a hit", sources=("S3",)),
        ]
        return written

    def edit(self) -> WrittenFile:
        """The editor was told of S3 in its task, and mends the file."""
        two, text = "editor-1", TEXT.replace("guess", "even guess")
        written = self.workspace.write_text("parts/a.md", text)
        edit = {"filepath": "parts/a.md", "old_string": "guess [S7]", "new_string": "even guess [S7]"}
        self.events += [
            AgentStarted(agent=two, role="editor", task="Mend parts/a.md; see [S3].", max_steps=5),
            TurnTaken(agent=two, turn=says("", ("edit_file", edit)), seconds=1.0),
            finished(two, "t1.1", "edit_file", "Edited", files=(written,)),
        ]
        return written

    def origins(self) -> list[FileOrigin]:
        """What is known of the files."""
        return origins(numbered(self.events), self.workspace)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A desk in an empty folder."""
    return Desk(tmp_path)


def test_each_file_is_traced_to_its_writer_and_what_that_one_had_seen(desk: Desk) -> None:
    """Found by its own tools, read elsewhere, or shown to nobody before the write: each cited id is one of these."""
    written = desk.search_and_write()
    (origin,) = desk.origins()
    assert (origin.path, origin.title, origin.bytes, origin.sha256) == (
        "parts/a.md", "Part", written.bytes, written.sha256,
    )  # fmt: skip
    (write,) = origin.writes
    assert (write.agent, write.role, write.call, write.tool) == (
        "searcher-1", "searcher", "searcher-1.t2.1", "write_file",
    )  # fmt: skip
    assert (write.seq, write.at, write.bytes) == (9, NOON + timedelta(seconds=9), written.bytes)
    assert write.cites == origin.cites == ("S1", "S2", "S3", "S7")
    assert (origin.found, origin.read, origin.unseen) == (("S1",), ("S2",), ("S3", "S7"))


def test_all_writes_of_a_file_count(desk: Desk) -> None:
    """A later editor who had met a source elsewhere makes it a seen one; each write keeps its own facts."""
    desk.search_and_write()
    last = desk.edit()
    (origin,) = desk.origins()
    assert [(one.agent, one.tool, one.cites) for one in origin.writes] == [
        ("searcher-1", "write_file", ("S1", "S2", "S3", "S7")),
        ("editor-1", "edit_file", ("S7",)),
    ]
    assert origin.sha256 == last.sha256
    assert (origin.found, origin.read, origin.unseen) == (("S1",), ("S2", "S3"), ("S7",))


def test_a_rendered_report_is_read_as_its_writer_left_it(desk: Desk) -> None:
    """report.md has numbered references at the end of a run; the draft has the ids."""
    written = desk.search_and_write()
    desk.workspace.write_own(DRAFT, TEXT)
    desk.workspace.write_own("parts/a.md", "rendered [1]")
    assert desk.origins()[0].cites == ("S1", "S2", "S3", "S7")
    desk.workspace.remove(DRAFT)
    assert desk.origins()[0].cites == ("S1", "S2", "S3", "S7"), "what its calls wrote is known all the same"
    assert desk.origins()[0].sha256 == written.sha256


def test_words_of_the_user_show_sources_too(desk: Desk) -> None:
    """Whoever was told of a source while at work had seen it."""
    desk.search_and_write()
    desk.events.insert(1, Steered(agent="searcher-1", text="Mind S3 as well."))
    desk.events.insert(0, SourceRecorded(source=source("S3")))
    assert desk.origins()[0].read == ("S2", "S3")


def test_the_index_is_one_line_a_file(desk: Desk) -> None:
    """Kept in the run's folder for programs, in the order of the first writes."""
    assert write_files_index(FileOrigins(), desk.workspace) == []
    assert desk.workspace.read_text(FILES_INDEX) == ""
    desk.search_and_write()
    collected = FileOrigins()
    for record in numbered(desk.events):
        collected.apply(record)
    found = write_files_index(collected, desk.workspace)
    (line,) = desk.workspace.read_text(FILES_INDEX).splitlines()
    assert FileOrigin.model_validate_json(line) == found[0]
    assert json.loads(line)["writes"][0]["at"] == "2026-08-10T12:00:09Z"
