"""Events for browsers: what changed, once each, for all who watch, also after a reconnect."""

import asyncio
import re
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine_stage import noon
from explorer.journal.journal import Journal
from explorer.journal.listing import JournalTail, read_records
from explorer.server.feeds import Moment, RunFeed
from explorer.server.views import ENDED
from made_runs import two_runs
from server.site_stage import Browser, GatedClient, browsing, status_of

QUESTION = "What is in the folder?"


@dataclass(frozen=True)
class SentEvent:
    """One event of a stream."""

    id: str
    html: str

    @property
    def parts(self) -> list[str]:
        """The elements that it replaces."""
        return re.findall(r'<hx-partial hx-target="#([^"]+)"', self.html)


async def events_of(lines: AsyncIterator[str]) -> AsyncGenerator[SentEvent]:
    """The events of a stream."""
    number, data = "", list[str]()
    async for line in lines:
        name, _, value = line.partition(": ")
        if name == "id":
            number = value
        elif name == "data":
            data.append(value)
        elif not line and data:
            yield SentEvent(number, "\n".join(data))
            data = []


@asynccontextmanager
async def watching(
    browser: Browser, run: str, after: str = "", last: str = ""
) -> AsyncGenerator[AsyncGenerator[SentEvent]]:
    """The stream of a run."""
    headers = {"last-event-id": last} if last else {}
    async with browser.client.stream("GET", f"/runs/{run}/live?after={after}", headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        async with aclosing(events_of(answer.aiter_lines())) as events:
            yield events


async def until_ended(events: AsyncGenerator[SentEvent]) -> list[SentEvent]:
    """All events up to the one that shows the end: in the run's head, which not every event has."""
    found: list[SentEvent] = []
    async for event in events:
        found.append(event)
        is_at_work = 'data-status="running"' in event.html or 'data-status=""' in event.html
        if "part-head" in event.parts and not is_at_work:
            return found
    return found


async def test_a_run_is_followed_to_its_end(tmp_path: Path) -> None:
    """The first event has all that is there; the last shows the end and the report; ids are numbers of records."""
    client = GatedClient(turns=2)
    async with browsing(tmp_path, client) as browser:
        run = await browser.ask(QUESTION)
        async with watching(browser, run) as events:
            first = await anext(events)
            assert {"part-head", "part-tree"} <= set(first.parts)
            client.gate.set()
            found = await until_ended(events)
        count = len(read_records(tmp_path / "workspace" / run))
        assert found[-1].id == str(count)
        assert "part-report" in {part for event in found for part in event.parts}
        numbers = [int(event.id) for event in (first, *found)]
        assert numbers == sorted(set(numbers))


async def test_a_reconnect_misses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    """Who was cut off after record 5 is sent what changed after it; who has seen all is sent nothing."""
    client = GatedClient(turns=2)
    async with browsing(tmp_path, client) as browser:
        run = await browser.ask(QUESTION)
        async with watching(browser, run) as events:
            seen = (await anext(events)).id
        client.gate.set()
        await browser.until(run, *ENDED)
        async with watching(browser, run, after="1", last=seen) as events:
            event = await anext(events)
            last = event.id
            assert "part-report" in event.parts
            assert int(event.id) == len(read_records(tmp_path / "workspace" / run))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5), watching(browser, run, last=last) as events:
                await anext(events)


