import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine_stage import source
from explorer.journal.run_state import RunState
from explorer.reports.verify.claims import notice_of
from explorer.run.finish import (
    NOT_YET,
    Conclusion,
    ReportContext,
    ReportOptions,
    checked_draft,
    created_at,
    draft_problem,
    finish_run,
    missing_report,
    restore_draft,
)
from explorer.run.last_report import leave_report
from explorer.run.outcome import LookupCounts, Outcome, failed_words, reason_words
from explorer.schema.errors import ToolError
from explorer.schema.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    RoleLoaded,
    RunStarted,
    SourceRecorded,
    Status,
    ToolFinished,
    TurnTaken,
)
from explorer.schema.reasons import EndCause, EndReason, ErrorCode
from explorer.testing import says
from explorer.text.frontmatter import without_frontmatter
from explorer.workspace.workspace import Workspace, report_path, sha256
from thoroughness import each_slow_but

RUN_ID = "20260810-120000-may-0001"
STORED = "Solar output rose by twelve percent in May, says the log of the plant."
DRAFT = (
    "# A good May\n\nSolar output rose by twelve percent in May [S2], says the plant's own log [S1], and nothing else "
    "was found.\n"
)
RENDERED = (
    "# A good May\n\nSolar output rose by twelve percent in May [1], says the plant's own log [2], and nothing else "
    "was found."
)
ANSWER = "Solar output rose by twelve percent in May [S1], and that is all that could be found out."
DONE = AgentFinished(
    agent="orchestrator", status=Status.COMPLETE, reason="finished", summary="Short.", cause=EndCause.FINISHED
)


@dataclass
class Ending:
    """A run that is about to end: its folder and its events."""

    folder: Path
    question: str = "How was May for the plant?"
    run_id: str = RUN_ID
    model: str = "scripted:m"
    events: list[AnyEvent] = field(default_factory=list[AnyEvent])

    def __post_init__(self) -> None:
        """Begin with what every run has."""
        self.workspace = Workspace(self.folder)
        self._calls = count(1)
        self.events = [
            RunStarted(run_id=self.run_id, question=self.question, engine="0", settings={}),
            RoleLoaded(role="orchestrator", model=self.model, system="", tools=(), max_steps=9),
            AgentStarted(agent="orchestrator", role="orchestrator", task="Question", max_steps=9),
            TurnTaken(agent="orchestrator", turn=says("Hm.", cost_usd=0.125), seconds=1.0),
        ]

    def found(self, *ids: str, **fields: Any) -> "Ending":
        """With these sources, all of one text."""
        for identifier in ids:
            known = source(identifier, **{"sha256": sha256(STORED.encode()), **fields})
            self.events.append(SourceRecorded(source=known))
            self.workspace.write_own(f".explorer/sources/{identifier}.md", f"---\nid: {identifier}\n---\n{STORED}\n")
        return self

    def helped(self, status: Status, summary: str, agent: str = "searcher-1") -> "Ending":
        """With a helper that ended so."""
        self.events.append(
            AgentStarted(agent=agent, role="searcher", parent="orchestrator", task="Look at May", max_steps=9)
        )
        self.events.append(AgentFinished(agent=agent, status=status, reason="why it ended", summary=summary))
        return self

    def wrote(self, path: str, text: str) -> "Ending":
        """With a file that an agent wrote."""
        written = self.workspace.write_text(path, text)
        call = f"orchestrator.t9.{next(self._calls)}"
        self.events.append(
            ToolFinished(agent="orchestrator", call=call, name="write_file", success=True, content="", files=(written,))
        )
        return self

    @property
    def run_state(self) -> RunState:
        """The run so far."""
        return RunState.of(self.events)

    @property
    def context(self) -> ReportContext:
        """The run, for its report."""
        return ReportContext(self.run_state, self.workspace)

    def end(self, ended: AgentFinished | None = DONE, cut: str = "", language: str = "") -> Conclusion:
        """Conclude, and see that what was said is what is on disk."""
        conclusion = asyncio.run(finish_run(self.context, ended, EndReason(cut), ReportOptions(language)))
        assert (self.folder / "report.md").read_text() == conclusion.report
        assert report_path(self.folder) == self.folder / "report.md"
        return conclusion


