"""Hostile texts in a real browser: nothing of them runs or loads, and the policy has nothing to refuse."""

from pathlib import Path

import pytest

from server.browser.browser_stage import SiteProcess, Visitor, expect
from server.browser.conftest import Begin
from server.test_hostile_texts import HOSTILE, LEAD, RUN, hostile_run

pytestmark = pytest.mark.slow
PAGES = ("", "?at=9", "/timeline", "/report", "/claims", "/sources", "/sources/S1", "/files", f"/agents/{LEAD}",
         "/citations/1", "/files/report.md", "/files/page.html", "/files/drawing.svg", "/raw/drawing.svg")  # fmt: skip
FOREIGN_LINK = 'document.querySelectorAll(\'a[href^="javascript:" i], a[href^="data:" i], [onerror], [onload]\').length'


def test_nothing_of_a_hostile_run_happens(begin_site: Begin, visitor: Visitor, tmp_path: Path) -> None:
    """On each page, with all folds open and their content loaded; a file that is a drawing with a script is text."""
    hostile_run(tmp_path / "workspace", " ".join(text for text, _ in HOSTILE.values()))
    site = begin_site(SiteProcess(tmp_path))
    page = visitor.open(site)
    page.on("dialog", lambda dialog: visitor.complaints.append(f"dialog: {dialog.message}"))
    for path in ("/", "/?q=euros", *(f"/runs/{RUN}{one}" for one in PAGES)):
        if path.startswith(f"/runs/{RUN}/raw/"):
            with page.expect_download():
                page.evaluate("path => { location.href = path }", path)
            continue
        page.goto(path)
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
        assert page.evaluate(FOREIGN_LINK) == 0, path
    page.goto(f"/runs/{RUN}")
    page.locator("li.agent summary").first.click()
    expect(page.locator("li.agent .turns .entries").first).to_contain_text("alert(1)")
    page.wait_for_timeout(300)
    assert page.url == f"{site.address}/runs/{RUN}"
