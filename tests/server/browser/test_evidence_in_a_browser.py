"""What a user checks in a real browser: the evidence of a citation, any past moment, what differs between two runs."""

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pypdfium2
import pytest

from made_runs import A, B, make_run
from made_runs import page as source
from server.browser.browser_stage import ASK, SiteProcess, Visitor, agent, expect, filled_site, status

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

pytestmark = pytest.mark.slow
BOATS = "20260605-080000-boats"


@pytest.fixture(scope="module")
def gallery(chromium: "Browser", tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteProcess]:  # noqa: ARG001 - no server without a browser
    """A server with runs of all kinds."""
    with filled_site(tmp_path_factory.mktemp("gallery")) as site:
        yield site


def test_a_citation_unfolds_its_evidence(gallery: SiteProcess, visitor: Visitor) -> None:
    """The card names the source and marks the matching words; Escape closes it where the reader was."""
    page = visitor.open(gallery, f"/runs/{A}/report")
    card = page.locator("#card")
    link = page.locator("article a[href$='/citations/1']").first
    link.click()
    expect(card.locator("mark").first).to_have_text("12 %")
    expect(card).to_contain_text("plant.example")
    expect(card.locator(".verdict.supported").first).to_be_visible()
    expect(card).to_be_focused()
    expect(page).to_have_url(re.compile(f"/runs/{A}/report$"))
    page.keyboard.press("Escape")
    expect(card).to_be_empty()
    expect(link).to_be_focused()
    page.keyboard.press("Enter")
    card.get_by_role("link", name="The whole stored text").click()
    expect(page.get_by_role("heading", name="Stored text")).to_be_visible()
    page.go_back()
    expect(page.locator("article")).to_be_visible()


def test_a_report_is_printed_without_what_only_a_screen_needs(gallery: SiteProcess, visitor: Visitor) -> None:
    """On white, in dark letters, also for who reads in the dark; an open card is printed whole, buttons are not."""
    page = visitor.open(gallery, f"/runs/{A}/report", color_scheme="dark")
    page.locator("article a[href$='/citations/1']").first.click()
    card = page.locator("#card")
    expect(card).to_contain_text("plant.example")
    expect(page.locator("header.top")).to_be_visible()
    page.emulate_media(media="print", color_scheme="dark")
    for name in ("header.top", ".tabs", ".downloads", "footer", "#card .close"):
        expect(page.locator(name).first).to_be_hidden()
    expect(page.locator(".report > article")).to_be_visible()
    expect(page.locator("body")).to_have_css("background-color", "rgb(255, 255, 255)")
    expect(page.locator("body")).to_have_css("color", "rgb(0, 0, 0)")
    expect(page.locator("article a").first).to_have_css("color", "rgb(11, 79, 192)")
    for name, value in (("position", "static"), ("max-height", "none")):
        expect(card).to_have_css(name, value)
    with closing(pypdfium2.PdfDocument(page.pdf(format="A4"))) as printed:
        text = " ".join(" ".join(one.get_textpage().get_text_range() for one in printed).split())
    assert "How is the plant?" in text
    assert "The plant fed 12 % more power into the grid" in text
    assert "Download" not in text


def test_only_what_is_not_supported_is_listed(gallery: SiteProcess, visitor: Visitor) -> None:
    """The filter leads to the sentences that their sources do not carry, and back."""
    page = visitor.open(gallery, f"/runs/{B}/claims")
    page.get_by_role("link", name=re.compile("^not found")).click()
    expect(page.locator("[data-line]")).to_have_count(2)
    expect(page.locator("main")).to_contain_text("Everybody wanted to say")
    expect(page.locator("main")).not_to_contain_text("340 points")
    page.go_back()
    expect(page.locator("main")).to_contain_text("340 points")


def test_a_long_report_is_looked_up_while_it_is_read(gallery: SiteProcess, visitor: Visitor) -> None:
    """Verdicts are counted by themselves; a card is about the sentence that was clicked; an address opens its fold."""
    text = "\n".join(f"Boat {number} has {number + 300} sails." for number in range(130))
    report = "# Boats\n\n" + "\n\n".join(f"Boat {number} has {number + 300} sails [S1]." for number in range(130))
    with ThreadPoolExecutor() as threads:  # In this one, the browser's driver has a loop.
        made = make_run(gallery.home / "workspace", BOATS, [source("https://boat.example/a", text)], report)
        threads.submit(asyncio.run, made).result()
    page = visitor.open(gallery, f"/runs/{BOATS}/report")
    expect(page.locator("#verdicts")).to_contain_text(re.compile(r"\bsupported \(130\)"))
    expect(page.locator("[data-further]")).to_have_count(0)
    page.locator("article p", has_text="Boat 77 has").locator("a").click()
    expect(page.locator("#card")).to_contain_text("Boat 77 has 377 sails")
    page.goto(f"/runs/{BOATS}/claims#claim-120")
    expect(page.locator("#claim-120")).to_contain_text("Boat 120 has 420 sails")
    expect(page.locator("#claim-120")).to_be_in_viewport()
    expect(page.locator("#claim-60[data-line]")).to_have_count(0)
    page.get_by_text("Sentences 51 to 100").click()
    expect(page.locator("#claim-60")).to_contain_text("Boat 60 has 360 sails")
    plain = visitor.open(gallery, f"/runs/{BOATS}/claims", java_script_enabled=False)
    plain.get_by_text("Sentences 101 to 130").click()
    plain.get_by_role("link", name="Show them").last.click()
    expect(plain.locator("#claim-120")).to_contain_text("Boat 120 has 420 sails")


