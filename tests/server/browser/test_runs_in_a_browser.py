"""What a user does with runs in a real browser: ask, watch, steer, stop, ask further, fork, in one window or two."""

import re

import pytest

from server.browser.browser_stage import (
    ASK,
    NOTES_FILE,
    PacedModel,
    SiteProcess,
    Visitor,
    agent,
    ask,
    expect,
    status,
    wait_until,
)

pytestmark = pytest.mark.slow
REMEMBERS = "window.isTheSameDocument = true"
IS_REMEMBERED = "window.isTheSameDocument === true"


def test_a_question_is_asked_and_watched_to_its_end(offline_site: SiteProcess, visitor: Visitor) -> None:
    """The page that follows the form fills by itself: agents, files and the report, without being loaded again."""
    page = visitor.open(offline_site)
    ask(page, "What do the ropes cost?")
    page.evaluate(REMEMBERS)
    expect(status(page)).to_have_text("complete")
    expect(page.locator("#part-report")).to_contain_text("120 euros")
    expect(agent(page, "orchestrator")).to_be_visible()
    expect(page.locator("#part-files")).to_contain_text("report.md")
    expect(page.get_by_label("Follow-up question")).to_be_visible()
    assert page.evaluate(IS_REMEMBERED)
    page.goto("/")
    expect(page.get_by_role("link", name="What do the ropes cost?")).to_be_visible()


def test_agents_are_watched_while_they_work(team_site: SiteProcess, model: PacedModel, visitor: Visitor) -> None:
    """Each record shows up as it is written: helpers in the tree, files, and the report at the end."""
    page = visitor.open(team_site)
    ask(page, ASK, NOTES_FILE)
    page.evaluate(REMEMBERS)
    expect(status(page)).to_have_text("running")
    expect(page).to_have_title(re.compile("● "))
    expect(agent(page, "searcher-1")).to_have_count(0)
    model.allow()
    for number in (1, 2, 3):
        expect(agent(page, f"searcher-{number}")).to_contain_text("working")
    # Three answers each, in any order: with one fewer than all, each of them has written its file.
    model.allow(8)
    expect(page.locator("#part-files li")).to_have_count(3)
    expect(agent(page, "analyzer-1")).to_have_count(0)
    model.let_go()
    expect(status(page)).to_have_text("complete")
    expect(page.locator("#part-report article")).to_contain_text("A good May for the plant")
    expect(page).not_to_have_title(re.compile("● "))
    assert page.evaluate(IS_REMEMBERED)


def test_a_page_whose_scripts_come_late_is_live(team_site: SiteProcess, model: PacedModel, visitor: Visitor) -> None:
    """Each script in turn may be the last one that arrives."""
    page = visitor.open(team_site)
    run = ask(page, ASK, NOTES_FILE)
    for name in ("htmx.min.js", "hx-sse.min.js", "page.js"):
        late = visitor.open(team_site, late=name)
        late.goto(f"/runs/{run}", wait_until="commit")
        expect(late.locator("#live[data-htmx-powered]")).to_be_attached()
    model.let_go()
    for late in visitor.pages:
        expect(status(late)).to_have_text("complete")


def test_a_message_is_queued_and_then_applied(team_site: SiteProcess, model: PacedModel, visitor: Visitor) -> None:
    """It is shown as queued while the model is busy, and with its record once the run took it."""
    page = visitor.open(team_site)
    ask(page, ASK, NOTES_FILE)
    words = "Look at <b>June</b> as well"
    page.get_by_label("Message to the run").fill(words)
    page.keyboard.press("Enter")
    expect(page.locator(".queued")).to_have_text(f"queued: {words}")
    model.let_go()
    expect(page.locator("#part-head")).to_contain_text(re.compile(r"steer applied at record \d+: Look at <b>June"))
    expect(page.locator(".queued")).to_have_count(0)
    expect(status(page)).to_have_text("complete")


