"""Whole runs on disk, made with the engine's own journal, ledger and conclusion, but without a model."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from explorer.journal.journal import Journal
from explorer.journal.run_state import RunState
from explorer.run.finish import ReportContext, ReportOptions, finish_run
from explorer.schema.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    RunFinished,
    RunStarted,
    Status,
    ToolFinished,
    ToolStarted,
    TurnTaken,
)
from explorer.schema.reasons import EndReason
from explorer.schema.settings import Settings
from explorer.schema.tool import SourceDraft
from explorer.testing import says
from explorer.workspace.source_store import SourceStore
from explorer.workspace.workspace import Workspace


def page(url: str, text: str, **fields: str) -> SourceDraft:
    """A page as a tool found it."""
    facts = {"title": url.rsplit("/", 1)[-1], "kind": "page", "via": "direct"} | fields
    return SourceDraft.model_validate({"url": url, "text": text, **facts})


async def make_run(
    workspace: Path, run_id: str, drafts: Sequence[SourceDraft], report: str, question: str = "How is the plant?"
) -> Path:
    """The folder of a complete run with one writer, these sources and this report."""
    folder = workspace / run_id
    (folder / ".explorer").mkdir(parents=True)
    at = datetime.strptime(run_id[:15], "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    journal = Journal.open(folder / ".explorer", lambda: at)
    run_state, room = RunState(), Workspace(folder)

    async def record(event: AnyEvent) -> None:
        await journal.append(event)
        run_state.apply(event)

    async def write(path: str, text: str) -> None:
        room.write_own(path, text)

    async def read(path: str) -> str:
        return room.read_text(path)

    lead = "orchestrator"
    await record(RunStarted(run_id=run_id, question=question, engine="0", settings=Settings().public()))
    await record(AgentStarted(agent=lead, role=lead, task=question, max_steps=9))
    sources = await SourceStore(record, write, lambda: at, (), read).store(drafts)
    arguments = {"filepath": "report.md", "content": report}
    await record(TurnTaken(agent=lead, turn=says("", ("search", {}), ("write_file", arguments)), seconds=1.0))
    shown = tuple(source.id for source in sources)
    for index, name in ((1, "search"), (2, "write_file")):
        await record(ToolStarted(agent=lead, call=f"{lead}.t1.{index}", name=name, effect="pure"))
    await record(
        ToolFinished(agent=lead, call=f"{lead}.t1.1", name="search", success=True, content="found", sources=shown)
    )
    written = room.write_text("report.md", report)
    await record(
        ToolFinished(
            agent=lead, call=f"{lead}.t1.2", name="write_file", success=True, content="Wrote", files=(written,)
        )
    )
    ended = AgentFinished(agent=lead, status=Status.COMPLETE, reason="answered", summary="Done.")
    await record(ended)
    await finish_run(ReportContext(run_state, room), ended, EndReason(), ReportOptions("en"))
    await record(RunFinished(status=ended.status, reason=""))
    journal.close()
    return folder


A, B = "20260601-090000-plant-aaaa", "20260701-090000-plant-bbbb"
PLANT = "https://plant.example"

REPORT_A = """# The plant in May

The harbour plant fed 12 % more power into the grid than a year before [S1].
The story about it had 120 points and 33 comments in the evening [S2]. Its battery is old and weak [S1].

- Ms Keller says: “Nobody wanted to say how far that promise can be trusted in winter.” [S3]
- 电站发电量增长了百分之十二，负责人张小明表示满意 [S4]。

The council has not decided anything so far, according to its own minutes [S5].
"""

REPORT_B = """# The plant in June

The story about it had 340 points and 88 comments by the next evening [S2]. The harbour plant fed 21 % more power
into the grid than a year before [S1].

- Ms Keller says: “Everybody wanted to say how far that promise can be trusted in winter.” [S3]
- 电站发电量增长了百分之二十，负责人张小明表示满意 [S4]。

A second field of panels will be built behind the shipyard, the council decided on Monday [S5].
Its battery is old and weak [S1].
"""


async def two_runs(workspace: Path) -> tuple[Path, Path]:
    """The same question, a month apart: things are new, gone, changed and the same."""
    story = "Harbour plant\nhttps://plant.example/may\n{} points, {} comments, by ann, 2026-06-01T08:00:00Z"
    same = [page(f"{PLANT}/keller", "An interview with Ms Keller."), page(f"{PLANT}/zh", "电站发电量增长。")]
    hn = "https://news.ycombinator.com/item?id=1"
    first = [
        page(f"{PLANT}/may", "The plant fed 12 % more power into the grid.\nThe battery is old."),
        page(hn, story.format(120, 33), kind="story", title="Harbour plant"),
        *same,
        page(f"{PLANT}/minutes?utm_source=mail", "Nothing was decided."),
        page(f"{PLANT}/old-hit", "A passage.", kind="search_hit"),
        page(f"{PLANT}/common", "A passage for these words.", kind="search_hit"),
    ]
    second = [
        page(f"{PLANT}/may/", "The plant fed 21 % more power into the grid.\nThe battery is old."),
        page(hn, story.format(340, 88), kind="story", title="Harbour plant"),
        *same,
        page(f"{PLANT}/decision", "A second field will be built."),
        page(f"{PLANT}/minutes", "Nothing was decided. Or so it seemed then."),
        page(f"{PLANT}/common", "A passage for other words.", kind="search_hit"),
    ]
    return await make_run(workspace, A, first, REPORT_A), await make_run(workspace, B, second, REPORT_B)