def fields_of(conclusion: Conclusion) -> dict[str, Any]:
    """The frontmatter."""
    return yaml.safe_load(conclusion.report.split("---\n")[1])


def test_a_complete_run(tmp_path: Path) -> None:
    """The draft with numbered references below a frontmatter that says how it came about; the draft is kept."""
    run = Ending(tmp_path).found("S1", "S2", "S3").wrote("report.md", DRAFT)
    conclusion = run.end()
    assert (conclusion.status, conclusion.reason) == (Status.COMPLETE, "")
    body = without_frontmatter(conclusion.report)
    assert body.startswith(RENDERED + "\n\n## References\n\n1. Title of S2.")
    assert fields_of(conclusion) == {
        "question": "How was May for the plant?",
        "run_id": RUN_ID,
        "created_at": "2026-08-10T12:00:00+00:00",
        "status": "complete",
        "models": ["scripted:m"],
        "cost_usd": 0.125,
        "tokens": {"input": 100, "output": 20},
        "sources": 3,
        "sources_cited": 2,
        "citations": {
            "total": 1,
            "supported": 1,
            "not_found": 0,
            "elsewhere": 0,
            "source_missing": 0,
            "unchecked": 0,
        },
        "uncited": 0,
        "language": "en",
    }
    assert (tmp_path / ".explorer" / "draft.md").read_text() == DRAFT


def test_citations_without_a_source_make_it_partial(tmp_path: Path) -> None:
    """The report is there, says where a source is missing, and does not pass for complete."""
    conclusion = Ending(tmp_path).found("S1").wrote("report.md", DRAFT).end()
    assert conclusion.status is Status.PARTIAL
    assert conclusion.reason == fields_of(conclusion)["reason"] == "the report cites sources that do not exist: S2"
    assert "in May [source missing], says the plant's own log [1]" in conclusion.report


def test_without_a_report_what_was_found_is_told(tmp_path: Path) -> None:
    """The reason, each helper's words, each file, the way on; citations in them lead to their sources."""
    run = Ending(tmp_path).found("S1").wrote("notes/may.md", "# May\n\n12 %\n")
    run.helped(Status.COMPLETE, "Output rose [S1].").helped(Status.PARTIAL, "", "searcher-2")
    run.events.append(AgentStarted(agent="searcher-3", role="searcher", task="Look at June\nand July", max_steps=9))
    conclusion = run.end()
    assert (conclusion.status, conclusion.reason) == (Status.FAILED, "no report was written")
    body = without_frontmatter(conclusion.report)
    for words in (
        "# How was May for the plant?\n\nThis run stopped before its report was written.",
        "**searcher-1** (complete): Output rose [1].",
        "**searcher-2** (partial): why it ended",
        "**searcher-3** was still at work on: Look at June\n",
        "- `notes/may.md` (3 lines): May",
        "What was read is stored in `.explorer/sources/`.",
        f"    explorer resume {tmp_path.name}",
        "1. Title of S1.",
    ):
        assert words in body


def test_a_run_that_found_nothing_has_failed(tmp_path: Path) -> None:
    """No file, no source, no words: a failure that still says so in a report."""
    conclusion = Ending(tmp_path).end()
    assert (conclusion.status, conclusion.reason) == (Status.FAILED, "no report was written; nothing was found")
    assert "This run stopped before its report was written" in conclusion.report


def test_words_are_no_report(tmp_path: Path) -> None:
    """What a model says instead of writing a report is shown, and does not pass for an answer."""
    conclusion = Ending(tmp_path).found("S1").end(DONE.model_copy(update={"summary": ANSWER}))
    assert (conclusion.status, conclusion.words) == (Status.FAILED, ANSWER)
    assert "## What the model said instead\n\n" + ANSWER.replace("[S1]", "[1]") in conclusion.report


