"""The pages of a report's evidence, a run's files, its timeline and comparison, over real HTTP."""

import json
import re
from pathlib import Path

import pytest

from explorer.journal.listing import read_records
from explorer.server.lookups import claims_with, counts_of
from explorer.server.pages.timeline import MAX_BARS, Bar, gantt_of, longest_bars
from explorer.server.site import WebSite
from made_runs import A, B, make_run, page, two_runs
from server.site_stage import active_parts, browsing, plain

C = "20260801-090000-ropes-cccc"
TEXT = "The ropes cost 120 euros in March. The masts cost 77 euros."
REPORT = """# Ropes

The ropes cost 120 euros [S1]. The masts cost 99 euros [S1]. The sails cost 5 euros.
"""


async def test_a_citation_leads_to_the_words_of_its_source(tmp_path: Path) -> None:
    """From the report over the card, with the verdict and the marked words, to the whole stored text."""
    await make_run(tmp_path / "workspace", C, [page("https://rope.example/a", TEXT, title="Rope prices")], REPORT)
    async with browsing(tmp_path) as browser:
        report = await browser.page(f"/runs/{C}/report")
        assert f'href="/runs/{C}/citations/1"' in report
        assert "not supported (1)" in plain(report)
        assert " supported (1)" in plain(report).replace("not supported", "")
        for address in (f"/runs/{C}/citations/1", f"/runs/{C}/citations/1?part=true"):
            card = await browser.page(address)
            assert "Rope prices" in card
            assert "rope.example" in card
            assert "<mark>120 euros</mark>" in card or "<mark>120</mark>" in card
            assert "not found" in plain(card)
            assert f'href="/runs/{C}/sources/S1"' in card
        assert "<html" not in card
        source = await browser.page(f"/runs/{C}/sources/S1")
        assert "The masts cost 77 euros." in plain(source)
        assert "<mark>120" in source
        assert "no citation [7]" in plain(await browser.page(f"/runs/{C}/citations/7", 404))
        assert "no source 'S9'" in plain(await browser.page(f"/runs/{C}/sources/S9", 404))
        assert "Rope prices" in await browser.page(f"/runs/{C}/sources?q=rope")
        assert "No source fits" in await browser.page(f"/runs/{C}/sources?q=mast")


async def test_claims_are_filtered_by_verdict(tmp_path: Path) -> None:
    """All, those that no source supports, and those without a citation."""
    await make_run(tmp_path / "workspace", C, [page("https://rope.example/a", TEXT)], REPORT)
    async with browsing(tmp_path) as browser:
        everything = plain(await browser.page(f"/runs/{C}/claims"))
        assert "99 euros" in everything
        assert "The ropes cost" in everything
        listed = await browser.page(f"/runs/{C}/claims")
        addresses = re.findall(rf'href="/runs/{C}/claims#(claim-\d+)"', listed)
        assert len(addresses) == 2
        assert all(f'id="{address}"' in listed for address in addresses)
        wrong = plain(await browser.page(f"/runs/{C}/claims?verdict=not_supported"))
        assert "99 euros" in wrong
        assert "The ropes cost" not in wrong
        uncited = plain(await browser.page(f"/runs/{C}/claims?verdict=uncited"))
        assert "5 euros" in uncited
        assert "99 euros" not in uncited
        assert "No sentence has this verdict" in await browser.page(f"/runs/{C}/claims?verdict=<b>")
        site = WebSite(browser.runs)
        evidence = (await site.lookups.of(tmp_path / "workspace" / C)).whole()
        assert counts_of(evidence) == {"": 3, "not_supported": 1, "supported": 1, "not_found": 1, "uncited": 1}
        assert len(claims_with(evidence, "")) == 3


