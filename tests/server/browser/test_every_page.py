"""Each page of the site, light and dark, on a desk and on a phone: readable by all, no wider than the window."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from made_runs import A, B
from server.browser.browser_stage import (
    ASK,
    DESK,
    LONG,
    PHONE,
    SCREENSHOTS,
    SiteProcess,
    Visitor,
    expect,
    filled_site,
    overflow_px,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

pytestmark = pytest.mark.slow
AXE = Path(__file__).with_name("axe.min.js")
RULES = {
    "resultTypes": ["violations"],
    "runOnly": {
        "type": "tag",
        "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    },
    "rules": {"target-size": {"enabled": True}},
}
PATHS = {
    "runs": "/",
    "search": "/?q=plant",
    "no-runs": "/?q=nothingofthekind",
    "run": "/runs/TEAM",
    "run-of-wide-words": f"/runs/{LONG}",
    "moment": "/runs/TEAM?at=40",
    "agent": "/runs/TEAM/agents/searcher-1",
    "timeline": "/runs/TEAM/timeline",
    "timeline-moment": "/runs/TEAM/timeline?at=40",
    "report": "/runs/TEAM/report",
    "report-of-wide-words": f"/runs/{LONG}/report",
    "citation": f"/runs/{A}/citations/1",
    "claims": f"/runs/{B}/claims",
    "not-found-claims": f"/runs/{B}/claims?verdict=not_found",
    "sources": f"/runs/{A}/sources",
    "source": f"/runs/{A}/sources/S1",
    "files": "/runs/TEAM/files",
    "file": "/runs/TEAM/files/report.md",
    "fleet": "/fleet",
    "compare": "/compare",
    "comparison": f"/compare?a={A}&b={B}",
    "error": "/runs/nothing",
}
WALL: Any = {"width": 2000, "height": 1100}
MAX_READ_PX = 800
"""The widest that text is set: about ninety characters."""
LIVE = frozenset({"runs", "search", "no-runs", "run", "run-of-wide-words"})
"""Pages whose stream of events is never idle."""
NOT_THERE = r"status of 404 .*(/runs/nothing|favicon.ico)"


@pytest.fixture(scope="module")
def gallery(chromium: "Browser", tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteProcess]:  # noqa: ARG001 - no server without a browser
    """A server with runs of all kinds."""
    with filled_site(tmp_path_factory.mktemp("gallery")) as site:
        yield site


def _address(site: SiteProcess, path: str) -> str:
    team_run = next(run.name for run in site.runs if "how-was-may" in run.name)
    return path.replace("TEAM", team_run)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PATHS)
def test_a_page_is_for_everybody(gallery: SiteProcess, visitor: Visitor, name: str, scheme: str) -> None:
    """The checker of accessibility finds nothing with all folds open; no page is wider than its window."""
    visitor.expected.append(NOT_THERE if name == "error" else "^$")
    opened = visitor.open(gallery, _address(gallery, PATHS[name]), color_scheme=scheme, reduced_motion="reduce")
    for size, viewport in (("1200", DESK), ("360", PHONE)):
        opened.set_viewport_size({"width": viewport["width"], "height": viewport["height"]})
        opened.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
        opened.wait_for_load_state("networkidle") if name not in LIVE else None
        assert overflow_px(opened) <= 0
        SCREENSHOTS.mkdir(exist_ok=True)
        opened.screenshot(path=SCREENSHOTS / f"{name}-{size}-{scheme}.png", full_page=True)
        opened.evaluate(AXE.read_text())
        found: Any = opened.evaluate("rules => axe.run(document, rules)", RULES)
        wrong = [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found["violations"]]
        assert wrong == []
    opened.set_viewport_size(WALL)
    assert overflow_px(opened) <= 0
    for article in opened.locator("article").all():
        box = article.bounding_box()
        assert box is None or box["width"] <= MAX_READ_PX
    opened.screenshot(path=SCREENSHOTS / f"{name}-2000-{scheme}.png")


def test_the_checker_finds_what_is_wrong(gallery: SiteProcess, visitor: Visitor) -> None:
    """The control of the test above: a field without a name and text that is too pale are found."""
    opened = visitor.open(gallery)
    opened.evaluate("document.querySelector('label[for=status]').remove(); main.style.color = '#bbb'")
    opened.evaluate(AXE.read_text())
    found: Any = opened.evaluate("rules => axe.run(document, rules)", RULES)
    assert {"select-name", "color-contrast"} <= {one["id"] for one in found["violations"]}


def test_pages_are_read_without_scripts(gallery: SiteProcess, visitor: Visitor) -> None:
    """Links lead where folds would open, citations are pages, and a question is asked and answered by forms alone."""
    opened = visitor.open(gallery, java_script_enabled=False)
    opened.get_by_role("link", name=ASK).click()
    expect(opened.locator("#part-head")).to_contain_text("complete")
    expect(opened.locator("#part-report article")).to_contain_text("A good May")
    opened.locator("li.agent summary").first.click()
    opened.get_by_role("link", name="All turns and calls of orchestrator").click()
    expect(opened.locator(".entries")).to_contain_text("call_agent")
    opened.go_back()
    opened.locator("#part-report article a[href*='/citations/']").first.click()
    expect(opened.get_by_role("heading", name="Citation [1]")).to_be_visible()
    opened.get_by_role("link", name="Timeline").click()
    opened.locator("#at").fill("40")
    opened.get_by_role("button", name="Show").click()
    opened.wait_for_url("**/timeline?at=40")
    expect(opened.locator("#then")).to_contain_text("After record 40")
    opened.goto("/")
    opened.get_by_label("Question", exact=True).fill("What is in the folder?")
    opened.get_by_role("button", name="Explore").click()
    opened.wait_for_url(re.compile(r"/runs/[^/]+$"))
    expect(opened.locator("#part-head h1")).to_have_text("What is in the folder?")
    if opened.get_by_role("button", name="Stop now").count():
        # The run may end between the look and the click; the page then says so, with this status.
        visitor.expected.append(r"409 \(Conflict\).*/stop\)")
        opened.get_by_role("button", name="Stop now").click()


def test_clicks_without_scripts_start_one_run(offline_site: SiteProcess, visitor: Visitor) -> None:
    """Where no script watches the form, the server knows that it was sent: each run costs money."""
    opened = visitor.open(offline_site, java_script_enabled=False)

    def send_twice(route: "Route") -> None:
        route.fetch(max_redirects=0)
        route.continue_()

    opened.route("**/runs", send_twice)
    opened.get_by_label("Question", exact=True).fill("What did the ropes cost?")
    opened.get_by_role("button", name="Explore").click()
    opened.wait_for_url(re.compile(r"/runs/[^/]+$"))
    opened.goto("/")
    expect(opened.locator("#part-runs tbody tr")).to_have_count(1)
    assert len(offline_site.runs) == 1