def test_a_short_true_answer_is_a_report(tmp_path: Path) -> None:
    """One sentence with its source is all that some questions need."""
    run = Ending(tmp_path).found("S1").wrote("report.md", "Output rose by twelve percent in May. [S1]\n")
    assert problem_of(run) is None
    assert run.end().status is Status.COMPLETE


@pytest.mark.parametrize(
    "text", ["", "# Report\n", "TODO: write this up when there is time, which there never will be.\n"]
)
def test_a_placeholder_is_no_report(tmp_path: Path, text: str) -> None:
    """Whatever the model says, what it wrote must be something."""
    conclusion = Ending(tmp_path).found("S1").wrote("report.md", text).end()
    assert (conclusion.status, conclusion.reason) == (Status.FAILED, "no report was written")
    assert "TODO" not in conclusion.report


FAILED = AgentFinished(agent="orchestrator", status=Status.FAILED, reason="the model declined", summary="")
PARTIAL = AgentFinished(agent="orchestrator", status=Status.PARTIAL, reason="step limit", summary="")


@pytest.mark.parametrize("text", ["", "TODO", DRAFT], ids=["nothing", "placeholder", "draft"])
@pytest.mark.parametrize("ended", [DONE, FAILED, PARTIAL, None], ids=["done", "failed", "partial", "cut off"])
@pytest.mark.parametrize("cut", each_slow_but(2, zip(["", "time limit"])))
@pytest.mark.parametrize("ids", [(), ("S1", "S2")], ids=["no sources", "sources"])
def test_every_ending_leaves_a_report(
    tmp_path: Path, text: str, ended: AgentFinished | None, cut: str, ids: Sequence[str]
) -> None:
    """Complete only when it is; otherwise with the reason, in the report too; and never without what was written."""
    run = Ending(tmp_path).found(*ids)
    if text:
        run.wrote("report.md", text)
    conclusion = run.end(ended, cut)
    fields = fields_of(conclusion)
    assert fields["status"] == conclusion.status
    assert fields.get("reason", "") == conclusion.reason
    is_good = ended is DONE and not cut and text == DRAFT and bool(ids)
    assert (conclusion.status is Status.COMPLETE) == is_good == (conclusion.reason == "")
    assert ("# A good May" in conclusion.report) == (text == DRAFT)
    if cut:
        assert conclusion.reason.startswith("time limit")


def test_a_follow_up_goes_on_from_the_draft(tmp_path: Path) -> None:
    """The writer finds its own text with its own citations, and what it makes of it is the next report."""
    run = Ending(tmp_path).found("S1", "S2").wrote("report.md", DRAFT)
    first = run.end()
    restore_draft(run.run_state, run.workspace)
    assert run.workspace.read_text("report.md") == DRAFT
    restore_draft(run.run_state, run.workspace)
    assert run.end() == first
    restore_draft(run.run_state, run.workspace)
    run.wrote("report.md", DRAFT + "\nJune was as good [S1].\n")
    second = run.end()
    assert "June was as good [2]." in second.report
    assert without_frontmatter(second.report).startswith(RENDERED)


def test_concluding_again_without_the_draft_in_place(tmp_path: Path) -> None:
    """A crash after the report was written does not make a report of a report."""
    run = Ending(tmp_path).found("S1", "S2").wrote("report.md", DRAFT)
    assert run.end() == run.end() == run.end()


def test_a_report_the_engine_made_is_taken_away_for_a_follow_up(tmp_path: Path) -> None:
    """To the agents there is no report yet, so they cannot take the stand-in for one."""
    run = Ending(tmp_path).found("S1")
    run.end(None, "time limit")
    assert missing_report(run.workspace) == ""
    restore_draft(run.run_state, run.workspace)
    assert missing_report(run.workspace) == "there is no report.md yet"
    assert report_path(tmp_path) is None
    assert words_of(run).startswith("there is no report.md yet")


def problem_of(run: Ending, *, has_time: bool = True) -> ToolError | None:
    """Why the report of a run cannot be handed over, as an error for the model."""
    return asyncio.run(draft_problem(run.context, has_time=has_time))


def words_of(run: Ending) -> str:
    """Why the report of a run cannot be handed over."""
    problem = problem_of(run)
    return "" if problem is None else problem.message


