"""The web page on a disk that is really full: what is wrong and what to do is said, and nothing is lost."""

from pathlib import Path

import pytest

from explorer.journal.listing import read_records
from server.site_stage import HERE, Browser, GatedClient, browsing, plain, status_of, until
from small_disk import enlarge, small_disk

pytestmark = pytest.mark.slow
PAGE = 4096
WORDS = "No space left on device"
QUESTION = "What do the ropes cost?"


def _fill(disk: Path) -> Path:
    """Leave no room; the file that took it."""
    filler = disk / ".filler"

    def fill() -> None:
        with filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * PAGE)

    with pytest.raises(OSError, match=WORDS):
        fill()
    return filler


async def _orders(browser: Browser, run: str) -> None:
    """Try all that writes; the control is a page that only reads."""
    for path, fields in (
        ("/runs", {"question": QUESTION}),
        (f"/runs/{run}/steer", {"message": "x" * 2 * PAGE}),
        (f"/runs/{run}/fork", {"at": 1}),
    ):
        page = await browser.client.post(path, data=fields, headers=HERE)
        assert page.status_code in {409, 500}, path
        assert WORDS in plain(page.text), (path, plain(page.text))
        assert "All runs" in page.text
        program = await browser.client.post(f"/api{path}", json=fields)
        assert WORDS in program.json()["error"]["message"], (path, program.text)
    assert status_of(await browser.page(f"/runs/{run}")) == "running"
    assert "What is in the folder?" in await browser.page("/")


async def test_a_full_disk_is_explained_on_the_page(tmp_path: Path) -> None:
    """Nothing can be asked, steered or forked, and the page says why; all can be read; with room, all goes on."""
    client = GatedClient()
    with small_disk(tmp_path / "workspace", 4_000_000) as disk:
        async with browsing(tmp_path, client) as browser:
            run = await browser.ask("What is in the folder?")
            await until(lambda: "request_sent" in {record.event.type for record in read_records(disk / run)})
            filler = _fill(disk)
            await _orders(browser, run)
            before = read_records(disk / run)
            client.gate.set()
            await until(lambda: not browser.runs.owns(run))
            page = await browser.page(f"/runs/{run}")
            assert WORDS in plain(page)
            assert WORDS in (await browser.get(f"/api/runs/{run}")).json()["problem"]
            assert read_records(disk / run)[: len(before)] == before
            filler.unlink()
            enlarge(disk)
            if status_of(page) == "unfinished":
                await browser.send(f"/runs/{run}/resume", message="")
                await browser.until(run, "failed", "partial", "nothing_found")
            assert await browser.ask(QUESTION)