def test_one_of_two_runs_is_stopped(team_site: SiteProcess, model: PacedModel, visitor: Visitor) -> None:
    """The one that is stopped keeps what it has and can be resumed; the other one goes on to its end."""
    first = visitor.open(team_site)
    ask(first, ASK, NOTES_FILE)
    second = visitor.open(team_site)
    ask(second, "And how was May for another plant?", NOTES_FILE)
    second.get_by_role("button", name="Stop now").click()
    expect(status(second)).not_to_have_text("running")
    expect(second.get_by_role("button", name="Stop now")).to_have_count(0)
    expect(status(first)).to_have_text("running")
    expect(first.get_by_role("button", name="Stop now")).to_be_visible()
    model.let_go()
    expect(status(first)).to_have_text("complete")


def test_a_run_stops_and_writes_up(team_site: SiteProcess, model: PacedModel, visitor: Visitor) -> None:
    """The page shows the order as queued, and then why the run ended."""
    page = visitor.open(team_site)
    ask(page, ASK, NOTES_FILE)
    page.get_by_role("button", name="Stop and write up").click()
    expect(page.locator("#part-head")).to_contain_text(re.compile(r"(queued|at record \d+): stopped by the user"))
    model.let_go()
    expect(status(page)).not_to_have_text("running")
    expect(page.locator("#part-head")).to_contain_text(re.compile(r"stop applied at record \d+"))


def test_a_run_is_asked_further(offline_site: SiteProcess, visitor: Visitor) -> None:
    """The same page goes on with the follow-up, which the orchestrator's turns show."""
    page = visitor.open(offline_site)
    run = ask(page, "What do the ropes cost?")
    expect(status(page)).to_have_text("complete")
    before = page.locator("#part-head").get_attribute("data-seq") or ""
    page.get_by_label("Follow-up question").fill("What do the ropes cost in March?")
    page.get_by_role("button", name="Ask further").click()
    wait_until(page, f"document.querySelector('#part-head').dataset.seq > {int(before) + 1}")
    expect(status(page)).to_have_text("complete")
    expect(page.get_by_label("Follow-up question")).to_have_value("")
    assert page.url.endswith(f"/runs/{run}")
    lead = agent(page, "orchestrator")
    lead.locator("summary").first.click()
    expect(lead.locator(".turns")).to_contain_text("What do the ropes cost in March?")


def test_a_run_is_forked_from_a_record(offline_site: SiteProcess, visitor: Visitor) -> None:
    """The past is a page of its own; the new run begins there, and the first one stays as it is."""
    page = visitor.open(offline_site)
    run = ask(page, "What do the ropes cost?")
    expect(status(page)).to_have_text("complete")
    page.goto(f"/runs/{run}?at=5")
    expect(page.locator(".note")).to_contain_text("after record 5 of")
    page.get_by_role("button", name="Fork at record 5").click()
    page.wait_for_url(re.compile(f"/runs/(?!{run}$)[^/?]+$"))
    expect(status(page)).to_have_text("unfinished")
    page.get_by_role("button", name="Resume").click()
    expect(status(page)).to_have_text("complete")
    page.goto(f"/runs/{run}")
    expect(status(page)).to_have_text("complete")


def test_a_second_window_shows_the_same(team_site: SiteProcess, model: PacedModel, visitor: Visitor) -> None:
    """Opened in the middle of a run, it misses nothing, and what one window says is seen in the other."""
    first = visitor.open(team_site)
    run = ask(first, ASK, NOTES_FILE)
    model.allow(3)
    expect(agent(first, "searcher-3")).to_be_visible()
    second = visitor.open(team_site, f"/runs/{run}")
    expect(agent(second, "searcher-3")).to_be_visible()
    second.get_by_label("Message to the run").fill("From the second window")
    second.keyboard.press("Enter")
    expect(first.locator(".queued")).to_contain_text("From the second window")
    model.let_go()
    for page in (first, second):
        expect(status(page)).to_have_text("complete")
    texts = [page.locator("main").inner_text() for page in (first, second)]
    assert texts[0] == texts[1]
