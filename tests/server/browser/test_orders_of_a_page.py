"""Orders that a page sends, and pages whose server, run or clock is not as it was."""

import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:  # These tests are collected, and skipped, where the package is missing.
    from playwright.sync_api import Route

pytestmark = pytest.mark.slow
GONE = (
    r"htmx:((sse|response):)?error|"
    r"ERR_(FAILED|ABORTED|CONNECTION_(REFUSED|RESET|CLOSED)|INCOMPLETE_CHUNKED_ENCODING|EMPTY_RESPONSE|SOCKET_NOT_CONNECTED)"
)
"""What the browser says of a server that is gone."""
CLICK_THREE_TIMES = """() => {
  const button = document.querySelector("form.ask button.primary");
  button.click(); button.click(); button.form.requestSubmit();
  setTimeout(() => button.click(), 20);
}"""
HIDES = """document.show = (isShown) => {
  Object.defineProperty(document, "hidden", { value: !isShown, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
MORE_THAN_ITS_CONNECTIONS = 8


def test_clicks_of_an_impatient_user_start_one_run(team_site: SiteProcess, visitor: Visitor) -> None:
    """Each run costs money: a form that is being sent is not sent again."""
    page = visitor.open(team_site)
    orders: list[str] = []
    page.on("request", lambda request: orders.append(request.url) if request.method == "POST" else None)
    page.get_by_label("Question", exact=True).fill(ASK)
    page.evaluate(CLICK_THREE_TIMES)
    expect(status(page)).to_have_text("running")
    assert len(orders) == 1
    assert len(team_site.runs) == 1


def test_words_stay_when_an_order_is_refused(offline_site: SiteProcess, visitor: Visitor) -> None:
    """The page says what is wrong, and has the question and all fields as they were."""
    visitor.expected.append("status of 400")
    page = visitor.open(offline_site)
    page.get_by_label("Question", exact=True).fill("What did the ropes cost?")
    page.get_by_text("Files, model, limits").click()
    page.get_by_label("At most, in US dollars").fill("much")
    page.get_by_role("button", name="Explore").click()
    expect(page.locator("#trouble")).to_contain_text("the cost is not a number above 0")
    expect(page.get_by_label("Question", exact=True)).to_have_value("What did the ropes cost?")
    page.get_by_label("At most, in US dollars").fill("")
    page.get_by_role("button", name="Explore").click()
    expect(status(page)).to_have_text("complete")


def test_a_page_says_that_its_server_is_gone(team_site: SiteProcess, model: PacedModel, visitor: Visitor) -> None:
    """It does not go on showing a running clock; a message that cannot be sent stays, also when the run is another."""
    visitor.expected.append(GONE)
    page = visitor.open(team_site)
    ask(page, ASK, NOTES_FILE)
    model.allow(3)
    expect(agent(page, "searcher-3")).to_be_visible()
    page.evaluate("window.isTheSameDocument = true")
    team_site.kill()
    trouble = page.locator("#trouble")
    expect(trouble).to_contain_text("The server does not answer")
    page.get_by_label("Message to the run").fill("Look at May only")
    page.get_by_role("button", name="Send").click()
    expect(trouble).to_contain_text("What you wrote is still here")
    for _ in range(2):
        page.wait_for_event("requestfailed", lambda request: "/live?" in request.url)
    expect(trouble).to_contain_text("What you wrote is still here")
    team_site.begin()
    expect(status(page)).to_have_text("unfinished")
    expect(trouble).to_be_hidden()
    expect(page.get_by_label("Message (may be empty)")).to_have_value("Look at May only")
    assert page.evaluate("window.isTheSameDocument")


def test_a_page_whose_first_connection_failed_is_connected_later(offline_site: SiteProcess, visitor: Visitor) -> None:
    """The list follows the runs as soon as the server can be reached."""
    visitor.expected.append(GONE)
    page = visitor.open(offline_site)
    is_back: list[bool] = []

    def refuse_at_first(route: "Route") -> None:
        if is_back:
            route.continue_()
        else:
            route.abort()

    page.route("**/live?*", refuse_at_first)
    page.reload()
    expect(page.locator("#trouble")).to_contain_text("The server does not answer")
    is_back.append(True)
    expect(page.locator("#trouble")).to_be_hidden()
    ask(visitor.open(offline_site), "What did the ropes cost?")
    expect(page.locator("#part-runs tbody tr")).to_have_count(1)


def test_what_is_typed_moves_to_the_next_field(team_site: SiteProcess, model: PacedModel, visitor: Visitor) -> None:
    """A run that ends while its user writes to it takes no words away, and a key pressed then orders nothing."""
    page = visitor.open(team_site)
    ask(page, ASK, NOTES_FILE)
    field = page.get_by_label("Message to the run")
    field.focus()
    page.keyboard.type("Half a sentence")
    model.let_go()
    expect(status(page)).to_have_text("complete")
    follow = page.get_by_label("Follow-up question")
    expect(follow).to_be_focused()
    page.keyboard.type(", and the rest")
    expect(follow).to_have_value("Half a sentence, and the rest")
    expect(page.get_by_role("button", name="Ask further")).to_be_enabled()


def test_the_clock_of_a_run_is_that_of_the_server(team_site: SiteProcess, visitor: Visitor) -> None:
    """A browser's clock that is hours wrong shows the same time of work."""
    page = visitor.open(team_site)
    ask(page, ASK, NOTES_FILE)
    wrong = visitor.open(team_site)
    wrong.clock.install(time=datetime.now(UTC) + timedelta(hours=5))
    wrong.goto(page.url)
    clock = wrong.locator("[data-since] .value")
    before = clock.inner_text()
    wrong.clock.run_for(5_000)
    expect(clock).not_to_have_text(before)
    assert "h" not in clock.inner_text().split(" of ")[0]


