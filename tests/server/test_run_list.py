"""The list of runs: what it says of each, how it is kept up to date, and what it costs with many runs."""

import asyncio
import re
import shutil
from pathlib import Path

import pytest

from explorer.journal.listing import JournalTail, overview
from explorer.reports.earlier import PastRun
from explorer.server import overviews
from explorer.server.overviews import Overviews, SearchedTexts
from made_runs import A, B, two_runs
from server.site_stage import Browser, GatedClient, browsing
from server.test_live import SentEvent, events_of


def _part(folder: Path, records: int) -> None:
    """Leave the first records of a run alone."""
    journal = folder / ".explorer" / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:records]))


async def test_a_line_says_what_the_command_line_says(tmp_path: Path) -> None:
    """Of a run that has ended, one that has not, and one that is damaged; after each record that comes."""
    folder, other = await two_runs(tmp_path)
    lines = (folder / ".explorer" / "journal.jsonl").read_bytes().splitlines(keepends=True)
    known = Overviews()
    for count in range(1, len(lines) + 1):
        (folder / ".explorer" / "journal.jsonl").write_bytes(b"".join(lines[:count]))
        assert known.of(folder) == overview(folder), count
    assert known.of(other) == overview(other)
    (other / ".explorer" / "journal.jsonl").write_bytes(b"".join([*lines[:3], b"?", *lines[4:]]))
    assert (known.of(other).status, overview(other).status) == ("damaged", "damaged")


async def test_what_was_read_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ended is not looked into; one that did not is read on from where it was."""
    ended, cut = await two_runs(tmp_path)
    _part(cut, 6)
    read: list[int] = []
    look = JournalTail.look

    def counted(tail: JournalTail) -> object:
        found = look(tail)
        read.append(len(found[0]))
        return found

    monkeypatch.setattr(JournalTail, "look", counted)
    known = Overviews()
    first = [known.of(folder) for folder in (ended, cut)]
    assert len(read) == 2
    assert [known.of(folder) for folder in (ended, cut)] == first
    assert read[2:] == [0]


async def test_a_new_folder_is_found_though_it_was_no_run_at_first(tmp_path: Path) -> None:
    """A list of folders that has just changed is not kept: the journal comes a moment after its folder."""
    async with browsing(tmp_path) as browser:
        await two_runs(tmp_path / "workspace")
        known = Overviews()
        assert [folder.name for folder in known.folders(browser.runs)] == [B, A]
        shutil.copytree(tmp_path / "workspace" / A, tmp_path / "workspace" / (A + "-2"))
        shutil.move(tmp_path / "workspace" / (A + "-2") / ".explorer", tmp_path / "kept")
        assert len(known.folders(browser.runs)) == 2
        shutil.move(tmp_path / "kept", tmp_path / "workspace" / (A + "-2") / ".explorer")
        assert len(known.folders(browser.runs)) == 3


async def _event(browser: Browser, after: str = "") -> SentEvent:
    async with browser.client.stream("GET", f"/live?after={after}") as answer:
        async for event in events_of(answer.aiter_lines()):
            return event
    raise AssertionError("the stream ended")


@pytest.mark.slow
async def test_the_open_list_shows_runs_as_they_come_and_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of this server and of other processes, with how many are at work; a page that shows all is sent nothing."""
    monkeypatch.setattr(overviews, "SETTLED_AFTER_S", 0)
    client = GatedClient()
    folder, _ = await two_runs(tmp_path / "elsewhere")
    async with browsing(tmp_path, client) as browser:
        page = await browser.page("/")
        moment = re.findall(r"&amp;after=(\w+)", page)[0]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await _event(browser, moment)
        run = await browser.ask("What is in the folder?")
        event = await _event(browser, moment)
        assert event.parts == ["part-runs"]
        # A run is at work a moment before its journal is there.
        while f'id="run-{run}"' not in event.html:
            event = await _event(browser, event.id)
        assert 'data-at-work="1"' in event.html
        assert "<title>(1) explorer" in await browser.page("/")
        (tmp_path / "workspace" / A).parent.mkdir(exist_ok=True)
        shutil.copytree(folder, tmp_path / "workspace" / A)
        while f'id="run-{A}"' not in event.html:
            event = await _event(browser, event.id)
        client.gate.set()
        while 'data-at-work="0"' not in event.html:
            event = await _event(browser, event.id)
        assert "<title>explorer" in await browser.page("/")


async def test_a_search_reads_only_runs_that_have_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was added is found, what was removed is not, and the others are not opened again."""
    folders = list(await two_runs(tmp_path))
    opened: list[str] = []
    of = PastRun.of

    def counted(folder: Path) -> PastRun | None:
        opened.append(folder.name)
        return of(folder)

    monkeypatch.setattr(PastRun, "of", counted)
    texts = SearchedTexts()
    first = [*texts.of(folders)]
    assert {one.origin for one in first} == {A, B}
    assert [*texts.of(folders)] == first
    assert opened == [folder.name for folder in folders]
    (folders[0] / "found.md").write_text("The masts cost 77 euros.\n")
    with (folders[0] / ".explorer" / "journal.jsonl").open("a") as journal:
        journal.write("{")
    assert "found.md" in {one.path for one in texts.of(folders)}
    assert {one.origin for one in texts.of(folders[1:])} == {folders[1].name}
    assert opened[2:] == [folders[0].name]
    assert [*texts.of(folders)] != first
    assert opened[3:] == [folders[0].name], "a run that had gone is read anew"


async def test_texts_beyond_the_limit_are_read_and_not_kept(tmp_path: Path) -> None:
    """So that many long runs fill no memory."""
    folders = list(await two_runs(tmp_path))
    first = [*SearchedTexts(1).of(folders)]
    texts = SearchedTexts(1)
    assert [*texts.of(folders)] == [*texts.of(folders)] == first
    assert first == [*SearchedTexts().of(folders)]
