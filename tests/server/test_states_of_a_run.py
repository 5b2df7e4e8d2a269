"""What the pages say of runs that were cut off, ended without a report, or lost it; and what to do then."""

import re
from pathlib import Path

from engine_stage import noon
from explorer.journal.journal import Journal
from explorer.observe.run_origin import run_origin
from explorer.schema.events import AgentFinished, AgentStarted, AnyEvent, RunFinished, RunStarted, Status
from made_runs import A, make_run, two_runs
from server.site_stage import browsing, plain

LEAD = "orchestrator"
LONG_QUESTION = "How long is\nthis question? " * 40
NO_MODEL = "the model did not answer"


async def recorded(workspace: Path, question: str, *more: AnyEvent) -> str:
    """The id of a run with these records."""
    run = "20260601-120000-recorded"
    (workspace / run / ".explorer").mkdir(parents=True)
    journal = Journal.open(workspace / run / ".explorer", noon)
    started = AgentStarted(agent=LEAD, role=LEAD, task=question, max_steps=9)
    for event in (RunStarted(run_id=run, question=question, engine="0", settings={}), started, *more):
        await journal.append(event)
    journal.close()
    return run


async def test_a_run_without_a_process_is_said_to_be_cut_off(tmp_path: Path) -> None:
    """None of its agents is shown at work, here and on the timeline, and the page says what to do."""
    run = await recorded(tmp_path / "workspace", "Why?")
    async with browsing(tmp_path) as browser:
        page = plain(await browser.page(f"/runs/{run}"))
        assert "No process works on it" in page
        assert "resume it" in page
        assert "cut off" in page
        assert "at work" not in page.partition("Fork")[0]
        assert "It is not written yet" in page
        timeline = await browser.page(f"/runs/{run}/timeline")
        assert 'data-status="unfinished"' in timeline
        assert "cut off" in timeline
        assert 'data-status="running"' in await browser.page(f"/runs/{run}/timeline?at=1")


async def test_a_run_that_ended_without_a_report_says_so(tmp_path: Path) -> None:
    """Its page says how to get one; that of the report leads back to the run."""
    ends = (
        AgentFinished(agent=LEAD, status=Status.FAILED, reason=NO_MODEL, summary=""),
        RunFinished(status=Status.FAILED, reason=NO_MODEL),
    )
    run = await recorded(tmp_path / "workspace", "Why?", *ends)
    async with browsing(tmp_path) as browser:
        page = plain(await browser.page(f"/runs/{run}"))
        assert NO_MODEL in page
        assert "The run ended without one." in page
        assert "ask further" in page
        assert "not written yet" not in page
        for path in ("report", "claims", "citations/1"):
            assert f'href="/runs/{run}"' in await browser.page(f"/runs/{run}/{path}", 404)
        for path in ("report", "claims"):
            page = await browser.page(f"/runs/{run}/{path}", 404)
            assert "The run ended without one." in page
            assert f'href="/runs/{run}/{path}" aria-current="page"' in page
        assert "Back to the run" not in await browser.page("/runs/nothing", 404)
        assert "Back to the run" not in await browser.page("/runs/nothing/report", 404)


async def test_a_removed_report_comes_back_in_a_fork(tmp_path: Path) -> None:
    """As the page of the run says."""
    await two_runs(tmp_path / "workspace")
    (tmp_path / "workspace" / A / "report.md").unlink()
    async with browsing(tmp_path) as browser:
        page = plain(await browser.page(f"/runs/{A}"))
        assert "report.md was removed from the run's folder. A fork of the run has it" in page
        fork = (await browser.send(f"/runs/{A}/fork")).headers["location"]
        assert "The plant in May" in plain(await browser.page(fork))


async def test_a_long_question_can_be_read_to_its_end(tmp_path: Path) -> None:
    """The heading is cut; below it is all of it, with its lines. A short one is in the heading alone."""
    run = await recorded(tmp_path / "workspace", LONG_QUESTION)
    await two_runs(tmp_path / "workspace")
    async with browsing(tmp_path) as browser:
        page = await browser.page(f"/runs/{run}")
        whole = re.search(r"The whole question</summary><pre[^>]*>([^<]*)</pre>", page)
        assert whole is not None
        assert whole[1].strip() == LONG_QUESTION.strip()
        assert "The whole question" not in await browser.page(f"/runs/{A}")


async def test_pages_say_that_a_run_was_carried_here(tmp_path: Path) -> None:
    """What `explorer show` says above a run of somebody else is on each page of it; the user's own has no such line."""
    folder = await make_run(tmp_path / "workspace", "20260801-090000-ropes-cccc", [], "# Ropes\n")
    async with browsing(tmp_path) as browser:
        run = await browser.ask("What do the ropes cost?")
        assert "carried run" not in plain(await browser.until(run, "complete"))
        said = run_origin(folder, tmp_path / "state")
        assert said.startswith("carried run: nothing proves that you started it")
        for path in ("", "?at=3", "/timeline", "/report", "/claims", "/files"):
            assert said in plain(await browser.page(f"/runs/{folder.name}{path}")), path
        assert (await browser.get(f"/api/runs/{folder.name}")).json()["head"]["origin"] == said
        assert (await browser.get(f"/api/runs/{run}")).json()["head"]["origin"] == ""