def test_many_hidden_pages_leave_the_server_reachable(offline_site: SiteProcess, visitor: Visitor) -> None:
    """A browser has six connections to a server for all its tabs; a hidden one is up to date when it is shown again."""
    first = visitor.open(offline_site)
    run = ask(first, "What did the ropes cost?")
    expect(status(first)).to_have_text("complete")
    first.context.add_init_script(HIDES)
    pages = [first.context.new_page() for _ in range(MORE_THAN_ITS_CONNECTIONS)]
    for page in pages:
        page.goto(f"/runs/{run}")
        wait_until(page, "document.readyState === 'complete'")
        page.evaluate("document.show(false)")
        expect(page.locator("#live")).to_have_count(0)
    before = first.locator("#part-head").get_attribute("data-seq") or ""
    first.get_by_label("Follow-up question").fill("And in April?")
    first.get_by_role("button", name="Ask further").click()
    expect(first.locator("#part-head")).to_contain_text("4 agents ·")
    expect(status(first)).to_have_text("complete")
    seen = first.locator("#part-head").get_attribute("data-seq") or ""
    assert pages[0].locator("#part-head").get_attribute("data-seq") == before
    pages[0].evaluate("document.show(true)")
    expect(pages[0].locator("#part-head")).to_have_attribute("data-seq", seen)


def test_a_page_says_that_a_part_does_not_come(offline_site: SiteProcess, visitor: Visitor) -> None:
    """A fold, a card and a past moment that the server does not send, or refuses, are not empty without a word."""
    visitor.expected += [GONE, "status of 404"]
    page = visitor.open(offline_site)
    run = ask(page, "What did the ropes cost?")
    expect(status(page)).to_have_text("complete")
    report = visitor.open(offline_site, f"/runs/{run}/report")
    past = visitor.open(offline_site, f"/runs/{run}/timeline")
    page.close()
    offline_site.kill()
    for one in (report, past):
        expect(one.locator("#trouble")).to_be_hidden()
    citation = report.locator("article a[href*='/citations/']").first
    citation.click()
    past.locator("#at").fill("3")
    fold = agent(past, "orchestrator").locator("summary").first
    for one in (report, past):
        expect(one.locator("#trouble")).to_contain_text("The server does not answer")
    past.evaluate("document.querySelector('#trouble').hidden = true")
    fold.click()
    expect(past.locator("#trouble")).to_be_visible()
    expect(report).to_have_url(re.compile(r"/report$"))
    offline_site.begin()
    citation.click()
    expect(report.locator("#card")).to_contain_text("ropes")
    fold.click()
    fold.click()
    expect(agent(past, "orchestrator").locator(".entries")).to_contain_text("task")
    for one in (report, past):
        expect(one.locator("#trouble")).to_be_hidden()
    (offline_site.runs[0] / "report.md").unlink()
    citation.click()
    expect(report.locator("#trouble")).to_contain_text("has no report yet")


def test_a_page_says_that_its_server_asks_for_a_token(
    begin_site: Callable[[SiteProcess], SiteProcess], visitor: Visitor, tmp_path: Path
) -> None:
    """A server that was started again with another token does answer, and the page does not say otherwise."""
    visitor.expected += [GONE, "status of 401|htmx:sse:error"]
    site = begin_site(SiteProcess(tmp_path, token="the-first-token-of-this-server"))
    page = visitor.open(site, site.printed)
    expect(page.get_by_label("Question", exact=True)).to_be_visible()
    site.kill()
    expect(page.locator("#trouble")).to_contain_text("does not answer")
    page.get_by_label("Question", exact=True).fill("What did the ropes cost?")
    page.get_by_role("button", name="Explore").click()
    expect(page.locator("#trouble")).to_contain_text("What you wrote is still here")
    site.token = "the-second-token-of-this-server"
    site.begin()
    expect(page.locator("#trouble")).to_contain_text("asks for its token")


def test_a_first_connection_that_is_refused_is_said_and_tried_again(
    offline_site: SiteProcess, visitor: Visitor
) -> None:
    """A list that does not follow its runs does not look as if it did."""
    visitor.expected.append("status of (401|500)")
    page = visitor.open(offline_site)
    page.goto("about:blank")  # whose connections are over before others are waited for
    waiting: list[Route] = []
    page.route("**/live?*", lambda route: waiting.append(route))  # noqa: PLW0108 - Playwright gives it attributes
    page.goto("/")

    def next_connection() -> "Route":
        while not waiting:
            page.wait_for_timeout(50)
        return waiting.pop(0)

    next_connection().fulfill(status=500)
    expect(page.locator("#trouble")).to_contain_text("does not answer")
    next_connection().fulfill(status=401)
    expect(page.locator("#trouble")).to_contain_text("asks for its token")
    next_connection().continue_()
    expect(page.locator("#trouble")).to_be_hidden()


def test_a_page_says_that_its_run_was_removed(offline_site: SiteProcess, visitor: Visitor) -> None:
    """It is not shown as damaged."""
    visitor.expected.append("status of 404|htmx:sse:error")
    page = visitor.open(offline_site)
    ask(page, "What did the ropes cost?")
    expect(status(page)).to_have_text("complete")
    shutil.rmtree(offline_site.runs[0])
    expect(page.locator("#trouble")).to_contain_text("it was removed")
    expect(status(page)).to_have_text("complete")