async def test_a_long_report_is_looked_up_in_parts(tmp_path: Path) -> None:
    """Each page looks up what it shows; folds have the rest of a list, and each sentence keeps its address."""
    text = "\n".join(f"Boat {number} has {number + 300} sails." for number in range(60))
    report = "# Boats\n\n" + "\n".join(f"Boat {number} has {number + 300} sails [S1]." for number in range(60))
    await make_run(tmp_path / "workspace", C, [page("https://rope.example/a", text)], f"{report}\n")
    async with browsing(tmp_path) as browser:
        shown = await browser.page(f"/runs/{C}/report")
        assert "So far, 50 of 60 sentences with citations are looked up" in plain(shown)
        while further := re.search(r'data-further="([^"]+)"', shown):
            shown = await browser.page(further[1])
        assert "all (60)" in plain(shown)
        assert " supported (60)" in plain(shown)
        first = await browser.page(f"/runs/{C}/claims")
        assert len(re.findall("data-line", first)) == 50
        assert {f'id="claim-{place}"' for place in range(60)} <= set(re.findall(r'id="claim-\d+"', first))
        fold = re.search(r'data-load="([^"]+)"', first)
        assert fold
        loaded = await browser.page(fold[1].replace("&amp;", "&"))
        assert "<html" not in loaded
        assert f'href="/runs/{C}/claims?from=51#claim-50"' in loaded
        last = await browser.page(f"/runs/{C}/claims?from=51")
        assert re.findall(r'id="claim-(\d+)" data-line', last) == [str(place) for place in range(50, 60)]
        assert not active_parts(last)
        card = await browser.page(f"/runs/{C}/citations/1?from=55")
        assert "Sentences 51 to 60 of 60 that cite it" in plain(card)
        assert "Boat 54 has" in card
        assert len(re.findall('class="claim"', card)) == 10
        source = await browser.page(f"/runs/{C}/sources/S1?claim=52")
        assert "Sentences 51 to 60 of 60" in plain(source)
        assert "<mark>352</mark>" in source
        assert f"/runs/{C}/sources/S1?claim=49" in source
        assert len((await browser.get(f"/api/runs/{C}/claims")).json()["claims"]) == 60


@pytest.mark.parametrize(("suffix", "beginning"), [("md", b"---"), ("html", b"<!DOCTYPE"), ("json", b"{")])
async def test_a_report_is_downloaded(tmp_path: Path, suffix: str, beginning: bytes) -> None:
    """As a file with the run's name; the HTML page has its evidence in it, and loads nothing."""
    await make_run(tmp_path / "workspace", C, [page("https://rope.example/a", TEXT)], REPORT)
    async with browsing(tmp_path) as browser:
        answer = await browser.get(f"/runs/{C}/download/report.{suffix}")
        assert answer.headers["content-disposition"] == f'attachment; filename="{C}.{suffix}"'
        assert answer.content.startswith(beginning)
        assert b"120 euros" in answer.content
        if suffix == "json":
            assert json.loads(answer.content)["evidence"][0]["id"] == "S1"
        assert (await browser.get(f"/runs/{C}/download/report.exe")).status_code == 400


