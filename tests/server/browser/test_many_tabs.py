"""More tabs and windows than a browser has connections to one server."""

import re

import pytest

from server.browser.browser_stage import ASK, NOTES_FILE, PacedModel, SiteProcess, Visitor, agent, ask, expect, status

pytestmark = pytest.mark.slow
MORE_THAN_ITS_CONNECTIONS = 8
MOST_STREAMS = 4
BEGINS_HIDDEN = """
document.show = (isShown) => {
  Object.defineProperty(document, "hidden", { value: !isShown, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
};
document.show(false);
"""


def test_windows_side_by_side_follow_a_run(team_site: SiteProcess, model: PacedModel, visitor: Visitor) -> None:
    """Eight windows that are all seen follow a run to its end, some by looking, and a further page still loads."""
    first = visitor.open(team_site)
    run = ask(first, ASK, NOTES_FILE)
    pages = [first, *(first.context.new_page() for _ in range(MORE_THAN_ITS_CONNECTIONS))]
    for page in pages[1:]:
        page.goto(f"/runs/{run}")
        expect(status(page)).to_have_text("running")
    connected = sum(page.locator("#live").count() for page in pages)
    assert connected <= MOST_STREAMS
    model.let_go()
    for page in pages:
        expect(status(page)).to_have_text("complete")
    last = first.context.new_page()
    last.goto("/")
    expect(last.locator("#part-runs")).to_contain_text("complete")


def test_hidden_tabs_of_runs_at_work_leave_the_server_reachable(
    team_site: SiteProcess, model: PacedModel, visitor: Visitor
) -> None:
    """They have no stream, and still say when their run has ended; a closed window leaves its place to another."""
    first = visitor.open(team_site)
    run = ask(first, ASK, NOTES_FILE)
    first.context.add_init_script(BEGINS_HIDDEN)
    hidden = [first.context.new_page() for _ in range(MORE_THAN_ITS_CONNECTIONS)]
    for page in hidden:
        page.goto(f"/runs/{run}")
        expect(status(page)).to_have_text("running")
        expect(page.locator("#live")).to_have_count(0)
    hidden[0].evaluate("document.show(true)")
    expect(hidden[0].locator("#live")).to_have_count(1)
    model.allow(3)
    for page in hidden:
        expect(agent(page, "searcher-3")).to_be_attached()
    expect(hidden[1]).to_have_title(re.compile("● "))
    model.let_go()
    for page in (first, *hidden):
        expect(status(page)).to_have_text("complete")
    expect(hidden[1]).not_to_have_title(re.compile("● "))
