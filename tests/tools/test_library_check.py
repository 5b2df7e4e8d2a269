"""Reports of the library are checked when they are written: marks, counts, and what the writer reads of it."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from explorer.schema.events import Source
from explorer.tools.library import LibraryAccess, library_tools
from explorer.workspace.tree import sha256
from reports.library.stage import FIRST, SECOND, library, source
from tool_call import call_tool

NAME = "2026-08-10/bridge.md"
TEXT = "The Alder bridge opened on 4 May 2021. It cost 12 million euros. It is 310 metres long."
SOURCES: Mapping[str, Source] = {
    "S1": source("S1", "https://bridge.example/", "Bridge", sha256=sha256(TEXT.encode()), chars=len(TEXT))
}
GOOD = "The Alder bridge cost 12 million euros [S1]."
WRONG = "The Alder bridge is 910 metres long [S1]."
BARE = "The bridge had 4,000 visitors."


async def written(folder: Path, name: str, run: str = FIRST, **arguments: str) -> str:
    """What a call says, of a run whose source has the text."""
    access = LibraryAccess(library(folder), run, lambda: SOURCES, {"S1": TEXT}.get)
    tools = {tool.name: tool for tool in library_tools(access)}
    return (await call_tool(tools[name], **arguments)).content


def fields(folder: Path) -> dict[str, object]:
    """The frontmatter of the report."""
    return yaml.safe_load((folder / NAME).read_text().split("---\n")[1])


async def test_what_is_written_is_checked_marked_and_counted(tmp_path: Path) -> None:
    """An unsupported sentence is marked in the file and named to its writer; an addition adds to the counts."""
    told = await written(tmp_path, "create_report", title="Bridge", content=f"{GOOD}\n\n{WRONG}\n\n{BARE}")
    assert f"cited sentences in {NAME} was looked up" in told
    assert WRONG.removesuffix("[S1].") in told
    assert GOOD.removesuffix("[S1].") not in told
    text = (tmp_path / NAME).read_text()
    assert "910 metres long [1]. ⚠\n" in text
    assert "12 million euros [1].\n" in text
    head = fields(tmp_path)
    assert head["citations"] == {
        "total": 2, "supported": 1, "not_found": 1, "elsewhere": 0, "source_missing": 0, "unchecked": 0,
    }  # fmt: skip
    assert head["uncited"] == 1
    more = "The bridge opened on 4 May 2021 [S1]."
    told = await written(tmp_path, "append_report", SECOND, report="bridge", content=more)
    assert told.startswith("Appended to")
    assert "looked up" not in told
    counts = fields(tmp_path)["citations"]
    assert isinstance(counts, dict)
    assert (counts["total"], counts["supported"], counts["not_found"]) == (3, 2, 1)
    assert "1 of 3 cited sentences unsupported" in await written(tmp_path, "list_reports")


async def test_a_repeated_call_counts_once(tmp_path: Path) -> None:
    """A call that is made again after a crash finds what it wrote, and counts nothing twice."""
    access = LibraryAccess(library(tmp_path), FIRST, lambda: SOURCES, {"S1": TEXT}.get)
    once = await access.contribution(GOOD, "", "w.t1.1")
    (tmp_path / "2026-08-10").mkdir()
    (tmp_path / NAME).write_text("---\ntitle: Bridge\ncitations: many\nuncited: [1]\n---\n# Bridge\n\nOld words.\n")
    for _ in range(2):
        library(tmp_path).append("bridge", once)
    counts = fields(tmp_path)["citations"]
    assert isinstance(counts, dict)
    assert counts["total"] == 1
    assert "uncited" not in fields(tmp_path)
