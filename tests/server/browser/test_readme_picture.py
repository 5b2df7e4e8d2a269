"""The picture in the README: the demo's run in the browser, with a citation's card open."""

from pathlib import Path

import pytest

from cli.stage import begin_explorer, end_of
from server.browser.browser_stage import DESK, SiteProcess, Visitor, expect
from server.browser.conftest import Begin

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[3]
PICTURE = ROOT / "docs" / "run_page.png"
SENTENCE = "Our monthly bill fell from 38,400 euros to 14,900 euros"
MAX_BYTES = 250_000


def test_the_readme_shows_the_page_of_the_demo(
    request: pytest.FixtureRequest, begin_site: Begin, visitor: Visitor, tmp_path: Path
) -> None:
    """The page shows what the picture shows; `--update-golden` takes the picture anew."""
    code, _, said = end_of(begin_explorer("demo", "-q", cwd=tmp_path))
    assert code == 0, said
    site = begin_site(SiteProcess(tmp_path))
    page = visitor.open(site, f"/runs/{site.runs[0].name}", viewport=DESK)
    page.locator(".report > article").get_by_role("link", name="[4]").first.click()
    card = page.locator("#card")
    expect(card).to_contain_text("supported")
    expect(card.locator("mark").first).to_be_visible()
    expect(page.locator(".report > article")).to_contain_text(SENTENCE)
    expect(page.locator("#agent-orchestrator")).to_be_visible()
    page.evaluate("scrollTo(0, 0)")
    if request.config.getoption("--update-golden"):
        page.screenshot(path=PICTURE)
    assert PICTURE.read_bytes().startswith(b"\x89PNG")
    assert PICTURE.stat().st_size < MAX_BYTES
    assert f"({PICTURE.relative_to(ROOT)})" in (ROOT / "README.md").read_text()
