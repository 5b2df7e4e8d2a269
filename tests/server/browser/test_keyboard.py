"""The web page without a mouse."""

import pytest

from server.browser.browser_stage import ASK, NOTES_FILE, PacedModel, SiteProcess, Visitor, agent, ask, expect, status

pytestmark = pytest.mark.slow


def test_a_run_is_asked_steered_and_read_by_keys_alone(
    team_site: SiteProcess, model: PacedModel, visitor: Visitor
) -> None:
    """From the question to the turns of an agent: Tab, Enter and the page's own keys are enough."""
    page = visitor.open(team_site)
    keys = page.keyboard
    keys.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    keys.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    keys.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    keys.press("/")
    expect(page.locator("#q")).to_be_focused()
    keys.type("nothing of the kind / ?")
    expect(page.locator("#q")).to_have_value("nothing of the kind / ?")
    keys.press("Enter")
    expect(page.get_by_text("No run fits")).to_be_visible()
    question = page.get_by_label("Question", exact=True)
    question.focus()
    keys.type(ASK)
    keys.press("Tab")
    keys.press("Enter")
    page.get_by_label("Files the question").set_input_files(NOTES_FILE)
    page.get_by_role("button", name="Explore").focus()
    keys.press("Enter")
    page.wait_for_url("**/runs/*")
    model.allow()
    expect(agent(page, "searcher-3")).to_be_visible()
    keys.press("s")
    expect(page.get_by_label("Message to the run")).to_be_focused()
    keys.type("And June, please")
    keys.press("Enter")
    expect(page.locator(".queued")).to_have_text("queued: And June, please")
    model.let_go()
    expect(status(page)).to_have_text("complete")
    expect(page.get_by_label("Follow-up question")).to_be_focused()
    keys.press("Escape")
    keys.press("j")
    expect(agent(page, "orchestrator")).to_have_class("agent level-1 complete selected")
    keys.press("j")
    keys.press("k")
    keys.press("o")
    expect(agent(page, "orchestrator").locator(".turns .entries")).to_be_visible()
    keys.press("o")
    expect(agent(page, "orchestrator").locator(".turns .entries")).to_be_hidden()


def test_the_chosen_line_opens_a_run(offline_site: SiteProcess, visitor: Visitor) -> None:
    """In the list of runs, `j` chooses and `o` follows; `s` leads to the follow-up."""
    page = visitor.open(offline_site)
    run = ask(page, "What do the ropes cost?")
    expect(status(page)).to_have_text("complete")
    page.goto("/")
    page.keyboard.press("j")
    page.keyboard.press("o")
    page.wait_for_url(f"**/runs/{run}")
    page.keyboard.press("s")
    expect(page.get_by_label("Follow-up question")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Follow-up question")).not_to_be_focused()
