"""Runs that the fleet's database has, in the browser of a machine without their folders."""

from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="the extra fleet is not installed")

from pydantic import SecretStr

from explorer.cli.runs_at_hand import OpenCopies
from explorer.fleet.leases import Ending
from explorer.fleet.orders import deliver_orders
from explorer.fleet.runs import FleetQueue, NewRun, QueueState
from explorer.fleet.store_choice import agree_on_store
from explorer.journal.control import Inbox
from explorer.schema.events import NoteAdded, RunFinished, Status
from explorer.schema.settings import Secrets, Settings
from fleet.test_queue import queue, tables
from fleet.test_run_copy import started, until
from fleet.test_store import KEY, machine
from server.site_stage import browsing
from server.test_api import ended, order, read

_ = (queue, tables)
RUNS = "/api/runs"


async def test_a_run_of_another_machine_is_followed_steered_and_forked(
    queue: FleetQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its page is that of a run at work; only to resume it here is refused, and a fork is one of this workspace."""
    monkeypatch.setattr("explorer.fleet.run_copy.LOOK_EVERY_S", 0.02)
    agree_on_store(queue.database, "database", KEY)
    run_id, _new = queue.submit(NewRun("What is new?", {}))
    secrets = Secrets(fleet_database=SecretStr(queue.database.dsn))
    copies = OpenCopies(Settings(workspace=tmp_path / "workspace", secrets=secrets))
    with machine(queue, tmp_path, "one", run_id) as one:
        await one.journal.append(started(run_id))
        async with browsing(tmp_path, elsewhere=copies.of) as browser:
            assert (await read(browser, f"{RUNS}/{run_id}"))["result"]["status"] == "running"
            await order(browser, f"{RUNS}/{run_id}/steer", 202, message="be short")
            until(lambda: not Inbox(copies_folder(tmp_path, run_id)).waiting())
            deliver_orders(queue.database, one.workspace, [run_id])
            assert [found.text for found in Inbox(one.folder / ".explorer").waiting()] == ["be short"]
            (one.folder / "found.md").write_text("found\n")
            await one.journal.append(NoteAdded(text="a note"))
            await one.journal.append(RunFinished(status=Status.COMPLETE, reason=""))
            one.leases.settle(one.taken, Ending(QueueState.DONE))
            await ended(browser, run_id, "complete")
            assert "What is new?" in await browser.page(f"/runs/{run_id}")
            refused = await order(browser, f"{RUNS}/{run_id}/resume", 400, message="more?")
            assert "a worker of the fleet continues it" in refused["error"]["message"]
            forked = await order(browser, f"{RUNS}/{run_id}/fork", 201, at=2)
            assert (tmp_path / "workspace" / forked["run_id"]).is_dir()
            await read(browser, f"{RUNS}/20260101-000000-nothing", 404)
    copies.close()


def copies_folder(place: Path, run_id: str) -> Path:
    """The engine's folder of a copy."""
    return place / "workspace" / ".fleet" / "copies" / run_id / ".explorer"
