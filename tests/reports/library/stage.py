"""What the tests of the library stand on: a clock that can be set, sources, and the way a run writes."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from explorer.journal.codec import encode_all
from explorer.reports.library import Library, NewReport
from explorer.reports.library_page import Contribution
from explorer.schema.events import JournalRecord, RunStarted, Source

NOON = datetime(2026, 8, 10, 12, 0, tzinfo=UTC)
FIRST, SECOND = "20260810-120000-sqlite-0001", "20260810-150000-sqlite-0002"
TITLE = "SQLite 4 is out"


def source(identifier: str, url: str, title: str = "A page", **fields: Any) -> Source:
    """A stored source."""
    known: dict[str, Any] = {"kind": "page", "via": "direct", "retrieved": NOON, "sha256": "0" * 64, "chars": 9}
    return Source.model_validate({"id": identifier, "url": url, "title": title, **known, **fields})


SOURCES = {
    "S1": source("S1", "https://sqlite.example/four", "SQLite 4", published="2026-08-09T10:00:00Z"),
    "S2": source("S2", "https://news.example/item?id=1", "What people say", kind="comments"),
}


def library(folder: Path, moment: datetime = NOON) -> Library:
    """The library of a folder, at a moment that stands still."""
    return Library(folder, lambda: moment, max_wait_s=5)


def said(
    content: str,
    run: str = FIRST,
    call: str = "writer-1.t1.1",
    verdict: str = "",
    sources: Mapping[str, Source] = SOURCES,
) -> Contribution:
    """What a call writes."""
    return Contribution(content, run, call, verdict, sources)


def begun(folder: Path, content: str = "It is out [S1].", **about: str) -> str:
    """A report that the first run began at noon; its name."""
    new = NewReport(**{"title": TITLE, "story_id": "123", "url": "https://sqlite.example/four", **about})
    return library(folder).create(new, said(content))


def past_run(workspace: Path, run_id: str, question: str, files: Mapping[str, str], **settings: Any) -> Path:
    """The folder of a run that is over: a journal's beginning, and files; its path."""
    folder = workspace / run_id
    begun_at = JournalRecord(
        v=1, seq=1, at=NOON, event=RunStarted(run_id=run_id, question=question, engine="0", settings=settings)
    )
    for path, text in {"question.txt": question, **files}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / ".explorer").mkdir(exist_ok=True)
    (folder / ".explorer" / "journal.jsonl").write_bytes(encode_all([begun_at]))
    return folder


def stored(identifier: str, title: str, url: str, text: str) -> dict[str, str]:
    """A stored source's file by its path, as the engine writes it."""
    head = yaml.safe_dump(source(identifier, url, title).model_dump(mode="json"), allow_unicode=True, sort_keys=False)
    return {f".explorer/sources/{identifier}.md": f"---\n{head}---\n{text}\n"}