def test_what_keeps_a_draft_from_being_handed_over(tmp_path: Path) -> None:
    """Missing, empty, citing what does not exist: each in words for the model."""
    run = Ending(tmp_path).found("S1")
    assert words_of(run).startswith("there is no report.md yet")
    run.wrote("report.md", "Soon.")
    assert words_of(run).startswith("report.md is empty or a placeholder")
    run.wrote("report.md", DRAFT)
    assert words_of(run).startswith("report.md cites S2, which no stored source has")
    unknown = problem_of(run)
    assert unknown is not None
    assert unknown.data == {"code": ErrorCode.UNKNOWN_SOURCES, "sources": ["S2"]}
    run.found("S2")
    assert problem_of(run) is None


def test_what_sources_do_not_carry_is_told_once(tmp_path: Path) -> None:
    """A figure that no source has goes back to the writer; a second time it is handed over, and counted."""
    run = Ending(tmp_path).found("S1", "S2").wrote("report.md", DRAFT.replace("twelve", "twenty"))
    problem = problem_of(run)
    assert problem is not None
    assert problem.message.startswith(NOT_YET)
    assert "twenty percent" in problem.message
    assert problem_of(run, has_time=False) is None
    finish: tuple[str, dict[str, Any]] = ("finish_exploration", {"summary": "s"})
    run.events += [
        TurnTaken(agent="orchestrator", turn=says("", finish), seconds=1.0),
        ToolFinished(
            agent="orchestrator",
            call="orchestrator.t2.1",
            name="finish_exploration",
            success=False,
            content="Reworded.",
            data=dict(problem.data),
        ),
    ]
    assert problem_of(run) is None
    fields = fields_of(run.end())
    assert (fields["citations"]["not_found"], fields["status"]) == (1, "partial")
    assert (
        fields["reason"]
        == "in the report, 1 of 1 cited sentences have a quote or a figure that their sources do not have"
    )
    (claim,) = [json.loads(line) for line in (tmp_path / ".explorer/claims.jsonl").read_text().splitlines()]
    assert (claim["verdict"], claim["ids"]) == ("not_found", ["S2", "S1"])
    sources = (tmp_path / ".explorer/sources.jsonl").read_text().splitlines()
    assert [json.loads(line)["cited"] for line in sources] == [True, True]


def test_claims_without_any_citation_are_not_complete(tmp_path: Path) -> None:
    """A report with figures and no source is partial, and says so in its first line."""
    run = Ending(tmp_path).found("S1").wrote("report.md", DRAFT.replace(" [S2]", "").replace(" [S1]", ""))
    conclusion = run.end()
    assert conclusion.status is Status.PARTIAL
    assert without_frontmatter(conclusion.report).startswith("> **Partial:** The report cites no source, although")
    assert len(conclusion.verification.uncited) == fields_of(conclusion)["uncited"] == 1


def test_the_frontmatter_is_honest(tmp_path: Path) -> None:
    """Unknown cost is unknown, extraction is called so, invented data too, and the language is the report's."""
    run = Ending(tmp_path, question="五月的发电量如何？", model="offline").found("S1", "S2", flags=("sample",))
    run.events.append(
        TurnTaken(agent="orchestrator", turn=says("x").model_copy(update={"cost_usd": None}), seconds=0.0)
    )
    text = "# 五月\n\n" + "太阳能发电量在五月增长了百分之十二 [S1]。" * 3
    conclusion = run.wrote("report.md", text).end()
    fields = fields_of(conclusion)
    assert (fields["cost_usd"], fields["language"]) == (None, "zh")
    assert fields["written_by"] == "extraction, without a language model"
    assert fields["sample"] == "invented sample data"
    assert "## 参考来源" in conclusion.report
    assert fields_of(run.end(language="en"))["language"] == "en"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("# Mai\n\n" + "Das Kraftwerk hat im Mai zwölf Prozent mehr Strom in das Netz geliefert [S1]. " * 3, "de"),
        ("# Maj\n\n" + "Kraftverket levererade tolv procent mer ström till nätet i maj [S1]. " * 3, "und"),
    ],
    ids=["German", "not recognised"],
)
def test_the_frontmatter_names_the_language_of_the_report(text: str, language: str, tmp_path: Path) -> None:
    """Never English for want of knowing better."""
    conclusion = Ending(tmp_path).found("S1", "S2").wrote("report.md", text).end()
    assert fields_of(conclusion)["language"] == language


