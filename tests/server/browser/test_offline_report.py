"""The report as one HTML file, in a browser without a network and without scripts."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cli.stage import begin_explorer, end_of
from made_runs import A, two_runs
from server.browser.browser_stage import expect
from server.browser.test_every_page import AXE, RULES

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow


def test_a_report_is_read_offline(chromium: "Browser", tmp_path: Path) -> None:
    """Citations lead to their references, which unfold the evidence; nothing is asked of anybody; all can read it."""
    with ThreadPoolExecutor() as threads:  # In this one, the browser's driver has a loop.
        threads.submit(asyncio.run, two_runs(tmp_path / "workspace")).result()
    file = tmp_path / "report.html"
    code, _, error = end_of(begin_explorer("report", A, "-o", str(file), cwd=tmp_path))
    assert code == 0, error
    code, printed, error = end_of(begin_explorer("report", A, "--format", "html", cwd=tmp_path))
    assert (code, printed) == (0, file.read_text()), error
    asked: list[str] = []
    for scripts in (False, True):
        context = chromium.new_context(java_script_enabled=scripts, offline=True)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: asked.append(message.text))
        page.goto(file.as_uri())
        page.locator("a[href='#ref-1']").first.click()
        reference = page.locator("#ref-1")
        fold = reference.locator("details").first
        assert not fold.evaluate("one => one.open")
        fold.locator("summary").first.click()
        assert fold.evaluate("one => one.open")
        expect(reference.locator("mark").first).to_have_text("12 %")
        if scripts:
            page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
            page.evaluate(AXE.read_text())
            found: Any = page.evaluate("rules => axe.run(document, rules)", RULES)
            assert [one["id"] for one in found["violations"]] == []
        context.close()
    assert set(asked) == {file.as_uri()}
