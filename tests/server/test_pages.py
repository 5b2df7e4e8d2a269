"""The pages of runs over real HTTP: ask, watch, steer, stop, ask further, fork, and the past."""

import asyncio
import hashlib
import os
import re
import shutil
import tomllib
from pathlib import Path

from engine_stage import noon
from explorer.journal.control import Inbox
from explorer.journal.journal import Journal
from explorer.journal.listing import is_running, read_records
from explorer.schema.events import RunStarted
from explorer.server import app
from explorer.server.pages.runs import MOST
from made_runs import A, B, two_runs
from server.site_stage import GatedClient, browsing, plain, status_of, until

ROPES = "What do the ropes cost?"


async def test_a_question_is_asked_watched_and_asked_further(tmp_path: Path) -> None:
    """From the form to the report, with limits and a file; then a follow-up in the same run."""
    async with browsing(tmp_path) as browser:
        page = await browser.page("/")
        assert "There are no runs yet" in page
        assert "$5.00" in page
        note = {"files": ("masts.md", b"# Masts\n\nThe masts cost 77 euros.\n", "text/markdown")}
        run = await browser.ask(ROPES, files=note, max_cost="0.5", max_minutes="3", language="en")
        first = read_records(tmp_path / "workspace" / run)[0].event
        assert isinstance(first, RunStarted)
        assert first.settings["limits"]["max_cost_usd"] == 0.5
        assert first.settings["limits"]["max_time_s"] == 180
        assert first.settings["language"] == "en"
        page = await browser.until(run, "complete")
        assert "120 euros" in page
        assert (tmp_path / "workspace" / run / "inputs" / "masts.md").exists()
        assert "orchestrator" in page
        assert f"/runs/{run}" in await browser.page("/")
        assert ROPES in plain(await browser.page("/?q=ropes"))
        assert "No run fits" in await browser.page("/?q=nothingofthekind")
        assert f"/runs/{run}" in await browser.page("/?status=complete")
        assert f"/runs/{run}" not in await browser.page("/?status=failed")
        await browser.send(f"/runs/{run}/resume", message="And in April?")
        await browser.until(run, "complete", "partial", "nothing_found")
        assert "And in April?" in plain(await browser.page(f"/runs/{run}/agents/orchestrator"))


WRONG_FORMS: list[tuple[dict[str, str], str]] = [
    ({"question": "  "}, "there is no question"),
    ({"question": ROPES, "max_cost": "much"}, "the cost is not a number above 0"),
    ({"question": ROPES, "max_cost": "nan"}, "the cost is not a number above 0"),
    ({"question": ROPES, "max_minutes": "-1"}, "the time is not a number above 0"),
    ({"question": ROPES, "plan": "perhaps"}, "plan"),
    ({}, "question"),
]


async def test_a_form_that_cannot_be_used_is_explained(tmp_path: Path) -> None:
    """Nothing is started, and the page says what to correct."""
    async with browsing(tmp_path) as browser:
        for fields, words in WRONG_FORMS:
            answer = await browser.send("/runs", 400, **fields)
            assert words in plain(answer.text), fields
        assert not list((tmp_path / "workspace").glob("*"))


async def test_monitors_are_answered_without_a_body(tmp_path: Path) -> None:
    """HEAD gets the status and the headers of GET, also of what is kept up to date, whose answer never ends."""
    async with browsing(tmp_path) as browser:
        run = await browser.ask(ROPES)
        await browser.until(run, "complete")
        await browser.runs.ended()
        pages = ["/", f"/runs/{run}", "/api/runs", f"/api/runs/{run}", "/static/style.css", "/nothing"]
        for path in pages:
            full, head = await browser.get(path), await browser.client.head(path)
            assert (head.status_code, head.content) == (full.status_code, b""), path
            alike = ("content-type", "content-length", "content-security-policy", "x-content-type-options")
            assert [head.headers[name] for name in alike] == [full.headers[name] for name in alike], path
        for path in ("/live", f"/runs/{run}/live"):
            head = await browser.client.head(path)
            assert (head.status_code, head.headers["content-type"].partition(";")[0]) == (200, "text/event-stream")
        assert (await browser.client.head(f"/runs/{run}/stop")).status_code == 405


async def test_unknown_runs_agents_and_pages_say_what_to_do(tmp_path: Path) -> None:
    """Each is a page with its status, and JSON below /api/."""
    run = (await two_runs(tmp_path / "workspace"))[0].name
    async with browsing(tmp_path) as browser:
        for path in ("/runs/nothing", f"/runs/{run}/agents/nobody", "/nothing", "/runs/..%2f..%2fetc"):
            page = await browser.page(path, 404)
            assert "All runs" in page, path
        assert (await browser.get("/api/nothing")).json()["error"]["type"] == "NotFoundError"
        # The beginning of an id leads to the run.
        answer = await browser.get(f"/runs/{run[:14]}", follow_redirects=False)
        assert answer.headers["location"] == f"/runs/{run}"


