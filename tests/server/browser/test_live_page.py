"""What a user has open, typed or marked stays while the page changes; a page that was cut off finds its way back."""

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
CUT_OFF = (
    r"htmx:sse:error|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE"
)
"""What the browser says of a server that is gone."""
REMEMBERS = "window.isTheSameDocument = true"
IS_REMEMBERED = "window.isTheSameDocument === true"


def test_a_page_survives_the_death_of_its_server(team_site: SiteProcess, model: PacedModel, visitor: Visitor) -> None:
    """Killed in the middle of a run and started again, it is found by the open page, where the run is resumed."""
    visitor.expected.append(CUT_OFF)
    page = visitor.open(team_site)
    ask(page, ASK, NOTES_FILE)
    page.evaluate(REMEMBERS)
    model.allow(3)
    expect(agent(page, "searcher-3")).to_be_visible()
    expect(status(page)).to_have_text("running")
    team_site.kill()
    team_site.begin()
    expect(status(page)).to_have_text("unfinished")
    expect(agent(page, "orchestrator").locator(".status").first).to_have_text("cut off")
    assert page.evaluate(IS_REMEMBERED)
    model.let_go()
    page.get_by_role("button", name="Resume").click()
    expect(status(page)).to_have_text("complete")
    expect(page.locator("#part-report article")).to_contain_text("A good May for the plant")


def test_what_is_open_typed_and_marked_stays(team_site: SiteProcess, model: PacedModel, visitor: Visitor) -> None:
    """Folds, the place in the page, the focus and the words in a field are those of the user, whatever arrives."""
    page = visitor.open(team_site, viewport={"width": 700, "height": 400})
    ask(page, ASK, NOTES_FILE)
    model.allow(4)
    expect(agent(page, "searcher-3")).to_be_visible()
    fold = agent(page, "orchestrator").locator("details").first
    fold.locator("summary").first.click()
    expect(fold.locator(".turns .entries")).to_be_visible()
    forks = page.locator("details.fork")
    forks.locator("summary").click()
    field = page.get_by_label("Message to the run")
    field.fill("Half a sen")
    field.evaluate("one => { one.focus(); one.setSelectionRange(2, 5) }")
    page.evaluate("scrollTo(0, 160)")
    wait_until(page, "scrollY === 160")
    before = page.locator("#part-head").get_attribute("data-seq")
    model.allow(5)
    expect(page.locator("#part-files li[data-line]")).to_have_count(3)
    assert page.locator("#part-head").get_attribute("data-seq") != before
    expect(field).to_have_value("Half a sen")
    expect(field).to_be_focused()
    assert field.evaluate("one => [one.selectionStart, one.selectionEnd]") == [2, 5]
    assert page.evaluate("scrollY") == 160
    assert fold.evaluate("one => one.open")
    expect(fold.locator(".turns .entries")).to_be_visible()
    assert forks.evaluate("one => one.open")
    page.keyboard.type("XX")
    expect(field).to_have_value("HaXXa sen")
    model.let_go()
    expect(status(page)).to_have_text("complete")
    assert fold.evaluate("one => one.open")
