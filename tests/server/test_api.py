"""The JSON side of the site over real HTTP: runs, their past, their records as pages and as a stream, and orders."""

import asyncio
import base64
import json
import os
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import SecretStr

from explorer.journal.control import Inbox
from explorer.journal.listing import read_records
from explorer.journal.run_state import RunState
from explorer.observe.run_view import RunView
from explorer.reports.compare import compare_runs, snapshot_on_disk
from explorer.run.report_document import ReportEvidence
from explorer.run.results import stored_result
from explorer.schema.events import RunStarted, Steered
from explorer.schema.settings import Secrets
from explorer.server.fleet_status import FleetRun, FleetStatus, FleetWorker
from explorer.server.pages.api_evidence import as_json
from explorer.workspace.workspace import Workspace, report_text
from made_runs import A, B, make_run, page, two_runs
from server.site_stage import Browser, GatedClient, browsing

ROPES = "What do the ropes cost?"
KEY = "sk-ant-planted-0123456789"
STREAM = {"accept": "text/event-stream"}
ENDED = {"complete", "partial", "nothing_found", "failed", "unfinished"}


async def read(browser: Browser, path: str, code: int = 200, **more: Any) -> Any:  # noqa: ANN401 - any JSON
    """The JSON of an address that has this status."""
    answer = await browser.get(path, **more)
    assert answer.status_code == code, (path, answer.status_code, answer.text[:500])
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


async def order(browser: Browser, path: str, code: int, **body: Any) -> Any:  # noqa: ANN401 - any JSON
    """The answer to an order of a program."""
    answer = await browser.client.post(path, json=body)
    assert answer.status_code == code, (path, answer.status_code, answer.text[:500])
    return answer.json()


async def ended(browser: Browser, run: str, *statuses: str) -> Any:  # noqa: ANN401 - any JSON
    """The run once it has ended, or has one of these statuses."""
    while True:
        found = await read(browser, f"/api/runs/{run}")
        if found["result"]["status"] in (statuses or ENDED):
            return found
        await asyncio.sleep(0.05)


@dataclass(frozen=True)
class StreamedEvent:
    """One event of a stream."""

    id: str
    name: str
    data: Any