async def test_files_are_shown_as_what_they_are_and_sent_as_text(tmp_path: Path) -> None:
    """Markdown, a table, an image, text; who wrote the report; and nothing outside of the run's folder."""
    folder = await make_run(tmp_path / "workspace", C, [page("https://rope.example/a", TEXT)], REPORT)
    (tmp_path / "secret.txt").write_text("secret")
    png = b"\x89PNG\r\n\x1a\n" + b"0" * 20
    for name, content in {
        "notes/prices.csv": b"what,euros\nropes,120\n<script>x</script>,1\n",
        "picture.png": png,
        "page.html": b"<script>alert(1)</script>",
        "data.bin": b"\0\1\2",
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    async with browsing(tmp_path) as browser:
        listed = await browser.page(f"/runs/{C}/files")
        assert "notes/prices.csv" in listed
        assert "by orchestrator" in plain(listed)
        table = await browser.page(f"/runs/{C}/files/notes/prices.csv")
        assert '<th scope="col">euros</th>' in table
        assert "<td>120</td>" in table
        assert not active_parts(table)
        report = await browser.page(f"/runs/{C}/files/report.md")
        assert "Who wrote it" in report
        assert f"/runs/{C}/sources/S1" in report
        assert f'src="/runs/{C}/raw/picture.png"' in await browser.page(f"/runs/{C}/files/picture.png")
        assert not active_parts(await browser.page(f"/runs/{C}/files/page.html"))
        assert "not a text" in await browser.page(f"/runs/{C}/files/data.bin")
        image = await browser.get(f"/runs/{C}/raw/picture.png")
        assert image.headers["content-type"] == "image/png"
        raw = await browser.get(f"/runs/{C}/raw/page.html")
        assert raw.headers["content-type"].startswith("text/plain")
        assert raw.headers["content-disposition"] == 'attachment; filename="page.html"'
        assert "sandbox" in raw.headers["content-security-policy"]
        for path in ("link.txt", "../secret.txt", "..%2fsecret.txt", "/etc/passwd", "%2e%2e/secret.txt", "nothing"):
            for kind in ("files", "raw"):
                answer = await browser.get(f"/runs/{C}/{kind}/{path}")
                assert answer.status_code == 404, (kind, path)
                assert "secret\n" not in answer.text


async def test_a_key_in_a_file_is_not_sent(tmp_path: Path) -> None:
    """It is replaced on pages, and a file with it is not sent at all."""
    folder = await make_run(tmp_path / "workspace", C, [page("https://rope.example/a", TEXT)], REPORT)
    key = "tvly-0123456789abcdef0123"
    (folder / "notes.txt").write_text(f"the key is {key}")
    async with browsing(tmp_path, secrets={"tavily": key}) as browser:
        assert browser.runs.secrets == [key]
        assert key not in await browser.page(f"/runs/{C}/files/notes.txt")
        assert "has a key in it" in plain(await browser.page(f"/runs/{C}/raw/notes.txt", 500))


async def test_the_timeline_shows_any_moment(tmp_path: Path) -> None:
    """A row for each agent, the critical path, a mark at the record, and the run as it was."""
    await two_runs(tmp_path / "workspace")
    async with browsing(tmp_path) as browser:
        run = await browser.ask("What do the ropes cost?")
        await browser.until(run, "complete")
        count = len(read_records(tmp_path / "workspace" / run))
        whole = await browser.page(f"/runs/{run}/timeline")
        assert f'max="{count}" value="{count}"' in whole
        assert 'class="critical"' in whole
        assert "searcher-1" in whole
        then = await browser.page(f"/runs/{run}/timeline?at=7")
        assert 'value="7"' in then
        drawing, _, page_then = then.partition('id="part-head"')
        assert "searcher-1" in drawing
        assert "searcher-1" not in page_then
        assert not active_parts(then)
        beyond = await browser.page(f"/runs/{run}/timeline?at=100000")
        assert f'value="{count}"' in beyond
        assert (await browser.get(f"/runs/{run}/timeline?at=0")).status_code == 400


async def test_the_drawing_has_the_seconds_of_the_run(tmp_path: Path) -> None:
    """Bars are within the drawing and in the rows of their agents, also of a run without any time."""
    folder, _ = await two_runs(tmp_path / "workspace")
    records = read_records(folder)
    drawing = gantt_of(records, 4)
    assert [lane.agent for lane in drawing.lanes] == ["orchestrator"]
    assert {bar.kind for bar in drawing.bars} >= {"task", "model", "tool"}
    assert all(0 <= bar.x <= drawing.width and 0 < bar.y < drawing.height for bar in drawing.bars)
    assert gantt_of(()).lanes == ()


def test_of_too_many_bars_the_shortest_are_left_out() -> None:
    """The drawing of a run with a hundred thousand calls has as many as a browser draws at once."""
    bars = [Bar(0, 0, width % 7 + 1, "tool", "", place) for place, width in enumerate(range(MAX_BARS + 700))]
    kept = longest_bars(bars)
    assert len(kept) == MAX_BARS
    assert [bar.seq for bar in kept] == sorted(bar.seq for bar in kept)
    assert min(bar.width for bar in kept) == 2
    assert longest_bars(bars[:10]) == bars[:10]


async def test_two_runs_are_compared(tmp_path: Path) -> None:
    """Side by side; the same run twice, and one that is not there, are explained."""
    await two_runs(tmp_path / "workspace")
    async with browsing(tmp_path) as browser:
        chosen = await browser.page("/compare")
        assert f'<option value="{A}">' in chosen
        found = plain(await browser.page(f"/compare?a={A}&b={B}"))
        assert "12" in found
        assert "21" in found
        assert "A second field of panels" in found
        assert "The council has not decided" in found
        assert "both are the same run" in plain(await browser.page(f"/compare?a={A}&b={A}", 400))
        await browser.page(f"/compare?a={A}&b=nothing", 404)