@pytest.mark.slow
async def test_twenty_tabs_have_one_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal is read as often for twenty browsers as for one, and each is sent the end."""
    looks: list[Path] = []
    look = JournalTail.look

    def counted(tail: JournalTail) -> object:
        looks.append(tail._path)
        return look(tail)

    monkeypatch.setattr(JournalTail, "look", counted)
    client = GatedClient(turns=1)
    async with browsing(tmp_path, client) as browser:
        run = await browser.ask(QUESTION)
        ends: list[str] = []

        async def watch() -> None:
            async with watching(browser, run) as events:
                await anext(events)
                ready.release()
                ends.append((await until_ended(events))[-1].id)

        ready = asyncio.Semaphore(0)
        async with asyncio.TaskGroup() as group:
            for _ in range(20):
                group.create_task(watch())
            for _ in range(20):
                await ready.acquire()
            before, since = len(looks), time.monotonic()
            await asyncio.sleep(1)
            # On a busy machine the second is a longer one.
            assert len(looks) - before <= 20 * (time.monotonic() - since) + 1
            client.gate.set()
        assert ends == [str(len(read_records(tmp_path / "workspace" / run)))] * 20


async def test_a_run_of_another_process_is_followed(tmp_path: Path) -> None:
    """What somebody else appends to the journal shows, without a word from that process."""
    async with browsing(tmp_path) as browser:
        run = await browser.ask("What do the ropes cost?")
        await browser.until(run, "complete")
    journal = tmp_path / "workspace" / run / ".explorer" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:5]))
    async with browsing(tmp_path) as browser:
        assert status_of(await browser.page(f"/runs/{run}")) == "unfinished"
        async with watching(browser, run, after="5") as events:
            first = await anext(events)
            assert first.id == "5-unfinished"
            with journal.open("ab") as file:
                file.writelines(lines[5:])
            while (event := await anext(events)).id != str(len(lines)):
                assert event.id.endswith("-unfinished")
            assert 'data-status="complete"' in event.html


async def test_no_record_comes_in_while_a_page_is_written(tmp_path: Path) -> None:
    """A page is written in a thread, and would break where an agent were added to what it goes through."""
    folder, _ = await two_runs(tmp_path)
    journal = folder / ".explorer" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:5]))
    feed = RunFeed(folder)
    await feed.refresh()
    is_writing, may_end = threading.Event(), threading.Event()

    def write() -> tuple[int, int]:
        before = feed.run.view.seq
        is_writing.set()
        may_end.wait(20)
        return before, feed.run.view.seq

    async with asyncio.TaskGroup() as group:
        written = group.create_task(feed.steady(write))
        await asyncio.to_thread(is_writing.wait, 20)
        journal.write_bytes(b"".join(lines))
        refreshed = group.create_task(feed.refresh())
        await asyncio.wait({refreshed}, timeout=0.05)
        assert not refreshed.done()
        may_end.set()
    assert written.result() == (5, 5)
    assert feed.run.view.seq == len(lines)


async def test_a_run_that_ends_between_two_looks_is_never_unfinished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last records come, and its process lets go, just after the page has read what there was."""
    folder, _ = await two_runs(tmp_path)
    journal = folder / ".explorer" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:6]))
    held = Journal.open(folder / ".explorer", noon)
    feed = RunFeed(folder)
    await feed.refresh()
    assert feed.status == "running"
    look = JournalTail.look

    def ends_then(tail: JournalTail) -> object:
        found = look(tail)
        if journal.stat().st_size < len(b"".join(lines)):
            held.close()
            journal.write_bytes(b"".join(lines))
        return found

    journal.write_bytes(b"".join(lines[:7]))
    monkeypatch.setattr(JournalTail, "look", ends_then)
    await feed.refresh()
    assert (feed.run.view.seq, feed.status) == (7, "running")
    await feed.refresh(looks_at_lock=False)
    assert (feed.run.view.seq, feed.status) == (len(lines), "complete")


async def test_a_plan_can_be_decided_as_soon_as_its_process_has_let_go(tmp_path: Path) -> None:
    """No record says that it has: the plan was on the page before, without its buttons."""
    async with browsing(tmp_path) as browser:
        asked = await browser.client.post("/api/runs", json={"question": "What do the ropes cost?", "plan": True})
        run = asked.json()["run_id"]
        await browser.until(run, "waiting")
    held = Journal.open(tmp_path / "workspace" / run / ".explorer", noon)
    async with browsing(tmp_path) as browser, watching(browser, run) as events:
        before = await anext(events)
        assert "part-plan" in before.parts
        assert 'value="approve"' not in before.html
        held.close()
        while not (event := await anext(events)).id.endswith("-waiting"):
            assert 'data-status="running"' in event.html
        assert 'value="approve"' in event.html


@pytest.mark.parametrize(("text", "moment"), [("40", Moment(40)), ("40-unfinished", Moment(40, "unfinished"))])
def test_an_id_is_read_as_it_was_written(text: str, moment: Moment) -> None:
    """And what is no id is the beginning."""
    assert Moment.of(text) == moment
    assert str(moment) == text
    assert {Moment.of(bad) for bad in ("", "x", "-1", "٣", "1e3", "9" * 5000)} <= {Moment(0), Moment(0, "1")}
