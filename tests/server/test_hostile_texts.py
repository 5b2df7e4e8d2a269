"""Hostile texts wherever a run can have them, on every page: none gets through, and each would be noticed."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from explorer.journal.codec import encode_all
from explorer.schema.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    JournalRecord,
    NoteAdded,
    RunFinished,
    RunStarted,
    Source,
    SourceRecorded,
    Status,
    Steered,
    ToolFinished,
    ToolStarted,
    TurnTaken,
    WrittenFile,
)
from explorer.schema.reasons import EndCause
from explorer.schema.settings import Settings
from explorer.testing import says
from server.site_stage import Browser, active_parts, browsing

RUN = "20260801-090000-hostile-0001"
LEAD = "orchestrator"
HOSTILE: dict[str, tuple[str, str]] = {
    "script": ("<script>alert(1)</script>", "<p><script>alert(1)</script>"),
    "handler": ("<img src=x onerror=alert(1)>", "<p><img src=x onerror=alert(1)>"),
    "drawing": ("<svg onload=alert(1)><script>alert(2)</script></svg>", "<p><svg onload=alert(1)></svg>"),
    "frame": ("<iframe srcdoc='<script>alert(1)</script>'></iframe>", "<p><iframe srcdoc='x'></iframe>"),
    "style": ("<b style='position:fixed;inset:0'>x</b>", "<b style='position:fixed;inset:0'>x</b>"),
    "refresh": ("<meta http-equiv=refresh content='0; url=//evil.example/'>", "<meta http-equiv=refresh>"),
    "base": ("<base href='https://evil.example/'>", "<base href='https://evil.example/'>"),
    "form": ("<form action='https://evil.example/'><button>Go", "<form action='https://evil.example/'>"),
    "comment": ("<!--><script>alert(1)</script>-->", "<!-- x -->"),
    "end of a field": ("</textarea></title></pre><script>alert(1)</script>", "</pre><script>alert(1)</script>"),
    "end of an attribute": ('" autofocus onfocus="alert(1)', '<input value="" autofocus onfocus="alert(1)">'),
    "single quotes": ("' onmouseover='alert(1)", "<a title='' onmouseover='alert(1)'>"),
    "link": ("[run](javascript:alert(1))", "<a href='javascript:alert(1)'>run</a>"),
    "link in disguise": ("[run](JaVaScRiPt&colon;alert(1))", "<a href='JaVaScRiPt:alert(1)'>run</a>"),
    "page in a link": ("[run](data:text/html,<script>alert(1)</script>)", "<a href='data:text/html,x'>run</a>"),
    "image of another site": ("![x](https://evil.example/a.png)", "<img src='https://evil.example/a.png'>"),
    "order of htmx": ("<b hx-get='https://evil.example/' hx-trigger=load>x</b>", "<b hx-get='https://evil.example/'>"),
    "order of the script": ("<details open><div data-load='//evil.example/'>", "<div data-load='//evil.example/'>"),
    "stream": ("x\n\ndata: <hx-partial hx-target='body'><script>alert(1)</script>", "<hx-partial hx-target='body'>"),
}
"""What is put everywhere, and what it would be in a page that lets it through."""


def _events(text: str) -> Iterator[AnyEvent]:
    yield RunStarted(run_id=RUN, question=f"What is {text}?", engine="0", settings=Settings().public())
    yield AgentStarted(agent=LEAD, role=LEAD, task=f"Find {text}", max_steps=9)
    turn = says(f"I look. {text}", ("web_search", {"query": text, text: text}), ("call_agent", {"task": text}))
    yield TurnTaken(agent=LEAD, turn=turn.model_copy(update={"model": f"model {text}"}), seconds=0.5)
    yield ToolStarted(agent=LEAD, call=f"{LEAD}.t1.1", name="web_search", effect="pure", activity=f"searching {text}")
    yield SourceRecorded(
        source=Source(
            id="S1", url=f"https://rope.example/{text}", title=f"Title {text}", kind="page", via=f"direct {text}",
            author=text, published=text, retrieved=datetime(2026, 8, 1, tzinfo=UTC), sha256="0" * 64, chars=9,
            flags=(text,),
        )
    )  # fmt: skip
    file = WrittenFile(
        path=f"notes/{text.replace('/', '_')}.md", title=f"File {text}", lines=1, bytes=9, sha256="1" * 64
    )
    yield ToolFinished(
        agent=LEAD, call=f"{LEAD}.t1.1", name="web_search", success=True, content=f"Result {text}", sources=("S1",),
        files=(file,),
    )  # fmt: skip
    helper = f"searcher {' '.join(text.split())}"
    yield AgentStarted(
        agent=helper,
        role=f"searcher {text}",
        parent=LEAD,
        parent_call=f"{LEAD}.t1.2",
        task=text,
        max_steps=9,
    )
    yield AgentFinished(
        agent=f"searcher {text}", status=Status.PARTIAL, reason=f"Because {text}", summary=f"Summary {text}",
        cause=EndCause.OTHER,
    )  # fmt: skip
    yield NoteAdded(agent=LEAD, text=f"Note {text}", reason="a")
    yield Steered(agent=LEAD, text=f"Order {text}", order="1")
    yield RunFinished(status=Status.PARTIAL, reason=f"Ended {text}", answer=f"Answer {text}")


def hostile_run(workspace: Path, text: str) -> Path:
    """A run that has this text wherever somebody else can put one."""
    folder = workspace / RUN
    (folder / ".explorer" / "sources").mkdir(parents=True)
    at = datetime(2026, 8, 1, 9, tzinfo=UTC)
    records = [JournalRecord(v=1, seq=number, at=at, event=event) for number, event in enumerate(_events(text), 1)]
    (folder / ".explorer" / "journal.jsonl").write_bytes(encode_all(records))
    parts = ("# Ropes {0}", "{0} It costs 12 euros [S1]. {0}", "- {0}", "```\n{0}\n```", "| a |\n|---|\n| {0} |")
    report = "".join(f"{part.replace('{0}', text)}\n\n" for part in parts)
    name = text.replace("/", "_")[:80].replace("\n", " ")
    for path in ("report.md", f"notes/{name}.md", f"{name}.txt", f"{name}.csv", "drawing.svg", "page.html"):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(report)
    return folder


def _files(folder: Path) -> list[str]:
    """The paths of all files of the run, each byte as a browser may write it."""
    files = [file.relative_to(folder) for file in folder.rglob("*") if file.is_file()]
    shown = [str(file).encode() for file in files if file.parts[0] != ".explorer"]
    return ["".join(f"%{byte:02x}" for byte in path).replace("%2f", "/") for path in shown]


async def _pages(browser: Browser, folder: Path) -> dict[str, str]:
    """All pages that show anything of the run, by their addresses."""
    base = f"/runs/{folder.name}"
    listed = await browser.page(base)
    found = {base: listed, "/": await browser.page("/"), "/?q=euros": await browser.page("/?q=euros")}
    for path in ("?at=9", "/timeline", "/timeline?at=5", "/report", "/citations/1", "/citations/1?part=true", "/claims",
                 "/sources", "/sources/S1", "/sources?q=rope", "/files", f"/agents/{LEAD}?part=true"):  # fmt: skip
        found[base + path] = await browser.page(base + path)
    for path in _files(folder):
        found[path] = await browser.page(f"{base}/files/{path}")
    other = await browser.get(f"{base}/nothing/{folder.name}?q=<script>")
    found["/compare"], found["404"] = await browser.page("/compare"), other.text
    return found


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if number else ()) for number, name in enumerate(HOSTILE)]
)
async def test_a_hostile_text_is_shown_as_text(tmp_path: Path, name: str) -> None:
    """In questions, tasks, turns, results, titles, files and their names, summaries, orders and reports."""
    text, control = HOSTILE[name]
    assert active_parts(control), "the control: what gets through is noticed"
    folder = hostile_run(tmp_path / "workspace", text)
    async with browsing(tmp_path) as browser:
        for path, page in (await _pages(browser, folder)).items():
            assert not active_parts(page), path
        seen = await browser.page(f"/runs/{RUN}/agents/{LEAD}")
        assert "Result" in seen
        raw = await browser.get(f"/runs/{RUN}/raw/drawing.svg")
        assert raw.headers["content-type"].startswith("text/plain")
        assert "sandbox" in raw.headers["content-security-policy"]
        answer = await browser.get(f"/api/runs/{RUN}")
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
        stream = await browser.get(f"/api/runs/{RUN}/events", headers={"accept": "text/event-stream"})
        lines = stream.text.splitlines()
        assert all(line.partition(":")[0] in {"", "id", "data", "event"} for line in lines)
        assert sum(line.startswith("data:") for line in lines) == 12
