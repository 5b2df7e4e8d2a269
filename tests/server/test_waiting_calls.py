"""Calls that an approval rule asks about, decided on the page of their run or by a program."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from explorer.journal.listing import read_records
from explorer.schema.events import ApprovalAnswer, ApprovalDecided, ToolFinished
from explorer.schema.messages import Request, Turn
from explorer.testing import says
from server.site_stage import Browser, GatedClient, active_parts, browsing, plain
from server.test_live import watching

RULE = "ask write_file"
HOSTILE = "<script>alert(1)</script>\u202e\u200b"


class WritingClient(GatedClient):
    """A model that writes two files, one after the other, and then answers."""

    async def generate(self, request: Request) -> Turn:
        """The next reply."""
        taken = sum(isinstance(message, Turn) for message in request.history)
        if taken < 2:
            return says("I write.", ("write_file", {"filepath": f"{taken}.md", "content": HOSTILE, "mode": "create"}))
        return says("There is nothing about it.")


async def asked(browser: Browser, run: str, than: str = "") -> Any:  # noqa: ANN401 - any JSON
    """The call that waits, once there is one, other than that one."""
    while True:
        found = (await browser.get(f"/api/runs/{run}")).json()["waiting_call"]
        if found is not None and found["call"] != than:
            return found
        await asyncio.sleep(0.02)


def decided(folder: Path) -> list[tuple[ApprovalAnswer, str]]:
    """The answers in the journal."""
    events = [record.event for record in read_records(folder)]
    return [(event.answer, event.words) for event in events if isinstance(event, ApprovalDecided)]


async def test_a_call_is_allowed_on_the_page_and_refused_by_a_program(tmp_path: Path) -> None:
    """The page shows all of it as text; the run waits until somebody answers, and the answers are in its journal."""
    async with browsing(tmp_path, WritingClient(), approval_wait_s=60, approval_rules=(RULE,)) as browser:
        run = await browser.ask("What is in the folder?")
        folder = tmp_path / "workspace" / run
        first = await asked(browser, run)
        assert (first["tool"], first["rule"]) == ("write_file", RULE)
        page = await browser.page(f"/runs/{run}")
        assert "orchestrator asks for your approval" in plain(page)
        assert "alert(1)" in page
        assert "\\u202e\\u200b" in page
        assert not active_parts(page)
        assert "asks for your approval" in await browser.page("/")
        for answer in ("x", first["call"] + "x"):
            await browser.send(f"/runs/{run}/call", 409, call=answer, decision="approve")
        assert not (folder / "0.md").exists()
        await browser.send(f"/runs/{run}/call", call=first["call"], decision="approve")
        second = await asked(browser, run, first["call"])
        assert decided(folder) == [(ApprovalAnswer.ONCE, "")]
        assert (folder / "0.md").exists()
        body = {"call": second["call"], "decision": "deny", "reason": "Not\nthis"}
        answer = await browser.client.post(f"/api/runs/{run}/call", json=body)
        assert answer.status_code == 202
        assert decided(folder)[1] == (ApprovalAnswer.NO, "Not this")
        await browser.until(run, "partial", "failed", "nothing_found")
        assert not (folder / "1.md").exists()
        results = [one.event for one in read_records(folder) if isinstance(one.event, ToolFinished)]
        assert "Not this" in results[1].content
        assert (await browser.client.post(f"/api/runs/{run}/call", json=body)).status_code == 409


async def test_pages_that_are_open_are_told(tmp_path: Path) -> None:
    """The question comes to each of them, and goes once it is answered; for the run it is asked once."""
    async with browsing(tmp_path, WritingClient(), approval_wait_s=60, approval_rules=(RULE,)) as browser:
        run = await browser.ask("What is in the folder?")
        async with watching(browser, run) as events:
            event = await anext(events)
            while not (asks := re.search(r'id="part-call"[^>]* data-call="([^"]+)"', event.html)):
                event = await anext(events)
            # It may be on the page already when the event of the record before it is written.
            while not event.id.endswith("-asks"):
                event = await anext(events)
            await browser.send(f"/runs/{run}/call", call=asks[1], decision="approve_for_run")
            while 'data-status="running"' in (event := await anext(events)).html:
                assert asks[1] not in event.html
        assert decided(tmp_path / "workspace" / run) == [(ApprovalAnswer.RUN, "")]


@pytest.mark.parametrize("wait_s", [0, 0.05])
async def test_without_an_answer_in_time_a_call_is_refused(tmp_path: Path, wait_s: float) -> None:
    """As where nobody can be asked; the run goes on without it."""
    async with browsing(tmp_path, WritingClient(), approval_wait_s=wait_s, approval_rules=(RULE,)) as browser:
        run = await browser.ask("What is in the folder?")
        await browser.until(run, "partial", "failed", "nothing_found")
        assert [answer for answer, _ in decided(tmp_path / "workspace" / run)] == [ApprovalAnswer.UNASKED] * 2