def test_the_slider_leads_to_a_past_moment(gallery: SiteProcess, visitor: Visitor) -> None:
    """At record 40 the page is that of then, under an address of its own; played, it comes to the end by itself."""
    page = visitor.open(gallery)
    page.get_by_role("link", name=ASK).click()
    page.get_by_role("link", name="Timeline").click()
    expect(page.locator("#then article")).to_contain_text("A good May for the plant")
    page.locator("#at").fill("40")
    expect(page).to_have_url(re.compile(r"/timeline\?at=40$"))
    expect(page.locator("#at-shown")).to_have_text("40")
    expect(page.locator("#then")).to_contain_text("After record 40")
    expect(agent(page, "searcher-1")).to_be_visible()
    expect(agent(page, "writer-1")).to_have_count(0)
    expect(page.locator("#then")).to_contain_text("It is not written yet")
    page.reload()
    expect(page.locator("#then")).to_contain_text("After record 40")
    lead = agent(page, "orchestrator")
    lead.locator("summary").first.click()
    expect(lead.locator(".entries")).to_contain_text("Three looks")
    expect(lead.locator(".entries")).not_to_contain_text("finish_exploration")
    page.get_by_role("button", name="Play").click()
    expect(page.locator("#then article")).to_contain_text("A good May for the plant")
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    page.get_by_role("link", name="Permanent address").click()
    expect(status(page)).to_have_text("complete")


def test_a_slider_that_is_moved_before_its_script_has_begun_is_followed(gallery: SiteProcess, visitor: Visitor) -> None:
    """The place where it is then is shown, as that of a slider that the browser puts back where it was."""
    page = visitor.open(gallery)
    waiting: list[Route] = []
    page.route("**/timeline.js", lambda route: waiting.append(route))  # noqa: PLW0108 - it gets attributes
    page.goto(f"/runs/{A}/timeline", wait_until="commit")
    page.locator("#at").fill("2")
    waiting[0].continue_()
    expect(page).to_have_url(re.compile(r"/timeline\?at=2$"))
    expect(page.locator("#then")).to_contain_text("After record 2")


def test_two_runs_are_compared(gallery: SiteProcess, visitor: Visitor) -> None:
    """Chosen in two lists, they are shown side by side, with what changed in each sentence."""
    page = visitor.open(gallery)
    page.get_by_role("link", name="Compare").click()
    page.get_by_label("A, the earlier one").select_option(A)
    page.get_by_label("B, the later one").select_option(B)
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url(f"**/compare?a={A}&b={B}")
    expect(page.locator("main")).to_contain_text("12 → 21")
    before = page.get_by_text("fed 12 % more").first.bounding_box()
    after = page.get_by_text("fed 21 % more").first.bounding_box()
    assert before is not None
    assert after is not None
    assert before["x"] + before["width"] <= after["x"]
    assert before["y"] == after["y"]
    page.set_viewport_size({"width": 360, "height": 740})
    for side, words in (("A", "fed 12 % more"), ("B", "fed 21 % more")):
        expect(page.locator(".side > p", has_text=words)).to_contain_text(re.compile(rf"^{side} line \d+: "))


def test_a_file_is_looked_at_and_downloaded(gallery: SiteProcess, visitor: Visitor, tmp_path: Path) -> None:
    """Its text, who wrote it from which sources, and its bytes as they are."""
    page = visitor.open(gallery)
    page.get_by_role("link", name=ASK).click()
    page.get_by_role("link", name="Files", exact=True).click()
    page.get_by_role("link", name="parts/alpha.md").click()
    expect(page.locator("main")).to_contain_text("Solar output rose by 12 %")
    expect(page.get_by_role("link", name="searcher-1")).to_be_visible()
    with page.expect_download() as loading:
        page.get_by_role("link", name="download").click()
    loading.value.save_as(tmp_path / "alpha.md")
    assert (tmp_path / "alpha.md").read_text().startswith("# Part alpha")
