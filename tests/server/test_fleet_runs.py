"""Runs that the fleet's database has, in the browser of a machine without their folders."""

from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="the extra fleet is not installed")

from pydantic import SecretStr

from explorer.cli.commands.fleet import decide_in_fleet
from explorer.cli.runs_at_hand import OpenCopies
from explorer.fleet.leases import Ending
from explorer.fleet.orders import decision_for, deliver_orders
from explorer.fleet.runs import FleetQueue, NewRun, QueueState
from explorer.fleet.store_choice import agree_on_store
from explorer.journal.control import Inbox
from explorer.run.run import start
from explorer.schema.errors import StorageError
from explorer.schema.events import NoteAdded, RunFinished, Status
from explorer.schema.plan import PlanDecision
from explorer.schema.settings import Secrets, Settings
from fleet.test_plan_decisions import propose, state_of
from fleet.test_queue import queue, tables
from fleet.test_run_copy import settings_of, started, until
from fleet.test_store import KEY, machine
from server.site_stage import browsing, offline_settings, plain
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


async def test_the_queue_says_of_an_unfinished_run_that_it_failed(queue: FleetQueue, tmp_path: Path) -> None:
    """The journal does not know; the run's page says why, and what puts it into the queue again."""
    agree_on_store(queue.database, "database", KEY)
    run_id, _new = queue.submit(NewRun("What is new?", {}))
    copies = OpenCopies(settings_of(queue, tmp_path))
    with machine(queue, tmp_path, "one", run_id) as one:
        await one.journal.append(started(run_id))
        async with browsing(tmp_path, elsewhere=copies.of, queued=copies.queued) as browser:
            assert copies.queued(run_id) == ""
            one.leases.settle(one.taken, Ending(QueueState.FAILED, reason="no connection to the model"))
            page = plain(await browser.until(run_id, "unfinished"))
    said = f"failed (no connection to the model) → try it again: explorer queue retry {run_id}"
    assert f"The fleet's queue has it as {said}" in page
    assert "resume it, and it continues" not in page
    copies.close()


def copies_folder(place: Path, run_id: str) -> Path:
    """The engine's folder of a copy."""
    return place / "workspace" / ".fleet" / "copies" / run_id / ".explorer"


async def test_a_plan_of_a_run_of_another_machine_is_decided_in_the_browser(queue: FleetQueue, tmp_path: Path) -> None:
    """The form and its JSON twin hand the decision to the fleet, and words ask for another plan."""
    agree_on_store(queue.database, "database", KEY)
    settings = settings_of(queue, tmp_path)
    copies = OpenCopies(settings)
    decide = partial(decide_in_fleet, settings)
    async with browsing(tmp_path, elsewhere=copies.of, decide_elsewhere=decide) as browser:
        for path, fields in (("plan", {"decision": "approve"}), ("resume", {"message": "only its age"})):
            run_id, _new = queue.submit(NewRun("What is new?", {}))
            with machine(queue, tmp_path, f"for-{path}", run_id) as one:
                await propose(one)
                page = await browser.page(f"/runs/{run_id}")
                assert f'action="/runs/{run_id}/plan"' in page
                await order(browser, f"{RUNS}/{run_id}/{path}", 202, **fields)
                decided = decision_for(queue.database, run_id, state_of(one))
                wanted = PlanDecision.approve() if path == "plan" else PlanDecision.reject("only its age")
                assert (decided, queue.run(run_id).state) == (wanted, QueueState.WAITING)
                queue.cancel(run_id)
    copies.close()


async def test_what_this_machine_has_is_shown_while_the_fleets_database_is_away(tmp_path: Path) -> None:
    """Pages say so; nothing is resumed meanwhile, since the database may have a newer state of the run."""
    done = await start("What is new?", offline_settings(tmp_path))
    away = ["the fleet's database does not answer (connection refused)"]

    def copy_of(_run_id: str) -> Path | None:
        if away:
            raise StorageError(away[0])
        return None

    async with browsing(tmp_path, elsewhere=copy_of) as browser:
        page = await browser.page(f"/runs/{done.run_id}")
        assert "Runs are shown as this machine has them" in page
        assert "connection refused" in page
        assert "What is new?" in page
        await read(browser, f"{RUNS}/{done.run_id}/claims")
        refused = await order(browser, f"{RUNS}/{done.run_id}/resume", 500, message="more?")
        assert "connection refused" in refused["error"]["message"]
        missing = await read(browser, f"{RUNS}/20260101-000000-nothing", 500)
        assert "connection refused" in missing["error"]["message"]
        away.clear()
        assert "connection refused" not in await browser.page(f"/runs/{done.run_id}")
