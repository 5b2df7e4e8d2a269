"""What a browser keeps and asks: the token, calls and plans that wait for a decision, and notifications."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from explorer.journal.listing import read_records
from explorer.schema.events import ApprovalAnswer, ApprovalDecided
from server.browser.browser_stage import (
    ASK,
    NOTES_FILE,
    TEAM_MODEL,
    PacedModel,
    SiteProcess,
    Visitor,
    ask,
    expect,
    status,
    wait_until,
)
from server.browser.conftest import Begin

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.slow
NO_TOKEN = "status of 401"
RECORDS_NOTICES = """
window.notices = [];
window.Notification = class extends window.Notification {
  constructor(title, more) { super(title, more); window.notices.push(title); }
};
"""


class _LinkPage(BaseHTTPRequestHandler):
    """A page of another site with a link to the one under test."""

    leads_to = ""

    def do_GET(self) -> None:
        """Send it."""
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(f'<link rel="icon" href="data:,"><a href="{self.leads_to}">There</a>'.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of its base
        """Say nothing."""


@pytest.fixture
def other_site() -> Iterator[str]:
    """The address of another site, on this machine."""
    server = ThreadingHTTPServer(("127.0.0.2", 0), _LinkPage)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.2:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_first_address_gives_a_browser_its_token(
    begin_site: Begin, visitor: Visitor, tmp_path: Path, other_site: str
) -> None:
    """It is kept where no script reads it, also for links of other sites; without it there is a field to give it."""
    visitor.expected += [NO_TOKEN, f"request to {other_site}"]
    site = begin_site(SiteProcess(tmp_path, token="auto"))
    token = site.printed.partition("?token=")[2]
    assert len(token) > 16
    page = visitor.open(site, site.printed)
    expect(page.get_by_label("Question", exact=True)).to_be_visible()
    expect(page).to_have_url(f"{site.address}/")
    (cookie,) = page.context.cookies()
    assert (cookie.get("value"), cookie.get("httpOnly"), cookie.get("sameSite")) == (token, True, "Strict")
    assert page.evaluate("document.cookie") == ""
    assert token not in page.content()
    run = ask(page, "What is in the folder?")
    expect(status(page)).not_to_have_text("running")
    _LinkPage.leads_to = f"{site.address}/runs/{run}"
    page.goto(other_site)
    page.get_by_role("link", name="There").click()
    expect(page.locator("#question-title")).to_have_text("What is in the folder?")
    stranger = visitor.open(site, f"/runs/{run}")
    expect(stranger.get_by_role("heading", name="A token is needed")).to_be_visible()
    stranger.get_by_label("Token").fill(token[:-1])
    expect(stranger.get_by_role("alert")).to_have_count(0)
    stranger.keyboard.press("Enter")
    expect(stranger.get_by_role("alert")).to_have_text("What was given is not the token of this server.")
    stranger.get_by_label("Token").fill(token)
    stranger.get_by_role("button", name="Continue").click()
    expect(stranger.locator("#question-title")).to_have_text("What is in the folder?")


def _answers(site: SiteProcess) -> list[ApprovalAnswer]:
    events = [record.event for record in read_records(site.runs[0])]
    return [event.answer for event in events if isinstance(event, ApprovalDecided)]


@pytest.fixture
def ruled_site(begin_site: Begin, model: PacedModel, tmp_path: Path) -> SiteProcess:
    """A server with the team's model, and a rule that asks about every file that is written."""
    model.let_go()
    variables = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-test"}
    return begin_site(SiteProcess(tmp_path, ("--model", TEAM_MODEL, "--approval", "ask write_file"), variables))


def _noticing(visitor: Visitor, site: SiteProcess) -> "Page":
    page = visitor.open(site)
    page.context.grant_permissions(["notifications"])
    page.add_init_script(RECORDS_NOTICES)
    page.reload()
    return page


def test_calls_are_refused_and_allowed_on_the_page(ruled_site: SiteProcess, visitor: Visitor) -> None:
    """Each is shown whole, and a notification says that it waits; Enter in the reason refuses; the run goes on."""
    page = _noticing(visitor, ruled_site)
    ask(page, ASK, NOTES_FILE)
    asks = page.locator("#part-call")
    expect(asks.get_by_role("heading")).to_contain_text("asks for your approval")
    expect(page).to_have_title("(1) ? " + ASK)
    expect(asks.locator("pre").first).not_to_be_empty()
    first = asks.get_attribute("data-call")
    expect(asks.get_by_role("button", name="Refuse")).to_be_enabled()
    asks.get_by_label("Reason").fill("Not this one")
    page.keyboard.press("Enter")
    expect(asks).not_to_have_attribute("data-call", first or "")
    expect(asks.get_by_role("button", name="Allow until the run ends")).to_be_enabled()
    asks.get_by_role("button", name="Allow until the run ends").click()
    expect(asks).to_be_hidden()
    expect(status(page)).not_to_have_text("running")
    wait_until(page, "window.notices.length > 0")
    assert _answers(ruled_site)[:2] == [ApprovalAnswer.NO, ApprovalAnswer.RUN]


def test_a_notification_says_that_a_run_has_ended(team_site: SiteProcess, model: PacedModel, visitor: Visitor) -> None:
    """Where the user allowed it; the page need not be looked at."""
    page = _noticing(visitor, team_site)
    ask(page, ASK, NOTES_FILE)
    expect(status(page)).to_have_text("running")
    assert page.evaluate("window.notices") == []
    model.let_go()
    expect(status(page)).to_have_text("complete")
    wait_until(page, "window.notices.length === 1")
    assert page.evaluate("window.notices") == ["explorer: complete"]


def test_a_plan_is_rejected_and_the_next_one_approved(offline_site: SiteProcess, visitor: Visitor) -> None:
    """Words and Enter ask for another plan, and start nothing; the button approves."""
    page = visitor.open(offline_site)
    page.get_by_text("Files, model, limits").click()
    page.get_by_label("Show me the plan first").check()
    ask(page, "What do the ropes cost?")
    plan = page.locator("#part-plan")
    expect(plan.get_by_role("button", name="Approve")).to_be_visible()
    expect(status(page)).to_have_text("waiting for you: its plan")
    plan.get_by_label("What is to be different").fill("Only the year 2026")
    page.keyboard.press("Enter")
    expect(plan.get_by_label("What is to be different")).to_have_value("")
    plan.get_by_role("button", name="Approve").click()
    expect(status(page)).to_have_text("complete")


def test_the_list_shows_what_begins_and_ends(team_site: SiteProcess, model: PacedModel, visitor: Visitor) -> None:
    """Open in one window while another asks; the title counts, and the chosen line stays chosen."""
    runs = visitor.open(team_site)
    expect(runs).to_have_title("explorer")
    asking = visitor.open(team_site)
    ask(asking, ASK, NOTES_FILE)
    line = runs.locator("tr").filter(has=runs.get_by_role("link", name=ASK))
    expect(line).to_contain_text("running")
    expect(runs).to_have_title("(1) explorer")
    runs.keyboard.press("j")
    expect(line).to_have_class("selected")
    model.let_go()
    expect(line).to_contain_text("complete")
    expect(runs).to_have_title("explorer")
    expect(line).to_have_class("selected")
    runs.keyboard.press("o")
    runs.wait_for_url("**/runs/*")
