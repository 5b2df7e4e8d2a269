"""Runs of many agents, and texts that are written from right to left."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine_stage import noon
from explorer.journal.journal import Journal
from explorer.schema.events import AgentStarted, RunStarted
from made_runs import make_run, page
from server.browser.browser_stage import PHONE, SiteProcess, Visitor, expect, overflow_px
from server.browser.conftest import Begin

pytestmark = pytest.mark.slow
MANY, ARABIC = "20260601-120000-many", "20260602-120000-arabic"
AGENTS = 300
REPORT = "# تقرير عن المحطة\n\nأنتجت المحطة 12 % أكثر [S1].\n\nAnd an English line [S1].\n"
QUESTION = "ماذا فعلت المحطة في مايو؟"


async def _add_runs(workspace: Path) -> None:
    await make_run(workspace, ARABIC, [page("https://plant.example/ar", "أنتجت المحطة 12 % أكثر")], REPORT, QUESTION)
    (workspace / MANY / ".explorer").mkdir(parents=True)
    journal = Journal.open(workspace / MANY / ".explorer", noon)
    await journal.append(RunStarted(run_id=MANY, question="Who?", engine="0", settings={}))
    await journal.append(AgentStarted(agent="orchestrator", role="orchestrator", task="Who?", max_steps=9))
    async with asyncio.TaskGroup() as group:
        for number in range(1, AGENTS):
            start = AgentStarted(
                agent=f"searcher-{number}", role="searcher", parent="orchestrator", task="Look.", max_steps=9
            )
            group.create_task(journal.append(start))
    journal.close()


@pytest.fixture
def site(begin_site: Begin, tmp_path: Path) -> SiteProcess:
    """A server with such runs."""
    with ThreadPoolExecutor() as threads:  # In this one, the browser's driver has a loop.
        threads.submit(asyncio.run, _add_runs(tmp_path / "workspace")).result()
    return begin_site(SiteProcess(tmp_path))


def test_many_agents_leave_the_rest_of_the_page_in_reach(site: SiteProcess, visitor: Visitor) -> None:
    """Their list scrolls by itself, so that the report is a few screens away on a phone; keys reach the last one."""
    opened = visitor.open(site, f"/runs/{MANY}", viewport=PHONE)
    screens = "document.documentElement.scrollHeight / innerHeight"
    assert opened.locator("li.agent").count() == AGENTS
    assert opened.evaluate(screens) < 4
    last = opened.locator("li.agent summary").last
    last.focus()
    expect(last).to_be_in_viewport()
    opened.goto(f"/runs/{MANY}/timeline")
    assert opened.evaluate(screens) < 5
    opened.emulate_media(media="print")
    assert opened.evaluate(screens) > 10


def test_a_text_from_right_to_left_is_set_so(site: SiteProcess, visitor: Visitor) -> None:
    """The question and the report begin at the right, a line in another script at the left."""
    for path in (f"/runs/{ARABIC}", f"/runs/{ARABIC}/report"):
        opened = visitor.open(site, path, viewport=PHONE)
        article = opened.locator("article")
        expect(article).to_have_css("direction", "rtl")
        assert overflow_px(opened) <= 0
    expect(visitor.open(site, f"/runs/{ARABIC}").locator("#question-title")).to_have_css("direction", "rtl")
    gaps = (
        "one => { const range = document.createRange(); range.selectNodeContents(one);"
        " const text = range.getBoundingClientRect(), box = one.getBoundingClientRect();"
        " return [text.left - box.left, box.right - text.right] }"
    )
    assert opened.locator("article p", has_text="English").evaluate(gaps)[0] < 1
    opened.goto(f"/runs/{ARABIC}/claims")
    left, right = opened.locator("blockquote", has_text="أنتجت").evaluate(gaps)
    assert right < 1 < left
