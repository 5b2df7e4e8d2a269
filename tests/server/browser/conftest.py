"""The browser, once for each file of tests, and servers for it to visit."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from server.browser.browser_stage import CHROMIUM, TEAM_MODEL, PacedModel, SiteProcess, Visitor
from team_script import team

if TYPE_CHECKING:
    from playwright.sync_api import Browser

Begin = Callable[[SiteProcess], SiteProcess]


@pytest.fixture(scope="module")
def chromium() -> "Iterator[Browser]":
    """Chromium; the test is skipped where it or what drives it is missing."""
    driver = pytest.importorskip("playwright.sync_api", reason="uv sync --group browser", exc_type=ImportError)
    if not CHROMIUM.exists():
        pytest.skip(f"no browser at {CHROMIUM}: apt-get install chromium")
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visitor(chromium: "Browser", tmp_path: Path) -> Iterator[Visitor]:  # noqa: ARG001 - removed after the pages close
    """Who opens pages; at the end of the test nothing may have been wrong on any."""
    visiting = Visitor(chromium)
    yield visiting
    visiting.close()


@pytest.fixture
def begin_site(chromium: "Browser", tmp_path: Path) -> Iterator[Begin]:  # noqa: ARG001 - see below
    """Start servers, which end with the test: no server without a browser, and its folder is removed after its end."""
    begun: list[SiteProcess] = []

    def begin(site: SiteProcess) -> SiteProcess:
        begun.append(site)
        site.begin()
        return site

    yield begin
    for site in begun:
        site.end()


@pytest.fixture
def offline_site(begin_site: Begin, tmp_path: Path) -> SiteProcess:
    """A server without a model, over a small folder."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "ropes.md").write_text("# Ropes\n\nThe ropes cost 120 euros in March 2026, said the harbour master.\n")
    return begin_site(SiteProcess(tmp_path, ("--model", "offline", "--corpus", "notes")))


@pytest.fixture
def model() -> Iterator[PacedModel]:
    """The team's model, whose answers wait."""
    with PacedModel(team) as paced:
        yield paced


@pytest.fixture
def team_site(begin_site: Begin, model: PacedModel, tmp_path: Path) -> SiteProcess:
    """A server whose runs wait for the answers of that model."""
    variables = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-test"}
    return begin_site(SiteProcess(tmp_path, ("--model", TEAM_MODEL), variables))