def test_a_run_id_of_someones_own_does_no_harm(tmp_path: Path) -> None:
    """An embedding program may name its runs as it likes; only the time is then not known."""
    assert created_at("20260810-120000-may-0001") == "2026-08-10T12:00:00+00:00"
    assert created_at("my-run") == ""
    conclusion = Ending(tmp_path, run_id="my-run").found("S1", "S2").wrote("report.md", DRAFT).end()
    assert conclusion.status is Status.COMPLETE


def test_lookups_are_given_in_the_language_of_the_report() -> None:
    """A Chinese report says in Chinese what failed and that nothing was found; programs read English."""
    counts = LookupCounts(found=0, empty=2, failed=1, failed_by_tool={"web_search": 1})
    empty = Outcome(Status.NOTHING_FOUND, "nothing relevant was found (3 lookups)")
    assert reason_words(empty, counts, "en") == empty.reason
    assert reason_words(empty, counts, "zh").startswith("没有找到相关内容（共 3 次检索")
    assert reason_words(Outcome(Status.PARTIAL, "a limit"), counts, "zh") == "a limit"
    assert failed_words(counts, "zh") == "3 次检索中有 1 次失败（web_search 1），本应查到的内容这里没有"
    assert notice_of(Status.NOTHING_FOUND, "没有找到", "", "zh") == "> **未找到:** 没有找到。\n\n"


class WaitingDisk(Workspace):
    """Gives the stored sources once the loop has worked."""

    def __init__(self, folder: Path) -> None:
        """Take the run's folder."""
        super().__init__(folder)
        self.has_worked = threading.Event()
        self.on_wait: Callable[[], object] = lambda: None

    def read_text(self, path: str) -> str:
        """Read a file; a source when it may."""
        if path.startswith(".explorer/sources/"):
            self.on_wait()
            assert self.has_worked.wait(30)
        return super().read_text(path)


ENDS: dict[str, Callable[[ReportContext], Coroutine[Any, Any, object]]] = {
    "finished": lambda context: finish_run(context, DONE, EndReason()),
    "cut off": lambda context: finish_run(context, None, EndReason("time limit")),
    "handed over": draft_problem,
    "judged": checked_draft,
    "cancelled": lambda context: leave_report(context.run_state, context.workspace, "the run was cancelled"),
}


@pytest.mark.parametrize("end", ENDS)
async def test_the_loop_works_while_citations_are_looked_up(tmp_path: Path, end: str) -> None:
    """Limits, orders and other runs of the process are served meanwhile, whatever the check is for."""
    run = Ending(tmp_path).found("S1", "S2").wrote("report.md", DRAFT)
    disk = WaitingDisk(tmp_path)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(ENDS[end](ReportContext(run.run_state, disk)))
        tasks.create_task(asyncio.to_thread(asyncio.get_running_loop().call_soon_threadsafe, disk.has_worked.set))


async def test_a_run_cancelled_twice_waits_for_no_citation(tmp_path: Path) -> None:
    """The second time, the shortest report is left at once."""
    run = Ending(tmp_path).found("S1", "S2").wrote("report.md", DRAFT)
    disk, is_reading, loop = WaitingDisk(tmp_path), asyncio.Event(), asyncio.get_running_loop()
    disk.on_wait = lambda: loop.call_soon_threadsafe(is_reading.set)
    leaving = asyncio.ensure_future(leave_report(run.run_state, disk, "the run was cancelled"))
    await is_reading.wait()
    leaving.cancel()
    loop.call_soon(disk.has_worked.set)
    with pytest.raises(asyncio.CancelledError):
        await leaving
    report = (tmp_path / "report.md").read_text()
    assert "This run ended early: the run was cancelled." in report
    assert "twelve" not in report