async def test_a_message_is_queued_and_then_applied(tmp_path: Path) -> None:
    """The page shows it as queued until the run took it, then with the record at which it did."""
    async with browsing(tmp_path, GatedClient()) as browser:
        run = await browser.ask("What is in the folder?")
        folder = tmp_path / "workspace" / run
        assert is_running(folder)
        await browser.send(f"/runs/{run}/steer", message="Look at <b>masts</b>, too")
        assert [order.text for order in Inbox(folder / ".explorer").waiting()] == ["Look at <b>masts</b>, too"]
        page = await browser.page(f"/runs/{run}")
        assert "queued: Look at &lt;b&gt;masts&lt;/b&gt;, too" in page
        await browser.send(f"/runs/{run}/stop", how="now")
        page = await browser.until(run, "partial", "failed", "unfinished")
        assert "Stop now" not in page
        assert not is_running(folder)
        refused = await browser.send(f"/runs/{run}/steer", 409, message="Too late")
        assert "is not at work" in plain(refused.text)


async def test_the_past_is_shown_and_can_be_forked(tmp_path: Path) -> None:
    """A run as it was after a record, and a new run that begins there; the first one stays as it is."""
    async with browsing(tmp_path) as browser:
        run = await browser.ask(ROPES)
        await browser.until(run, "complete")
        count = len(read_records(tmp_path / "workspace" / run))
        then = await browser.page(f"/runs/{run}?at=5")
        assert f"after record 5 of {count}" in plain(then)
        assert "120 euros" not in then
        assert "hx-sse:connect" not in then
        last = await browser.page(f"/runs/{run}?at={count - 1}")
        assert "120 euros" in last
        answer = await browser.send(f"/runs/{run}/fork", at="5")
        forked = answer.headers["location"].removeprefix("/runs/")
        assert forked != run
        assert status_of(await browser.page(f"/runs/{forked}")) == "unfinished"
        assert len(read_records(tmp_path / "workspace" / run)) == count
        refused = await browser.send(f"/runs/{run}/fork", 400, at="100000")
        assert "has records 1 to" in plain(refused.text)


async def test_a_run_of_another_process_is_only_watched_and_written_to(tmp_path: Path) -> None:
    """The page says which process works on it; only that can stop it at once, or resume it."""
    folder = (await two_runs(tmp_path / "workspace"))[0]
    journal = folder / ".explorer" / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:6]))
    held = Journal.open(folder / ".explorer", noon)
    try:
        async with browsing(tmp_path) as browser:
            page = await browser.page(f"/runs/{A}")
            assert status_of(page) == "running"
            assert f"Process {os.getpid()} works on it." in page
            assert "Message to the run" in page
            assert "Stop and write up" in page
            assert "Stop now" not in page
            assert "Resume" not in page
            refused = await browser.send(f"/runs/{A}/stop", 409, how="now")
            assert "another process works on this run" in plain(refused.text)
            assert f"explorer stop {A}" in plain(refused.text)
            assert "is at work" in plain((await browser.send(f"/runs/{A}/resume", 409, message="x")).text)
            await browser.send(f"/runs/{A}/steer", message="Look at masts")
            await browser.send(f"/runs/{A}/stop", how="write")
            page = plain(await browser.page(f"/runs/{A}"))
            assert "queued: Look at masts" in page
            assert "queued: stopped by the user" in page
    finally:
        held.close()


async def test_a_folder_without_runs_says_what_to_do(tmp_path: Path) -> None:
    """One that is empty or has other files, one that is not there, and a file in its place."""
    async with browsing(tmp_path) as browser:
        workspace = tmp_path / "workspace"
        for make in (lambda: None, workspace.mkdir, (workspace / "photos").mkdir):
            make()
            page = plain(await browser.page("/"))
            assert f"There are no runs yet in {workspace}" in page
            assert "explorer serve --workspace DIR" in page
        shutil.rmtree(workspace)
        workspace.write_text("x")
        page = plain(await browser.page("/"))
        assert f"{workspace} is not a folder" in page
        assert "explorer serve --workspace DIR" in page
        refused = await browser.send("/runs", 409, question=ROPES)
        assert "cannot write in" in plain(refused.text)


async def test_a_plan_waits_for_its_user(tmp_path: Path) -> None:
    """Its sub-questions are shown, and approved or rejected on the page."""
    async with browsing(tmp_path) as browser:
        run = await browser.ask(ROPES, plan="true")
        page = await browser.until(run, "waiting")
        questions = plain(page.partition('id="part-plan"')[2].partition("</section>")[0])
        assert "planned" in questions
        assert "{" not in questions
        await browser.send(f"/runs/{run}/plan", decision="approve")
        assert "120 euros" in await browser.until(run, "complete")