@asynccontextmanager
async def streamed(
    browser: Browser, run: str, query: str = "", last: str = ""
) -> AsyncGenerator[AsyncGenerator[StreamedEvent]]:
    """The events of a run's stream."""

    async def events() -> AsyncGenerator[StreamedEvent]:
        fields: dict[str, str] = {}
        async for line in answer.aiter_lines():
            name, _, value = line.partition(": ")
            if line and name:
                fields[name] = value
            elif "data" in fields:
                yield StreamedEvent(fields.get("id", ""), fields.get("event", ""), json.loads(fields["data"]))
                fields = {}

    headers = STREAM | ({"last-event-id": last} if last else {})
    async with browser.client.stream("GET", f"/api/runs/{run}/events{query}", headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        async with aclosing(events()) as found:
            yield found


def on_disk(folder: Path) -> list[Any]:
    """The records of a run as JSON."""
    return [json.loads(record.model_dump_json()) for record in read_records(folder)]


async def test_a_run_is_started_followed_and_read(tmp_path: Path) -> None:
    """The stream has each record once under its number, and ends; the result is that of the command line."""
    async with browsing(tmp_path) as browser:
        limits = {"max_cost_usd": 0.5, "max_time_s": 180, "language": "en"}
        answer = await browser.client.post("/api/runs", json={"question": f" {ROPES} ", **limits})
        assert answer.status_code == 201
        run = answer.json()["run_id"]
        assert answer.headers["location"] == f"/api/runs/{run}"
        async with streamed(browser, run) as events:
            found = [event async for event in events]
        records = on_disk(tmp_path / "workspace" / run)
        assert [event.data for event in found[:-1]] == records
        assert [event.id for event in found[:-1]] == [str(number) for number in range(1, len(records) + 1)]
        assert (found[-1].name, found[-1].data) == ("end", {"status": "complete"})
        started = read_records(tmp_path / "workspace" / run)[0].event
        assert isinstance(started, RunStarted)
        assert started.question == ROPES
        assert started.settings["limits"]["max_cost_usd"] == 0.5
        assert started.settings["limits"]["max_time_s"] == 180

        shown = await read(browser, f"/api/runs/{run}")
        view = RunView()
        for record in read_records(tmp_path / "workspace" / run):
            view.apply(record)
        expected = asdict(stored_result(view, tmp_path / "workspace" / run))
        assert shown["result"] == json.loads(json.dumps(expected))
        assert "120 euros" in shown["result"]["report_text"]
        assert shown["head"]["status"] == "complete"
        assert [agent["level"] for agent in shown["agents"]] == [1, 2, 2]
        assert shown["agents"][0]["id"] == shown["agents"][1]["parent"]
        assert "report.md" in [file["path"] for file in shown["files"]]
        assert (shown["at"], shown["last"], shown["damage"]) == (len(records), len(records), None)


async def test_a_run_is_shown_as_it_was(tmp_path: Path) -> None:
    """After record 5 there are one agent, no file and no report; before its end it was running."""
    async with browsing(tmp_path) as browser:
        run = (await order(browser, "/api/runs", 201, question=ROPES))["run_id"]
        last = (await ended(browser, run))["last"]
        then = await read(browser, f"/api/runs/{run}?at=5")
        assert (then["at"], then["last"]) == (5, last)
        assert (then["result"]["status"], then["result"]["report_text"]) == ("running", "")
        assert [agent["id"] for agent in then["agents"]] == ["orchestrator"]
        assert not then["files"]
        late = await read(browser, f"/api/runs/{run}?at={last - 1}")
        assert "120 euros" in late["result"]["report_text"]
        assert (await read(browser, f"/api/runs/{run}?at=100000"))["at"] == last
        agent = await read(browser, f"/api/runs/{run}/agents/searcher-1")
        calls = [call for entry in agent["entries"] for call in entry["calls"]]
        assert len(calls) == agent["agent"]["calls"]
        assert all(call["name"] and json.loads(call["arguments"]) is not None for call in calls)
        assert "120 euros" in json.dumps(calls)
        early = await read(browser, f"/api/runs/{run}/agents/orchestrator?at=5")
        assert [entry["head"] for entry in early["entries"]] == ["task"]
        await read(browser, f"/api/runs/{run}/agents/searcher-1?at=5", 404)


async def test_a_reconnect_sends_each_record_once(tmp_path: Path) -> None:
    """Who was cut off is sent the records after the last one; a later session is followed by who asked for it."""
    client = GatedClient(turns=2)
    async with browsing(tmp_path, client) as browser:
        run = (await order(browser, "/api/runs", 201, question="What is in the folder?"))["run_id"]
        seen: list[StreamedEvent] = []
        for _ in range(3):
            async with streamed(browser, run, "?after=99", seen[-1].id if seen else "0") as events:
                seen += [await anext(events), await anext(events)]
        client.gate.set()
        async with streamed(browser, run, last=seen[-1].id) as events:
            seen += [event async for event in events]
        assert seen.pop().name == "end"
        records = on_disk(tmp_path / "workspace" / run)
        assert [event.data for event in seen] == records
        assert [event.id for event in seen] == [str(record["seq"]) for record in records]

        # A browser that connects again after the end is told that there is nothing more.
        assert (await browser.get(f"/api/runs/{run}/events?after={len(records)}", headers=STREAM)).status_code == 204
        async with streamed(browser, run, f"?after={len(records)}&follow=true") as events:
            await order(browser, f"/api/runs/{run}/resume", 202, message="And now?")
            further = [await anext(events), await anext(events)]
        assert [event.id for event in further] == [str(len(records) + 1), str(len(records) + 2)]
        assert [event.data for event in further] == on_disk(tmp_path / "workspace" / run)[len(records) :][:2]


async def test_records_come_in_pages(tmp_path: Path) -> None:
    """Page by page all records, each once; the last page has no next one."""
    folder = (await two_runs(tmp_path / "workspace"))[0]
    records = on_disk(folder)
    async with browsing(tmp_path) as browser:
        found: list[Any] = []
        after: int | None = 0
        while after is not None:
            answer = await read(browser, f"/api/runs/{A}/events?after={after}&limit=4")
            assert len(answer["records"]) <= 4
            assert (answer["last"], answer["is_ended"], answer["status"]) == (len(records), True, "complete")
            found += answer["records"]
            after = answer["next_after"]
        assert found == records
        assert (await read(browser, f"/api/runs/{A}/events?after=1000"))["records"] == []


async def test_runs_are_listed_in_pages(tmp_path: Path) -> None:
    """Newest first; with a query, passages of what they found come with the first page."""
    await two_runs(tmp_path / "workspace")
    async with browsing(tmp_path) as browser:
        first = await read(browser, "/api/runs?limit=1&status=complete")
        assert [one["run_id"] for one in first["runs"]] == [B]
        second = await read(browser, first["next"])
        assert [one["run_id"] for one in second["runs"]] == [A]
        assert second["next"] is None
        assert second["runs"][0]["supported"] is not None
        found = await read(browser, "/api/runs?q=shipyard")
        assert found["runs"] == []
        assert {one["run_id"] for one in found["found"]} == {B}
        assert (await read(browser, "/api/runs?status=failed"))["runs"] == []


async def test_a_run_is_steered_stopped_resumed_and_forked(tmp_path: Path) -> None:
    """Each order does what the form of the page does, and is refused where the run is not in a state for it."""
    client = GatedClient()
    async with browsing(tmp_path, client) as browser:
        run = (await order(browser, "/api/runs", 201, question="What is in the folder?"))["run_id"]
        folder = tmp_path / "workspace" / run
        async with streamed(browser, run) as records:
            while (await anext(records)).data["event"]["type"] != "request_sent":
                pass
        assert (await order(browser, f"/api/runs/{run}/steer", 202, message="Look at masts"))["status"] == "running"
        assert [one.text for one in Inbox(folder / ".explorer").waiting()] == ["Look at masts"]
        assert (await read(browser, f"/api/runs/{run}"))["head"]["waiting"] == ["Look at masts"]
        assert (await read(browser, f"/api/runs/{run}"))["is_own"]
        refused = await order(browser, f"/api/runs/{run}/resume", 409, message="Now")
        assert "is at work" in refused["error"]["message"]
        await order(browser, f"/api/runs/{run}/stop", 202, how="now")
        assert (await ended(browser, run))["result"]["status"] != "complete"
        for path, body in (("steer", {"message": "Too late"}), ("stop", {})):
            refused = await order(browser, f"/api/runs/{run}/{path}", 409, **body)
            assert "is not at work" in refused["error"]["message"]

        client.gate.set()
        await order(browser, f"/api/runs/{run}/resume", 202, message="And now?", max_time_s=60)
        await ended(browser, run)
        events = [record.event for record in read_records(folder)]
        # The message that waited, and the one with which it was resumed.
        assert {event.text for event in events if isinstance(event, Steered)} == {"Look at masts", "And now?"}

        forked = await order(browser, f"/api/runs/{run}/fork", 201, at=5)
        assert forked["run_id"] != run
        assert forked["status"] == "unfinished"
        assert len(read_records(folder)) == len(events)
        refused = await order(browser, f"/api/runs/{run}/fork", 400, at=100_000)
        assert "has records 1 to" in refused["error"]["message"]


async def test_a_plan_is_shown_and_edited(tmp_path: Path) -> None:
    """A run that was started with a plan waits with it, and continues with the plan as it was edited."""
    async with browsing(tmp_path) as browser:
        run = (await order(browser, "/api/runs", 201, question=ROPES, plan=True))["run_id"]
        shown = await ended(browser, run, "waiting")
        assert (shown["plan"]["state"], shown["result"]["exit_code"]) == ("waiting", 7)
        refused = await order(browser, f"/api/runs/{run}/plan", 400, decision="edit")
        assert "a plan is needed" in refused["error"]["message"]
        edited = {"questions": [{"question": "What do the ropes cost in March?"}]}
        await order(browser, f"/api/runs/{run}/plan", 202, decision="edit", plan=edited)
        shown = await ended(browser, run)
        assert shown["plan"]["state"] == "edited"
        assert [one["question"]["question"] for one in shown["plan"]["questions"]] == [
            "What do the ropes cost in March?"
        ]
        await order(browser, f"/api/runs/{run}/plan", 409, decision="approve")


WRONG_ORDERS: list[tuple[str, dict[str, Any], int, str]] = [
    ("", {}, 400, "question"),
    ("", {"question": "  "}, 400, "question"),
    ("", {"question": ROPES, "max_cost_usd": -1}, 400, "max_cost_usd"),
    ("", {"question": ROPES, "max_cost_usd": "NaN"}, 400, "max_cost_usd"),
    ("", {"question": ROPES, "maximum": 1}, 400, "maximum"),
    ("", {"question": "x" * 20_001}, 400, "question"),
    ("", {"question": ROPES, "files": [{"name": "a.txt"}]}, 400, "give either text or base64"),
    ("", {"question": ROPES, "files": [{"name": "a.txt", "text": "x", "base64": "eA=="}]}, 400, "give either"),
    ("", {"question": ROPES, "files": [{"name": "a.txt", "base64": "not base64"}]}, 400, "base64"),
    ("", {"question": ROPES, "files": [{"name": "..", "text": "x"}]}, 400, "a file has no name"),
    ("", {"question": ROPES, "files": [{"name": "a/x", "text": "x"}, {"name": "b\\x", "text": "y"}]}, 400, "two files"),
    ("", {"question": ROPES, "files": [{"name": f"{n}", "text": "x"} for n in range(21)]}, 400, "files"),
    ("/nothing/steer", {"message": "x"}, 404, "there is no run 'nothing'"),
    (f"/{A}/steer", {"message": "x" * 20_001}, 400, "message"),
    (f"/{A}/steer", {"message": "x"}, 409, "is not at work"),
    (f"/{A}/stop", {"how": "never"}, 400, "how"),
    (f"/{A}/plan", {"decision": "approve"}, 409, "is complete"),
    (f"/{A}/fork", {"at": 0}, 400, "at"),
    (f"/{A}/call", {"call": "x", "decision": "approve"}, 409, "no call x of run"),
    (f"/{A}/call", {"call": "x", "decision": "yes"}, 400, "decision"),
]


async def test_an_order_that_cannot_be_used_is_explained(tmp_path: Path) -> None:
    """Nothing is started; the answer is one form of error, with a status that says which kind."""
    await two_runs(tmp_path / "workspace")
    async with browsing(tmp_path) as browser:
        for path, body, code, words in WRONG_ORDERS:
            error = (await order(browser, f"/api/runs{path}", code, **body))["error"]
            assert words in error["message"], (path, body)
            assert set(error) == {"message", "hint", "type"}
        assert len(list((tmp_path / "workspace").glob("*"))) == 2


async def test_a_question_is_sent_with_its_files(tmp_path: Path) -> None:
    """A text as it is, any other file in base64; both are in the run's folder, byte for byte."""
    page = b"<p>A mast costs 77 euros.</p>\r\n"
    files = [
        {"name": "notes/masts.md", "text": "  # Masts\n\nThey cost 77 euros.\n"},
        {"name": "mast.html", "base64": base64.b64encode(page).decode()},
    ]
    async with browsing(tmp_path, GatedClient()) as browser:
        run = (await order(browser, "/api/runs", 201, question="What do masts cost?", files=files))["run_id"]
        inputs = tmp_path / "workspace" / run / "inputs"
        assert (inputs / "masts.md").read_text() == "  # Masts\n\nThey cost 77 euros.\n"
        assert (inputs / "mast.html").read_bytes() == page


async def test_what_is_no_json_or_comes_from_elsewhere_is_refused(tmp_path: Path) -> None:
    """A body that is broken, too big, or sent by another site starts nothing."""
    async with browsing(tmp_path, GatedClient()) as browser:
        kind = {"content-type": "application/json"}
        for content, headers, code in (
            (b'{"question": ', kind, 400),
            (b"[1]", kind, 400),
            (b'{"question": "x"}', {"content-type": "text/plain"}, 403),
            (b'{"question": "x"}', kind | {"origin": "https://evil.example"}, 403),
            (b'{"question": "' + b"x" * 25_000_000 + b'"}', kind, 413),
        ):
            answer = await browser.client.post("/api/runs", content=content, headers=headers)
            assert answer.status_code == code, content[:40]
            assert answer.json()["error"]["message"]
        assert not list((tmp_path / "workspace").glob("*"))


NOWHERE = [
    ("/api/runs/nothing", 404),
    ("/api/runs/..%2f..%2fetc", 404),
    ("/api/runs/2026", 404),
    (f"/api/runs/{A}?at=0", 400),
    (f"/api/runs/{A}?at=x", 400),
    (f"/api/runs/{A}/events?limit=0", 400),
    (f"/api/runs/{A}/agents/nobody", 404),
    ("/api/runs?limit=100000", 400),
    ("/api/runs?q=%3F", 400),
    ("/api/nothing", 404),
]


async def test_an_address_that_leads_nowhere_is_explained(tmp_path: Path) -> None:
    """With the same form of error, and what to do."""
    await two_runs(tmp_path / "workspace")
    async with browsing(tmp_path) as browser:
        for path, code in NOWHERE:
            error = (await read(browser, path, code))["error"]
            assert error["message"], path
            assert set(error) == {"message", "hint", "type"}


async def test_a_damaged_run_is_read_up_to_the_damage(tmp_path: Path) -> None:
    """The records before it, and the words of the error; a stream ends there."""
    folder = (await two_runs(tmp_path / "workspace"))[0]
    journal = folder / ".explorer" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[4] = lines[4].replace(b'"v":1', b'"v":7', 1)
    journal.write_bytes(b"".join(lines))
    async with browsing(tmp_path) as browser:
        shown = await read(browser, f"/api/runs/{A}")
        assert shown["result"]["status"] == "damaged"
        assert shown["damage"]["message"]
        async with streamed(browser, A) as events:
            found = [event async for event in events]
        assert [event.id for event in found] == ["1", "2", "3", "4", ""]
        assert found[-1].data == {"status": "damaged"}
        await order(browser, f"/api/runs/{A}/fork", 409)


async def test_no_answer_has_a_key(tmp_path: Path) -> None:
    """A key in a question, a report, a source and a file's name is in no answer and in no event of a stream."""
    report = f"# Ropes {KEY}\n\nThey cost 12 euros, and the key is {KEY} [S1].\n"
    source = page(f"https://rope.example/{KEY}", f"It costs 12 euros. {KEY}", title=f"Ropes {KEY}")
    folder = await make_run(tmp_path / "workspace", A, [source], report, question=f"What is {KEY}?")
    await make_run(tmp_path / "workspace", B, [], f"# Masts {KEY}\n")
    assert KEY.encode() in (folder / ".explorer" / "journal.jsonl").read_bytes()
    (folder / f"{KEY}.md").write_text("Masts.\n")
    async with browsing(tmp_path, secrets=Secrets(anthropic_key=SecretStr(KEY))) as browser:
        for path in (
            "/api/runs",
            "/api/runs?q=ropes",
            f"/api/runs/{A}",
            f"/api/runs/{A}?at=5",
            f"/api/runs/{A}/events",
            f"/api/runs/{A}/agents/orchestrator",
            f"/api/runs/{A}/report",
            f"/api/runs/{A}/claims",
            f"/api/runs/{A}/sources",
            f"/api/runs/{A}/sources/S1",
            f"/api/runs/{A}/files",
            f"/api/runs/{A}/files/report.md",
            f"/api/runs/{A}/files/{KEY}.md",
            f"/api/compare?a={A}&b={B}",
        ):
            text = (await browser.get(path)).text
            assert "[redacted]" in text, path
            assert KEY not in text, path
        async with streamed(browser, A) as events:
            data = json.dumps([event.data async for event in events])
        assert "[redacted]" in data
        assert KEY not in data


async def test_a_report_is_read_with_its_evidence(tmp_path: Path) -> None:
    """Its text, its fields, a card for each citation with the passages, and each checked sentence by verdict."""
    folder = (await two_runs(tmp_path / "workspace"))[0]
    run_state = RunState.of_records(read_records(folder))
    evidence = ReportEvidence(report_text(folder), run_state, Workspace(folder)).whole()
    async with browsing(tmp_path) as browser:
        report = await read(browser, f"/api/runs/{A}/report")
        assert report["markdown"] == report_text(folder)
        assert report["fields"]["status"] == "partial"
        assert report["cards"] == [json.loads(card.model_dump_json()) for card in evidence.cards]
        assert any(piece["is_match"] for piece in report["cards"][0]["sentences"][0]["passages"][0]["pieces"])
        claims = await read(browser, f"/api/runs/{A}/claims")
        assert [one["sentence"] for one in claims["claims"]] == [one.sentence for one in evidence.claims]
        wrong = await read(browser, f"/api/runs/{A}/claims?verdict=not_supported")
        assert {one["verdict"] for one in wrong["claims"]} == {"not_found"}
        assert len(wrong["claims"]) == wrong["counts"]["not_supported"] == 2
        supported = await read(browser, f"/api/runs/{A}/claims?verdict=supported")
        assert {one["verdict"] for one in supported["claims"]} == {"supported"}
        await read(browser, f"/api/runs/{A}/claims?verdict=perhaps", 400)


async def test_sources_are_read_as_they_were_stored(tmp_path: Path) -> None:
    """With who cites them; one that was changed since says so, and one that is not there is not found."""
    folder = (await two_runs(tmp_path / "workspace"))[0]
    async with browsing(tmp_path) as browser:
        listed = (await read(browser, f"/api/runs/{A}/sources"))["sources"]
        assert [one["source"]["id"] for one in listed] == [f"S{number}" for number in range(1, 8)]
        assert [one["sentences"] for one in listed] == [2, 1, 1, 1, 1, 0, 0]
        first = await read(browser, f"/api/runs/{A}/sources/S1")
        assert first["text"] == "The plant fed 12 % more power into the grid.\nThe battery is old."
        assert first["problem"] == ""
        assert len(first["claims"]) == 2
        stored = folder / ".explorer" / "sources" / "S1.md"
        stored.write_text(stored.read_text().replace("12 %", "99 %"))
        assert "not as it was stored" in (await read(browser, f"/api/runs/{A}/sources/S1"))["problem"]
        for name in ("S99", "report.md", "..%2f..%2freport", "S1.md"):
            await read(browser, f"/api/runs/{A}/sources/{name}", 404)


async def test_files_are_listed_with_who_wrote_them(tmp_path: Path) -> None:
    """Who wrote each in which call, and from which sources; texts are read, and what is none is named."""
    async with browsing(tmp_path) as browser:
        run = (await order(browser, "/api/runs", 201, question=ROPES))["run_id"]
        await ended(browser, run)
        (tmp_path / "workspace" / run / "mast.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 40)
        files = {one["path"]: one for one in (await read(browser, f"/api/runs/{run}/files"))["files"]}
        assert {"notes/01-ropes.md", "report.md", "mast.png"} <= set(files)
        assert not any(path.startswith(".explorer") for path in files)
        note = files["notes/01-ropes.md"]["origin"]
        assert [(one["agent"], one["role"]) for one in note["writes"]] == [("searcher-1", "searcher")]
        assert note["found"] == ["S1"]
        assert files["mast.png"]["origin"] is None
        shown = await read(browser, f"/api/runs/{run}/files/notes/01-ropes.md")
        assert "120 euros" in shown["text"]
        assert (shown["kind"], shown["origin"]) == ("", note)
        image = await read(browser, f"/api/runs/{run}/files/mast.png")
        assert image["text"] is None
        assert image["kind"].startswith("a PNG image")


async def test_no_path_leads_out_of_a_run(tmp_path: Path) -> None:
    """Neither upwards nor over a link, a second name of a file, or a pipe; the control is a file that is read."""
    folder = (await two_runs(tmp_path / "workspace"))[0]
    secret = tmp_path / "secret.txt"
    secret.write_text("What is outside.\n")
    (folder / "notes").mkdir()
    (folder / "notes" / "plain.txt").write_text("What is inside.\n")
    (folder / "link.txt").symlink_to(secret)
    (folder / "away").symlink_to(tmp_path)
    (folder / "second.txt").hardlink_to(secret)
    os.mkfifo(folder / "pipe.txt")
    hostile = (
        "..%2f..%2fsecret.txt",
        "%2e%2e/%2e%2e/secret.txt",
        "notes/..%2f..%2f..%2fsecret.txt",
        f"..%2f{B}%2freport.md",
        f"%2f{str(secret).lstrip('/').replace('/', '%2f')}",
        "link.txt",
        "away/secret.txt",
        "second.txt",
        "pipe.txt",
        "notes",
        "report.md%00.txt",
        "..%5c..%5csecret.txt",
        ".explorer/journal.jsonl",
        "x" * 5_000,
    )
    async with browsing(tmp_path) as browser:
        assert (await read(browser, f"/api/runs/{A}/files/notes/plain.txt"))["text"] == "What is inside.\n"
        for path in hostile:
            error = (await read(browser, f"/api/runs/{A}/files/{path}", 404))["error"]
            assert "outside" not in error["message"], path
        for run in ("..", "%2e%2e", "..%2f", "link"):
            answer = await browser.get(f"/api/runs/{run}/files/secret.txt")
            assert answer.status_code == 404, run
        listed = [one["path"] for one in (await read(browser, f"/api/runs/{A}/files"))["files"]]
        assert listed == ["notes/plain.txt", "report.md"]


async def test_a_timeline_adds_up(tmp_path: Path) -> None:
    """The parts of the critical path are the whole time; up to a record there are those that had begun."""
    async with browsing(tmp_path) as browser:
        run = (await order(browser, "/api/runs", 201, question=ROPES))["run_id"]
        await ended(browser, run)
        found = await read(browser, f"/api/runs/{run}/timeline")
        assert [one["id"] for one in found["agents"]] == ["orchestrator", "searcher-1", "writer-1"]
        assert found["at"] == found["last"]
        assert sum(one["seconds"] for one in found["critical_path"]) == pytest.approx(found["seconds"])
        kinds = [one["kind"] for one in found["agents"][0]["intervals"]]
        assert kinds.count("helper") == 2
        early = await read(browser, f"/api/runs/{run}/timeline?at=10")
        assert [one["id"] for one in early["agents"]] == ["orchestrator", "searcher-1"]
        assert (early["at"], early["last"]) == (10, found["last"])


async def test_two_runs_are_compared(tmp_path: Path) -> None:
    """What differs, as `explorer diff` says it; a run and itself, or one run alone, cannot be compared."""
    first, second = await two_runs(tmp_path / "workspace")
    expected = compare_runs(snapshot_on_disk(first), snapshot_on_disk(second))
    async with browsing(tmp_path) as browser:
        found = await read(browser, f"/api/compare?a={A}&b={B}")
        assert found["differs"]
        assert found["comparison"] == json.loads(expected.model_dump_json())
        for query, code in ((f"a={A}&b={A}", 400), (f"a={A}", 400), (f"a={A}&b=nothing", 404), ("a=..&b=.", 404)):
            await read(browser, f"/api/compare?{query}", code)


async def test_a_run_without_a_report_says_so(tmp_path: Path) -> None:
    """There is no report and there are no claims yet; sources and files are there as far as it is."""
    async with browsing(tmp_path, GatedClient()) as browser:
        run = (await order(browser, "/api/runs", 201, question="What is in the folder?"))["run_id"]
        for path in ("report", "claims"):
            assert "no report yet" in (await read(browser, f"/api/runs/{run}/{path}", 404))["error"]["message"]
        assert (await read(browser, f"/api/runs/{run}/sources"))["sources"] == []
        assert (await read(browser, f"/api/runs/{run}/timeline"))["seconds"] >= 0


def test_what_yaml_can_be_becomes_json() -> None:
    """Dates, bytes, sets, other keys than texts and what is nested too deep are texts; no number is not finite."""
    deep: Any = []
    for _ in range(50):
        deep = [deep]
    day = date(2026, 3, 1)
    fields = {1: day, "a": [float("nan"), 1.5, None, True], "b": {"c": b"x", None: {2}}, "deep": deep}
    found = json.dumps(as_json(fields), allow_nan=False)
    assert json.loads(found) | {"deep": 0} == {
        "1": "2026-03-01",
        "a": ["nan", 1.5, None, True],
        "b": {"c": "b'x'", "None": "{2}"},
        "deep": 0,
    }


FLEET = FleetStatus(
    database="queue.sqlite",
    is_paused=False,
    workers=(FleetWorker(name="one", runs=3, concurrency=2, age_s=60.0, silent_s=1.0, is_alive=True),),
    runs=(FleetRun(run_id=A, question=f"What is {KEY}?", state="waiting", worker="", cost_usd=None),),
    waiting=1,
    running=0,
    ended_last_hour=3,
    cost_last_hour=0.25,
)


async def test_the_fleet_is_read_where_there_is_one(tmp_path: Path) -> None:
    """Its workers and its queue, without keys; without a fleet, how to begin one."""
    async with browsing(tmp_path) as browser:
        assert "explorer submit" in (await read(browser, "/api/fleet", 404))["error"]["hint"]
    secrets = Secrets(anthropic_key=SecretStr(KEY))
    async with browsing(tmp_path, fleet=lambda: FLEET, secrets=secrets) as browser:
        expected = json.loads(json.dumps(asdict(FLEET)).replace(KEY, "[redacted]"))
        assert await read(browser, "/api/fleet") == expected


OF_RUNS = "/api/runs/{run_id}"
ROUTES = {
    "GET /api/runs",
    "POST /api/runs",
    "GET /api/compare",
    "GET /api/fleet",
    f"GET {OF_RUNS}",
    *(f"POST {OF_RUNS}/{name}" for name in ("steer", "stop", "resume", "fork", "plan", "call")),
    *(f"GET {OF_RUNS}/{name}" for name in ("events", "report", "claims", "sources", "files", "timeline")),
    *(f"GET {OF_RUNS}/{name}" for name in ("agents/{agent}", "sources/{source_id}", "files/{path}")),
}
REFERENCE = re.compile(r'"\$ref": "#/components/schemas/(\w+)"')


async def test_the_description_names_every_route_its_answer_and_its_errors(tmp_path: Path) -> None:
    """Each has a summary, a description, a model of its answer, and the one form of errors; no reference is open."""
    async with browsing(tmp_path) as browser:
        assert 'href="/api/openapi.json"' in await browser.page("/")
        document = await read(browser, "/api/openapi.json")
    assert document["openapi"].startswith("3.1")
    schemas = document["components"]["schemas"]
    assert set(REFERENCE.findall(json.dumps(document))) == set(schemas)
    operations = {
        f"{method.upper()} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    assert all(name.split()[1].startswith("/api/") for name in operations)
    assert set(operations) == ROUTES
    assert schemas["Source"]["properties"]["id"]["description"].startswith("`S1`, `S2`")
    assert schemas["CommandResult"]["properties"]["steps"]["description"] == "Turns of all agents."
    assert schemas["RunAnswer"]["properties"]["at"]["description"]
    for name, operation in operations.items():
        assert operation["summary"], name
        assert operation["description"], name
        answers = [one for code, one in operation["responses"].items() if code.startswith("2") and code != "204"]
        assert [one["content"]["application/json"]["schema"]["$ref"] for one in answers], name
        for code in ("400", "404", "409", "413", "default"):
            schema = operation["responses"][code]["content"]["application/json"]["schema"]
            assert schema == {"$ref": "#/components/schemas/ErrorAnswer"}, name
        assert "422" not in operation["responses"], name
        if name.startswith("POST"):
            assert "$ref" in operation["requestBody"]["content"]["application/json"]["schema"], name


@pytest.mark.slow
async def test_each_answer_is_as_it_is_described(tmp_path: Path) -> None:
    """The answer of every route that is read fits its schema; one that lacks a field does not."""
    await two_runs(tmp_path / "workspace")
    async with browsing(tmp_path, fleet=lambda: FLEET) as browser:
        document = await read(browser, "/api/openapi.json")
        for path, methods in document["paths"].items():
            if "get" in methods:
                address = path.format(run_id=A, agent="orchestrator", source_id="S1", path="report.md")
                answer = await read(browser, f"{address}?a={A}&b={B}")
                schema = methods["get"]["responses"]["200"]["content"]["application/json"]["schema"]
                described: Any = Draft202012Validator(schema | {"components": document["components"]})
                assert described.is_valid(answer), path
                assert not described.is_valid(dict(list(answer.items())[1:])), path