async def test_a_damaged_run_is_shown_up_to_the_damage(tmp_path: Path) -> None:
    """With the words of the error, and what helps."""
    folder = (await two_runs(tmp_path / "workspace"))[0]
    journal = folder / ".explorer" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[4] = lines[4].replace(b'"v":1', b'"v":7', 1)
    journal.write_bytes(b"".join(lines))
    async with browsing(tmp_path) as browser:
        page = await browser.page(f"/runs/{A}")
        assert status_of(page) == "damaged"
        assert f"explorer doctor {A}" in page
        assert "A fork continues from a record before the damage" in page
        for path in ("report", "claims", "sources", "files", "timeline"):
            assert "The run is damaged. This page knows its records up to" in await browser.page(f"/runs/{A}/{path}")
        fork = (await browser.send(f"/runs/{A}/fork", at=4)).headers["location"]
        assert status_of(await browser.page(fork)) != "damaged"
        assert 'data-seq="4"' in page
        assert "damaged" in await browser.page("/")
        assert f"/runs/{B}" in await browser.page("/")


def test_files_of_others_are_as_they_were_published() -> None:
    """Each has its package, its licence and its digest beside it; no other script is served."""
    listed = tomllib.loads((app.STATIC / "vendored.toml").read_text())
    for name, facts in listed.items():
        assert hashlib.sha256((app.STATIC / name).read_bytes()).hexdigest() == facts["sha256"], name
        assert (app.STATIC / facts["licence"].split()[0]).exists()
    assert {path.name for path in app.STATIC.glob("*.js")} == {*listed, "page.js", "evidence.js", "timeline.js"}


async def test_the_first_page_is_small_and_asks_nobody_else(tmp_path: Path) -> None:
    """Under 100 kB with all that it loads, all of it from the server itself, also in a workspace with many runs."""
    folder = (await two_runs(tmp_path / "workspace"))[0]
    for number in range(70):
        copy = folder.with_name(f"20260602-0900{number:02}-{'harbour-plant-' * 4}{number:04}")
        shutil.copytree(folder, copy)
    async with browsing(tmp_path) as browser:
        page = await browser.page("/")
        assert page.count("<tr id=") == MOST
        assert "Show more" in page
        loaded = [one.split('"')[0] for mark in ('src="', 'href="/static') for one in page.split(mark)[1:]]
        files = [name if name.startswith("/") else f"/static{name}" for name in loaded if "/api/" not in name]
        files = [f"/static{name}" if not name.startswith("/static") else name for name in files]
        total = len(page) + sum([len((await browser.get(name)).content) for name in set(files)])
        assert set(files) >= {"/static/htmx.min.js", "/static/hx-sse.min.js", "/static/page.js", "/static/style.css"}
        assert total < 100_000
        assert "http" not in page.replace("http-equiv", "")


def key_of(page: str) -> str:
    """The key of the first form of a page."""
    found = re.search(r'name="key" value="([^"]+)"', page)
    assert found
    return found[1]


async def test_a_form_that_is_sent_again_orders_nothing_more(tmp_path: Path) -> None:
    """Clicks of an impatient user lead to one run; other words, another page and a refused form are other orders."""
    async with browsing(tmp_path, GatedClient()) as browser:
        key = key_of(await browser.page("/"))
        file = {"files": ("a.md", b"One")}
        async with asyncio.TaskGroup() as group:
            clicks = [group.create_task(browser.send("/runs", key=key, question="Why?", files=file)) for _ in range(3)]
        (where,) = {click.result().headers["location"] for click in clicks}
        run = where.removeprefix("/runs/")
        assert len(list((tmp_path / "workspace").glob("[!.]*"))) == 1
        other = {"files": ("a.md", b"Two")}
        assert (await browser.send("/runs", key=key, question="Why?", files=other)).headers["location"] != where
        await browser.send("/runs", 409, key=key, question="A third one?")
        await browser.send(f"/runs/{run}/stop", how="now", key=key_of(await browser.page(where)))
        await browser.until(run, "partial", "failed", "nothing_found", "unfinished")
        assert (await browser.send("/runs", key=key, question="A third one?")).headers["location"] != where


async def test_words_to_a_run_that_are_sent_again_arrive_once(tmp_path: Path) -> None:
    """Its page has a new key after each message, so that the same words can be said twice; forks are made once."""
    async with browsing(tmp_path, GatedClient()) as browser:
        run = await browser.ask("Why?")
        folder = tmp_path / "workspace" / run
        # From then on the run takes no message before the model answers.
        await until(lambda: any(record.event.type == "request_sent" for record in read_records(folder)))
        key = key_of(await browser.page(f"/runs/{run}"))
        for _ in range(2):
            await browser.send(f"/runs/{run}/steer", key=key, message="Look again")
        page = await browser.page(f"/runs/{run}")
        assert page.count("queued: Look again") == 1
        await browser.send(f"/runs/{run}/steer", key=key_of(page), message="Look again")
        assert (await browser.page(f"/runs/{run}")).count("queued: Look again") == 2
        forks = {(await browser.send(f"/runs/{run}/fork", key=key, at=2)).headers["location"] for _ in range(2)}
        assert len(forks) == 1
